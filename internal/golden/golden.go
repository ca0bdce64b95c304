// Package golden compares the output of tests with files under testdata. `go test -update` rewrites these files. Each one belongs to
// one component and is small enough to review when it changes.
package golden

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the files under testdata")

// Check compares bytes with a file of the package's folder testdata.
func Check(t testing.TB, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if d := Difference(string(got), string(want)); d != "" {
		t.Errorf("%s has changed; if the change is right, run the test with -update: %s", name, d)
	}
}

// Difference shows the first line where two texts differ; empty if they are equal.
func Difference(got, want string) string {
	if got == want {
		return ""
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		a, b := "(the end)", "(the end)"
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a == b {
			continue
		}
		j := 0
		for j < len(a) && j < len(b) && a[j] == b[j] {
			j++
		}
		from := max(0, j-60)
		return fmt.Sprintf("line %d:\n  got  …%.200s\n  want …%.200s", i+1, a[from:], b[from:])
	}
	return "line ends"
}

// Excerpt is the part of a page from one text to another.
func Excerpt(t *testing.T, page []byte, from, to string) []byte {
	t.Helper()
	_, rest, found := bytes.Cut(page, []byte(from))
	body, _, closed := bytes.Cut(rest, []byte(to))
	if !found || !closed {
		t.Fatalf("the page has no %s … %s", from, to)
	}
	return append(bytes.TrimSpace(body), '\n')
}
