package study

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"tare/notebook"
	"tare/stats"
)

// Watcher follows the progress of a run. Its methods must return at once.
type Watcher interface {
	// Guest: a guest of t is about to be made in this round. done of all guests were made before, and about left remains. atMost: the
	// number of guests cannot be predicted: all and left are upper limits, or what fits into the time budget.
	Guest(round int, t notebook.Treatment, done, all int, atMost bool, left time.Duration)
	// Trial: a trial has ended. ratio is the treatment's current ratio to its baseline; zero for a baseline, or if the ratio cannot be computed.
	Trial(t notebook.Treatment, tr notebook.Trial, ratio stats.Quotient)
	// GaveUp: a treatment that always fails is not tried again.
	GaveUp(t notebook.Treatment, cause *notebook.Message)
	// Preparing: nearly all the time of a workload's guests goes into preparing them. The message also names what would help.
	Preparing(what *notebook.Message)
}

// Run is one run of a plan.
type Run struct {
	Plan     *Plan
	Lab      Lab
	Book     Book
	Watch    Watcher
	Deadline time.Time // no guest begins that would not end before it; zero: none
	Goal     Goal      // replaces the design's rule on ratios; nil: that rule

	// Settle waits, between the turns of two guests, until the host has done the work that the last trial left to it; nil: no wait.
	Settle func(context.Context) error

	progress    *progress // nil: nothing is on record
	rule        rule
	costs       costs
	allocation  allocation
	preparation preparation
	notes       []*notebook.Message
}

// record is what the run knows of trials and guests.
func (r *Run) record() *progress {
	if r.progress == nil {
		r.progress = newProgress(&r.Plan.Study)
	}
	return r.progress
}

// Made tells the run of a guest that the notebook already holds.
func (r *Run) Made(g notebook.Guest) { r.record().made(g) }

// Take tells the run of a trial that the notebook already holds. A finished trial is not repeated.
func (r *Run) Take(t notebook.Trial) { r.record().take(t) }

// Failed is the number of failed trials, without warm-ups, and including earlier sessions.
func (r *Run) Failed() int { return r.record().failed }

// Notes are remarks for the summary of the session, in addition to the reason why it ended: treatments given up, and work that was
// mostly preparation.
func (r *Run) Notes() []*notebook.Message { return r.notes }

// Do runs what remains to be done and returns the reason why it ended. An error comes from the notebook or the machine; failed
// trials are records, not errors. When ctx ends, the current trial is abandoned, its guest is destroyed, and the reason
// says so.
func (r *Run) Do(ctx context.Context) (reason *notebook.Message, err error) {
	s, p := &r.Plan.Study, r.record()
	r.rule, r.costs = rule{p, baselinesOf(s)}, costs{p, map[string]cost{}}
	r.allocation = allocation{r.rule, r.costs, len(s.Explain) > 0 || r.Plan.rules.Search}
	r.preparation = preparation{r.allocation, r.Plan.ready, map[string]bool{}}
	p.recall()
	begun := p.last // earlier rounds are over: a guest made for one of them now would have no other guest to be compared with
	for round := begun; ; round++ {
		open, known, err := r.open(round)
		if err != nil {
			return nil, err
		}
		left := time.Duration(math.MaxInt64)
		if !r.Deadline.IsZero() {
			left = time.Until(r.Deadline)
		}
		who := rounds(choose(open, func(id string) time.Duration { return r.costs.lasts(id, round) }, left, r.Goal != nil))
		r.allocation.allocate(who, round)
		over := round > begun
		var inRound []notebook.Treatment
		for _, i := range Order(s.Seed, round, len(s.Treatments)) {
			if t := s.Treatments[i]; r.wanted(t, who, round) {
				inRound = append(inRound, t)
			}
		}
		if round == 0 && !r.Deadline.IsZero() { // so that all that the time allows can be compared
			inRound = r.baselinesFirst(inRound)
		}
		for _, b := range r.Plan.batches(inRound, r.rule.baselines) {
			over = false
			if reason, err := r.batch(ctx, b, round, open); reason != nil || err != nil {
				if reason.Is("time-budget") {
					r.reportNothing(round + 1)
				}
				return reason, err
			}
		}
		r.reportPreparation()
		switch {
		case over && known:
			return notebook.Say("precise-enough"), nil
		case over:
			return notebook.Say("cap-on-rounds"), nil
		}
	}
}

// open are the open questions of the goal, or of the design's rule, after this many rounds. known: there is nothing left to find out.
func (r *Run) open(round int) (open []question, known bool, err error) {
	if r.Goal != nil {
		return r.Goal.open(r.progress, r.rule.baselines, r.costs, round)
	}
	open, known = r.rule.open(round)
	return open, known, nil
}

// baselinesFirst begins a round with the baselines. Otherwise it keeps the order.
func (r *Run) baselinesFirst(round []notebook.Treatment) []notebook.Treatment {
	slices.SortStableFunc(round, func(a, b notebook.Treatment) int {
		first := func(t notebook.Treatment) int { // as a key to sort by
			if r.rule.shared[t.ID] {
				return 0
			}
			return 1
		}
		return cmp.Compare(first(a), first(b))
	})
	return round
}

// comparable is the number of rounds that two treatments need for an interval of their ratio.
const comparable = 2

// reportNothing notes about how much more time would do, if the time was too short to compare anything. If there were enough rounds,
// noise is the reason, and the summary names it.
func (r *Run) reportNothing(rounds int) {
	var more time.Duration
	compares := false
	for _, t := range r.Plan.Study.Treatments {
		if b, ok := r.rule.baseline(t); ok && b.ID != t.ID && !t.AA {
			if q, _ := r.rule.ratio(t, rounds); q.HasInterval() {
				return
			}
			compares = true
		}
		for n := r.progress.complete(t.ID, rounds); n < comparable && !r.progress.gaveUp[t.ID]; n++ {
			more += r.costs.lasts(t.ID, n)
		}
	}
	if compares && more > 0 {
		r.notes = append(r.notes, notebook.Say("nothing-compared", "rounds", comparable, "minutes", max(1, math.Ceil(more.Minutes()))))
	}
}

// reportPreparation reports work that is mostly preparation, except for a kind whose guests have only one trial each.
func (r *Run) reportPreparation() {
	if r.Plan.rules.Once != "" {
		return
	}
	for _, what := range r.preparation.found() {
		r.notes = append(r.notes, notebook.Say("mostly-preparation", "what", what))
		if r.Watch != nil {
			r.Watch.Preparing(what)
		}
	}
}

// wanted reports whether the treatment still has trials to do in the round: because it was chosen for the round, or because a guest
// of it was interrupted.
func (r *Run) wanted(t notebook.Treatment, who map[string]int, round int) bool {
	return !r.progress.gaveUp[t.ID] && (who[t.ID] > 0 || r.progress.cells[cell{t.ID, round}] != nil) && len(r.progress.todo(t.ID, round)) > 0
}

// left returns how many guests are done, how many are still to be made until the open questions are answered, and how long that
// takes. atMost: some question allows no prediction, and these are upper limits; or the time budget ends the run before, and they are what fits into it.
func (r *Run) left(open []question, round int) (done, guests int, atMost bool, wait time.Duration) {
	ahead := rounds(open)
	atMost = slices.ContainsFunc(open, func(q question) bool { return q.atMost })
	for _, t := range r.Plan.Study.Treatments {
		n := ahead[t.ID]
		done += r.progress.begun(t.ID, round)
		if r.progress.cells[cell{t.ID, round}] != nil && len(r.progress.todo(t.ID, round)) == 0 {
			done, n = done+1, max(n-1, 0)
		}
		if !r.progress.gaveUp[t.ID] {
			guests += n
			wait += time.Duration(n) * r.costs.lasts(t.ID, round)
		}
	}
	if !r.Deadline.IsZero() {
		switch limit := max(0, time.Until(r.Deadline)); {
		case wait == 0: // nothing is known yet of what a guest takes
			atMost = true
		case limit < wait:
			guests, atMost, wait = int(math.Ceil(float64(guests)*limit.Seconds()/wait.Seconds())), true, limit
		}
	}
	return done, guests, atMost, wait
}

// share is when a search has used its share of the time of all searches. Without a time budget it is the usual time from now.
func (r *Run) share(usual time.Duration) time.Time {
	if r.Deadline.IsZero() {
		return time.Now().Add(usual)
	}
	left := 0
	for _, t := range r.Plan.Study.Treatments {
		for round := range r.Plan.Study.Design.Most(t) {
			if !r.progress.gaveUp[t.ID] && len(r.progress.todo(t.ID, round)) > 0 {
				left++
			}
		}
	}
	return time.Now().Add(time.Duration(0.9 * float64(time.Until(r.Deadline)) / float64(max(left, 1)))) // the rest is for making and removing guests
}

// take adds a recorded trial to the run's progress, and reports it.
func (r *Run) take(t notebook.Treatment, tr notebook.Trial) {
	r.progress.take(tr)
	if r.Watch != nil && !tr.Warmup {
		q := stats.NoRatio
		if b, _ := r.rule.baseline(t); b.ID != t.ID {
			q, _ = r.rule.ratio(t, tr.Round+1)
		}
		r.Watch.Trial(t, tr, q)
	}
}
