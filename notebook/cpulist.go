package notebook

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxCPU bounds the numbers in a CPU list, so that a wrong one is an error and not a very long list. Linux can be
// built for 8192 CPUs.
const maxCPU = 1 << 16

// ParseCPUList reads the kernel's way of writing a set of CPUs, "0-3,8". The result is in ascending order, each
// CPU once; of an empty list it is nil.
func ParseCPUList(s string) ([]int, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return nil, nil
	}
	var cpus []int
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		a, err := strconv.ParseUint(first, 10, 31)
		b, err2 := strconv.ParseUint(last, 10, 31)
		if err != nil || err2 != nil || a > b || b >= maxCPU {
			return nil, fmt.Errorf("CPU list %.60q: %.20q: must be a CPU or a range of CPUs, as in 0-3,8, each below %d", s, part, maxCPU)
		}
		for c := a; c <= b; c++ {
			cpus = append(cpus, int(c))
		}
		// Lists that name the same CPUs over and over must not grow without bound.
		if len(cpus) > 2*maxCPU {
			slices.Sort(cpus)
			cpus = slices.Compact(cpus)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), nil
}

// FormatCPUList writes a set of CPUs as the kernel does, "0-3,8". Order and repetition do not matter.
func FormatCPUList(cpus []int) string {
	cpus = slices.Compact(slices.Sorted(slices.Values(cpus)))
	var b strings.Builder
	for i := 0; i < len(cpus); {
		j := i
		for j+1 < len(cpus) && cpus[j+1] == cpus[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(cpus[i]))
		if j > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(cpus[j]))
		}
		i = j + 1
	}
	return b.String()
}
