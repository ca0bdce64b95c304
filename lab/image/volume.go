package image

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Volume is a folder or file of the host that is copied into an image.
type Volume struct {
	Host  string
	Guest string // its place in the image, an absolute path
}

// Limits on all volumes of one image together.
const (
	volumeBytes   = 8 << 30
	volumeEntries = 200_000
	volumesMost   = 64
)

// volumesForm is hashed first, so that an image with volumes never has the digest of something else.
const volumesForm = "tare image with volumes 1\n"

// closedPlaces are mounted over in every guest.
var closedPlaces = []string{"/proc", "/sys", "/dev", "/tmp", "/.tare"}

// CheckVolumes checks volumes, as far as possible without looking at the host.
func CheckVolumes(volumes []Volume) error {
	if len(volumes) > volumesMost {
		return fmt.Errorf("%d volumes; at most %d are allowed", len(volumes), volumesMost)
	}
	for i, v := range volumes {
		switch {
		case v.Host == "" || v.Guest == "" || strings.ContainsRune(v.Host+v.Guest, 0):
			return fmt.Errorf("volume %q: must be HOST:GUEST", v.Host+":"+v.Guest)
		case !strings.HasPrefix(v.Guest, "/") || path.Clean(v.Guest) != strings.TrimSuffix(v.Guest, "/") || path.Clean(v.Guest) == "/":
			return fmt.Errorf("volume at %q: must be an absolute path in the guest, without .. and not / itself", v.Guest)
		}
		for _, closed := range closedPlaces {
			if g := path.Clean(v.Guest); g == closed || strings.HasPrefix(g, closed+"/") {
				return fmt.Errorf("volume at %q: %s is the guest's own: name another folder", v.Guest, closed)
			}
		}
		for _, other := range volumes[:i] {
			if path.Clean(other.Guest) == path.Clean(v.Guest) {
				return fmt.Errorf("volume at %q: only one volume is allowed at a place", v.Guest)
			}
		}
	}
	return nil
}

// WithVolumes is the image with copies of the volumes, which replace what the image has at their places; made, or found in the
// store. The copies keep the host's owners, modes and symbolic links, but not its times. It omits anything other than files,
// folders and links, with a warning. The digest covers the image's and the names, owners, modes and content of the volumes.
func (s *Store) WithVolumes(ctx context.Context, base *Image, volumes []Volume, p Progress) (_ *Image, err error) {
	if len(volumes) == 0 {
		return base, nil
	}
	if err := CheckVolumes(volumes); err != nil {
		return nil, err
	}
	volumes = slices.SortedFunc(slices.Values(volumes), func(a, b Volume) int { return strings.Compare(a.Guest, b.Guest) }) // outer ones first
	sum, size := sha256.New(), int64(0)
	io.WriteString(sum, volumesForm+base.Digest+"\n")
	left := map[string]int{}
	for _, v := range volumes {
		n, err := v.write(ctx, sum, volumeBytes-size, left)
		if err != nil {
			return nil, err
		}
		size += n
	}
	digest := "sha256:" + hex.EncodeToString(sum.Sum(nil))
	unlock, err := s.lock(ctx, digest)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	rec, err := s.find(digest)
	if err != nil {
		return nil, err
	}
	if rec == nil {
		p.say(fmt.Sprintf("copying %d MiB of volumes into the image; it is kept", (size+1<<20-1)>>20))
		if rec, err = s.addVolumes(ctx, base, volumes, digest, left); err != nil {
			return nil, noSpace(err, s.root)
		}
	}
	img := s.image(base.Reference, base.From, rec)
	img.Base, img.Config, img.Warnings = base.Digest, base.Config, slices.Concat(base.Warnings, rec.Warnings)
	return img, nil
}

// addVolumes makes the image with volumes, whose digest is known.
func (s *Store) addVolumes(ctx context.Context, base *Image, volumes []Volume, digest string, left map[string]int) (_ *record, err error) {
	w, err := s.workspace()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	u, err := s.unpackTree(ctx, w)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, u.close()) }()
	if err := piped(func(w io.Writer) error { return base.Tar(ctx, w) }, func(r io.Reader) error { return u.layer(r, false) }); err != nil {
		return nil, err
	}
	u.devices, u.fifos, u.others, u.attributes = 0, 0, 0, 0 // the image's own warnings say so already
	sum := sha256.New()
	io.WriteString(sum, volumesForm+base.Digest+"\n")
	for _, v := range volumes {
		if err := u.clear(v.Guest); err != nil {
			return nil, fmt.Errorf("volume at %s: %w", v.Guest, err)
		}
		// Hash again during the copy, because a file may have changed: the digest must be that of the copy.
		err := piped(func(w io.Writer) error { _, err := v.write(ctx, w, volumeBytes, map[string]int{}); return err },
			func(r io.Reader) error { return u.layer(io.TeeReader(r, sum), false) })
		if err != nil {
			return nil, fmt.Errorf("volume %s: %w", v.Host, err)
		}
	}
	if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); got != digest {
		return nil, errors.New("volumes: a file changed while it was copied; stop what writes there, and try again")
	}
	rec := &record{Digest: digest, Config: base.Config}
	for _, what := range slices.Sorted(maps.Keys(left)) {
		rec.Warnings = append(rec.Warnings, fmt.Sprintf("volumes: %d %s left out", left[what], what))
	}
	if err := u.complete(rec); err != nil {
		return nil, err
	}
	return rec, s.keep(w, *rec)
}

// piped lets one function read what another writes.
func piped(write func(io.Writer) error, read func(io.Reader) error) error {
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := write(w)
		w.CloseWithError(err) // the reader sees it; without an error, it sees the end
		written <- err
	}()
	err := read(r)
	r.CloseWithError(err) // the writer may still write
	if werr := <-written; werr != nil && !errors.Is(werr, io.ErrClosedPipe) && werr != err {
		return werr // the reader's error follows from it
	}
	return err
}

// clear empties the place of a volume: like a mount, a volume hides what the image has there.
func (u *unpacker) clear(guest string) error {
	guest = strings.Trim(path.Clean(guest), "/")
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	err := errors.Join(
		t.WriteHeader(&tar.Header{Name: path.Join(path.Dir(guest), whiteoutPrefix+path.Base(guest)), Typeflag: tar.TypeReg, Mode: 0o644}),
		t.Close())
	if err != nil {
		return err
	}
	return u.layer(&b, true)
}

// write writes the volume as a tar stream: the same content gives the same bytes. left counts what is omitted, by kind.
func (v Volume) write(ctx context.Context, to io.Writer, most int64, left map[string]int) (size int64, err error) {
	t := tar.NewWriter(to)
	name := strings.Trim(path.Clean(v.Guest), "/")
	host, err := filepath.EvalSymlinks(v.Host)
	if err != nil {
		return 0, fmt.Errorf("volume %s: %w", v.Host, err)
	}
	// Open the volume's folder once, so that nothing outside it is read, even if somebody changes names in between.
	in, of := host, "."
	if fi, err := os.Lstat(host); err != nil {
		return 0, fmt.Errorf("volume %s: %w", v.Host, err)
	} else if !fi.IsDir() {
		if !fi.Mode().IsRegular() {
			return 0, fmt.Errorf("volume %s: must be a folder or a regular file", v.Host)
		}
		in, of = filepath.Dir(host), filepath.Base(host)
	}
	root, err := os.OpenRoot(in)
	if err != nil {
		return 0, fmt.Errorf("volume %s: %w", v.Host, err)
	}
	defer root.Close()
	c := &volumeCopy{ctx: ctx, root: root, t: t, left: left, most: most}
	err = fs.WalkDir(root.FS(), filepath.ToSlash(of), func(p string, d fs.DirEntry, err error) error {
		if err == nil {
			at := name
			if of == "." {
				at = path.Join(name, p)
			}
			err = c.entry(p, at)
		}
		return err
	})
	if err == nil {
		err = t.Close()
	}
	if err != nil {
		return 0, fmt.Errorf("volume %s: %w", v.Host, err)
	}
	return c.size, nil
}

// volumeCopy is a volume on its way into a tar stream.
type volumeCopy struct {
	ctx     context.Context
	root    *os.Root
	t       *tar.Writer
	left    map[string]int
	most    int64
	size    int64
	entries int
}

func (c *volumeCopy) entry(p, name string) error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	fi, err := c.root.Lstat(p)
	if err != nil {
		return err
	}
	if c.entries++; c.entries > volumeEntries {
		return fmt.Errorf("more than %d files and folders; name a smaller folder", volumeEntries)
	}
	h := &tar.Header{Name: name, Mode: tarMode(fi.Mode()), ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		h.Uid, h.Gid = int(st.Uid), int(st.Gid)
	}
	switch fi.Mode().Type() {
	case 0:
		return c.file(p, h)
	case fs.ModeDir:
		h.Typeflag = tar.TypeDir
	case fs.ModeSymlink:
		h.Typeflag = tar.TypeSymlink
		if h.Linkname, err = c.root.Readlink(p); err != nil {
			return err
		}
	case fs.ModeSocket:
		c.left["sockets"]++
		return nil
	case fs.ModeNamedPipe:
		c.left["named pipes"]++
		return nil
	default:
		c.left["device nodes"]++
		return nil
	}
	return c.t.WriteHeader(h)
}

// tarMode are the permissions of a file in a tar stream.
func tarMode(m fs.FileMode) int64 {
	mode := int64(m.Perm())
	for bit, of := range map[fs.FileMode]int64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if m&bit != 0 {
			mode |= of
		}
	}
	return mode
}

func (c *volumeCopy) file(p string, h *tar.Header) error {
	f, err := c.root.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0) // a pipe in its place would wait for a writer
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() {
		return fmt.Errorf("%s is no longer a regular file", p)
	}
	if h.Size = fi.Size(); c.size+h.Size > c.most {
		return fmt.Errorf("more than %d GiB of files together; name a smaller folder", volumeBytes>>30)
	}
	c.size += h.Size
	h.Typeflag = tar.TypeReg
	if err := c.t.WriteHeader(h); err != nil {
		return err
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{c.t}, io.LimitReader(interruptible{c.ctx, f}, h.Size), make([]byte, copyBuffer)); err != nil {
		return err
	}
	if err := c.t.Flush(); err != nil {
		return fmt.Errorf("%s became shorter while it was read: %w", p, err)
	}
	return nil
}
