//go:build linux

package proc

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// within reports whether path is dir or below it.
func within(dir, path string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == '/')
}

// Threads are the threads of a process; none if it has ended.
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

// In lists the host's processes whose root folder is dir or below it, in ascending order. Those that have ended but were not yet
// waited for have no root any more.
func In(dir string) ([]int, error) {
	found, _, _, err := scan(func(pid int) being {
		root, err := os.Readlink(fmt.Sprintf("/proc/%d/root", pid))
		switch {
		case err != nil:
			return ended
		case within(dir, root):
			return wanted
		}
		return other
	})
	return found, err
}

// All lists the host's processes except this one, in ascending order.
func All() ([]int, error) {
	all, _, _, err := scan(func(int) being { return wanted })
	return all, err
}

// Descendants are a process, its children, their children and so on, in ascending order; none if it has ended.
func Descendants(pid int) ([]int, error) {
	children := map[int][]int{}
	all, _, _, err := scan(func(child int) being {
		parent, err := Parent(child)
		if err != nil {
			return ended
		}
		children[parent] = append(children[parent], child)
		return wanted
	})
	if err != nil || !slices.Contains(all, pid) {
		return nil, err
	}
	found := []int{pid}
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	slices.Sort(found)
	return found, nil
}

// being is how a process relates to a search.
type being int

const (
	other being = iota
	wanted
	ended // gone since it was listed, or not yet waited for
)

// scan lists the wanted processes, the others, and those that have ended. It looks at each as soon as it is listed, so that few can
// end before, however many there are.
func scan(look func(pid int) being) (found []int, others, over map[int]bool, err error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, nil, nil, err
	}
	defer d.Close()
	others, over = map[int]bool{}, map[int]bool{}
	few := make([]byte, 512) // about 20 names
	for {
		n, err := unix.ReadDirent(int(d.Fd()), few)
		if err != nil {
			return nil, nil, nil, os.NewSyscallError("getdents64", err)
		}
		if n == 0 {
			break
		}
		_, _, names := unix.ParseDirent(few[:n], -1, nil)
		for _, name := range names {
			pid, err := strconv.Atoi(name)
			if err != nil || pid == os.Getpid() {
				continue
			}
			switch look(pid) {
			case wanted:
				found = append(found, pid)
			case ended:
				over[pid] = true
			default:
				others[pid] = true
			}
		}
	}
	slices.Sort(found)
	return found, others, over, nil
}

// enoughScans is the number of scans without a find after which no process is left, even if other processes end during each of
// them. On a busy host at least seven scans in ten saw a link of a chain of processes that only fork and end.
const enoughScans = 10

// EndAll kills the processes that have their root in dir. It also kills processes of the given programs (absolute
// paths) that have a path in dir as an argument, and processes that have one of the variables ("NAME=value") in their environment. It repeats this until none are left, ctx is
// done or 20 s have passed. It first stops them all: a process that forks faster than /proc can be read cannot fork once it is stopped.
func EndAll(ctx context.Context, dir string, programs []string, variables ...string) error {
	defer first()()
	known := map[int]bool{} // seen by the scan before: ended, or other processes
	ours := func(pid int) being {
		root, err := os.Readlink(fmt.Sprintf("/proc/%d/root", pid))
		switch {
		case err != nil:
			return ended
		case within(dir, root):
			return wanted
		case known[pid]: // do not ask again what it was started for
			return other
		}
		cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			return ended
		}
		args := bytes.Split(cmdline, []byte{0})
		if len(args[0]) > 0 && slices.Contains(programs, string(args[0])) &&
			slices.ContainsFunc(args[1:], func(a []byte) bool { return within(dir, string(a)) }) {
			return wanted
		}
		if len(variables) == 0 {
			return other
		}
		environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			return ended
		}
		if slices.ContainsFunc(bytes.Split(environment, []byte{0}), func(v []byte) bool { return slices.Contains(variables, string(v)) }) {
			return wanted
		}
		return other
	}
	stopped := map[int]bool{}
	none, clean := 0, 0 // consecutive scans without a find, and those during which no unknown process ended
	for deadline := time.Now().Add(EndTimeout); ; {
		pids, others, over, err := scan(ours)
		if err != nil {
			return err
		}
		// A process that ended during the scan may have left a child that was not listed. So a scan without a find counts only if
		// no process ended during it, except those that the scan before knew. Two such scans are needed, because a child may get a
		// lower number than those already listed. Other work may start and end processes all the time, so this does not wait
		// forever. To escape, processes would have to fork and end before they are seen, every time.
		none, clean = none+1, clean+1
		for pid := range over {
			if !known[pid] {
				clean = 0
			}
		}
		if len(pids) > 0 {
			none, clean = 0, 0
		}
		if clean == 2 || none == enoughScans {
			return nil
		}
		known = others
		maps.Copy(known, over)
		all := len(pids) > 0 && !slices.ContainsFunc(pids, func(pid int) bool { return !stopped[pid] })
		for _, pid := range pids {
			sig := unix.SIGSTOP
			if all { // no new process since all were stopped
				sig = unix.SIGKILL
			}
			if err := signal(pid, sig, ours); err != nil {
				return fmt.Errorf("ending process %d in %s: %w", pid, dir, err)
			}
			stopped[pid] = true
		}
		if err := ctx.Err(); err != nil && none == 0 {
			return fmt.Errorf("processes %v in %s still exist: %w", pids, dir, err)
		} else if err != nil {
			return fmt.Errorf("looking for processes in %s: %w", dir, err)
		}
		if time.Now().After(deadline) && none == 0 {
			return fmt.Errorf("processes %v in %s still exist %v after they were killed", pids, dir, EndTimeout)
		} else if time.Now().After(deadline) {
			return fmt.Errorf("it is unknown whether processes in %s still exist, because others kept ending during the listing for %v", dir, EndTimeout)
		}
		if all {
			// The kernel tells only a parent of a process's end, so scan again.
			time.Sleep(2 * time.Millisecond)
		}
	}
}

// first lets this thread run before those of busy guests, possibly hundreds, until the returned function is called.
// Without the permission it waits for its turn.
func first() (undo func()) {
	runtime.LockOSThread()
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil || unix.Setpriority(unix.PRIO_PROCESS, 0, -20) != nil {
		return runtime.UnlockOSThread
	}
	return func() {
		if unix.Setpriority(unix.PRIO_PROCESS, 0, 20-nice) == nil { // the system call returns 20 minus the nice value
			runtime.UnlockOSThread()
		} // otherwise the thread ends with its goroutine
	}
}

// signal sends sig to the process if it still matches, because its pid may belong to another one now.
func signal(pid int, sig unix.Signal, match func(pid int) being) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if match(pid) != wanted {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil && err != unix.ESRCH {
		return err
	}
	return nil
}
