package study

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tare/lab/workload"
	"tare/notebook"
	"tare/workloads"
)

// What a rehearsal says of work whose trials take so long and vary by so much, in six rounds of one trial each.
func TestWorkThatIsTooShort(t *testing.T) {
	for _, c := range []struct {
		name   string
		takes  time.Duration
		spread float64
		design notebook.Design
		length string // that the workload names
		value  string
		want   string // the length that would do
	}{
		{"noisy", time.Second / 10, 0.15, notebook.Design{Floor: 6, Cap: 6, Trials: 1}, "n", "60", "600"},
		{"a little noisy", time.Second / 10, 0.03, notebook.Design{Floor: 6, Cap: 6, Trials: 1}, "n", "60", "180"},
		{"steady", time.Second / 10, 0.001, notebook.Design{Floor: 6, Cap: 6, Trials: 1}, "n", "60", ""},
		{"as many trials as it takes", time.Second / 10, 0.15, notebook.Design{Floor: 6, Cap: 60, Precision: 0.05, Trials: 1}, "n", "60", ""},
		{"precise beyond reach", time.Second / 10, 0.15, notebook.Design{Floor: 6, Cap: 6, Precision: 0.005, Trials: 1}, "n", "60", "600"},
		{"too long to be tried often", time.Second, 0.15, notebook.Design{Floor: 6, Cap: 6, Trials: 1}, "n", "60", ""},
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
			if got != c.want || len(short) > 1 || len(l.order) != 1 || l.live != 0 {
				t.Errorf("%s: length %q, want %q; %v; %d guests", c.name, got, c.want, short, len(l.order))
			}
			for _, s := range short {
				if text := s.String(); !strings.Contains(text, "vary by ") || !strings.Contains(text, "n is "+c.want+" here, and not "+c.value) {
					t.Errorf("%s: %s", c.name, text)
				}
				s.Open = false
				if text := s.String(); !strings.HasSuffix(text, "; n: "+c.want+" would do") {
					t.Errorf("%s: %s", c.name, text)
				}
			}
		})
	}
}

// A study names the least; what was chosen is the parameter's value, whatever else there is of the workload, and stands in the treatment.
func TestALengthThatIsChosen(t *testing.T) {
	text := `name: mine
workloads: [{name: ffmpeg, params: {frames: 60 or more, width: [480, 640]}}]
platforms: [{platform: bm}]
instances: [1/1GB]
design: {rounds: {cap: 6}}
`
	s, err := Parse("mine.yaml", []byte(text), ".", kinds)
	if err != nil {
		t.Fatal(err)
	}
	of := func() (frames []string) {
		us, err := s.uses(workloads.FS)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range us {
			if !u.open {
				t.Errorf("%v: its length may be chosen", u.params)
			}
			frames = append(frames, u.params["width"]+":"+u.params["frames"])
		}
		return frames
	}
	if got := strings.Join(of(), " "); got != "480:60 640:60" {
		t.Error(got)
	}
	us, _ := s.uses(workloads.FS)
	s.Lengths = map[string]string{us[1].label(): "200"}
	if got := strings.Join(of(), " "); got != "480:60 640:200" {
		t.Error(got)
	}
	for _, wrong := range []string{"frames: sixty or more", "width: 480 or more", "frames: 60 or less"} {
		s, err := Parse("mine.yaml", []byte(strings.Replace(text, "frames: 60 or more, width: [480, 640]", wrong, 1)), ".", kinds)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.uses(workloads.FS); err == nil || !strings.Contains(err.Error(), "a whole number") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
