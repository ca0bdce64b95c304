//go:build linux

package programs

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"testing/fstest"

	"tare/notebook/durable"
)

// with has the test's programs embedded: their contents by name.
func with(t *testing.T, contents map[string]string) {
	t.Helper()
	files := fstest.MapFS{}
	for name, content := range contents {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		files[runtime.GOARCH+"/"+name+".gz"] = &fstest.MapFile{Data: b.Bytes()}
	}
	before := embedded
	embedded = files
	t.Cleanup(func() { embedded = before })
}

func TestFileIsWhatWasEmbedded(t *testing.T) {
	state := t.TempDir()
	with(t, map[string]string{Ruler: "new"})
	path, err := File(state, Ruler)
	if err != nil {
		t.Fatal(err)
	}
	for _, damage := range []func() error{
		func() error { return nil },
		func() error { return os.WriteFile(path, []byte("wen"), 0o755) },
		func() error { return os.Chmod(path, 0o644) },
		func() error { return os.Remove(path) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		again, err := File(state, Ruler)
		if err != nil || again != path {
			t.Fatalf("%s, %v; want %s", again, err, path)
		}
		content, err := os.ReadFile(path)
		st, serr := os.Stat(path)
		if err != nil || serr != nil || string(content) != "new" || st.Mode() != 0o755 {
			t.Errorf("%q, %v, %v, %v", content, err, st, serr)
		}
	}
}

func TestSweepKeepsThisVersionsPrograms(t *testing.T) {
	state := t.TempDir()
	with(t, map[string]string{Ruler: "old"})
	old, err := File(state, Ruler)
	if err != nil {
		t.Fatal(err)
	}
	with(t, map[string]string{Ruler: "new"})
	path, err := File(state, Ruler)
	if err != nil {
		t.Fatal(err)
	}
	half := path + durable.PartSuffix
	if err := os.WriteFile(half, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	removed, err := Sweep(state)
	slices.Sort(removed)
	want := []string{half, old}
	slices.Sort(want)
	if err != nil || !slices.Equal(removed, want) {
		t.Errorf("removed %q, %v; want %q", removed, err, want)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(old)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the other version's folder: %v; want none", err)
	}
	if removed, err := Sweep(state); err != nil || len(removed) != 0 {
		t.Errorf("a second time: %q, %v", removed, err)
	}
}

func TestBuiltWithoutPrograms(t *testing.T) {
	with(t, nil)
	if path, err := File(t.TempDir(), Ruler); !errors.Is(err, ErrAbsent) {
		t.Errorf("%s, %v; want ErrAbsent", path, err)
	}
	if removed, err := Sweep(t.TempDir()); err != nil || len(removed) != 0 {
		t.Errorf("%q, %v", removed, err)
	}
}
