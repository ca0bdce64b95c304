//go:build linux

package qemu

import (
	"testing"
	"time"
)

// The frequency of the time-stamp counter is what the clock says of it over a longer time.
func TestTSC(t *testing.T) {
	first := tscKHz()
	begin := instant{cycles(), time.Now()}
	time.Sleep(100 * time.Millisecond) // what is measured is time
	now, n := time.Now(), cycles()
	long := float64(n-begin.cycles) / float64(now.Sub(begin.time)) * float64(time.Millisecond)
	if first == 0 || long < 0.99*float64(first) || long > 1.01*float64(first) {
		t.Errorf("%d kHz, and over a longer time %.0f", first, long)
	}
}
