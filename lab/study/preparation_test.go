package study

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
)

// Guests that spend nearly all their time on preparation are reported once, after the first round, with what would help.
func TestWorkThatIsMostlyPreparation(t *testing.T) {
	fixed := notebook.Design{Floor: 3, Cap: 3, Trials: 1, Warmups: 1}
	ruled := fixed
	ruled.Precision = 1e-6
	several := notebook.Design{Floor: 3, Cap: 3, Trials: 4}
	const brief, short = 8888 * time.Millisecond, 100 * time.Millisecond
	for _, c := range []struct {
		name            string
		design          notebook.Design
		making, working time.Duration
		explain         bool
		values          string // that n accepts
		want            *notebook.Message
	}{
		{"short trials", fixed, brief, short, false, "0 to 99999",
			prepared(1.1, 23, true, 1778)},
		{"no longer work", fixed, brief, short, false, "0 to 1000",
			prepared(1.1, 23, true, nil)},
		{"short trials, several", several, brief, short, false, "0 to 99999",
			prepared(4.3, 23, true, 334)},
		{"traced", ruled, brief, short, true, "0 to 99999",
			prepared(2.2, 12, false, 762)},
		{"trials of a ninth", fixed, 8 * time.Second, time.Second, false, "0 to 99999", nil},
		{"the run allocates", ruled, brief, short, false, "0 to 99999", nil},
		{"nothing would do", fixed, time.Hour, time.Microsecond, false, "0 to 99999", prepared(2.8e-08, nil, true, nil)},
	} {
		synctest.Test(t, func(t *testing.T) {
			plan := func(trials int, value string) *Plan {
				d := c.design
				d.Trials = trials
				p := fakePlan(d, bmT, aaT, cnT, vmT)
				params := map[string]string{"n": value}
				w := p.ready["w"].Workload
				w.Length, w.Params = "n", map[string]workload.Param{"n": {Values: c.values}}
				p.ready = map[string]*workload.Ready{notebook.Label("w", params): p.ready["w"]}
				for i := range p.Study.Treatments {
					p.Study.Treatments[i].Params = params
				}
				if c.explain {
					p.Study.Explain = []string{notebook.TracerScheduler}
				}
				return p
			}
			run := func(p *Plan, length time.Duration) (*Run, *forecasts) {
				told := &forecasts{}
				l := levels(1, c.making, length, 0, 0, same)
				making := l.making
				l.making = func(t notebook.Treatment) time.Duration { // emulated guests do not count
					if t.Platform == notebook.VM {
						return time.Hour
					}
					return making(t)
				}
				r := &Run{Plan: p, Lab: l, Book: &fakeBook{}, Watch: told}
				if _, err := r.Do(t.Context()); err != nil {
					t.Fatal(err)
				}
				return r, told
			}
			r, told := run(plan(c.design.Trials, "60"), c.working)
			if got := rounded(notebook.Several(told.preparing)); !got.Equal(c.want) {
				t.Errorf("%s:\ngot  %v\nwant %v", c.name, got, c.want)
			}
			if said := slices.ContainsFunc(r.Notes(), func(n *notebook.Message) bool { return n.Is("mostly-preparation") }); said != (c.want != nil) {
				t.Errorf("%s: notes %q", c.name, r.Notes())
			}
			// The proposal helps.
			does := func(what string, r *Run, told *forecasts) {
				if got := r.costs.of[r.Plan.Study.Treatments[0].ID]; len(told.preparing) > 0 || got.working*5 < got.working+got.preparing || got.working*4 > got.working+got.preparing {
					t.Errorf("%s: with %s %v of trials and %v of preparation; %q", c.name, what, got.working, got.preparing, told.preparing)
				}
			}
			if c.want != nil && c.want.Args["trials"] == 23.0 {
				r, told := run(plan(23, "60"), c.working)
				does("trials: 23", r, told)
			}
			if c.want != nil && c.want.Args["length"] == 1778.0 {
				r, told := run(plan(1, "1778"), c.working*1778/60)
				does("n: 1778", r, told)
			}
		})
	}
}

// Trials that fail at once say nothing about preparation. The report waits until their treatment succeeds or is given up.
func TestFailedTrialsDelayTheReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &forecasts{}
		l := levels(1, 9*time.Second, 100*time.Millisecond, 0, 0, same)
		begun := 0
		l.result = func(of notebook.Treatment, _ ruler.Order, r *ruler.Result) error {
			if of.Platform == notebook.CN {
				r.Exit = 1
			}
			if begun++; len(told.preparing) > 0 && begun < 12 { // two rounds of three guests with a warm-up and a trial
				t.Errorf("reported after %d runs: %q", begun, told.preparing)
			}
			return nil
		}
		r := &Run{Plan: fakePlan(notebook.Design{Floor: 4, Cap: 4, Trials: 1, Warmups: 1}, bmT, aaT, cnT), Lab: l, Book: &fakeBook{}, Watch: told}
		if _, err := r.Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(told.preparing) != 1 || len(r.Notes()) != 2 || givenUp(r) != 1 {
			t.Errorf("%q; notes %q", told.preparing, r.Notes())
		}
	})
}

// rounded returns a message with its share in per cent, rounded as in its sentence.
func rounded(m *notebook.Message) *notebook.Message {
	if m == nil {
		return nil
	}
	args := maps.Clone(m.Args)
	share, _ := args["share"].(float64)
	args["share"], _ = strconv.ParseFloat(fmt.Sprintf("%.2g", 100*share), 64)
	return &notebook.Message{Code: m.Code, Args: args}
}

// prepared is the rounded message about the work of these tests.
func prepared(percent float64, trials any, chosen bool, length any) *notebook.Message {
	return notebook.Say("prepared-for-little", "label", "w{n=60}", "share", percent, "trials", trials, "chosen", chosen, "param", "n", "length", length, "fair", fair)
}
