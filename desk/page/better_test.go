package page_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tare/desk/chart"
	"tare/desk/data"
	"tare/desk/page"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// Tables and figures say where higher is better, each metric that matters has both, and the answer uses its direction.
func TestHigherIsBetter(t *testing.T) {
	s, err := data.Read([]string{notebooktest.Stream().Write(t)}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files, err := page.WriteSummary(s, dir, page.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	said := strings.ReplaceAll(string(text), "\u00a0", " ")
	for _, want := range []string{
		"Stream in Docker has 1", " lower copy bandwidth with --cpus (", "Docker lowers the copy bandwidth of stream by at most ", "2 more metrics have tables of their own.",
		"<small>copy bandwidth, GB/s, higher is better</small>", "<small>triad bandwidth, GB/s, higher is better</small>", "<small>latency, us</small>",
		"per cent more than bare metal, higher is better", "Change against bare metal, triad bandwidth", "except where the head of the column says that higher is better",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for _, not := range []string{"costs 1", "latency, us, higher"} {
		if strings.Contains(said, not) {
			t.Errorf("the page says %q", not)
		}
	}
	if figures, err := filepath.Glob(filepath.Join(dir, page.FiguresDir, "*-change.svg")); err != nil || len(figures) != 3 {
		t.Errorf("%d figures of changes, %v; want 3", len(figures), err)
	}
}

// A study may declare a figure of one of them, which is then not drawn again.
func TestADeclaredFigureOfASecondaryMetric(t *testing.T) {
	f := notebooktest.Stream()
	f.Study.Figures = []notebook.Figure{{Name: "Figure 1", Title: "triad", Workload: "stream", Metric: "triad bandwidth", By: "instance"}}
	s, err := data.Read([]string{f.Write(t)}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	figures := chart.OfPanels(chart.Panels(s))
	var titles []string
	for _, f := range figures {
		titles = append(titles, f.Title)
	}
	want := []string{
		"Figure 1, change against bare metal, triad bandwidth – stream", "Figure 1 of the paper, redrawn from these runs: triad – stream",
		"Figure 1, every run – stream", "Figure 1, round by round – stream",
		"Change against bare metal, copy bandwidth: stream", "Mean copy bandwidth: stream", "Every run: stream", "Round by round: stream",
		"Change against bare metal, latency: stream", "Mean latency: stream", "Every run: stream", "Round by round: stream",
	}
	if !slices.Equal(titles, want) {
		t.Errorf("figures %q\nwant %q", titles, want)
	}
	if !strings.Contains(figures[1].Alt, "VM, CPU set: 8.0") {
		t.Errorf("the second says %s", figures[1].Alt)
	}
}

// The part of a page about a workload does not mention a secondary metric that the workload lacks. A declared figure draws the others.
func TestAMetricThatNotAllWorkHas(t *testing.T) {
	f := notebooktest.New(4)
	f.Rounds = 3
	f.Study.Metrics["gpu"] = notebook.Metric{Name: "application time", Unit: "s"}
	f.Study.Also = map[string][]notebook.Metric{"gpu": {{Name: "bandwidth", Unit: "B/s", Better: notebook.Higher}, {Name: "compiled", Unit: "s", Better: notebook.Lower}}}
	f.Study.Figures = []notebook.Figure{{Name: "Bandwidth", Title: "of memory", Workload: "gpu", Metric: "bandwidth", By: "application"}}
	for _, app := range []string{"triad", "lud"} {
		for _, place := range []string{"bm", "cn docker pinned"} {
			f.Add("gpu application="+app+" "+place+" 1/1GB", 1)
		}
	}
	f.Trial = func(x *notebook.Trial) {
		if strings.Contains(x.Treatment, "triad") {
			x.Figures = map[string]float64{"bandwidth": 5 * x.Value, "compiled": 1}
		}
	}
	s, err := data.Read([]string{f.Write(t)}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Rows {
		want := 0
		if r.Treatment.Params["application"] == "triad" {
			want = 2
		}
		if len(r.Figures) != want || len(r.Secondary) != want {
			t.Errorf("%s has %d rows of secondary metrics, and %d of these; want %d", r.Treatment.ID, len(r.Figures), len(r.Secondary), want)
		}
	}
	for _, f := range chart.OfPanels(chart.Panels(s)) {
		if strings.Contains(f.Alt, "no value") || strings.Contains(f.Title, "Bandwidth") && strings.Contains(f.Alt, "lud") {
			t.Errorf("%s says %s", f.Title, f.Alt)
		}
	}
}
