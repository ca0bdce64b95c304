//go:build linux

package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/journal"
	"tare/lab/proc"
)

// KindFolder is the journal's kind for a guest's folder: all in it, all that is mounted below it and all processes
// that have their root there or were started for it belong to the guest and go with it. One entry stands for all
// of them: what a driver mounts, it mounts below the folder.
const KindFolder = "guest-folder"

// guestsDir is where the guests' folders are, below the state folder.
const guestsDir = "guests"

// Undo gives the ways to undo the changes of this package, for journal.Recover.
func Undo() map[string]journal.Undo {
	return map[string]journal.Undo{KindFolder: removeFolder}
}

// MakeFolder makes the folder of the guest with the given id below the state folder and returns its path, absolute
// and free of symbolic links. programs are those that will be started for the guest with a path below the folder
// as an argument: such processes end with the folder.
func (c *Changes) MakeFolder(state, id string, programs ...string) (string, error) {
	if !ValidID(id) {
		return "", fmt.Errorf("guest id %q: want 1 to 100 of a-z A-Z 0-9 . _ -, the first a letter or digit", id)
	}
	parent := filepath.Join(state, guestsDir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", err
	}
	parent, err := filepath.EvalSymlinks(parent) // the kernel's lists of mounts and roots have none
	if err != nil {
		return "", err
	}
	if parent, err = filepath.Abs(parent); err != nil {
		return "", err
	}
	path := filepath.Join(parent, id)
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		// Looked for before the entry is written: else its undoing would take another's folder away.
		return "", fmt.Errorf("a guest called %s has its folder already: %s (%v); `tare clean` removes what a dead run left", id, path, err)
	}
	if err := c.Announce(journal.Entry{Kind: KindFolder, Target: path, Detail: map[string]string{
		"state": filepath.Dir(parent), "programs": strings.Join(programs, "\n"),
	}}); err != nil {
		return "", err
	}
	return path, os.Mkdir(path, 0o700)
}

// ValidID says whether id can name a guest everywhere: as a folder, a cgroup, a container.
func ValidID(id string) bool {
	if len(id) < 1 || len(id) > 100 {
		return false
	}
	for i, r := range id {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		case i > 0 && (r == '.' || r == '_' || r == '-'):
		default:
			return false
		}
	}
	return true
}

func removeFolder(ctx context.Context, e journal.Entry) error {
	if err := EndProcesses(ctx, e.Target, strings.Split(e.Detail["programs"], "\n")); err != nil {
		return err
	}
	mounts, err := MountsBelow(e.Target)
	if err != nil {
		return err
	}
	for _, m := range slices.Backward(mounts) {
		if _, err := journal.Unmount(ctx, m); err != nil {
			return err
		}
	}
	return journal.RemoveDir(ctx, e.Detail["state"], e.Target)
}

// MountsBelow lists the mount points at and below dir, in the order in which they were mounted; one that is mounted
// over several times is listed as often.
func MountsBelow(dir string) ([]string, error) {
	mounts, err := proc.Host.Mounts()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, m := range mounts {
		if within(dir, m.Point) {
			found = append(found, m.Point)
		}
	}
	return found, nil
}

// within says whether path is dir or below it.
func within(dir, path string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == '/')
}

// ProcessesIn lists the host's processes whose root folder is dir or below it, in ascending order. Those that have
// ended but were not yet waited for have no root any more.
func ProcessesIn(dir string) ([]int, error) {
	return findProcesses(func(pid string) bool {
		root, err := os.Readlink("/proc/" + pid + "/root")
		return err == nil && within(dir, root)
	})
}

// findProcesses lists those that match. A process that ends meanwhile does not.
func findProcesses(match func(pid string) bool) ([]int, error) {
	found, _, err := scan(match)
	return found, err
}

// scan lists the processes that match, and those that have ended: gone since they were listed, or not yet waited
// for.
func scan(match func(pid string) bool) (found, ended []int, err error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(0)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		if match(name) {
			found = append(found, pid)
		} else if _, err := os.Readlink("/proc/" + name + "/root"); err != nil {
			ended = append(ended, pid)
		}
	}
	slices.Sort(found)
	return found, ended, nil
}

// EndProcesses kills the processes that have their root in dir, and those of the given programs (absolute paths) that
// have a path in dir as an argument, until there are none, ctx is done or 20 s have passed. They are all stopped
// first: a process that forks faster than we look cannot fork when it is stopped.
func EndProcesses(ctx context.Context, dir string, programs []string) error {
	ours := func(pid string) bool {
		if root, err := os.Readlink("/proc/" + pid + "/root"); err != nil {
			return false // ended
		} else if within(dir, root) {
			return true
		}
		cmdline, err := os.ReadFile("/proc/" + pid + "/cmdline")
		if err != nil {
			return false
		}
		args := bytes.Split(cmdline, []byte{0})
		if len(args[0]) == 0 || !slices.Contains(programs, string(args[0])) {
			return false
		}
		return slices.ContainsFunc(args[1:], func(a []byte) bool { return within(dir, string(a)) })
	}
	stopped, dead := map[int]bool{}, map[int]bool{}
	for deadline := time.Now().Add(20 * time.Second); ; {
		pids, ended, err := scan(ours)
		if err != nil {
			return err
		}
		// One that ended while we looked may have left a child that was not there yet when they were listed. So a
		// look that finds none is the last only if nobody ended during it.
		ending := slices.ContainsFunc(ended, func(pid int) bool { return !dead[pid] })
		if len(pids) == 0 && !ending {
			return nil
		}
		for _, pid := range ended {
			dead[pid] = true
		}
		all := len(pids) > 0 && !slices.ContainsFunc(pids, func(pid int) bool { return !stopped[pid] })
		for _, pid := range pids {
			sig := unix.SIGSTOP
			if all { // nobody new since all were stopped
				sig = unix.SIGKILL
			}
			if err := signal(pid, sig, ours); err != nil {
				return fmt.Errorf("ending process %d of the guest in %s: %w", pid, dir, err)
			}
			stopped[pid] = true
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("processes %v of the guest in %s live on: %w", pids, dir, err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v of the guest in %s live on 20 s after they were killed", pids, dir)
		}
		if all {
			// The kernel tells only a parent when a process has ended, so look again.
			time.Sleep(2 * time.Millisecond)
		}
	}
}

// signal sends sig to the process if it is still the one that matches: a pid may have gone to another.
func signal(pid int, sig unix.Signal, match func(pid string) bool) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if !match(strconv.Itoa(pid)) {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil && err != unix.ESRCH {
		return err
	}
	return nil
}
