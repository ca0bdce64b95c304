//go:build linux

package pace

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// A call that takes long delays none of those after it, and each has the moment that it was meant for.
func TestSlowCallsDelayNobody(t *testing.T) {
	begin := time.Now()
	var late atomic.Int64
	n := Issue(t.Context(), begin, 20, 2*time.Millisecond, func(i int, intended time.Time) {
		if want := begin.Add(time.Duration(i) * 2 * time.Millisecond); !intended.Equal(want) {
			t.Errorf("call %d is meant for %v, want %v", i, intended, want)
		}
		late.Store(max(late.Load(), int64(time.Since(intended))))
		if i == 0 {
			time.Sleep(100 * time.Millisecond)
		}
	})
	if took := time.Since(begin); n != 20 || took < 100*time.Millisecond {
		t.Errorf("%d calls after %v: want 20, and the slow one awaited", n, took)
	}
	if l := time.Duration(late.Load()); l > 60*time.Millisecond {
		t.Errorf("a call was %v late: the slow one delayed it", l)
	}
}

func TestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := Issue(ctx, time.Now(), 1000, time.Hour, func(int, time.Time) { cancel() })
	if n != 1 {
		t.Errorf("%d calls were made after the context's end: want 1", n)
	}
}
