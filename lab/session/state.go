//go:build linux

package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"tare/notebook/durable"
)

// StateDir is Tare's default folder for images, the journal and the guests' folders. TARE_STATE in the environment, an absolute
// path, overrides it.
const StateDir = "/var/lib/tare"

// hostLock is held by the one tare that measures on this host, whatever its state folder. Tests run several at the same time, with
// another file in the environment's testLock.
const (
	hostLock = "/run/tare.lock"
	testLock = "TARE_TEST_LOCK"
)

// stateDir is the state folder, an absolute path, without links if it exists.
func stateDir() (string, error) {
	dir := StateDir
	if d := os.Getenv("TARE_STATE"); d != "" {
		dir = d
	}
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("TARE_STATE=%s: must be an absolute path", dir)
	}
	// The undo journal names paths below it in JSON, which can only contain UTF-8.
	if !utf8.ValidString(dir) {
		return "", fmt.Errorf("TARE_STATE=%q: must be valid UTF-8, because the undo journal names paths below it", dir)
	}
	return filepath.Clean(dir), nil
}

// takeHost makes the state folder if it is missing, and takes the locks of the host and of the folder until they are released.
func takeHost(state string) (locks []*os.File, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, release(locks))
			locks = nil
		}
	}()
	path, err := lockPath()
	if err != nil {
		return nil, err
	}
	host, err := claim(path)
	if err != nil {
		return nil, err
	}
	locks = append(locks, host)
	if err := os.MkdirAll(state, 0o755); err != nil {
		return locks, fmt.Errorf("the state folder cannot be made: %w", err)
	}
	if err := checkState(state); err != nil {
		return locks, err
	}
	folder, err := claim(filepath.Join(state, "lock"))
	if err != nil {
		return locks, err
	}
	return append(locks, folder), nil
}

// lockPath is the path of the host's lock, in a folder that exists.
func lockPath() (string, error) {
	path := hostLock
	if p := os.Getenv(testLock); p != "" {
		path = p
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("a folder for the host's lock: %w", err)
	}
	return path, nil
}

// BusyError says that another tare measures on this host.
type BusyError struct{ PID string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("another tare (PID %s) is measuring on this host; wait for it or stop it", e.PID)
}

// AwaitHost returns when no other tare measures on this host or uses the same state folder, or when ctx is done. It wakes up for nothing else,
// because the other one measures.
func AwaitHost(ctx context.Context) error {
	host, err := lockPath()
	if err != nil {
		return err
	}
	state, err := stateDir()
	if err != nil {
		return err
	}
	for _, path := range []string{host, filepath.Join(state, "lock")} {
		if err := awaitLock(ctx, path); err != nil && !errors.Is(err, fs.ErrNotExist) { // a state folder that is missing has no lock
			return fmt.Errorf("the lock %s: %w", path, err)
		}
	}
	return nil
}

// awaitLock returns when nobody has a lock, or when ctx is done.
func awaitLock(ctx context.Context, path string) error {
	root, err := durable.OpenFolder(filepath.Dir(path))
	if err != nil {
		return err
	}
	f, err := durable.OpenFile(root, filepath.Base(path), os.O_RDWR|os.O_CREATE, 0o644)
	if err := errors.Join(err, root.Close()); err != nil {
		return err
	}
	free := make(chan error, 1)
	go func() { // the kernel waits for a lock until it has it: this ends with the other tare, or with this process
		var err error = unix.EINTR
		for err == unix.EINTR {
			err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		}
		free <- errors.Join(err, f.Close())
	}()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-free:
		return err
	}
}

// checkState says why root must not trust the state folder. The undo journal names programs to run and folders to remove, and the
// other folders contain programs and images.
func checkState(state string) error {
	if err := durable.CheckFolder(state); err != nil {
		return fmt.Errorf("the state folder cannot be trusted: %w; name another with TARE_STATE", err)
	}
	all, err := os.ReadDir(state)
	if err != nil {
		return fmt.Errorf("the state folder: %w", err)
	}
	for _, e := range all {
		if e.Type().IsRegular() || e.Type()&os.ModeSocket != 0 { // ssh's socket, and files whose owner is checked when they are opened
			continue
		}
		if err := durable.CheckFolder(filepath.Join(state, e.Name())); err != nil {
			return fmt.Errorf("the state folder cannot be trusted: %w; name another with TARE_STATE", err)
		}
	}
	return nil
}

// claim takes a lock that only one tare on a host can hold.
func claim(path string) (*os.File, error) {
	root, err := durable.OpenFolder(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("the lock %s: %w", path, err)
	}
	f, err := durable.Claim(root, filepath.Base(path))
	if held := (*durable.HeldError)(nil); errors.As(err, &held) {
		err = &BusyError{held.By}
	}
	return f, errors.Join(err, root.Close())
}

func release(locks []*os.File) error {
	var errs []error
	for _, f := range locks {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
