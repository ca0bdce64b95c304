package image

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/user"

	"tare/lab/ruler"
)

// prepare makes the folders that every guest needs (see Image), and warns about what it replaces.
//
// Every platform mounts on /proc, /sys, /dev and /tmp, and some name them from outside of the guest. A link there could send a
// mount anywhere, so prepare replaces anything that is not a folder by an empty one. Tare's own folders must be missing or empty.
// prepare refuses an image with content there, because nobody could say whether it is meant for the ruler.
func (u *unpacker) prepare() (warnings []string, err error) {
	if err := u.leave(); err != nil {
		return nil, err
	}
	for _, d := range []struct {
		name string
		mode fs.FileMode
	}{{"proc", 0o755}, {"sys", 0o755}, {"dev", 0o755}, {"tmp", 0o777 | fs.ModeSticky}} {
		fi, err := u.root.Lstat(d.name)
		if err == nil && fi.IsDir() {
			continue
		}
		if err == nil {
			warnings = append(warnings, fmt.Sprintf("/%s was not a folder (%s) and was replaced by an empty one", d.name, fi.Mode().Type()))
			err = u.root.Remove(d.name)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err := u.makeDir(u.root, d.name, d.name, d.mode); err != nil {
			return nil, noSpace(err, u.dir)
		}
	}
	own := strings.TrimPrefix(path.Dir(ruler.WorkDir), "/")
	for _, d := range []struct {
		name string
		mode fs.FileMode
	}{
		{own, 0o755},
		{strings.TrimPrefix(ruler.WorkDir, "/"), 0o755},
		{strings.TrimPrefix(ruler.ScratchDir, "/"), 0o777 | fs.ModeSticky},
		{strings.TrimPrefix(ruler.RunDir, "/"), 0o755},
	} {
		fi, err := u.root.Lstat(d.name)
		switch {
		case err == nil && !fi.IsDir():
			return nil, hostile("/%s is reserved for Tare in a guest, and the image has something there that is not a folder (%s)", d.name, fi.Mode().Type())
		case err == nil:
			if err := u.onlyOwn(d.name, own); err != nil {
				return nil, err
			}
			if err := u.root.Remove(d.name); err != nil && d.name != own {
				return nil, err
			}
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
		if err := u.makeDir(u.root, d.name, d.name, d.mode); err != nil {
			return nil, noSpace(err, u.dir)
		}
	}
	return warnings, nil
}

// onlyOwn returns an error where the folder has anything except Tare's own folders.
func (u *unpacker) onlyOwn(name, own string) error {
	f, err := u.root.Open(name)
	if err != nil {
		return err
	}
	children, err := f.Readdirnames(-1)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	for _, c := range children {
		p := "/" + name + "/" + c
		if name != own || p != ruler.WorkDir && p != ruler.ScratchDir && p != ruler.RunDir {
			return hostile("%.200q is in a folder reserved for Tare: remove it from the image", p)
		}
	}
	return nil
}

// makeDir makes a folder that belongs to root, or gives an existing folder that mode and owner. Its path is physical, its name is
// base in the folder in.
func (u *unpacker) makeDir(in *os.Root, base, physical string, mode fs.FileMode) error {
	if err := in.Mkdir(base, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := in.Chown(base, 0, 0); err != nil {
		return needRoot(err)
	}
	u.dirTimes[physical] = time.Unix(0, 0)
	return in.Chmod(base, mode)
}

// maxPasswd bounds an image's passwd and group files, in bytes each.
const maxPasswd = 4 << 20

// workingDir makes the working directory of an image's configuration if the image lacks it, as container engines do.
func (u *unpacker) workingDir(dir string) error {
	if err := u.leave(); err != nil {
		return err
	}
	if _, err := u.resolve(path.Clean("/"+dir), true); err != nil {
		return noSpace(fmt.Errorf("its working directory: %w", err), u.dir)
	}
	return nil
}

// identity is the user that an image's programs run as.
type identity struct {
	uid, gid uint32
	groups   []uint32 // supplementary, as from a container engine
	home     string
}

// user resolves the User of an image's configuration: "", which is root, "name", "uid", "name:group", "uid:gid", in any mixture,
// with the image's own /etc/passwd and /etc/group.
func (u *unpacker) user(want string) (identity, error) {
	passwd, err := u.text("etc/passwd")
	if err != nil {
		return identity{}, err
	}
	group, err := u.text("etc/group")
	if err != nil {
		return identity{}, err
	}
	return resolveUser(want, passwd, group)
}

// text reads a file of the guest, following links inside the folder. A missing file is empty.
func (u *unpacker) text(name string) (text []byte, err error) {
	var fi fs.FileInfo
	physical, err := u.resolve(name, false)
	if err == nil {
		fi, err = u.root.Lstat(physical)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
	case !fi.Mode().IsRegular():
		err = hostile("%.200q is not a regular file", name)
	case fi.Size() > maxPasswd:
		return nil, hostile("the image's /%s must be at most %d bytes long", name, maxPasswd)
	default:
		text, err = u.root.ReadFile(physical)
	}
	if err != nil {
		return nil, fmt.Errorf("the image's /%s: %w", name, err)
	}
	return text, nil
}

// As is the configuration for another user, named as an image names its user and resolved with its own files.
func (i *Image) As(who string) (Config, error) {
	cfg := i.Config
	root, err := os.OpenRoot(i.Dir)
	if err != nil {
		return cfg, err
	}
	defer root.Close()
	read := func(name string) (text []byte, err error) {
		f, err := root.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		defer f.Close()
		text, err = io.ReadAll(io.LimitReader(f, maxPasswd+1))
		if err == nil && len(text) > maxPasswd {
			err = hostile("the image's /%s must be at most %d bytes long", name, maxPasswd)
		}
		return text, err
	}
	passwd, err := read("etc/passwd")
	if err != nil {
		return cfg, err
	}
	group, err := read("etc/group")
	if err != nil {
		return cfg, err
	}
	id, err := resolveUser(who, passwd, group)
	cfg.UID, cfg.GID, cfg.Groups, cfg.Home = id.uid, id.gid, id.groups, id.home
	return cfg, err
}

// resolveUser does the work of user on the contents of the two files. It uses Docker's code: a number need not be in the files. One
// that is there has its group from there; one that is not has group 0 and the home "/". A user with a named group has no other
// group.
func resolveUser(want string, passwd, group []byte) (who identity, err error) {
	name, groupName, hasGroup := strings.Cut(want, ":")
	if want != "" && name == "" || hasGroup && groupName == "" {
		return who, fmt.Errorf("the image's user %.100q is not name, uid, name:group or uid:gid", want)
	}
	found, err := user.GetExecUser(want, &user.ExecUser{Home: "/"}, bytes.NewReader(passwd), bytes.NewReader(group))
	if err != nil {
		return who, fmt.Errorf("the image wants to run as user %.100q: %w", want, err)
	}
	// To the kernel the largest number of 32 bits means "nobody in particular".
	if !isOwner(found.Uid) || !isOwner(found.Gid) || slices.ContainsFunc(found.Sgids, func(g int) bool { return !isOwner(g) }) {
		return who, fmt.Errorf("the image's user %.100q is %d:%d with groups %.200v; must be numbers from 0 to 2^32-2", want, found.Uid, found.Gid, found.Sgids)
	}
	if strings.ContainsRune(found.Home, 0) {
		return who, fmt.Errorf("the home of the image's user %.100q, %.200q, has a zero byte", want, found.Home)
	}
	who = identity{uid: uint32(found.Uid), gid: uint32(found.Gid), home: cmp.Or(found.Home, "/")}
	for _, g := range found.Sgids {
		if !slices.Contains(who.groups, uint32(g)) {
			who.groups = append(who.groups, uint32(g))
		}
	}
	if len(who.groups) > ruler.MaxGroups {
		return who, fmt.Errorf("the image's user %.100q is in %d groups; must be at most %d", want, len(who.groups), ruler.MaxGroups)
	}
	return who, nil
}

// isOwner reports whether the number of a user or group can own a file.
func isOwner(id int) bool { return 0 <= id && int64(id) < 1<<32-1 }
