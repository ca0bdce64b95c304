//go:build linux

// Package pace makes calls at times that were set before: an open loop, in which a slow call delays no later one.
package pace

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/proc"
)

// Issue calls do once for each of the times, which count from begin and never decrease, each time in its own goroutine, and returns when all
// calls have returned. intended is the planned time of a call: measure a latency from it, not from the actual time. When ctx ends Issue
// makes no further calls; issued is the number of calls.
//
// A thread that does nothing else waits for the times with nanosleep(2), because Go's timers may be late by a millisecond. It runs
// before all other work on the host: see first. The garbage collector does not run until the last time: see uncollected.
func Issue(ctx context.Context, begin time.Time, times []time.Duration, do func(i int, intended time.Time)) (issued int) {
	var calls sync.WaitGroup
	defer calls.Wait()
	defer uncollected()()
	defer first()()
	for i, after := range times {
		intended := begin.Add(after)
		for left := time.Until(intended); left > 0 && ctx.Err() == nil; left = time.Until(intended) {
			t := unix.NsecToTimespec(int64(min(left, 100*time.Millisecond))) // at most 100 ms, so that an end of ctx is noticed
			_ = unix.Nanosleep(&t, nil)                                      // a signal ends it early, which the loop handles
		}
		if ctx.Err() != nil {
			return i
		}
		calls.Go(func() { do(i, intended) })
		runtime.Gosched() // hand the call to another thread: a sleeping one would keep it until another looked for work
	}
	return len(times)
}

// room is how much more memory this program may use before the garbage collector runs anyway.
const room = 1 << 30

// uncollected keeps the garbage collector from running until the returned function is called. The collector marks a goroutine while
// it reads its stack, and a goroutine that returns from a system call spins until the mark is gone. On the thread of [first] it
// would spin before the thread that must remove the mark, on the same CPU. That would last until the kernel ends a real-time
// thread's turn: 950 ms of every second (/proc/sys/kernel/sched_rt_runtime_us).
func uncollected() (undo func()) {
	runtime.GC() // so that none is running afterwards, and there is room
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	limit := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(limit, int64(now.Sys)+room))
	percent := debug.SetGCPercent(-1)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}

// first lets this thread run before everything in the ordinary scheduling class. This program's other threads, which make the calls,
// run before most of that class (nice -20). Both hold until the caller calls undo. An engine under load keeps a host busy, and on a
// busy host an ordinary thread that wakes up waits milliseconds for its turn. Each thread needs some microseconds for a call, and
// the processes that it starts are ordinary. Threads that start later are ordinary too. Without the permission the threads wait; the
// caller measures how late a call is in any case.
func first() (undo func()) {
	runtime.LockOSThread()
	self := unix.Gettid()
	mine := map[int]*unix.SchedAttr{}    // changed threads, with their earlier attributes
	tids, _ := proc.Threads(os.Getpid()) // if they cannot be listed, only this one comes first
	for _, tid := range append(tids, self) {
		before, err := unix.SchedGetAttr(tid, 0)
		if err != nil || before.Policy != unix.SCHED_NORMAL || mine[tid] != nil || tid != self && before.Nice != 0 {
			continue // children of a niced Tare would lose its nice value: it is reset
		}
		to := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: -20, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
		if tid == self {
			to.Policy, to.Nice, to.Priority = unix.SCHED_FIFO, 0, 1
		}
		if unix.SchedSetAttr(tid, &to, 0) == nil {
			mine[tid] = before
		}
	}
	return func() {
		again := true
		for tid, before := range mine {
			err := unix.SchedSetAttr(tid, before, 0)
			again = again && (tid != self || err == nil) // another one may have ended
		}
		if again {
			runtime.UnlockOSThread()
		} // otherwise the thread ends with its goroutine
	}
}
