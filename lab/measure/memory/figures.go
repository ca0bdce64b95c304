//go:build linux

package memory

import (
	"slices"

	"gonum.org/v1/gonum/stat"

	"tare/notebook"
	record "tare/notebook/kinds/memory"
)

// figures are the figures of record.Config.Figures that the weights provide, of the numbers of guests that every trial reaches.
func figures(m record.Config, weights []record.Weight) map[string]float64 {
	f := map[string]float64{}
	set := func(of notebook.Metric, bytes float64) { f[of.Name] = bytes / notebook.MiB }
	weights = slices.DeleteFunc(slices.Clone(weights), func(w record.Weight) bool { return w.Guests > m.Most() })
	for _, ksm := range []bool{false, true} {
		var all []record.Weight
		for _, w := range weights {
			if (w.KSM != nil) == ksm && w.Guests > 0 {
				all = append(all, w)
			}
		}
		if len(all) == 0 {
			continue
		}
		first, last := all[0], all[len(all)-1]
		mean, alone, added, asymptote := record.PSS, record.Alone, record.Added, record.Asymptote
		if ksm {
			mean, alone, added, asymptote = record.Merged, record.AloneKSM, record.AddedKSM, record.LimitKSM
		}
		n := float64(last.Guests)
		set(mean, float64(last.PSS)/n)
		if first.Guests == 1 && len(all) > 1 {
			set(alone, float64(first.PSS))
		}
		if len(all) > 1 {
			before := all[len(all)-2]
			set(added, float64(last.PSS-before.PSS)/float64(last.Guests-before.Guests))
		}
		if len(all) > 2 {
			set(asymptote, limit(all))
		}
		if ksm {
			continue
		}
		if first.Guests == 1 && len(all) > 1 {
			set(record.AloneRSS, float64(first.RSS))
			if m.Frames {
				single(first.Last, set)
			}
		}
		for of, bytes := range map[notebook.Metric]int64{
			record.RSS: last.RSS, record.USS: last.USS, record.Tables: last.Tables,
			record.Anonymous: last.Anonymous, record.File: last.File,
		} {
			set(of, float64(bytes)/n)
		}
		if last.Kernel != nil {
			set(record.Kernel, float64(*last.Kernel)/n)
		}
		if c := last.Charged; c != nil {
			set(record.ChargedAll, float64(c.All)/n)
			set(record.ChargedFiles, float64(c.Files)/n)
		}
		if last.KernelCopy > 0 {
			set(record.Copy, float64(last.KernelCopy)/n)
		}
		if last.Last != nil && last.Last.Duplicates != nil {
			d := last.Last.Duplicates
			if m.Frames {
				set(record.AnonAnon, float64(d.Within.AnonAnon+d.Host.AnonAnon+d.Guests.AnonAnon))
				set(record.FileFile, float64(d.Within.FileFile+d.Host.FileFile+d.Guests.FileFile))
				set(record.AnonFile, float64(d.Within.AnonFile+d.Host.AnonFile+d.Guests.AnonFile))
			}
			set(record.Within, float64(d.Within.Sum()))
			set(record.WithHost, float64(d.Host.Sum()))
			if last.Guests > 1 {
				set(record.WithGuests, float64(d.Guests.Sum()))
			}
		}
	}
	if m.Frames && len(weights) > 0 {
		inside(weights[len(weights)-1].Last, m.Increment(), set)
	}
	return f
}

// limit is what the mean PSS of a guest approaches as their number grows.
func limit(all []record.Weight) float64 {
	var x, y []float64
	for _, w := range all {
		x, y = append(x, 1/float64(w.Guests)), append(y, float64(w.PSS)/float64(w.Guests))
	}
	at, _ := stat.LinearRegression(x, y, nil, false) // where 1/n is 0
	return at
}

// single sets the figures of how a single guest uses its memory, if the guest was asked.
func single(g *notebook.MemoryGuest, set func(m notebook.Metric, bytes float64)) {
	if g == nil || g.RAM == nil || g.RAM.Why != nil {
		return
	}
	set(record.IdleAlone, float64(g.RAM.Unused()))
	if bytes, known := g.RAM.Unmapped(); known {
		set(record.Unmapped, float64(bytes))
	}
}

// inside sets the figures of the memory that only the latest guest has, if that guest was asked: where pages are merged what it adds
// (increment), and else only what it does not use.
func inside(g *notebook.MemoryGuest, increment bool, set func(m notebook.Metric, bytes float64)) {
	if g == nil {
		return
	}
	if increment {
		set(record.Own, float64(g.Own))
	}
	r := g.RAM
	if r == nil || r.Why != nil {
		return
	}
	if !increment {
		set(record.Idle, float64(r.Idle()))
		return
	}
	left, idle, ram := r.Emulator.Alike, r.Idle(), int64(0)
	for _, k := range r.Kinds {
		left, ram = left+k.Alike, ram+k.Own
	}
	for of, bytes := range map[notebook.Metric]int64{
		record.Emulator: r.Emulator.Own, record.RAM: ram,
		record.GuestFile: r.Own(notebook.FramesFile, notebook.FramesShared), record.GuestAnon: r.Own(notebook.FramesAnonymous),
		record.GuestCore: r.Own(notebook.KernelFrames...), record.GuestFree: r.Own(notebook.FramesFree),
		record.Left: left, record.Idle: idle, record.Best: g.Own - left - idle,
	} {
		set(of, float64(bytes))
	}
}
