package study

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"tare/lab/measure"
	"tare/notebook"
)

// batch makes the guests of a batch, hands out their trials in turns, and removes the guests. reason says why the run ends; nil: it
// goes on.
func (r *Run) batch(ctx context.Context, b batch, round int, open []question) (reason *notebook.Message, err error) {
	var lasts time.Duration
	for _, t := range b.all() {
		lasts += r.costs.lasts(t.ID, round)
	}
	if r.Plan.rules.Bounded { // the last one used its share of the time; one in half of the time decides less, but it is a round more
		lasts /= 2
	}
	l := &live{Run: r, round: round, open: open, together: len(b.stay) + min(len(b.shifts), 1)}
	switch {
	case ctx.Err() != nil:
		return notebook.Say("interrupted"), nil
	case !r.Deadline.IsZero() && time.Now().Add(lasts).After(r.Deadline):
		return notebook.Say("time-budget"), nil
	}
	late, err := l.run(ctx, b)
	switch {
	case err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled):
		return notebook.Say("interrupted"), nil
	case err != nil:
		return nil, err
	case late:
		return notebook.Say("time-budget"), nil
	}
	return nil, nil
}

// live are the guests of a round that are alive at the same time.
type live struct {
	*Run
	round    int
	open     []question
	together int // guests that are alive at the same time
	guests   []*attempt
	pass     int // turns of every guest so far
	longest  time.Duration
}

// run does a batch. late: the run's deadline left no time for all trials.
func (l *live) run(ctx context.Context, b batch) (late bool, err error) {
	defer func() {
		for _, a := range slices.Backward(l.guests) {
			if e := l.remove(ctx, a); e != nil {
				err = e // the gravest error: what remains would disturb the next measurement
			}
		}
	}()
	for _, t := range b.stay {
		if err := l.add(ctx, t); err != nil {
			return false, err
		}
	}
	stay := len(l.guests)
	for _, a := range l.guests {
		if err := a.warm(ctx); err != nil {
			return false, err
		}
	}
	if len(b.shifts) == 0 {
		return l.turns(ctx, 1)
	}
	for i, t := range b.shifts {
		if err := l.add(ctx, t); err != nil {
			return false, err
		}
		if err := l.guests[stay].warm(ctx); err != nil {
			return false, err
		}
		if late, err := l.turns(ctx, len(b.shifts)-i); late || err != nil {
			return late, err
		}
		a := l.guests[stay]
		l.guests = l.guests[:stay]
		if err := l.remove(ctx, a); err != nil {
			return false, err
		}
	}
	return false, nil
}

// add makes a guest.
func (l *live) add(ctx context.Context, t notebook.Treatment) error {
	if l.Watch != nil {
		done, left, atMost, wait := l.left(l.open, l.round)
		begun := done + len(l.guests)
		l.Watch.Guest(l.round, t, begun, max(done+left, begun+1), atMost, wait)
	}
	if ctx.Err() != nil {
		return context.Canceled
	}
	a := &attempt{
		plan: l.Plan, bench: measure.Bench{Lab: l.Lab, Until: l.share, Note: func(m *notebook.Message) { l.notes = append(l.notes, m) }},
		guest: notebook.Guest{ID: fmt.Sprintf("r%d-%08x", l.round, rand.Uint32()), Treatment: t.ID, Round: l.round, Trials: l.progress.trials(t.ID, l.round)},
		book:  l.Book, take: func(tr notebook.Trial) { l.take(t, tr) }, t: t, todo: l.progress.todo(t.ID, l.round),
	}
	if l.together > 1 {
		a.guest.Together, l.progress.turns[cell{t.ID, l.round}] = l.together, true
	}
	a.judged = measures(a.todo)
	l.guests = append(l.guests, a)
	return a.begin(ctx)
}

// turns hands out trials to the guests in random turns. shifts is the number of shifts still to come, including this one. A guest that
// stays does an equal part of its remaining trials in each. The last guest, whose shift it is, does all of its trials. late: the run's
// deadline leaves no time for another pass.
func (l *live) turns(ctx context.Context, shifts int) (late bool, err error) {
	quota, most := make([]int, len(l.guests)), 0
	for i, a := range l.guests {
		quota[i] = (len(a.todo) + shifts - 1) / shifts
		if i == len(l.guests)-1 {
			quota[i] = len(a.todo)
		}
		most = max(most, quota[i])
	}
	for pass := range most {
		began := time.Now()
		if pass > 0 && !l.Deadline.IsZero() && began.Add(l.longest).After(l.Deadline) {
			return true, nil
		}
		its := map[*attempt]bool{} // guests with a trial in the pass, or with parts of a trial left
		for i, a := range l.guests {
			its[a] = (pass+1)*quota[i]/most > pass*quota[i]/most // evenly among the passes
		}
		for more := true; more; l.pass++ {
			if late := !l.Deadline.IsZero() && time.Now().After(l.Deadline); late && l.parted() {
				return true, nil
			}
			if more, err = l.once(ctx, its); err != nil {
				return false, err
			}
		}
		l.longest = max(l.longest, time.Since(began))
	}
	return false, nil
}

// parted reports whether some trial is done in part.
func (l *live) parted() bool {
	return slices.ContainsFunc(l.guests, func(a *attempt) bool { return a.under.parts > 0 })
}

// once gives each of these guests a turn, in random order. more: some have further parts of their trials to do; only they remain.
func (l *live) once(ctx context.Context, its map[*attempt]bool) (more bool, err error) {
	for _, i := range turns(l.Plan.Study.Seed, l.round, l.pass, l.guests[0].t.ID, len(l.guests)) {
		a := l.guests[i]
		if !its[a] || a.over {
			continue
		}
		if l.Settle != nil && l.together > 1 {
			if err := l.Settle(ctx); err != nil {
				return false, err
			}
		}
		if its[a], err = a.turn(ctx); err != nil {
			return false, err
		}
		more = more || its[a]
	}
	return more, nil
}

// remove removes a guest and judges its treatment.
func (l *live) remove(ctx context.Context, a *attempt) error {
	err := a.end(ctx)
	l.costs.add(a.t.ID, a.trials, a.preparing, a.working)
	if err != nil || ctx.Err() != nil || !a.judged || measures(l.progress.todo(a.t.ID, l.round)) {
		return err
	}
	if d := l.progress.cells[cell{a.t.ID, l.round}]; d != nil && l.progress.judge(a.t.ID, *d) {
		l.notes = append(l.notes, notebook.Say("given-up", "treatment", a.t.ID, "rounds", giveUpAfter, "cause", a.lastCause))
		if l.Watch != nil {
			l.Watch.GaveUp(a.t, a.lastCause)
		}
	}
	return nil
}

// measures reports whether a measured trial is among the steps.
func measures(steps []measure.Step) bool {
	return slices.ContainsFunc(steps, func(s measure.Step) bool { return s.Role == measure.Measured })
}
