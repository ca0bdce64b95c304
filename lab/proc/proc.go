//go:build linux

// Package proc reads the kernel's information on processes, mounts and CPUs in /proc and /sys, and ends processes. Each of these
// files is parsed only here; package cgroup parses those of cgroups.
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

// Tree is the file tree that facts are read from: this machine's own, or a recorded one of another machine.
type Tree struct{ FS fs.FS }

// Host is this machine's own tree.
var Host = Tree{os.DirFS("/")}

// Read returns a file's text without the white space around it. name is absolute.
func (t Tree) Read(name string) (string, error) {
	b, err := fs.ReadFile(t.FS, strings.TrimPrefix(name, "/"))
	return strings.TrimSpace(string(b)), err
}

// Number returns the number in a file.
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

// OnlineCPUs are the CPUs that the host has online now, in order; at least one.
func OnlineCPUs() ([]int, error) { return Host.OnlineCPUs() }

// OnlineCPUs are the CPUs that the machine has online, in order; at least one.
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

// CPUFlags are the flags of the first CPU in /proc/cpuinfo.
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

// Field returns the text after "name:" on a line of a file like /proc/PID/status, or "".
func Field(text, name string) string {
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// Memory returns a field of /proc/meminfo, such as MemTotal, in bytes.
func (t Tree) Memory(field string) (int64, error) {
	text, err := t.Read("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	kb, err := strconv.ParseInt(strings.TrimSuffix(Field(text, field), " kB"), 10, 64)
	if err != nil || kb < 0 || kb >= math.MaxInt64/1024 {
		return 0, fmt.Errorf("/proc/meminfo: must have a line %s with a number of kB", field)
	}
	return kb * 1024, nil
}

// IntersectCPUs returns the CPUs of a that are also in b, in the order of a.
func IntersectCPUs(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(c int) bool { return !slices.Contains(b, c) })
}
