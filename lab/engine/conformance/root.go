//go:build linux

package conformance

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"tare/internal/require"
	"tare/lab/image"
	"tare/lab/image/imagetest"
	"tare/lab/ruler"
)

// The content of the suite's root and work tree, to be found again in the guests.
const (
	markerPath = "/etc/marker"
	marker     = "this is the image of the conformance suite"
	greeting   = "good morning"

	wheel      = 10        // a group with root as a member
	rootFolder = "711 7 8" // mode and owner of the image's "/"
)

// applets are the names under which the root has its busybox.
var applets = []string{
	"sh", "cat", "echo", "id", "pwd", "ls", "stat", "touch", "test", "head", "grep", "wc", "sleep", "kill", "true", "mount",
}

// build compiles the command, static, into dir and returns its path.
func build(t *testing.T, dir, path string) string {
	t.Helper()
	out := filepath.Join(dir, filepath.Base(path))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	// The same source gives the same file, and so the same image, because the build omits the repository's state.
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", out, path)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", path, err, b)
	}
	return out
}

func busybox(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("busybox")
	require.That(t, err == nil, "busybox, static (apt-get install busybox-static)")
	return path
}

// images makes the root and the work tree in a store below dir.
func images(t *testing.T, dir string) (*image.Image, *image.Tree) {
	t.Helper()
	if err := writeLayout(filepath.Join(dir, "layout"), busybox(t), build(t, dir, "tare/lab/engine/conformance/probe")); err != nil {
		t.Fatalf("making the suite's image: %v", err)
	}
	img, work, err := load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return img, work
}

// load takes the root and the work tree from the store below dir, and first puts them there if they are missing.
func load(dir string) (*image.Image, *image.Tree, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	store, err := image.OpenStore(filepath.Join(dir, "images"))
	if err != nil {
		return nil, nil, err
	}
	img, err := store.OCI(ctx, "oci:"+filepath.Join(dir, "layout"), nil)
	if err != nil {
		return nil, nil, err
	}
	work, err := store.Files(ctx, map[string]image.Source{
		"input/greeting": {Data: []byte(greeting)},
		"script":         {Data: []byte("#!/bin/sh\necho ran\n"), Exec: true},
	})
	return img, work, err
}

// writeLayout writes an OCI image of busybox, the probe and a marker as a layout folder, like a user's own image.
func writeLayout(dir, busybox, probe string) error {
	files := fstest.MapFS{
		markerPath[1:]: {Data: []byte(marker), Mode: 0o644},
		"etc/passwd":   {Data: []byte("root:x:0:0:root:/root:/bin/sh\n"), Mode: 0o644},
		givenPath[1:]:  {Mode: 0o644},
		"etc/group":    {Data: fmt.Appendf(nil, "root:x:0:\nwheel:x:%d:root\n", wheel), Mode: 0o644},
		// A whole system's init: it starts nothing, and ignores signals.
		ruler.SystemInit[1:]: {Data: []byte("#!/bin/sh\nexec probe linger system\n"), Mode: 0o755},
	}
	for _, d := range []string{"bin", "sbin", "etc", "root"} {
		files[d] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
	}
	for name, path := range map[string]string{"bin/busybox": busybox, "bin/probe": probe} {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files[name] = &fstest.MapFile{Data: content, Mode: 0o755}
	}
	for _, a := range applets {
		files["bin/"+a] = &fstest.MapFile{Data: []byte("busybox"), Mode: fs.ModeSymlink | 0o777}
	}
	layer, err := imagetest.Layer(files)
	if err != nil {
		return err
	}
	var top bytes.Buffer
	w := tar.NewWriter(&top)
	err = errors.Join(w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o711, Uid: 7, Gid: 8}), w.Close())
	if err != nil {
		return err
	}
	img, err := imagetest.Image(func(c *v1.ConfigFile) {
		c.Config = v1.Config{Env: []string{"PATH=/bin"}, Cmd: []string{"sh"}}
	}, layer, top.Bytes())
	if err != nil {
		return err
	}
	return imagetest.Write(dir, img)
}
