//go:build linux

package empty

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func never() error { return nil }

// tree is a folder with one that is deeper than is gone down, and with what deep folders are called when they are moved up.
func tree(t *testing.T) *os.File {
	t.Helper()
	dir := t.TempDir()
	deep := filepath.Join(dir, strings.Repeat("d/", 3*maxDepth))
	for _, d := range []string{deep, filepath.Join(dir, ".tare-deep-1", "sub"), filepath.Join(dir, ".tare-deep-2")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{filepath.Join(deep, "f"), filepath.Join(dir, ".tare-deep-3")} {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// The names of moved folders may be taken: nothing is replaced, and nothing is left.
func TestFolderWithTheNamesOfMovedOnes(t *testing.T) {
	f := tree(t)
	if err := Folder(f, never); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(f.Name())
	if err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestLinksAreNotFollowed(t *testing.T) {
	outside := t.TempDir()
	kept := filepath.Join(outside, "kept")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := tree(t)
	if err := os.Symlink(outside, filepath.Join(f.Name(), "d", "link")); err != nil {
		t.Fatal(err)
	}
	if err := Folder(f, never); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("what the link led to: %v", err)
	}
}

func TestFolderStops(t *testing.T) {
	f := tree(t)
	stop := errors.New("stop")
	asked := 0
	err := Folder(f, func() error {
		if asked++; asked > 2 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) {
		t.Errorf("%v, want %v", err, stop)
	}
	if left, err := os.ReadDir(f.Name()); err != nil || len(left) == 0 {
		t.Errorf("nothing is left of a folder whose emptying was stopped, %v", err)
	}
}
