package tare

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// kindsOf are the packages of kinds of study below a folder.
func kindsOf(t *testing.T, folder string, others ...string) (names []string) {
	t.Helper()
	dirs, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		if d.IsDir() && !slices.Contains(others, d.Name()) {
			names = append(names, d.Name())
		}
	}
	if len(names) < 6 {
		t.Fatalf("%s has the kinds %q; there were six", folder, names)
	}
	return names
}

// A kind of study is known by its contract alone: one list names it, and no kind names another. What it records is a package of its own, which the
// two that make it and show it read.
func TestNobodyKnowsAKindOfStudy(t *testing.T) {
	lists := map[string]string{"lab/measure/": "tare/lab/measure/kinds", "desk/show/": "tare/desk/show/kinds"}
	rooms := map[string][]string{"lab/measure/": kindsOf(t, "lab/measure", "measuretest", "kinds"), "desk/show/": kindsOf(t, "desk/show", "kinds", "showtest")}
	records := kindsOf(t, filepath.Join("notebook", "kinds"))
	instruments := []string{"tare/bench", "tare/notebook/notebooktest"} // the promise of a kind's client; folders for tests
	for _, p := range packages(t) {
		for _, to := range p.Imports {
			for room, kinds := range rooms {
				name, in := strings.CutPrefix(to, "tare/"+room)
				if name, _, _ = strings.Cut(name, "/"); !in || !slices.Contains(kinds, name) {
					continue
				}
				if p.ImportPath != lists[room] && !strings.HasPrefix(p.ImportPath, "tare/"+room+name) {
					t.Errorf("%s imports %s: others know a kind of study only by its contract", p.ImportPath, to)
				}
			}
			name, in := strings.CutPrefix(to, "tare/notebook/kinds/")
			if !in || !slices.Contains(records, name) || slices.Contains(instruments, p.ImportPath) {
				continue
			}
			if p.ImportPath != "tare/lab/measure/"+name && p.ImportPath != "tare/desk/show/"+name {
				t.Errorf("%s imports %s: what a kind of study records is its own", p.ImportPath, to)
			}
		}
	}
}
