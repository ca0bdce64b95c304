//go:build linux

package engine

import (
	"os"
	"path/filepath"
	"testing"

	"tare/lab/journal"
)

// A controller is removed again only if nobody else uses it.
func TestUndoController(t *testing.T) {
	dir := t.TempDir()
	file, other := filepath.Join(dir, "cgroup.subtree_control"), filepath.Join(dir, "system.slice", "cgroup.subtree_control")
	limit := filepath.Join(dir, "system.slice", "cpuset.cpus")
	if err := os.Mkdir(filepath.Dir(other), 0o700); err != nil {
		t.Fatal(err)
	}
	undo := func(used, cpus string) string {
		t.Helper()
		for f, text := range map[string]string{file: "", other: used, limit: cpus} {
			if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := undoController(t.Context(), journal.Entry{Target: file, Detail: map[string]string{detailController: "cpuset"}}); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got := undo("cpu memory", "\n"); got != "-cpuset" {
		t.Errorf("nobody uses it: wrote %q", got)
	}
	if got := undo("cpu cpuset", "\n"); got != "" {
		t.Errorf("another uses it: wrote %q", got)
	}
	if got := undo("", "0-1\n"); got != "" {
		t.Errorf("another, with no cgroups below it, has a limit by it: wrote %q", got)
	}
	if err := undoController(t.Context(), journal.Entry{Target: filepath.Join(dir, "gone", "cgroup.subtree_control"), Detail: map[string]string{detailController: "cpuset"}}); err != nil {
		t.Errorf("a hierarchy that is gone: %v", err)
	}
}
