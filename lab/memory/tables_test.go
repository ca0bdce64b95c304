//go:build linux

package memory

import (
	"slices"
	"testing"

	"tare/lab/proc"
	"tare/notebook"
)

// mapped is a page of a process, as a test lists it.
type mapped struct {
	process int
	address uint64
	frame   uint64
	flags   uint32
}

// used are entries that were used, by process and address.
type used [][2]uint64

func (u used) Has(pid int, address uint64) bool {
	return slices.Contains(u, [2]uint64{uint64(pid), address})
}

// snapshotOf has so many processes, of numbers from 100, that map these pages and nothing else.
func snapshotOf(processes int, pages []mapped) *Snapshot {
	s := &Snapshot{}
	for i := range processes {
		s.Processes = append(s.Processes, Process{PID: 100 + i})
		s.Regions = append(s.Regions, Region{Mapping: proc.Mapping{Start: 0, End: 1 << 40}, Process: i})
	}
	for _, p := range pages {
		s.Pages = append(s.Pages, Page{Frame: p.frame, region: uint32(p.process), at: uint32(p.address / uint64(PageSize)), Count: 1, flags: p.flags})
	}
	return s
}

// Guests of known page tables: what is at the same address counts, what is elsewhere or in only one guest does not.
func TestTablesAreCountedByWhoElseHasThem(t *testing.T) {
	const listed, active = kpfLRU | flagFile, kpfLRU | kpfActive | flagFile
	// Guest 1 has processes 100 and 101, guest 2 has 102, guest 3 has 103; 104 is in none.
	guests := []Guest{{PIDs: []int{100, 101}}, {PIDs: []int{102}}, {PIDs: []int{103}}}
	s := snapshotOf(5, []mapped{
		// In all guests, three times at one address and once elsewhere.
		{0, 0x1000, 10, active}, {2, 0x1000, 10, active}, {3, 0x1000, 10, active}, {1, 0x7000, 10, active},
		// The same frame at other addresses only.
		{0, 0x2000, 20, listed}, {2, 0x3000, 20, listed},
		// Two processes of one guest.
		{0, 0x4000, 30, listed}, {1, 0x4000, 30, listed},
		// The same address, other frames.
		{0, 0x5000, 40, kpfAnon | kpfLRU | kpfActive}, {2, 0x5000, 41, kpfAnon | kpfLRU},
		// A process in no guest has it too.
		{3, 0x6000, 50, listed}, {4, 0x6000, 50, listed},
		// In swap.
		{0, 0x8000, 0, flagSwapped}, {2, 0x8000, 0, flagSwapped},
		// A huge page in one guest, a part of a larger folio in two, the page of zeros in two.
		{3, 0x200000, 512, kpfAnon | kpfLRU | kpfActive | flagMapped | kpfCompoundHead},
		{2, 0x9000, 60, active | kpfCompoundTail}, {3, 0x9000, 60, active | kpfCompoundTail},
		{0, 0xa000, 70, kpfZeroPage}, {3, 0xa000, 70, kpfZeroPage},
	})
	got := s.Tables(guests, &Uses{used{{100, 0x1000}, {102, 0x1000}, {101, 0x7000}, {100, 0x5000}}, used{{100, 0x1000}, {103, 0x1000}, {104, 0x6000}}})
	want := notebook.PageTables{
		Guests: 3, Processes: 4, Entries: 16, Groupable: 7, Within: 2, Elsewhere: 3, Zero: 2, Active: 8, ActiveGroupable: 5, Reused: 4, ReusedGroupable: 2, Accessed: 2 * int64(PageSize), Unlisted: 2,
		Huge: 1, ActiveHuge: 1, Large: 2, Own: notebook.TablePart{Entries: 16, Active: 8, Groupable: 7},
	}
	if got != want {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// Pages that k guests have at the same addresses are all groupable, and of those that one of them has moved the others' remain so.
func TestGroupableAcrossManyGuests(t *testing.T) {
	const pages = 100
	for k := 1; k <= 5; k++ {
		var all []mapped
		var guests []Guest
		for g := range k {
			guests = append(guests, Guest{PIDs: []int{100 + g}})
			for i := range pages {
				at := uint64(i+1) * uint64(PageSize)
				if g == 0 {
					at += 1 << 30 // address randomisation
				}
				all = append(all, mapped{g, at, uint64(1000 + i), kpfLRU | flagFile})
			}
		}
		got := snapshotOf(k, all).Tables(guests, nil)
		groupable, elsewhere := int64((k-1)*pages), int64(pages)
		switch k {
		case 1:
			groupable, elsewhere = 0, 0
		case 2:
			groupable, elsewhere = 0, 2*pages
		}
		if got.Entries != int64(k*pages) || got.Groupable != groupable || got.Elsewhere != elsewhere {
			t.Errorf("%d guests: %d entries, %d groupable, %d elsewhere; want %d, %d, %d", k, got.Entries, got.Groupable, got.Elsewhere, k*pages, groupable, elsewhere)
		}
	}
}

// An entry is of code where its process maps a part of the same file as code, of data where it does not, and the process's own where there is no file.
func TestTablesByWhatMapsThem(t *testing.T) {
	s := snapshotOf(2, nil)
	s.Regions = nil
	add := func(process int, perms, device string, inode uint64, frame uint64, flags uint32) {
		s.Pages = append(s.Pages, Page{Frame: frame, region: uint32(len(s.Regions)), Count: 1, flags: flags})
		s.Regions = append(s.Regions, Region{Mapping: proc.Mapping{Start: frame << 12, End: frame<<12 + 4096, Perms: perms, Device: device, Inode: inode}, Process: process})
	}
	const file = kpfLRU | flagFile
	add(0, "r--p", "08:01", 7, 1, file|kpfActive) // its program's constants
	add(0, "r-xp", "08:01", 7, 2, file)
	add(1, "r-xp", "08:01", 7, 2, file)
	add(0, "r--s", "08:02", 7, 3, file|kpfActive) // another device's file of the same number
	add(1, "r--s", "08:01", 8, 4, file)
	add(1, "rw-p", "00:00", 0, 5, kpfAnon|kpfLRU|kpfActive)
	got := s.Tables([]Guest{{PIDs: []int{100}}, {PIDs: []int{101}}}, nil)
	want := [3]notebook.TablePart{{Entries: 3, Active: 1, Groupable: 2}, {Entries: 2, Active: 1}, {Entries: 1, Active: 1}}
	if parts := [3]notebook.TablePart{got.Code, got.Data, got.Own}; parts != want {
		t.Errorf("code, data and own: %+v, want %+v", parts, want)
	}
}
