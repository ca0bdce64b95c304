package idlecost

import (
	"testing"

	"tare/desk/show/showtest"
)

// The metrics have keys in folders and captions in texts. In folders of format 1 the captions were the names.
func TestMetricsHaveKeysAndCaptions(t *testing.T) {
	showtest.Metrics(t, name, nil, map[string]string{
		"slowdown beside 1 idle guest":  metric(1),
		"slowdown beside 4 idle guests": metric(4),
		"CPU time of an idle guest":     cpuTime,
		"wake-ups of an idle guest":     wakeUps,
	})
}
