package starting

import (
	"strings"
	"testing"

	"tare/desk/chart"
	"tare/desk/show/showtest"
	"tare/internal/golden"
	"tare/notebook/notebooktest"
)

// The report has the moments of starts and restores next to the published ones, and says how guests were saved.
func TestStarts(t *testing.T) {
	got := string(golden.Excerpt(t, showtest.Page(t, notebooktest.Begun(), &Kind), `<caption id="table-1-starts-name"`, "</p>"))
	for _, w := range []string{"saved", "restored", "answer after restore", "published: KVM", "10.342", "container of crun restored: by CRIU"} {
		if !strings.Contains(strings.ToLower(got), strings.ToLower(w)) {
			t.Errorf("no %q in\n%s", w, got)
		}
	}
}

// Starts are drawn by their moments.
func TestTimeline(t *testing.T) {
	var f *chart.Figure
	for _, of := range showtest.Figures(t, notebooktest.Begun(), &Kind) {
		if strings.HasSuffix(of.File, "-timeline") {
			f = &of
		}
	}
	if f == nil || !strings.Contains(f.Alt, "guest created 0.0296 s (30 %)") || !strings.Contains(string(f.SVG()), "first useful answer") {
		t.Errorf("%+v", f)
	}
}
