//go:build linux

// Package proc reads what the kernel says of processes, mounts and CPUs, in /proc and /sys, and ends processes. Each
// of these files is parsed here and nowhere else; cgroups are package cgroup's.
package proc

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"tare/notebook"
)

// Tree is the file tree that facts are read from: this machine's own, or one recorded from another machine.
type Tree struct{ FS fs.FS }

// Host is this machine's own tree.
var Host = Tree{os.DirFS("/")}

// Read gives a file's text without the white space around it. name is absolute.
func (t Tree) Read(name string) (string, error) {
	b, err := fs.ReadFile(t.FS, strings.TrimPrefix(name, "/"))
	return strings.TrimSpace(string(b)), err
}

// Number gives the number that a file is.
func (t Tree) Number(name string) (int, error) {
	text, err := t.Read(name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

// OnlineCPUs are the CPUs that the host has online now, in order; one at least.
func OnlineCPUs() ([]int, error) { return Host.OnlineCPUs() }

// OnlineCPUs are the CPUs that the machine has online, in order; one at least.
func (t Tree) OnlineCPUs() ([]int, error) {
	const file = "/sys/devices/system/cpu/online"
	text, err := t.Read(file)
	if err != nil {
		return nil, err
	}
	cpus, err := notebook.ParseCPUList(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(cpus) == 0 {
		return nil, fmt.Errorf("%s names no CPU", file)
	}
	return cpus, nil
}

// CPUFlags are what the CPUs can do, as /proc/cpuinfo has it of the first.
func (t Tree) CPUFlags() ([]string, error) {
	info, err := t.Read("/proc/cpuinfo")
	return strings.Fields(Field(info, "flags")), err
}

// AllowedCPUs are the CPUs that a process, or a thread, may run on, in order; pid is its number, or self.
func (t Tree) AllowedCPUs(pid string) ([]int, error) {
	file := "/proc/" + pid + "/status"
	status, err := t.Read(file)
	if err != nil {
		return nil, err
	}
	cpus, err := notebook.ParseCPUList(Field(status, "Cpus_allowed_list"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return cpus, nil
}

// Field gives what follows "name:" on a line of a file like /proc/PID/status, or "".
func Field(text, name string) string {
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// Memory gives a field of /proc/meminfo, such as MemTotal, in bytes.
func (t Tree) Memory(field string) (int64, error) {
	text, err := t.Read("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	kb, err := strconv.ParseInt(strings.TrimSuffix(Field(text, field), " kB"), 10, 64)
	if err != nil || kb < 0 || kb >= math.MaxInt64/1024 {
		return 0, fmt.Errorf("/proc/meminfo: expected a line %s with a number of kB", field)
	}
	return kb * 1024, nil
}

// IntersectCPUs gives the CPUs of a that are in b too, in the order of a.
func IntersectCPUs(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(c int) bool { return !slices.Contains(b, c) })
}
