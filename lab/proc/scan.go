//go:build linux

package proc

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// within says whether path is dir or below it.
func within(dir, path string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == '/')
}

// Threads are the threads of a process; none where it has ended.
func Threads(pid int) ([]int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if Ended(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("threads of process %d: %w", pid, err)
	}
	var tids []int
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			return nil, fmt.Errorf("threads of process %d: %q is not a number", pid, e.Name())
		}
		tids = append(tids, tid)
	}
	return tids, nil
}

// In lists the host's processes whose root folder is dir or below it, in ascending order. Those that have
// ended but were not yet waited for have no root any more.
func In(dir string) ([]int, error) {
	found, _, err := scan(func(pid string) bool {
		root, err := os.Readlink("/proc/" + pid + "/root")
		return err == nil && within(dir, root)
	})
	return found, err
}

// All lists the host's processes, but for this one, in ascending order.
func All() ([]int, error) {
	all, _, err := scan(func(string) bool { return true })
	return all, err
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

// EndAll kills the processes that have their root in dir, and those of the given programs (absolute paths) that
// have a path in dir as an argument, until there are none, ctx is done or 20 s have passed. They are all stopped
// first: a process that forks faster than /proc is read cannot fork once it is stopped.
func EndAll(ctx context.Context, dir string, programs []string) error {
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
	for deadline := time.Now().Add(EndTimeout); ; {
		pids, ended, err := scan(ours)
		if err != nil {
			return err
		}
		// One that ended during the scan may have left a child that did not exist when they were listed. So a scan
		// that finds none is the last only if no process ended during it.
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
				return fmt.Errorf("ending process %d in %s: %w", pid, dir, err)
			}
			stopped[pid] = true
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("processes %v in %s live on: %w", pids, dir, err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v in %s live on %v after they were killed", pids, dir, EndTimeout)
		}
		if all {
			// The kernel tells only a parent when a process has ended, so scan again.
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
