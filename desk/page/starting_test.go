package page

import (
	"strings"
	"testing"

	"tare/notebook/notebooktest"
)

// The report has the moments of starts and of restores beside the published ones, and says how; and all metrics of starts under load.
func TestStarts(t *testing.T) {
	for name, c := range map[string]struct {
		folder *notebooktest.Folder
		table  string
		want   []string
	}{
		"start-up": {notebooktest.Begun(), "starts", []string{"saved", "restored", "answer after restore", "published: KVM", "10.342", "container of crun restored: by CRIU"}},
		"bring-up": {notebooktest.Raised(), "secondary", []string{"start time, p99", "time to first answer, longest", "samples in the kernel", "timer error"}},
	} {
		got := string(excerpt(t, weighedPage(t, c.folder), `<caption id="table-1-`+c.table+`-name"`, "</p>"))
		for _, w := range c.want {
			if !strings.Contains(strings.ToLower(got), strings.ToLower(w)) {
				t.Errorf("%s: no %q in\n%s", name, w, got)
			}
		}
	}
}
