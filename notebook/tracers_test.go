package notebook

import (
	"slices"
	"testing"
)

// Reports look metrics up by their names and list each tracer's where its entry says.
func TestTracersMetricsAreListedOnce(t *testing.T) {
	of := map[string]string{}
	for _, m := range TracerMetrics {
		if of[m.Name] != "" {
			t.Errorf("the tracers %s and %s both have the metric %s", of[m.Name], m.Tracer, m.Name)
		}
		of[m.Name] = m.Tracer
	}
	for _, tr := range Tracers {
		for _, m := range tr.Metrics {
			if of[m.Name] != tr.Name {
				t.Errorf("the metric %s is listed as one of %q, want %q", m.Name, of[m.Name], tr.Name)
			}
		}
		if tr.After == "" || len(tr.Metrics) == 0 {
			continue
		}
		i := slices.IndexFunc(TracerMetrics, func(m TracerMetric) bool { return m.Name == tr.Metrics[0].Name })
		if i == 0 || TracerMetrics[i-1].Name != tr.After {
			t.Errorf("%s does not come after %s", tr.Metrics[0].Name, tr.After)
		}
	}
}
