package data_test

import (
	"testing"

	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// A baseline can be chosen by every factor, and treatments that differ only in one factor are two rows.
func TestABaselineByEveryFactor(t *testing.T) {
	for _, p := range notebooktest.Pairs() {
		f := notebooktest.New(4).Add("cpu vm qemu kvm pinned large", 1)
		f.Study.Treatments, f.Mean = []notebook.Treatment{p.A, p.B}, map[string]float64{p.A.ID: 2, p.B.ID: 6}
		s, err := data.Read([]string{f.Write(t)}, data.Options{Baseline: map[string]string{p.Factor.Name: p.Of[0]}})
		if err != nil {
			t.Errorf("%s: %v", p.Factor.Name, err)
			continue
		}
		if len(s.Rows) != 2 {
			t.Errorf("%s: %d rows, want 2", p.Factor.Name, len(s.Rows))
		}
		for _, r := range s.Rows {
			if want := map[string]float64{p.A.ID: 1, p.B.ID: 3}[r.Treatment.ID]; r.Baseline != p.A.ID || r.Ratio < want-0.1 || r.Ratio > want+0.1 {
				t.Errorf("%s: the ratio of %s to %s is %g, want %g", p.Factor.Name, r.Treatment.ID, r.Baseline, r.Ratio, want)
			}
		}
	}
}
