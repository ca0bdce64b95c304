//go:build linux

package memory

import (
	"fmt"

	"tare/lab/proc"
)

// sizePool fills in Region.Pool. Only the kernel's account of a process (smaps) has it, and reading that takes time, so only
// processes with pages of the pool are asked. The size stays unknown where the kernel does not tell, as of a process that has ended.
func (s *Snapshot) sizePool() {
	pool := map[uint32]bool{}          // regions with such pages
	owners := map[int][]proc.Backing{} // their processes, with all mappings
	for i := range s.Pages {
		p := &s.Pages[i]
		if p.Kind() != Hugetlb || pool[p.region] {
			continue
		}
		pool[p.region] = true
		r := s.Region(p)
		all, asked := owners[r.Process]
		if !asked {
			all, _ = proc.Backings(s.Processes[r.Process].PID) // it is a detail of the account, which is right without it
			owners[r.Process] = all
		}
		r.Pool = poolSize(all, r.Start)
	}
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
