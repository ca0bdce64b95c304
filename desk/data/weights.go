package data

import (
	"cmp"
	"slices"

	"tare/notebook"
	memorykind "tare/notebook/kinds/memory"
	"tare/stats"
)

// Weights is what guests of a treatment take of the host's memory, by how many there are at once. Sizes are MiB, and means over rounds.
type Weights struct {
	Points []Weighing // as the guests are, from few to many
	Merged []Weighing // the same with their pages merged by KSM
	Added  *Added     // what one more guest adds; nil where they were weighed at one number alone
	Last   *LastGuest // what it consists of; nil where no trial has that
	Alone  *Alone     // what it has that no other process has; nil where the study did not ask
}

// Weighing is so many guests at once. Each size is of one of them: of all, over their number (equation 6.1 of "virtualization-overheads").
type Weighing struct {
	Guests    int
	PSS       stats.Estimate
	Anonymous stats.Estimate // of PSS
	File      stats.Estimate // of PSS
	Tables    stats.Estimate // page tables, which PSS is without
	Kernel    stats.Estimate // memory that the kernel has for it, page tables too; none where the host does not tell
	Engine    stats.Estimate // of PSS: the engine's own process
	Ruler     stats.Estimate // taken off: PSS is without it
	Copy      stats.Estimate // taken off: the emulator's copy of the guest's kernel; none where it was not looked for
	CPUS      stats.Estimate // seconds of CPU time that ksmd took until it merged no more; not a guest's
	Unsettled int            // weighings at which it still merged
}

// Added is what each guest adds that came after the one number and up to the other.
type Added struct {
	From, To             int
	PSS, Anonymous, File stats.Estimate
}

// LastGuest is the guest that came last where there were most of them, and no pages were merged.
type LastGuest struct {
	Guests     int // with it
	PSS        stats.Estimate
	Processes  []MemoryPart // by name, the largest PSS first
	Kinds      []MemoryPart // of pages, the same
	Files      []MemoryPart // the largest
	Duplicates *Duplicates  // nil where contents were not compared
	ByGuest    *Duplicates  // of a VM, by what pages are to its guest; nil where it was not asked
	Merged     *Duplicates  // what is left of them with pages merged; nil where they were not
}

// MemoryPart is a part of a guest's memory.
type MemoryPart struct {
	Name     string
	Others   bool    // all that have no line of their own
	Count    float64 // in a guest, the mean over rounds
	RSS, PSS stats.Estimate
}

// Duplicates is what the guest has in another page, too, by where that is (Table 6.4).
type Duplicates struct{ Within, Host, Guests, Total Alike }

// Alike is duplicates by what the two pages are.
type Alike struct{ AnonAnon, FileFile, AnonFile, Sum stats.Estimate }

// A folder is not trusted to have few of them.
const (
	maxNumbers   = 1000 // of guests at once, in a row
	maxParts     = 1000 // names that are counted apart while a row is made
	mostOfGuest  = 20   // processes that have a line of their own
	mostFilesOf  = 10
	mostWeighing = 2 * maxNumbers // weights of a trial
)

// SameWeighing says whether the guests of two rows were weighed at the same numbers, and their pages merged the same way; or neither's
// were weighed. What one guest takes among two is another quantity than what it takes among many.
func SameWeighing(a, b *Row) bool {
	x, y := a.Memory, b.Memory
	if x == nil || y == nil {
		return x == y
	}
	return x.KSM == y.KSM && x.HugePages == y.HugePages && slices.Equal(x.Guests, y.Guests)
}

// weighs is how a study weighs guests; nil where it does not, or does not say at how many.
func weighs(s notebook.Study) *memorykind.Config {
	m := memorykind.Of(s)
	if m == nil || len(m.Guests) == 0 {
		return nil
	}
	return m
}

// weights are Weights in the making.
type weights struct {
	of            *memorykind.Config
	most          int
	alone         alone
	plain, merged map[int]*weighing // by number of guests
	last          lastGuest
}

type weighing struct {
	pss, anonymous, file, tables, kernel, engine, ruler, copy, cpu ByRound
	unsettled                                                      int
}

type lastGuest struct {
	seen                    ByRound // PSS
	processes, kinds, files parts

	duplicates, byGuest, merged alikes
}

// alikes are Duplicates in the making.
type alikes struct {
	compared                    ByRound
	within, host, guests, total [4]ByRound // as Alike has them
}

// parts are the parts of guests in the making, by name.
type parts struct {
	of     map[string]*memoryPart
	others memoryPart
}

type memoryPart struct{ n, rss, pss ByRound }

func (p *memoryPart) add(b Block, rss, pss int64) {
	p.n.Add(b, 1)
	p.rss.Add(b, mib(rss))
	p.pss.Add(b, mib(pss))
}

func (p *parts) add(b Block, name string, rss, pss int64) {
	name = Shortened(name)
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

func mib(bytes int64) float64 { return float64(bytes) / notebook.MiB }

// trial takes a trial's weights, as far as its study says that they are taken.
func (w *weights) trial(b Block, all []memorykind.Weight) {
	if w.of == nil {
		return
	}
	if w.plain == nil {
		w.plain, w.merged = map[int]*weighing{}, map[int]*weighing{}
		w.most = slices.Max(w.of.Guests)
	}
	numbers := w.of.Guests[:min(len(w.of.Guests), maxNumbers)]
	for i := range all[:min(len(all), mostWeighing)] {
		x := &all[i]
		if x.Guests < 1 || !slices.Contains(numbers, x.Guests) {
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
		at.pss.Add(b, mib(x.PSS)/n)
		at.anonymous.Add(b, mib(x.Anonymous)/n)
		at.file.Add(b, mib(x.File)/n)
		at.tables.Add(b, mib(x.Tables)/n)
		if x.Kernel != nil {
			at.kernel.Add(b, mib(*x.Kernel)/n)
		}
		at.engine.Add(b, mib(x.Engine.PSS)/n)
		at.ruler.Add(b, mib(x.Ruler.PSS)/n)
		if x.KernelCopy > 0 {
			at.copy.Add(b, mib(x.KernelCopy)/n)
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

func (l *lastGuest) add(b Block, g *notebook.MemoryGuest) {
	l.seen.Add(b, mib(g.PSS))
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

func (a *alikes) add(b Block, d *notebook.MemoryDuplicates) {
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
		to *[4]ByRound
	}{{d.Within, &a.within}, {d.Host, &a.host}, {d.Guests, &a.guests}, {total, &a.total}} {
		aa, ff, af := mib(of.AnonAnon), mib(of.FileFile), mib(of.AnonFile)
		for i, v := range []float64{aa, ff, af, aa + ff + af} {
			of.to[i].Add(b, v)
		}
	}
}

// finish is nil where nothing was compared.
func (a *alikes) finish(s *Summary) *Duplicates {
	if len(a.compared) == 0 {
		return nil
	}
	alike := func(of [4]ByRound) Alike {
		return Alike{s.OverRounds(of[0]), s.OverRounds(of[1]), s.OverRounds(of[2]), s.OverRounds(of[3])}
	}
	return &Duplicates{alike(a.within), alike(a.host), alike(a.guests), alike(a.total)}
}

// finish works the weights out; nil where no trial has any.
func (w *weights) finish(s *Summary) *Weights {
	if len(w.plain) == 0 && len(w.merged) == 0 {
		return nil
	}
	out := &Weights{Points: weighings(s, w.plain), Merged: weighings(s, w.merged), Last: w.last.finish(s, w.most), Alone: w.alone.finish(s, w.most)}
	if n := len(out.Points); n > 1 {
		from, to := out.Points[n-2].Guests, out.Points[n-1].Guests
		before, after := w.plain[from], w.plain[to]
		more := func(y, x ByRound) stats.Estimate {
			each := ByRound{}
			for b, v := range x {
				if of := y[b]; of != nil {
					each.Add(b, (v.Mean()*float64(to)-of.Mean()*float64(from))/float64(to-from))
				}
			}
			return s.OverRounds(each)
		}
		out.Added = &Added{from, to, more(before.pss, after.pss), more(before.anonymous, after.anonymous), more(before.file, after.file)}
	}
	return out
}

func weighings(s *Summary, of map[int]*weighing) (all []Weighing) {
	for n, x := range of {
		all = append(all, Weighing{
			Guests: n, PSS: s.OverRounds(x.pss), Anonymous: s.OverRounds(x.anonymous), File: s.OverRounds(x.file), Tables: s.OverRounds(x.tables), Kernel: s.OverRounds(x.kernel),
			Engine: s.OverRounds(x.engine), Ruler: s.OverRounds(x.ruler), Copy: s.OverRounds(x.copy), CPUS: s.OverRounds(x.cpu), Unsettled: x.unsettled,
		})
	}
	slices.SortFunc(all, func(a, b Weighing) int { return cmp.Compare(a.Guests, b.Guests) })
	return all
}

func (l *lastGuest) finish(s *Summary, guests int) *LastGuest {
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

// finish gives the largest parts, and where it is asked for all others as one more. A part that a guest lacks has no size in its round.
func (p *parts) finish(s *Summary, seen ByRound, most int, others bool) (all []MemoryPart) {
	made := func(name string, of *memoryPart) MemoryPart {
		whole := func(r ByRound) stats.Estimate {
			each := ByRound{}
			for b, guests := range seen {
				each[b] = &stats.Sum{N: guests.N}
				if r[b] != nil {
					each[b].Of = r[b].Of
				}
			}
			return s.OverRounds(each)
		}
		return MemoryPart{Name: name, Count: whole(of.n).Value, RSS: whole(of.rss), PSS: whole(of.pss)}
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
	return append(kept[:len(kept):len(kept)], last)
}
