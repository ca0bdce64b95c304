//go:build linux

package pagecache

import (
	"os"
	"path/filepath"
	"testing"
)

// What is evicted is out of the page cache, what is loaded is in it, and the kernel's two ways to count say the same.
func TestEvictAndLoad(t *testing.T) {
	dir, err := os.MkdirTemp(".", "files-") // /tmp may be in memory alone, which nothing is evicted of
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
	f, err := os.Open(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, err := resident(f, size)
	other, merr := mincore(f, size)
	if err != nil || merr != nil || in != other {
		t.Errorf("cachestat says %d (%v), mincore %d (%v)", in, err, other, merr)
	}
	if _, err := Evict(t.Context(), []string{filepath.Join(dir, "none")}); err == nil {
		t.Error("a file that is not there was evicted")
	}
}
