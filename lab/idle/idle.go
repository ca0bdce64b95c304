//go:build linux

// Package idle measures what idle processes cost a program that shares their CPUs. A loop of known work runs in short turns,
// alternately while the processes run and while they are stopped. The difference is what the processes do unasked: timers,
// wake-ups, garbage collection.
package idle

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/proc"
	"tare/stats"
)

const (
	pairs = 40                    // of turns, for the interval
	turn  = 25 * time.Millisecond // short, so that the host's speed is the same in both turns of a pair
)

// Cost is the ratio of a loop's time on these CPUs next to the processes to its time while they are stopped, with its 95 %
// interval. The processes must be children of guests in the undo journal, because Tare may end while they are stopped. All of them
// run again when Cost returns.
func Cost(ctx context.Context, cpus []int, pids []int) (q stats.Quotient, err error) {
	held, err := hold(pids)
	defer held.close()
	if err != nil {
		return q, err
	}
	err = proc.Apart(func() error {
		if err := proc.Bind(0, cpus); err != nil {
			return err
		}
		steps := calibrate()
		q, err = cost(ctx, held.signal, func() time.Duration { return spin(steps) })
		return err
	})
	return q, err
}

// cost alternates the two in random order. signal reaches the processes, and turn returns the time of the loop.
func cost(ctx context.Context, signal func(unix.Signal) error, turn func() time.Duration) (q stats.Quotient, err error) {
	next, stopped := make([]float64, pairs), make([]float64, pairs)
	for i := range pairs {
		first := rand.IntN(2)
		for k := range 2 {
			if err := ctx.Err(); err != nil {
				return q, err
			}
			if (k == 0) == (first == 0) {
				next[i] = turn().Seconds()
				continue
			}
			if err := signal(unix.SIGSTOP); err != nil {
				return q, errors.Join(err, signal(unix.SIGCONT))
			}
			stopped[i] = turn().Seconds()
			if err := signal(unix.SIGCONT); err != nil {
				return q, err
			}
		}
	}
	return stats.Ratio(next, stopped, stats.Sure(0)), nil
}

// calibrate returns the number of spin's steps that take about a turn.
func calibrate() int {
	const tried = 1_000_000
	fastest := time.Duration(1 << 62)
	for range 5 {
		fastest = min(fastest, spin(tried))
	}
	return int(tried * float64(turn) / float64(max(fastest, 1)))
}

// spin returns the time of this many dependent multiplications.
func spin(steps int) time.Duration {
	began, x := time.Now(), uint64(1)
	for range steps {
		x = x*6364136223846793005 + 1442695040888963407
	}
	took := time.Since(began)
	runtime.KeepAlive(x) // so that the compiler keeps the loop
	return took
}

// processes are pidfds, which stay valid for their processes even if the pids are reused.
type processes []int

func hold(pids []int) (all processes, err error) {
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err == unix.ESRCH {
			continue
		}
		if err != nil {
			return all, fmt.Errorf("process %d: pidfd_open: %w", pid, err)
		}
		all = append(all, fd)
	}
	return all, nil
}

func (p processes) signal(sig unix.Signal) (err error) {
	for _, fd := range p {
		if e := unix.PidfdSendSignal(fd, sig, nil, 0); e != nil && e != unix.ESRCH {
			err = errors.Join(err, fmt.Errorf("pidfd_send_signal: %w", e))
		}
	}
	return err
}

func (p processes) close() {
	for _, fd := range p {
		unix.Close(fd) // nothing was written
	}
}
