//go:build linux

package memory

import (
	"cmp"
	"slices"

	"tare/lab/ruler/frames"
	"tare/notebook"
)

// RAM is the memory of a virtual machine in a process of the host, and how its guest uses it (paper "virtualization-overheads",
// section 6.5).
type RAM struct {
	PID    int
	Pieces []frames.Piece // pieces of the guest's frames, in their order
	Codes  []frames.Code  // for each of these frames
	Kept   int64          // free frames that the guest's CPUs keep in reserve: a part of those that are frames.Kernel
	Files  []frames.Named // which frames contain which files; nil: unknown
}

// index is the index in Codes of an address in the process.
func (r *RAM) index(address uint64) (int, bool) {
	before := uint64(0)
	for _, p := range r.Pieces {
		if at := (address - p.Address) / frames.Size; address >= p.Address && at < p.N {
			return int(before + at), true
		}
		before += p.N
	}
	return 0, false
}

// place is the index in Codes of a frame, by its number in the guest.
func (r *RAM) place(frame uint64) (int, bool) {
	before := uint64(0)
	for _, p := range r.Pieces {
		if at := frame - p.First; frame >= p.First && at < p.N {
			return int(before + at), true
		}
		before += p.N
	}
	return 0, false
}

// backed is the host's memory for a frame of a guest, or for several.
type backed struct {
	pages, pss          int64 // pss in 1/4096 bytes
	own, alike, idle, n int64 // pages; n: frames of the guest
	elsewhere           int64 // idle pages with a duplicate outside the guest and none inside it
}

func (b *backed) add(o *backed) {
	b.pages, b.pss, b.own, b.alike, b.idle = b.pages+o.pages, b.pss+o.pss, b.own+o.own, b.alike+o.alike, b.idle+o.idle
	b.elsewhere += o.elsewhere
}

func (b *backed) part(name string) notebook.MemoryFrames {
	return notebook.MemoryFrames{
		Name: name, Guest: b.n * PageSize, RSS: b.pages * PageSize, PSS: b.pss >> 12, Own: b.own * PageSize, Alike: b.alike * PageSize, Idle: b.idle * PageSize, IdleElsewhere: b.elsewhere * PageSize,
	}
}

// inside finds the guest's frame of a page of a process with a guest's memory.
type inside []*RAM // by index of Snapshot.Processes

func (s *Snapshot) inside(guests []Guest) (in inside, any bool) {
	in = make(inside, len(s.Processes))
	for i, p := range s.Processes {
		for _, g := range guests {
			if g.RAM != nil && g.RAM.PID == p.PID && p.Err == nil {
				in[i], any = g.RAM, true
			}
		}
	}
	return in, any
}

// of is the guest's frame of the page; ram is nil if the page is not a guest's.
func (in inside) of(s *Snapshot, p *Page) (ram *RAM, index int) {
	if ram = in[s.Region(p).Process]; ram == nil {
		return nil, 0
	}
	index, ok := ram.index(s.Address(p))
	if !ok || index >= len(ram.Codes) {
		return nil, 0
	}
	return ram, index
}

// filed reports whether the page is a file's: inside the guest, if it is a guest's memory.
func (in inside) filed(s *Snapshot, p *Page) bool {
	if ram, i := in.of(s, p); ram != nil {
		return ram.Codes[i].Kind().Cache()
	}
	return p.filed()
}

// ram says how each guest uses its memory, after duplicates are marked. A page is a guest's own if no process outside maps it.
func (s *Snapshot) ram(in inside, guests []Guest, ownerOf func(*Page) int) []*notebook.MemoryRAM {
	all := make([]*notebook.MemoryRAM, len(guests))
	frame, rest := make([][]backed, len(guests)), make([]backed, len(guests))
	for i, g := range guests {
		if g.RAM != nil {
			frame[i] = make([]backed, len(g.RAM.Codes))
		}
	}
	s.sortByFrame()
	groups(s.Pages, sameFrame, func(g []Page) {
		o, mapped := ownerOf(&g[0]), uint32(0)
		for i := range g {
			if mapped = max(mapped, g[i].Count); ownerOf(&g[i]) != o {
				o = -1
			}
		}
		own := o >= 0 && int(mapped) <= len(g)
		for i := range g {
			p := &g[i]
			of := ownerOf(p)
			if of >= len(guests) || guests[of].RAM == nil || !p.Kind().resident() {
				continue
			}
			b := &rest[of]
			ram, at := in.of(s, p)
			if ram != nil {
				b = &frame[of][at]
			}
			b.pages++
			b.pss += p.share()
			if !own || i > 0 || p.Kind() == Kernel { // count a frame as own only once
				continue
			}
			b.own++
			idle := ram != nil && p.hash != 0 && ram.Codes[at].Idle()
			switch alike := p.flags&flagAlike != 0; {
			case alike && idle && p.flags&flagTwin == 0:
				b.elsewhere++
				fallthrough
			case alike:
				b.alike++
			case idle:
				b.idle++
			}
		}
	})
	for i, g := range guests {
		if g.RAM != nil {
			all[i] = g.RAM.fill(frame[i], &rest[i])
		}
	}
	return all
}

// fill sums up the host's memory for all frames.
func (r *RAM) fill(frame []backed, rest *backed) *notebook.MemoryRAM {
	out := &notebook.MemoryRAM{Bytes: int64(len(r.Codes)) * PageSize, AtHand: r.Kept * PageSize, Emulator: rest.part("emulator")}
	var kinds [frames.Kinds]backed
	for i, c := range r.Codes {
		k := &kinds[c.Kind()]
		k.n++
		k.add(&frame[i])
	}
	for k := range kinds {
		if kinds[k].n > 0 {
			out.Kinds = append(out.Kinds, kinds[k].part(frames.Kind(k).String()))
		}
	}
	if r.Files == nil {
		return out
	}
	named := make([]bool, len(frame)) // a frame belongs to one file, even if several claim it
	for _, f := range r.Files {
		var sum backed
		for _, run := range f.Frames {
			for n := range run.N {
				i, ok := r.place(run.First + n)
				if !ok || i >= len(frame) || named[i] || !r.Codes[i].Kind().Cache() {
					continue // read or gone after the frames were listed
				}
				named[i] = true
				sum.n++
				sum.add(&frame[i])
			}
		}
		if sum.n > 0 {
			out.Files = append(out.Files, sum.part(f.Name))
		}
	}
	slices.SortFunc(out.Files, func(a, b notebook.MemoryFrames) int {
		return cmp.Or(cmp.Compare(b.Own, a.Own), cmp.Compare(b.Guest, a.Guest), cmp.Compare(a.Name, b.Name))
	})
	var nobody backed
	for i, c := range r.Codes {
		if c.Kind().Cache() && !named[i] {
			nobody.n++
			nobody.add(&frame[i])
		}
	}
	if nobody.n > 0 {
		out.Unnamed = nobody.part("")
	}
	return out
}
