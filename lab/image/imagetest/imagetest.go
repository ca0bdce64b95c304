// Package imagetest makes OCI images for tests, by another's hand than Tare's.
package imagetest

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Layer is the files as an image's layer, always the same of the same files.
func Layer(files fs.FS) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := errors.Join(w.AddFS(files), w.Close())
	return b.Bytes(), err
}

// Image makes an image of the layers, tar streams, for this host. change, where it is not nil, changes its configuration.
func Image(change func(*v1.ConfigFile), layers ...[]byte) (img v1.Image, err error) {
	img = empty.Image
	for _, l := range layers {
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(l)), nil })
		if err != nil {
			return nil, err
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			return nil, err
		}
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	if change != nil {
		change(config)
	}
	return mutate.ConfigFile(img, config)
}

// Write writes images as a layout folder, in which they are named n0, n1, ….
func Write(dir string, images ...v1.Image) error {
	l, err := layout.Write(dir, empty.Index)
	for i, img := range images {
		if err == nil {
			err = l.AppendImage(img, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": fmt.Sprint("n", i)}))
		}
	}
	return err
}
