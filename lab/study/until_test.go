package study

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tare/lab/studyfile"
	"tare/notebook"
	"tare/stats"
	"tare/studies"
	"tare/workloads"
)

// A run until all is decided ends with the last decision. Large differences are decided early, and none once the interval lies within the
// margin.
func TestUntilDecided(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	pinned := cnT
	pinned.Provisioning = notebook.Pinned
	l := &fakeLab{elapsed: func(t notebook.Treatment) time.Duration {
		mean := 1.0
		if t.Platform == notebook.CN && t.Provisioning == notebook.Vanilla {
			mean = 1.3
		}
		return time.Duration(mean * (1 + 0.01*rng.NormFloat64()) * float64(time.Second))
	}}
	book := &fakeBook{}
	r := &Run{Plan: fakePlan(notebook.Design{Floor: 4, Cap: studyfile.UntilRounds, Decide: 0.02, Trials: 1}, bmT, cnT, pinned), Lab: l, Book: book}
	if reason, err := r.Do(t.Context()); err != nil || !reason.Is("precise-enough") {
		t.Fatalf("%q, %v", reason, err)
	}
	n, of := book.rounds(), r.Plan.Study.Treatments
	if bm, dear, same := n[of[0].ID], n[of[1].ID], n[of[2].ID]; dear > 6 || same <= dear || same > 60 || bm != same {
		t.Errorf("bare metal in %d rounds, the container with 30 %% overhead in %d, the one without overhead in %d", bm, dear, same)
	}
}

// A goal names its questions between rounds. A treatment that it does not name is in no round, except bare metal and its A/A control. The
// questions for which there is time come first. A question without a forecast waits for the others.
func TestGoal(t *testing.T) {
	pinned := cnT
	pinned.Provisioning = notebook.Pinned
	for _, c := range []struct {
		name               string
		cap                int
		time               time.Duration // 0: no deadline
		reason             string
		bm, cn, pinned, vm int // rounds that each is in
	}{
		{"all is answered", 30, 0, "precise-enough", 9, 5, 9, 0},
		{"the cap comes first", 7, 0, "cap-on-rounds", 7, 5, 7, 0},
		{"there is time for one of two", 30, 67 * time.Second, "time-budget", 5, 5, 3, 0}, // all in the first two rounds and the fifth; only the one in the others
	} {
		synctest.Test(t, func(t *testing.T) {
			book := &fakeBook{}
			plan := fakePlan(notebook.Design{Floor: 2, Cap: c.cap, Claims: true, Trials: 1, Warmups: 1}, bmT, aaT, cnT, pinned, vmT)
			of := plan.Study.Treatments
			r := &Run{Plan: plan, Lab: levels(1, time.Second, time.Second, 0, 0, same), Book: book}
			r.Goal = func() (open []Question, err error) {
				n := book.rounds()
				if d := 5 - n[of[2].ID]; d > 0 {
					open = append(open, Question{Of: []string{of[2].ID}, Rounds: d})
				}
				if n[of[3].ID] < 9 {
					open = append(open, Question{Of: []string{of[3].ID}}) // without a forecast
				}
				return open, nil
			}
			if c.time > 0 {
				r.Deadline = time.Now().Add(c.time)
			}
			reason, err := r.Do(t.Context())
			n := book.rounds()
			if err != nil || !reason.Is(c.reason) || n[of[0].ID] != c.bm || n[of[1].ID] != c.bm || n[of[2].ID] != c.cn || n[of[3].ID] != c.pinned || n[of[4].ID] != c.vm {
				t.Errorf("%s: %q, %v; rounds: %v", c.name, reason, err, n)
			}
		})
	}
	r := &Run{Plan: fakePlan(notebook.Design{Floor: 2, Cap: 9, Claims: true, Trials: 1}, bmT, cnT), Lab: &fakeLab{elapsed: steady}, Book: &fakeBook{}}
	r.Goal = func() ([]Question, error) { return nil, nil }
	if reason, err := r.Do(t.Context()); err == nil || !strings.Contains(err.Error(), "this host cannot run the configurations that its claims compare") {
		t.Errorf("a goal without questions: %q, %v", reason, err)
	}
	s, err := studyfile.Load(studies.FS, "quick", known)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ask(workloads.FS, studyfile.Choices{Until: studyfile.Until{Claims: true}}); err == nil || !strings.Contains(err.Error(), "names no claims") {
		t.Errorf("a study without claims: %v", err)
	}
}

// A costly question does not take the time of cheap ones. With a time budget, the cheap questions are answered first, and the time that is
// left is for the costly one.
func TestCostlyQuestionWaits(t *testing.T) {
	dear := cnT
	dear.Provisioning = notebook.Pinned
	synctest.Test(t, func(t *testing.T) {
		book := &fakeBook{}
		plan := fakePlan(notebook.Design{Floor: 6, Cap: 200, Claims: true, Trials: 1}, bmT, aaT, cnT, dear)
		of := plan.Study.Treatments
		l := &fakeLab{elapsed: steady, making: func(t notebook.Treatment) time.Duration {
			if t.Provisioning == notebook.Pinned {
				return 100 * time.Second
			}
			return time.Second
		}}
		r := &Run{Plan: plan, Lab: l, Book: book, Deadline: time.Now().Add(10 * time.Minute)}
		r.Goal = func() (open []Question, err error) {
			if n := book.rounds(); n[of[2].ID] < 30 {
				open = append(open, Question{Of: []string{of[2].ID}, Rounds: 30 - n[of[2].ID]})
			}
			return append(open, Question{Of: []string{of[3].ID}}), nil
		}
		reason, err := r.Do(t.Context())
		n := book.rounds()
		if err != nil || !reason.Is("time-budget") || n[of[2].ID] != 30 || n[of[3].ID] < 2 {
			t.Errorf("%q, %v; rounds: %v, want 30 of the cheap question and some of the costly one", reason, err, n)
		}
	})
}

// forecasts records the forecasts of a run, with every guest, and its reports on preparation.
type forecasts struct {
	rounds, done, all []int
	atMost            []bool
	preparing         []*notebook.Message
}

func (f *forecasts) Guest(round int, _ notebook.Treatment, done, all int, atMost bool, _ time.Duration) {
	f.rounds, f.done, f.all, f.atMost = append(f.rounds, round), append(f.done, done), append(f.all, all), append(f.atMost, atMost)
}
func (f *forecasts) Trial(notebook.Treatment, notebook.Trial, stats.Quotient) {}
func (f *forecasts) GaveUp(notebook.Treatment, *notebook.Message)             {}
func (f *forecasts) Preparing(what *notebook.Message)                         { f.preparing = append(f.preparing, what) }

// The forecast of guests is a number if it is fixed or predictable. Otherwise it is an upper limit.
func TestCapIsNotAForecast(t *testing.T) {
	for _, c := range []struct {
		name    string
		design  notebook.Design
		goal    func(book *fakeBook, plan *Plan) Goal
		unknown int // rounds without a forecast
		most    int // guests then
	}{
		{"a number of rounds", notebook.Design{Floor: 4, Cap: 4, Trials: 1}, nil, 0, 12},
		{"a rule", notebook.Design{Floor: 4, Cap: 200, Precision: 0.02, Trials: 1}, nil, 4, 600},
		{"a rule at its cap", notebook.Design{Floor: 5, Cap: 5, Precision: 0.02, Trials: 1}, nil, 0, 15},
		{"a goal", notebook.Design{Floor: 2, Cap: 200, Claims: true, Trials: 1}, func(book *fakeBook, plan *Plan) Goal {
			return func() ([]Question, error) {
				q := Question{Of: []string{plan.Study.Treatments[2].ID}}
				switch n := book.rounds()[q.Of[0]]; {
				case n >= 9:
					return nil, nil
				case n >= 3:
					q.Rounds = 9 - n
				}
				return []Question{q}, nil
			}
		}, 3, 600},
	} {
		synctest.Test(t, func(t *testing.T) {
			book, told := &fakeBook{}, &forecasts{}
			r := &Run{Plan: fakePlan(c.design, bmT, aaT, cnT), Lab: levels(3, time.Second, time.Second, 0.03, 0.03, same), Book: book, Watch: told}
			if c.goal != nil {
				r.Goal = c.goal(book, r.Plan)
			}
			if _, err := r.Do(t.Context()); err != nil {
				t.Fatal(err)
			}
			if last := told.rounds[len(told.rounds)-1]; last <= c.unknown {
				t.Fatalf("%s: it ended in round %d", c.name, last)
			}
			for i, round := range told.rounds {
				unknown := round < c.unknown
				if told.atMost[i] != unknown || (told.all[i] == c.most) != (unknown || c.unknown == 0) || told.done[i] != i {
					t.Errorf("%s: round %d: %d of %d guests, at most: %v", c.name, round, told.done[i], told.all[i], told.atMost[i])
				}
			}
		})
	}
}
