package study

import (
	"testing"
	"time"

	"tare/lab/crowd"
	"tare/notebook"
)

// heldGuest is throttled by its quota for a quarter of a second between two readings.
type heldGuest struct {
	fakeGuest
	held time.Duration
}

func (g *heldGuest) Throttled() (time.Duration, error) {
	g.held += 250 * time.Millisecond
	return g.held, nil
}

// The record of a trial has the time for which the guest's quota throttled it.
func TestThrottledTimeIsRecorded(t *testing.T) {
	book := &fakeBook{}
	l := &fakeLab{elapsed: steady}
	l.Made = func(w crowd.Want) (crowd.Guest, error) { return &heldGuest{fakeGuest: l.guest(w.Treatment)}, nil }
	r := &Run{Plan: fakePlan(notebook.Design{Floor: 2, Cap: 2, Trials: 2}, cnT), Lab: l, Book: book}
	if _, err := r.Do(t.Context()); err != nil || len(book.trials) != 4 {
		t.Fatalf("%d trials, %v", len(book.trials), err)
	}
	for _, x := range book.trials {
		if x.ThrottledS != 0.25 {
			t.Errorf("%+v: throttled for %v s, want 0.25", x, x.ThrottledS)
		}
	}
}
