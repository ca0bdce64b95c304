package chart

import (
	"slices"
	"strings"
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

// A figure of workloads has them side by side, in the study's order. Parameters in which one of them has several values tell its places apart; the
// figure's own keep only rows that have these values or lack the parameter.
func TestAFigureOfWorkloads(t *testing.T) {
	s := sample()
	s.Rows = nil
	for _, id := range []string{"web addresses=fixed cn crun pinned large", "hash form=dense addresses=fixed cn crun pinned large", "hash form=sparse addresses=fixed cn crun pinned large",
		"fio does=read addresses=fixed cn crun pinned large", "fio does=mixed addresses=fixed cn crun pinned large", "web addresses=fixed bm large", "web addresses=random bm large"} {
		r := row(id, 1, 0)
		r.Values = []data.Value{{}}
		s.Rows = append(s.Rows, r)
	}
	f := notebook.Figure{Name: "Figure 1", By: notebook.ByWorkload, Params: map[string]string{"addresses": "fixed", "does": "mixed"}}
	s.Folders = []data.Folder{{Host: "h", Study: notebook.Study{Figures: []notebook.Figure{f}}}}
	panels := split(s, f)
	if len(panels) != 1 {
		t.Fatalf("%d panels, want one", len(panels))
	}
	p := panels[0]
	if want := []string{"web", "web", "hash (form=dense)", "hash (form=sparse)", "fio"}; !slices.Equal(p.Places, want) {
		t.Errorf("places %q, want %q", p.Places, want)
	}
	if want := "all workloads (addresses=fixed) at large"; !strings.HasPrefix(p.where, want) {
		t.Errorf("the panel is of %q, want %q", p.where, want)
	}
	// One that is measured in another metric has a panel of its own, and both say in which.
	s.Rows[4].Metric = notebook.Metric{Name: "bandwidth", Unit: "GB/s", Better: notebook.Higher}
	if both := split(s, f); len(both) != 2 || !strings.HasSuffix(both[0].where, ", execution time") || !strings.HasSuffix(both[1].where, ", bandwidth") {
		t.Errorf("%d panels, of %q, want two that name their metrics", len(both), both[0].where)
	}
	for _, f := range OfPanels(panels) {
		if f.Alt == "" || len(f.SVG()) == 0 {
			t.Errorf("%s: no picture", f.Title)
		}
	}
}
