//go:build linux

// Package empty removes what guests, and the work in them, have left in a folder. None of it is trusted. It removes symbolic links
// without following them, touches nothing behind a mount, and needs neither more open files nor more stack in deep folders. The
// ruler uses it in guests, which contain nothing else of Tare's, and the journal uses it to remove the guests' folders from the
// host.
package empty

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Within opens a folder in a folder only if it is really there and nothing is mounted on it.
const Within = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV

// Open opens a folder by openat2 with the given rules. Where openat2 is missing (gVisor, Linux before 5.6) it follows no link in
// the last part of the name and enters no other file system.
func Open(dir int, name string, resolve uint64) (int, error) {
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
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Folder removes everything in the folder. It calls stopped before each entry; an error of stopped ends it early.
func Folder(dir *os.File, stopped func() error) error {
	r := remover{top: int(dir.Fd()), stopped: stopped}
	return r.empty(dir, 0)
}

// Folders nested deeper than this are first moved up to the top.
const maxDepth = 50

type remover struct {
	top     int // the folder to empty
	moved   int // folders that were moved up to it
	stopped func() error
}

// empty removes what is in dir, including what is moved up to it in the meantime.
func (r *remover) empty(dir *os.File, depth int) error {
	for {
		// From the start each time: removing an entry may or may not shift a folder's reading position.
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
			if err := r.stopped(); err != nil {
				return err
			}
			if err := r.remove(dir, name, depth); err != nil {
				return err
			}
		}
	}
}

// remove removes one entry of the folder dir, or moves it up.
func (r *remover) remove(dir *os.File, name string, depth int) error {
	in, path := int(dir.Fd()), dir.Name()+"/"+name
	fail := func(err error) error { return fmt.Errorf("%.300s: %w", path, err) }
	err := unix.Unlinkat(in, name, 0)
	switch {
	case err == nil || err == unix.ENOENT:
		return nil
	case err != unix.EISDIR && err != unix.EPERM: // POSIX has the second one for a folder
		return fail(err)
	}
	if rerr := unix.Unlinkat(in, name, unix.AT_REMOVEDIR); rerr == nil {
		return nil
	} else if rerr == unix.ENOTDIR {
		return fail(err)
	}
	if depth >= maxDepth {
		r.moved++
		err := unix.Renameat2(in, name, r.top, fmt.Sprintf(".tare-deep-%d", r.moved), unix.RENAME_NOREPLACE)
		if err != nil && err != unix.EEXIST { // the next iteration of empty uses the next number
			return fail(err)
		}
		return nil
	}
	fd, err := Open(in, name, Within)
	if err == unix.EXDEV {
		err = errors.New("something is mounted there")
	}
	if err != nil {
		return fail(err)
	}
	sub := os.NewFile(uintptr(fd), path)
	err = r.empty(sub, depth+1)
	sub.Close()
	if err != nil {
		return err
	}
	if err := unix.Unlinkat(in, name, unix.AT_REMOVEDIR); err != nil {
		return fail(err)
	}
	return nil
}
