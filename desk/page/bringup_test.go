package page

import (
	"strings"
	"testing"

	"tare/notebook/notebooktest"
)

// The report has all metrics of starts under load.
func TestBringups(t *testing.T) {
	got := string(excerpt(t, weighedPage(t, notebooktest.Raised()), `<caption id="table-1-secondary-name"`, "</p>"))
	for _, w := range []string{"start time, p99", "time to first answer, longest", "samples in the kernel", "timer error"} {
		if !strings.Contains(strings.ToLower(got), strings.ToLower(w)) {
			t.Errorf("no %q in\n%s", w, got)
		}
	}
}
