//go:build unix && !aix && !solaris

package notebook

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// lockFolder takes the folder's lock, which ends with the process, and leaves the process's id in the file for whom
// it keeps out.
func lockFolder(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the results folder: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fmt.Errorf("%s %w by process %s: wait for it, or end it", dir, ErrBusy, holder(f))
		} else {
			err = fmt.Errorf("cannot lock %s: %w", path, err)
		}
		return nil, errors.Join(err, f.Close())
	}
	pid := []byte(strconv.Itoa(os.Getpid()) + "\n")
	if err := f.Truncate(0); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot write %s: %w", path, err), f.Close())
	}
	if _, err := f.WriteAt(pid, 0); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot write %s: %w", path, err), f.Close())
	}
	return f, nil
}

// holder is what the lock file says of who holds it. It is empty for a moment after the lock was taken.
func holder(f *os.File) string {
	data, err := io.ReadAll(io.LimitReader(f, 32))
	if pid := strings.TrimSpace(string(data)); err == nil && pid != "" {
		return pid
	}
	return "(not known)"
}
