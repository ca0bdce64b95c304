package study

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tare/lab/studyfile"
	"tare/notebook"
	"tare/stats"
)

func TestAnswerableQuestionsComeFirst(t *testing.T) {
	lasts := func(id string) time.Duration {
		return map[string]time.Duration{"bm": 1, "aa": 1, "cn": 2, "set": 2, "vm": 10}[id]
	}
	cn, vm := question{of: []string{"cn", "bm"}, rounds: 4}, question{of: []string{"vm", "bm"}, rounds: 6}
	aa := question{of: []string{"aa", "bm"}, rounds: 100}
	must := question{of: []string{"tcg", "bm"}, rounds: 1, fixed: true}
	limited := func(q question) question { q.choice = "cn"; return q }
	set := limited(question{of: []string{"set", "bm"}, rounds: 30})
	for _, c := range []struct {
		left time.Duration
		one  bool
		open []question
		want string // who is in the next round
	}{
		{1000, false, []question{must, vm, aa, cn}, "aa bm cn tcg vm"},
		{77, false, []question{must, vm, aa, cn}, "bm cn tcg vm"}, // bare metal counts once for both: 6 + 4·2 + 6·10, but not 100 more
		{73, false, []question{must, vm, aa, cn}, "bm cn tcg"},
		{12, false, []question{must, vm, aa, cn}, "bm cn tcg"},
		{11, false, []question{must, vm, aa, cn}, "aa bm cn tcg vm"}, // no question can be answered: none waits
		{11, true, []question{must, vm, aa, cn}, "bm tcg"},           // or only those that never wait do not
		{11, true, []question{vm, aa, cn}, "bm cn"},                  // or only the cheapest does not
		{157, false, []question{vm, set, limited(cn)}, "bm vm"},      // both CPU limits of one environment wait: 6·10 + 30·2 + 4·2 + 30
		{158, false, []question{vm, set, limited(cn)}, "bm cn set vm"},
		{98, false, []question{aa, set, limited(cn)}, "bm cn set"}, // or neither does
		{97, false, []question{aa, set, limited(cn)}, "aa bm cn set"},
	} {
		who := rounds(choose(c.open, lasts, c.left, c.one))
		var got []string
		for id := range who {
			got = append(got, id)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%d left: %v take part, want %s", c.left, got, c.want)
		}
	}
}

// levels makes a lab with these shares of noise between guests and between trials in a guest, and these times of guests and trials.
func levels(seed uint64, making, working time.Duration, guests, trials float64, ratio func(notebook.Treatment) float64) *fakeLab {
	rng := rand.New(rand.NewPCG(seed, 9))
	guest := map[string]float64{}
	return &fakeLab{
		making: func(t notebook.Treatment) time.Duration { guest[t.ID] = 1 + guests*rng.NormFloat64(); return making },
		elapsed: func(t notebook.Treatment) time.Duration {
			return time.Duration(ratio(t) * guest[t.ID] * (1 + trials*rng.NormFloat64()) * float64(working))
		},
	}
}

func same(notebook.Treatment) float64 { return 1 }

// An expensive guest that differs little from others does more trials. A guest whose trials differ little, or take long, does not.
func TestTrialsFollowTheirCostAndNoise(t *testing.T) {
	d := notebook.Design{Floor: 12, Cap: 12, Precision: 1e-6, Trials: 1, Warmups: 1}
	for _, c := range []struct {
		name            string
		making, working time.Duration
		guests, trials  float64
		least, most     int // median trials of a guest in the second half of the rounds; √(cost of a guest / cost of a trial · variances)
	}{
		{"expensive guests, noisy trials", 9 * time.Second, time.Second, 0.01, 0.04, 8, 18},     // √10 · 4
		{"expensive guests that are all alike", 9 * time.Second, time.Second, 0, 0.04, 12, 100}, // as far as a run can know
		{"expensive guests, steady trials", 9 * time.Second, time.Second, 0.04, 0.01, 1, 2},     // √10 / 4
		{"long trials", time.Second, 100 * time.Second, 0.04, 0.04, 1, 2},                       // 1
		{"trials of a tenth of the guest", 9 * time.Second, time.Second, 0.03, 0.03, 2, 5},      // √10
		{"no noise at all", time.Second, time.Second, 0, 0, 1, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			book := &fakeBook{}
			r := &Run{Plan: fakePlan(d, bmT, aaT, cnT), Lab: levels(3, c.making, c.working, c.guests, c.trials, same), Book: book}
			if _, err := r.Do(t.Context()); err != nil {
				t.Fatal(err)
			}
			var n []int
			for _, g := range book.guests {
				if r.progress.trials(g.Treatment, g.Round) != g.Trials || r.progress.trials(r.Plan.Study.Treatments[0].ID, g.Round) != g.Trials {
					t.Errorf("%s: round %d of %s: %d trials, its bare metal %d", c.name, g.Round, g.Treatment, g.Trials, r.progress.trials(r.Plan.Study.Treatments[0].ID, g.Round))
				}
				if g.Round >= 6 {
					n = append(n, g.Trials)
				}
			}
			slices.Sort(n)
			t.Logf("%s: %v trials", c.name, n)
			if m := n[len(n)/2]; m < c.least || m > c.most {
				t.Errorf("%s: %d trials in a guest, want %d to %d", c.name, m, c.least, c.most)
			}
		})
	}
}

// An interrupted run continues with the number of trials that each guest was made for. No trial is repeated or missing.
func TestAllocatedRunContinues(t *testing.T) {
	d := notebook.Design{Floor: 5, Cap: 6, Precision: 1e-6, Trials: 1, Warmups: 1}
	for stop := 1; stop < 60; stop++ {
		synctest.Test(t, func(t *testing.T) {
			book := &fakeBook{}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			plan := fakePlan(d, bmT, aaT, cnT)
			l := levels(5, 9*time.Second, time.Second, 0.01, 0.03, same)
			runs := 0
			l.result = after(func() {
				if runs++; runs == stop {
					cancel()
				}
			})
			if reason, err := (&Run{Plan: plan, Lab: l, Book: book}).Do(ctx); err != nil || !reason.Is("interrupted") {
				t.Fatalf("stop %d: %q, %v", stop, reason, err)
			}
			second := &Run{Plan: plan, Lab: levels(6, 9*time.Second, time.Second, 0.01, 0.03, same), Book: book}
			for _, g := range slices.Clone(book.guests) {
				second.Made(g)
			}
			for _, tr := range slices.Clone(book.trials) {
				second.Take(tr)
			}
			if reason, err := second.Do(t.Context()); err != nil || !reason.Is("cap-on-rounds") {
				t.Fatalf("stop %d: continued: %q, %v", stop, reason, err)
			}
			planned, seen, in := map[cell]int{}, map[string]bool{}, map[cell]int{}
			for _, g := range book.guests {
				c := cell{g.Treatment, g.Round}
				if n := planned[c]; n > 0 && n != g.Trials {
					t.Fatalf("stop %d: round %d of %s was planned with %d trials and continues with %d", stop, g.Round, g.Treatment, n, g.Trials)
				}
				planned[c] = g.Trials
			}
			for _, tr := range book.trials {
				if tr.Warmup {
					continue
				}
				if id := fmt.Sprint(tr.Treatment, tr.Round, tr.Index); seen[id] {
					t.Fatalf("stop %d: trial %s is recorded twice", stop, id)
				} else {
					seen[id] = true
				}
				in[cell{tr.Treatment, tr.Round}]++
			}
			if len(planned) != 18 {
				t.Fatalf("stop %d: %d guests, want 3 in each of 6 rounds", stop, len(planned))
			}
			for c, n := range planned {
				if in[c] != n {
					t.Fatalf("stop %d: round %d of %s has %d trials of %d", stop, c.round, c.treatment, in[c], n)
				}
			}
		})
	}
}

// oneNoisy makes a lab in which guests and trials take a second. Trials vary by the share noise, and those of noisy treatments by 30 %.
func oneNoisy(noise float64, noisy func(notebook.Treatment) bool) *fakeLab {
	rng := rand.New(rand.NewPCG(5, 6))
	return &fakeLab{
		making: func(notebook.Treatment) time.Duration { return time.Second },
		elapsed: func(t notebook.Treatment) time.Duration {
			share := noise
			if noisy(t) {
				share = 0.3
			}
			return time.Duration((1 + share*rng.NormFloat64()) * float64(time.Second))
		},
	}
}

// With little time left, the run answers the questions for which there is time, and the others wait. Time left after that is for them.
func TestQuestionsWithoutTimeWait(t *testing.T) {
	noisy := cnT
	noisy.Network = notebook.NetHost
	synctest.Test(t, func(t *testing.T) {
		l := oneNoisy(0.01, func(t notebook.Treatment) bool { return t.Network == notebook.NetHost })
		book := &fakeBook{}
		d := notebook.Design{Floor: 4, Cap: 200, Precision: 0.02, Trials: 1}
		r := &Run{Plan: fakePlan(d, bmT, cnT, noisy), Lab: l, Book: book, Deadline: time.Now().Add(4 * time.Minute)}
		reason, err := r.Do(t.Context())
		if err != nil || !reason.Is("time-budget") {
			t.Fatalf("%q, %v", reason, err)
		}
		of := r.Plan.Study.Treatments
		last, n := map[string]int{}, book.rounds()
		alone := 0
		for _, g := range book.guests {
			last[g.Treatment] = g.Round
		}
		for _, g := range book.guests {
			if g.Treatment == of[2].ID && g.Round > last[of[1].ID] {
				alone++
			}
		}
		t.Logf("%v rounds, the noisy one %d of them when the steady one was known", n, alone)
		if q, _ := r.rule.ratio(of[1], 200); q.High-q.Low > 0.04*q.Value {
			t.Errorf("the answerable question has no answer: %+v", q)
		}
		if n[of[2].ID]-alone > 5 || alone == 0 || n[of[0].ID] < n[of[2].ID] {
			t.Errorf("the unanswerable question had %d rounds, %d of them after the other was answered: it did not wait, or did not continue", n[of[2].ID], alone)
		}
	})
}

// With little time left, the CPU limits of one environment are measured equally often, however noisy one of them is.
func TestCPULimitsWaitTogether(t *testing.T) {
	pinned := cnT
	pinned.Provisioning = notebook.Pinned
	synctest.Test(t, func(t *testing.T) {
		l := oneNoisy(0.05, func(t notebook.Treatment) bool { return t.Provisioning == notebook.Pinned })
		book := &fakeBook{}
		d := notebook.Design{Floor: 4, Cap: 200, Precision: 0.001, Trials: 1}
		r := &Run{Plan: fakePlan(d, bmT, cnT, pinned), Lab: l, Book: book, Deadline: time.Now().Add(4 * time.Minute)}
		if reason, err := r.Do(t.Context()); err != nil || !reason.Is("time-budget") {
			t.Fatalf("%q, %v", reason, err)
		}
		n, of := book.rounds(), r.Plan.Study.Treatments
		if quota, set := n[of[1].ID], n[of[2].ID]; max(quota, set)-min(quota, set) > 1 || quota < 10 {
			t.Errorf("%d rounds with a quota, %d with a set: want as many of both", quota, set)
		}
	})
}

// looker reads the interval of the A/A control after each round.
type looker struct {
	of     func(rounds int) stats.Quotient
	rounds int
	missed bool
}

func (l *looker) Guest(round int, _ notebook.Treatment, _, _ int, _ bool, _ time.Duration) {
	if round > l.rounds {
		q := l.of(round)
		l.rounds, l.missed = round, l.missed || q.Low > 1 || q.High < 1
	}
}
func (l *looker) Trial(notebook.Treatment, notebook.Trial, stats.Quotient) {}
func (l *looker) GaveUp(notebook.Treatment, *notebook.Message)             {}
func (l *looker) Preparing(*notebook.Message)                              {}

// Bare metal runs against itself, with as many trials as the run decides, until a rule or the time stops it. A user who looks after each
// round may see a difference where there is none, in one of twenty studies at most.
func TestRepeatedLooksRaiseFewFalseAlarms(t *testing.T) {
	const studies = 210
	designs := []notebook.Design{
		{Floor: 5, Cap: 25, Precision: 0.02, Trials: 1, Warmups: 1}, {Floor: 2, Cap: 40, Decide: 0.02, Trials: 1}, {Floor: 5, Cap: 20, Precision: 1e-6, Trials: 2},
	}
	alarms, stopped, rounds, trials := 0, map[string]int{}, 0, 0
	for i := range studies {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			l := levels(uint64(i), []time.Duration{9 * time.Second, time.Second / 4}[i%2], time.Second/5, 0.02*float64(i%3), 0.03, same)
			if steady := l.elapsed; i%4 > 1 { // a host that becomes slower and faster
				l.elapsed = func(t notebook.Treatment) time.Duration {
					return time.Duration(float64(steady(t)) * (1 + 0.2*math.Sin(time.Since(began).Minutes())))
				}
			}
			book := &fakeBook{}
			r := &Run{Plan: fakePlan(designs[i%len(designs)], bmT, aaT, cnT), Lab: l, Book: book}
			if i%5 == 0 {
				r.Deadline = began.Add(3 * time.Minute)
			}
			look := &looker{of: func(rounds int) stats.Quotient { q, _ := r.rule.ratio(r.Plan.Study.Treatments[1], rounds); return q }}
			r.Watch = look
			reason, err := r.Do(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if look.Guest(studyfile.UntilRounds, notebook.Treatment{}, 0, 0, false, 0); look.missed {
				alarms++
			}
			stopped[reason.Code]++
			rounds, trials = rounds+book.rounds()[r.Plan.Study.Treatments[1].ID], trials+book.measured()
		})
	}
	t.Logf("%d false alarms in %d studies; %v; %d rounds, %d trials", alarms, studies, stopped, rounds, trials)
	if alarms > studies/20 {
		t.Errorf("%d of %d studies found a difference although there is none; want 5 %% at most", alarms, studies)
	}
	for _, reason := range []string{"precise-enough", "cap-on-rounds", "time-budget"} {
		if stopped[reason] < studies/20 {
			t.Errorf("%d studies ended with %q: too few to judge it", stopped[reason], reason)
		}
	}
}
