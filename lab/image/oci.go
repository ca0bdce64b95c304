package image

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// maxJSON bounds an image's manifests and configuration, in bytes each. Registries allow 4 MiB.
const maxJSON = 4 << 20

// ociForm is the version of the way in which OCI images are made. An image made in an earlier way is made again.
const ociForm = 1

// found is an OCI image that was found, with unread layers.
type found struct {
	from   string // in words
	config *v1.ConfigFile
	digest string // of the configuration's text
	layers func() ([]v1.Layer, error)
	kept   *record // set where the store has it, so that nothing more was read
}

// at makes a found from an image's configuration and its count layers, and refuses what cannot be a guest.
func at(from string, config []byte, count int, layers func() ([]v1.Layer, error)) (*found, error) {
	cfg, err := v1.ParseConfigFile(bytes.NewReader(config))
	if err != nil {
		return nil, hostile("its configuration is not an image's: %v", err)
	}
	if cfg.OS != "" && cfg.OS != "linux" || cfg.Architecture != "" && cfg.Architecture != runtime.GOARCH {
		return nil, fmt.Errorf("it is for %s/%s, but this host is linux/%s", cfg.OS, cfg.Architecture, runtime.GOARCH)
	}
	// An image in the store is found by its configuration, so count its layers here.
	switch named := len(cfg.RootFS.DiffIDs); {
	case count != named:
		return nil, hostile("it has %d layers, but its configuration names %d", count, named)
	case count == 0:
		return nil, errors.New("it has no layers, so there is nothing in it to run")
	}
	if err := checkConfig(&cfg.Config); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(config)
	return &found{from: from, config: cfg, digest: "sha256:" + hex.EncodeToString(sum[:]), layers: layers}, nil
}

// checkConfig refuses settings that no process can have.
func checkConfig(c *v1.Config) error {
	if c.WorkingDir != "" && !strings.HasPrefix(c.WorkingDir, "/") {
		return fmt.Errorf("its working directory %.200q is not an absolute path, and no engine runs it: set WORKDIR to /%.200s", c.WorkingDir, c.WorkingDir)
	}
	for _, e := range c.Env {
		if strings.IndexByte(e, '=') <= 0 {
			return fmt.Errorf("%.200q in its environment is not NAME=VALUE", e)
		}
	}
	for _, s := range slices.Concat([]string{c.WorkingDir}, c.Env, c.Entrypoint, c.Cmd) {
		if strings.ContainsRune(s, 0) {
			return fmt.Errorf("%.200q in its configuration has a zero byte, which no process can be given", s)
		}
	}
	return nil
}

// OCI takes an image for this host's architecture from the place in ref and unpacks it, or finds it in the store.
//
//	docker://NAME[:TAG|@DIGEST]      a registry
//	docker-daemon:NAME               the Docker daemon (DOCKER_HOST where set, a unix socket)
//	docker-archive:FILE[:NAME]       what `docker save` wrote, or an OCI layout as a tar file; also gzipped
//	oci:DIR[:NAME|@DIGEST]           an OCI layout folder
//	DIR, FILE                        a folder with an oci-layout file, a `docker save` archive
//	NAME[:TAG|@DIGEST]               the Docker daemon, where one answers and has it, else the registry
//
// If several images fit, the error lists them. Every byte is checked against the image's digests. If a registry does not answer, a
// name comes from the store if it was taken before, with a warning.
func (s *Store) OCI(ctx context.Context, ref string, p Progress) (_ *Image, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("image %s: %w", ref, err)
		}
	}()
	w, err := s.workspace()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()

	src, err := parseReference(ref)
	if err != nil {
		return nil, err
	}
	f, err := src.find(ctx, s, w, p)
	key := "oci " + runtime.GOARCH + " " + ref
	if unreachable := (*unreachableError)(nil); errors.As(err, &unreachable) {
		e, rec, rerr := s.recall(key)
		if rerr != nil || rec == nil || rec.Form < ociForm {
			return nil, errors.Join(err, rerr)
		}
		img := s.image(ref, "the store", rec)
		img.Warnings = append(img.Warnings[:len(img.Warnings):len(img.Warnings)],
			fmt.Sprintf("using the copy of %s: %v", e.Time.Format(time.DateTime), err))
		return img, nil
	}
	if err != nil {
		return nil, err
	}
	if f.kept != nil {
		return s.image(ref, f.from, f.kept), nil
	}
	unlock, err := s.lock(ctx, f.digest)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	rec, err := s.findOCI(f.digest)
	if err != nil {
		return nil, err
	}
	if rec == nil {
		p.say("unpacking, from " + f.from)
		if rec, err = s.unpackOCI(ctx, w, f, p); err != nil {
			return nil, noSpace(err, s.root)
		}
		if err := s.keep(w, *rec); err != nil {
			return nil, err
		}
	} else {
		p.say("in the store already, the same as from " + f.from)
	}
	return s.image(ref, f.from, rec), s.remember(key, rec.Digest)
}

// check is called for each blob before it is read into memory; see place.check.
type check func(v1.Descriptor) error

// inspect reads an image's configuration and checks it against its manifest.
func inspect(img v1.Image, from string, c check) (*found, error) {
	m, err := img.Manifest()
	if err != nil {
		return nil, fmt.Errorf("its manifest in %s: %w", from, err)
	}
	if err := c(m.Config); err != nil {
		return nil, fmt.Errorf("its configuration in %s: %w", from, err)
	}
	raw, err := img.RawConfigFile()
	if err != nil {
		return nil, fmt.Errorf("its configuration in %s: %w", from, err)
	}
	if !isImage(m) {
		return nil, fmt.Errorf("%s has an artifact (%.60q), not an image", from, m.Config.MediaType)
	}
	f, err := at(from, raw, len(m.Layers), img.Layers)
	if err != nil {
		return nil, err
	}
	if f.digest != m.Config.Digest.String() {
		return nil, hostile("its configuration in %s is %s; must be %s", from, f.digest, m.Config.Digest)
	}
	return f, nil
}

// smallEnough is the check for places whose readers keep to the size in a descriptor.
func smallEnough(d v1.Descriptor) error {
	if d.Size < 0 || d.Size > maxJSON {
		return hostile("%s has %d bytes; must be at most %d", d.Digest, d.Size, maxJSON)
	}
	return nil
}

// unpackTree begins the tree of a new image in the workspace.
func (s *Store) unpackTree(ctx context.Context, w *workspace) (*unpacker, error) {
	dir := filepath.Join(w.dir, treeName)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	return newUnpacker(ctx, dir, s.limits)
}

func (s *Store) unpackOCI(ctx context.Context, w *workspace, f *found, p Progress) (_ *record, err error) {
	cfg := f.config
	layers, err := f.layers()
	if err != nil {
		return nil, fmt.Errorf("its layers in %s: %w", f.from, err)
	}
	if len(layers) > s.limits.layers {
		return nil, hostile("%d layers; must be at most %d", len(layers), s.limits.layers)
	}
	u, err := s.unpackTree(ctx, w)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, u.close()) }()
	for i, l := range layers {
		p.say(fmt.Sprintf("layer %d of %d, %d MiB so far", i+1, len(layers), u.total>>20))
		if err := u.ociLayer(l, cfg.RootFS.DiffIDs[i].String()); err != nil {
			return nil, fmt.Errorf("layer %d of %d: %w", i+1, len(layers), err)
		}
	}
	rec := &record{Digest: f.digest, Form: ociForm}
	who, err := u.user(cfg.Config.User)
	if err != nil {
		return nil, err
	}
	rec.Config = Config{
		Env:        withPath(cfg.Config.Env),
		WorkingDir: cfg.Config.WorkingDir,
		Entrypoint: cfg.Config.Entrypoint,
		Cmd:        cfg.Config.Cmd,
		UID:        who.uid,
		GID:        who.gid,
		Groups:     who.groups,
		Home:       who.home,
	}
	if err := u.workingDir(rec.Config.WorkingDir); err != nil {
		return nil, err
	}
	return rec, u.complete(rec)
}

// withPath adds the PATH that container engines give an image without one.
func withPath(env []string) []string {
	if slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "PATH=") }) {
		return env
	}
	return append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, env...)
}

// ociLayer unpacks one layer and checks its content against the digest in the configuration.
func (u *unpacker) ociLayer(l v1.Layer, diffID string) (err error) {
	if mt, err := l.MediaType(); err != nil {
		return err
	} else if !mt.IsLayer() {
		return fmt.Errorf("it is a %q, not a file system layer", mt)
	}
	r, err := l.Uncompressed()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	sum := sha256.New()
	if err := u.layer(io.TeeReader(r, sum), true); err != nil {
		return err
	}
	if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); got != diffID {
		return hostile("its content is %s; must be %s", got, diffID)
	}
	return nil
}
