//go:build unix && !aix && !solaris

package durable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// lockPoll is how often a lock that another process holds is tried again: the kernel can wait without end, but not until a
// context is done.
const lockPoll = 50 * time.Millisecond

// TryLock takes the lock of an open file, and says whether it got it; another open file may have it. It ends when the file
// is closed, by the process's end at the latest.
func TryLock(f *os.File) (bool, error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
	}
}

// TryLockNamed is TryLock for a file that another process may remove from its folder: it says no, too, where the file no
// longer has its name.
func TryLockNamed(f *os.File) (bool, error) {
	locked, err := TryLock(f)
	if err != nil || !locked {
		return false, err
	}
	mine, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Lstat(f.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, named), err
}

// Lock makes the file where it is not there and takes its lock, waiting for whoever holds it until ctx is done. The file
// stays: were it removed while another waits for it, two could hold it.
func Lock(ctx context.Context, path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		locked, err := TryLock(f)
		if locked {
			return f.Close, nil
		}
		if err == nil {
			select {
			case <-ctx.Done():
				err = fmt.Errorf("waiting for the lock %s: %w", path, context.Cause(ctx))
			case <-time.After(lockPoll):
				continue
			}
		}
		return nil, errors.Join(err, f.Close())
	}
}

// Claim makes the file in an open folder where it is not there, takes its lock and leaves this process's id in it, for those that
// are kept out: HeldError is in the chain of the error where another process has the lock. A file that holds anything else than a
// process's id is not a lock, and stays as it is.
func Claim(root *os.Root, name string) (*os.File, error) {
	f, err := OpenFile(root, name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := claim(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// leftFor is how long a lock is tried again whose process is gone. A child that it forked just before has the lock until it runs its
// program.
const leftFor = 5 * time.Second

func claim(f *os.File) error {
	locked, pid, err := tryClaim(f)
	for began := time.Now(); err == nil && !locked && gone(pid) && time.Since(began) < leftFor; locked, pid, err = tryClaim(f) {
		time.Sleep(lockPoll)
	}
	if err != nil {
		return err
	}
	switch {
	case locked:
		if err := f.Truncate(0); err != nil {
			return err
		}
		_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
		return err
	case pid == "": // for a moment after the lock was taken
		pid = "(not known)"
	}
	return &HeldError{Path: f.Name(), By: pid}
}

// tryClaim tries to take the lock, and returns the process ID in the file.
func tryClaim(f *os.File) (locked bool, pid string, err error) {
	if locked, err = TryLock(f); err != nil {
		return false, "", err
	}
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 32))
	if err != nil {
		return false, "", err
	}
	pid = strings.Trim(string(text), "\x00\n ") // a power failure can leave zeros
	if _, err := strconv.ParseUint(pid, 10, 32); pid != "" && err != nil {
		return false, "", fmt.Errorf("%s is not a lock of Tare: it does not hold a process ID; move it away", f.Name())
	}
	return locked, pid, nil
}

// gone reports whether no process has the ID.
func gone(pid string) bool {
	n, err := strconv.Atoi(pid)
	return err == nil && n > 0 && errors.Is(syscall.Kill(n, 0), syscall.ESRCH)
}

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
