package image

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// place is a folder that somebody else filled: an OCI layout, or an unpacked archive. Files are opened inside it, whatever links it
// has.
type place struct {
	dir  string
	from string // in words
}

// open opens a regular file. It follows a link as long as it stays inside.
func (p place) open(name string) (_ *os.File, size int64, err error) {
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	// Not blocking: opening a named pipe would wait for its writer.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", p.from, err)
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = hostile("%.200q in %s is not a regular file (%s)", name, p.from, fi.Mode().Type())
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, fi.Size(), nil
}

// small reads a file into memory.
func (p place) small(name string) (text []byte, err error) {
	f, size, err := p.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hostile("%s has no %.200q", p.from, name)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if size > maxJSON {
		return nil, hostile("%.200q in %s is not a file of at most %d bytes", name, p.from, maxJSON)
	}
	return io.ReadAll(io.LimitReader(f, maxJSON))
}

// blob is the path of the content with that digest in a layout.
func (p place) blob(h v1.Hash) string { return path.Join("blobs", h.Algorithm, h.Hex) }

// check compares the blob's size with that in its descriptor.
func (p place) check(d v1.Descriptor) error {
	if err := smallEnough(d); err != nil {
		return err
	}
	f, size, err := p.open(p.blob(d.Digest))
	if err != nil {
		return err
	}
	if size != d.Size {
		err = hostile("the blob %s of %s has %d bytes; must be %d", d.Digest, p.from, size, d.Size)
	}
	return errors.Join(err, f.Close())
}

func fromLayout(dir, want, from string) (*found, error) {
	p := place{dir: dir, from: from}
	raw, err := p.small("index.json")
	if err != nil {
		return nil, fmt.Errorf("not an OCI layout: %w", err)
	}
	img, err := choose(layoutIndex{place: p, raw: raw}, want, true, p.check)
	if err != nil {
		return nil, err
	}
	return inspect(img, from, p.check)
}

// layoutIndex is an index of an OCI layout. Its callers check its digest.
type layoutIndex struct {
	place
	raw []byte
}

func (l layoutIndex) MediaType() (types.MediaType, error) { return types.OCIImageIndex, nil }
func (l layoutIndex) Digest() (v1.Hash, error)            { return partial.Digest(l) }
func (l layoutIndex) Size() (int64, error)                { return int64(len(l.raw)), nil }
func (l layoutIndex) RawManifest() ([]byte, error)        { return l.raw, nil }

func (l layoutIndex) IndexManifest() (*v1.IndexManifest, error) {
	return v1.ParseIndexManifest(bytes.NewReader(l.raw))
}

func (l layoutIndex) ImageIndex(h v1.Hash) (v1.ImageIndex, error) {
	raw, err := l.small(l.blob(h))
	return layoutIndex{place: l.place, raw: raw}, err
}

func (l layoutIndex) Image(h v1.Hash) (v1.Image, error) {
	raw, err := l.small(l.blob(h))
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(layoutImage{place: l.place, raw: raw})
}

// layoutImage is an image of an OCI layout, by its manifest.
type layoutImage struct {
	place
	raw []byte
}

func (l layoutImage) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
func (l layoutImage) RawManifest() ([]byte, error)        { return l.raw, nil }

func (l layoutImage) RawConfigFile() ([]byte, error) {
	m, err := partial.Manifest(l)
	if err != nil {
		return nil, err
	}
	return l.small(l.blob(m.Config.Digest))
}

func (l layoutImage) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	m, err := partial.Manifest(l)
	if err != nil {
		return nil, err
	}
	for _, d := range m.Layers {
		if d.Digest == h {
			return layer{place: l.place, name: l.blob(h), mediaType: d.MediaType}, nil
		}
	}
	return nil, fmt.Errorf("%s has no layer %s", l.from, h)
}

// layer is a layer's file, which may be compressed: the library finds out when it reads the file. Nobody uses its digest or size,
// because an image's layers are checked by their content.
type layer struct {
	place
	name      string
	mediaType types.MediaType
}

func (l layer) Compressed() (io.ReadCloser, error) {
	f, _, err := l.open(l.name)
	if err != nil { // an interface that holds a nil file is not nil
		return nil, err
	}
	return f, nil
}
func (l layer) MediaType() (types.MediaType, error) { return l.mediaType, nil }
func (l layer) Digest() (v1.Hash, error)            { return v1.Hash{}, errors.ErrUnsupported }
func (l layer) Size() (int64, error)                { return 0, errors.ErrUnsupported }
