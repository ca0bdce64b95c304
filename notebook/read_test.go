package notebook

import (
	"strconv"
	"testing"
)

// A folder with so many treatments that the desk would take minutes is refused.
func TestTreatmentsAreBounded(t *testing.T) {
	s := Study{Metrics: map[string]Metric{"w": {Name: "time", Unit: "s"}}}
	for i := range MaxTreatments + 1 {
		s.Treatments = append(s.Treatments, Treatment{ID: strconv.Itoa(i), Workload: "w"})
	}
	if err := s.check(); err == nil || err.Error() != `it has 2001 "treatments"; a study may have at most 2000` {
		t.Errorf("%v", err)
	}
	s.Treatments = s.Treatments[1:]
	if err := s.check(); err != nil {
		t.Error(err)
	}
}
