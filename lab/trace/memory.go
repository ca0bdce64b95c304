//go:build linux

package trace

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"tare/notebook"
)

// The tracer of page faults, reclaim and huge pages.
var _ = add(tracer{name: notebook.TracerMemory, count: func(f files, c *counters, t counted) error {
	return errors.Join(f.faults(c, t), f.hostMemory(c))
}})

// Names in the kernel's files, and the figures' names here.
var (
	faultsBelow = map[string]string{"total_pgfault": "minor_faults", "total_pgmajfault": "major_faults"} // version 1, including the cgroups below
	faultsV2    = map[string]string{"pgfault": "minor_faults", "pgmajfault": "major_faults", "pgsteal": "reclaimed_pages"}
	hugeFaults  = map[string]string{"thp_fault_alloc": "huge_faults"}
	reclaimed   = map[string]string{"pgsteal_kswapd": "reclaimed_pages", "pgsteal_direct": "reclaimed_pages", "pgsteal_khugepaged": "reclaimed_pages", "pgsteal_proactive": "reclaimed_pages"}
)

// faults reads page faults of the guest's own cgroup or of its processes. The kernel updates a cgroup's counts once about 64 for
// each CPU have accumulated, so they may lag by as many. A process's counts are exact.
func (f files) faults(c *counters, t counted) error {
	dir, err := f.ownGroup(t, "memory")
	if err != nil {
		return err
	}
	if dir != "" {
		file := dir + "/memory.stat"
		n, err := f.take(file, faultsBelow, 1)
		if errors.Is(err, errNoneThere) { // version 2
			n, err = f.take(file, faultsV2, 1)
		}
		if err == nil {
			n["minor_faults"] = max(n["minor_faults"], n["major_faults"]) - n["major_faults"]
			c.figures = append(c.figures, counts{notebook.TracerMemory, file, n, false})
			return nil
		}
		if !gone(err) {
			return err
		}
	}
	u, err := f.used(t)
	if err != nil {
		return fmt.Errorf("page faults: %w", err)
	}
	c.figures = append(c.figures, counts{notebook.TracerMemory, "the guest's processes", map[string]uint64{
		"minor_faults": u.MinorFaults,
		"major_faults": u.MajorFaults,
	}, false})
	return nil
}

// hostMemory reads what only the whole host counts: huge pages, and reclaimed pages if the guest's cgroup does not count them.
func (f files) hostMemory(c *counters) error {
	const file = "/proc/vmstat"
	want := maps.Clone(hugeFaults)
	whole := !slices.ContainsFunc(c.figures, func(c counts) bool {
		_, ok := c.n["reclaimed_pages"]
		return ok
	})
	if whole {
		maps.Copy(want, reclaimed)
	}
	n, err := f.take(file, want, 1)
	if err != nil {
		return err
	}
	c.figures = append(c.figures, counts{notebook.TracerMemory, file, n, false})
	if _, ok := n["huge_faults"]; !ok {
		c.missing.add(notebook.TracerMemory, notebook.Say("not-counted", "figure", "huge_faults"))
	}
	if _, ok := n["reclaimed_pages"]; ok && whole {
		c.missing.add(notebook.TracerMemory, notebook.Say("of-whole-host", "figure", "reclaimed_pages"))
	}
	return nil
}
