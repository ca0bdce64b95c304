//go:build linux

package hugepages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/lab/journal"
	"tare/notebook"
)

// kernel is a tree with the kernel's files as they may be. A real one shows the written value among the others; this one has only that value.
func kernel(t *testing.T, files map[string]string) Tree {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Tree(root)
}

func (t Tree) said(test *testing.T, name string) string {
	test.Helper()
	b, err := os.ReadFile(t.path(name))
	if err != nil {
		test.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// The host is as it was when the changes are undone, and when a run that made them died and the next recovers.
func TestTheHostIsAsItWas(t *testing.T) {
	tree := kernel(t, map[string]string{"enabled": "madvise", "hugepages-64kB/enabled": "inherit"})
	state := t.TempDir()
	j, err := journal.Open(state)
	if err != nil {
		t.Fatal(err)
	}
	c, err := tree.Set(t.Context(), j, notebook.HugePagesLarge)
	if err != nil {
		t.Fatal(err)
	}
	if got := tree.said(t, "enabled") + " " + tree.said(t, "hugepages-64kB/enabled"); got != "never always" {
		t.Errorf("the files say %q, want never always", got)
	}
	if err := c.Undo(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Set(t.Context(), j, notebook.HugePagesAlways); err != nil {
		t.Fatal(err)
	}
	if got := tree.said(t, "enabled"); got != "always" {
		t.Errorf("enabled says %q, want always", got)
	}
	if err := j.Close(); err == nil { // the run dies
		t.Error("the journal is closed without a word, and a change is not undone")
	}
	if _, err := journal.Recover(t.Context(), state, tree.Undo()); err != nil {
		t.Fatal(err)
	}
	if got := tree.said(t, "enabled") + " " + tree.said(t, "hugepages-64kB/enabled"); got != "madvise inherit" {
		t.Errorf("the files say %q, want madvise inherit", got)
	}
}

// Nothing but the kernel's files is written, whatever a journal says, and what the kernel does not have is named.
func TestNothingElseIsWritten(t *testing.T) {
	tree := kernel(t, map[string]string{"enabled": "madvise"})
	other := filepath.Join(t.TempDir(), "other")
	if err := tree.putBack(t.Context(), journal.Entry{Kind: Kind, Target: other, Detail: map[string]string{detailFrom: "x"}}); err == nil {
		t.Error("another file was taken for the kernel's")
	}
	if err := tree.Supports(notebook.HugePagesLarge); err == nil || !strings.Contains(err.Error(), "hugepages-64kB") {
		t.Errorf("%v, want what is missing", err)
	}
	for _, value := range []string{notebook.HugePagesAlways, notebook.HugePagesNever, ""} {
		if err := tree.Supports(value); err != nil {
			t.Errorf("%q: %v", value, err)
		}
	}
}
