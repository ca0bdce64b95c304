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
	var groups []Group
	for _, pid := range pids {
		g, err := s.find(strconv.Itoa(pid), "memory")
		if proc.Ended(err) {
			continue
		}
		if err != nil {
			return 0, false, err
		}
		if g.Dir == "" || g.Dir == g.Top || own.Dir == g.Dir || strings.HasPrefix(own.Dir, g.Dir+"/") {
			return 0, false, nil
		}
		groups = append(groups, g)
	}
	for i, g := range groups {
		if slices.ContainsFunc(groups[:i], func(o Group) bool { return o.Dir == g.Dir }) ||
			slices.ContainsFunc(groups, func(o Group) bool { return strings.HasPrefix(g.Dir, o.Dir+"/") }) {
			continue // counted already, or as a part of the group above
		}
		n, counts, err := s.kernelOf(g)
		if err != nil || !counts {
			return 0, false, err
		}
		bytes += n
	}
	return bytes, len(groups) > 0, nil
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
