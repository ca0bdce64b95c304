package idlecost

import (
	"testing"

	"tare/desk/show/showtest"
)

// The metrics have captions. No folder of format 1 is of this kind.
func TestMetricsHaveCaptions(t *testing.T) {
	showtest.Captions(t, map[string]string{
		metric(1): "slowdown beside 1 idle guest",
		metric(4): "slowdown beside 4 idle guests",
		cpuTime:   "CPU time of an idle guest",
		wakeUps:   "wake-ups of an idle guest",
	})
}
