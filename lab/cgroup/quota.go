//go:build linux

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Quota is a CPU quota.
type Quota struct {
	Dir     string // the cgroup that has it
	Version int    // of cgroups
	Cores   float64
	Next    float64 // cores of the smallest other limit in force, of the group or of one above; 0: there is none
	Period  time.Duration
	Burst   time.Duration // unused time that may be saved up
}

// QuotaOf returns the smallest CPU quota in force on process pid, of its own cgroup or one above; nil if none is.
func QuotaOf(pid int) (*Quota, error) {
	q, err := host.quotaOf(strconv.Itoa(pid))
	if err != nil {
		return nil, fmt.Errorf("cgroup: CPU quota of process %d: %w", pid, err)
	}
	return q, nil
}

func (s system) quotaOf(pid string) (least *Quota, err error) {
	g, err := s.find(pid, "cpu")
	if err != nil {
		return nil, err
	}
	for _, dir := range g.upwards() {
		cores, err := s.quota(dir, g.Version)
		if err != nil {
			return nil, err
		}
		if cores == 0 {
			continue
		}
		if least != nil && least.Cores <= cores {
			if least.Next == 0 || cores < least.Next {
				least.Next = cores
			}
			continue
		}
		q := &Quota{Dir: dir, Version: g.Version, Cores: cores}
		period, burst := "cpu.cfs_period_us", "cpu.cfs_burst_us"
		if g.Version == 2 {
			period, burst = "cpu.max", "cpu.max.burst"
		}
		if err := errors.Join(s.micros(dir, period, &q.Period), s.micros(dir, burst, &q.Burst)); err != nil {
			return nil, err
		}
		if least != nil {
			q.Next = least.Cores
		}
		least = q
	}
	return least, nil
}

// Bandwidth is what the kernel has counted of a cgroup's CPU quota.
type Bandwidth struct {
	Periods, Exhausted int64
	Throttled          time.Duration // added over CPUs
}

// Counted returns it. It fails if the group is gone.
func (q *Quota) Counted() (b Bandwidth, err error) {
	err = host.parsePresent(q.Dir, "cpu.stat", func(text string) error {
		n, err := pairs(text)
		if err != nil {
			return err
		}
		b.Periods, b.Exhausted = n["nr_periods"], n["nr_throttled"]
		b.Throttled, err = parseThrottled(text)
		return err
	})
	if err != nil {
		return b, fmt.Errorf("cgroup: CPU quota: %w", err)
	}
	return b, nil
}

// micros reads the last number of a group's file, in µs. Without the file d stays as it is.
func (s system) micros(dir, name string, d *time.Duration) error {
	return s.parse(dir, name, func(text string) error {
		f := strings.Fields(text)
		if len(f) == 0 {
			return errors.New("must be a number of µs")
		}
		n, err := strconv.ParseUint(f[len(f)-1], 10, 40)
		if err != nil {
			return fmt.Errorf("%.60q: must be a number of µs", text)
		}
		*d = time.Duration(n) * time.Microsecond
		return nil
	})
}

// Memory is what the kernel counts of the memory of a cgroup and of those below it.
type Memory struct {
	Dir      string
	Limit    int64 // bytes, of the group itself; 0: none
	Used     int64 // bytes
	Files    int64 // bytes of Used: page cache
	AtLimit  int64 // how often the limit was reached
	Refaults int64 // pages of files and of programs that were reclaimed and needed again; -1: not counted
	Killed   int64 // processes killed for want of memory; -1: not counted
}

// MemoryOf returns the memory of the nearest cgroup of process pid, or above, that has a limit; without one, of its own cgroup; nil if it
// is in no cgroup that counts memory.
func MemoryOf(pid int) (*Memory, error) {
	m, err := host.memoryOf(strconv.Itoa(pid))
	if err != nil {
		return nil, fmt.Errorf("cgroup: memory of process %d: %w", pid, err)
	}
	return m, nil
}

func (s system) memoryOf(pid string) (*Memory, error) {
	g, err := s.find(pid, "memory")
	if err != nil || g.Dir == "" {
		return nil, err
	}
	var own *Memory
	for _, dir := range g.upwards() {
		m, err := s.memoryIn(dir, g.Version)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the root of version 2 does not count
		}
		if err != nil {
			return nil, err
		}
		if m.Limit > 0 {
			return m, nil
		}
		if own == nil {
			own = m
		}
	}
	return own, nil
}

// Again reads the memory of the same group again.
func (m *Memory) Again() (*Memory, error) {
	version := 2
	if _, err := host.Read(m.Dir + "/memory.limit_in_bytes"); err == nil {
		version = 1
	}
	return host.memoryIn(m.Dir, version)
}

// memoryIn reads the files of one group.
func (s system) memoryIn(dir string, version int) (*Memory, error) {
	m := &Memory{Dir: dir, Refaults: -1, Killed: -1}
	limit, used := "memory.limit_in_bytes", "memory.usage_in_bytes"
	if version == 2 {
		limit, used = "memory.max", "memory.current"
	}
	err := errors.Join(
		s.parsePresent(dir, limit, func(text string) (err error) { m.Limit, err = parseMemoryLimit(text); return err }),
		s.parsePresent(dir, used, func(text string) (err error) { m.Used, err = amount(text); return err }),
		s.parsePresent(dir, "memory.stat", m.stat),
	)
	if version == 2 {
		return m, errors.Join(err, s.parse(dir, "memory.events", func(text string) error {
			n, err := pairs(text)
			m.AtLimit, m.Killed = n["max"], n["oom_kill"]
			return err
		}))
	}
	return m, errors.Join(err,
		s.parse(dir, "memory.failcnt", func(text string) (err error) { m.AtLimit, err = amount(text); return err }),
		s.parse(dir, "memory.oom_control", func(text string) error {
			n, err := pairs(text)
			m.Killed = n["oom_kill"]
			return err
		}))
}

// stat takes what it needs from memory.stat. Version 1 counts groups below in names that begin with total_.
func (m *Memory) stat(text string) error {
	n, err := pairs(text)
	if err != nil {
		return err
	}
	m.Files = n["file"]
	if total, is := n["total_cache"]; is {
		m.Files = total
	}
	for _, name := range []string{"workingset_refault_file", "workingset_refault_anon", "total_workingset_refault_file", "total_workingset_refault_anon"} {
		if v, is := n[name]; is && (strings.HasPrefix(name, "total_") || n["total_"+name] == 0) {
			m.Refaults = max(m.Refaults, 0) + v
		}
	}
	return nil
}

// pairs parses lines "name number".
func pairs(text string) (map[string]int64, error) {
	n := map[string]int64{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 2 {
			return nil, fmt.Errorf("%.60q: must be a name and a number", line)
		}
		v, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%.60q: must be a name and a number", line)
		}
		n[f[0]] = v
	}
	return n, nil
}

// Scheduled returns the hierarchy by which the kernel schedules: that of the CPU controller in version 1, or version 2's; one that is nowhere
// mounted if there is none.
func Scheduled() (Hierarchy, error) {
	hierarchies, err := Mounted()
	if err != nil {
		return Hierarchy{}, fmt.Errorf("cgroup: hierarchies: %w", err)
	}
	if h := hierarchies.V1("cpu"); h != nil {
		return *h, nil
	}
	for _, h := range hierarchies {
		if h.V2 {
			return h, nil
		}
	}
	return Hierarchy{}, nil
}

// Below returns the paths of all cgroups of the hierarchy by which the kernel schedules, by their inodes. A path begins at the root of the
// hierarchy.
func Below() (map[uint64]string, error) {
	h, err := Scheduled()
	if err != nil || h.At == "" {
		return nil, err
	}
	return inodes(h.At)
}

// inodes lists the folders at and below dir, by their inodes.
func inodes(dir string) (map[uint64]string, error) {
	all := map[uint64]string{}
	err := each(dir, func(name string) error {
		var st unix.Stat_t
		if err := unix.Stat(name, &st); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all[st.Ino] = "/" + strings.TrimPrefix(strings.TrimPrefix(name, dir), "/")
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cgroup: groups below %s: %w", dir, err)
	}
	return all, nil
}
