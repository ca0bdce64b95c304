package page

import (
	"testing"

	"tare/internal/golden"
	"tare/notebook/notebooktest"
)

// The report has the moments of starts and of restores with the published ones, and says who was not restored.
func TestStartsTable(t *testing.T) {
	golden.Check(t, "starts.html", excerpt(t, weighedPage(t, notebooktest.Begun()), `<caption id="table-1-starts-name"`, "</p>"))
}

// The report has all metrics of starts under load.
func TestStartsUnderLoad(t *testing.T) {
	golden.Check(t, "bring-up.html", excerpt(t, weighedPage(t, notebooktest.Raised()), `<caption id="table-1-secondary-name"`, "</p>"))
}
