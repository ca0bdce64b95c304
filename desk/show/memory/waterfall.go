package memory

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/desk/chart"
	"tare/desk/words"
	"tare/notebook"
	kind "tare/notebook/kinds/memory"
	"tare/stats"
)

// step is one bar of a waterfall of memory.
type step struct {
	name  string
	e     stats.Estimate
	paper notebook.Metric // its published value stands next to the bar; zero: none does
	total bool            // the bar starts at the axis
	less  bool            // the bar is subtracted
}

// drawAlone draws the memory that only the latest guest has, part by part, and what of it could be saved: a waterfall for each
// guest (Figures 6.3 and 6.4 of "virtualization-overheads").
func drawAlone(p *chart.Panel, stem string) *chart.Figure {
	w := &chart.Fall{}
	var said []string
	emulated, published, merged := false, false, false
	for i, r := range p.Rows {
		weights := weightsOf(r)
		if weights == nil || weights.Alone == nil || r.Treatment.AA || !(weights.Alone.Own.Value > 0) {
			continue
		}
		a := weights.Alone
		m := p.Mark(i)
		heading := m.Name(0)
		if m.Group != "" {
			heading = m.Group + ", " + heading
		}
		emulated, merged = emulated || !r.Representative, merged || a.Merged
		var list []string
		at := 0.0
		for _, s := range steps(a) {
			v := s.e.Value
			if !stats.Finite(v) {
				continue
			}
			b := m.Part(s.name, !s.less)
			b.Group, b.Plain = heading, s.total
			switch {
			case s.total:
				b.Value, b.Low, b.High, at = v, s.e.Low, s.e.High, v
			case s.less:
				b.From, b.Value = at, at-v
				at -= v
			default:
				b.From, b.Value = at, at+v
				at += v
			}
			b.Words = words.Number(v, 1)
			if s.less {
				b.Words = "−" + b.Words
			}
			if paper := weighed(r).Paper(r.Treatment, s.paper); len(paper) > 0 {
				b.Words += fmt.Sprintf(" (%s)", words.Printed(paper[len(paper)-1]))
				published = true
			}
			list = append(list, s.name+" "+b.Words)
			w.Bars = append(w.Bars, b)
		}
		said = append(said, heading+": "+strings.Join(list, ", "))
	}
	if len(w.Bars) == 0 {
		return nil
	}
	f := &chart.Figure{File: stem + "-alone", Title: p.Beside(aloneTitle), How: aloneHow, Caption: aloneCaption(merged, published, emulated), Alt: aloneAlt(said)}
	top := 0.0
	for _, b := range w.Bars {
		top = max(top, b.Value)
	}
	w.Low, w.High = 0, 1.04*top
	f.Picture = w.Draw(aloneAxis)
	return f
}

// steps are the parts of the memory that only the guest has, their sum, what of it could be saved, and what would be left.
func steps(a *Alone) (all []step) {
	if a.RAM == nil {
		for _, k := range a.Kinds {
			if k.Own.Value > 0 {
				all = append(all, step{name: k.Name, e: k.Own})
			}
		}
		return append(all, step{name: allOfIt, e: a.Own, total: true})
	}
	r := a.RAM
	part := func(name string, of notebook.Metric, kinds ...string) {
		if own, _, _ := r.Of(kinds...); own > 0 {
			all = append(all, step{name: name, e: stats.Estimate{Value: own}, paper: of})
		}
	}
	all = append(all, step{name: theEmulator, e: r.Emulator.Own, paper: kind.Emulator})
	part(ramFiles, kind.GuestFile, notebook.FramesFile, notebook.FramesShared)
	part(ramProcesses, kind.GuestAnon, notebook.FramesAnonymous)
	part(ramKernel, notebook.Metric{}, slices.DeleteFunc(slices.Clone(notebook.KernelFrames), func(k string) bool { return k == notebook.FramesReserved })...)
	part(ramReserved, notebook.Metric{}, notebook.FramesReserved)
	part(ramFree, kind.GuestFree, notebook.FramesFree, notebook.FramesAbsent, notebook.FramesGiven)
	left := a.Own
	left.Value, left.Low, left.High = a.Own.Value-r.Left.Value-r.Idle.Value, math.NaN(), math.NaN()
	return append(all,
		step{name: allOfIt, e: a.Own, paper: kind.Own, total: true},
		step{name: duplicated, e: r.Left, paper: kind.Left, less: true},
		step{name: notUsed, e: r.Idle, paper: kind.Idle, less: true},
		step{name: atBest, e: left, paper: kind.Best, total: true},
	)
}
