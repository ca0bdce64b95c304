package chart

import (
	"testing"

	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// Every factor can be a figure's axis. Treatments that differ only in it are one panel, in the order of its values.
func TestAFigureByEveryFactor(t *testing.T) {
	for _, p := range notebooktest.Pairs() {
		if p.Factor.Name == byIsolation {
			continue // a staircase
		}
		s := sample()
		s.Rows = nil
		for _, of := range []notebook.Treatment{p.B, p.A} {
			r := row("bm large", 1, 0)
			if r.Treatment = of; of.HostCores > 0 {
				r.HostCores = of.HostCores
			}
			r.Values = []data.Value{{}}
			s.Rows = append(s.Rows, r)
		}
		f := notebook.Figure{Name: "Figure 1", Workload: "cpu", By: p.Factor.Name}
		s.Folders = []data.Folder{{Host: "h", Study: notebook.Study{Figures: []notebook.Figure{f}}}}
		panels := split(s, f)
		if len(panels) != 1 || len(panels[0].Rows) != 2 || panels[0].Places[0] == panels[0].Places[1] {
			t.Errorf("by %s: %d panels, want one with two places", p.Factor.Name, len(panels))
			continue
		}
		if ordered := p.Factor.Values != nil || p.Factor.Name == notebook.FactorRate.Name || p.Factor.Name == notebook.FactorPull.Name; ordered && panels[0].Rows[0].Treatment.ID != p.A.ID {
			t.Errorf("by %s: %q", p.Factor.Name, panels[0].Places)
		}
	}
}
