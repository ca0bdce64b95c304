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

// All lists the host's processes, but for this one, in ascending order.
func All() ([]int, error) {
	all, _, _, err := scan(func(int) being { return wanted })
	return all, err
}

// being is what a process is to who looks for some.
type being int

const (
	other being = iota
	wanted
	ended // gone since it was listed, or not yet waited for
)

// scan lists the processes that are wanted, the others, and those that have ended. Each is looked at as soon as it is listed, so that few
// can end before, however many there are.
func scan(look func(pid int) being) (found []int, others, over map[int]bool, err error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, nil, nil, err
	}
	defer d.Close()
	others, over = map[int]bool{}, map[int]bool{}
	few := make([]byte, 512) // some 20 names
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

// enoughScans that find none say that there is none, though other processes end during each of them. Of a chain of processes that do nothing but fork and
// end, seven scans in ten saw a link, at the least, on a busy host.
const enoughScans = 10

// EndAll kills the processes that have their root in dir, and those of the given programs (absolute paths) that
// have a path in dir as an argument, until there are none, ctx is done or 20 s have passed. They are all stopped
// first: a process that forks faster than /proc is read cannot fork once it is stopped.
func EndAll(ctx context.Context, dir string, programs []string) error {
	defer first()()
	known := map[int]bool{} // by the scan before: had ended, or were others
	ours := func(pid int) being {
		root, err := os.Readlink(fmt.Sprintf("/proc/%d/root", pid))
		switch {
		case err != nil:
			return ended
		case within(dir, root):
			return wanted
		case known[pid]: // it is not asked again what it was started for
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
		return other
	}
	stopped := map[int]bool{}
	none, clean := 0, 0 // scans, one after the other, that found none, and during which none ended that was not known
	for deadline := time.Now().Add(EndTimeout); ; {
		pids, others, over, err := scan(ours)
		if err != nil {
			return err
		}
		// One that ended during the scan may have left a child that was not listed. So a scan that finds none says that there is none
		// only if none ended during it but those that the scan before knew. And only the second says so: a child may get a lower number than those
		// that are listed already. Other work may start and end processes all the time, so that is not waited for for ever: processes that each fork and end before they are looked at would have to be that fast every time.
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
			if all { // nobody new since all were stopped
				sig = unix.SIGKILL
			}
			if err := signal(pid, sig, ours); err != nil {
				return fmt.Errorf("ending process %d in %s: %w", pid, dir, err)
			}
			stopped[pid] = true
		}
		if err := ctx.Err(); err != nil && none == 0 {
			return fmt.Errorf("processes %v in %s live on: %w", pids, dir, err)
		} else if err != nil {
			return fmt.Errorf("looking for processes in %s: %w", dir, err)
		}
		if time.Now().After(deadline) && none == 0 {
			return fmt.Errorf("processes %v in %s live on %v after they were killed", pids, dir, EndTimeout)
		} else if time.Now().After(deadline) {
			return fmt.Errorf("it cannot be told whether processes in %s live on, for others kept ending while they were listed, for %v", dir, EndTimeout)
		}
		if all {
			// The kernel tells only a parent when a process has ended, so scan again.
			time.Sleep(2 * time.Millisecond)
		}
	}
}

// first has this thread run before those of busy guests, of which there may be hundreds, until what it returns is called. Who may not
// do so waits its turn.
func first() (undo func()) {
	runtime.LockOSThread()
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil || unix.Setpriority(unix.PRIO_PROCESS, 0, -20) != nil {
		return runtime.UnlockOSThread
	}
	return func() {
		if unix.Setpriority(unix.PRIO_PROCESS, 0, 20-nice) == nil { // the system call gives 20 less the nice value
			runtime.UnlockOSThread()
		} // else the thread ends with its goroutine
	}
}

// signal sends sig to the process if it is still the one that matches: a pid may have gone to another.
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
