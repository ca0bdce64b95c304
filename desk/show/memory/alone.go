package memory

import (
	"cmp"
	"slices"

	"tare/desk/data"
	"tare/desk/words"
	"tare/notebook"
	"tare/stats"
)

// Alone is the memory that only the latest guest has: what it added (Figures 6.3 and 6.4 of "virtualization-overheads"). Pages are
// merged if the study merges them.
type Alone struct {
	Guests int            `json:"guests"` // including it
	Merged bool           `json:"merged"`
	Own    stats.Estimate `json:"own"`
	Kinds  []Frames       `json:"-"`             // kinds of pages, as the host sees them; only Own and RSS are known
	Why    string         `json:"why,omitempty"` // why a VM could not tell
	*RAM                  // of a VM that was asked; otherwise nil
}

// RAM is a VM's memory by how its guest uses it.
type RAM struct {
	Own      stats.Estimate `json:"-"`        // the part of Alone.Own in the VM's RAM
	Emulator Frames         `json:"emulator"` // the rest of Alone.Own
	Kinds    []Frames       `json:"ram,omitempty"`
	Files    []Frames       `json:"files,omitempty"` // of its page cache, those with the most own pages first
	Others   Frames         `json:"-"`               // files without a line of their own
	Unnamed  Frames         `json:"-"`               // page cache of files that were not found
	Out      string         `json:"-"`               // which files were not looked for
	AtHand   stats.Estimate `json:"-"`               // part of notebook.FramesKernel: free, and kept ready by the guest's CPUs
	Changed  stats.Estimate `json:"-"`
	Left     stats.Estimate `json:"-"`
	Idle     stats.Estimate `json:"-"`
}

// Frames is a part of a guest's memory, and what the host has for it.
type Frames struct {
	Name  string         `json:"name,omitempty"`
	Guest stats.Estimate `json:"guest"`
	RSS   stats.Estimate `json:"rss"`
	Own   stats.Estimate `json:"own"`
	Alike stats.Estimate `json:"duplicates"`
	Idle  stats.Estimate `json:"idle"`
}

// Of sums the parts with these names: their own pages, their size in the guest, and their RSS.
func (r *RAM) Of(names ...string) (own, guest, rss float64) {
	for _, k := range r.Kinds {
		if slices.Contains(names, k.Name) {
			own, guest, rss = own+k.Own.Value, guest+k.Guest.Value, rss+k.RSS.Value
		}
	}
	return own, guest, rss
}

// framesSum is a Frames under construction.
type framesSum struct{ guest, rss, own, alike, idle data.ByRound }

func (f *framesSum) add(b data.Block, x notebook.MemoryFrames) {
	f.guest.Add(b, inMiB(x.Guest))
	f.rss.Add(b, inMiB(x.RSS))
	f.own.Add(b, inMiB(x.Own))
	f.alike.Add(b, inMiB(x.Alike))
	f.idle.Add(b, inMiB(x.Idle))
}

func (f *framesSum) with(o *framesSum) {
	f.guest.With(o.guest)
	f.rss.With(o.rss)
	f.own.With(o.own)
	f.alike.With(o.alike)
	f.idle.With(o.idle)
}

// finish returns the means over the rounds in seen. A part that a round lacks counts as 0 there.
func (f *framesSum) finish(s *data.Summary, name string, seen data.ByRound) Frames {
	whole := func(r data.ByRound) stats.Estimate {
		each := data.ByRound{}
		for b, of := range seen {
			each[b] = &stats.Sum{N: of.N}
			if r[b] != nil {
				each[b].Of = r[b].Of
			}
		}
		return s.OverRounds(each)
	}
	return Frames{name, whole(f.guest), whole(f.rss), whole(f.own), whole(f.alike), whole(f.idle)}
}

// framesBy are parts under construction, by name.
type framesBy struct {
	of    map[string]*framesSum
	order []string
	rest  framesSum
}

func (p *framesBy) add(b data.Block, x notebook.MemoryFrames) {
	name := data.Shortened(x.Name)
	of := p.of[name]
	switch {
	case of != nil:
	case len(p.of) >= maxParts:
		of = &p.rest
	default:
		if p.of == nil {
			p.of = map[string]*framesSum{}
		}
		of = &framesSum{}
		p.of[name], p.order = of, append(p.order, name)
	}
	of.add(b, x)
}

func (p *framesBy) finish(s *data.Summary, seen data.ByRound) (all []Frames) {
	for _, name := range p.order {
		all = append(all, p.of[name].finish(s, name, seen))
	}
	return all
}

// alone is an Alone under construction.
type alone struct {
	seen, asked, own, ram, atHand, changed, left, idle data.ByRound
	merged                                             bool
	why, out                                           *notebook.Message
	pages, kinds, files                                framesBy
	emulator, others, unnamed                          framesSum
}

func (a *alone) add(b data.Block, g *notebook.MemoryGuest, merged bool) {
	a.merged = merged
	a.seen.Add(b, 0)
	a.own.Add(b, inMiB(g.Own))
	for _, k := range g.Kinds {
		a.pages.add(b, notebook.MemoryFrames{Name: k.Name, RSS: k.RSS, Own: k.Own})
	}
	r := g.RAM
	if r == nil {
		return
	}
	if r.Why != nil {
		a.why = data.Bounded(r.Why)
		return
	}
	a.asked.Add(b, 0)
	a.changed.Add(b, inMiB(r.Changed))
	a.atHand.Add(b, inMiB(r.AtHand))
	a.out = cmp.Or(a.out, data.Bounded(r.Out))
	var ram notebook.MemoryFrames
	for _, k := range r.Kinds {
		a.kinds.add(b, k)
		ram.Add(k)
	}
	for _, f := range r.Files {
		a.files.add(b, f)
	}
	a.emulator.add(b, r.Emulator)
	a.others.add(b, r.Others)
	a.unnamed.add(b, r.Unnamed)
	a.ram.Add(b, inMiB(ram.Own))
	a.left.Add(b, inMiB(ram.Alike+r.Emulator.Alike))
	a.idle.Add(b, inMiB(ram.Idle))
}

func (a *alone) finish(s *data.Summary, guests int) *Alone {
	if len(a.seen) == 0 {
		return nil
	}
	out := &Alone{Guests: guests, Merged: a.merged, Own: s.OverRounds(a.own), Kinds: a.pages.finish(s, a.seen), Why: words.Message(a.why)}
	if len(a.asked) == 0 {
		return out
	}
	r := &RAM{
		Own: s.OverRounds(a.ram), Emulator: a.emulator.finish(s, "", a.asked), Kinds: a.kinds.finish(s, a.asked), Unnamed: a.unnamed.finish(s, "", a.asked),
		Out: words.Message(a.out), AtHand: s.OverRounds(a.atHand), Changed: s.OverRounds(a.changed), Left: s.OverRounds(a.left), Idle: s.OverRounds(a.idle),
	}
	r.Files = a.files.finish(s, a.asked)
	slices.SortFunc(r.Files, func(x, y Frames) int {
		return cmp.Or(cmp.Compare(y.Own.Value, x.Own.Value), cmp.Compare(y.Guest.Value, x.Guest.Value), cmp.Compare(x.Name, y.Name))
	})
	others := a.others
	others.with(&a.files.rest)
	for _, f := range r.Files[min(len(r.Files), mostOfGuest):] {
		others.with(a.files.of[f.Name])
	}
	r.Files, r.Others = r.Files[:min(len(r.Files), mostOfGuest)], others.finish(s, "", a.asked)
	out.RAM = r
	return out
}
