//go:build linux

package memory

import (
	"testing"

	"tare/lab/ruler/frames"
	"tare/notebook"
)

// A guest of 40 frames behind two ranges of addresses with known content: the account is right to the page.
func TestWhatAGuestsMemoryIsToIt(t *testing.T) {
	m := makeSnapshot(4)
	const low, high = 0x10000, 0x90000
	page := uint64(PageSize)
	vm := func(process int) *RAM {
		r := &RAM{PID: 1<<23 + process, Pieces: []frames.Piece{
			{Range: frames.Range{First: 0, N: 32}, Address: low}, {Range: frames.Range{First: 1 << 20, N: 8}, Address: high}}}
		for i := range 40 {
			k := frames.Free
			switch {
			case i < 4:
				k = frames.Reserved
			case i < 12:
				k = frames.File
			case i < 18:
				k = frames.Anonymous
			case i >= 32 && i < 35:
				k = frames.Shared
			}
			c := frames.Code(k)
			if i == 4 || i == 5 || i == 12 || i == 13 {
				c |= frames.Listed
			}
			if i == 5 {
				c |= frames.Referenced
			}
			r.Codes = append(r.Codes, c)
		}
		return r
	}
	// at has the process map a frame of the host where its guest has frame i, or if i is below 0 in the emulator's own memory.
	next := uint64(1000)
	at := func(process, i int, content uint64) *Page {
		next++
		if content == 0 {
			content = 1<<32 + next
		}
		address := low + uint64(i)*page
		switch {
		case i >= 32:
			address = high + uint64(i-32)*page
		case i < 0:
			address = 0x500000 + next*page
		}
		m.Pages = append(m.Pages, Page{Frame: next, hash: content, region: uint32(process), at: uint32(address / page), Count: 1, flags: anonymous})
		return &m.Pages[len(m.Pages)-1]
	}
	for _, i := range []int{0, 1, 4, 5, 6, 7, 12, 13, 18, 19, 32, 33} {
		at(0, i, 0)
	}
	at(0, -1, 0)
	at(0, -1, 0)
	at(0, 8, 71)  // a file to the guest, as another of its pages is
	at(0, 9, 71)  //
	at(0, 14, 72) // anonymous, and anonymous to the other guest
	at(1, 14, 72) //
	at(0, 15, 73) // anonymous, and a file to the other guest
	at(1, 4, 73)  //
	at(0, 10, 74) // a file, and a page of the host's files
	m.add(5000, 1, ofFile, 74, 2)
	merged := at(0, 11, 75) // one page that KSM made of two
	merged.flags, merged.Count = kpfAnon|kpfKSM, 2
	other := *merged
	other.region, other.at = 1, uint32((low+11*page)/page)
	m.Pages = append(m.Pages, other)

	a := guest("a", 0)
	a.RAM = vm(0)
	a.RAM.Files = []frames.Named{
		{Name: "/bin/sh", Frames: []frames.Range{{First: 4, N: 3}, {First: 30, N: 9}, {First: 1<<20 + 1, N: 1}}}, // the second range no longer belongs to a file
		{Name: "/lib/libc", Frames: []frames.Range{{First: 6, N: 4}, {First: 1 << 40, N: 2}}},
		{Name: "/gone", Frames: []frames.Range{{First: 20, N: 2}}},
	}
	b := guest("b", 1)
	b.RAM = vm(1)
	all := m.Account([]Guest{a, b})
	r := all[0].RAM
	if r == nil || all[1].RAM == nil || all[2].RAM != nil {
		t.Fatalf("guests that were asked: %v, %v; and the host %v", all[0].RAM, all[1].RAM, all[2].RAM)
	}
	pages := func(f notebook.MemoryFrames) [6]int64 {
		return [6]int64{f.Guest / PageSize, f.RSS / PageSize, f.PSS / (PageSize / 2), f.Own / PageSize, f.Alike / PageSize, f.Idle / PageSize}
	}
	want := map[string][6]int64{ // of the guest, of the host, their halves of PSS, own, alike, idle
		frames.Reserved.String():  {4, 2, 4, 2, 0, 0},
		frames.File.String():      {8, 8, 15, 7, 2, 1},
		frames.Anonymous.String(): {6, 4, 8, 4, 2, 2},
		frames.Free.String():      {19, 2, 4, 2, 0, 0},
		frames.Shared.String():    {3, 2, 4, 2, 0, 0},
	}
	for _, k := range r.Kinds {
		if pages(k) != want[k.Name] {
			t.Errorf("%s: %v, want %v", k.Name, pages(k), want[k.Name])
		}
		delete(want, k.Name)
	}
	if len(want) > 0 {
		t.Errorf("kinds that are missing: %v", want)
	}
	if got := pages(r.Emulator); got != [6]int64{0, 2, 4, 2, 0, 0} {
		t.Errorf("the emulator: %v", got)
	}
	wantFiles := map[string][6]int64{"/bin/sh": {4, 4, 8, 4, 0, 1}, "/lib/libc": {3, 3, 6, 3, 1, 0}}
	for _, f := range r.Files {
		if pages(f) != wantFiles[f.Name] {
			t.Errorf("%s: %v, want %v", f.Name, pages(f), wantFiles[f.Name])
		}
	}
	if len(r.Files) != 2 || pages(r.Unnamed) != [6]int64{4, 3, 5, 2, 1, 0} {
		t.Errorf("%d files, and of no name: %v", len(r.Files), pages(r.Unnamed))
	}

	// To the host all of a guest's pages are anonymous; to its guest they are not.
	p := PageSize
	if got, want := all[0].Duplicates, (notebook.MemoryDuplicates{Within: notebook.MemoryAlike{AnonAnon: p}, Host: notebook.MemoryAlike{AnonFile: p},
		Guests: notebook.MemoryAlike{AnonAnon: 2 * p}}); *got != want {
		t.Errorf("duplicates as the host sees them: %+v, want %+v", *got, want)
	}
	if got, want := r.Duplicates, (notebook.MemoryDuplicates{Within: notebook.MemoryAlike{FileFile: p}, Host: notebook.MemoryAlike{FileFile: p},
		Guests: notebook.MemoryAlike{AnonAnon: p, AnonFile: p}}); *got != want {
		t.Errorf("duplicates by what pages are to the guest: %+v, want %+v", *got, want)
	}
}

// Whatever a guest says of its frames, the account ends, and counts no page that there is not.
func TestAGuestThatLiesAboutItsFrames(t *testing.T) {
	m := makeSnapshot(1)
	m.Pages = append(m.Pages, Page{Frame: 9, hash: 5, region: 0, at: 3, Count: 1, flags: anonymous})
	a := guest("a", 0)
	a.RAM = &RAM{PID: 1 << 23, Pieces: []frames.Piece{{Range: frames.Range{First: 0, N: 100}}}, Codes: []frames.Code{0, 1, 2},
		Files: []frames.Named{{Name: "x", Frames: []frames.Range{{First: 0, N: frames.Most}}}}}
	r := m.Account([]Guest{a})[0].RAM
	if r.Emulator.RSS != PageSize || r.Bytes != 3*PageSize {
		t.Errorf("%+v", r)
	}
}
