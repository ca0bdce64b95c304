package study

import (
	"errors"
	"testing"
	"time"

	"tare/notebook"
)

// spender is a guest that has used so much CPU time, each time it is asked.
type spender struct {
	Guest
	used []time.Duration
}

func (s *spender) Used() (time.Duration, error) {
	if len(s.used) == 0 {
		return 0, errors.New("it is gone")
	}
	d := s.used[0]
	s.used = s.used[1:]
	return d, nil
}

func TestWhatWentOnBesideAGuest(t *testing.T) {
	if b := beside(&spender{used: []time.Duration{time.Second, time.Second}})(); b == nil || b.OfS < 0 || b.StolenS < 0 || b.OthersS < 0 || b.OthersS+b.StolenS > b.OfS+0.02 {
		t.Errorf("a guest that did nothing: %+v", b)
	}
	// What the guest did is not beside it, however much.
	if b := beside(&spender{used: []time.Duration{0, time.Hour}})(); b == nil || b.OthersS != 0 {
		t.Errorf("a guest that did much: %+v", b)
	}
	for name, used := range map[string][]time.Duration{"a process of which ended": {time.Hour, 0}, "that is gone": {0}, "that never was": nil} {
		if b := beside(&spender{used: used})(); b != nil {
			t.Errorf("a guest %s: %+v, which cannot be known", name, b)
		}
	}
}

// For how long a guest's quota held it back during a trial stands in the trial's record.
func TestThrottledTimeIsRecorded(t *testing.T) {
	book := &fakeBook{}
	l := &fakeLab{elapsed: func(notebook.Treatment) time.Duration { return time.Second }, throttled: 250 * time.Millisecond}
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
