package study

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"tare/lab/workload"
	"tare/notebook"
)

// A rehearsal reports work that is too short, by the length of its trials and by how they vary. A study has six rounds of one trial.
func TestWorkThatIsTooShort(t *testing.T) {
	for _, c := range []struct {
		name   string
		takes  time.Duration
		spread float64
		design notebook.Design
		length string // the parameter that the workload names
		value  string
		want   string // the proposed length
	}{
		{"noisy", time.Second / 10, 0.15, notebook.Design{Floor: 6, Cap: 6, Trials: 1}, "n", "60", "600"},
		{"a little noisy", time.Second / 10, 0.004, notebook.Design{Floor: 6, Cap: 6, Trials: 1}, "n", "60", "180"},
		{"noisy, with large differences seen", time.Second / 10, 0.02, notebook.Design{Floor: 6, Cap: 6, Trials: 1}, "n", "60", ""},
		{"steady", time.Second / 10, 0.001, notebook.Design{Floor: 6, Cap: 6, Trials: 1}, "n", "60", ""},
		{"as many trials as it takes", time.Second / 10, 0.15, notebook.Design{Floor: 6, Cap: 60, Precision: 0.05, Trials: 1}, "n", "60", ""},
		{"precise beyond reach", time.Second / 10, 0.15, notebook.Design{Floor: 6, Cap: 6, Precision: 0.005, Trials: 1}, "n", "60", "600"},
		{"too long to be tried often", 2 * time.Second, 0.15, notebook.Design{Floor: 6, Cap: 6, Trials: 1}, "n", "60", ""},
		{"of no length", time.Second / 10, 0.15, notebook.Design{Floor: 6, Cap: 6, Trials: 1}, "", "60", ""},
		{"all that there is", time.Second / 10, 0.15, notebook.Design{Floor: 6, Cap: 6, Trials: 1}, "n", "0", ""},
		{"at its most", time.Second / 10, 0.15, notebook.Design{Floor: 6, Cap: 6, Trials: 1}, "n", "1000", ""},
		{"near its most", time.Second / 10, 0.15, notebook.Design{Floor: 6, Cap: 6, Trials: 1}, "n", "999", "1000"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := fakePlan(c.design, bmT, aaT, cnT)
			ready := p.ready["w"]
			ready.Workload.Length = c.length
			ready.Workload.Params = map[string]workload.Param{"n": {Default: "1", Values: "0 to 1000"}}
			params := map[string]string{"n": c.value}
			label := notebook.Label("w", params)
			p.ready, p.open = map[string]*workload.Ready{label: ready}, map[string]bool{label: true}
			for i := range p.Study.Treatments {
				p.Study.Treatments[i].Params = params
			}
			rng := rand.New(rand.NewPCG(1, 2))
			l := &fakeLab{making: func(notebook.Treatment) time.Duration { return 0 }}
			l.elapsed = func(notebook.Treatment) time.Duration {
				return time.Duration(float64(c.takes) * (1 + c.spread*rng.NormFloat64()))
			}
			short, err := p.Rehearse(t.Context(), l, func(string) {})
			if err != nil {
				t.Fatal(err)
			}
			got := Lengths(short)[label]
			if got != c.want || len(short) > 1 || len(l.order) != 1 || l.Live != 0 {
				t.Errorf("%s: length %q, want %q; %v; %d guests", c.name, got, c.want, short, len(l.order))
			}
			for _, s := range short {
				if c.want == "" {
					if m := s.Message(); s.Enough != "" || !advice(m).Is("longer-would-bring") || m.Args["rounds"] == 0.0 {
						t.Errorf("%s: %v", c.name, m)
					}
					continue
				}
				if m := s.Message(); !advice(m).Is("length-chosen") || advice(m).Args["length"] != c.want || advice(m).Args["asked"] != c.value {
					t.Errorf("%s: %v", c.name, m)
				}
				s.Open, s.Rounds = false, 0
				if m := s.Message(); !advice(m).Is("length-would-do") || advice(m).Args["length"] != c.want || (advice(m).Args["then"] != nil) != (s.Then > s.Wanted) {
					t.Errorf("%s: %v", c.name, m)
				}
			}
		})
	}
}

// advice is the proposal in a message on work that is too short.
func advice(m *notebook.Message) *notebook.Message {
	a, _ := m.Args["advice"].(*notebook.Message)
	return a
}

// sixty is work of length 60 on bare metal.
func sixty() (notebook.Treatment, *workload.Workload) {
	bm := bmT
	bm.Params = map[string]string{"n": "60"}
	return bm, &workload.Workload{Name: "w", Length: "n", Params: map[string]workload.Param{"n": {Default: "1", Values: "0 to 1000"}}}
}

// A rehearsal judges work by what will judge the answer: the study's precision, its margin, or the margin of a summary.
func TestRehearsalUsesTheAnswersMargin(t *testing.T) {
	bm, w := sixty()
	g := rand.New(rand.NewPCG(3, 1))
	var values []float64
	for range 20 {
		values = append(values, 1+0.05*g.NormFloat64())
	}
	for _, c := range []struct {
		design         notebook.Design
		wanted, margin float64
	}{
		{notebook.Design{Floor: 6, Cap: 6, Trials: 1}, 0.006, 0.01},
		{notebook.Design{Floor: 6, Cap: 6, Trials: 1, Decide: 0.02}, 0.012, 0.02},
		{notebook.Design{Floor: 6, Cap: 6, Trials: 1, Precision: 0.01}, 0.01, 0},
	} {
		s, _ := tooShort(rehearsed{design: c.design, t: bm, work: w, apart: 1}, values)
		if math.Abs(s.Wanted-c.wanted) > 1e-12 || s.Margin != c.margin {
			t.Errorf("%+v: wanted ± %g at the margin %g", c.design, s.Wanted, s.Margin)
		}
	}
}

// If a host's speed drifts, longer work is neither proposed nor chosen, because it would only take longer.
func TestLongerWorkIsNotProposedInVain(t *testing.T) {
	var values []float64
	for i := range 24 {
		values = append(values, 1+0.05*math.Sin(float64(i)/4))
	}
	bm, w := sixty()
	d := notebook.Design{Floor: 6, Cap: 6, Trials: 1, Warmups: 1}
	d.Order = notebook.OrderSequential
	p := fakePlan(d, bmT, aaT, cnT)
	apart, turns := p.apart(p.Study.Treatments[0])
	s, short := tooShort(rehearsed{d, bm, "w", w, true, apart, turns}, values)
	if m := s.Message(); !short || s.Enough != "" || len(Lengths([]Short{s})) > 0 || !advice(m).Is("longer-hardly-helps") {
		t.Errorf("%v %+v: %v", short, s, m)
	}
}

// The same work is long enough if guests take turns, because changes that last longer than a turn cancel.
func TestTurnsNeedNoLongerWork(t *testing.T) {
	var values []float64
	for i := range 33 {
		values = append(values, 1+0.02*math.Sin(float64(i)/6))
	}
	bm, w := sixty()
	d := notebook.Design{Floor: 20, Cap: 20, Trials: 1}
	p := fakePlan(d, bmT, aaT, cnT)
	apart, turns := p.apart(p.Study.Treatments[0])
	if !turns || apart > 1.5 {
		t.Fatalf("two compared trials are %g trials apart, in turns: %v", apart, turns)
	}
	if s, short := tooShort(rehearsed{d, bm, "w", w, true, apart, true}, values); short {
		t.Errorf("in turns: %+v", s)
	}
	if _, short := tooShort(rehearsed{d, bm, "w", w, true, 20, false}, values); !short {
		t.Error("one guest after the other: the work is long enough")
	}
}
