//go:build linux

package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Pressure is how long, since the machine was started, at least one thread has waited for something scarce (/proc/pressure): cpu,
// memory or io. If the kernel does not count it, the error is fs.ErrNotExist.
func (t Tree) Pressure(of string) (time.Duration, error) {
	file := "/proc/pressure/" + of
	text, err := t.Read(file)
	if errors.Is(err, unix.EOPNOTSUPP) { // the kernel supports it, but was started with psi=0
		err = fmt.Errorf("%s: %w", file, fs.ErrNotExist)
	}
	if err != nil {
		return 0, err
	}
	d, err := parsePressure(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	return d, nil
}

// parsePressure parses the total of the line "some avg10=0.00 avg60=0.00 avg300=0.00 total=0", in µs.
func parsePressure(text string) (time.Duration, error) {
	line, _, _ := strings.Cut(text, "\n")
	_, total, ok := strings.Cut(line, " total=")
	us, err := strconv.ParseUint(total, 10, 52)
	if !ok || !strings.HasPrefix(line, "some ") || err != nil {
		return 0, fmt.Errorf("%.80q: must be a line with \"some\" and a total", line)
	}
	return time.Duration(us) * time.Microsecond, nil
}

// Tasks is the number of threads that the machine has, and the greatest number that it can have.
func (t Tree) Tasks() (now, most int, err error) {
	text, err := t.Read("/proc/loadavg")
	if err != nil {
		return 0, 0, err
	}
	if now, err = parseTasks(text); err != nil {
		return 0, 0, fmt.Errorf("/proc/loadavg: %w", err)
	}
	most, err = t.MaxTasks()
	return now, most, err
}

// MaxTasks is the greatest number of threads that the machine can have.
func (t Tree) MaxTasks() (int, error) {
	pids, err := t.Number("/proc/sys/kernel/pid_max")
	if err != nil {
		return 0, err
	}
	threads, err := t.Number("/proc/sys/kernel/threads-max")
	return min(pids, threads), err
}

// parseTasks parses the number of threads in "0.20 0.18 0.12 1/80 11206".
func parseTasks(loadavg string) (int, error) {
	fields := strings.Fields(loadavg)
	if len(fields) != 5 {
		return 0, fmt.Errorf("%.60q: must have five fields", loadavg)
	}
	_, all, _ := strings.Cut(fields[3], "/")
	n, err := strconv.ParseUint(all, 10, 31)
	return int(n), err
}
