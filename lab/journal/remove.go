//go:build linux

package journal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/proc"
	"tare/lab/ruler/empty"
)

// retryPause is the pause between two attempts where the kernel gives no notice.
const retryPause = 5 * time.Millisecond

// RemoveDir removes the folder path below stateDir with everything in it. Neither path may contain symbolic links. It removes
// symbolic links without following them, and touches nothing behind a mount: if something is mounted on it or in it, RemoveDir
// returns an error and removes nothing. A missing folder is not an error.
func RemoveDir(ctx context.Context, stateDir, path string) error {
	if err := removeDir(ctx, stateDir, path); err != nil {
		return fmt.Errorf("journal: remove %s: %w", path, err)
	}
	return nil
}

func removeDir(ctx context.Context, state, path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return errors.New(`must be an absolute path without "." or ".." in it`)
	}
	rel, ok := strings.CutPrefix(path, strings.TrimSuffix(state, "/")+"/")
	if !ok || rel == "" {
		return fmt.Errorf("it is not below %q, and Tare removes nothing else", state)
	}
	mounts, err := proc.MountsBelow(path)
	if err != nil {
		return err
	}
	if len(mounts) > 0 {
		return fmt.Errorf("something is mounted at %s; unmount it first", strings.Join(mounts, ", "))
	}
	root, err := unix.Open(state, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(root)
	parent, err := unix.Openat2(root, filepath.Dir(rel), &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err == unix.ENOENT || err == unix.ENOTDIR {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open its parent without following links: %w", err)
	}
	defer unix.Close(parent)
	base := filepath.Base(rel)
	fd, err := empty.Open(parent, base, empty.Within)
	switch {
	case err == unix.ENOENT:
		return nil
	case err == unix.ELOOP || err == unix.ENOTDIR:
		return errors.New("it is not a folder, so Tare did not make it")
	case err != nil:
		return err
	}
	dir := os.NewFile(uintptr(fd), base)
	if err := errors.Join(empty.Folder(dir, ctx.Err), dir.Close()); err != nil {
		return err
	}
	if err := unix.Unlinkat(parent, base, unix.AT_REMOVEDIR); err != unix.ENOENT {
		return err
	}
	return nil
}

// Unmount unmounts target, a path without symbolic links. It is not an error if nothing is mounted there. A mount below it is not
// ours, and an error. As a last resort Unmount detaches a mount that stays busy: it is gone from the tree and ends with its last
// user.
func Unmount(ctx context.Context, target string) error {
	// Half of the available time is for waiting until it is not busy.
	wait := proc.EndTimeout
	if d, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(d)/2)
	}
	patience := time.Now().Add(wait)
	for range 1000 {
		mounts, err := proc.MountsBelow(target)
		if err != nil {
			return fmt.Errorf("journal: unmount %s: %w", target, err)
		}
		if len(mounts) == 0 {
			return nil
		}
		if i := slices.IndexFunc(mounts, func(m string) bool { return m != target }); i >= 0 {
			return fmt.Errorf("journal: unmount %s: something else is mounted below it, at %s; unmount that first", target, mounts[i])
		}
		err = unix.Unmount(target, unix.UMOUNT_NOFOLLOW)
		for err == unix.EBUSY && ctx.Err() == nil && time.Now().Before(patience) {
			time.Sleep(retryPause)
			err = unix.Unmount(target, unix.UMOUNT_NOFOLLOW)
		}
		if err == unix.EBUSY {
			err = unix.Unmount(target, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
		}
		// EINVAL: not a mount (any more); the next iteration finds out.
		if err != nil && err != unix.EINVAL && err != unix.ENOENT {
			return fmt.Errorf("journal: unmount %s: %w", target, err)
		}
	}
	return fmt.Errorf("journal: unmount %s: something is still mounted there after 1000 attempts", target)
}

// ProcessEntry is the journal's entry for the living process pid. It contains the start time, so that another process that later
// gets the same pid is never mistaken for it.
func ProcessEntry(pid int) (Entry, error) {
	start, err := proc.StartTime(pid)
	if err != nil {
		return Entry{}, fmt.Errorf("journal: process %d: %w", pid, err)
	}
	return Entry{Kind: KindProcess, Target: fmt.Sprintf("%d %d", pid, start)}, nil
}

func parseProcess(target string) (pid int, start uint64, err error) {
	p, s, ok := strings.Cut(target, " ")
	pid, perr := strconv.Atoi(p)
	start, serr := strconv.ParseUint(s, 10, 64)
	if !ok || perr != nil || serr != nil || pid <= 1 || pid > math.MaxInt32 {
		return 0, 0, fmt.Errorf("%q: must be a pid above 1, a space and a start time", target)
	}
	return pid, start, nil
}

// KillProcess kills the process in target ("PID START", see ProcessEntry), as proc.Kill does.
func KillProcess(ctx context.Context, target string) error {
	pid, start, err := parseProcess(target)
	if err == nil {
		err = proc.Kill(ctx, pid, start)
	}
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}
