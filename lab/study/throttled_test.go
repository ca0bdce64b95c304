package study

import (
	"testing"
	"time"

	"tare/notebook"
)

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
