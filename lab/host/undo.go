//go:build linux

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// endTimeout bounds the wait for killed processes and busy mounts where the caller's context does not.
const endTimeout = 20 * time.Second

// retryPause is between two attempts where the kernel tells nobody when the next would succeed.
const retryPause = 5 * time.Millisecond

// RemoveDir removes the folder path, which lies below stateDir, with all in it. Symbolic links are removed, never
// followed, and nothing behind a mount is touched: a mount in it, or on it, is an error, and then nothing was
// removed. A folder that is not there is no error.
func RemoveDir(ctx context.Context, stateDir, path string) error {
	state, err := resolve(stateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("host: remove %s: %w", path, err)
	}
	if err := removeDir(ctx, state, path); err != nil {
		return fmt.Errorf("host: remove %s: %w", path, err)
	}
	return nil
}

func removeDir(ctx context.Context, state, path string) error {
	rel, err := below(state, path)
	if err != nil {
		return err
	}
	on, under, err := mountsAt(path)
	if err != nil {
		return err
	}
	if on > 0 {
		under = append(under, path)
	}
	if len(under) > 0 {
		return fmt.Errorf("something is mounted at %s; unmount it first", strings.Join(under, ", "))
	}
	root, err := unix.Open(state, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
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
	top, err := openDir(parent, base)
	switch {
	case err == unix.ENOENT:
		return nil
	case err == unix.ELOOP || err == unix.ENOTDIR:
		return errors.New("it is not a folder, so it is not what was made there")
	case err != nil:
		return err
	}
	r := remover{ctx: ctx, top: top}
	err = r.empty(top, 0)
	if err := errors.Join(err, unix.Close(top)); err != nil {
		return err
	}
	return ignore(unix.Unlinkat(parent, base, unix.AT_REMOVEDIR), unix.ENOENT)
}

// openDir opens a folder in a folder, if it is one and no mount is on it.
func openDir(dir int, name string) (int, error) {
	return unix.Openat2(dir, name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
	})
}

func ignore(err, what error) error {
	if err == what {
		return nil
	}
	return err
}

// remover empties a folder. A guest may have written into it, so how deep it is is not trusted: what lies deeper
// than maxDepth is moved up to the top first, and neither descriptors nor stack grow with the depth.
type remover struct {
	ctx   context.Context
	top   int
	moved int
}

const maxDepth = 64

func (r *remover) empty(dir, depth int) error {
	for {
		// Read anew from the start each time: removing entries moves the others.
		fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), ".")
		names, err := f.Readdirnames(1024)
		if cerr := f.Close(); cerr != nil {
			return cerr
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := r.ctx.Err(); err != nil {
				return err
			}
			if err := r.remove(dir, name, depth); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
}

func (r *remover) remove(dir int, name string, depth int) error {
	err := unix.Unlinkat(dir, name, 0)
	if err != unix.EISDIR && err != unix.EPERM {
		return ignore(err, unix.ENOENT)
	}
	err = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
	if err != unix.ENOTEMPTY && err != unix.EEXIST {
		return ignore(err, unix.ENOENT)
	}
	if depth >= maxDepth {
		r.moved++
		err := unix.Renameat2(dir, name, r.top, fmt.Sprintf(".tare-deep-%d", r.moved), unix.RENAME_NOREPLACE)
		if err == unix.EEXIST {
			return nil // the next turn of empty takes the next number
		}
		return err
	}
	child, err := openDir(dir, name)
	if err != nil {
		return err
	}
	err = r.empty(child, depth+1)
	if err := errors.Join(err, unix.Close(child)); err != nil {
		return err
	}
	return ignore(unix.Unlinkat(dir, name, unix.AT_REMOVEDIR), unix.ENOENT)
}

// Unmount takes away what is mounted at target; nothing mounted there is no error. Something that was mounted
// below it is not ours to take away, and an error. A mount that stays busy is, as a last resort, detached (it is
// gone from the tree and ends with its last user), and note says so.
func Unmount(ctx context.Context, target string) (note string, err error) {
	// Half of the time that there is goes to waiting until it is not busy.
	wait := endTimeout
	if d, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(d)/2)
	}
	patience := time.Now().Add(wait)
	for range 1000 {
		on, under, err := mountsAt(target)
		if err != nil {
			return note, fmt.Errorf("host: unmount %s: %w", target, err)
		}
		if on == 0 {
			return note, nil
		}
		if len(under) > 0 {
			return note, fmt.Errorf("host: unmount %s: something else is mounted below it, at %s; unmount that first", target, strings.Join(under, ", "))
		}
		err = unix.Unmount(target, unix.UMOUNT_NOFOLLOW)
		for err == unix.EBUSY && ctx.Err() == nil && time.Now().Before(patience) {
			pause(ctx, retryPause)
			err = unix.Unmount(target, unix.UMOUNT_NOFOLLOW)
		}
		if err == unix.EBUSY {
			err = unix.Unmount(target, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
			note = "it stayed busy, so it was detached: it ends with the last process that uses it"
		}
		// EINVAL: no mount (any more); the next turn looks.
		if err != nil && err != unix.EINVAL && err != unix.ENOENT {
			return note, fmt.Errorf("host: unmount %s: %w", target, err)
		}
	}
	return note, fmt.Errorf("host: unmount %s: after 1000 times something is still mounted there", target)
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// mountsAt counts the mounts on path, one on the other, and lists those below it, as this process sees them.
func mountsAt(path string) (on int, under []string, err error) {
	// The kernel's list has no symbolic links in it. The last component is not followed: a mount on a link is
	// a mount on what it leads to, and that is not path.
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	path = filepath.Join(parent, filepath.Base(path))
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return 0, nil, err
	}
	mounts, err := parseMountinfo(string(b))
	if err != nil {
		return 0, nil, fmt.Errorf("/proc/self/mountinfo: %w", err)
	}
	for _, m := range mounts {
		switch {
		case m.point == path:
			on++
		case strings.HasPrefix(m.point, path+"/"):
			under = append(under, m.point)
		}
	}
	return on, under, nil
}

// ProcessEntry is the journal's entry for the living process pid: with its start time, so that another process
// that has got the same pid later is never mistaken for it.
func ProcessEntry(pid int) (Entry, error) {
	start, err := startTime(pid)
	if err != nil {
		return Entry{}, fmt.Errorf("host: process %d: %w", pid, err)
	}
	return Entry{Kind: KindProcess, Target: fmt.Sprintf("%d %d", pid, start)}, nil
}

func parseProcess(target string) (pid int, start uint64, err error) {
	p, s, ok := strings.Cut(target, " ")
	pid, perr := strconv.Atoi(p)
	start, serr := strconv.ParseUint(s, 10, 64)
	if !ok || perr != nil || serr != nil || pid <= 1 || pid > math.MaxInt32 {
		return 0, 0, fmt.Errorf("%q: expected a pid above 1, a space and a start time, as ProcessEntry makes it", target)
	}
	return pid, start, nil
}

// startTime is when the process was started, in clock ticks since the boot (proc_pid_stat(5), field 22).
func startTime(pid int) (uint64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStartTime(string(b))
}

func parseStartTime(stat string) (uint64, error) {
	// Field 2 is the program's name in parentheses, which may itself hold spaces and parentheses.
	i := strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[i+1:])
	if i < 0 || len(fields) < 20 {
		return 0, fmt.Errorf("%.60q is not a line of /proc/PID/stat", stat)
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// KillProcess kills the process that target ("PID START", see ProcessEntry) names, and returns when it has ended.
// One that is not there any more is no error, and another with the same pid is left alone. The wait ends with
// ctx, or after 20 s.
func KillProcess(ctx context.Context, target string) error {
	pid, start, err := parseProcess(target)
	if err != nil {
		return fmt.Errorf("host: kill a process: %w", err)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return nil
	}
	if err != nil {
		return fmt.Errorf("host: kill process %d: pidfd_open: %w", pid, err)
	}
	defer unix.Close(fd)
	// Looked at after the descriptor is had: from now on the pid can not come to mean another process unnoticed.
	now, err := startTime(pid)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || (err == nil && now != start) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("host: kill process %d: %w", pid, err)
	}
	if err := kill(fd); err != nil {
		return fmt.Errorf("host: kill process %d: %w", pid, err)
	}
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	if err := awaitEnd(ctx, fd); err != nil {
		return fmt.Errorf("host: process %d was killed and has not ended; it may be frozen, or wait for a disk: %w", pid, err)
	}
	return nil
}

func kill(pidfd int) error {
	return ignore(unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0), unix.ESRCH)
}

// awaitEnd waits until the process has ended (it may still have to be reaped by its parent).
func awaitEnd(ctx context.Context, pidfd int) error {
	for {
		// In slices, because poll knows nothing of ctx.
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 100)
		if err != nil && err != unix.EINTR {
			return err
		}
		if n > 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// CgroupProcs lists the processes in a cgroup and in those below it, each once, in ascending order. A cgroup that
// is not there has none.
func CgroupProcs(dir string) ([]int, error) {
	var pids []int
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if gone(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if !d.IsDir() {
			return nil
		}
		b, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		if gone(err) {
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
		return nil, fmt.Errorf("host: processes of a cgroup: %w", err)
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

// gone says that a cgroup went away between being listed and being read.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV)
}

// RemoveCgroup kills every process in the cgroup (version 1 or 2) and in those below it, waits for their end, and
// removes it. One that is not there is no error. A folder that is no cgroup, the root of a hierarchy, and a cgroup
// that this process is in are refused. The wait ends with ctx, or after 20 s.
func RemoveCgroup(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	if err := removeCgroup(ctx, path); err != nil {
		return fmt.Errorf("host: remove cgroup %s: %w", path, err)
	}
	return nil
}

func removeCgroup(ctx context.Context, path string) error {
	if !cleanAbs(path) {
		return errors.New(`expected an absolute path without "." or ".." in it`)
	}
	there, err := isCgroup(path)
	if err != nil || !there {
		return err
	}
	for {
		if err := killCgroup(ctx, path); err != nil {
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
			pids, perr := CgroupProcs(path)
			return errors.Join(fmt.Errorf("still busy with processes %v: %w", pids, errors.Join(err, cerr)), perr)
		}
		// Busy means that a process came in between, or that the last one is still being put away.
		pause(ctx, retryPause)
	}
}

// isCgroup says whether the folder is there, and refuses what is no cgroup that could be ours.
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

// killCgroup kills what is in the cgroup now and waits for its end.
func killCgroup(ctx context.Context, path string) error {
	pids, err := CgroupProcs(path)
	if err != nil || len(pids) == 0 {
		return err
	}
	if slices.Contains(pids, os.Getpid()) {
		return errors.New("this process itself is in it")
	}
	if pids[0] == 0 {
		return errors.New("processes in it are out of this PID namespace's sight; run this where they were started")
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
	// A frozen process of version 1 does not die before it is thawed. Not every hierarchy has the file.
	if err := os.WriteFile(filepath.Join(path, "freezer.state"), []byte("THAWED"), 0); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	// Which of them are still in it, now that their pids can not be used again unnoticed?
	still, err := CgroupProcs(path)
	if err != nil {
		return err
	}
	for pid, fd := range fds {
		if !slices.Contains(still, pid) {
			unix.Close(fd)
			delete(fds, pid)
			continue
		}
		if err := kill(fd); err != nil {
			return fmt.Errorf("kill process %d: %w", pid, err)
		}
	}
	for pid, fd := range fds {
		if err := awaitEnd(ctx, fd); err != nil {
			return fmt.Errorf("process %d was killed and has not ended; it may be frozen, or wait for a disk: %w", pid, err)
		}
	}
	return nil
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
