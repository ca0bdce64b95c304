package study

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"tare/notebook"
)

// A scheduler's signal reaches the guest's processes and this one. A trial that fails just before this one has it was cut short.
func TestCutShort(t *testing.T) {
	for _, c := range []struct {
		failure *notebook.Message
		after   time.Duration // until the signal; 0: there is none
		want    bool
	}{
		{notebook.TextMessage("the guest is gone"), 50 * time.Millisecond, true},
		{notebook.TextMessage("the guest is gone"), time.Minute, false},
		{notebook.TextMessage("the guest is gone"), 0, false},
		{nil, 50 * time.Millisecond, false}, // it had succeeded
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.after > 0 {
				time.AfterFunc(c.after, cancel)
			}
			if got := cutShort(ctx, c.failure); got != c.want {
				t.Errorf("%v, a signal after %v: %t, want %t", c.failure, c.after, got, c.want)
			}
		})
	}
}
