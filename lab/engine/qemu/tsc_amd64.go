//go:build linux

package qemu

import "time"

// cycles reads the CPU's time-stamp counter, which QEMU's emulation passes on to its guests.
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
	return uint64(float64(n-begun.cycles) / now.Sub(begun.time).Seconds() / 1000) // a product of integers would overflow after two hours
}
