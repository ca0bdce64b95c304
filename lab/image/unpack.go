package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Unpacking of untrusted tar streams.
//
// Names and link targets are those of the guest, whose root is the folder: an absolute name or link starts at the folder's root. A
// name with "..", and a hard link to a place outside, are errors. A symbolic link is kept unchanged, whatever its target. It is
// followed only where an entry is below it, and then inside the folder: one that climbs above the root ends at the root, as in the
// guest. An entry's own last name is never followed: an existing thing is replaced. In addition os.Root cannot leave the folder
// even if this code were wrong.

// limits bound the content of one image. The defaults are far above any image seen, and below what would harm a host.
type limits struct {
	entries int   // tar entries, over all layers
	total   int64 // bytes of file content, over all layers
	file    int64 // bytes of one file
	headers int64 // bytes of the streams that are not content: headers, padding, skipped entries
	trailer int64 // bytes after a stream's end mark
	names   int64 // bytes of all entries' names together: they are held in memory
	path    int   // bytes of one path; PATH_MAX leaves 1 KiB for the path of the store
	depth   int   // folders in one path
	layers  int   // of one OCI image
	reserve int64 // bytes that stay free on the file system
}

var defaultLimits = limits{
	entries: 2_000_000,
	total:   64 << 30,
	file:    32 << 30,
	headers: 4 << 30,
	trailer: 16 << 20,
	names:   256 << 20,
	path:    3072,
	depth:   256,
	layers:  512,
	reserve: 1 << 30,
}

const (
	maxComponent = 255       // bytes of one name: NAME_MAX
	maxTarget    = 4095      // bytes of a symbolic link: PATH_MAX less its zero
	maxLinks     = 40        // symbolic links followed for one path, as the kernel does
	spaceEvery   = 64 << 20  // bytes written between two checks of the free space
	spaceEntries = 100       // entries between two checks of the free space: empty files need space and inodes too
	copyBuffer   = 256 << 10 // bytes
)

// ErrHostile is in the chain of every error about an archive that does what no honest archive does, or more than Tare allows.
var ErrHostile = errors.New("archive refused")

func hostile(format string, a ...any) error {
	return fmt.Errorf("%w: %s", ErrHostile, fmt.Sprintf(format, a...))
}

// unpacker fills one folder from one or more tar streams, the lower layers first.
type unpacker struct {
	ctx  context.Context
	dir  string // the folder's path, for messages and free space
	root *os.Root
	lim  limits
	buf  []byte

	entries   int
	total     int64 // bytes of announced content
	raw       int64 // bytes read from the streams
	content   int64 // file content among them
	names     int64
	unchecked int64 // bytes written since the free space was last checked

	dirTimes map[string]time.Time // times of folders, set at the end, because adding to a folder changes its time
	seen     map[string]struct{}  // paths of the current layer, including parent folders; nil: no whiteouts

	// The folder of the last entry. Archives are ordered by folders.
	parentName string
	parentPath string
	parent     *os.Root

	devices, fifos, others, attributes int // omitted
}

func newUnpacker(ctx context.Context, dir string, lim limits) (*unpacker, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	u := &unpacker{ctx: ctx, dir: dir, root: root, lim: lim, buf: make([]byte, copyBuffer), dirTimes: map[string]time.Time{}}
	err = u.space()
	if err == nil {
		err = root.Chmod(".", 0o755) // sets the mode whatever the umask; an archive may set another
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	u.dirTimes["."] = time.Unix(0, 0)
	return u, nil
}

// close closes the unpacker's files; the folder stays.
func (u *unpacker) close() error { return errors.Join(u.leave(), u.root.Close()) }

// leave closes the cached folder.
func (u *unpacker) leave() error {
	var err error
	if u.parent != nil {
		err = u.parent.Close()
	}
	u.parent, u.parentName, u.parentPath = nil, "", ""
	return err
}

// warnings says what was omitted, a line for each kind.
func (u *unpacker) warnings() []string {
	var w []string
	add := func(n int, what string) {
		if n > 0 {
			w = append(w, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(u.devices, "device nodes outside /dev left out")
	add(u.fifos, "named pipes left out")
	add(u.others, "entries of unknown kind left out")
	add(u.attributes, "extended attributes not kept (only file capabilities are)")
	return w
}

// layer unpacks one tar stream completely, over what exists. With whiteouts, names with the prefix ".wh." remove what lower layers
// brought, as the OCI image specification says.
func (u *unpacker) layer(r io.Reader, whiteouts bool) error {
	if err := u.leave(); err != nil { // entering a folder marks it as seen
		return err
	}
	u.seen = nil
	if whiteouts {
		u.seen = map[string]struct{}{}
	}
	m := &meter{u: u, r: interruptible{u.ctx, r}}
	tr := tar.NewReader(m)
	for {
		hdr, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = u.entry(hdr, tr)
			if err != nil {
				err = fmt.Errorf("entry %d, %.200q: %w", u.entries, hdr.Name, err)
			}
		} else {
			err = fmt.Errorf("after entry %d: %w", u.entries, err)
		}
		if err != nil {
			return noSpace(err, u.dir)
		}
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, io.LimitReader(m, u.lim.trailer+1), u.buf)
	if err == nil && n > u.lim.trailer {
		err = hostile("more than the allowed %d bytes after the end mark", u.lim.trailer)
	}
	return err
}

// meter reads a stream for the unpacker: it counts, and bounds what is not content.
type meter struct {
	u *unpacker
	r io.Reader
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.u.raw += int64(n)
	if m.u.raw-m.u.content > m.u.lim.headers {
		return n, hostile("more than the allowed %d bytes of headers and padding", m.u.lim.headers)
	}
	return n, err
}

// space returns an error where the file system has less room than it must keep.
func (u *unpacker) space() error {
	u.unchecked = 0
	return room(u.dir, 0, u.lim.reserve)
}

// clean removes "", "." and a leading "/" from a name of the archive. The root is "".
func (u *unpacker) clean(name string) (string, error) {
	if len(name) > u.lim.path {
		return "", hostile("a name of %d bytes; must be at most %d", len(name), u.lim.path)
	}
	var parts []string
	for _, c := range strings.Split(name, "/") {
		switch {
		case c == "" || c == ".":
		case c == "..":
			return "", hostile(`a name with ".."`)
		case len(c) > maxComponent:
			return "", hostile("a name with a part of %d bytes; must be at most %d", len(c), maxComponent)
		case strings.ContainsRune(c, 0):
			return "", hostile("a name with a zero byte")
		default:
			parts = append(parts, c)
		}
	}
	if len(parts) > u.lim.depth {
		return "", hostile("a name %d folders deep; must be at most %d", len(parts), u.lim.depth)
	}
	return strings.Join(parts, "/"), nil
}

// resolve follows symbolic links as the guest's kernel would. It returns the path, free of links, of what a path of the guest
// names; the root is ".". With create it makes missing folders.
func (u *unpacker) resolve(name string, create bool) (physical string, err error) {
	w := walk{u.root}
	defer w.up(maxDepth)
	physical = "."
	links := 0
	rest := strings.Split(name, "/")
	for len(rest) > 0 {
		c := rest[0]
		rest = rest[1:]
		switch {
		case c == "" || c == ".":
			continue
		case c == "..": // above the root is the root
			if err := w.up(1); err != nil {
				return "", err
			}
			physical = path.Dir(physical)
			continue
		case len(c) > maxComponent:
			return "", hostile("the path %.200q has a part of %d bytes; must be at most %d", name, len(c), maxComponent)
		}
		next := path.Join(physical, c)
		if len(next) > u.lim.path || strings.Count(next, "/") >= u.lim.depth {
			return "", hostile("the path %.200q leads to one of %d bytes, %d folders deep", name, len(next), strings.Count(next, "/")+1)
		}
		fi, err := w.here().Lstat(c)
		if errors.Is(err, fs.ErrNotExist) && create {
			if err = u.makeParent(w.here(), c, next); err == nil {
				fi, err = w.here().Lstat(c)
			}
		}
		switch {
		case err != nil:
			return "", err
		case fi.Mode()&fs.ModeSymlink != 0:
			if links++; links > maxLinks {
				return "", hostile("the path %.200q goes through more than %d symbolic links", name, maxLinks)
			}
			target, err := w.here().Readlink(c)
			if err != nil {
				return "", err
			}
			if strings.HasPrefix(target, "/") {
				if err := w.up(maxDepth); err != nil {
					return "", err
				}
				physical = "."
			}
			rest = append(strings.Split(target, "/"), rest...)
		case !fi.IsDir() && (create || len(rest) > 0):
			return "", hostile("%.200q is not a folder, and the path %.200q goes through it", c, name)
		default:
			physical = next
			if u.seen != nil && create {
				u.seen[next] = struct{}{}
			}
			if len(rest) > 0 {
				if err := w.down(c); err != nil {
					return "", err
				}
			}
		}
	}
	return physical, nil
}

// walk is the open folders from the root down to the end of a path. Each is opened in the one above, because opening it by its
// whole path takes long in deep folders.
type walk []*os.Root

const maxDepth = 1 << 20 // more than any walk has

func (w walk) here() *os.Root { return w[len(w)-1] }

func (w *walk) down(name string) error {
	in, err := w.here().OpenRoot(name)
	if err == nil {
		*w = append(*w, in)
	}
	return err
}

// up leaves the last n folders, but never the root.
func (w *walk) up(n int) (err error) {
	for ; n > 0 && len(*w) > 1; n-- {
		err = errors.Join(err, w.here().Close())
		*w = (*w)[:len(*w)-1]
	}
	return err
}

// makeParent makes a folder for an entry whose parent the archive does not contain.
func (u *unpacker) makeParent(in *os.Root, base, physical string) error {
	if err := u.spaceForEntry(); err != nil {
		return err
	}
	if err := u.hold(physical); err != nil {
		return err
	}
	// Of mode 0755 whatever the umask, and whatever a setgid folder above passes on.
	return u.makeDir(in, base, physical, 0o755)
}

// enter makes the folder of that name the current one.
func (u *unpacker) enter(name string) error {
	if u.parent != nil && u.parentName == name {
		return nil
	}
	if err := u.leave(); err != nil {
		return err
	}
	physical, err := u.resolve(name, true)
	if err != nil {
		return err
	}
	if u.parent, err = u.root.OpenRoot(physical); err != nil {
		u.parent = nil
		return err
	}
	u.parentName, u.parentPath = name, physical
	return nil
}

// spaceForEntry counts one more entry of the file system.
func (u *unpacker) spaceForEntry() error {
	u.entries++
	if u.entries > u.lim.entries {
		return hostile("more than %d entries", u.lim.entries)
	}
	if u.entries%spaceEntries == 0 {
		return u.space()
	}
	return nil
}

// hold counts a path that is held in memory until the end.
func (u *unpacker) hold(physical string) error {
	if u.names += int64(len(physical)); u.names > u.lim.names {
		return hostile("more than %d bytes of names", u.lim.names)
	}
	return nil
}

func (u *unpacker) entry(hdr *tar.Header, content io.Reader) error {
	if err := u.spaceForEntry(); err != nil {
		return err
	}
	if hdr.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := u.clean(hdr.Name)
	if err != nil {
		return err
	}
	if hdr.Size < 0 {
		return hostile("a size of %d", hdr.Size)
	}
	if !isOwner(hdr.Uid) || !isOwner(hdr.Gid) {
		return hostile("an owner of %d:%d, outside 0 to 2^32-2", hdr.Uid, hdr.Gid)
	}
	if name == "" {
		if hdr.Typeflag != tar.TypeDir {
			return hostile("the root as something that is not a folder")
		}
		return u.dirAttributes(u.root, ".", ".", hdr)
	}
	dir, base := path.Split(name)
	dir = strings.TrimSuffix(dir, "/")
	if u.seen != nil && strings.HasPrefix(base, whiteoutPrefix) {
		return u.whiteout(dir, strings.TrimPrefix(base, whiteoutPrefix))
	}
	switch hdr.Typeflag {
	case tar.TypeChar, tar.TypeBlock:
		if name != "dev" && !strings.HasPrefix(name, "dev/") { // every guest gets its own /dev
			u.devices++
		}
		return nil
	case tar.TypeFifo:
		u.fifos++
		return nil
	case tar.TypeReg, tar.TypeRegA, tar.TypeCont, tar.TypeGNUSparse, tar.TypeLink, tar.TypeSymlink, tar.TypeDir: //lint:ignore SA1019 old archives have TypeRegA
	default:
		u.others++
		return nil
	}
	if err := u.enter(dir); err != nil {
		return err
	}
	physical := path.Join(u.parentPath, base)
	if len(physical) > u.lim.path {
		return hostile("a path of %d bytes; must be at most %d", len(physical), u.lim.path)
	}
	if err := u.hold(physical); err != nil {
		return err
	}
	if u.seen != nil {
		u.seen[physical] = struct{}{}
	}
	switch hdr.Typeflag {
	case tar.TypeDir:
		return u.folder(base, physical, hdr)
	case tar.TypeSymlink:
		return u.symlink(base, hdr)
	case tar.TypeLink:
		return u.hardLink(base, physical, hdr)
	default:
		return u.file(base, hdr, content)
	}
}

// replace removes the thing with that name from the current folder.
func (u *unpacker) replace(base string) error {
	fi, err := u.parent.Lstat(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if fi.Mode().IsRegular() {
		return u.parent.Remove(base)
	}
	return u.removeAll(base)
}

// removeAll removes base, a folder or link, from the current folder. Names may mean other places afterwards, so it looks up the
// current folder again under its own path.
func (u *unpacker) removeAll(base string) error {
	if err := u.parent.RemoveAll(base); err != nil {
		return err
	}
	u.parentName = u.parentPath
	return nil
}

func (u *unpacker) folder(base, physical string, hdr *tar.Header) error {
	fi, err := u.parent.Lstat(base)
	if err == nil && !fi.IsDir() {
		if err := u.replace(base); err != nil {
			return err
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || !fi.IsDir() {
		if err := u.parent.Mkdir(base, 0o700); err != nil {
			return err
		}
	}
	return u.dirAttributes(u.parent, base, physical, hdr)
}

func (u *unpacker) dirAttributes(r *os.Root, base, physical string, hdr *tar.Header) error {
	u.countAttributes(hdr, nil)
	if err := r.Chown(base, hdr.Uid, hdr.Gid); err != nil {
		return needRoot(err)
	}
	if err := r.Chmod(base, permissions(hdr)); err != nil {
		return err
	}
	u.dirTimes[physical] = hdr.ModTime
	return nil
}

func (u *unpacker) file(base string, hdr *tar.Header, content io.Reader) error {
	if hdr.Size > u.lim.file {
		return hostile("a file of %d bytes; must be at most %d", hdr.Size, u.lim.file)
	}
	if u.total += hdr.Size; u.total > u.lim.total {
		return hostile("files of more than %d bytes together", u.lim.total)
	}
	if err := u.replace(base); err != nil {
		return err
	}
	f, err := u.parent.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := u.fill(f, hdr, content); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	t := storable(hdr.ModTime)
	return u.parent.Chtimes(base, t, t)
}

func (u *unpacker) fill(f *os.File, hdr *tar.Header, content io.Reader) error {
	var n int64
	for {
		k, rerr := content.Read(u.buf)
		u.content += int64(k)
		n += int64(k)
		if n > hdr.Size {
			return hostile("more content than the %d bytes announced", hdr.Size)
		}
		if _, err := f.Write(u.buf[:k]); err != nil { // with k = 0 this writes nothing
			return err
		}
		if u.unchecked += int64(k); u.unchecked >= spaceEvery {
			if err := u.space(); err != nil {
				return err
			}
		}
		if rerr == io.EOF {
			break
		}
		if rerr != nil {
			return rerr
		}
	}
	// In this order, because a change of owner clears the setuid bit and the capabilities.
	if err := f.Chown(hdr.Uid, hdr.Gid); err != nil {
		return needRoot(err)
	}
	if err := f.Chmod(permissions(hdr)); err != nil {
		return err
	}
	u.countAttributes(hdr, f)
	return nil
}

// Keys of extended attributes in PAX records: by GNU tar and Go, and by libarchive.
const (
	xattrPrefix     = "SCHILY.xattr."
	libarchiveXattr = "LIBARCHIVE.xattr."
	capability      = "security.capability"
)

// countAttributes keeps the file capabilities of f, and counts the extended attributes that are not kept.
func (u *unpacker) countAttributes(hdr *tar.Header, f *os.File) {
	for k, v := range hdr.PAXRecords {
		name, ok := strings.CutPrefix(k, xattrPrefix)
		if !ok {
			if strings.HasPrefix(k, libarchiveXattr) {
				u.attributes++
			}
			continue
		}
		if name == capability && f != nil && unix.Fsetxattr(int(f.Fd()), capability, []byte(v), 0) == nil {
			continue
		}
		u.attributes++
	}
}

func (u *unpacker) symlink(base string, hdr *tar.Header) error {
	if hdr.Linkname == "" || len(hdr.Linkname) > maxTarget || strings.ContainsRune(hdr.Linkname, 0) {
		return hostile("a symbolic link with a target of %d bytes, or a zero byte in it", len(hdr.Linkname))
	}
	u.countAttributes(hdr, nil)
	if err := u.replace(base); err != nil {
		return err
	}
	if err := u.parent.Symlink(hdr.Linkname, base); err != nil {
		return err
	}
	if err := u.parent.Lchown(base, hdr.Uid, hdr.Gid); err != nil {
		return needRoot(err)
	}
	f, err := u.parent.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	t := storable(hdr.ModTime)
	ts := unix.Timespec{Sec: t.Unix(), Nsec: int64(t.Nanosecond())}
	return unix.UtimesNanoAt(int(f.Fd()), base, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
}

func (u *unpacker) hardLink(base, physical string, hdr *tar.Header) error {
	target, err := u.clean(hdr.Linkname)
	if err != nil {
		return fmt.Errorf("hard link to %.200q: %w", hdr.Linkname, err)
	}
	dir, last := path.Split(target)
	if last == "" {
		return hostile("a hard link to the root")
	}
	targetDir, err := u.resolve(dir, false)
	if err != nil {
		return fmt.Errorf("hard link to %.200q: %w", hdr.Linkname, err)
	}
	from := path.Join(targetDir, last)
	fi, err := u.root.Lstat(from)
	if err != nil {
		return fmt.Errorf("hard link to %.200q, which the archive did not bring before: %w", hdr.Linkname, err)
	}
	if fi.IsDir() {
		return hostile("a hard link to the folder %.200q", hdr.Linkname)
	}
	if from == physical {
		return nil
	}
	if err := u.replace(base); err != nil {
		return err
	}
	return u.root.Link(from, physical)
}

// storable is the time, or 1970 where file systems cannot store it.
func storable(t time.Time) time.Time {
	if t.Year() < 1970 || t.Year() > 2400 {
		return time.Unix(0, 0)
	}
	return t
}

// finish sets the times of the folders. Nothing may be unpacked after it.
func (u *unpacker) finish() error {
	if err := u.leave(); err != nil {
		return err
	}
	for name, t := range u.dirTimes {
		if u.ctx.Err() != nil {
			return context.Cause(u.ctx)
		}
		// A folder that was removed or replaced, or whose parent was, has no time to be set.
		if physical, err := u.resolve(name, false); err != nil || physical != name {
			continue
		}
		t = storable(t)
		if err := u.root.Chtimes(name, t, t); err != nil {
			return err
		}
	}
	return nil
}

// Names of whiteouts, from the OCI image specification and aufs, which invented them.
const (
	whiteoutPrefix = ".wh."
	whiteoutMeta   = ".wh..wh." // aufs's own files
	whiteoutOpaque = ".wh..opq" // the rest of ".wh..wh..opq": nothing of the lower layers' folder is visible
)

func (u *unpacker) whiteout(dir, base string) error {
	opaque := base == whiteoutOpaque
	if !opaque && strings.HasPrefix(whiteoutPrefix+base, whiteoutMeta) {
		return nil
	}
	if base == "" || base == "." || base == ".." {
		return hostile("a whiteout of %q", base)
	}
	if err := u.enter(dir); err != nil {
		return err
	}
	if !opaque {
		return u.hide(u.parentPath, base)
	}
	return u.hideChildren(u.parentPath)
}

// hide removes what lower layers have at base in the folder of that path; what the current layer brought stays.
func (u *unpacker) hide(dir, base string) error {
	if err := u.ctx.Err(); err != nil {
		return context.Cause(u.ctx)
	}
	p := path.Join(dir, base)
	if _, ours := u.seen[p]; !ours {
		u.parentName = u.parentPath // names may mean other places now
		return u.root.RemoveAll(p)
	}
	fi, err := u.root.Lstat(p)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || !fi.IsDir() {
		return nil
	}
	return u.hideChildren(p)
}

func (u *unpacker) hideChildren(dir string) error {
	f, err := u.root.Open(path.Join(".", dir))
	if err != nil {
		return err
	}
	names, err := f.Readdirnames(-1)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	for _, n := range names {
		if err := u.hide(dir, n); err != nil {
			return err
		}
	}
	return nil
}

func permissions(hdr *tar.Header) fs.FileMode {
	return hdr.FileInfo().Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
}

func needRoot(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: an image's files keep their owners, and only root may set them: run as root", err)
	}
	return err
}
