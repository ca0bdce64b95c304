//go:build linux

package proc

import (
	"slices"

	"tare/notebook"
)

// ParseCPUList reads the kernel's way of writing a set of CPUs (see notebook.ParseCPUList).
func ParseCPUList(s string) ([]int, error) { return notebook.ParseCPUList(s) }

// FormatCPUList writes a set of CPUs as the kernel does (see notebook.FormatCPUList).
func FormatCPUList(cpus []int) string { return notebook.FormatCPUList(cpus) }

// IntersectCPUs gives the CPUs of a that are in b too, in the order of a.
func IntersectCPUs(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(c int) bool { return !slices.Contains(b, c) })
}
