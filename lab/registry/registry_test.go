//go:build linux

package registry

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/containerd/stargz-snapshotter/estargz"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"tare/internal/require"
	"tare/lab/image"
	"tare/lab/journal"
	"tare/notebook"
)

// tree is a small root: files of different sizes, a private folder, and links.
func tree(t *testing.T) *image.Tree {
	t.Helper()
	dir := t.TempDir()
	err := os.Chmod(dir, 0o751)
	for path, size := range map[string]int{"bin/a": 5000, "bin/b": 1, "etc/conf": 100, "private/deep/key": 3000, "usr/lib/big": 20000, "usr/lib/small": 10} {
		at := filepath.Join(dir, path)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(strings.Repeat("x", size)), 0o644))
	}
	err = errors.Join(err, os.Chmod(filepath.Join(dir, "private"), 0o700), os.Symlink("big", filepath.Join(dir, "usr/lib/link")), os.Link(filepath.Join(dir, "bin/a"), filepath.Join(dir, "bin/c")))
	if err != nil {
		t.Fatal(err)
	}
	return &image.Tree{Dir: dir, Digest: "sha256:" + strings.Repeat("ab", 32)}
}

func start(t *testing.T) (*Registry, string) {
	t.Helper()
	require.Root(t)
	err := Find()
	require.That(t, err == nil, Program+" (apt-get install docker-registry)")
	state := t.TempDir()
	j, err := journal.Open(state)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	r, err := Start(t.Context(), j, state)
	if err != nil {
		t.Fatal(err)
	}
	return r, state
}

// What is pulled has the layers and the compression that were asked for, and unpacks to the tree. Its end leaves nothing.
func TestPush(t *testing.T) {
	r, state := start(t)
	root := tree(t)
	seen := map[v1.Hash]string{}
	for text, media := range map[string]types.MediaType{"gzip:1": types.OCILayer, "none:3": types.OCIUncompressedLayer, "zstd:3": types.OCILayerZStd, "estargz:3": types.OCILayer} {
		of, err := notebook.ParsePull(text)
		if err != nil {
			t.Fatal(err)
		}
		to, files, err := r.Push(t.Context(), root, of)
		if err != nil || len(files) != of.Layers+2 {
			t.Fatalf("%s: %q, %v", text, files, err)
		}
		if again, _, err := r.Push(t.Context(), root, of); err != nil || again != to {
			t.Errorf("%s, again: %s, %v; want %s", text, again, err, to)
		}
		at, err := name.ParseReference(to, name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		img, err := remote.Image(at)
		if err != nil {
			t.Fatal(err)
		}
		layers, err := img.Layers()
		if err != nil || len(layers) != of.Layers {
			t.Fatalf("%s: %d layers, %v", text, len(layers), err)
		}
		for _, l := range layers {
			if got, err := l.MediaType(); err != nil || got != media {
				t.Errorf("%s: a layer is %s, %v; want %s", text, got, err, media)
			}
			id, err := l.DiffID()
			if err != nil || seen[id] != "" {
				t.Errorf("%s: a layer is that of %s too, so that an engine would not pull it: %v", text, seen[id], err)
			}
			seen[id] = text
			if digest, err := l.Digest(); err != nil || (digest == id) != (of.Compression == notebook.CompressionNone) {
				t.Errorf("%s: a layer with digest %s unpacks to %s, %v", text, digest, id, err)
			}
		}
		manifest, err := img.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range manifest.Layers {
			if lazy := l.Annotations[estargz.TOCJSONDigestAnnotation] != ""; lazy != (of.Compression == notebook.CompressionEstargz) {
				t.Errorf("%s: a layer with the annotations %v", text, l.Annotations)
			}
		}
		same(t, text, img, root.Dir)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Push(t.Context(), root, notebook.Pull{Compression: notebook.CompressionGzip, Layers: 1}); err == nil || !strings.Contains(err.Error(), "the registry has ended") {
		t.Errorf("after its end: %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(state, "guests")); err != nil || len(left) > 0 {
		t.Errorf("after its end there are %v, %v", left, err)
	}
	select {
	case <-r.process.Done():
	default:
		t.Error("the registry still runs")
	}
}

// same checks that an image unpacks to the files of a folder, with their modes and sizes.
func same(t *testing.T, text string, img v1.Image, dir string) {
	t.Helper()
	stream := mutate.Extract(img)
	defer stream.Close()
	got := map[string]os.FileMode{}
	for all := tar.NewReader(stream); ; {
		h, err := all.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		path := filepath.Clean(h.Name)
		if path == estargz.TOCTarName || path == estargz.NoPrefetchLandmark { // the format's own, which a lazy pull hides
			continue
		}
		got[path] = h.FileInfo().Mode()
		want, err := os.Lstat(filepath.Join(dir, path))
		if err != nil {
			t.Errorf("%s: %s: %v", text, path, err)
			continue
		}
		if h.Typeflag == tar.TypeLink {
			continue // its mode is that of what it links to
		}
		if want.Mode() != got[path] || want.Mode().IsRegular() && want.Size() != h.Size {
			t.Errorf("%s: %s has mode %v and %d bytes, want %v and %d", text, path, got[path], h.Size, want.Mode(), want.Size())
		}
	}
	for _, path := range []string{"bin/a", "bin/b", "bin/c", "etc/conf", "private", "private/deep/key", "usr/lib/big", "usr/lib/link", "usr/lib/small"} {
		if _, there := got[path]; !there {
			t.Errorf("%s: %s is missing", text, path)
		}
	}
}

// An image of too few files for its layers is refused before anything is pushed.
func TestTooManyLayers(t *testing.T) {
	r, _ := start(t)
	defer func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if _, _, err := r.Push(t.Context(), tree(t), notebook.Pull{Compression: notebook.CompressionGzip, Layers: 90}); err == nil || !strings.Contains(err.Error(), "too few files for 90 layers") {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(r.dir, "layers-*")); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}

// A registry that cannot run says why.
func TestNoRegistry(t *testing.T) {
	require.Root(t)
	t.Setenv("PATH", t.TempDir())
	state := t.TempDir()
	j, err := journal.Open(state)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if _, err := Start(t.Context(), j, state); err == nil || !strings.Contains(err.Error(), "apt-get install docker-registry") {
		t.Error(err)
	}
	if entries, err := os.ReadDir(state); err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == "guests" }) {
		t.Error(entries, err)
	}
}
