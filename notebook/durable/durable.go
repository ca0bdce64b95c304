// Package durable keeps files whole through kills and power failures: a file that is put in place at once, a file of lines
// of which each is on the disk before work goes on, and locks that end with their process.
package durable

import (
	"errors"
	"fmt"
	"io"
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
	return Replace(path, perm, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Replace is WriteFile for what is written bit by bit. Where write fails, its error is in the chain and what was at path
// stays.
func Replace(path string, perm os.FileMode, write func(io.Writer) error) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "*"+PartSuffix)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
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
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, errors.Join(err, os.Remove(f.Name())))
	}
	return SyncDir(dir)
}

// SyncDir returns when the names in a folder are on the disk.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
