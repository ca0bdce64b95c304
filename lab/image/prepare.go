package image

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/moby/sys/user"

	"tare/lab/ruler"
)

// prepare makes the folders that every guest needs (see Image). What it replaces is told in a warning.
//
// /proc, /sys, /dev and /tmp are mounted on by every platform, some of which name them from outside of the guest: a
// link there could send a mount anywhere, so anything that is not a folder is replaced by an empty one. Tare's
// own folders must be missing or empty: an image that brings anything there is refused, for nobody
// could say whether it is meant for the ruler.
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
			warnings = append(warnings, fmt.Sprintf("/%s was no folder (%s) and was replaced by an empty one", d.name, fi.Mode().Type()))
			err = u.root.Remove(d.name)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err := u.makeDir(d.name, d.mode); err != nil {
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
			return nil, hostile("/%s is Tare's own place in a guest, and the image has something there that is no folder (%s)", d.name, fi.Mode().Type())
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
		if err := u.makeDir(d.name, d.mode); err != nil {
			return nil, noSpace(err, u.dir)
		}
	}
	return warnings, nil
}

// onlyOwn returns an error where the folder holds anything but Tare's own folders.
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
			return hostile("%.200q lies in Tare's own place in a guest: remove it from the image", p)
		}
	}
	return nil
}

// makeDir makes a folder of root's, or gives the one that is there that mode and owner.
func (u *unpacker) makeDir(name string, mode fs.FileMode) error {
	if err := u.root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := u.root.Chown(name, 0, 0); err != nil {
		return needRoot(err)
	}
	u.dirTimes[name] = time.Unix(0, 0)
	return u.root.Chmod(name, mode)
}

// maxPasswd bounds an image's passwd and group files, in bytes each.
const maxPasswd = 4 << 20

// user resolves the User of an image's configuration: "", "name", "uid", "name:group", "uid:gid", in any mixture,
// by the image's own /etc/passwd and /etc/group.
func (u *unpacker) user(want string) (uid, gid uint32, err error) {
	if want == "" {
		return 0, 0, nil
	}
	passwd, err := u.text("etc/passwd")
	if err != nil {
		return 0, 0, err
	}
	group, err := u.text("etc/group")
	if err != nil {
		return 0, 0, err
	}
	return resolveUser(want, passwd, group)
}

// text reads a file of the guest, following links inside the folder; a missing one is empty.
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
		err = hostile("%.200q is no regular file", name)
	case fi.Size() > maxPasswd:
		return nil, hostile("the image's /%s is longer than %d bytes", name, maxPasswd)
	default:
		text, err = u.root.ReadFile(physical)
	}
	if err != nil {
		return nil, fmt.Errorf("the image's /%s: %w", name, err)
	}
	return text, nil
}

// resolveUser does the work of user on the two files' contents. As in Docker, whose code it is, a number need not be in the
// files; one that is has its group from there, one that is not has group 0.
func resolveUser(want string, passwd, group []byte) (uid, gid uint32, err error) {
	name, groupName, hasGroup := strings.Cut(want, ":")
	if name == "" || hasGroup && groupName == "" {
		return 0, 0, fmt.Errorf("the image's user %.100q is not name, uid, name:group or uid:gid", want)
	}
	found, err := user.GetExecUser(want, nil, bytes.NewReader(passwd), bytes.NewReader(group))
	if err != nil {
		return 0, 0, fmt.Errorf("the image wants to run as user %.100q: %w", want, err)
	}
	// The largest number of 32 bits means "nobody in particular" to the kernel.
	if !isOwner(found.Uid) || !isOwner(found.Gid) {
		return 0, 0, fmt.Errorf("the image's user %.100q is %d:%d; expected numbers from 0 to 2^32-2", want, found.Uid, found.Gid)
	}
	return uint32(found.Uid), uint32(found.Gid), nil
}

// isOwner says whether a user's or group's number can own a file.
func isOwner(id int) bool { return 0 <= id && int64(id) < 1<<32-1 }
