//go:build linux

package qemu

import (
	"testing"
	"time"
)

// The frequency of the time-stamp counter is what the clock says of it over a longer time.
func TestTSC(t *testing.T) {
	first := tscKHz()
	begin := now()
	time.Sleep(100 * time.Millisecond) // what is measured is time
	end := now()
	long := float64(end.cycles-begin.cycles) / float64(end.time.Sub(begin.time)) * float64(time.Millisecond)
	if first == 0 || long < 0.99*float64(first) || long > 1.01*float64(first) {
		t.Errorf("%d kHz, and over a longer time %.0f", first, long)
	}
}
