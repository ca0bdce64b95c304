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
// The moments are waited for with nanosleep(2) by a thread that does nothing else: timers of Go's own may be late by a millisecond.
func Issue(ctx context.Context, begin time.Time, n int, gap time.Duration, do func(i int, intended time.Time)) (issued int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var calls sync.WaitGroup
	defer calls.Wait()
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
