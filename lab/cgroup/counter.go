//go:build linux

package cgroup

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"tare/lab/proc"
)

// Counter is a cgroup that counts the CPU time of its processes and of the groups below it, including what processes used that have ended.
type Counter struct {
	Group
	sys system
}

// CounterOf returns the group named name, which is that of process pid or one above it; nil if there is none that counts.
func CounterOf(pid int, name string) (*Counter, error) {
	c, err := host.counterOf(strconv.Itoa(pid), name)
	if err != nil {
		return nil, fmt.Errorf("cgroup: CPU time of process %d: %w", pid, err)
	}
	return c, nil
}

func (s system) counterOf(pid, name string) (*Counter, error) {
	g, err := s.find(pid, "cpuacct") // version 2 has no such controller: each of its groups counts
	if err != nil {
		return nil, err
	}
	for _, dir := range g.upwards() {
		if path.Base(dir) == name && dir != g.Top {
			return &Counter{Group{Dir: dir, Top: g.Top, Version: g.Version}, s}, nil
		}
	}
	return nil, nil
}

// Spent is CPU time. The kernel divides it into user and system time by samples.
type Spent struct{ All, User, System time.Duration }

// Since returns what was used since an earlier reading.
func (t Spent) Since(before Spent) Spent {
	return Spent{t.All - before.All, t.User - before.User, t.System - before.System}
}

// Spent returns what the group has counted. It fails if the group is gone.
func (c *Counter) Spent() (t Spent, err error) {
	if c.Version == 1 {
		err = errors.Join(c.read("cpuacct.usage", time.Nanosecond, func(text string) (map[string]int64, error) {
			n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			return map[string]int64{"": n}, err
		}, map[string]*time.Duration{"": &t.All}),
			c.read("cpuacct.stat", proc.Tick, pairs, map[string]*time.Duration{"user": &t.User, "system": &t.System}))
	} else {
		err = c.read("cpu.stat", time.Microsecond, pairs, map[string]*time.Duration{"usage_usec": &t.All, "user_usec": &t.User, "system_usec": &t.System})
	}
	if err != nil {
		return Spent{}, fmt.Errorf("cgroup: CPU time: %w", err)
	}
	return t, nil
}

// mostSpent bounds a time, so that sums and differences fit.
const mostSpent = 100 * 365 * 24 * time.Hour

// read reads the named times of a file.
func (c *Counter) read(file string, unit time.Duration, parse func(string) (map[string]int64, error), times map[string]*time.Duration) error {
	return c.sys.parsePresent(c.Dir, file, func(text string) error {
		n, err := parse(text)
		if err != nil {
			return err
		}
		for name, to := range times {
			count, is := n[name]
			if !is || count < 0 || count > int64(mostSpent/unit) {
				return fmt.Errorf("must have %q with a time", name)
			}
			*to = time.Duration(count) * unit
		}
		return nil
	})
}
