package study

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/measure"
	"tare/lab/studyfile"
	"tare/lab/workload"
	"tare/notebook"
	"tare/stats"
)

// Book is where a run is recorded. Each line is on disk before the call returns.
type Book interface {
	Guest(notebook.Guest) error
	Trial(notebook.Trial) error
	Session(notebook.Session) error
}

// Watcher follows the progress of a run. Its methods must return at once.
type Watcher interface {
	// Guest: a guest of t is about to be made in this round. done of all cells are finished, and about left remains. atMost: the
	// number of cells cannot be predicted, and all and left are upper limits.
	Guest(round int, t notebook.Treatment, done, all int, atMost bool, left time.Duration)
	// Trial: a trial has ended. ratio is the treatment's current ratio to bare metal, if it can be computed.
	Trial(t notebook.Treatment, tr notebook.Trial, ratio stats.Quotient)
	// GaveUp: a treatment that always fails is not tried again.
	GaveUp(t notebook.Treatment, cause string)
	// Preparing: nearly all the time of a workload's guests goes into preparing them. The text says so, and what would help.
	Preparing(what string)
}

// giveUpAfter is the number of rounds in a row in which every trial of a treatment fails before the treatment is given up.
const giveUpAfter = 2

// Run is one run of a plan.
type Run struct {
	Plan     *Plan
	Lab      Lab
	Book     Book
	Watch    Watcher
	Deadline time.Time // no guest is begun that would not end before it; zero: none
	Goal     Goal      // replaces the design's rule on ratios; nil: that rule

	cells   map[cell]*done
	planned map[cell]int    // measured trials for which a guest was made or will be made
	last    int             // the latest round begun in an earlier session
	costs   map[string]cost // by treatment
	failing map[string]int  // by treatment: rounds in a row in which all trials failed
	gaveUp  map[string]bool
	priced  map[string]bool               // by Label: the cost of its guests is known, and was reported if necessary
	against map[string]notebook.Treatment // the baseline of each treatment, found once because every guest needs it
	shared  map[string]bool               // baselines of other treatments
	failed  int
	notes   []string
}

// cell is one treatment in one round.
type cell struct {
	treatment string
	round     int
}

type done struct {
	trials int       // recorded measured trials, failed ones included
	traced int       // recorded traced trials, failed ones included
	value  stats.Sum // of the measured trials that succeeded
	values []float64 // the values of these trials
	took   float64   // the time of these trials, in seconds
}

// Made tells the run of a guest that the notebook already holds. Its round continues with the number of trials that the guest was
// made for.
func (r *Run) Made(g notebook.Guest) {
	if r.planned == nil {
		r.planned = map[cell]int{}
	}
	r.planned[cell{g.Treatment, g.Round}] = max(0, min(g.Trials, studyfile.MostRounds)) // a file may hold any number
}

// Take tells the run of a trial that the notebook already holds. A finished trial is not repeated.
func (r *Run) Take(t notebook.Trial) {
	if t.Warmup {
		return
	}
	if r.cells == nil {
		r.cells = map[cell]*done{}
	}
	c := cell{t.Treatment, t.Round}
	r.last = max(r.last, t.Round)
	if r.cells[c] == nil {
		r.cells[c] = &done{}
	}
	d := r.cells[c]
	if t.Failure != "" {
		r.failed++
	}
	if t.Traced {
		d.traced = max(d.traced, t.Index+1)
		return
	}
	d.trials = max(d.trials, t.Index+1)
	if t.Failure == "" {
		d.value.Add(t.Value)
		d.values = append(d.values, t.Value)
		d.took += t.ElapsedS
	}
}

// Failed is the number of failed trials, without warm-ups, and including earlier sessions.
func (r *Run) Failed() int { return r.failed }

// Notes are what the summary of the session should say in addition to the reason why it ended: treatments given up, and work that
// was mostly preparation.
func (r *Run) Notes() []string { return r.notes }

// Order is the order of n treatments in a round: random, and the same for the same seed.
func Order(seed uint64, round, n int) []int {
	return rand.New(rand.NewPCG(seed, uint64(round))).Perm(n)
}

// Do runs what remains to be done and returns the reason why it ended. An error comes from the notebook or the machine; failed
// trials are records, not errors. When ctx ends, the current trial is abandoned, its guest is destroyed, and the reason
// says so.
func (r *Run) Do(ctx context.Context) (reason *notebook.Message, err error) {
	if r.cells == nil {
		r.cells = map[cell]*done{}
	}
	if r.planned == nil {
		r.planned = map[cell]int{}
	}
	r.costs, r.failing, r.gaveUp, r.priced = map[string]cost{}, map[string]int{}, map[string]bool{}, map[string]bool{}
	r.against, r.shared = map[string]notebook.Treatment{}, map[string]bool{}
	s := r.Plan.Study
	for _, t := range s.Treatments {
		if b, ok := r.bareMetal(t); ok {
			r.against[t.ID] = b
			r.shared[b.ID] = r.shared[b.ID] || b.ID != t.ID
		}
	}
	r.recall()
	begun := r.last // earlier rounds are over: a guest made for one of them now would have no other guest to be compared with
	for round := begun; ; round++ {
		open, known, err := r.open(round)
		if err != nil {
			return nil, err
		}
		left := time.Duration(math.MaxInt64)
		if !r.Deadline.IsZero() {
			left = time.Until(r.Deadline)
		}
		who := rounds(choose(open, func(id string) time.Duration { return r.lasts(id, round) }, left, r.Goal != nil))
		r.allocate(who, round)
		over := round > begun
		for _, i := range Order(s.Seed, round, len(s.Treatments)) {
			t := s.Treatments[i]
			if !r.wanted(t, who, round) {
				continue
			}
			over = false
			if ctx.Err() != nil {
				return notebook.Say("interrupted"), nil
			}
			if r.Watch != nil {
				done, left, atMost, wait := r.left(open, round)
				r.Watch.Guest(round, t, done, done+left, atMost, wait)
			}
			if !r.Deadline.IsZero() && time.Now().Add(r.lasts(t.ID, round)).After(r.Deadline) {
				return notebook.Say("time-budget"), nil
			}
			if err := r.guest(ctx, t, round); err != nil {
				if ctx.Err() != nil && errors.Is(err, context.Canceled) {
					return notebook.Say("interrupted"), nil
				}
				return nil, err
			}
		}
		r.preparation()
		switch {
		case over && known:
			return notebook.Say("precise-enough"), nil
		case over:
			return notebook.Say("cap-on-rounds"), nil
		}
	}
}

// wanted reports whether the treatment still has trials to do in the round: because it was chosen for the round, or because a guest
// of it was interrupted.
func (r *Run) wanted(t notebook.Treatment, who map[string]int, round int) bool {
	return !r.gaveUp[t.ID] && (who[t.ID] > 0 || r.cells[cell{t.ID, round}] != nil) && len(r.todo(t, round)) > 0
}

// recall finds the treatments that were given up, from what the notebook holds.
func (r *Run) recall() {
	for _, t := range r.Plan.Study.Treatments {
		for round := range r.last + 1 {
			if d := r.cells[cell{t.ID, round}]; d != nil && d.trials >= r.trials(t.ID, round) {
				r.judge(t, *d)
			}
		}
	}
}

// judge counts the rounds in a row in which every trial of a treatment failed. It reports whether the treatment is given up.
func (r *Run) judge(t notebook.Treatment, d done) (gaveUp bool) {
	if d.value.N > 0 {
		r.failing[t.ID] = 0
		return false
	}
	r.failing[t.ID]++
	r.gaveUp[t.ID] = r.gaveUp[t.ID] || r.failing[t.ID] >= giveUpAfter
	return r.gaveUp[t.ID]
}

// left returns how many guests are done, how many are still to be made until the open questions are answered, and how long that
// takes. atMost: these are upper limits, because some question allows no prediction.
func (r *Run) left(open []question, round int) (done, guests int, atMost bool, wait time.Duration) {
	ahead := rounds(open)
	atMost = slices.ContainsFunc(open, func(q question) bool { return q.atMost })
	for _, t := range r.Plan.Study.Treatments {
		n := ahead[t.ID]
		done += r.begun(t, round)
		if r.cells[cell{t.ID, round}] != nil && len(r.todo(t, round)) == 0 {
			done, n = done+1, max(n-1, 0)
		}
		if !r.gaveUp[t.ID] {
			guests += n
			wait += time.Duration(n) * r.lasts(t.ID, round)
		}
	}
	if !r.Deadline.IsZero() {
		wait = min(wait, time.Until(r.Deadline))
	}
	return done, guests, atMost, wait
}

// baseline is the treatment that t is compared with; for bare metal it is t itself.
func (r *Run) baseline(t notebook.Treatment) (b notebook.Treatment, ok bool) {
	b, ok = r.against[t.ID]
	return b, ok
}

// bareMetal is the bare-metal treatment with the same instance type and the same work.
func (r *Run) bareMetal(t notebook.Treatment) (notebook.Treatment, bool) {
	for _, b := range r.Plan.Study.Treatments {
		if b.Platform == notebook.BM && !b.AA && b.Instance.Name == t.Instance.Name && b.HostCores == t.HostCores &&
			b.Label() == t.Label() {
			return b, true
		}
	}
	return notebook.Treatment{}, false
}

// ratio is the treatment's ratio to its baseline after these rounds.
func (r *Run) ratio(t notebook.Treatment, rounds int) (q stats.Quotient, ok bool) {
	b, ok := r.baseline(t)
	if !ok {
		return q, false
	}
	order, sums := r.sums(t.ID, rounds)
	_, of := r.sums(b.ID, rounds)
	x, y, _ := stats.Paired(order, sums, of)
	return stats.Ratio(x, y, r.sure(t, rounds)), true
}

// sure is the confidence of the interval of the treatment's ratio after these rounds. A reader of the study computes the same.
func (r *Run) sure(t notebook.Treatment, rounds int) stats.Confidence {
	d := r.Plan.Study.Design
	c := stats.Sure(d.Looks())
	if b, ok := r.baseline(t); ok && b.ID != t.ID && r.ruled(t) {
		c.Precision, c.Floor = d.Precision, r.floor(t, rounds)
	}
	return c
}

// floor is the number of rounds from which the stopping rule may apply to the treatment's ratio, or to its mean if it has no ratio.
// It follows from the trials of these rounds. Bare metal against itself needs no least number of trials, because a stall affects
// both arms.
func (r *Run) floor(t notebook.Treatment, rounds int) int {
	d := r.Plan.Study.Design
	if t.AA {
		return d.Floor
	}
	b, has := r.baseline(t)
	var own, others []stats.Seen
	for round := range rounds {
		x, y := r.cells[cell{t.ID, round}], r.cells[cell{b.ID, round}]
		if x == nil || len(x.values) == 0 || has && (y == nil || len(y.values) == 0) {
			continue
		}
		own = append(own, stats.Seen{Trials: len(x.values), Seconds: x.took})
		if has {
			others = append(others, stats.Seen{Trials: len(y.values), Seconds: y.took})
		}
	}
	return stats.Floor(d.Floor, d.Seen, own, others)
}

// mean is the treatment's mean after these rounds.
func (r *Run) mean(t notebook.Treatment, rounds int) stats.Estimate {
	order, sums := r.sums(t.ID, rounds)
	x, _, _ := stats.Paired(order, sums, sums)
	d := r.Plan.Study.Design
	return stats.Mean(x, stats.Sure(d.Looks()))
}

// sums returns a treatment's values in these rounds, by round, and the rounds in order.
func (r *Run) sums(id string, rounds int) (order []int, of map[int]stats.Sum) {
	of = map[int]stats.Sum{}
	for round := range rounds {
		order = append(order, round)
		if d := r.cells[cell{id, round}]; d != nil {
			of[round] = d.value
		}
	}
	return order, of
}

// subject is the study's measurement in one guest.
func (r *Run) subject(c measure.Cell) measure.Subject {
	c.Engine = r.Plan.engine(c.Treatment)
	b := measure.Bench{
		Lab: r.Lab, Timeout: r.Plan.timeout(), Tracers: r.Plan.Study.Explain, Neighbour: r.Plan.workOf, Until: r.share,
		Note: func(text string) { r.notes = append(r.notes, text) },
	}
	if r.Plan.config == nil {
		return measure.NewPlain(b, c)
	}
	return r.Plan.config.Subject(b, c)
}

// share is when a search has used its share of the time of all searches. Without a time budget it is the usual time from now.
func (r *Run) share(usual time.Duration) time.Time {
	if r.Deadline.IsZero() {
		return time.Now().Add(usual)
	}
	left := 0
	for _, t := range r.Plan.Study.Treatments {
		for round := range r.Plan.Study.Design.Most(t) {
			if !r.gaveUp[t.ID] && len(r.todo(t, round)) > 0 {
				left++
			}
		}
	}
	return time.Now().Add(time.Duration(0.9 * float64(time.Until(r.Deadline)) / float64(max(left, 1)))) // the rest is for making and removing guests
}

// attempt is one cell of a round: a guest and its trials.
type attempt struct {
	*Run
	t       notebook.Treatment
	round   int
	ready   *workload.Ready
	id      string
	subject measure.Subject
	company *crowd.Company

	began     time.Time
	working   time.Duration // time of measured trials
	trials    int           // measured trials
	lastCause string        // why the last one failed
}

// guest makes one guest and does the cell's trials in it. If the guest cannot be made, or dies, its trials have failed.
func (r *Run) guest(ctx context.Context, t notebook.Treatment, round int) error {
	a := &attempt{Run: r, t: t, round: round, ready: r.Plan.readyOf(t), id: fmt.Sprintf("r%d-%08x", round, rand.Uint32()), began: time.Now()}
	todo := r.todo(t, round)
	judged := !slices.ContainsFunc(todo, func(s measure.Step) bool { return s.Role == measure.Measured }) // an earlier session did all measured trials
	err := a.run(ctx, todo)
	c := r.costs[t.ID]
	r.costs[t.ID] = cost{c.guests + 1, c.trials + a.trials, c.preparing + time.Since(a.began) - a.working, c.working + a.working}
	if err != nil || ctx.Err() != nil || judged {
		return err
	}
	if d := r.cells[cell{t.ID, round}]; d != nil && r.judge(t, *d) {
		r.notes = append(r.notes, fmt.Sprintf("%s: given up after %d rounds in which every trial failed: %s", t.ID, giveUpAfter, a.lastCause))
		if r.Watch != nil {
			r.Watch.GaveUp(t, a.lastCause)
		}
	}
	return nil
}

// run makes the guest, and removes it when its trials are done.
func (a *attempt) run(ctx context.Context, todo []measure.Step) (err error) {
	a.subject = a.Run.subject(measure.Cell{Treatment: a.t, Ready: a.ready, ID: a.id})
	if err := a.subject.Make(ctx); err != nil {
		return a.rest(ctx, todo, "no guest: "+err.Error())
	}
	defer func() {
		if derr := crowd.Destroy(ctx, a.subject.Guest()); derr != nil {
			// A guest that remains would disturb the next measurement, so this is reported whatever else happened.
			err = fmt.Errorf("%s: its guest could not be removed: %w; `tare clean` tries again", a.t.ID, derr)
		}
	}()
	provisioned := time.Since(a.began)
	defer func() {
		// The service ends before the guest does: its load must not find the guest half destroyed.
		if serr := a.subject.Service().TakeDown(ctx); serr != nil {
			err = fmt.Errorf("%s: its load's place could not be removed: %w; `tare clean` tries again", a.t.ID, serr)
		}
	}()
	cause, err := a.setUp(ctx, provisioned)
	if err != nil {
		return err
	}
	if cause != "" {
		return a.rest(ctx, todo, cause)
	}
	a.company, cause, err = crowd.Beside(ctx, a.Lab, a.subject.Guest(), a.t, func(busy string) *workload.Ready { return a.Plan.workOf(a.t, busy) })
	if err != nil {
		return fmt.Errorf("%s: a neighbour could not be removed: %w; `tare clean` tries again", a.t.ID, err)
	}
	defer func() {
		if cerr := a.company.Leave(ctx); cerr != nil {
			err = fmt.Errorf("%s: a neighbour could not be removed: %w; `tare clean` tries again", a.t.ID, cerr)
		}
	}()
	if cause != "" && ctx.Err() == nil {
		return a.rest(ctx, todo, cause)
	}
	return a.do(ctx, todo)
}

// setUp makes the guest ready for its trials and records it; cause says why that failed.
func (a *attempt) setUp(ctx context.Context, provisioned time.Duration) (cause string, err error) {
	g := a.subject.Guest()
	rec := notebook.Guest{ID: a.id, Treatment: a.t.ID, Round: a.round, Start: a.began.UTC(), Trials: a.Run.trials(a.t.ID, a.round), ProvisionS: provisioned.Seconds()}
	rec.NoFlush = a.Plan.engine(a.t).Lacks(engine.NoFlush)
	if why := a.describe(ctx, a.t, g, &rec, a.subject.Service() != nil); why != nil {
		return why.Error(), nil
	}
	if cause, err = a.subject.SetUp(ctx); err != nil {
		return "", err
	}
	if ctx.Err() != nil {
		return "", context.Canceled
	}
	if s := a.subject.Service(); s != nil {
		rec.ReadyS = s.Took.Seconds()
		rec.Notes = append(rec.Notes, s.Notes()...)
	}
	return cause, a.Book.Guest(rec)
}

// rest records the remaining trials as failed, so that no planned trial goes missing. If ctx has ended it records nothing: a trial
// that Tare cut short says nothing about the platform.
func (a *attempt) rest(ctx context.Context, todo []measure.Step, cause string) error {
	if ctx.Err() != nil {
		return context.Canceled
	}
	guest := a.id
	for _, s := range todo {
		if err := a.record(notebook.Trial{Guest: guest, Index: s.Index, Traced: s.Role == measure.Traced, Start: time.Now().UTC(), Failure: cause}); err != nil {
			return err
		}
		cause = "not run: its guest had failed before it"
	}
	return nil
}

// record records a trial.
func (a *attempt) record(tr notebook.Trial) error {
	tr.Treatment, tr.Round = a.t.ID, a.round
	if err := a.Book.Trial(tr); err != nil {
		return err
	}
	a.Take(tr)
	if !tr.Traced && tr.Failure != "" {
		a.lastCause = tr.Failure
	}
	if a.Watch != nil && !tr.Warmup {
		q, _ := a.ratio(a.t, a.round+1)
		a.Watch.Trial(a.t, tr, q)
	}
	return nil
}

// do does the warm-ups and then the trials.
func (a *attempt) do(ctx context.Context, todo []measure.Step) error {
	warmups := a.Plan.Study.Design.Warmups
	if w := a.ready.Workload; w.Load != nil && len(w.Load.Warm) > 0 {
		warmups = 0 // the workload has a warm-up of its own
	}
	steps := make([]measure.Step, 0, warmups+len(todo))
	for i := range warmups {
		steps = append(steps, measure.Step{Role: measure.Warmup, Index: i})
	}
	for i, s := range append(steps, todo...) {
		if ctx.Err() != nil {
			return context.Canceled
		}
		start := time.Now()
		tr, over, terr := a.trial(ctx, s)
		if ctx.Err() != nil {
			return context.Canceled // a trial that Tare cut short says nothing about the platform
		}
		tr.Guest, tr.Index, tr.Warmup, tr.Traced = a.id, s.Index, s.Role == measure.Warmup, s.Role == measure.Traced
		if err := a.record(tr); err != nil {
			return err
		}
		if s.Counts() {
			a.working, a.trials = a.working+time.Since(start), a.trials+1
		}
		switch {
		case terr != nil:
			return fmt.Errorf("%s: %w", a.t.ID, terr)
		case over && !s.Counts():
			return a.rest(ctx, todo, tr.Failure)
		case over:
			return a.rest(ctx, todo[i+1-warmups:], "not run: its guest had failed before it")
		}
	}
	return nil
}

// trial makes one trial, and observes what the host, the guest's CPUs and its neighbours do during the trial.
func (a *attempt) trial(ctx context.Context, s measure.Step) (tr notebook.Trial, over bool, err error) {
	g, service := a.subject.Guest(), a.subject.Service()
	// Tare's own readings come before the first look at the host and after the last: otherwise they would count as the work of
	// other programs.
	held := crowd.Throttled(g)
	stayed := crowd.Stayed(g, service)
	since := crowd.BesideGuests(a.company.All(service.Guests(g))...)
	busy := a.company.Watch(g)
	tr, over, err = a.subject.Trial(ctx, s)
	if !a.Plan.rules.Crowd { // the trial's other guests are not a disturbance
		tr.Beside = since()
		tr.ThrottledS = held()
	}
	if ctx.Err() == nil {
		stayed(&tr)
	}
	alone := false
	if tr.Company, alone = crowd.Accompanied(&tr, busy); alone {
		over = true
	}
	return tr, over, err
}

// describe fills in the guest's record. An error means that the guest does not answer. busy: the guest's ruler runs a service, and
// what only an idle ruler can answer is left out.
func (r *Run) describe(ctx context.Context, t notebook.Treatment, g crowd.Guest, rec *notebook.Guest, busy bool) error {
	ctx, cancel := context.WithTimeout(ctx, crowd.AskTimeout)
	defer cancel()
	n := 9
	if !t.Representative() {
		n = 3 // emulated: a process takes tens of milliseconds, and no ranking depends on it
	}
	if busy {
		return r.limits(g, rec)
	}
	costs, err := g.Ruler().Cost(ctx, n)
	if err != nil {
		return fmt.Errorf("the ruler did not answer: %w%s", err, crowd.Diagnosis(g))
	}
	var seconds []float64
	for _, c := range costs {
		seconds = append(seconds, c.Seconds())
	}
	rec.RulerCostS, rec.RulerCostN = stats.Median(seconds), len(seconds)
	for range 5 { // the fastest is close to the time of the way itself
		if _, err := g.Ruler().Ping(ctx); err != nil {
			return fmt.Errorf("the ruler did not answer: %w%s", err, crowd.Diagnosis(g))
		}
	}
	return r.limits(g, rec)
}

// limits fills in what can be read of a guest at any time.
func (r *Run) limits(g crowd.Guest, rec *notebook.Guest) (err error) {
	rec.RoundTripS = g.Ruler().RoundTrip().Seconds()
	if rec.Limits, err = g.Limits(); err != nil {
		return fmt.Errorf("its limits cannot be read: %w", err)
	}
	f := g.Facts()
	rec.Kernel, rec.KernelSource, rec.Machine, rec.Notes = f.Kernel, f.KernelSource, f.Machine, f.Notes
	return nil
}
