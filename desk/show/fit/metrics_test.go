package fit

import (
	"testing"

	"tare/desk/show/showtest"
	"tare/notebook"
	kind "tare/notebook/kinds/fit"
)

// The metrics have keys in folders and captions in texts. In folders of format 1 the captions were the names.
func TestMetricsHaveKeysAndCaptions(t *testing.T) {
	showtest.Metrics(t, kind.Name, []notebook.Metric{kind.Config{Metric: "p95", Factor: 1.5}.Figure(), kind.Guests}, map[string]string{
		"share of the host that a guest needs (p95 below 1.5 times its value alone)": "host_share(p95,1.5)",
		"guests that fit": "guests_fit",
	})
}
