package idlecost

import (
	"strings"
	"testing"

	"tare/desk/chart"
	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// The figure has a line for each platform, over the study's numbers of idle guests.
func TestTheSlowdownIsDrawn(t *testing.T) {
	f := notebooktest.New(2)
	f.Study.Name, f.Study.Kind, f.Study.Config = name, name, config{Guests: []int{1, 4}, Runs: 5}
	f.Add("cpu bm large", 1)
	f.Add("cpu vm qemu kvm pinned large", 1.2)
	metrics := []notebook.Metric{{Name: metric(4), Unit: "1", Better: notebook.Lower}, {Name: metric(1), Unit: "1", Better: notebook.Lower}, {Name: wakeUps, Unit: "1/s", Better: notebook.Lower}}
	f.Study.Metrics["cpu"], f.Study.Also = metrics[0], map[string][]notebook.Metric{"cpu": metrics[1:]}
	f.Trial = func(x *notebook.Trial) {
		x.Figures = map[string]float64{metrics[0].Name: x.Value, metrics[1].Name: 1 + (x.Value-1)/4, metrics[2].Name: 40}
	}
	s, err := data.Read([]string{f.Write(t)}, data.Options{Kinds: []data.Kind{&Kind}})
	if err != nil {
		t.Fatal(err)
	}
	var drawn []chart.Figure
	for _, fig := range chart.OfPanels(chart.Panels(s), Kind.Figures...) {
		if strings.HasSuffix(fig.File, "-idle") {
			drawn = append(drawn, fig)
		}
	}
	if len(drawn) != 1 {
		t.Fatalf("%d figures of slowdowns, want one", len(drawn))
	}
	for _, want := range []string{"beside 1", "1.198 (", "times beside 4", "each idle guest 40.0 wake-ups a second"} {
		if !strings.Contains(drawn[0].Alt, want) {
			t.Errorf("%q has no %q", drawn[0].Alt, want)
		}
	}
}
