//go:build linux

package pagecache

import (
	"os"
	"path/filepath"
	"testing"
)

// What is evicted is out of the page cache, what is loaded is in it, and the kernel's two ways to count say the same.
func TestEvictAndLoad(t *testing.T) {
	dir, err := os.MkdirTemp(".", "files-") // /tmp may be a tmpfs, whose files stay in memory
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	const size = 3<<20 + 5
	for _, name := range []string{"a", "sub/b"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil { // dirty: they are evicted all the same
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	c, err := Evict(t.Context(), []string{dir})
	if err != nil || c.Files != 2 || c.Bytes != 2*size || c.Resident != 0 {
		t.Errorf("evicted: %+v, %v", c, err)
	}
	if c, err = Load(t.Context(), []string{dir}); err != nil || c.Resident != 2*size {
		t.Errorf("loaded: %+v, %v", c, err)
	}
	// A disk image: a gibibyte with a mebibyte of data.
	f, err := os.Create(filepath.Join(dir, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, 1<<20), 512<<20); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(1 << 30); err != nil {
		t.Fatal(err)
	}
	if c, err = Load(t.Context(), []string{f.Name()}); err != nil || c.Bytes != 1<<20 || c.Resident != 1<<20 {
		t.Errorf("of a sparse file: %+v, %v", c, err)
	}
	data, err := dataOf(f, 1<<30)
	if err != nil || len(data) != 1 {
		t.Fatalf("%v, %v", data, err)
	}
	if n, err := (file{f, data}).mincore(data[0]); err != nil || n != 256 {
		t.Errorf("mincore(2) says that %d pages of it are in the page cache (%v), not 256", n, err)
	}
	if _, err := Evict(t.Context(), []string{filepath.Join(dir, "none")}); err == nil {
		t.Error("a file that is not there was evicted")
	}
}
