//go:build linux

package ruler

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// scratch is the folder that a trial may write to. What a trial leaves there is not trusted.
type scratch struct {
	path     string
	mode     os.FileMode // permissions, set-id and sticky bits, as they were at the start
	uid, gid int
}

// openScratch notes what the folder is like. A guest without one can serve all orders but those that need it.
func openScratch(path string) (scratch, error) {
	s := scratch{path: orElse(path, ScratchDir)}
	var st unix.Stat_t
	switch err := unix.Stat(s.path, &st); {
	case errors.Is(err, unix.ENOENT):
		return s, nil // said when it is needed
	case err != nil:
		return s, fmt.Errorf("the scratch folder %s: %w", s.path, err)
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return s, fmt.Errorf("the scratch folder %s is not a folder", s.path)
	}
	s.mode, s.uid, s.gid = os.FileMode(st.Mode&0o7777), int(st.Uid), int(st.Gid)
	return s, nil
}

// Folders nested deeper than this are first moved up, so that depth costs neither stack nor open files.
const maxDepth = 50

// empty removes everything in the folder and gives the folder its first mode and owner back. It follows no symbolic
// link and enters no mount. Stopped ends it early. No process of a trial is alive meanwhile.
func (s *scratch) empty(stopped <-chan struct{}) error {
	fd, err := openFolder(unix.AT_FDCWD, s.path, unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return fmt.Errorf("the scratch folder %s cannot be opened: %w", s.path, err)
	}
	top := os.NewFile(uintptr(fd), s.path)
	defer top.Close()
	c := &cleaner{top: fd, stopped: stopped}
	if err := c.empty(top, 0); err != nil {
		return fmt.Errorf("the scratch folder cannot be emptied: %w", err)
	}
	if s.mode != 0 { // it was there at the start
		if err := unix.Fchown(fd, s.uid, s.gid); err != nil {
			return fmt.Errorf("giving the scratch folder its owner back: %w", err)
		}
		if err := unix.Fchmod(fd, uint32(s.mode)); err != nil {
			return fmt.Errorf("giving the scratch folder its mode back: %w", err)
		}
	}
	return nil
}

type cleaner struct {
	top     int // the scratch folder
	moved   int // folders that were moved up to it
	stopped <-chan struct{}
}

// empty removes what is in dir, also what is moved up to it meanwhile.
func (c *cleaner) empty(dir *os.File, depth int) error {
	for {
		// From the start each time: what was removed may or may not shift a folder's reading position.
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return err
		}
		names, err := dir.Readdirnames(4096)
		if err != nil && err != io.EOF {
			return err
		}
		if len(names) == 0 {
			return nil
		}
		for _, name := range names {
			select {
			case <-c.stopped:
				return errors.New("stopped")
			default:
			}
			if err := c.remove(int(dir.Fd()), dir.Name()+"/"+name, name, depth); err != nil {
				return err
			}
		}
	}
}

// remove removes one entry of the folder dir, or moves it up.
func (c *cleaner) remove(dir int, path, name string, depth int) error {
	err := unix.Unlinkat(dir, name, 0)
	switch {
	case err == nil || err == unix.ENOENT:
		return nil
	case err != unix.EISDIR && err != unix.EPERM: // POSIX has the second for a folder
		return fmt.Errorf("%.300s: %w", path, err)
	}
	if rerr := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); rerr == nil {
		return nil
	} else if rerr == unix.ENOTDIR {
		return fmt.Errorf("%.300s: %w", path, err)
	}
	if depth >= maxDepth {
		// A name that a trial has used too leads to an error, not to a loss: the folder there is not empty.
		c.moved++
		if err := unix.Renameat(dir, name, c.top, fmt.Sprintf(".tare-deep-%d", c.moved)); err != nil {
			return fmt.Errorf("%.300s: %w", path, err)
		}
		return nil
	}
	fd, err := openFolder(dir, name, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_XDEV)
	if err == unix.EXDEV {
		return fmt.Errorf("%.300s: a trial left something mounted there", path)
	}
	if err != nil {
		return fmt.Errorf("%.300s: %w", path, err)
	}
	sub := os.NewFile(uintptr(fd), path)
	err = c.empty(sub, depth+1)
	sub.Close()
	if err != nil {
		return err
	}
	if err := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); err != nil {
		return fmt.Errorf("%.300s: %w", path, err)
	}
	return nil
}

// openFolder opens a folder by openat2 with the given rules. Where that is not implemented (gVisor, Linux before
// 5.6) it follows no link in the last part of the name and crosses into no other file system.
func openFolder(dir int, name string, resolve uint64) (int, error) {
	flags := unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat2(dir, name, &unix.OpenHow{Flags: uint64(flags), Resolve: resolve})
	if err == nil || !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) { // a sandbox may refuse it as EPERM
		return fd, err
	}
	fd, err = unix.Openat(dir, name, flags, 0)
	if err != nil || resolve&unix.RESOLVE_NO_XDEV == 0 {
		return fd, err
	}
	var outer, inner unix.Stat_t
	err = unix.Fstat(dir, &outer)
	if err == nil {
		err = unix.Fstat(fd, &inner)
	}
	if err == nil && outer.Dev != inner.Dev {
		err = unix.EXDEV
	}
	if err != nil {
		syscall.Close(fd)
		return -1, err
	}
	return fd, nil
}
