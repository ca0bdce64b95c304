package study

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"tare/lab/engine"
	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
	arrivalskind "tare/notebook/kinds/arrivals"
	capacitykind "tare/notebook/kinds/capacity"
	fitkind "tare/notebook/kinds/fit"
	memorykind "tare/notebook/kinds/memory"
	pagingkind "tare/notebook/kinds/paging"
	startingkind "tare/notebook/kinds/starting"
	"tare/stats"
)

// Book is where a run is written down; each line is on the disk before the call returns.
type Book interface {
	Guest(notebook.Guest) error
	Trial(notebook.Trial) error
	Session(notebook.Session) error
}

// Watcher is told how a run goes on. Its methods must return at once.
type Watcher interface {
	// Guest: a guest of t is about to be made in this round; done of all cells are finished, and about left remains. atMost: how many
	// there will be cannot be foreseen, and all and left are the most.
	Guest(round int, t notebook.Treatment, done, all int, atMost bool, left time.Duration)
	// Trial: a trial has ended. Ratio is the treatment's current ratio to bare metal, where it can be said.
	Trial(t notebook.Treatment, tr notebook.Trial, ratio stats.Quotient)
	// GaveUp: a treatment that only fails is not tried any more.
	GaveUp(t notebook.Treatment, cause string)
	// Preparing: nearly all of the time of a work's guests goes to preparing them. What says so, and what would do.
	Preparing(what string)
}

// Why a run ended.
const (
	Precise     = "precise enough"
	Capped      = "cap on rounds"
	OutOfTime   = "time budget"
	Interrupted = "interrupted"
)

const (
	provisionTimeout = 5 * time.Minute // more than any driver gives itself, whose own message says more
	destroyTimeout   = 1 * time.Minute
	askTimeout       = 30 * time.Second // for what a ruler answers at once
	giveUpAfter      = 2                // rounds in which every trial of a treatment failed
)

// Run is one run of a plan.
type Run struct {
	Plan     *Plan
	Lab      Lab
	Book     Book
	Watch    Watcher
	Deadline time.Time // no guest is begun that would not end before it; zero: none
	Goal     Goal      // in place of the design's rule on ratios; nil: that

	cells   map[cell]*done
	planned map[cell]int    // measured trials that a guest was made for, or is to be
	last    int             // the latest round that was begun in an earlier session
	costs   map[string]cost // by treatment
	failing map[string]int  // by treatment: rounds in a row in which all failed
	gaveUp  map[string]bool
	priced  map[string]bool               // by Label: what its guests cost is known, and said where it has to be
	against map[string]notebook.Treatment // each one's baseline, looked for once: it is asked for with every guest
	shared  map[string]bool               // baselines of others
	failed  int
	notes   []string
}

// cell is one treatment in one round.
type cell struct {
	treatment string
	round     int
}

type done struct {
	trials int       // measured trials that stand in the notebook, failed ones included
	traced int       // the same of traced ones
	value  stats.Sum // of the measured ones that succeeded
	values []float64 // theirs
	took   float64   // seconds, of the same
}

// Made tells the run of a guest that stands in the notebook already. Its round goes on with as many trials as it was made for.
func (r *Run) Made(g notebook.Guest) {
	if r.planned == nil {
		r.planned = map[cell]int{}
	}
	r.planned[cell{g.Treatment, g.Round}] = max(0, min(g.Trials, MostRounds)) // a file may say anything
}

// Take tells the run of a trial that stands in the notebook already. A finished trial is not repeated.
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

// Failed is how many trials failed, warm-ups not counted, those of earlier sessions included.
func (r *Run) Failed() int { return r.failed }

// Notes are what the end of the session should say beside its reason: treatments given up, work that was mostly preparation.
func (r *Run) Notes() []string { return r.notes }

// Order is the order of so many treatments in a round: random, and the same for the same seed.
func Order(seed uint64, round, n int) []int {
	return rand.New(rand.NewPCG(seed, uint64(round))).Perm(n)
}

// Do runs what is still to be done and says why it ended. The error is of the notebook or the machine; failed trials
// are records, not errors. When ctx ends, the trial under way is given up, its guest destroyed, and the reason is
// Interrupted.
func (r *Run) Do(ctx context.Context) (reason string, err error) {
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
	begun := r.last // rounds before it are over: what was not in them waited, and a guest made now would have no other beside it
	for round := begun; ; round++ {
		open, known, err := r.open(round)
		if err != nil {
			return "", err
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
				return Interrupted, nil
			}
			if r.Watch != nil {
				done, left, atMost, wait := r.left(open, round)
				r.Watch.Guest(round, t, done, done+left, atMost, wait)
			}
			if !r.Deadline.IsZero() && time.Now().Add(r.lasts(t.ID, round)).After(r.Deadline) {
				return OutOfTime, nil
			}
			if err := r.guest(ctx, t, round); err != nil {
				if ctx.Err() != nil && errors.Is(err, context.Canceled) {
					return Interrupted, nil
				}
				return "", err
			}
		}
		r.preparation()
		switch {
		case over && known:
			return Precise, nil
		case over:
			return Capped, nil
		}
	}
}

// wanted says whether the treatment still has trials to do in the round: those that it is in now, and a guest's that was interrupted.
func (r *Run) wanted(t notebook.Treatment, who map[string]int, round int) bool {
	return !r.gaveUp[t.ID] && (who[t.ID] > 0 || r.cells[cell{t.ID, round}] != nil) && len(r.todo(t, round)) > 0
}

// recall finds, in what stands in the notebook, the treatments that were given up.
func (r *Run) recall() {
	for _, t := range r.Plan.Study.Treatments {
		for round := range r.last + 1 {
			if d := r.cells[cell{t.ID, round}]; d != nil && d.trials >= r.trials(t.ID, round) {
				r.judge(t, *d)
			}
		}
	}
}

// judge counts the rounds in a row in which every trial of a treatment failed. It says whether this one was one too many.
func (r *Run) judge(t notebook.Treatment, d done) (gaveUp bool) {
	if d.value.N > 0 {
		r.failing[t.ID] = 0
		return false
	}
	r.failing[t.ID]++
	r.gaveUp[t.ID] = r.gaveUp[t.ID] || r.failing[t.ID] >= giveUpAfter
	return r.gaveUp[t.ID]
}

// left is how many guests are done, how many are still to be made until the open questions are answered, and how long that takes; atMost: these
// are the most, for of some question nothing can be foreseen.
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

// baseline is what a treatment is compared with; of bare metal it is itself.
func (r *Run) baseline(t notebook.Treatment) (b notebook.Treatment, ok bool) {
	b, ok = r.against[t.ID]
	return b, ok
}

// bareMetal is that at the same instance with the same work.
func (r *Run) bareMetal(t notebook.Treatment) (notebook.Treatment, bool) {
	for _, b := range r.Plan.Study.Treatments {
		if b.Platform == notebook.BM && !b.AA && b.Instance.Name == t.Instance.Name && b.HostCores == t.HostCores &&
			notebook.Label(b.Workload, b.Params) == notebook.Label(t.Workload, t.Params) {
			return b, true
		}
	}
	return notebook.Treatment{}, false
}

// ratio is the treatment's ratio to its baseline after so many rounds.
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

// sure is the confidence of the interval of the treatment's ratio after so many rounds, as a reader of the study has it too.
func (r *Run) sure(t notebook.Treatment, rounds int) stats.Confidence {
	d := r.Plan.Study.Design
	c := stats.Sure(d.Looks())
	if b, ok := r.baseline(t); ok && b.ID != t.ID && r.ruled(t) {
		c.Precision, c.Floor = d.Precision, r.floor(t, rounds)
	}
	return c
}

// floor is the number of rounds from which on a rule may end looking at the treatment's ratio, or at its mean where it has none. It follows
// from the trials of so many rounds. Bare metal against itself needs no number of trials: what stalls one stalls the other.
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

// mean is the treatment's mean after so many rounds.
func (r *Run) mean(t notebook.Treatment, rounds int) stats.Estimate {
	order, sums := r.sums(t.ID, rounds)
	x, _, _ := stats.Paired(order, sums, sums)
	d := r.Plan.Study.Design
	return stats.Mean(x, stats.Sure(d.Looks()))
}

// sums are a treatment's values in so many rounds, by round, and the rounds in order.
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

// guest makes one guest and does the cell's trials in it. A guest that cannot be made, or dies, is failed trials.
func (r *Run) guest(ctx context.Context, t notebook.Treatment, round int) (err error) {
	design := r.Plan.Study.Design
	ready := r.Plan.readyOf(t)
	todo := r.todo(t, round)
	judged := !slices.ContainsFunc(todo, func(s step) bool { return !s.traced }) // an earlier session did all that counts
	lastCause := ""
	record := func(tr notebook.Trial) error {
		tr.Treatment, tr.Round = t.ID, round
		if err := r.Book.Trial(tr); err != nil {
			return err
		}
		r.Take(tr)
		if !tr.Traced && tr.Failure != "" {
			lastCause = tr.Failure
		}
		if r.Watch != nil && !tr.Warmup {
			q, _ := r.ratio(t, round+1)
			r.Watch.Trial(t, tr, q)
		}
		return nil
	}
	// rest records what was to be done as failed: nothing that was planned goes missing.
	rest := func(guest string, todo []step, cause string) error {
		for _, s := range todo {
			if err := record(notebook.Trial{Guest: guest, Index: s.index, Traced: s.traced, Start: time.Now().UTC(), Failure: cause}); err != nil {
				return err
			}
			cause = "not run: its guest had failed before it"
		}
		return nil
	}
	began, working, trials := time.Now(), time.Duration(0), 0
	defer func() {
		c := r.costs[t.ID]
		r.costs[t.ID] = cost{c.guests + 1, c.trials + trials, c.preparing + time.Since(began) - working, c.working + working}
		if err != nil || ctx.Err() != nil || judged {
			return
		}
		if d := r.cells[cell{t.ID, round}]; d != nil && r.judge(t, *d) {
			r.notes = append(r.notes, fmt.Sprintf("%s: given up after %d rounds in which every trial failed: %s", t.ID, giveUpAfter, lastCause))
			if r.Watch != nil {
				r.Watch.GaveUp(t, lastCause)
			}
		}
	}()

	id := fmt.Sprintf("r%d-%08x", round, rand.Uint32())
	var g Guest
	var started *start // of a study of starts
	var perr error
	if r.Plan.Study.Kind != startingkind.Name {
		pctx, cancel := context.WithTimeout(ctx, provisionTimeout)
		g, perr = r.provision(pctx, t, id, ready)
		cancel()
	} else if started, perr = r.startUp(ctx, t, id, ready); perr == nil {
		g = started.guest
	}
	if perr != nil {
		if ctx.Err() != nil {
			return context.Canceled
		}
		return rest(id, todo, "no guest: "+perr.Error())
	}
	defer func() {
		if derr := destroy(ctx, g); derr != nil {
			// What is left of it would be measured with the next guest. And it is said, whatever else happened.
			err = fmt.Errorf("%s: its guest could not be removed: %w; `tare clean` tries again", t.ID, derr)
		}
	}()
	provisioned := time.Since(began)
	var service *service
	defer func() {
		// Before the guest: a load must not find it half destroyed.
		if serr := service.takeDown(ctx); serr != nil {
			err = fmt.Errorf("%s: its load's place could not be removed: %w; `tare clean` tries again", t.ID, serr)
		}
	}()
	rec := notebook.Guest{ID: id, Treatment: t.ID, Round: round, Start: began.UTC(), Trials: r.trials(t.ID, round), ProvisionS: provisioned.Seconds()}
	if started != nil {
		service = started.work
	}
	rec.NoFlush = r.kind(t).Lacks(engine.NoFlush)
	if cause := r.describe(ctx, t, g, &rec, service != nil); cause != nil {
		if ctx.Err() != nil {
			return context.Canceled
		}
		return rest(id, todo, cause.Error())
	}
	cause := ""
	if started == nil {
		if service, cause, err = r.setUp(ctx, g, t, id, ready); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Canceled
	}
	if service != nil {
		rec.ReadyS = service.took.Seconds()
		rec.Notes = append(rec.Notes, service.notes()...)
	}
	if err := r.Book.Guest(rec); err != nil {
		return err
	}
	if cause != "" {
		return rest(id, todo, cause)
	}
	company, cause, err := r.keepCompany(ctx, g, t)
	if err != nil {
		return fmt.Errorf("%s: a neighbour could not be removed: %w; `tare clean` tries again", t.ID, err)
	}
	defer func() {
		if cerr := company.leave(ctx); cerr != nil {
			err = fmt.Errorf("%s: a neighbour could not be removed: %w; `tare clean` tries again", t.ID, cerr)
		}
	}()
	if cause != "" && ctx.Err() == nil {
		return rest(id, todo, cause)
	}
	if w := ready.Workload; w.Load != nil && len(w.Load.Warm) > 0 {
		design.Warmups = 0 // it was warmed in its own way
	}
	steps := make([]step, 0, design.Warmups+len(todo))
	for i := range design.Warmups {
		steps = append(steps, step{warmup: true, index: i})
	}
	for i, s := range append(steps, todo...) {
		if ctx.Err() != nil {
			return context.Canceled
		}
		start := time.Now()
		// What Tare reads for itself comes before the host is looked at, and after it: it would count as other programs' work.
		held := throttled(g)
		stayed := watch(g, service)
		since := beside(company.all(service.guests(g))...)
		busy := company.watch(g)
		var tr notebook.Trial
		var dead, alone bool
		var terr error
		if started != nil {
			tr, dead = r.finish(ctx, started, ready, t), true
		} else {
			tr, dead, terr = r.trial(ctx, g, service, ready, t, s)
		}
		// The other guests that are weighed or read with this one are no disturbance, and a start is over.
		if !r.Plan.Study.Together() && r.Plan.Study.Kind != fitkind.Name && started == nil {
			tr.Beside = since()
			tr.ThrottledS = held()
		}
		if ctx.Err() == nil {
			stayed(&tr)
		}
		if tr.Company, alone = accompanied(&tr, busy); alone {
			dead = true
		}
		if ctx.Err() != nil {
			return context.Canceled // a trial cut short by us says nothing about the platform
		}
		tr.Guest, tr.Index, tr.Warmup, tr.Traced = id, s.index, s.warmup, s.traced
		if err := record(tr); err != nil {
			return err
		}
		if !s.warmup {
			working, trials = working+time.Since(start), trials+1
		}
		switch {
		case terr != nil:
			return fmt.Errorf("%s: %w", t.ID, terr)
		case dead && s.warmup:
			return rest(id, todo, tr.Failure)
		case dead:
			return rest(id, todo[i+1-design.Warmups:], "not run: its guest had failed before it")
		}
	}
	return nil
}

// describe fills in the guest's record; the error is a guest that does not answer.
// Of one whose ruler is busy with a service what only a free one can say is left out.
func (r *Run) describe(ctx context.Context, t notebook.Treatment, g Guest, rec *notebook.Guest, busy bool) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	n := 9
	if !t.Representative() {
		n = 3 // emulated: a process takes tens of milliseconds, and nothing is ranked by it
	}
	if busy {
		return r.limits(g, rec)
	}
	costs, err := g.Ruler().Cost(ctx, n)
	if err != nil {
		return fmt.Errorf("the ruler did not answer: %w%s", err, diagnosis(g))
	}
	var seconds []float64
	for _, c := range costs {
		seconds = append(seconds, c.Seconds())
	}
	rec.RulerCostS, rec.RulerCostN = stats.Median(seconds), len(seconds)
	for range 5 { // the quickest is near to what the way takes
		if _, err := g.Ruler().Ping(ctx); err != nil {
			return fmt.Errorf("the ruler did not answer: %w%s", err, diagnosis(g))
		}
	}
	return r.limits(g, rec)
}

// limits fills in what can be read of a guest at any time.
func (r *Run) limits(g Guest, rec *notebook.Guest) (err error) {
	rec.RoundTripS = g.Ruler().RoundTrip().Seconds()
	if rec.Limits, err = g.Limits(); err != nil {
		return fmt.Errorf("its limits cannot be read: %w", err)
	}
	f := g.Facts()
	rec.Kernel, rec.KernelSource, rec.Machine, rec.Notes = f.Kernel, f.KernelSource, f.Machine, f.Notes
	return nil
}

// hostProc is the host's /proc.
var hostProc = os.DirFS("/proc")

// memoryKills gives what says, of a ruler that is gone, that the host's kernel has killed processes for memory since: with the ruler
// went its own count.
func memoryKills() func(error) string {
	before := ruler.OOMKills(hostProc)
	return func(err error) string {
		n := ruler.OOMKills(hostProc) - before
		if n < 1 || !errors.Is(err, ruler.ErrGone) {
			return ""
		}
		return fmt.Sprintf("out of memory: the host's kernel killed %d of its processes meanwhile: ", n)
	}
}

func diagnosis(g Guest) string {
	if a := g.Diagnose(); a != "" {
		return " (" + a + ")"
	}
	return ""
}

// clockShare is how far the guest's clock and the host's may disagree on a trial, and clockFloor what is allowed on
// top: an answer's way through an emulated serial port is no clock's fault.
const (
	clockShare = 0.01
	clockFloor = 5 * time.Millisecond
)

// trial runs the workload once and checks its answer, a warm-up's not: nothing is made of it. dead: the guest is of no
// use any more. The error is of tracers that cannot be detached.
func (r *Run) trial(ctx context.Context, g Guest, service *service, ready *workload.Ready, t notebook.Treatment, s step) (tr notebook.Trial, dead bool, err error) {
	if r.Plan.Study.Kind == capacitykind.Name {
		tr, dead = r.climb(ctx, service, s.warmup)
		return tr, dead, nil
	}
	if r.Plan.Study.Kind == memorykind.Name {
		tr, err = r.weigh(ctx, g, ready, t, s.warmup)
		return tr, true, err
	}
	if r.Plan.Study.Kind == pagingkind.Name {
		tr, err = r.page(ctx, g, ready, t, s.warmup)
		return tr, true, err
	}
	if r.Plan.Study.Kind == arrivalskind.Name {
		tr, err = r.bringUp(ctx, ready, t)
		return tr, true, err
	}
	if r.Plan.Study.Kind == fitkind.Name {
		return r.fit(ctx, g, service, ready, t)
	}
	return r.time(ctx, g, service, ready, t, s)
}

// time is a trial that is one run of the workload.
func (r *Run) time(ctx context.Context, g Guest, service *service, ready *workload.Ready, t notebook.Treatment, s step) (tr notebook.Trial, dead bool, err error) {
	w := ready.Workload
	where, order := g, w.Order(w.Command, ready.Params, ready.Image, workload.Seat{Instance: t.Instance})
	order.Timeout, order.Remains = r.Plan.timeout(), service == nil
	var clock Guest
	if service != nil {
		where, clock = service.place, service.place
		order = service.ask(w.Load.Command, r.Plan.timeout())
	}
	tr.Start, tr.Command = time.Now().UTC(), order.Argv
	var tracing Tracing
	var unattached error
	if s.traced {
		if tracing, unattached = g.Trace(clock); unattached == nil {
			order.Bounds = tracing
		}
		if r.kind(t).TracesInside && service == nil {
			order.Tracers = r.Plan.Study.Explain
		}
	}
	outOfMemory := memoryKills()
	asking, enough := service.during(ctx)
	ahead, bound, rerr := service.clock(asking)
	var res ruler.Result
	var host time.Duration
	if rerr == nil {
		res, host, rerr = where.Ruler().Run(asking, order)
	}
	var later, laterBound time.Duration
	if rerr == nil {
		later, laterBound, rerr = service.clock(asking)
	}
	enough()
	if s.traced {
		if tr.Trace, err = r.seen(tracing, unattached); err != nil {
			tr.Failure = err.Error()
			return tr, true, err
		}
		if why := hides(r.kind(t), service != nil); why != "" {
			missing(tr.Trace, MissingInside, why)
		}
	}
	switch {
	case rerr != nil && ctx.Err() == nil && service != nil && service.over():
		tr.Failure = "its service ended: " + service.how()
		return tr, true, nil
	case rerr != nil:
		tr.Failure = outOfMemory(rerr) + rerr.Error() + diagnosis(where)
		return tr, true, nil
	}
	tr.ElapsedS, tr.HostS = res.Elapsed.Seconds(), host.Seconds()
	tr.Exit, tr.Signal, tr.Found = res.Exit, res.Signal, res.Found
	if service == nil {
		tr.Usage = res.Usage
	} else {
		tr.Load = service.usage(res, ahead, bound)
		tr.Warnings = append(tr.Warnings, saturated(tr.Load, res.Elapsed)...)
	}
	if s.traced {
		tr.Trace.Inside = res.Trace
		account(tr.Trace, tr.Usage, tr.ElapsedS, t.Instance.Cores)
		if why := blind(order.Tracers, res.Trace); why != "" {
			missing(tr.Trace, MissingInside, why)
		}
	}
	// The host's time has the way to the guest and back in it, of which only the least that it takes is known.
	if off := max(res.Elapsed-host, host-where.Ruler().RoundTrip()-res.Elapsed); off > clockFloor+time.Duration(clockShare*float64(host)) {
		tr.Warnings = append(tr.Warnings, fmt.Sprintf("the guest's clock says %.4g s, the host's %.4g s", tr.ElapsedS, tr.HostS))
	}
	if tr.Failure = workload.Failure(res); tr.Failure == "" {
		tr.Failure = wander(ahead, bound, later, laterBound, host)
	}
	if names := t.Params[notebook.ParamDevices]; res.TimedOut && names != "" {
		tr.Failure += "; if a kernel of " + names + " never returned, the device may have to be reset"
	}
	if tr.Failure == "" {
		tr.Value, tr.Figures, tr.Failure = w.Figures(res)
		tr.Warnings = append(tr.Warnings, w.Warnings(tr.Figures)...)
	}
	if service != nil && service.over() {
		tr.Failure = "its service ended: " + service.how()
		return tr, true, nil
	}
	if tr.Failure != "" {
		tr.Output = workload.Tail(res)
		return tr, false, nil
	}
	if len(w.Check) == 0 || s.warmup {
		return tr, false, nil
	}
	check := w.Order(w.Check, ready.Params, ready.Image, workload.Seat{Instance: t.Instance})
	check.Timeout, check.KeepScratch = r.Plan.timeout(), true
	res, _, rerr = g.Ruler().Run(ctx, check)
	if rerr != nil {
		tr.Failure = "checking its output: " + rerr.Error() + diagnosis(g)
		return tr, true, nil
	}
	if cause := workload.Failure(res); cause != "" {
		tr.Failure, tr.Output = "its output is wrong: "+cause, workload.Tail(res)
	}
	return tr, false, nil
}

func destroy(ctx context.Context, g Guest) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), destroyTimeout)
	defer cancel()
	return g.Destroy(ctx)
}

// vacate removes guests, the latest first. Once one could not be removed in its time the others have that time together: hundreds of an engine that does not
// answer any more would take hours. The error is of the first that is left, and says how many are.
func vacate(ctx context.Context, guests []Guest) (first error) {
	ctx = context.WithoutCancel(ctx)
	stay := 0
	for _, g := range slices.Backward(guests) {
		of, cancel := context.WithTimeout(ctx, destroyTimeout)
		err := g.Destroy(of)
		if err != nil && of.Err() != nil && ctx.Err() == nil && stay == 0 {
			hurry, done := context.WithTimeout(ctx, destroyTimeout)
			defer done()
			ctx = hurry
		}
		cancel()
		if err == nil {
			continue
		}
		if stay++; first == nil {
			first = err
		}
	}
	if stay > 1 {
		return fmt.Errorf("%w (and %d more guests)", first, stay-1)
	}
	return first
}

// kind is the treatment's engine.
func (r *Run) kind(t notebook.Treatment) engine.Kind {
	k, err := r.Plan.engines.Find(t.Platform, t.Engine)
	if err != nil { // it was found when the study was planned
		panic(err)
	}
	return k
}
