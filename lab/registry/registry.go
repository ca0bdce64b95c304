//go:build linux

// Package registry serves images from a registry of Tare's own on the loopback, for guests whose start pulls their image: Debian's docker-registry, with
// its files in a folder of the state folder. There is no network between it and the engines, so a pull costs what the engine and the disk cost.
package registry

import (
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/containerd/stargz-snapshotter/estargz"
	"github.com/google/go-containerregistry/pkg/compression"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/opencontainers/go-digest"

	"tare/lab/engine"
	"tare/lab/image"
	"tare/lab/journal"
	"tare/lab/network"
	"tare/notebook"
)

// Program is the registry's program.
const Program = "docker-registry"

const (
	startTime = 20 * time.Second // for the registry's first answer
	pushTime  = 10 * time.Minute // for one image
	graceful  = 3 * time.Second  // for its end
)

// Registry is a running registry.
type Registry struct {
	process *engine.Process
	changes *journal.Changes // remove its folder
	dir     string
	address string // host:port
	own     string // in each layer of its images, so that they share none with another registry's
	pushed  map[string]pushed
}

// pushed is an image in the registry.
type pushed struct {
	reference string
	files     []string // of its manifest, its configuration and its layers
}

// Find says why there is no program for a registry; nil if there is one.
func Find() error {
	if _, err := exec.LookPath(Program); err != nil {
		return fmt.Errorf("%s is missing; studies with pull: need it (apt-get install docker-registry)", Program)
	}
	return nil
}

// Start starts a registry with a folder of its own below the state folder. It ends with Tare at the latest, and `tare clean` removes the folder of a dead one.
func Start(ctx context.Context, j *journal.Journal, state string) (_ *Registry, err error) {
	if err := Find(); err != nil {
		return nil, err
	}
	here := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	port, err := network.FreePort(here)
	if err != nil {
		return nil, err
	}
	r := &Registry{address: netip.AddrPortFrom(here, uint16(port)).String(), own: rand.Text(), pushed: map[string]pushed{}}
	if r.dir, r.changes, err = engine.MakeFolder(j, state, fmt.Sprintf("tare-registry-%d", os.Getpid()), 0o700); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close(context.WithoutCancel(ctx)))
		}
	}()
	config := filepath.Join(r.dir, "config.yml")
	text := fmt.Sprintf("version: 0.1\nlog:\n  level: error\n  accesslog:\n    disabled: true\nstorage:\n  filesystem:\n    rootdirectory: %q\nhttp:\n  addr: %s\n", r.data(), r.address)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(Program, "serve", config)
	cmd.Dir = "/"
	if r.process, err = engine.StartTied(cmd); err != nil {
		return nil, err
	}
	if err := r.answers(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// data is the folder of its images.
func (r *Registry) data() string { return filepath.Join(r.dir, "data") }

// answers waits for the first answer.
func (r *Registry) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		err := r.ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-r.process.Done():
			return fmt.Errorf("the registry does not run: %s", r.process.Ended())
		case <-ctx.Done():
			return fmt.Errorf("the registry does not answer: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (r *Registry) ask(ctx context.Context) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.address+"/v2/", nil)
	if err != nil {
		return err
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(a.Body, 1<<20)); err != nil || a.StatusCode != http.StatusOK {
		return errors.Join(err, fmt.Errorf("its answer is %s", a.Status))
	}
	return nil
}

// Close ends the registry and removes its folder.
func (r *Registry) Close(ctx context.Context) error {
	var err error
	if r.process != nil {
		if err = r.process.Signal(os.Interrupt); err == nil {
			err = r.process.End(ctx, graceful)
		}
	}
	return errors.Join(err, r.changes.Undo(ctx))
}

// Push makes an image of a tree with these layers, pushes it once, and returns its reference and the registry's files of it.
func (r *Registry) Push(ctx context.Context, t *image.Tree, of notebook.Pull) (reference string, files []string, err error) {
	select {
	case <-r.process.Done():
		return "", nil, fmt.Errorf("the registry has ended: %s", r.process.Ended())
	default:
	}
	key := t.Digest + " " + of.Text()
	if p, is := r.pushed[key]; is {
		return p.reference, p.files, nil
	}
	p, err := r.push(ctx, t, of)
	if err != nil {
		return "", nil, fmt.Errorf("pushing an image of %d layers (%s) to the registry: %w", of.Layers, of.Compression, err)
	}
	r.pushed[key] = p
	return p.reference, p.files, nil
}

func (r *Registry) push(ctx context.Context, t *image.Tree, of notebook.Pull) (p pushed, err error) {
	ctx, cancel := context.WithTimeout(ctx, pushTime)
	defer cancel()
	tag, err := t.Tag()
	if err != nil {
		return p, err
	}
	to, err := name.NewTag(fmt.Sprintf("%s/%s:%s-%d-%s", r.address, engine.PulledRepository, of.Compression, of.Layers, tag), name.Insecure)
	if err != nil {
		return p, err
	}
	parts, err := os.MkdirTemp(r.dir, "layers-")
	if err != nil {
		return p, err
	}
	defer os.RemoveAll(parts) // and with the folder at the latest
	img, err := r.layered(ctx, parts, t, of)
	if err == nil {
		err = remote.Write(to, img, remote.WithContext(ctx))
	}
	if err != nil {
		return p, err
	}
	digest, err := img.Digest()
	if err != nil {
		return p, err
	}
	p.reference = to.Digest(digest.String()).String() // by its digest, because any user of the host can push to the registry
	p.files, err = r.files(img)
	return p, err
}

// files are the registry's files of an image.
func (r *Registry) files(img v1.Image) (all []string, err error) {
	manifest, err := img.Manifest()
	if err != nil {
		return nil, err
	}
	own, err := img.Digest()
	if err != nil {
		return nil, err
	}
	digests := []v1.Hash{own, manifest.Config.Digest}
	for _, l := range manifest.Layers {
		digests = append(digests, l.Digest)
	}
	for _, d := range digests {
		file := filepath.Join(r.data(), "docker/registry/v2/blobs", d.Algorithm, d.Hex[:2], d.Hex, "data")
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("the registry does not have what was pushed to it: %w", err)
		}
		all = append(all, file)
	}
	return all, nil
}

// layer is a layer of an image, from a tar file.
func layer(file, compressed string) (l mutate.Addendum, err error) {
	switch compressed {
	case notebook.CompressionGzip:
		l.Layer, err = tarball.LayerFromFile(file, tarball.WithCompression(compression.GZip), tarball.WithMediaType(types.OCILayer))
	case notebook.CompressionZstd:
		l.Layer, err = tarball.LayerFromFile(file, tarball.WithCompression(compression.ZStd), tarball.WithMediaType(types.OCILayerZStd))
	case notebook.CompressionEstargz:
		return lazy(file)
	default:
		l.Layer, err = uncompressed(file)
	}
	return l, err
}

// uncompressed is a layer that is the tar file itself.
func uncompressed(file string) (v1.Layer, error) {
	l := filed{file: file, media: types.OCIUncompressedLayer}
	err := l.read()
	l.diffID = l.digest
	return l, err
}

// filed is a layer in a file as it is pushed: one without compression, or one in the format eStargz. (The package tarball compresses every
// layer by itself, whatever its options say.)
type filed struct {
	file           string
	media          types.MediaType
	digest, diffID v1.Hash
	size           int64
}

// read reads the file's size and digest.
func (l *filed) read() error {
	f, err := os.Open(l.file)
	if err != nil {
		return err
	}
	defer f.Close()
	l.digest, l.size, err = v1.SHA256(f)
	return err
}

// These methods implement v1.Layer.
func (l filed) Digest() (v1.Hash, error)            { return l.digest, nil }
func (l filed) DiffID() (v1.Hash, error)            { return l.diffID, nil }
func (l filed) Size() (int64, error)                { return l.size, nil }
func (l filed) MediaType() (types.MediaType, error) { return l.media, nil }
func (l filed) Compressed() (io.ReadCloser, error)  { return os.Open(l.file) }

// Uncompressed implements v1.Layer.
func (l filed) Uncompressed() (io.ReadCloser, error) {
	f, err := os.Open(l.file)
	if err != nil || l.media == types.OCIUncompressedLayer {
		return f, err
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{z, f}, nil
}

// lazy is a layer in the format eStargz, from a tar file. Its annotation is the digest of its list of files, without which nothing pulls it lazily.
func lazy(file string) (a mutate.Addendum, err error) {
	from, err := os.Open(file)
	if err != nil {
		return a, err
	}
	defer from.Close()
	l := filed{file: file + ".estargz", media: types.OCILayer}
	to, err := os.OpenFile(l.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return a, err
	}
	w := estargz.NewWriterLevel(to, gzip.BestSpeed) // as strongly as the package tarball compresses by gzip
	err = w.AppendTar(from)
	var list digest.Digest
	if err == nil {
		list, err = w.Close()
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return a, err
	}
	if l.diffID, err = v1.NewHash(w.DiffID()); err != nil {
		return a, err
	}
	if err = l.read(); err != nil {
		return a, err
	}
	return mutate.Addendum{Layer: l, MediaType: l.media, Annotations: map[string]string{estargz.TOCJSONDigestAnnotation: list.String()}}, nil
}

// layered makes an image of a tree, with its layers in the folder. No layer has the digest of another image's, even if it unpacks to the same files:
// an engine that has the other one would not pull it. (Layers in the format eStargz are the same from one registry to the next.)
func (r *Registry) layered(ctx context.Context, dir string, t *image.Tree, of notebook.Pull) (v1.Image, error) {
	parts, err := t.Split(of.Layers)
	if err != nil {
		return nil, err
	}
	var layers []mutate.Addendum
	for i, paths := range parts {
		file := filepath.Join(dir, fmt.Sprint(i))
		comment := fmt.Sprintf("tare %s %s %d", r.own, of.Text(), i)
		if of.Compression == notebook.CompressionEstargz { // it has no place for one
			comment = ""
		}
		if err := writeTar(ctx, file, t, paths, comment); err != nil {
			return nil, err
		}
		l, err := layer(file, of.Compression)
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if img, err = mutate.ConfigFile(img, &v1.ConfigFile{Architecture: runtime.GOARCH, OS: "linux", RootFS: v1.RootFS{Type: "layers"}}); err != nil {
		return nil, err
	}
	return mutate.Append(img, layers...)
}

func writeTar(ctx context.Context, file string, t *image.Tree, paths []string, comment string) (err error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return t.TarOf(ctx, f, paths, comment)
}
