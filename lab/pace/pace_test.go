//go:build linux

package pace

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/require"
	"tare/lab/proc"
)

// every is n times at equal intervals.
func every(n int, gap time.Duration) (times []time.Duration) {
	for i := range n {
		times = append(times, time.Duration(i)*gap)
	}
	return times
}

// A call that takes long delays none of those after it, and each has the moment that it was meant for.
func TestLateCallsDelayNobody(t *testing.T) {
	begin := time.Now()
	var made atomic.Int64
	others := make(chan struct{}) // closed with the last of them
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n := Issue(ctx, begin, every(20, 2*time.Millisecond), func(i int, intended time.Time) {
		if want := begin.Add(time.Duration(i) * 2 * time.Millisecond); !intended.Equal(want) {
			t.Errorf("call %d is meant for %v, want %v", i, intended, want)
		}
		if i > 0 && made.Add(1) == 19 {
			close(others)
		}
		if i == 0 { // it takes until all others are made
			select {
			case <-others:
			case <-ctx.Done():
				t.Errorf("%d calls were made in addition to the first in a minute: it delayed them", made.Load())
			}
		}
	})
	if n != 20 || made.Load() != 19 {
		t.Errorf("%d calls were issued, and %d made in addition to the first: want 20, and 19", n, made.Load())
	}
}

func TestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := Issue(ctx, time.Now(), every(1000, time.Hour), func(int, time.Time) { cancel() })
	if n != 1 {
		t.Errorf("%d calls were made after the context's end: want 1", n)
	}
}

// A collection of garbage while the thread that waits comes before all others may hold it up for 950 ms.
func TestNoGarbageIsCollectedMeanwhile(t *testing.T) {
	collected := func() uint32 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.NumGC
	}
	var garbage atomic.Pointer[[]byte]
	litter := func() { // far more than a heap may grow by before it is collected
		for range 200 {
			b := make([]byte, 1<<20)
			garbage.Store(&b)
		}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	ctx, cancel := context.WithCancel(t.Context())
	Issue(ctx, time.Now(), every(2, time.Hour), func(int, time.Time) {
		before := collected()
		litter()
		if n := collected() - before; n != 0 {
			t.Errorf("garbage was collected %d times while a moment was waited for: want never", n)
		}
		cancel()
	})
	if now := debug.SetGCPercent(100); now != 100 {
		t.Errorf("afterwards garbage is collected at a growth of %d %%: want 100 %%, as before", now)
	}
	before := collected()
	if litter(); collected() == before {
		t.Error("afterwards no garbage is collected")
	}
}

// Who waits for the moments comes before those who keep the host busy; what it starts does not, and when all is over no thread of the process does.
func TestWaitsBeforeAllOthers(t *testing.T) {
	require.Root(t)
	ranks := func() (fifo, early int) {
		tids, err := proc.Threads(os.Getpid())
		if err != nil {
			t.Error(err)
		}
		for _, tid := range tids {
			if a, err := unix.SchedGetAttr(tid, 0); err == nil && a.Policy == unix.SCHED_FIFO {
				fifo++
			} else if err == nil && a.Nice < 0 {
				early++
			}
		}
		return fifo, early
	}
	own, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var most, before, children atomic.Int64
	Issue(t.Context(), time.Now(), every(3, 5*time.Millisecond), func(int, time.Time) {
		fifo, early := ranks()
		most.Store(max(most.Load(), int64(fifo)))
		before.Store(max(before.Load(), int64(early)))
		if out, err := exec.Command("cut", "-d ", "-f19,41", "/proc/self/stat").Output(); err != nil || string(out) != fmt.Sprintln(own.Nice, 0) { // nice, and class
			children.Add(1)
		}
	})
	if most.Load() != 1 || before.Load() == 0 && own.Nice == 0 || children.Load() != 0 {
		t.Errorf("%d threads come before all others, %d before most, and %d programs that were started: want one, some, and none", most.Load(), before.Load(), children.Load())
	}
	if fifo, early := ranks(); fifo+early > 0 {
		t.Errorf("%d threads come before others when nothing is waited for", fifo+early)
	}
}
