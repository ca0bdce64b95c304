// Package golden compares what tests make with files under testdata, which `go test -update` writes anew. Such a file is of
// one component, small enough to be read when it changes.
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

var update = flag.Bool("update", false, "write the files under testdata anew")

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
		t.Errorf("%s is not what it was; look at it, and run the test with -update if it is better: %s", name, d)
	}
}

// Difference shows where two texts part; empty: they are the same.
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

// Excerpt is the part of a page between two texts.
func Excerpt(t *testing.T, page []byte, from, to string) []byte {
	t.Helper()
	_, rest, found := bytes.Cut(page, []byte(from))
	body, _, closed := bytes.Cut(rest, []byte(to))
	if !found || !closed {
		t.Fatalf("the page has no %s … %s", from, to)
	}
	return append(bytes.TrimSpace(body), '\n')
}
