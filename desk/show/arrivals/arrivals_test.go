package arrivals

import (
	"slices"
	"strings"
	"testing"

	"tare/desk/chart"
	"tare/desk/show/showtest"
	"tare/internal/golden"
	"tare/notebook"
	kind "tare/notebook/kinds/arrivals"
	"tare/notebook/notebooktest"
)

// The report draws start times over the rate and names each engine's knee next to the published values. It draws what the sampled
// engine does. The test compares texts, because three more reference pictures would be too large.
func TestStarts(t *testing.T) {
	figures := map[string]chart.Figure{}
	for _, f := range showtest.Figures(t, notebooktest.Raised(), &Kind) {
		figures[f.File[strings.LastIndex(f.File, "-")+1:]] = f
	}
	for file, want := range map[string]struct{ caption, alt, drawn string }{
		"up": {"Docker, CPU quota (--cpus) between 4.00 and 8.00 a second (6.00 a second completed); crun, CPU quota none up to 16.0 a second.",
			"8.00 a second: mean 0.897 s, 95th percentile 1.50 s, first answer 0.947 s, 6.00 a second completed, client 0.20 ms late and at 0.92 % of a core", "stroke-dasharray"},
		"flames":  {"", "dockerd 80 %, runc 20 %", "daemon.(*Daemon).containerStart"},
		"classes": {"", "all in the kernel: 55.0 %", "mounts"},
	} {
		f, found := figures[file]
		if !found {
			t.Errorf("no figure %s", file)
			continue
		}
		drawn := strings.Contains(string(f.SVG()), want.drawn)
		if !drawn || !strings.Contains(f.Caption, want.caption) || !strings.Contains(f.Alt, want.alt) {
			t.Errorf("%s: drawn %v, %s %s", file, drawn, f.Caption, f.Alt)
		}
	}
	for _, file := range []string{"flames", "classes"} {
		f := figures[file]
		golden.Check(t, file+".txt", []byte(f.Caption+"\n"+f.Alt+"\n"))
	}
}

// The report has all metrics of starts under load.
func TestBringups(t *testing.T) {
	got := string(golden.Excerpt(t, showtest.Page(t, notebooktest.Raised(), &Kind), `<caption id="table-1-secondary-name"`, "</p>"))
	for _, w := range []string{"start time, p99", "time to first answer, longest", "samples in the kernel", "timer error"} {
		if !strings.Contains(strings.ToLower(got), strings.ToLower(w)) {
			t.Errorf("no %q in\n%s", w, got)
		}
	}
}

// Spacings of one rate are compared as bars. Nothing is drawn over the rate, which has one value only.
func TestSpacingsAreNotDrawnOverTheRate(t *testing.T) {
	f := notebooktest.New(2)
	f.Study.Name = "arrivals"
	f.Study.Figures = []notebook.Figure{{Name: "Spacing", Title: "Start time", Workload: "hashing", By: notebook.FactorSpacing.Name}}
	c := &kind.Config{ForS: 4, Least: 6, Most: 40, TimeoutS: 30}
	f.Study.Kind, f.Study.Config = kind.Name, c
	for i, spacing := range notebook.Spacings {
		f.Add("hashing rate=8 spacing="+spacing+" cn crun vanilla large", float64(i+1))
	}
	f.Study.Metrics["hashing"], f.Study.Also = kind.StartMean, map[string][]notebook.Metric{"hashing": c.Also()}
	f.Trial = func(x *notebook.Trial) {
		b := &kind.Bringup{Offered: 8, Planned: 2, Starts: []kind.Request{{CallS: x.Value}, {AtS: 0.1, CallS: x.Value}}}
		x.Seen, x.Figures = kind.Seen{Bringup: b}, b.Figures()
	}
	all := showtest.Figures(t, f, &Kind)
	if slices.ContainsFunc(all, func(f chart.Figure) bool { return strings.HasSuffix(f.File, "-bring-up") }) {
		t.Error("start times are drawn over a rate with one value")
	}
	if !slices.ContainsFunc(all, func(f chart.Figure) bool { return strings.Contains(f.Alt, "burst") }) {
		t.Error("no figure has the spacings")
	}
}
