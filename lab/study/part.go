package study

import (
	"context"
	"time"

	"tare/lab/measure"
	"tare/notebook"
)

// underway is what was observed during the parts of a trial so far.
type underway struct {
	took, elapsed float64 // seconds: in all, and of the trial itself
	throttled     float64
	beside        *notebook.Beside // nil: unknown for some part
	parts         int
	confined      *notebook.Confined
	failure       *notebook.Message // the guest left its CPUs
}

// part makes the next part of a trial. The guest has no busy neighbours, because joins lets no guest with busy neighbours live next to
// others.
func (a *attempt) part(ctx context.Context, of measure.Parted, s measure.Step) (more bool, err error) {
	if ctx.Err() != nil {
		return false, context.Canceled
	}
	start := time.Now()
	observed, stayed := a.observe()
	tr, more, over, terr := of.Part(ctx, s)
	u := &a.under
	u.add(observed())
	if ctx.Err() != nil {
		return false, context.Canceled
	}
	own := notebook.Trial{ElapsedS: tr.ElapsedS - u.elapsed}
	stayed(&own)
	u.stayed(own)
	u.elapsed = tr.ElapsedS
	u.took += time.Since(start).Seconds()
	if more && terr == nil {
		return true, nil
	}
	u.into(&tr)
	took := time.Duration(u.took * float64(time.Second))
	a.under, a.todo = underway{}, a.todo[1:]
	return false, a.done(ctx, s, tr, over, terr, took)
}

// add adds what the host did in a part.
func (u *underway) add(beside *notebook.Beside, throttled float64) {
	u.throttled += throttled
	switch {
	case u.parts == 0:
		u.beside = beside
	case beside == nil:
		u.beside = nil
	case u.beside != nil:
		u.beside.Add(beside)
	}
	u.parts++
}

// stayed adds whether the guest stayed on its CPUs in a part. The record keeps the first part in which it did not.
func (u *underway) stayed(part notebook.Trial) {
	c := part.Confined
	switch {
	case u.failure != nil:
	case u.confined == nil || part.Failure != nil || c == nil:
		u.confined, u.failure = c, part.Failure
	default:
		sum := *c
		sum.UsedS += u.confined.UsedS
		if sum.ForeignS != nil && u.confined.ForeignS != nil {
			both := *sum.ForeignS + *u.confined.ForeignS
			sum.ForeignS = &both
		} else {
			sum.ForeignS = nil
		}
		u.confined = &sum
	}
}

// into writes what was observed into the trial's record.
func (u *underway) into(tr *notebook.Trial) {
	tr.Beside, tr.ThrottledS, tr.Confined = u.beside, u.throttled, u.confined
	if tr.Failure == nil {
		tr.Failure = u.failure
	}
}
