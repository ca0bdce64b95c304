//go:build linux

package memory

import (
	"cmp"
	"slices"
	"strings"

	"tare/notebook"
)

// Flags of /proc/kpageflags that say how recently a page was used, by the kernel's reclaim.
const (
	kpfLRU    = 1 << 5
	kpfActive = 1 << 6
)

// Used is a set of page-table entries, each at an address of a process.
type Used interface {
	Has(pid int, address uint64) bool
}

// Uses are the entries that the processor used: repeatedly, in the paper's words "accessed at least multiple times", and ever since they
// were made.
type Uses struct{ Repeatedly, Ever Used }

// Tables counts the page-table entries of guests' processes, by whether others have the same (paper "characterization", section
// 5.2.1). An entry is a mapped page; a huge page counts as its 4 KiB pages. It does not count pages in swap, which have no frame,
// and those of processes in no guest.
//
// An entry is groupable if a process of another guest has the same frame at the same address. The paper says "across multiple
// processes", and its containers have one process each, except httpd's. Tables counts entries that only processes of one guest
// share separately (Within).
//
// uses are the entries that the processor used; nil: that is not known.
func (s *Snapshot) Tables(guests []Guest, uses *Uses) (t notebook.PageTables) {
	t.Guests = len(guests)
	owner := make([]int, len(s.Processes)) // by process: the guest, from 1
	for i, p := range s.Processes {
		owner[i] = 1 + slices.IndexFunc(guests, func(g Guest) bool { return slices.Contains(g.PIDs, p.PID) })
		if owner[i] > 0 && p.Err == nil {
			t.Processes++
		}
	}
	parts := s.parts(&t)
	s.sortByFrame()
	var of []entry // pages with the same frame
	groups(s.Pages, sameFrame, func(g []Page) {
		of = of[:0]
		for i := range g {
			p := &g[i]
			process := s.Region(p).Process
			if owner[process] > 0 && p.flags&flagSwapped == 0 {
				e := entry{address: s.Address(p), process: process, guest: owner[process], part: parts[p.region], Page: p}
				if uses != nil {
					pid := s.Processes[process].PID
					e.repeatedly, e.ever = uses.Repeatedly.Has(pid, e.address), uses.Ever.Has(pid, e.address)
				}
				of = append(of, e)
			}
		}
		frame(&t, of)
	})
	return t
}

// entry is one page of one process.
type entry struct {
	address          uint64
	process, guest   int
	part             *notebook.TablePart
	repeatedly, ever bool // whether it was used
	*Page
}

// parts are, for each region, where t counts its entries by what maps them.
func (s *Snapshot) parts(t *notebook.PageTables) []*notebook.TablePart {
	type file struct {
		process int
		device  string
		inode   uint64
	}
	of := func(r *Region) file { return file{r.Process, r.Device, r.Inode} }
	code := map[file]bool{}
	for i := range s.Regions {
		if r := &s.Regions[i]; r.Inode != 0 && strings.Contains(r.Perms, "x") {
			code[of(r)] = true
		}
	}
	all := make([]*notebook.TablePart, len(s.Regions))
	for i := range s.Regions {
		switch r := &s.Regions[i]; {
		case r.Inode == 0:
			all[i] = &t.Own
		case code[of(r)]:
			all[i] = &t.Code
		default:
			all[i] = &t.Data
		}
	}
	return all
}

// several reports whether entries belong to more than one guest, and to more than one process.
func several(all []entry) (guests, processes bool) {
	for _, e := range all[1:] {
		guests, processes = guests || e.guest != all[0].guest, processes || e.process != all[0].process
	}
	return guests, processes
}

// frame counts the entries of one frame.
func frame(t *notebook.PageTables, of []entry) {
	if len(of) == 0 {
		return
	}
	elsewhere, _ := several(of)
	slices.SortFunc(of, func(a, b entry) int { return cmp.Compare(a.address, b.address) })
	for len(of) > 0 {
		n := 1
		for n < len(of) && of[n].address == of[0].address {
			n++
		}
		guests, processes := several(of[:n])
		for _, e := range of[:n] {
			active := e.flags&kpfActive != 0
			add := func(is bool, counts ...*int64) {
				if is {
					for _, c := range counts {
						*c++
					}
				}
			}
			add(true, &t.Entries, &e.part.Entries)
			add(active, &t.Active, &e.part.Active)
			add(e.flags&kpfLRU == 0, &t.Unlisted)
			add(guests, &t.Groupable, &e.part.Groupable)
			add(guests && active, &t.ActiveGroupable)
			add(e.repeatedly, &t.Reused)
			add(e.repeatedly && guests, &t.ReusedGroupable)
			if e.ever {
				t.Accessed += int64(PageSize)
			}
			add(guests && e.Kind() == Zero, &t.Zero)
			add(processes && !guests, &t.Within)
			add(elsewhere && !guests, &t.Elsewhere)
			add(e.Size() == Huge, &t.Huge)
			add(e.Size() == Huge && active, &t.ActiveHuge)
			add(e.Size() == Huge && guests, &t.GroupableHuge)
			add(e.Size() == Large, &t.Large)
		}
		of = of[n:]
	}
}
