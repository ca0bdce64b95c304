//go:build linux

package bare

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"tare/lab/device"
	"tare/lab/engine"
	"tare/lab/image"
	"tare/notebook"
)

// Places for what comes with a device are made only in the root, wherever the image's links lead.
func TestPlace(t *testing.T) {
	top := t.TempDir()
	root, outside := filepath.Join(top, "root"), filepath.Join(top, "outside")
	for _, dir := range []string{filepath.Join(root, "usr/lib"), filepath.Join(root, "etc"), outside} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"lib": "usr/lib", "lib64": "/usr/lib", "up": "../../../../etc", "out": outside, "file": "/etc/passwd"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"/lib/a/b.so": "usr/lib/a/b.so", "/lib64/c.so": "usr/lib/c.so", "/up/d": "etc/d", "/new/e": "new/e",
	} {
		if err := place(root, path, false); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if is, err := os.Lstat(filepath.Join(root, want)); err != nil || !is.Mode().IsRegular() {
			t.Errorf("%s is at %s: %v", path, want, err)
		}
		if err := place(root, path, false); err != nil {
			t.Errorf("%s, which is there: %v", path, err)
		}
	}
	if err := place(root, "/lib64/folder/in", true); err != nil {
		t.Error(err)
	}
	if is, err := os.Lstat(filepath.Join(root, "usr/lib/folder/in")); err != nil || is.Mode() != os.ModeDir|0o755 {
		t.Errorf("a folder: %v, %v", is, err)
	}
	for _, path := range []string{"/out/f", "/file"} { // links to nothing, seen from the root
		if err := place(root, path, false); !errors.Is(err, os.ErrExist) {
			t.Errorf("%s: %v, want an error that says that something is there", path, err)
		}
	}
	if in, err := os.ReadDir(outside); err != nil || len(in) > 0 {
		t.Errorf("outside of the root there are %v, %v", in, err)
	}
}

// Where the image has a place for all that comes with a device, and nothing has to be run, the root stays the image itself.
func TestLayered(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "there"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/there", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		of   device.Edits
		want bool
	}{
		"nothing":     {device.Edits{}, false},
		"a place":     {device.Edits{Mounts: []device.Mount{{Path: "/there"}, {Path: "/link"}}}, false},
		"no place":    {device.Edits{Mounts: []device.Mount{{Path: "/there"}, {Path: "/lib/missing"}}}, true},
		"only a hook": {device.Edits{Hooks: []device.Hook{{When: "createContainer"}}}, true},
	} {
		got, err := layered(engine.Spec{Image: &image.Image{Tree: image.Tree{Dir: root}}, Devices: c.of})
		if err != nil || got != c.want {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
	if _, err := layered(engine.Spec{Image: &image.Image{Tree: image.Tree{Dir: root}}, Devices: device.Edits{Mounts: []device.Mount{{Path: "/there/below"}}}}); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("below a file: %v", err)
	}
}

// The engine refuses hooks that can run only once a guest's first process exists.
func TestLateHook(t *testing.T) {
	s := engine.Spec{
		ID: "late", Instance: notebook.Instance{Cores: 1}, CPUs: []int{0}, Image: &image.Image{Tree: image.Tree{Dir: t.TempDir()}},
		Devices: device.Edits{Names: []string{"v.org/c=d"}, Hooks: []device.Hook{{When: "createContainer"}, {When: "poststart"}}},
	}
	_, err := (&Driver{}).Provision(t.Context(), s)
	if _, is := errors.AsType[*engine.UnsupportedError](err); !is {
		t.Errorf("%v, want an *engine.UnsupportedError", err)
	}
}
