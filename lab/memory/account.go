//go:build linux

package memory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"tare/lab/proc"
	"tare/notebook"
)

// Guest is a set of processes with one account.
type Guest struct {
	Name, Kind string // notebook.MemoryContainer, …
	PIDs       []int
	RAM        *RAM // of a virtual machine that was asked about its memory; nil: none
}

// share is what a page adds to PSS, in 1/4096 bytes as the kernel counts (fs/proc/task_mmu.c, PSS_SHIFT).
func (p *Page) share() int64 { return PageSize << 12 / max(1, int64(p.Count)) }

// weight is a footprint during summation: PSS is in 1/4096 bytes.
type weight struct{ notebook.MemoryWeight }

func (w *weight) add(p *Page) {
	switch k := p.Kind(); {
	case k == Swapped:
		w.Swap += PageSize
	case k.resident():
		w.RSS += PageSize
		w.PSS += p.share()
		if p.Count < 2 {
			w.USS += PageSize
		}
	}
}

func (w *weight) bytes() notebook.MemoryWeight {
	b := w.MemoryWeight
	b.PSS >>= 12
	return b
}

// weigh returns the footprint of each process, in order.
func (s *Snapshot) weigh() []notebook.MemoryWeight {
	sums := make([]weight, len(s.Processes))
	for i := range s.Pages {
		p := &s.Pages[i]
		sums[s.Region(p).Process].add(p)
	}
	all := make([]notebook.MemoryWeight, len(sums))
	for i := range sums {
		all[i] = sums[i].bytes()
	}
	return all
}

// fileKey identifies a file as a guest maps it.
type fileKey struct {
	device string
	inode  uint64
	path   string
}

// tally holds the counts of one guest.
type tally struct {
	kinds [kinds]struct{ pages, pss, own int64 }
	files map[fileKey]*notebook.MemoryPart
	size  [Huge + 1]int64
	pool  map[int64]int64 // pages of the pool of huge pages, by Region.Pool
	own   int64
	clean int64   // the part of own in files' pages
	with  []int64 // pages shared with each guest and, last, with processes that were not scanned
	dup   notebook.MemoryDuplicates
	guest notebook.MemoryDuplicates // the same, by the kind that the pages have inside their guests
}

// Account says what each guest uses and shares with the others. Scanned processes that are in no guest belong to the host, which is
// last in the list.
func (s *Snapshot) Account(guests []Guest) []notebook.MemoryGuest {
	host := len(guests)
	owner := make([]int, len(s.Processes))
	all := make([]notebook.MemoryGuest, host+1)
	all[host] = notebook.MemoryGuest{Name: "host", Kind: notebook.MemoryHost}
	byPID := map[int]int{}
	for g, guest := range guests {
		all[g].Name, all[g].Kind = guest.Name, guest.Kind
		for _, pid := range guest.PIDs {
			byPID[pid] = g
		}
	}
	weights := s.weigh()
	for i, p := range s.Processes {
		g, ok := byPID[p.PID]
		if !ok || i == s.cache-1 {
			g = host
		}
		if owner[i] = g; p.Err == nil && i != s.cache-1 {
			all[g].Processes = append(all[g].Processes, notebook.MemoryProcess{PID: p.PID, Name: proc.Name(p.PID), MemoryWeight: weights[i]})
			all[g].Add(weights[i])
		}
	}
	sums := make([]tally, host+1)
	for i := range sums {
		sums[i].files, sums[i].pool, sums[i].with = map[fileKey]*notebook.MemoryPart{}, map[int64]int64{}, make([]int64, host+2)
	}
	ownerOf := func(p *Page) int { return owner[s.Region(p).Process] }
	s.tally(sums, ownerOf)
	in, virtual := s.inside(guests)
	compared := s.duplicates(sums, ownerOf, (*Page).filed, func(t *tally) *notebook.MemoryDuplicates { return &t.dup })
	if virtual {
		s.duplicates(sums, ownerOf, func(p *Page) bool { return in.filed(s, p) }, func(t *tally) *notebook.MemoryDuplicates { return &t.guest })
		for i, r := range s.ram(in, guests, ownerOf) {
			if all[i].RAM = r; r != nil && compared {
				r.Duplicates = &sums[i].guest
			}
		}
	}
	for i := range all {
		sums[i].fill(&all[i], compared, func(g int) string {
			if g > host {
				return "processes that were not scanned"
			}
			return all[g].Name
		})
	}
	return all
}

// tally counts the pages of each owner by kind, file and size, and who shares them.
func (s *Snapshot) tally(sums []tally, ownerOf func(*Page) int) {
	s.sortByFrame()
	var owners []int
	groups(s.Pages, sameFrame, func(g []Page) {
		owners = owners[:0]
		mapped := uint32(0)
		for i := range g {
			p := &g[i]
			if s.ofCache(p) { // nobody maps it, so it is in no account
				continue
			}
			o, kind := ownerOf(p), p.Kind()
			owners, mapped = append(owners, o), max(mapped, p.Count)
			t := &sums[o]
			t.kinds[kind].pages++
			t.kinds[kind].pss += p.share()
			if kind == Hugetlb {
				t.pool[s.Region(p).Pool]++
			}
			if !kind.resident() {
				continue
			}
			t.size[p.Size()]++
			if r := s.Region(p); r.Inode != 0 {
				key := fileKey{r.Device, r.Inode, r.Path}
				f := t.files[key]
				if f == nil {
					f = &notebook.MemoryPart{Name: r.Path}
					t.files[key] = f
				}
				f.RSS += PageSize
				f.PSS += p.share()
				if kind == Anonymous || kind == Merged {
					f.Copied += PageSize
				}
			}
		}
		first := g[0].Kind()
		if len(owners) == 0 || !first.resident() || first == Kernel {
			return
		}
		slices.Sort(owners)
		unseen := int(mapped) > len(owners)
		owners = slices.Compact(owners)
		for _, o := range owners {
			t := &sums[o]
			if unseen {
				t.with[len(t.with)-1]++
			} else if len(owners) == 1 {
				t.own++
				t.kinds[first].own++
				if first == File {
					t.clean++
				}
			}
			for _, other := range owners {
				if other != o {
					t.with[other]++
				}
			}
		}
	})
}

// duplicates counts contents that are in several frames, and marks them. filed says which pages are files'. known reports whether
// any content is known.
func (s *Snapshot) duplicates(sums []tally, ownerOf func(*Page) int, filed func(*Page) bool, to func(*tally) *notebook.MemoryDuplicates) (known bool) {
	s.byContent()
	zero := contentHash(s.seed, make([]byte, PageSize))
	host := len(sums) - 1
	var owners []int
	groups(s.Pages, sameHash, func(class []Page) {
		if class[0].hash == 0 {
			return
		}
		known = true
		if class[0].Frame == class[len(class)-1].Frame && class[0].hash != zero {
			return
		}
		owners = owners[:0]
		for i := range class {
			owners = append(owners, ownerOf(&class[i]))
		}
		slices.Sort(owners)
		owners = slices.Compact(owners)
		for i := range class {
			if len(owners) > 1 || class[i].Frame != class[0].Frame { // one copy stays
				class[i].flags |= flagAlike
			}
		}
		twins(class, owners, ownerOf)
		for _, o := range owners {
			var own, hosts, others [2]int64 // frames that are anonymous, and others
			groups(class, sameFrame, func(frame []Page) {
				kind, mine, theirs, the := 0, false, false, false
				for i := range frame {
					if filed(&frame[i]) { // a merged page may be a file's in one guest, and not in another
						kind = 1
					}
					g := ownerOf(&frame[i])
					mine, the, theirs = mine || g == o, the || g == host, theirs || g != o && g != host
				}
				switch {
				case mine:
					own[kind]++
				case the:
					hosts[kind]++
				case theirs:
					others[kind]++
				}
			})
			d := to(&sums[o])
			within(&d.Within, own)
			if at := hosts; at != [2]int64{} {
				beside(&d.Host, own, at)
			} else if others != [2]int64{} {
				beside(&d.Guests, own, others)
			}
			if class[0].hash == zero {
				d.Zero += (own[0] + own[1]) * PageSize
			}
		}
	})
	return known
}

// twins marks each frame whose owner has another frame with the same content. owners is sorted.
func twins(class []Page, owners []int, ownerOf func(*Page) int) {
	type had struct {
		frame   uint64
		another bool
	}
	has := make([]had, len(owners))
	of := func(p *Page) *had {
		i, _ := slices.BinarySearch(owners, ownerOf(p))
		return &has[i]
	}
	for i := range class {
		p := &class[i]
		if h := of(p); h.frame == 0 {
			h.frame = p.Frame
		} else if h.frame != p.Frame {
			h.another = true
		}
	}
	for i := range class {
		if of(&class[i]).another {
			class[i].flags |= flagTwin
		}
	}
}

// within counts the surplus frames of one content. Anonymous frames and files' frames share one copy.
func within(a *notebook.MemoryAlike, own [2]int64) {
	a.AnonAnon += max(0, own[0]-1) * PageSize
	a.FileFile += max(0, own[1]-1) * PageSize
	if own[0] > 0 && own[1] > 0 {
		a.AnonFile += PageSize
	}
}

// beside counts the last frame of a content that others also have. A file's frame is the one that stays.
func beside(a *notebook.MemoryAlike, own, theirs [2]int64) {
	switch {
	case own[1] > 0 && theirs[1] > 0:
		a.FileFile += PageSize
	case own[1] == 0 && theirs[0] > 0:
		a.AnonAnon += PageSize
	default:
		a.AnonFile += PageSize
	}
}

// fill writes the counts into the account.
func (t *tally) fill(g *notebook.MemoryGuest, compared bool, name func(int) string) {
	g.Own, g.Huge, g.Large = t.own*PageSize, t.size[Huge]*PageSize, t.size[Large]*PageSize
	for k, c := range t.kinds {
		if Kind(k) == Hugetlb {
			for _, size := range slices.Sorted(maps.Keys(t.pool)) {
				g.Kinds = append(g.Kinds, notebook.MemoryPart{Name: poolName(size), Other: t.pool[size] * PageSize})
			}
			continue
		}
		part := notebook.MemoryPart{Name: Kind(k).String(), RSS: c.pages * PageSize, PSS: c.pss >> 12, Own: c.own * PageSize}
		if !Kind(k).resident() {
			part = notebook.MemoryPart{Name: part.Name, Other: part.RSS}
		}
		if c.pages > 0 {
			g.Kinds = append(g.Kinds, part)
		}
	}
	for _, f := range t.files {
		f.PSS >>= 12
		g.Files = append(g.Files, *f)
	}
	slices.SortFunc(g.Files, func(a, b notebook.MemoryPart) int {
		return cmp.Or(cmp.Compare(b.PSS, a.PSS), cmp.Compare(b.RSS, a.RSS), cmp.Compare(a.Name, b.Name))
	})
	for other, pages := range t.with {
		if pages > 0 {
			g.SharedWith = append(g.SharedWith, notebook.MemoryShare{With: name(other), Bytes: pages * PageSize})
		}
	}
	slices.SortStableFunc(g.SharedWith, func(a, b notebook.MemoryShare) int { return cmp.Compare(b.Bytes, a.Bytes) })
	d := t.dup
	for _, b := range []notebook.MemoryGiveBack{
		{By: notebook.MemoryByEnd, Bytes: g.Own},
		{By: notebook.MemoryByPressure, Bytes: t.clean * PageSize},
		{By: notebook.MemoryByKSM, Bytes: d.Within.AnonAnon + d.Host.AnonAnon + d.Guests.AnonAnon},
		{By: notebook.MemoryByOneFile, Bytes: d.Within.FileFile + d.Host.FileFile + d.Guests.FileFile},
		{By: notebook.MemoryByMapping, Bytes: d.Within.AnonFile + d.Host.AnonFile + d.Guests.AnonFile},
	} {
		if b.Bytes > 0 {
			g.GiveBack = append(g.GiveBack, b)
		}
	}
	if compared {
		g.Duplicates = &d
	}
}

// Missing says why an account lacks a process.
func Missing(pid int, err error) string {
	return fmt.Sprintf("Process %d is not in the account: %v.", pid, err)
}

// Rollups is the account of guests where the kernel hides frames: the kernel's own sums.
func Rollups(guests []Guest) (all []notebook.MemoryGuest, missing []string) {
	for _, guest := range guests {
		g := notebook.MemoryGuest{Name: guest.Name, Kind: guest.Kind}
		for _, pid := range guest.PIDs {
			r, err := proc.RollupOf(pid)
			if err != nil {
				missing = append(missing, Missing(pid, err))
				continue
			}
			w := notebook.MemoryWeight{RSS: r.RSS, PSS: r.PSS, USS: r.USS, Swap: r.Swap}
			g.Processes = append(g.Processes, notebook.MemoryProcess{PID: pid, Name: proc.Name(pid), MemoryWeight: w})
			g.Add(w)
		}
		all = append(all, g)
	}
	return all, missing
}
