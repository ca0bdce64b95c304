//go:build linux

package config

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"tare/internal/require"
)

// A guest's root has the image's owner, and all of its mode.
func TestSameRoot(t *testing.T) {
	require.Root(t)
	for _, tt := range []struct {
		owner int
		mode  uint32 // as chmod(2) takes it
	}{{0, 0o755}, {7, 0o711}, {0, 0o700}, {1000, 0o1777}, {0, 0o2750}} {
		dir := t.TempDir()
		image, root := filepath.Join(dir, "image"), filepath.Join(dir, "root")
		for _, d := range []string{image, root} {
			if err := os.Mkdir(d, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chown(image, tt.owner, tt.owner+1); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Chmod(image, tt.mode); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time nothing differs
			if err := SameRoot(root, image); err != nil {
				t.Fatal(err)
			}
		}
		fi, err := os.Stat(root)
		if err != nil {
			t.Fatal(err)
		}
		st := fi.Sys().(*syscall.Stat_t)
		if int(st.Uid) != tt.owner || int(st.Gid) != tt.owner+1 || st.Mode&^syscall.S_IFMT != tt.mode {
			t.Errorf("%d:%d %o, want %d:%d %o", st.Uid, st.Gid, st.Mode&^syscall.S_IFMT, tt.owner, tt.owner+1, tt.mode)
		}
	}
	if err := SameRoot(t.TempDir(), filepath.Join(t.TempDir(), "nothing")); err == nil {
		t.Error("an image that is not there was taken")
	}
}
