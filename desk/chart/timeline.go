package chart

import (
	"fmt"
	"math"
	"strings"

	"tare/desk/words"
	"tare/notebook"
)

// timeline is how a panel's guests start: a bar from each moment to the next, guest by guest (Table 5.1 of "virtualization-overheads").
func timeline(p *Panel, stem string) *Figure { return timelineOf(p, stem+"-timeline", true) }

// emulatedTimeline is that of emulated guests, whose times would make the others' too short to be seen.
func emulatedTimeline(p *Panel, stem string) *Figure {
	return timelineOf(p, stem+"-emulated-timeline", false)
}

func timelineOf(p *Panel, file string, representative bool) *Figure {
	w := &fall{}
	top := 0.0
	for _, r := range p.Rows {
		if r.Representative != representative {
			continue
		}
		for _, ph := range r.Phases() {
			top = math.Max(top, ph.To)
		}
	}
	unit, k := words.Scale(top)
	var said []string
	for i, r := range p.Rows {
		phases := r.Phases()
		if len(phases) == 0 || r.Treatment.AA || r.Representative != representative {
			continue
		}
		m := p.mark(i)
		heading := m.name(0)
		if m.group != "" {
			heading = m.group + ", " + heading
		}
		end := phases[len(phases)-1].To
		var list []string
		for _, ph := range phases {
			b := mark{group: heading, names: []string{ph.Moment}, style: m.style, from: k * ph.From, value: k * ph.To, low: math.NaN(), high: math.NaN()}
			b.style.solid, b.style.pattern = ph.Moment != notebook.MomentHello && ph.Moment != notebook.MomentOrdered, 0
			b.words = fmt.Sprintf("%s %s (%s %%)", words.Digits(k*(ph.To-ph.From), 3), unit, words.Digits(100*(ph.To-ph.From)/end, 2))
			w.bars = append(w.bars, b)
			list = append(list, ph.Moment+" "+b.words)
		}
		said = append(said, heading+": "+strings.Join(list, ", "))
	}
	if len(w.bars) == 0 {
		return nil
	}
	title := "From the request to each moment of a start"
	if !representative {
		title += ", emulated"
	}
	f := &Figure{File: file, Title: p.beside(title), Emulated: !representative}
	f.How = "From the top down, for each guest: the mean time from one moment to the next, and its share of the whole; each bar begins where the one above it ends. Pale: " +
		"what the ruler and the reading back of limits take, which a start without Tare has not."
	if !representative {
		f.Caption = "Hatched: emulated, which says nothing of a VM’s cost."
	}
	f.Alt = "Bars one after the other. " + strings.Join(said, "; ") + "."
	w.low, w.high = 0, 1.02*k*top
	f.picture = w.draw("time since the request, " + unit)
	return f
}
