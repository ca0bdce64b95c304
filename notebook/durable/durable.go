// Package durable keeps files whole through kills and power failures: a file that is put in place at once, a file whose lines
// are each on the disk before work goes on, and locks that end with their process.
package durable

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// PartSuffix ends the name of a file that is not whole yet: WriteFile or Replace is at it, or was killed over it.
const PartSuffix = ".part"

// HeldError says that another process has a lock.
type HeldError struct {
	Path string
	By   string // its process id, where it is known
}

func (e *HeldError) Error() string { return fmt.Sprintf("%s is held by process %s", e.Path, e.By) }

// WriteFile puts a file in place, whole or not at all, with these permissions whatever the umask, and returns when it and
// its name are on the disk.
func WriteFile(path string, data []byte, perm os.FileMode) error {
	return Replace(path, perm, Content(data))
}

// WriteFileIn is WriteFile in a folder that is open.
func WriteFileIn(root *os.Root, name string, data []byte, perm os.FileMode) error {
	return replaceIn(root, name, perm, Content(data))
}

// Content writes the data, for Replace and Output.
func Content(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}

// Replace is WriteFile for what is written bit by bit. Where write fails, its error is in the chain and what was at path
// stays.
func Replace(path string, perm os.FileMode, write func(io.Writer) error) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, bare(err))
	}
	return errors.Join(replaceIn(root, filepath.Base(path), perm, write), root.Close())
}

// Output writes what a user named: a regular file is replaced as by Replace, a symbolic link's target likewise. A device, a named pipe or a socket
// stays what it is, and is written to.
func Output(path string, perm os.FileMode, write func(io.Writer) error) error {
	target := path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		target = real
	} else if _, dangling := os.Lstat(path); dangling == nil {
		return fmt.Errorf("cannot write %s: it is a symbolic link to a file that does not exist", path)
	}
	if is, err := os.Stat(target); err != nil || is.Mode().IsRegular() {
		return Replace(target, perm, write)
	}
	f, err := os.OpenFile(target, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, bare(err))
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, bare(err))
	}
	return nil
}

func replaceIn(root *os.Root, name string, perm os.FileMode, write func(io.Writer) error) (err error) {
	path := filepath.Join(root.Name(), name)
	// A name that nobody can predict, and never an existing file.
	part := rand.Text() + PartSuffix
	f, err := root.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, bare(err))
	}
	err = write(f)
	if err == nil {
		err = f.Chmod(perm)
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = root.Rename(part, name)
	}
	if err != nil {
		if named(err, f.Name(), part) {
			err = bare(err)
		}
		return fmt.Errorf("cannot write %s: %w", path, errors.Join(err, root.Remove(part)))
	}
	return SyncFolder(root)
}

// CheckDir says why files cannot be put into a folder.
func CheckDir(dir string) error {
	f, err := os.CreateTemp(dir, "*"+PartSuffix)
	if err != nil {
		return fmt.Errorf("cannot write in %s: %w", dir, bare(err))
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// named says whether an error is of this file, which has a path and a name in its folder.
func named(err error, path, name string) bool {
	var of *fs.PathError
	var from *os.LinkError
	return errors.As(err, &of) && of.Path == path || errors.As(err, &from) && from.Old == name
}

// bare is the cause of an error that names a file which whoever reads it knows nothing of.
func bare(err error) error {
	var of *fs.PathError
	var from *os.LinkError
	switch {
	case errors.As(err, &of):
		return of.Err
	case errors.As(err, &from):
		return from.Err
	}
	return err
}

// SyncDir returns when the names in a folder are on the disk.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Sweep removes whatever in a folder has a name that begins with one of the prefixes, and names what it removed. The caller holds the lock
// without which nobody makes such files.
func Sweep(dir string, prefixes ...string) (removed []string, err error) {
	for _, prefix := range prefixes {
		left, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
		if err != nil {
			return removed, err
		}
		for _, path := range left {
			if err := os.RemoveAll(path); err != nil {
				return removed, err
			}
			removed = append(removed, path)
		}
	}
	return removed, nil
}

// SyncFolder is SyncDir for a folder that is open.
func SyncFolder(root *os.Root) error {
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
