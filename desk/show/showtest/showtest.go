// Package showtest is what the tests of kinds of study share: it reads, draws and reports a made-up folder.
package showtest

import (
	"os"
	"regexp"
	"testing"

	"tare/desk/chart"
	"tare/desk/data"
	"tare/desk/page"
	"tare/desk/show"
	"tare/desk/words"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// Read reads a folder with one kind.
func Read(t *testing.T, f *notebooktest.Folder, k *show.Kind) *data.Summary {
	t.Helper()
	s, err := data.Read([]string{f.Write(t)}, data.Options{Kinds: []data.Kind{k}})
	if err != nil {
		t.Fatal(err)
	}
	s.Folders[0].Dir = "R" // a test's folder has another name each time
	return s
}

// Figures draws the figures of a folder.
func Figures(t *testing.T, f *notebooktest.Folder, k *show.Kind) []chart.Figure {
	t.Helper()
	s := Read(t, f, k)
	return chart.OfPanels(chart.Panels(s), show.Figures(s)...)
}

// Page is the report of a folder, without what its tables are as CSV files.
func Page(t *testing.T, f *notebooktest.Folder, k *show.Kind) []byte {
	t.Helper()
	files, err := page.WriteSummary(Read(t, f, k), t.TempDir(), page.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return sheets.ReplaceAll(b, []byte(`href="data:text/csv"`))
}

// sheets are the tables of a page as CSV files.
var sheets = regexp.MustCompile(`href="data:text/csv[^"]*"`)

// Sentence is a message and its sentence in English.
type Sentence struct {
	Of   *notebook.Message
	Want string
}

// Say checks the sentences of messages.
func Say(t *testing.T, all ...Sentence) {
	t.Helper()
	for _, s := range all {
		if got := words.Message(s.Of); got != s.Want {
			t.Errorf("%v:\n%s, want\n%s", s.Of, got, s.Want)
		}
	}
}
