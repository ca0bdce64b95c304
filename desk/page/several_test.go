package page

import (
	"os"
	"strings"
	"testing"

	"tare/internal/golden"
	"tare/notebook/notebooktest"
)

// A figure of several metrics is a radar chart without what was emulated, and a table of changes next to the published ones.
func TestSeveral(t *testing.T) {
	dir := notebooktest.Benchmarks().Write(t)
	files, err := readAndWrite(dir, dir)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	table := string(golden.Excerpt(t, page, `<caption id="several-1-name"`, "</p>"))
	for _, want := range []string{"StarDGEMM", "more is better", "less is better", "−2.33", "−14.55", "−0.16", "∋&nbsp;0", "Gflop/s"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	if n := strings.Count(table, "<tr><th scope=\"row\">"); n != 6 {
		t.Errorf("%d metrics in the table, want 6", n)
	}
	radar := string(golden.Excerpt(t, page, `<figure id="several-1-figure"`, "</figure>"))
	for _, want := range []string{"latency (inverse)", "Docker, CPU", "VM"} {
		if !strings.Contains(radar, want) {
			t.Errorf("no %q in\n%s", want, radar)
		}
	}
	if strings.Contains(radar, "emulated)") {
		t.Error("what was emulated is in the radar chart")
	}
	if second := string(golden.Excerpt(t, page, `<caption id="several-2-name"`, "</p>")); !strings.Contains(second, "Table I") {
		t.Errorf("the second table is\n%s", second)
	}
}
