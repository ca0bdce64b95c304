//go:build linux

package qemu

import (
	"sync"
	"time"
)

// cycles reads the CPU's time-stamp counter, which QEMU's emulation passes on to its guests.
func cycles() uint64

// instant is a moment by the time-stamp counter and by the clock.
type instant struct {
	cycles uint64
	time   time.Time
}

// now reads both at once: of a few readings, the one in which least time passed between the counter and the clock.
func now() (best instant) {
	least := ^uint64(0)
	for range 8 {
		before, at := cycles(), time.Now()
		if took := cycles() - before; took < least {
			least, best = took, instant{before + took/2, at}
		}
	}
	return best
}

// tscTime is how long the counter runs while its frequency is measured, to about one in ten thousand.
const tscTime = 10 * time.Millisecond

// tscKHz is the frequency of the time-stamp counter, measured once, so that all guests are told the same.
var tscKHz = sync.OnceValue(func() uint64 {
	begin := now()
	time.Sleep(tscTime) // what is measured is time
	end := now()
	return uint64(float64(end.cycles-begin.cycles) / end.time.Sub(begin.time).Seconds() / 1000)
})
