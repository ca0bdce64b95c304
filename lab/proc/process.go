//go:build linux

package proc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// EndTimeout bounds the wait for killed processes and busy mounts where the caller's context does not.
const EndTimeout = 20 * time.Second

// Name is the name of a process's program, cut to 15 bytes (proc_pid_comm(5)), or "" if it has ended.
func Name(pid int) string {
	name, err := Host.Read(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return ""
	}
	return name
}

// StartTime is when the process was started, in clock ticks since the boot (proc_pid_stat(5), field 22).
func StartTime(pid int) (uint64, error) {
	of, err := stat(pid, 22)
	if err != nil {
		return 0, err
	}
	return of[0], nil
}

// Parent is the process that the kernel notifies of a process's end (field 4 of proc_pid_stat(5)); 0 if it is in another PID namespace.
func Parent(pid int) (int, error) {
	of, err := stat(pid, 4)
	if err != nil {
		return 0, err
	}
	return int(of[0]), nil
}

// stat reads some fields of a process's line in /proc/PID/stat, as statFields does.
func stat(pid int, numbers ...int) ([]uint64, error) {
	return Host.stat(fmt.Sprintf("/proc/%d", pid), numbers...)
}

// stat does the same for a process or a thread, by its folder in /proc.
func (t Tree) stat(dir string, numbers ...int) ([]uint64, error) {
	text, err := t.Read(dir + "/stat")
	if err != nil {
		return nil, err
	}
	of, err := statFields(text, numbers...)
	if err != nil {
		return nil, fmt.Errorf("%s/stat: %w", dir, err)
	}
	return of, nil
}

// PageTables is the size of a process's page tables, in bytes (VmPTE in proc_pid_status(5)).
func PageTables(pid int) (int64, error) {
	text, err := Host.Read(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	field := Field(text, "VmPTE")
	if field == "" { // it has ended but was not yet waited for, so it has no memory any more
		return 0, nil
	}
	kib, err := strconv.ParseInt(strings.TrimSuffix(field, " kB"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("/proc/%d/status: VmPTE: %q: must be a number of kB", pid, field)
	}
	return kib << 10, nil
}

// Ended reports whether reading a process failed because it has ended.
func Ended(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }

// Ending reports whether a thread, by its folder in /proc, has begun to end. It is still listed until its parent has waited for it,
// but is in no cgroup any more, which version 1 shows as the root.
func (t Tree) Ending(dir string) (bool, error) {
	const flags, exiting = 9, 0x4 // PF_EXITING, which the kernel sets before it takes the thread out of its cgroup
	of, err := t.stat(dir, flags)
	return err == nil && of[0]&exiting != 0, err
}

// state is what a process's first thread does, by the letter of proc_pid_stat(5), field 3.
func state(pid int) (string, error) {
	text, err := Host.Read(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(text[max(0, strings.LastIndexByte(text, ')')):], " ")
	letter, _, _ := strings.Cut(rest, " ")
	return letter, nil
}

// Stopped reports whether a signal or a debugger has stopped a process.
func Stopped(pid int) (bool, error) {
	is, err := state(pid)
	return is == "T" || is == "t", err
}

// Zombie reports whether all threads of a process have ended, and it is only listed until its parent has waited for it; it does so, too, if it
// is not listed any more.
func Zombie(pid int) (bool, error) {
	is, err := state(pid)
	if Ended(err) {
		return true, nil
	}
	if err != nil || is != "Z" && is != "X" {
		return false, err
	}
	tids, err := Threads(pid) // the first thread may end before the others
	return len(tids) <= 1, err
}

// statFields returns some fields of a line of /proc/PID/stat, all whole numbers, by their numbers in proc_pid_stat(5).
func statFields(stat string, numbers ...int) (of []uint64, err error) {
	// Field 2 is the program's name in parentheses, which may itself contain spaces and parentheses.
	i := strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[i+1:])
	if i < 0 || len(fields) < max(20, slices.Max(numbers)-2) {
		return nil, fmt.Errorf("%.60q is not a line of /proc/PID/stat", stat)
	}
	of = make([]uint64, 0, len(numbers))
	for _, n := range numbers {
		v, err := strconv.ParseUint(fields[n-3], 10, 63)
		if err != nil {
			return nil, fmt.Errorf("field %d: %.60q: must be a number", n, fields[n-3])
		}
		of = append(of, v)
	}
	return of, nil
}

// Kill kills the process with this pid that was started at this time (see StartTime), and returns when it has ended. A process that
// has already ended is not an error. Kill does not touch another process with the same pid. The wait ends with ctx, or after 20 s.
func Kill(ctx context.Context, pid int, start uint64) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return nil
	}
	if err != nil {
		return fmt.Errorf("kill process %d: pidfd_open: %w", pid, err)
	}
	defer unix.Close(fd)
	// Read it after the descriptor is open: from now on the pid cannot be reused unnoticed.
	now, err := StartTime(pid)
	if Ended(err) || (err == nil && now != start) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("kill process %d: %w", pid, err)
	}
	if err := KillByFD(fd); err != nil {
		return fmt.Errorf("kill process %d: %w", pid, err)
	}
	ctx, cancel := context.WithTimeout(ctx, EndTimeout)
	defer cancel()
	if err := AwaitEnd(ctx, fd); err != nil {
		return fmt.Errorf("process %d was killed but has not ended; it may be frozen or waiting for a disk: %w", pid, err)
	}
	return nil
}

// KillByFD kills the process of the descriptor. A process that has already ended is not an error.
func KillByFD(pidfd int) error {
	if err := unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0); err != unix.ESRCH {
		return err
	}
	return nil
}

// AwaitEnd waits until the process of the descriptor has ended (its parent may still have to reap it).
func AwaitEnd(ctx context.Context, pidfd int) error {
	for {
		// In slices, because poll ignores ctx.
		slice := 100 * time.Millisecond
		if deadline, has := ctx.Deadline(); has {
			slice = min(slice, max(0, time.Until(deadline)))
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int((slice + time.Millisecond - 1).Milliseconds()))
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
