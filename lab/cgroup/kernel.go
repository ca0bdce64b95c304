//go:build linux

package cgroup

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tare/lab/proc"
)

// KernelMemory returns the memory, in bytes, that the kernel uses for the cgroups that contain only these processes, and for the
// groups below. It consists of page tables, slabs, stacks, the group's own structures, and socket buffers (the paper
// "virtualization-overheads" leaves those open). known is false where it cannot be determined: a process is in the root or in this
// program's group, or the kernel does not count.
func KernelMemory(pids []int) (bytes int64, known bool, err error) {
	own, err := host.find("self", "memory")
	if err != nil {
		return 0, false, err
	}
	return host.kernelMemory(pids, own)
}

func (s system) kernelMemory(pids []int, own Group) (bytes int64, known bool, err error) {
	groups, err := s.memoryGroups(pids, own)
	for _, g := range groups {
		n, counts, err := s.kernelOf(g)
		if err != nil || !counts {
			return 0, false, err
		}
		bytes += n
	}
	return bytes, len(groups) > 0, err
}

// memoryGroups are the cgroups that contain only these processes, without those below another of them. There are none where a process is in the
// root or in this program's group.
func (s system) memoryGroups(pids []int, own Group) (groups []Group, err error) {
	for _, pid := range pids {
		g, err := s.find(strconv.Itoa(pid), "memory")
		if proc.Ended(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if g.Dir == "" || g.Dir == g.Top || own.Dir == g.Dir || strings.HasPrefix(own.Dir, g.Dir+"/") {
			return nil, nil
		}
		if !slices.ContainsFunc(groups, func(o Group) bool { return o.Dir == g.Dir }) {
			groups = append(groups, g)
		}
	}
	all := slices.Clone(groups)
	return slices.DeleteFunc(groups, func(g Group) bool { // it is a part of the group above
		return slices.ContainsFunc(all, func(o Group) bool { return strings.HasPrefix(g.Dir, o.Dir+"/") })
	}), nil
}

// Charge is what cgroups are charged for memory, in bytes.
type Charge struct {
	All   int64 // with the page cache that they filled, and the kernel's memory for them (memory.current)
	Files int64 // part: page cache and shared memory (file, in memory.stat)
}

// Charged returns what the cgroups that contain only these processes, and the groups below, are charged: as operators see it and as a limit
// counts it. known is as in [KernelMemory].
func Charged(pids []int) (c Charge, known bool, err error) {
	own, err := host.find("self", "memory")
	if err != nil {
		return c, false, err
	}
	return host.charged(pids, own)
}

func (s system) charged(pids []int, own Group) (c Charge, known bool, err error) {
	groups, err := s.memoryGroups(pids, own)
	for _, g := range groups {
		all, files, key := "memory.current", int64(-1), "file"
		if g.Version == 1 {
			all, key = "memory.usage_in_bytes", "total_cache"
		}
		bytes := int64(-1)
		if err := errors.Join(
			s.parse(g.Dir, all, func(text string) (err error) { bytes, err = amount(text); return err }),
			s.parse(g.Dir, "memory.stat", func(text string) (err error) { files, err = statLine(text, key); return err }),
		); err != nil || bytes < 0 || files < 0 {
			return Charge{}, false, err
		}
		c.All, c.Files = c.All+bytes, c.Files+files
	}
	return c, len(groups) > 0, err
}

// amount reads a number of bytes.
func amount(text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 62)
	if err != nil || n < 0 {
		return -1, fmt.Errorf("%.100q is not a number of bytes", text)
	}
	return n, nil
}

// statLine is the number of bytes on a line of memory.stat; -1: there is no such line.
func statLine(text, key string) (int64, error) {
	for line := range strings.Lines(text) {
		if name, value, _ := strings.Cut(line, " "); name == key {
			return amount(value)
		}
	}
	return -1, nil
}

// kernelOf reads it for one group (Documentation/admin-guide/cgroup-v2.rst, memory.stat; cgroup-v1/memory.rst, kernel memory).
func (s system) kernelOf(g Group) (bytes int64, counts bool, err error) {
	if g.Version == 1 {
		for _, file := range []string{"memory.kmem.usage_in_bytes", "memory.kmem.tcp.usage_in_bytes"} {
			err := s.parse(g.Dir, file, func(text string) error {
				n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
				if err == nil && n < 0 {
					err = fmt.Errorf("%d bytes", n)
				}
				bytes, counts = bytes+n, true
				return err
			})
			if err != nil {
				return 0, false, err
			}
		}
		return bytes, counts, nil
	}
	err = s.parse(g.Dir, "memory.stat", func(text string) (err error) {
		bytes, counts, err = parseKernelStat(text)
		return err
	})
	return bytes, counts, err
}

// parseKernelStat sums the kernel's memory in memory.stat: "kernel" since Linux 5.18, its parts before that; and the socket
// buffers.
func parseKernelStat(text string) (bytes int64, counts bool, err error) {
	of := map[string]int64{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !slices.Contains([]string{"kernel", "kernel_stack", "pagetables", "percpu", "slab", "sock"}, name) {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 {
			return 0, false, fmt.Errorf("%.100q is not a line of memory.stat", line)
		}
		of[name] = n
	}
	bytes, whole := of["kernel"]
	if !whole {
		bytes = of["kernel_stack"] + of["pagetables"] + of["percpu"] + of["slab"]
	}
	if bytes < 0 || bytes+of["sock"] < bytes {
		return 0, false, errors.New("memory.stat: more than can be counted")
	}
	return bytes + of["sock"], len(of) > 0, nil
}
