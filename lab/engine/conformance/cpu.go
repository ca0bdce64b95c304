//go:build linux

package conformance

import (
	"runtime"

	"golang.org/x/sys/unix"
)

const arch = runtime.GOARCH

// lastCPU is the highest-numbered CPU that this process may use.
func lastCPU() int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 0
	}
	last := 0
	for i := range 8 * len(set) * 8 {
		if set.IsSet(i) {
			last = i
		}
	}
	return last
}
