//go:build linux

// Package pace issues calls at moments that were set before: an open loop, in which a call that takes long delays none of those that follow.
package pace

import (
	"context"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Issue calls do n times, at the moments begin, begin+gap, begin+2·gap, …, each time in a goroutine of its own, and returns when all of them have returned.
// intended is the moment that a call was meant for: a latency is counted from there, and not from when it was made. When ctx ends no
// further calls are made; issued says how many were.
//
// The moments are waited for by a thread that does nothing else, with nanosleep(2), for timers of Go's own may be late by a millisecond, and
// before all other work of the host: see first.
func Issue(ctx context.Context, begin time.Time, n int, gap time.Duration, do func(i int, intended time.Time)) (issued int) {
	var calls sync.WaitGroup
	defer calls.Wait()
	defer first()()
	for i := range n {
		intended := begin.Add(time.Duration(i) * gap)
		for left := time.Until(intended); left > 0 && ctx.Err() == nil; left = time.Until(intended) {
			t := unix.NsecToTimespec(int64(min(left, 100*time.Millisecond))) // so that an end is noticed
			_ = unix.Nanosleep(&t, nil)                                      // a signal ends it early: the loop sees to that
		}
		if ctx.Err() != nil {
			return i
		}
		calls.Go(func() { do(i, intended) })
	}
	return n
}

// first has this thread run before all that is of the ordinary scheduling class, until what it returns is called, and its sleeps end when they are
// due: an ordinary thread's may end 50 µs later (its timer slack), and where the host's CPUs are busy one in a hundred waits for milliseconds until it is its
// turn. The thread has some microseconds to do each time, and what it starts is ordinary. Who may not have that class waits its turn; how late
// a call is made is its caller's to measure in any case.
func first() (undo func()) {
	runtime.LockOSThread()
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil || unix.SchedSetAttr(0, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK,
	}, 0) != nil {
		return runtime.UnlockOSThread
	}
	return func() {
		if unix.SchedSetAttr(0, before, 0) == nil {
			runtime.UnlockOSThread()
		} // else the thread ends with its goroutine
	}
}
