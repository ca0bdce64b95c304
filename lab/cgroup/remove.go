//go:build linux

package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/proc"
)

// retryPause is the pause between two attempts where the kernel gives no notice.
const retryPause = 5 * time.Millisecond

// Procs lists the processes in a cgroup and in those below it, each once, in ascending order. A missing cgroup has none.
func Procs(dir string) ([]int, error) {
	var pids []int
	err := each(dir, func(path string) error {
		b, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		if errors.Is(err, unix.EOPNOTSUPP) { // a group of threads: their processes are listed in a group above
			return nil
		}
		if err != nil {
			return err
		}
		for _, f := range strings.Fields(string(b)) {
			pid, err := strconv.Atoi(f)
			if err != nil {
				return fmt.Errorf("%s/cgroup.procs: %w", path, err)
			}
			pids = append(pids, pid)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cgroup: processes of a group: %w", err)
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

// each calls visit with the folder of a cgroup and of each below it. It leaves out one that goes away, of which visit returns the error.
func each(dir string, visit func(path string) error) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = visit(path)
		}
		if gone(err) {
			return nil
		}
		return err
	})
}

// gone reports that a cgroup went away between being listed and being read.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV)
}

// Remove kills every process in the cgroup (version 1 or 2) and in those below it, waits for their end, and
// removes it. A missing cgroup is not an error. Remove refuses a folder that is not a cgroup, the root of a hierarchy,
// and a cgroup that this process is in. The wait ends with ctx, or after 20 s.
func Remove(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, proc.EndTimeout)
	defer cancel()
	if err := remove(ctx, path); err != nil {
		return fmt.Errorf("cgroup: remove %s: %w", path, err)
	}
	return nil
}

func remove(ctx context.Context, path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return errors.New(`must be an absolute path without "." or ".." in it`)
	}
	there, err := isCgroup(path)
	if err != nil || !there {
		return err
	}
	for {
		if err := killAll(ctx, path); err != nil {
			return err
		}
		err := rmdirs(path)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) {
			return err
		}
		if cerr := ctx.Err(); cerr != nil {
			pids, perr := Procs(path)
			return errors.Join(fmt.Errorf("still busy with processes %v: %w", pids, errors.Join(err, cerr)), perr)
		}
		// Busy means that a process came in between, or that the kernel is still removing the last one.
		time.Sleep(retryPause)
	}
}

// isCgroup reports whether the folder exists, and refuses a folder that cannot be one of Tare's cgroups.
func isCgroup(path string) (bool, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT || err == unix.ENOTDIR {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	var fst unix.Statfs_t
	if err := unix.Fstatfs(fd, &fst); err != nil {
		return false, err
	}
	var st, parent unix.Stat_t
	if err := errors.Join(unix.Fstat(fd, &st), unix.Stat(filepath.Dir(path), &parent)); err != nil {
		return false, err
	}
	switch {
	case fst.Type != unix.CGROUP_SUPER_MAGIC && fst.Type != unix.CGROUP2_SUPER_MAGIC, st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return false, errors.New("it is not a cgroup")
	case st.Dev != parent.Dev:
		return false, errors.New("it is the root of a cgroup hierarchy")
	}
	return true, nil
}

// killAll kills the processes in the cgroup and waits for their end.
func killAll(ctx context.Context, path string) error {
	pids, err := Procs(path)
	if err != nil || len(pids) == 0 {
		return err
	}
	if i := slices.Index(pids, os.Getpid()); i >= 0 {
		// In version 1 the group may contain a single thread that started a program there and is about to end, so it is busy for a
		// moment.
		if tids, err := os.ReadFile(filepath.Join(path, "tasks")); err != nil || slices.Contains(strings.Fields(string(tids)), strconv.Itoa(os.Getpid())) {
			return errors.New("this process itself is in it")
		}
		if pids = slices.Delete(pids, i, i+1); len(pids) == 0 {
			return nil
		}
	}
	if pids[0] == 0 {
		return errors.New("it has processes outside this PID namespace; run this where they were started")
	}
	fds := make(map[int]int, len(pids))
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err == unix.ESRCH || err == unix.EINVAL { // EINVAL: a thread whose leader is in another cgroup
			continue
		}
		if err != nil {
			return fmt.Errorf("pidfd_open of process %d: %w", pid, err)
		}
		fds[pid] = fd
	}
	if err := thaw(path); err != nil {
		return err
	}
	// The pidfds are open, so the pids cannot be reused unnoticed. Which processes are still in the group?
	still, err := Procs(path)
	if err != nil {
		return err
	}
	for pid, fd := range fds {
		if !slices.Contains(still, pid) {
			unix.Close(fd)
			delete(fds, pid)
			continue
		}
		if err := proc.KillByFD(fd); err != nil {
			return fmt.Errorf("kill process %d: %w", pid, err)
		}
	}
	for pid, fd := range fds {
		if err := proc.AwaitEnd(ctx, fd); err != nil {
			return fmt.Errorf("process %d was killed but has not ended; it may be frozen or waiting for a disk: %w", pid, err)
		}
	}
	return nil
}

// thaw lets the processes of a cgroup of version 1 go on: a frozen one does not die. It does nothing where the group or its file is missing,
// as in most hierarchies.
func thaw(path string) error {
	err := os.WriteFile(filepath.Join(path, "freezer.state"), []byte("THAWED"), 0)
	if err == nil || gone(err) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return fmt.Errorf("thawing cgroup %s: %w", path, err)
}

// rmdirs removes a cgroup, those below it first. Its files vanish with it.
func rmdirs(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if err := rmdirs(filepath.Join(path, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.NewSyscallError("rmdir", unix.Rmdir(path))
}
