//go:build linux

// Package pace issues calls at moments that were set before: an open loop, in which a call that takes long delays none of those that follow.
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

// Issue calls do n times, at the moments begin, begin+gap, begin+2·gap, …, each time in a goroutine of its own, and returns when all of them have returned.
// intended is the moment that a call was meant for: a latency is counted from there, and not from when it was made. When ctx ends no
// further calls are made; issued says how many were.
//
// The moments are waited for by a thread that does nothing else, with nanosleep(2), for timers of Go's own may be late by a millisecond, and
// before all other work of the host: see first. Until the last moment the garbage collector does not run: see uncollected.
func Issue(ctx context.Context, begin time.Time, n int, gap time.Duration, do func(i int, intended time.Time)) (issued int) {
	var calls sync.WaitGroup
	defer calls.Wait()
	defer uncollected()()
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
		runtime.Gosched() // another thread has the call now: one that sleeps would keep it for itself, until some other looked for work
	}
	return n
}

// room is how much more memory this program may use before its garbage is collected all the same.
const room = 1 << 30

// uncollected keeps the garbage collector from running until what it returns is called. The collector marks a goroutine while it reads its stack, and a goroutine that
// returns from a system call spins until the mark is gone. On the thread of [first] it would spin before the thread that has to take the mark away, on the same CPU, until the
// kernel ends a real-time thread's turn: 950 ms of every second (/proc/sys/kernel/sched_rt_runtime_us).
func uncollected() (undo func()) {
	runtime.GC() // none is under way afterwards, and there is room
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

// first has this thread run before all that is of the ordinary scheduling class, and this program's other threads, which make the calls, before most of that
// (nice -20), until what it returns is called. Where a host's CPUs are busy, and under load an engine keeps them so, an ordinary thread that wakes up waits for
// its turn, for milliseconds. Each has some microseconds to do for a call, and what they start is ordinary. A thread that comes meanwhile is ordinary too.
// Who may not do so waits; how late a call is made is its caller's to measure in any case.
func first() (undo func()) {
	runtime.LockOSThread()
	self := unix.Gettid()
	mine := map[int]*unix.SchedAttr{}    // threads that were changed, as they were
	tids, _ := proc.Threads(os.Getpid()) // where they cannot be listed, only this one comes first
	for _, tid := range append(tids, self) {
		before, err := unix.SchedGetAttr(tid, 0)
		if err != nil || before.Policy != unix.SCHED_NORMAL || mine[tid] != nil || tid != self && before.Nice != 0 {
			continue // of a niced Tare what these start would not be niced: it is reset
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
			again = again && (tid != self || err == nil) // another may have ended
		}
		if again {
			runtime.UnlockOSThread()
		} // else the thread ends with its goroutine
	}
}
