//go:build linux

package qemu

import "time"

// cycles reads the CPU's time-stamp counter, which software emulation gives its guests as theirs.
func cycles() uint64

// instant is a moment by the time-stamp counter and by the clock.
type instant struct {
	cycles uint64
	time   time.Time
}

// begun is when this process began.
var begun = instant{cycles(), time.Now()}

// tscTime is how long the counter must have run for its frequency to be known to about one in ten thousand.
const tscTime = 10 * time.Millisecond

// tscKHz is the frequency of the time-stamp counter.
func tscKHz() uint64 {
	if passed := time.Since(begun.time); passed < tscTime {
		time.Sleep(tscTime - passed)
	}
	now, n := time.Now(), cycles()
	return (n - begun.cycles) * uint64(time.Millisecond) / uint64(now.Sub(begun.time))
}
