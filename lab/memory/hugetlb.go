//go:build linux

package memory

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"tare/lab/proc"
)

// sizePool fills in Region.Pool. Only the kernel's account of a process (smaps) has it, and reading that takes time, so only
// processes with pages of the pool are asked. The size stays unknown for a process that has ended.
func (s *scanner) sizePool() error {
	pool := map[uint32]bool{} // regions with such pages
	owners := map[int]bool{}  // their processes
	for i := range s.Pages {
		if p := &s.Pages[i]; p.Kind() == Hugetlb && !pool[p.region] {
			pool[p.region], owners[s.Region(p).Process] = true, true
		}
	}
	for of := range owners {
		all, err := proc.Backings(s.Processes[of].PID)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			return err
		}
		for i := range pool {
			if r := &s.Regions[i]; r.Process == of {
				r.Pool = poolSize(all, r.Start)
			}
		}
	}
	return nil
}

// poolSize is the page size of the mapping at an address; 0 where there is none, or none of the pool.
func poolSize(all []proc.Backing, at uint64) int64 {
	for _, b := range all {
		if b.Start <= at && at < b.End && b.PageSize > PageSize {
			return b.PageSize
		}
	}
	return 0
}

// poolName names the pages of the pool that have this size, in bytes; 0: unknown.
func poolName(size int64) string {
	if size == 0 {
		return Hugetlb.String()
	}
	unit, in := "KiB", size>>10
	for _, larger := range []string{"MiB", "GiB"} {
		if in >= 1024 {
			unit, in = larger, in>>10
		}
	}
	return fmt.Sprintf("%v, %d %s each", Hugetlb, in, unit)
}
