package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/desk/compare"
	"tare/desk/data"
	"tare/internal/golden"
	"tare/notebook/notebooktest"
)

// compared writes the report of two folders. The second has a slower container, another kernel and another engine.
func compared(t *testing.T) (page string, text []byte) {
	t.Helper()
	at := t.TempDir()
	write := func(name string, seed uint64, ratio float64, kernel, engine string) string {
		f := notebooktest.New(8)
		f.Seed, f.Rounds, f.Noise, f.Host.Kernel = seed, 20, 0.002, kernel
		f.Add("bm large", 4).Add("bm aa large", 4).Add("cn docker pinned large", 4*ratio).Add("cn "+engine+" vanilla large", 4.2)
		dir := filepath.Join(at, name)
		if err := os.Rename(f.Write(t), dir); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	dirs := []string{write("before", 1, 1.01, "6.1", "crun"), write("after", 2, 1.06, "6.18", "podman")}
	read := func(dirs ...string) *data.Summary {
		s, err := data.Read(dirs, data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	c, err := compare.From(read(dirs[0]), read(dirs[1]), 0.01)
	if err != nil {
		t.Fatal(err)
	}
	files, err := WriteComparison(c, filepath.Join(at, "out"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 3 || !strings.HasSuffix(files[1], "comparison.svg") {
		t.Errorf("files %q", files)
	}
	if text, err = os.ReadFile(files[0]); err != nil {
		t.Fatal(err)
	}
	return files[0], text
}

// The report of two folders says what changed, what else differs, and where both come from.
func TestReportOfAComparison(t *testing.T) {
	_, text := compared(t)
	golden.Check(t, "comparison.html", golden.Excerpt(t, text, "<header>", "</header>"))
	for _, want := range []string{"The kernel: 6.1 before, 6.18 after", "Only in before", "Only in after", "A/A check of after", "Folder before", "Folder after", `<section id="glossary">`, "the host’s change", `download="comparison.csv"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for _, not := range []string{`id="distributions"`, "NaN"} {
		if strings.Contains(string(text), not) {
			t.Errorf("the page says %q", not)
		}
	}
	harmless(t, "comparison", text)
}
