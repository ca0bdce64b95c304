//go:build linux

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/lab/proc"
	"tare/notebook"
)

// Held is where the kernel confines a process to CPUs, and where it counts the CPU time used there.
type Held struct {
	Set   Group // whose CPU set confines the process
	Count Group // which counts: by CPU in version 1, in total in version 2
	sys   system
}

// HeldAt finds the groups that confine process pid and count its CPU time. Either has an empty Dir where the kernel has no such
// group.
func HeldAt(pid int) (Held, error) {
	h, err := host.heldAt(strconv.Itoa(pid))
	if err != nil {
		return h, fmt.Errorf("cgroup: CPU set of process %d: %w", pid, err)
	}
	return h, nil
}

func (s system) heldAt(pid string) (h Held, err error) {
	h.sys = s
	in, err := s.places(pid)
	if err != nil {
		return h, err
	}
	if h.Set, err = in.of("cpuset"); err != nil {
		return h, err
	}
	h.Count, err = in.of("cpuacct") // version 2 has no such controller: each of its groups counts
	return h, err
}

// CPUs are the CPUs that the group's processes can use now.
func (h Held) CPUs() ([]int, error) {
	names := map[int][]string{1: {"cpuset.effective_cpus", "cpuset.cpus"}, 2: {"cpuset.cpus.effective"}}[h.Set.Version]
	err := errors.New("no hierarchy of cgroups has the controller cpuset")
	for _, name := range names {
		var text string
		if text, err = h.sys.Read(h.Set.Dir + "/" + name); err == nil {
			return notebook.ParseCPUList(text)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return nil, err
}

// Used is the CPU time used by the processes of a group and of the groups below it.
type Used struct {
	All time.Duration
	By  map[int]time.Duration // by CPU; nil: the kernel does not count by CPU
}

// Elsewhere returns the time used on other CPUs than these; known is false where the kernel does not count by CPU.
func (u Used) Elsewhere(cpus []int) (d time.Duration, known bool) {
	for cpu, by := range u.By {
		if !slices.Contains(cpus, cpu) {
			d += by
		}
	}
	return d, u.By != nil
}

// Since returns what was used since an earlier reading.
func (u Used) Since(before Used) Used {
	since := Used{All: u.All - before.All}
	if u.By != nil && before.By != nil {
		since.By = map[int]time.Duration{}
		for cpu, by := range u.By {
			since.By[cpu] = by - before.By[cpu]
		}
	}
	return since
}

// Used reads what the group has counted so far.
func (h Held) Used() (u Used, err error) {
	switch h.Count.Version {
	case 1:
		possible, err := h.sys.Read("/sys/devices/system/cpu/possible")
		if err != nil {
			return u, err
		}
		cpus, err := notebook.ParseCPUList(possible)
		if err != nil {
			return u, fmt.Errorf("/sys/devices/system/cpu/possible: %w", err)
		}
		err = h.sys.parsePresent(h.Count.Dir, "cpuacct.usage_percpu", func(text string) error { return u.parse(text, cpus) })
		return u, err
	case 2:
		err = h.sys.parsePresent(h.Count.Dir, "cpu.stat", func(text string) error {
			for line := range strings.Lines(text) {
				if n, ok := strings.CutPrefix(strings.TrimSpace(line), "usage_usec "); ok {
					us, err := strconv.ParseUint(n, 10, 53)
					u.All = time.Duration(us) * time.Microsecond
					return err
				}
			}
			return errors.New("no line usage_usec")
		})
		return u, err
	}
	return u, errors.New("no hierarchy of cgroups counts CPU time (cpuacct)")
}

// parse reads cpuacct.usage_percpu: nanoseconds, one number for each CPU that the kernel could have (cpuacct.rst).
func (u *Used) parse(text string, cpus []int) error {
	fields := strings.Fields(text)
	if len(fields) != len(cpus) {
		return fmt.Errorf("%d numbers; must be one for each of %d CPUs", len(fields), len(cpus))
	}
	u.By = map[int]time.Duration{}
	for i, f := range fields {
		ns, err := strconv.ParseInt(f, 10, 64)
		if err != nil || ns < 0 || ns > math.MaxInt64-int64(u.All) {
			return fmt.Errorf("%.30q: must be a number of nanoseconds", f)
		}
		u.By[cpus[i]] = time.Duration(ns)
		u.All += time.Duration(ns)
	}
	return nil
}

// Left lists the processes that have a thread outside the groups and the groups below them, or one that may use other CPUs than
// these. A process that has ended is not listed.
func (h Held) Left(pids, cpus []int) (left []int, err error) {
	for _, pid := range pids {
		tids, err := proc.Threads(pid)
		if err != nil {
			return nil, err
		}
		for _, tid := range tids {
			thread := fmt.Sprintf("%d/task/%d", pid, tid)
			in, err := h.holds(thread, cpus)
			if err == nil && !in {
				in, err = h.sys.Ending("/proc/" + thread)
			}
			if proc.Ended(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if !in {
				left = append(left, pid)
				break
			}
		}
	}
	return left, nil
}

// holds reports whether a thread, named as in /proc, is in the groups and may use only these CPUs.
func (h Held) holds(thread string, cpus []int) (bool, error) {
	now, err := h.sys.heldAt(thread)
	if err != nil {
		return false, err
	}
	for _, g := range [][2]string{{h.Set.Dir, now.Set.Dir}, {h.Count.Dir, now.Count.Dir}} {
		if g[1] != g[0] && !strings.HasPrefix(g[1], g[0]+"/") {
			return false, nil
		}
	}
	may, err := h.sys.AllowedCPUs(thread)
	return len(proc.IntersectCPUs(may, cpus)) == len(may), err
}
