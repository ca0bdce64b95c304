package words

import (
	"testing"

	"tare/notebook"
)

func TestEveryTracerMetricHasItsText(t *testing.T) {
	for _, m := range notebook.TracerMetrics {
		if TracerMetric(m.Name) == "" {
			t.Errorf("no text says what %s of the tracer %s is", m.Name, m.Tracer)
		}
	}
	if got, want := len(tracerMetrics), len(notebook.TracerMetrics); got != want {
		t.Errorf("there are %d texts of %d metrics", got, want)
	}
}
