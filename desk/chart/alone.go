package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/desk/words"
	"tare/notebook"
	memorykind "tare/notebook/kinds/memory"
	"tare/stats"
)

// step is one bar of a waterfall of memory: what it stands for, and what the paper has of it.
type step struct {
	name  string
	e     stats.Estimate
	paper notebook.Metric // whose published value stands beside it; zero: none does
	total bool            // it stands on the axis
	less  bool            // it is taken off
}

// alone is what the guest that came last alone has, part by part, and what of it could be saved: a waterfall for each guest (Figures 6.3 and 6.4 of
// "virtualization-overheads").
func alone(p *Panel, stem string) *Figure {
	w := &Fall{}
	var said []string
	emulated, published, merged := false, false, false
	for i, r := range p.Rows {
		if r.Weights == nil || r.Weights.Alone == nil || r.Treatment.AA || !(r.Weights.Alone.Own.Value > 0) {
			continue
		}
		a := r.Weights.Alone
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
			b := Mark{Group: heading, Names: []string{s.name}, style: m.style, Plain: s.total, Low: math.NaN(), High: math.NaN()}
			b.style.solid, b.style.pattern = !s.less, 0
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
			if paper := r.Memory.Paper(r.Treatment, s.paper); len(paper) > 0 {
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
	f := &Figure{File: stem + "-alone", Title: p.Beside("What the last guest alone has, and what of it could be saved")}
	f.How = "From the top down, for each guest: pages that no other process has, part by part, in MiB; each begins where the one above it ends. " +
		"Pale, to the left: what could be saved of them. A VM’s RAM is by what it is to its guest."
	if merged {
		f.Caption = "With pages merged by the kernel (KSM)."
	}
	if published {
		f.Caption += " In parentheses: what the paper has of its VM. Its files include what the guest’s kernel has for itself."
	}
	if emulated {
		f.Caption += " Hatched: emulated, so the emulator’s part is not that of a VM with hardware virtualization; the guest’s RAM is."
	}
	f.Alt = "Waterfalls, in MiB. " + strings.Join(said, "; ") + "."
	top := 0.0
	for _, b := range w.Bars {
		top = max(top, b.Value)
	}
	w.Low, w.High = 0, 1.04*top
	f.Picture = w.Draw("MiB of its own")
	return f
}

// steps are the parts of what a guest alone has, their sum, what of it could be saved, and what would be left.
func steps(a *data.Alone) (all []step) {
	if a.RAM == nil {
		for _, k := range a.Kinds {
			if k.Own.Value > 0 {
				all = append(all, step{name: k.Name, e: k.Own})
			}
		}
		return append(all, step{name: "all of it", e: a.Own, total: true})
	}
	r := a.RAM
	part := func(name string, of notebook.Metric, kinds ...string) {
		if own, _, _ := r.Of(kinds...); own > 0 {
			all = append(all, step{name: name, e: stats.Estimate{Value: own}, paper: of})
		}
	}
	all = append(all, step{name: "the emulator", e: r.Emulator.Own, paper: memorykind.Emulator})
	part("RAM: the guest’s files", memorykind.GuestFile, notebook.FramesFile, notebook.FramesShared)
	part("RAM: its processes", memorykind.GuestAnon, notebook.FramesAnonymous)
	part("RAM: its kernel", notebook.Metric{}, slices.DeleteFunc(slices.Clone(notebook.KernelFrames), func(k string) bool { return k == notebook.FramesReserved })...)
	part("RAM: reserved at boot", notebook.Metric{}, notebook.FramesReserved)
	part("RAM: nobody’s there", memorykind.GuestFree, notebook.FramesFree, notebook.FramesAbsent, notebook.FramesGiven)
	left := a.Own
	left.Value, left.Low, left.High = a.Own.Value-r.Left.Value-r.Idle.Value, math.NaN(), math.NaN()
	return append(all,
		step{name: "all of it", e: a.Own, paper: memorykind.Own, total: true},
		step{name: "duplicates", e: r.Left, paper: memorykind.Left, less: true},
		step{name: "not used of late", e: r.Idle, paper: memorykind.Idle, less: true},
		step{name: "at best", e: left, paper: memorykind.Best, total: true},
	)
}
