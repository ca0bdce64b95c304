package capacity

import (
	"testing"

	"tare/desk/show/showtest"
	"tare/notebook"
	kind "tare/notebook/kinds/capacity"
)

// The metrics have keys in folders and captions in texts. In folders of format 1 the captions were the names.
func TestMetricsHaveKeysAndCaptions(t *testing.T) {
	showtest.Metrics(t, kind.Name, []notebook.Metric{kind.Config{Metric: "p99", Bound: 0.2}.Figure(), kind.PerSecond}, map[string]string{
		"time per request at capacity (p99 at most 200ms)": "capacity_time(p99,200ms)",
		"capacity": "capacity_rate",
	})
}
