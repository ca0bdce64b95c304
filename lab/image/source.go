package image

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"tare/lab/dockerapi"
)

// Time limits for others.
const (
	daemonHeader = 5 * time.Minute // the daemon collects an image before it sends it
	stall        = time.Minute     // without a byte from a registry or daemon
)

// kind is a kind of place that images come from.
type kind int

const (
	anywhere kind = iota // the daemon, then a registry
	registry
	daemon
	archive
	layoutDir
)

// reference is a place and the image there.
type reference struct {
	kind kind
	path string // of an archive or layout
	name string // in a registry, the daemon, an archive or layout; may be empty in the last two
}

// Check checks a reference, as far as possible without a registry or a daemon.
func Check(ref string) error {
	if _, err := parseReference(ref); err != nil {
		return fmt.Errorf("image %s: %w", ref, err)
	}
	return nil
}

func parseReference(ref string) (reference, error) {
	if ref == "" || len(ref) > 4096 || strings.ContainsRune(ref, 0) {
		return reference{}, fmt.Errorf("must be a reference of an image, such as debian:trixie or oci:DIR")
	}
	if n, ok := strings.CutPrefix(ref, "docker://"); ok {
		return reference{kind: registry, name: n}, nil
	}
	if n, ok := strings.CutPrefix(ref, "docker-daemon:"); ok {
		return named(daemon, n)
	}
	if n, ok := strings.CutPrefix(ref, "docker-archive:"); ok {
		return onDisk(archive, n, func(fi fs.FileInfo) bool { return fi.Mode().IsRegular() }, "file")
	}
	if n, ok := strings.CutPrefix(ref, "oci:"); ok {
		return onDisk(layoutDir, n, fs.FileInfo.IsDir, "folder")
	}
	isPath := strings.HasPrefix(ref, "/") || strings.HasPrefix(ref, "./") || strings.HasPrefix(ref, "../") || ref == "." || ref == ".."
	fi, err := os.Stat(ref)
	switch {
	case err == nil && fi.IsDir():
		if _, err := os.Stat(filepath.Join(ref, "oci-layout")); err == nil {
			return reference{kind: layoutDir, path: ref}, nil
		}
		if isPath {
			return reference{}, errors.New("the folder has no file oci-layout: it is not an OCI layout")
		}
	case err == nil && fi.Mode().IsRegular():
		return reference{kind: archive, path: ref}, nil
	case isPath && err == nil:
		return reference{}, fmt.Errorf("neither an OCI layout folder nor a docker save archive (%s)", fi.Mode().Type())
	case isPath:
		return reference{}, err
	}
	return named(anywhere, ref)
}

// named is a reference by a name that the daemon's address can contain.
func named(k kind, n string) (reference, error) {
	if !daemonName.MatchString(n) || strings.Contains(n, "..") {
		return reference{}, fmt.Errorf("%.200q is not the name of an image, such as debian:trixie", n)
	}
	return reference{kind: k, name: n}, nil
}

// onDisk splits PATH, PATH:NAME or PATH@DIGEST; the longest existing path counts.
func onDisk(k kind, s string, right func(fs.FileInfo) bool, what string) (reference, error) {
	for i := len(s); i > 0; i = strings.LastIndexAny(s[:i], ":@") {
		if fi, err := os.Stat(s[:i]); err == nil && right(fi) {
			return reference{kind: k, path: s[:i], name: strings.TrimLeft(s[i:], ":@")}, nil
		}
	}
	return reference{}, fmt.Errorf("there is no %s %s", what, s)
}

// unreachableError says that another service did not answer, which says nothing about the image.
type unreachableError struct {
	what string
	err  error
}

func (e *unreachableError) Error() string {
	return fmt.Sprintf("%s does not answer (%v)", e.what, e.err)
}
func (e *unreachableError) Unwrap() error { return e.err }

func (r reference) find(ctx context.Context, s *Store, w *workspace, p Progress) (*found, error) {
	switch r.kind {
	case layoutDir:
		return fromLayout(r.path, r.name, "the OCI layout "+r.path)
	case archive:
		return s.fromArchiveFile(ctx, w, r.path, r.name)
	case registry:
		return fromRegistry(ctx, r.name)
	case daemon:
		return fromDaemon(ctx, s, w, r.name, p)
	default:
		f, err := fromDaemon(ctx, s, w, r.name, p)
		if absent := (*unreachableError)(nil); err == nil || !errors.As(err, &absent) && !errors.Is(err, errNotInDaemon) {
			return f, err
		}
		p.say(fmt.Sprintf("not from the Docker daemon (%v); trying the registry", err))
		return fromRegistry(ctx, r.name)
	}
}

func fromRegistry(ctx context.Context, ref string) (*found, error) {
	n, err := name.ParseReference(ref)
	if err != nil {
		return nil, fmt.Errorf("must be a reference of an image, such as debian:trixie or oci:DIR: %w", err)
	}
	from := "the registry " + n.Context().RegistryStr()
	d, err := remote.Get(n, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithTransport(&stallTransport{base: remote.DefaultTransport, header: stall, body: stall}))
	if err != nil {
		status := (*transport.Error)(nil)
		if ctx.Err() == nil && (!errors.As(err, &status) || status.StatusCode >= 500 || status.StatusCode == http.StatusTooManyRequests) {
			return nil, &unreachableError{what: from, err: err}
		}
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	var img v1.Image
	switch {
	case d.MediaType.IsIndex():
		var idx v1.ImageIndex
		if idx, err = d.ImageIndex(); err == nil {
			img, err = choose(idx, "", false, smallEnough)
		}
	case d.MediaType.IsImage():
		img, err = d.Image()
	default:
		return nil, fmt.Errorf("%s has %q under that name, which is not an image that Tare can read", from, d.MediaType)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return inspect(img, from, smallEnough)
}

// stallTransport ends requests whose other side no longer sends anything.
type stallTransport struct {
	base         http.RoundTripper
	header, body time.Duration
}

var errStalled = errors.New("nothing was received for too long")

func (t *stallTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(t.header, func() { cancel(fmt.Errorf("%w: %v", errStalled, t.header)) })
	resp, err := t.base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		timer.Stop()
		if cause := context.Cause(ctx); errors.Is(cause, errStalled) {
			err = cause
		}
		cancel(nil)
		return nil, err
	}
	timer.Stop()
	resp.Body = &stallBody{ReadCloser: resp.Body, ctx: ctx, cancel: cancel, wait: t.body, timer: timer}
	return resp, nil
}

type stallBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	wait   time.Duration
	timer  *time.Timer
}

func (b *stallBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.wait)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop() // the reader may take any time
	if err != nil && err != io.EOF {
		if cause := context.Cause(b.ctx); errors.Is(cause, errStalled) {
			err = cause
		}
	}
	return n, err
}

func (b *stallBody) Close() error {
	b.timer.Stop()
	b.cancel(nil)
	return b.ReadCloser.Close()
}

var (
	errNotInDaemon = errors.New("the Docker daemon does not have it")
	daemonName     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@-]*$`)
)

// fromDaemon takes an image from the Docker daemon as `docker save` does. The daemon's own client would be more code than the two
// requests are worth.
func fromDaemon(ctx context.Context, s *Store, w *workspace, ref string, p Progress) (*found, error) {
	const from = "the Docker daemon"
	_, socket, err := dockerapi.Host("")
	if err != nil {
		return nil, &unreachableError{what: from, err: err}
	}
	base := dockerapi.Transport(socket)
	get := func(header time.Duration, what string) (*http.Response, error) {
		u := url.URL{Scheme: "http", Host: "docker", Path: "/images/" + ref + "/" + what}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return nil, err
		}
		c := http.Client{Transport: &stallTransport{base: base, header: header, body: stall}}
		resp, err := c.Do(req)
		if err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, &unreachableError{what: from + " at " + socket, err: err}
		}
		if resp.StatusCode == http.StatusOK {
			return resp, nil
		}
		msg, err := io.ReadAll(io.LimitReader(resp.Body, 1000))
		resp.Body.Close()
		if resp.StatusCode == http.StatusNotFound {
			return nil, errNotInDaemon
		}
		return nil, errors.Join(fmt.Errorf("%s answers %s: %q", from, resp.Status, msg), err)
	}
	resp, err := get(stall, "json")
	if err != nil {
		return nil, err
	}
	var about struct{ ID string }
	err = json.NewDecoder(io.LimitReader(resp.Body, maxJSON)).Decode(&about)
	resp.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("%s says something that is not JSON about the image: %w", from, err)
	}
	if digestForm.MatchString(about.ID) {
		if rec, err := s.findOCI(about.ID); err != nil || rec != nil {
			return &found{from: from, digest: about.ID, kept: rec}, err
		}
	}
	p.say("saving from " + from)
	if resp, err = get(daemonHeader, "get"); err != nil {
		return nil, err
	}
	f, err := s.fromArchive(ctx, w, resp.Body, "", from)
	return f, errors.Join(err, resp.Body.Close())
}

// fromArchiveFile is fromArchive for a file, which may be compressed.
func (s *Store) fromArchiveFile(ctx context.Context, w *workspace, file, want string) (_ *found, err error) {
	from := "the archive " + file
	l, err := partial.CompressedToLayer(archiveFile(file))
	if err != nil {
		return nil, err
	}
	r, err := l.Uncompressed()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return s.fromArchive(ctx, w, r, want, from)
}

// fromArchive reads an archive of `docker save`, or an OCI layout as a tar stream. It first unpacks either into the workspace,
// because the layers are read one after the other, each from its start.
func (s *Store) fromArchive(ctx context.Context, w *workspace, archive io.Reader, want, from string) (_ *found, err error) {
	dir := filepath.Join(w.dir, "archive")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, noSpace(err, s.root)
	}
	u, err := newUnpacker(ctx, dir, s.limits)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, u.close()) }()
	switch err := u.layer(archive, false); {
	case errors.Is(err, tar.ErrHeader):
		return nil, fmt.Errorf("%s is not an archive of an image: %w", from, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	if _, err := u.root.Lstat("manifest.json"); errors.Is(err, fs.ErrNotExist) {
		if _, err := u.root.Lstat("oci-layout"); err == nil {
			return fromLayout(dir, want, from)
		}
		return nil, fmt.Errorf("%s has neither manifest.json nor oci-layout: it is not what docker save writes", from)
	}
	return fromSaved(place{dir: dir, from: from}, want)
}

// fromSaved reads the manifest.json of an unpacked archive.
func fromSaved(p place, want string) (*found, error) {
	text, err := p.small("manifest.json")
	if err != nil {
		return nil, err
	}
	var images []savedImage
	if err := json.Unmarshal(text, &images); err != nil {
		return nil, fmt.Errorf("the manifest.json of %s: %w", p.from, err)
	}
	saved, err := chooseSaved(images, want, p.from)
	if err != nil {
		return nil, err
	}
	if i := slices.Index(saved.Layers, ""); i >= 0 {
		return nil, hostile("the manifest.json of %s does not say where layer %d of %d is", p.from, i+1, len(saved.Layers))
	}
	config, err := p.small(saved.Config)
	if err != nil {
		return nil, err
	}
	return at(p.from, config, len(saved.Layers), func() (layers []v1.Layer, err error) {
		for _, name := range saved.Layers {
			l, err := partial.CompressedToLayer(layer{place: p, name: name, mediaType: types.DockerLayer})
			if err != nil {
				return nil, err
			}
			layers = append(layers, l)
		}
		return layers, nil
	})
}

// savedImage is an image in the manifest.json of an archive; its files are named by their paths there.
type savedImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// chooseSaved picks the image of that name, or the only one.
func chooseSaved(images []savedImage, want, from string) (savedImage, error) {
	var tag name.Tag
	if want != "" {
		var err error
		if tag, err = name.NewTag(want); err != nil {
			return savedImage{}, fmt.Errorf("the name of an image in %s: %w", from, err)
		}
	}
	names := ""
	for _, d := range images {
		if want == "" && len(images) == 1 {
			return d, nil
		}
		for _, r := range d.RepoTags {
			names += fmt.Sprintf("\n\t%.100q", r)
			if t, err := name.NewTag(r); want != "" && err == nil && t.Name() == tag.Name() {
				return d, nil
			}
		}
	}
	if want != "" {
		return savedImage{}, fmt.Errorf("%s has no image %q; it has:%s", from, want, names)
	}
	return savedImage{}, fmt.Errorf("%s has %d images; say which, as docker-archive:FILE:NAME:%s", from, len(images), names)
}

// archiveFile is the path of an archive. The library finds out whether it is compressed.
type archiveFile string

func (a archiveFile) Compressed() (io.ReadCloser, error) {
	f, err := openRegular(string(a))
	if err != nil { // an interface that holds a nil file is not nil
		return nil, err
	}
	return f, nil
}
func (a archiveFile) MediaType() (types.MediaType, error) { return types.DockerLayer, nil }
func (a archiveFile) Digest() (v1.Hash, error)            { return v1.Hash{}, errors.ErrUnsupported }
func (a archiveFile) Size() (int64, error)                { return 0, errors.ErrUnsupported }
