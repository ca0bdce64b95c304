//go:build linux

package conformance

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"tare/internal/require"
	"tare/lab/image"
)

// What the suite's root and work tree hold, to be found again in the guests.
const (
	markerPath = "/etc/marker"
	marker     = "this is the image of the conformance suite"
	greeting   = "good morning"
)

// applets are the names under which the root has its busybox.
var applets = []string{
	"sh", "cat", "echo", "id", "pwd", "ls", "touch", "test", "head", "grep", "wc", "sleep", "kill", "true", "mount",
}

// build compiles the command, static, into dir and returns its path.
func build(t *testing.T, dir, path string) string {
	t.Helper()
	out := filepath.Join(dir, filepath.Base(path))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	// Without the repository's state in it the same source gives the same file, and so the same image.
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

// load takes the root and the work tree from the store below dir, and puts them there first where they lack.
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

// writeLayout writes an OCI image of busybox, the probe and a marker as a layout folder: the way a user's own
// image comes.
func writeLayout(dir, busybox, probe string) error {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(h *tar.Header, content []byte) error {
		h.Size = int64(len(content))
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err := w.Write(content)
		return err
	}
	for _, d := range []string{"bin", "etc", "root"} {
		if err := add(&tar.Header{Name: d + "/", Typeflag: tar.TypeDir, Mode: 0o755}, nil); err != nil {
			return err
		}
	}
	// In order: two images of the same content are one image.
	programs := map[string]string{"bin/busybox": busybox, "bin/probe": probe}
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		content, err := os.ReadFile(programs[name])
		if err != nil {
			return err
		}
		if err := add(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755}, content); err != nil {
			return err
		}
	}
	for _, a := range applets {
		if err := add(&tar.Header{Name: "bin/" + a, Typeflag: tar.TypeSymlink, Linkname: "busybox"}, nil); err != nil {
			return err
		}
	}
	texts := map[string]string{
		markerPath[1:]: marker,
		"etc/passwd":   "root:x:0:0:root:/root:/bin/sh\n",
		"etc/group":    "root:x:0:\n",
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if err := add(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644}, []byte(texts[name])); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(b.Bytes())), nil
	})
	if err != nil {
		return err
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.Architecture, config.OS = runtime.GOARCH, "linux"
	config.Config = v1.Config{Env: []string{"PATH=/bin"}, Cmd: []string{"sh"}}
	img, err = mutate.ConfigFile(img, config)
	if err != nil {
		return err
	}
	p, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	return p.AppendImage(img)
}
