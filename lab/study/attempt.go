package study

import (
	"context"
	"fmt"
	"time"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/measure"
	"tare/lab/workload"
	"tare/notebook"
	"tare/stats"
)

// Book is where guests and trials are recorded. Each line is on disk before the call returns.
type Book interface {
	Guest(notebook.Guest) error
	Trial(notebook.Trial) error
}

// attempt is a guest and its trials in one round.
type attempt struct {
	plan  *Plan
	bench measure.Bench
	book  Book
	take  func(notebook.Trial) // called for each trial that was recorded
	t     notebook.Treatment
	guest notebook.Guest // its record
	todo  []measure.Step // the trials that it has not done yet

	subject    measure.Subject
	neighbours *crowd.Neighbours
	made       bool // the guest exists
	over       bool // it can do no more trials
	judged     bool // it has measured trials to do: an earlier session did not do all of them

	preparing time.Duration     // making and removing the guest, and warm-ups
	working   time.Duration     // time of measured trials
	trials    int               // measured trials
	under     underway          // the trial that is done in part
	lastCause *notebook.Message // why the last one failed
}

// begin makes the guest. If that fails, it records the guest's trials as failed. The caller ends every attempt that it began.
func (a *attempt) begin(ctx context.Context) error {
	began := time.Now()
	defer func() { a.preparing += time.Since(began) }()
	a.subject = a.plan.subject(a.bench, measure.Cell{Treatment: a.t, Ready: a.plan.readyOf(a.t), ID: a.guest.ID})
	if err := a.subject.Make(ctx); err != nil {
		return a.rest(ctx, notebook.Say("no-guest", "cause", err))
	}
	a.made = true
	a.guest.Start, a.guest.ProvisionS = began.UTC(), time.Since(began).Seconds()
	cause, err := a.setUp(ctx)
	if err != nil {
		return err
	}
	if cause != nil {
		return a.rest(ctx, cause)
	}
	a.neighbours, cause, err = crowd.StartNeighbours(ctx, a.bench, a.subject.Guest(), a.t, func(busy string) *workload.Ready { return a.plan.workOf(a.t, busy) })
	if err != nil {
		return fmt.Errorf("%s: a neighbour could not be removed: %w; `tare clean` tries again", a.t.ID, err)
	}
	if cause != nil && ctx.Err() == nil {
		return a.rest(ctx, cause)
	}
	return nil
}

// end removes the guest and what belongs to it. An error means that something is left that would disturb the next measurement, so the
// study ends. Of several errors it returns the gravest.
func (a *attempt) end(ctx context.Context) error {
	if !a.made {
		return nil
	}
	began := time.Now()
	defer func() { a.preparing += time.Since(began) }()
	gravest := func(err error, what string, worse error) error {
		if worse == nil {
			return err
		}
		return fmt.Errorf("%s: %s could not be removed: %w; `tare clean` tries again", a.t.ID, what, worse)
	}
	err := gravest(nil, "a neighbour", a.neighbours.Leave(ctx))
	err = gravest(err, "the place of its load", a.subject.Service().TakeDown(ctx)) // before the guest, so that the load does not find it half destroyed
	return gravest(err, "its guest", crowd.Destroy(ctx, a.subject.Guest()))
}

// setUp makes the guest ready for its trials and records it; cause says why that failed.
func (a *attempt) setUp(ctx context.Context) (cause *notebook.Message, err error) {
	rec := &a.guest
	rec.NoFlush = a.plan.engine(a.t).Lacks(engine.NoFlush)
	if cause = a.describe(ctx); cause != nil {
		return cause, nil
	}
	if cause, err = a.subject.SetUp(ctx); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Canceled
	}
	if s := a.subject.Service(); s != nil {
		rec.ReadyS = s.Took.Seconds()
		rec.Notes = append(rec.Notes, s.Notes()...)
	}
	return cause, a.book.Guest(*rec)
}

// rest records the remaining trials as failed, so that no planned trial goes missing. If ctx has ended it records nothing: a trial
// that Tare cut short says nothing about the platform.
func (a *attempt) rest(ctx context.Context, cause *notebook.Message) error {
	a.over = true
	if cutShort(ctx, cause) {
		return context.Canceled
	}
	for _, s := range a.todo {
		if err := a.record(notebook.Trial{Index: s.Index, Traced: s.Role == measure.Traced, Start: time.Now().UTC(), Failure: cause}); err != nil {
			return err
		}
		cause = notebook.Say("guest-failed-before")
	}
	a.todo = nil
	return nil
}

// signalTime is how much later than a guest's processes this one may get a signal that is sent to all of them, as schedulers do it.
const signalTime = 300 * time.Millisecond

// cutShort says whether a trial ended because the run ends. One that failed may have failed for that reason before this process knows it.
func cutShort(ctx context.Context, failure *notebook.Message) bool {
	if failure != nil {
		select {
		case <-ctx.Done():
		case <-time.After(signalTime):
		}
	}
	return ctx.Err() != nil
}

// record records a trial.
func (a *attempt) record(tr notebook.Trial) error {
	tr.Guest, tr.Treatment, tr.Round = a.guest.ID, a.t.ID, a.guest.Round
	if err := a.book.Trial(tr); err != nil {
		return err
	}
	if !tr.Traced && tr.Failure != nil {
		a.lastCause = tr.Failure
	}
	a.take(tr)
	return nil
}

// warm does the warm-ups.
func (a *attempt) warm(ctx context.Context) error {
	if w := a.plan.readyOf(a.t).Workload; w.Load != nil && len(w.Load.Warm) > 0 {
		return nil // the workload has a warm-up of its own
	}
	for i := 0; i < a.plan.Study.Design.Warmups && !a.over; i++ {
		if err := a.step(ctx, measure.Step{Role: measure.Warmup, Index: i}); err != nil {
			return err
		}
	}
	return nil
}

// turn does the next trial, or the next part of it. more: further parts follow.
func (a *attempt) turn(ctx context.Context) (more bool, err error) {
	s := a.todo[0]
	if of, is := a.subject.(measure.Parted); is && a.guest.Together > 1 {
		return a.part(ctx, of, s)
	}
	a.todo = a.todo[1:]
	return false, a.step(ctx, s)
}

// step does a trial and records it.
func (a *attempt) step(ctx context.Context, s measure.Step) error {
	if ctx.Err() != nil {
		return context.Canceled
	}
	start := time.Now()
	tr, over, terr := a.trial(ctx, s)
	return a.done(ctx, s, tr, over, terr, time.Since(start))
}

// done records a trial that took so long.
func (a *attempt) done(ctx context.Context, s measure.Step, tr notebook.Trial, over bool, terr error, took time.Duration) error {
	if cutShort(ctx, tr.Failure) {
		return context.Canceled // a trial that Tare cut short says nothing about the platform
	}
	tr.Index, tr.Warmup, tr.Traced = s.Index, s.Role == measure.Warmup, s.Role == measure.Traced
	if err := a.record(tr); err != nil {
		return err
	}
	if s.Counts() {
		a.working, a.trials = a.working+took, a.trials+1
	} else {
		a.preparing += took
	}
	switch {
	case terr != nil:
		return fmt.Errorf("%s: %w", a.t.ID, terr)
	case over && !s.Counts():
		return a.rest(ctx, tr.Failure)
	case over:
		return a.rest(ctx, notebook.Say("guest-failed-before"))
	}
	return nil
}

// trial makes one trial, and observes what the host, the guest's CPUs and its neighbours do during the trial.
func (a *attempt) trial(ctx context.Context, s measure.Step) (tr notebook.Trial, over bool, err error) {
	observed, stayed := a.observe()
	busy := a.neighbours.Watch(a.subject.Guest())
	tr, over, err = a.subject.Trial(ctx, s)
	if !a.plan.rules.Crowd { // the trial's other guests are not a disturbance
		tr.Beside, tr.ThrottledS = observed()
	}
	if ctx.Err() == nil {
		stayed(&tr)
	}
	alone := false
	if tr.Neighbours, alone = crowd.CheckNeighbours(&tr, busy); alone {
		over = true
	}
	return tr, over, err
}

// observe begins to observe a trial, or a part of one. observed returns what the host did in addition to its guests, and for how many seconds
// the guest was throttled. stayed, called after it, records in a trial whether the guest stayed on its CPUs.
func (a *attempt) observe() (observed func() (*notebook.Beside, float64), stayed func(*notebook.Trial)) {
	g, service := a.subject.Guest(), a.subject.Service()
	// Tare's own readings come before the first look at the host and after the last: otherwise they would count as the work of
	// other programs.
	held := crowd.Throttled(g)
	stayed = crowd.WatchConfinement(g, service)
	since := crowd.BesideGuests(a.neighbours.All(service.Guests(g))...)
	return func() (*notebook.Beside, float64) {
		beside := since()
		return beside, held()
	}, stayed
}

// describe fills in the guest's record. cause says why the guest does not answer; nil if it does.
func (a *attempt) describe(ctx context.Context) (cause *notebook.Message) {
	ctx, cancel := context.WithTimeout(ctx, crowd.AskTimeout)
	defer cancel()
	if a.subject.Service() != nil { // the ruler runs the service, and only an idle ruler takes further requests
		return a.limits()
	}
	g, n := a.subject.Guest(), 9
	if !a.t.Representative() {
		n = 3 // emulated: a process takes tens of milliseconds, and no ranking depends on it
	}
	costs, err := g.Ruler().Cost(ctx, n)
	if err != nil {
		return notebook.Say("ruler-silent", "cause", crowd.Silent(err, g))
	}
	var seconds []float64
	for _, c := range costs {
		seconds = append(seconds, c.Seconds())
	}
	a.guest.RulerCostS, a.guest.RulerCostN = stats.Median(seconds), len(seconds)
	for range 5 { // the fastest is close to the time of the connection itself
		if _, err := g.Ruler().Ping(ctx); err != nil {
			return notebook.Say("ruler-silent", "cause", crowd.Silent(err, g))
		}
	}
	return a.limits()
}

// limits fills in what can be read from a guest at any time.
func (a *attempt) limits() *notebook.Message {
	g, rec := a.subject.Guest(), &a.guest
	rec.RoundTripS = g.Ruler().RoundTrip().Seconds()
	limits, err := g.Limits()
	if err != nil {
		return notebook.Say("limits-unread", "cause", err)
	}
	rec.Limits = limits
	f := g.Facts()
	rec.Kernel, rec.KernelSource, rec.Machine, rec.Notes = f.Kernel, f.KernelSource, f.Machine, f.Notes
	return nil
}
