package study

import (
	"context"
	"errors"
	"testing"
	"time"

	"tare/lab/engine"
	"tare/lab/studyfile"
	"tare/notebook"
	"tare/workloads"
)

// half is a host that emulates VMs, and cannot run the engines that it names.
type half struct {
	cpus int
	not  string
}

func (h half) Host() notebook.Host {
	return notebook.Host{CPUs: make([]notebook.CPU, h.cpus), Memory: 16 << 30}
}

func (half) UseKernels(map[string]string) {}

func (half) Accelerator(context.Context, engine.Kind, string, string, bool) (string, error) {
	return notebook.TCG, nil
}

func (h half) Supports(_ context.Context, t notebook.Treatment) error {
	if t.Engine == h.not {
		return errors.New("it is not installed")
	}
	return nil
}

func preview(t *testing.T, file string, ch studyfile.Choices, f Facts) notebook.Preview {
	t.Helper()
	s, err := studyfile.Parse("s.yaml", []byte(file), ".", known)
	if err != nil {
		t.Fatal(err)
	}
	ch.Accel = "auto"
	a, err := s.Ask(workloads.FS, ch)
	if err != nil {
		t.Fatal(err)
	}
	if f.Guest == nil {
		f.Guest = func(notebook.Treatment) notebook.Span { return notebook.Span{Low: 1, High: 2} }
	}
	f.Built = func(studyfile.Work) bool { return true }
	_, v, err := Preview(t.Context(), half{cpus: 2, not: "crun"}, a, f)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

const foreseen = `name: mine
workloads: [{name: cpu, params: {millions: 1000}}]
platforms:
  - platform: bm
  - {platform: cn, engines: [docker, crun], provisioning: pinned}
instances: [1/1GB, 4/1GB]
design: {rounds: 10, trials: 3, warmups: 1}
`

// Treatments that do not fit or are not supported are left out and take no time. All rounds count, with a warm-up in each guest.
func TestPreviewCountsWhatRuns(t *testing.T) {
	v := preview(t, foreseen, studyfile.Choices{}, Facts{})
	if len(v.Treatments) != 3 || len(v.LeftOut) != 5 || v.Guests.Low != 30 || v.Guests.High != 30 || v.Trials.High != 120 || v.Rounds != [2]int{10, 10} {
		t.Errorf("%d configurations, %d left out, %v guests, %v runs, %v rounds; want 3, 5, 30, 120, 10", len(v.Treatments), len(v.LeftOut), v.Guests, v.Trials, v.Rounds)
	}
	if least := 30*1 + 120*0.5; v.Seconds.Low < least || v.Seconds.High < 30*2+120*1.2 || len(v.Unknown) > 0 {
		t.Errorf("%v s, unknown: %q; want at least %v s, none", v.Seconds, v.Unknown, least)
	}
	again := preview(t, foreseen, studyfile.Choices{}, Facts{})
	if again.Seconds != v.Seconds {
		t.Errorf("the same plan takes %v and %v", v.Seconds, again.Seconds)
	}
}

// Finished rounds are not repeated. Their run times replace the hint, and a time budget limits the time.
func TestPreviewOfTheRemainingRounds(t *testing.T) {
	ran := func(notebook.Treatment) (notebook.Span, bool) { return notebook.Span{Low: 0.1, High: 0.1}, true }
	all := preview(t, foreseen, studyfile.Choices{}, Facts{Run: ran})
	done := map[string]map[int]bool{}
	for _, tr := range all.Treatments {
		done[tr.ID] = map[int]bool{0: true, 1: true, 2: true, 3: true}
	}
	rest := preview(t, foreseen, studyfile.Choices{}, Facts{Run: ran, Done: done})
	if rest.Done != 12 || rest.Guests.High != 18 || rest.Seconds.High >= all.Seconds.High {
		t.Errorf("%d done, %v to do, %v of %v s", rest.Done, rest.Guests, rest.Seconds, all.Seconds)
	}
	if v := preview(t, foreseen, studyfile.Choices{}, Facts{Run: ran, Budget: 20 * time.Second}); v.Seconds.High != 20 {
		t.Errorf("with a budget of 20 s it takes %v s", v.Seconds)
	}
}

// A stopping rule may end a study at any round from its floor to its cap.
func TestPreviewOfAStoppingRule(t *testing.T) {
	v := preview(t, foreseen, studyfile.Choices{Until: studyfile.Until{Precision: 0.01}}, Facts{})
	if v.Rounds != [2]int{10, studyfile.UntilRounds} || v.Guests.Low != 30 || v.Guests.High != 600 {
		t.Errorf("%v rounds, %v guests; want 10 to %d, 30 to 600", v.Rounds, v.Guests, studyfile.UntilRounds)
	}
}

// The time of a run is proportional to its length, relative to the rehearsal.
func TestRehearsalPredictsLongerWork(t *testing.T) {
	p := &Plan{}
	at := func(n, other string) notebook.Treatment {
		return notebook.Treatment{Workload: "cpu", Params: map[string]string{"n": n, "o": other}}
	}
	p.remember(at("100", "x"), 2)
	for _, c := range []struct {
		t    notebook.Treatment
		want float64
	}{{at("100", "x"), 2}, {at("300", "x"), 6}, {at("300", "y"), 0}} {
		if got := p.rehearsed(c.t, "n"); got != c.want {
			t.Errorf("%v: %v s, want %v", c.t.Params, got, c.want)
		}
	}
}
