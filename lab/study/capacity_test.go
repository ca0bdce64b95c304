package study

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"tare/notebook"
	capacitykind "tare/notebook/kinds/capacity"
	"tare/workloads"
)

// The search finds the rate at which a service of a known curve just meets the objective, from far below, in few steps.
func TestTheCapacityOfAKnownService(t *testing.T) {
	for _, limit := range []float64{12, 97, 1003, 45000} { // requests a second at which its queue has no end
		a := ascent{Config: capacitykind.Config{Metric: "p99", Bound: 0.05, From: 10, To: mostRate, Raise: 0.5, HoldS: 10}}
		tail := func(rate float64) float64 { return 0.002 / max(1e-6, 1-rate/limit) }
		want := limit * (1 - 0.002/0.05)
		steps, last := 0, 0
		for rate, _, ok := a.next(); ok; rate, _, ok = a.next() {
			if rate == last && a.missed.Rate == 0 && len(a.tries) == 0 {
				t.Fatalf("%d requests a second twice on the way up", rate)
			}
			steps, last = steps+1, rate
			a.take(capacitykind.Step{Rate: rate, Tail: tail(float64(rate)), Met: tail(float64(rate)) <= a.Bound})
		}
		got, cause := a.capacity()
		if cause != "" || math.Abs(got/want-1) > max(0.03, 0.6/want) || steps > 36 {
			t.Errorf("of %g requests a second %g at the objective were found in %d steps, want %g (%s)", limit, got, steps, want, cause)
		}
	}
}

func TestACapacityThatIsOutOfReach(t *testing.T) {
	for _, c := range []struct {
		met  bool
		tail float64
		want string
	}{{false, 0.2, "the objective, p99 at most 50ms, was missed at the least rate, 10 requests a second: p99 was 0.2 s; begin with less (from)"},
		{false, 0.02, "the objective, p99 at most 50ms, was missed at the least rate, 10 requests a second: 8.5 a second were answered; begin with less (from)"},
		{true, 0.02, "the objective, p99 at most 50ms, was met at 100 requests a second, the most that the study allows: allow more (to)"}} {
		a := ascent{Config: capacitykind.Config{Metric: "p99", Bound: 0.05, From: 10, To: 100, Raise: 0.5}}
		for rate, _, ok := a.next(); ok; rate, _, ok = a.next() {
			a.take(capacitykind.Step{Rate: rate, Throughput: 0.85 * float64(rate), Tail: c.tail, Met: c.met})
		}
		if _, cause := a.capacity(); cause != c.want {
			t.Errorf("%q, want %q", cause, c.want)
		}
	}
}

func TestCapacityOfAFile(t *testing.T) {
	for _, c := range []struct {
		in   Capacity
		want string // in the error; else the value
	}{
		{Capacity{Objective: "p99=50ms"}, "{p99 0.05 10 1000000 0.5 10}"},
		{Capacity{Objective: "p95=2s", From: 5, To: 50, Raise: "20%", Hold: "3s"}, "{p95 2 5 50 0.2 3}"},
		{Capacity{Objective: "50ms"}, `objective: "50ms": METRIC=TIME was expected, like p99=50ms`},
		{Capacity{Objective: "p99=fast"}, "objective: "},
		{Capacity{Objective: "p99=-1s"}, "objective: "},
		{Capacity{Objective: "p99=1s", From: 50, To: 20}, "from: 50 to 20 requests a second"},
		{Capacity{Objective: "p99=1s", Raise: "200%"}, "raise: "},
		{Capacity{Objective: "p99=1s", Hold: "1.5s"}, "hold: "},
	} {
		got, err := c.in.parse()
		said := fmt.Sprint(err)
		if err == nil {
			said = fmt.Sprint(*got)
		}
		if !strings.HasPrefix(said, c.want) {
			t.Errorf("%+v: %s, want %s", c.in, said, c.want)
		}
	}
}

// A trial that seeks a capacity keeps every step, and its value is one over what it found.
func TestATrialSeeksACapacity(t *testing.T) {
	l := &shop{fakeLab: fakeLab{elapsed: steady}, answer: `{"mean":0.02,"p99":0.04,"requests_per_second":1000000,"errors":0}`}
	book := &fakeBook{}
	r := &Run{Plan: shopPlan(""), Lab: l, Book: book}
	r.Plan.ready["w"].Workload.Load.Open = []string{"open", "{rate}", "{seconds}", "{requests}"}
	r.Plan.ready["w"].Params = map[string]string{"rate": "7"}
	r.Plan.Study.Kind, r.Plan.Study.Config = capacitykind.Name, &capacitykind.Config{Metric: "p99", Bound: 0.05, From: 10, To: 1000, Raise: 1, HoldS: 3}
	l.at = func(argv []string) string {
		if argv[1] == "640" {
			return `{"mean":0.02,"p99":0.05,"requests_per_second":500,"errors":3}`
		}
		return l.answer
	}
	if _, err := r.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, tr := range book.trials {
		if tr.Warmup {
			if len(capacitykind.SeenBy(&tr).Steps) != 1 {
				t.Errorf("a warm-up of %d steps, want 1", len(capacitykind.SeenBy(&tr).Steps))
			}
			continue
		}
		if tr.Failure != "" || tr.Value != 1/tr.Figures["capacity"] || tr.Figures["capacity"] < 580 || tr.Figures["capacity"] >= 640 || len(capacitykind.SeenBy(&tr).Steps) < 8 || capacitykind.SeenBy(&tr).Steps[0].Rate != 10 || tr.Load == nil {
			t.Errorf("trial %+v", tr)
		}
		for _, s := range capacitykind.SeenBy(&tr).Steps {
			if s.Met != (s.Rate < 640) || (s.Failure != "") != (s.Rate == 640) {
				t.Errorf("step %+v", s)
			}
		}
		if tr.Command[0] != "open" || tr.Command[2] != "3" {
			t.Errorf("command %q", tr.Command)
		}
	}
}

// A service of a user's own is one workload: over HTTP the shipped one that asks at a rate, else a command of its image.
func TestAServiceOfOnesOwn(t *testing.T) {
	spec := func(load ...string) *Spec {
		return &Spec{Name: "bench", Workloads: []Use{{Name: "service", Image: "./x", Port: 80, Ask: load}}, Platforms: []Place{{Platform: notebook.BM}}, Instances: []string{"1/1GB"},
			Capacity: &Capacity{Objective: "p99=50ms"}}
	}
	for _, c := range []struct {
		load       []string
		ready, err string
	}{
		{[]string{"/page?x=1"}, "{work}/k6", ""},
		{[]string{"ab", "-r", "{rate}", "{address}"}, "ab -r 1 {address}", ""},
		{[]string{"ab"}, "", "load: the path of a page, or a command with {rate} in it, was expected"},
		{nil, "", "service: and load: one without the other"},
		{[]string{"/a b"}, "", "path"},
	} {
		s := spec(c.load...)
		err := s.Complete(kinds)
		var us []use
		if err == nil {
			us, err = s.uses(workloads.FS)
		}
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: %v, want %q", c.load, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		w := us[0].Workload
		if w.Service.Port != 80 || w.Name != "service" || !strings.HasPrefix(strings.Join(w.Load.Ready, " "), c.ready) || len(w.Load.Open) == 0 {
			t.Errorf("%q: %+v", c.load, w.Load)
		}
		if _, err := w.Resolve(nil); err != nil {
			t.Error(err)
		}
	}
}
