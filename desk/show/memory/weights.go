package memory

import (
	"cmp"
	"slices"

	"tare/desk/data"
	"tare/notebook"
	kind "tare/notebook/kinds/memory"
	"tare/stats"
)

// Weights is the memory that guests of a treatment take from the host, by the number of guests. Sizes are MiB and means over
// rounds.
type Weights struct {
	Points []Weighing `json:"points"`                     // by rising number of guests
	Merged []Weighing `json:"with_ksm"`                   // the same with their pages merged by KSM
	Added  *Added     `json:"one_more_adds"`              // what one more guest adds; nil if guests were weighed at only one number
	Last   *LastGuest `json:"last_guest"`                 // the parts of the latest guest; nil if no trial has them
	Alone  *Alone     `json:"last_guest_alone,omitempty"` // what only that guest has; nil if the study did not ask

	most int // the number of guests that every trial reached
}

// at is the index of the one of these with the number of guests that every trial reached; -1: none has it.
func (w *Weights) at(all []Weighing) int {
	return slices.IndexFunc(all, func(p Weighing) bool { return p.Guests == w.most })
}

// Weighing is a number of guests at the same time. Each size is per guest: that of all, over their number (equation 6.1 of
// "virtualization-overheads").
type Weighing struct {
	Guests    int            `json:"guests"`
	PSS       stats.Estimate `json:"pss"`
	Anonymous stats.Estimate `json:"anonymous"`              // part of PSS
	File      stats.Estimate `json:"file"`                   // part of PSS
	Tables    stats.Estimate `json:"page_tables"`            // not part of PSS
	Engine    stats.Estimate `json:"engine"`                 // part of PSS: the engine's own process
	Ruler     stats.Estimate `json:"ruler"`                  // subtracted: PSS does not include it
	Kernel    told           `json:"kernel_memory,omitzero"` // memory that the kernel has for it, including page tables; none if the host does not report it
	Copy      told           `json:"kernel_copy,omitzero"`   // subtracted: the emulator's copy of the guest's kernel; none if it was not looked for
	CPUS      told           `json:"ksmd_cpu_s,omitzero"`    // CPU seconds that ksmd took until it merged no more; not a guest's time
	Unsettled int            `json:"unsettled,omitempty"`    // weighings at which ksmd was still merging
}

// told is an estimate that JSON leaves out if no round has it.
type told struct{ stats.Estimate }

// IsZero reports whether no round has it.
func (t told) IsZero() bool { return t.N == 0 }

// Added is what each guest adds from one number of guests to another.
type Added struct {
	From      int            `json:"from"`
	To        int            `json:"to"`
	PSS       stats.Estimate `json:"pss"`
	Anonymous stats.Estimate `json:"anonymous"`
	File      stats.Estimate `json:"file"`
}

// LastGuest is the latest guest at the greatest number of guests, with no pages merged.
type LastGuest struct {
	Guests     int            `json:"guests"` // including it
	PSS        stats.Estimate `json:"pss"`
	Processes  []MemoryPart   `json:"processes"`  // by name, the largest PSS first
	Kinds      []MemoryPart   `json:"kinds"`      // kinds of pages, the largest PSS first
	Files      []MemoryPart   `json:"files"`      // the largest
	Duplicates *Duplicates    `json:"duplicates"` // nil if contents were not compared
	ByGuest    *Duplicates    `json:"-"`          // for a VM, by how its guest uses the pages; nil if it was not asked
	Merged     *Duplicates    `json:"-"`          // the duplicates left after merging; nil if pages were not merged
}

// MemoryPart is a part of a guest's memory.
type MemoryPart struct {
	Name   string         `json:"name"`
	Others bool           `json:"-"`     // all parts without a line of their own
	Count  stats.Number   `json:"count"` // number in a guest, mean over rounds
	RSS    stats.Estimate `json:"rss"`
	PSS    stats.Estimate `json:"pss"`
}

// Duplicates is the memory of a guest whose content another page has too, by where that page is (Table 6.4).
type Duplicates struct {
	Within Alike `json:"within"`
	Host   Alike `json:"host"`
	Guests Alike `json:"guests"`
	Total  Alike `json:"-"`
}

// Alike is duplicates by the kinds of the two pages.
type Alike struct {
	AnonAnon stats.Estimate `json:"anonymous_anonymous"`
	FileFile stats.Estimate `json:"file_file"`
	AnonFile stats.Estimate `json:"anonymous_file"`
	Sum      stats.Estimate `json:"all"`
}

// Limits, because a folder is not trusted to have few.
const (
	maxNumbers   = 1000 // of guests at the same time, in a row, and as many further ones
	maxParts     = 1000 // names that are counted separately while a row is computed
	mostOfGuest  = 20   // processes that have a line of their own
	mostFilesOf  = 10
	mostWeighing = 2 * maxNumbers // weights of a trial
)

// tally is a Weights under construction.
type tally struct {
	of            *kind.Config
	most          int
	numbers       []int // of guests that may have been weighed
	alone         alone
	plain, merged map[int]*weighing // by number of guests
	last          lastGuest
}

type weighing struct {
	pss, anonymous, file, tables, kernel, engine, ruler, copy, cpu data.ByRound
	unsettled                                                      int
}

type lastGuest struct {
	seen                    data.ByRound // PSS
	processes, kinds, files parts

	duplicates, byGuest, merged alikes
}

// alikes are Duplicates under construction.
type alikes struct {
	compared                    data.ByRound
	within, host, guests, total [4]data.ByRound // in the order of Alike
}

// parts are the parts of guests under construction, by name.
type parts struct {
	of     map[string]*memoryPart
	others memoryPart
}

type memoryPart struct{ n, rss, pss data.ByRound }

func (p *memoryPart) add(b data.Block, rss, pss int64) {
	p.n.Add(b, 1)
	p.rss.Add(b, inMiB(rss))
	p.pss.Add(b, inMiB(pss))
}

func (p *parts) add(b data.Block, name string, rss, pss int64) {
	name = data.Shortened(name)
	of := p.of[name]
	switch {
	case of != nil:
	case len(p.of) >= maxParts:
		of = &p.others
	default:
		if p.of == nil {
			p.of = map[string]*memoryPart{}
		}
		of = &memoryPart{}
		p.of[name] = of
	}
	of.add(b, rss, pss)
}

func inMiB(bytes int64) float64 { return float64(bytes) / notebook.MiB }

// Trial adds the weights of a measured trial, as far as its study says that they are taken.
func (w *tally) Trial(b data.Block, t *notebook.Trial) error {
	seen, err := notebook.SeenOf[kind.Seen](t)
	if t.Measured() && t.Failure == nil {
		w.add(b, seen.Weights)
	}
	return err
}

func (w *tally) add(b data.Block, all []kind.Weight) {
	if w.plain == nil {
		w.plain, w.merged = map[int]*weighing{}, map[int]*weighing{}
		w.most = w.of.Most()
		w.numbers = slices.Concat(w.of.Guests[:min(len(w.of.Guests), maxNumbers)], w.of.Further[:min(len(w.of.Further), maxNumbers)])
	}
	for i := range all[:min(len(all), mostWeighing)] {
		x := &all[i]
		if x.Guests < 1 || !slices.Contains(w.numbers, x.Guests) {
			continue
		}
		in := w.plain
		if x.KSM != nil {
			in = w.merged
		}
		at := in[x.Guests]
		if at == nil {
			at = &weighing{}
			in[x.Guests] = at
		}
		n := float64(x.Guests)
		at.pss.Add(b, inMiB(x.PSS)/n)
		at.anonymous.Add(b, inMiB(x.Anonymous)/n)
		at.file.Add(b, inMiB(x.File)/n)
		at.tables.Add(b, inMiB(x.Tables)/n)
		if x.Kernel != nil {
			at.kernel.Add(b, inMiB(*x.Kernel)/n)
		}
		at.engine.Add(b, inMiB(x.Engine.PSS)/n)
		at.ruler.Add(b, inMiB(x.Ruler.PSS)/n)
		if x.KernelCopy > 0 {
			at.copy.Add(b, inMiB(x.KernelCopy)/n)
		}
		if x.KSM != nil {
			at.cpu.Add(b, x.KSM.CPUS)
			if x.KSM.Unsettled {
				at.unsettled++
			}
		}
		if x.Guests != w.most || x.Last == nil {
			continue
		}
		if x.KSM == nil {
			w.last.add(b, x.Last)
		} else {
			w.last.merged.add(b, x.Last.Duplicates)
		}
		if w.of.Frames && (x.KSM != nil) == (w.of.KSM != "") {
			w.alone.add(b, x.Last, x.KSM != nil)
		}
	}
}

func (l *lastGuest) add(b data.Block, g *notebook.MemoryGuest) {
	l.seen.Add(b, inMiB(g.PSS))
	for _, p := range g.Processes {
		l.processes.add(b, p.Name, p.RSS, p.PSS)
	}
	for _, k := range g.Kinds {
		l.kinds.add(b, k.Name, k.RSS, k.PSS)
	}
	for _, f := range g.Files {
		l.files.add(b, f.Name, f.RSS, f.PSS)
	}
	l.duplicates.add(b, g.Duplicates)
	if g.RAM != nil {
		l.byGuest.add(b, g.RAM.Duplicates)
	}
}

func (a *alikes) add(b data.Block, d *notebook.MemoryDuplicates) {
	if d == nil {
		return
	}
	a.compared.Add(b, 0)
	var total notebook.MemoryAlike
	for _, m := range []notebook.MemoryAlike{d.Within, d.Host, d.Guests} {
		total.AnonAnon, total.FileFile, total.AnonFile = total.AnonAnon+m.AnonAnon, total.FileFile+m.FileFile, total.AnonFile+m.AnonFile
	}
	for _, of := range []struct {
		notebook.MemoryAlike
		to *[4]data.ByRound
	}{{d.Within, &a.within}, {d.Host, &a.host}, {d.Guests, &a.guests}, {total, &a.total}} {
		aa, ff, af := inMiB(of.AnonAnon), inMiB(of.FileFile), inMiB(of.AnonFile)
		for i, v := range []float64{aa, ff, af, aa + ff + af} {
			of.to[i].Add(b, v)
		}
	}
}

// finish returns nil if nothing was compared.
func (a *alikes) finish(s *data.Summary) *Duplicates {
	if len(a.compared) == 0 {
		return nil
	}
	alike := func(of [4]data.ByRound) Alike {
		return Alike{s.OverRounds(of[0]), s.OverRounds(of[1]), s.OverRounds(of[2]), s.OverRounds(of[3])}
	}
	return &Duplicates{alike(a.within), alike(a.host), alike(a.guests), alike(a.total)}
}

// Finish computes the weights; nil if no trial has any.
func (w *tally) Finish(s *data.Summary) (any, []data.Doubt) {
	if len(w.plain) == 0 && len(w.merged) == 0 {
		return nil, nil
	}
	out := &Weights{Points: weighings(s, w.plain), Merged: weighings(s, w.merged), Last: w.last.finish(s, w.most), Alone: w.alone.finish(s, w.most), most: w.most}
	if at := out.at(out.Points); at > 0 {
		from, to := out.Points[at-1].Guests, w.most
		before, after := w.plain[from], w.plain[to]
		more := func(y, x data.ByRound) stats.Estimate {
			each := data.ByRound{}
			for b, v := range x {
				if of := y[b]; of != nil {
					each.Add(b, (v.Mean()*float64(to)-of.Mean()*float64(from))/float64(to-from))
				}
			}
			return s.OverRounds(each)
		}
		out.Added = &Added{from, to, more(before.pss, after.pss), more(before.anonymous, after.anonymous), more(before.file, after.file)}
	}
	return out, nil
}

func weighings(s *data.Summary, of map[int]*weighing) []Weighing {
	all := []Weighing{}
	for n, x := range of {
		all = append(all, Weighing{
			Guests: n, PSS: s.OverRounds(x.pss), Anonymous: s.OverRounds(x.anonymous), File: s.OverRounds(x.file), Tables: s.OverRounds(x.tables), Kernel: told{s.OverRounds(x.kernel)},
			Engine: s.OverRounds(x.engine), Ruler: s.OverRounds(x.ruler), Copy: told{s.OverRounds(x.copy)}, CPUS: told{s.OverRounds(x.cpu)}, Unsettled: x.unsettled,
		})
	}
	slices.SortFunc(all, func(a, b Weighing) int { return cmp.Compare(a.Guests, b.Guests) })
	return all
}

func (l *lastGuest) finish(s *data.Summary, guests int) *LastGuest {
	if len(l.seen) == 0 {
		return nil
	}
	out := &LastGuest{Guests: guests, PSS: s.OverRounds(l.seen)}
	out.Processes = l.processes.finish(s, l.seen, mostOfGuest, true)
	out.Kinds = l.kinds.finish(s, l.seen, mostOfGuest, true)
	out.Files = l.files.finish(s, l.seen, mostFilesOf, false)
	out.Duplicates, out.ByGuest, out.Merged = l.duplicates.finish(s), l.byGuest.finish(s), l.merged.finish(s)
	return out
}

// finish returns the largest parts, and with others all the rest as one more part. A part that a guest lacks counts as 0 in its
// round.
func (p *parts) finish(s *data.Summary, seen data.ByRound, most int, others bool) []MemoryPart {
	all := []MemoryPart{}
	made := func(name string, of *memoryPart) MemoryPart {
		whole := func(r data.ByRound) stats.Estimate {
			each := data.ByRound{}
			for b, guests := range seen {
				each[b] = &stats.Sum{N: guests.N}
				if r[b] != nil {
					each[b].Of = r[b].Of
				}
			}
			return s.OverRounds(each)
		}
		return MemoryPart{Name: name, Count: stats.Number(whole(of.n).Value), RSS: whole(of.rss), PSS: whole(of.pss)}
	}
	for name, of := range p.of {
		if m := made(name, of); m.PSS.Value != 0 || m.RSS.Value != 0 {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b MemoryPart) int {
		return cmp.Or(cmp.Compare(b.PSS.Value, a.PSS.Value), cmp.Compare(a.Name, b.Name))
	})
	if len(all) <= most && len(p.others.n) == 0 {
		return all
	}
	kept := all[:min(len(all), most)]
	if !others {
		return kept
	}
	rest := p.others
	for _, m := range all[len(kept):] {
		of := p.of[m.Name]
		rest.n.With(of.n)
		rest.rss.With(of.rss)
		rest.pss.With(of.pss)
	}
	last := made("", &rest)
	last.Others = true
	last.Name = partName(last)
	return append(kept[:len(kept):len(kept)], last)
}
