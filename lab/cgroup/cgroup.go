//go:build linux

// Package cgroup knows control groups, version 1 and version 2: where a process is, which limits are in force on it, what
// the kernel killed for memory, which processes are in a group, and how a group is removed.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/moby/sys/mountinfo"

	"tare/lab/proc"
	"tare/notebook"
)

// system is the machine and the mounts whose cgroups are read.
type system struct {
	proc.Tree
	mounted func() ([]*mountinfo.Info, error)
}

var host = system{proc.Host, hostMounted}

// first is what the host had mounted at the first call.
var first struct {
	sync.Mutex
	mounts []*mountinfo.Info
}

// hostMounted returns the host's mounts as of its first call. The hierarchies among them stay, and reading the list again would
// delay whoever mounts a guest's root.
func hostMounted() ([]*mountinfo.Info, error) {
	first.Lock()
	defer first.Unlock()
	var err error
	if first.mounts == nil {
		first.mounts, err = proc.Host.Mounts()
	}
	return first.mounts, err
}

// Versions says which versions of cgroups a machine has mounted: "v1", "v2", "hybrid" (controllers in version 1, and in addition a version 2 hierarchy) or "none".
func Versions(t proc.Tree) (string, error) {
	mounts, err := t.Mounts()
	if err != nil {
		return "", err
	}
	hs := hierarchies(mounts)
	// A hierarchy of version 1 that only names processes (systemd's) has no controllers.
	v1 := hs.V1("cpu") != nil || hs.V1("cpuset") != nil || hs.V1("memory") != nil
	v2 := slices.ContainsFunc(hs, func(h Hierarchy) bool { return h.V2 })
	switch {
	case v1 && v2:
		return "hybrid", nil
	case v1:
		return "v1", nil
	case v2:
		return "v2", nil
	}
	return "none", nil
}

// membership is one line of /proc/PID/cgroup: where a process is in one hierarchy.
type membership struct {
	controllers []string // empty for version 2
	path        string
}

// parseMemberships reads /proc/PID/cgroup (cgroups(7)).
func parseMemberships(s string) ([]membership, error) {
	var ms []membership
	n := 0
	for line := range strings.Lines(s) {
		n++
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			continue
		}
		f := strings.SplitN(line, ":", 3)
		if len(f) != 3 || !strings.HasPrefix(f[2], "/") {
			return nil, fmt.Errorf("line %d: %.100q is not a line of /proc/PID/cgroup", n, line)
		}
		m := membership{path: strings.TrimSuffix(f[2], " (deleted)")}
		if f[1] != "" {
			m.controllers = strings.Split(f[1], ",")
		}
		ms = append(ms, m)
	}
	return ms, nil
}

// Group is the place of a process in the hierarchy that has a controller, as a folder of the mounted hierarchy.
type Group struct {
	Dir     string // "" if no hierarchy here has the controller
	Top     string // where the hierarchy is mounted; Dir is this folder or below it
	Version int    // 1 or 2
}

// upwards lists the group's folder and the visible folders above it.
func (g Group) upwards() []string {
	if g.Dir == "" {
		return nil
	}
	dirs := []string{g.Dir}
	for d := g.Dir; d != g.Top && len(d) > len(g.Top); {
		d = path.Dir(d)
		dirs = append(dirs, d)
	}
	return dirs
}

// places are the places of a process in all hierarchies.
type places struct {
	pid         string
	memberships []membership
	mounts      []*mountinfo.Info
}

// find finds the place of process pid for a controller ("cpu", "cpuset", "memory", …).
func (s system) find(pid, controller string) (Group, error) {
	p, err := s.places(pid)
	if err != nil {
		return Group{}, err
	}
	return p.of(controller)
}

// places finds the places of process pid; none where the kernel has no cgroups.
func (s system) places(pid string) (p places, err error) {
	p.pid = pid
	file := "/proc/" + pid + "/cgroup"
	text, err := s.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		// Either the process is gone or the kernel has no cgroups.
		if _, err := s.Read("/proc/self/cgroup"); err != nil {
			return p, nil
		}
	}
	if err != nil {
		return p, err
	}
	if p.memberships, err = parseMemberships(text); err != nil {
		return p, fmt.Errorf("%s: %w", file, err)
	}
	// This process's own view, because the paths in /proc/PID/cgroup are relative to the reader's cgroup namespace.
	p.mounts, err = s.mounted()
	return p, err
}

// of is the process's place for a controller.
func (p places) of(controller string) (Group, error) {
	ms := p.memberships
	// Version 1 binds a controller to its hierarchy, so version 2 does not have it.
	version, fstype := 1, "cgroup"
	i := slices.IndexFunc(ms, func(m membership) bool { return slices.Contains(m.controllers, controller) })
	if i < 0 {
		version, fstype = 2, "cgroup2"
		i = slices.IndexFunc(ms, func(m membership) bool { return len(m.controllers) == 0 })
	}
	if i < 0 {
		return Group{}, nil
	}
	// If the hierarchy has several mounts, take the one that shows most of the groups above.
	var best *mountinfo.Info
	var rel string
	for _, m := range p.mounts {
		if m.FSType != fstype || (version == 1 && !slices.Contains(strings.Split(m.VFSOptions, ","), controller)) {
			continue
		}
		r, ok := within(ms[i].path, m.Root)
		if ok && (best == nil || len(m.Root) < len(best.Root)) {
			best, rel = m, r
		}
	}
	if best != nil {
		return Group{Dir: path.Join(best.Mountpoint, rel), Top: best.Mountpoint, Version: version}, nil
	}
	if ms[i].path == "/" {
		return Group{}, nil // the root has no limits
	}
	return Group{}, fmt.Errorf("process %s is in cgroup %s for %s, which no mount seen from here shows; mount the cgroup hierarchy, or run tare outside of the container", p.pid, ms[i].path, controller)
}

// within returns the part of p below root.
func within(p, root string) (string, bool) {
	if slices.Contains(strings.Split(p, "/"), "..") {
		return "", false // outside of this cgroup namespace
	}
	if root == "/" || p == root {
		return strings.TrimPrefix(strings.TrimPrefix(p, root), "/"), true
	}
	return strings.CutPrefix(p, root+"/")
}

// Of returns the folder of the cgroup of process pid for a controller ("cpu", "cpuset", "memory", …), in either version; "" where
// the kernel has no such hierarchy mounted.
func Of(pid int, controller string) (dir string, err error) {
	g, err := host.find(strconv.Itoa(pid), controller)
	if err != nil {
		return "", fmt.Errorf("cgroup: cgroup of process %d: %w", pid, err)
	}
	return g.Dir, nil
}

// Paths returns the cgroups of process pid, one for each hierarchy, as paths below its root.
func Paths(pid int) ([]string, error) {
	file := "/proc/" + strconv.Itoa(pid) + "/cgroup"
	text, err := host.Read(file)
	if err != nil {
		return nil, err
	}
	ms, err := parseMemberships(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var paths []string
	for _, m := range ms {
		paths = append(paths, m.path)
	}
	return paths, nil
}

// Find finds the place of this process for a controller ("cpu", "cpuset", "memory", …).
func Find(controller string) (Group, error) { return host.find("self", controller) }

// LimitsOf returns the limits in force on process pid, by its own cgroups and those above them: the CPUs that its main thread may
// run on, the CPU time in cores, and the memory in bytes. It reads them from the kernel's files. Source says which version of
// cgroups limits the process, or "affinity" where none does.
func LimitsOf(pid int) (notebook.Limits, error) {
	l, err := host.limitsOf(strconv.Itoa(pid))
	if err != nil {
		return l, fmt.Errorf("cgroup: limits of process %d: %w", pid, err)
	}
	return l, nil
}

func (s system) limitsOf(pid string) (notebook.Limits, error) {
	var l notebook.Limits
	online, err := s.OnlineCPUs()
	if err != nil {
		return l, err
	}
	allowed, err := s.AllowedCPUs(pid)
	if err != nil {
		return l, err
	}
	cpus := proc.IntersectCPUs(online, allowed)
	if len(cpus) == 0 {
		return l, fmt.Errorf("/proc/%s/status: Cpus_allowed_list names no CPU that is online (%s)", pid, notebook.FormatCPUList(online))
	}

	in, err := s.places(pid)
	if err != nil {
		return l, err
	}
	var versions []int
	set, version, err := s.cpuset(in)
	if err != nil {
		return l, err
	}
	if set != nil && len(proc.IntersectCPUs(online, set)) < len(online) {
		cpus = proc.IntersectCPUs(cpus, set)
		versions = append(versions, version)
	}
	l.CPUs = notebook.FormatCPUList(cpus)

	g, err := in.of("cpu")
	if err != nil {
		return l, err
	}
	for _, dir := range g.upwards() {
		q, err := s.quota(dir, g.Version)
		if err != nil {
			return l, err
		}
		if q > 0 && (l.Quota == 0 || q < l.Quota) {
			l.Quota = q
			versions = append(versions, g.Version)
		}
	}

	g, err = in.of("memory")
	if err != nil {
		return l, err
	}
	name := map[int]string{1: "memory.limit_in_bytes", 2: "memory.max"}[g.Version]
	for _, dir := range g.upwards() {
		var m int64
		err := s.parse(dir, name, func(text string) (err error) {
			m, err = parseMemoryLimit(text)
			return err
		})
		if err != nil {
			return l, err
		}
		if m > 0 && (l.Memory == 0 || m < l.Memory) {
			l.Memory = m
			versions = append(versions, g.Version)
		}
	}

	slices.Sort(versions)
	switch versions = slices.Compact(versions); len(versions) {
	case 0:
		l.Source = "affinity"
	case 1:
		l.Source = fmt.Sprintf("cgroup v%d", versions[0])
	default:
		l.Source = "cgroup v1 and v2"
	}
	return l, nil
}

// cpuset returns the effective CPU set of the process's cgroup; nil where there is none.
func (s system) cpuset(in places) (cpus []int, version int, err error) {
	g, err := in.of("cpuset")
	if err != nil {
		return nil, 0, err
	}
	names := map[int][]string{1: {"cpuset.effective_cpus", "cpuset.cpus"}, 2: {"cpuset.cpus.effective"}}[g.Version]
	// A group of version 2 without the controller has its parent's set.
	for _, dir := range g.upwards() {
		for _, name := range names {
			err := s.parse(dir, name, func(text string) (err error) {
				cpus, err = notebook.ParseCPUList(text)
				return err
			})
			if err != nil || cpus != nil {
				return cpus, g.Version, err
			}
		}
	}
	return nil, g.Version, nil
}

// parse parses a group's file if it exists: the root and groups without the controller have no limits.
func (s system) parse(dir, name string, parse func(text string) error) error {
	err := s.parsePresent(dir, name, parse)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// parsePresent parses a group's file, which must exist.
func (s system) parsePresent(dir, name string, parse func(text string) error) error {
	text, err := s.Read(dir + "/" + name)
	if err != nil {
		return err
	}
	if err := parse(text); err != nil {
		return fmt.Errorf("%s/%s: %w", dir, name, err)
	}
	return nil
}

// quota reads the CPU quota of one group in cores; 0 for none.
func (s system) quota(dir string, version int) (q float64, err error) {
	if version == 2 {
		err = s.parse(dir, "cpu.max", func(text string) (err error) {
			q, err = parseCPUMax(text)
			return err
		})
		return q, err
	}
	err = s.parse(dir, "cpu.cfs_quota_us", func(quota string) error {
		period, err := s.Read(dir + "/cpu.cfs_period_us")
		if err == nil && quota != "-1" {
			q, err = parseCPUMax(quota + " " + period)
		}
		return err
	})
	return q, err
}

// parseCPUMax parses "QUOTA PERIOD", in µs, or "max PERIOD", as cores; 0 means no quota.
func parseCPUMax(s string) (float64, error) {
	f := strings.Fields(s)
	if len(f) == 2 {
		period, err := strconv.ParseUint(f[1], 10, 63)
		if err == nil && period > 0 {
			if f[0] == "max" {
				return 0, nil
			}
			if quota, err := strconv.ParseUint(f[0], 10, 63); err == nil && quota > 0 {
				return float64(quota) / float64(period), nil
			}
		}
	}
	return 0, fmt.Errorf("%.60q: must be a quota or max, and a period, in µs", s)
}

// parseMemoryLimit parses a limit in bytes. "max", and version 1's numbers beyond any memory, give 0: no limit.
func parseMemoryLimit(s string) (int64, error) {
	if s == "max" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%.60q: must be a number of bytes or max", s)
	}
	if n >= math.MaxInt64/4 { // version 1 rounds the largest number down to a page
		return 0, nil
	}
	return int64(n), nil
}
