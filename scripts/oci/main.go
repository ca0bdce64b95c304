// Command oci writes an OCI image archive with one program for each architecture: oci FILE VERSION EPOCH ARCH=FOLDER…
// Each folder is the root filesystem of an image. The same input gives the same bytes.
package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "oci:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 4 {
		return fmt.Errorf("usage: oci FILE VERSION EPOCH ARCH=FOLDER…")
	}
	seconds, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return err
	}
	made := time.Unix(seconds, 0).UTC()
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var forDocker []loadable
	for _, arg := range args[3:] {
		arch, folder, _ := strings.Cut(arg, "=")
		image, err := image(folder, arch, args[1], made)
		if err != nil {
			return err
		}
		tag := args[1] + "-" + arch
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform:    &v1.Platform{OS: "linux", Architecture: arch},
			Annotations: map[string]string{"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": "docker.io/library/tare:" + tag}}})
		l, err := loadableAs(image, "tare:"+tag)
		if err != nil {
			return err
		}
		forDocker = append(forDocker, l)
	}
	dir, err := os.MkdirTemp("", "tare-oci-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if _, err := layout.Write(dir, index); err != nil {
		return err
	}
	text, err := json.Marshal(forDocker)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "manifest.json"), text, 0o644); err != nil {
		return err
	}
	f, err := os.Create(args[0])
	if err != nil {
		return err
	}
	return cmp.Or(pack(f, dir, made), f.Close())
}

// loadable is an image in manifest.json, which `docker load` reads where the Docker Engine does not read an OCI layout.
type loadable struct {
	Config           string
	RepoTags, Layers []string
}

func loadableAs(image v1.Image, tag string) (l loadable, err error) {
	blob := func(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }
	config, err := image.ConfigName()
	if err != nil {
		return l, err
	}
	layers, err := image.Layers()
	if err != nil {
		return l, err
	}
	l = loadable{Config: blob(config), RepoTags: []string{tag}}
	for _, layer := range layers {
		digest, err := layer.Digest()
		if err != nil {
			return l, err
		}
		l.Layers = append(l.Layers, blob(digest))
	}
	return l, nil
}

// image makes an image with the folder as its root and /usr/bin/tare as its program.
func image(folder, arch, version string, made time.Time) (v1.Image, error) {
	var root bytes.Buffer
	if err := pack(&root, folder, made); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(root.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: made}, CreatedBy: "scripts/dist"}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: made}
	config.Config = v1.Config{Entrypoint: []string{"/usr/bin/tare"}, WorkingDir: "/work", Labels: map[string]string{
		"org.opencontainers.image.title": "tare", "org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "Apache-2.0"}}
	return mutate.ConfigFile(image, config)
}

// pack writes a folder as a tar archive: in the order of names, owned by root, with one time.
func pack(w io.Writer, folder string, made time.Time) error {
	archive := tar.NewWriter(w)
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), ModTime: made, Typeflag: tar.TypeDir}
		if info.IsDir() {
			h.Name += "/"
			return archive.WriteHeader(h)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		h.Typeflag, h.Size = tar.TypeReg, int64(len(content))
		if err := archive.WriteHeader(h); err != nil {
			return err
		}
		_, err = archive.Write(content)
		return err
	})
	return cmp.Or(err, archive.Close())
}
