//go:build linux

package memory

import (
	"encoding/binary"
	"reflect"
	"slices"
	"testing"

	"tare/lab/proc"
	"tare/notebook"
)

const (
	anonymous = kpfAnon
	ofFile    = flagFile | flagInFile
)

// made is a snapshot that was not scanned: process i has pid i+1 and one region of a file f.
type made struct{ *Snapshot }

func makeSnapshot(processes int) made {
	s := &Snapshot{seed: 5}
	for i := range processes {
		s.Processes = append(s.Processes, Process{PID: 1<<23 + i}) // no such pids are
		s.Regions = append(s.Regions, Region{Mapping: proc.Mapping{Inode: 1, Path: "/f"}, Process: i})
	}
	return made{s}
}

// add maps n frames, from first on, in each of these processes; all with this content, or if it is 0 each with another.
func (m made) add(first uint64, n int, flags uint32, content uint64, processes ...int) {
	for _, p := range processes {
		for i := range n {
			hash := content
			if content == 0 {
				hash = 1<<32 + first + uint64(i)
			}
			m.Pages = append(m.Pages, Page{Frame: first + uint64(i), hash: hash, region: uint32(p), Count: uint32(len(processes)), flags: flags})
		}
	}
}

func guest(name string, pids ...int) Guest {
	g := Guest{Name: name, Kind: notebook.MemoryContainer}
	for _, p := range pids {
		g.PIDs = append(g.PIDs, 1<<23+p)
	}
	return g
}

// Table 6.1 of the paper "virtualization-overheads": a process with 1,000 pages of its own, and 100 that a second one maps as well.
func TestTable61(t *testing.T) {
	m := makeSnapshot(2)
	m.add(1, 1000, anonymous, 0, 0)
	m.add(5000, 100, ofFile, 0, 0, 1)
	mb := func(bytes int64) float64 { return float64(bytes) / (1 << 20) }
	w := m.weigh()[0]
	for what, v := range map[string][2]float64{"RSS": {mb(w.RSS), 4.29}, "PSS": {mb(w.PSS), 4.10}, "USS": {mb(w.USS), 3.90}} {
		if v[0]-v[1] > 0.01 || v[1]-v[0] > 0.01 {
			t.Errorf("%s is %.3f MB, the table says %.2f", what, v[0], v[1])
		}
	}
	if w != (notebook.MemoryWeight{RSS: 1100 * PageSize, PSS: 1050 * PageSize, USS: 1000 * PageSize}) {
		t.Errorf("%+v", w)
	}
}

// Pages of the pool of huge pages count by their size: two of 2 MiB in one process, half of one of 1 GiB in the other, and some of a
// process that ended before the kernel told their size.
func TestPagesOfThePoolByTheirSize(t *testing.T) {
	m := makeSnapshot(3)
	m.Regions[0].Pool, m.Regions[1].Pool = 2<<20, 1<<30
	m.add(512, 1024, kpfHuge|kpfCompoundTail, 0, 0)
	m.add(1<<18, 1<<17, kpfHuge|kpfCompoundTail, 0, 1)
	m.add(1<<20, 3, kpfHuge, 0, 2)
	all := m.Account([]Guest{guest("a", 0, 1, 2)})
	want := []notebook.MemoryPart{{Name: "hugetlb", Other: 3 * PageSize}, {Name: "hugetlb, 2 MiB each", Other: 4 << 20}, {Name: "hugetlb, 1 GiB each", Other: 512 << 20}}
	if !reflect.DeepEqual(all[0].Kinds, want) || all[0].RSS != 0 {
		t.Errorf("%+v, RSS %d; want %+v, and none of it in RSS", all[0].Kinds, all[0].RSS, want)
	}
	if got := poolName(64 << 10); got != "hugetlb, 64 KiB each" {
		t.Errorf("%q", got)
	}
}

// The size of a page of the pool is that of the mapping at its address.
func TestPoolSize(t *testing.T) {
	at := func(start, end uint64, size int64) proc.Backing {
		return proc.Backing{Mapping: proc.Mapping{Start: start, End: end}, PageSize: size}
	}
	all := []proc.Backing{at(1<<20, 2<<20, PageSize), at(1<<30, 2<<30, 2<<20), at(4<<30, 6<<30, 1<<30)}
	for address, want := range map[uint64]int64{1 << 20: 0, 1 << 30: 2 << 20, 1<<30 + 512<<20: 2 << 20, 2 << 30: 0, 5 << 30: 1 << 30, 7 << 30: 0} {
		if got := poolSize(all, address); got != want {
			t.Errorf("at %#x: %d, want %d", address, got, want)
		}
	}
	m := makeSnapshot(1) // no such process is
	m.add(512, 1, kpfHuge, 0, 0)
	m.sizePool()
	if got := m.Regions[0].Pool; got != 0 {
		t.Errorf("a process that has ended: %d", got)
	}
}

func TestAccount(t *testing.T) {
	m := makeSnapshot(4)
	m.add(100, 10, anonymous, 0, 0)     // a's own
	m.add(200, 4, anonymous, 0, 0, 1)   // shared by a's two processes
	m.add(300, 6, ofFile, 0, 0, 1, 2)   // shared by a and b
	m.add(400, 3, ofFile, 0, 2)         // b's own, from a file
	m.add(500, 2, ofFile, 0, 2, 3)      // shared by b and the host
	m.add(600, 5, kpfZeroPage, 0, 0)    // not in RSS
	m.add(0, 7, flagSwapped, 0, 1)      // not in memory
	m.add(700, 1, kpfKSM|kpfAnon, 0, 2) // merged by KSM
	m.Pages[len(m.Pages)-1].Count = 3   // other processes, which were not scanned, have it too
	m.add(800, 2, anonymous|flagMapped|kpfCompoundHead, 0, 3)
	all := m.Account([]Guest{guest("a", 0, 1), guest("b", 2)})
	a, b, host := all[0], all[1], all[2]
	pages := func(bytes int64) int64 { return bytes / PageSize }
	for _, c := range []struct {
		what      string
		got, want int64
	}{
		{"RSS of a", pages(a.RSS), 10 + 2*4 + 2*6}, {"PSS of a", pages(a.PSS + PageSize/2), 10 + 4 + 4}, {"USS of a", pages(a.USS), 10}, {"swap of a", pages(a.Swap), 7},
		{"own of a", pages(a.Own), 14}, {"own of b", pages(b.Own), 3}, {"own of the host", pages(host.Own), 2}, {"huge of the host", pages(host.Huge), 2},
		{"processes of a", int64(len(a.Processes)), 2}, {"RSS of its first", pages(a.Processes[0].RSS), 20},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.what, c.got, c.want)
		}
	}
	if want := []notebook.MemoryShare{{With: "b", Bytes: 6 * PageSize}}; !reflect.DeepEqual(a.SharedWith, want) {
		t.Errorf("a shares %+v, want %+v", a.SharedWith, want)
	}
	if want := []notebook.MemoryShare{{With: "a", Bytes: 6 * PageSize}, {With: "host", Bytes: 2 * PageSize}, {With: "processes that were not scanned", Bytes: PageSize}}; !reflect.DeepEqual(b.SharedWith, want) {
		t.Errorf("b shares %+v, want %+v", b.SharedWith, want)
	}
	if want := []notebook.MemoryPart{{Name: "anonymous", RSS: 18 * PageSize, PSS: 14 * PageSize, Own: 14 * PageSize}, {Name: "file", RSS: 12 * PageSize, PSS: 4*PageSize - 1}, {Name: "zero page", Other: 5 * PageSize}, {Name: "swap", Other: 7 * PageSize}}; !reflect.DeepEqual(a.Kinds, want) {
		t.Errorf("kinds of a: %+v, want %+v", a.Kinds, want)
	}
	if want := []notebook.MemoryPart{{Name: "/f", RSS: 30 * PageSize, PSS: 18*PageSize - 1, Copied: 18 * PageSize}}; !reflect.DeepEqual(a.Files, want) {
		t.Errorf("files of a: %+v, want %+v", a.Files, want)
	}
	if want := []notebook.MemoryGiveBack{{By: notebook.MemoryByEnd, Bytes: 3 * PageSize}, {By: notebook.MemoryByPressure, Bytes: 3 * PageSize}}; !reflect.DeepEqual(b.GiveBack, want) {
		t.Errorf("gives b back: %+v, want %+v", b.GiveBack, want)
	}
}

// Each page is a duplicate once: within its guest, else of the host's, else of another guest's (the thesis's rows), and its kind and that
// of what it is alike are the column.
func TestDuplicatesAreCountedOnce(t *testing.T) {
	const a, b, host = 0, 1, 2
	type alike = notebook.MemoryAlike
	for _, c := range []struct {
		what string
		add  func(m made)
		want [2]notebook.MemoryDuplicates // of a and b, in pages
	}{
		{"no two alike", func(m made) { m.add(1, 5, anonymous, 0, a); m.add(10, 5, ofFile, 0, b) }, [2]notebook.MemoryDuplicates{}},
		{"a frame of several is not a duplicate", func(m made) { m.add(1, 1, anonymous, 7, a, b) }, [2]notebook.MemoryDuplicates{}},
		{"within", func(m made) { m.add(1, 5, anonymous, 7, a) }, [2]notebook.MemoryDuplicates{{Within: alike{AnonAnon: 4}}}},
		{"between guests", func(m made) { m.add(1, 1, anonymous, 7, a); m.add(2, 1, anonymous, 7, b) },
			[2]notebook.MemoryDuplicates{{Guests: alike{AnonAnon: 1}}, {Guests: alike{AnonAnon: 1}}}},
		{"the host first", func(m made) {
			m.add(1, 1, anonymous, 7, a)
			m.add(2, 1, anonymous, 7, b)
			m.add(3, 1, anonymous, 7, host)
		}, [2]notebook.MemoryDuplicates{{Host: alike{AnonAnon: 1}}, {Host: alike{AnonAnon: 1}}}},
		{"itself before the host", func(m made) {
			m.add(1, 3, anonymous, 7, a)
			m.add(9, 1, ofFile, 7, host)
		}, [2]notebook.MemoryDuplicates{{Within: alike{AnonAnon: 2}, Host: alike{AnonFile: 1}}}},
		{"a copy of a file", func(m made) { m.add(1, 2, anonymous, 7, a); m.add(8, 1, ofFile, 7, a) },
			[2]notebook.MemoryDuplicates{{Within: alike{AnonAnon: 1, AnonFile: 1}}}},
		{"two copies of a file", func(m made) { m.add(1, 1, ofFile, 7, a); m.add(8, 1, ofFile, 7, b) },
			[2]notebook.MemoryDuplicates{{Guests: alike{FileFile: 1}}, {Guests: alike{FileFile: 1}}}},
		{"one that both map, and another's", func(m made) { m.add(1, 1, ofFile, 7, a, b); m.add(8, 1, anonymous, 7, b) },
			[2]notebook.MemoryDuplicates{{Guests: alike{AnonFile: 1}}, {Within: alike{AnonFile: 1}}}},
	} {
		m := makeSnapshot(3)
		c.add(m)
		all := m.Account([]Guest{guest("a", a), guest("b", b)})
		for i, want := range c.want {
			for _, v := range []*alike{&want.Within, &want.Host, &want.Guests} {
				v.AnonAnon, v.FileFile, v.AnonFile = v.AnonAnon*PageSize, v.FileFile*PageSize, v.AnonFile*PageSize
			}
			if got := all[i].Duplicates; got == nil || *got != want {
				t.Errorf("%s: guest %d has %+v, want %+v", c.what, i, got, want)
			}
		}
	}
	m := makeSnapshot(1)
	m.add(1, 3, anonymous, contentHash(m.seed, make([]byte, PageSize)), 0)
	if got := m.Account([]Guest{guest("a", 0)})[0].Duplicates; got.Zero != 3*PageSize || got.Within.AnonAnon != 2*PageSize {
		t.Errorf("three pages of zeros: %+v", got)
	}
}

// The known pages of real processes are the duplicates that they are.
func TestDuplicatesOfProcesses(t *testing.T) {
	a, b, host := start(t), start(t), start(t)
	path := file(t, 9, 500)
	type stretch struct {
		pid        int
		start, end uint64
	}
	var known []stretch
	has := func(c *child, n int, format string, args ...any) {
		at := c.ask(format, args...)
		known = append(known, stretch{c.pid, at, at + uint64(n)*uint64(PageSize)})
	}
	has(a, 20, "anon 20 500 0")     // alike, as the first page of the file
	has(b, 6, "anon 6 9000 1")      // that
	has(host, 6, "anon 6 9000 1")   // the host has as well
	has(a, 3, "anon 3 9001 1")      // and a three of them
	has(b, 9, "file %s 9", path)    // a file
	has(host, 9, "file %s 9", path) // of both, and so no duplicate
	has(a, 4, "copy %s 4", path)    // copied in part
	s := mustScan(t, Options{Contents: true}, a.pid, b.pid, host.pid)
	s.Pages = slices.DeleteFunc(s.Pages, func(p Page) bool { // what programs have besides, stacks say, may be alike or not
		return !slices.ContainsFunc(known, func(k stretch) bool {
			return s.Processes[s.Region(&p).Process].PID == k.pid && s.Address(&p) >= k.start && s.Address(&p) < k.end
		})
	})
	all := s.Account([]Guest{{Name: "a", PIDs: []int{a.pid}}, {Name: "b", PIDs: []int{b.pid}}})
	type alike = notebook.MemoryAlike
	for i, want := range []notebook.MemoryDuplicates{
		// Of the file's four pages that a copied the first is its own 21st; one of these 21, and the others, are the file's, which the host maps.
		{Within: alike{AnonAnon: 20 * PageSize}, Host: alike{AnonAnon: 3 * PageSize, AnonFile: 4 * PageSize}},
		{Host: alike{AnonAnon: 6 * PageSize}, Guests: alike{AnonFile: 4 * PageSize}}, // the host maps the same pages of the file
	} {
		if got := all[i].Duplicates; *got != want {
			t.Errorf("%s has %+v, want %+v", all[i].Name, *got, want)
		}
	}
	if all[0].Own != 27*PageSize || all[0].RSS != 27*PageSize || all[1].Own != 6*PageSize {
		t.Errorf("a has %d pages of %d of its own, b %d; want 27 of 27, and 6", all[0].Own/PageSize, all[0].RSS/PageSize, all[1].Own/PageSize)
	}
	if want := []notebook.MemoryShare{{With: "host", Bytes: 9 * PageSize}}; !reflect.DeepEqual(all[1].SharedWith, want) {
		t.Errorf("b shares %+v, want %+v", all[1].SharedWith, want)
	}
}

// A scan that reads contents leaves processes as they were: what they share copy-on-write stays shared.
func TestAScanChangesNothing(t *testing.T) {
	c := start(t)
	c.ask("anon 200 1 1")
	c.ask("zero 20")
	other := int(c.ask("fork"))
	before, err := proc.RollupOf(c.pid)
	if err != nil {
		t.Fatal(err)
	}
	s := mustScan(t, Options{Contents: true}, c.pid, other)
	after, err := proc.RollupOf(c.pid)
	if err != nil {
		t.Fatal(err)
	}
	if before.RSS != after.RSS || before.USS != after.USS || s.Changed != 0 || s.Unread != 0 {
		t.Errorf("before %+v, after %+v; %d pages changed and %d were not read", before, after, s.Changed, s.Unread)
	}
}

func TestKindsByFlags(t *testing.T) {
	for flags, want := range map[uint32]Kind{
		anonymous: Anonymous, anonymous | kpfKSM: Merged, anonymous | flagInFile: Anonymous, ofFile: File, flagFile: Kernel, flagFile | kpfSwapBacked: Shared,
		ofFile | kpfSwapBacked: Shared, kpfZeroPage: Zero, kpfZeroPage | flagFile | flagMapped: Zero, kpfHuge | anonymous: Hugetlb, kpfHuge | ofFile: Hugetlb, 0: Device, flagSwapped: Swapped,
	} {
		if got := (&Page{flags: flags}).Kind(); got != want {
			t.Errorf("flags %#x: %v, want %v", flags, got, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	seed := func(entries ...uint64) {
		var b []byte
		for _, e := range entries {
			b = binary.NativeEndian.AppendUint64(b, e)
		}
		f.Add(b, true, false)
	}
	seed(0x8100000000301ee8, 0, 0xa00000000025d066, 0x8000000000003b34) // anonymous, none, a file's, the page of zeros
	seed(0x440000000000009f, 1<<62|5<<5, 1<<62|31)                      // a guard page, one in swap, one that is being moved
	f.Fuzz(func(t *testing.T, entries []byte, inFile, huge bool) {
		pages, moving := decode(nil, entries, Page{region: 3, at: 7}, inFile, huge)
		if len(pages)+moving > len(entries)/8 {
			t.Errorf("%d pages and %d that move in %d entries", len(pages), moving, len(entries)/8)
		}
		for _, p := range pages {
			if k := p.Kind(); p.at < 7 || p.at >= 7+uint32(len(entries)/8) || (k == Swapped) != (p.Frame == 0 && p.flags&flagSwapped != 0) || k >= kinds {
				t.Errorf("%+v is %v", p, k)
			}
		}
	})
}
