//go:build linux

package qemu

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What a process left that died while it tried a machine is removed, and nothing else.
func TestSweep(t *testing.T) {
	state := t.TempDir()
	d := &Driver{}
	d.State = state
	left, err := d.tryFolder()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{filepath.Join(left, "qmp"), filepath.Join(state, "lock")} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	removed, err := Sweep(state)
	if err != nil || !slices.Equal(removed, []string{left}) {
		t.Errorf("removed %q, %v; want %q", removed, err, left)
	}
	entries, err := os.ReadDir(state)
	if err != nil || len(entries) != 1 || entries[0].Name() != "lock" {
		t.Errorf("left: %v, %v", entries, err)
	}
}
