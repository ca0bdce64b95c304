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
	w := &Fall{}
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
		m := p.Mark(i)
		heading := m.Name(0)
		if m.Group != "" {
			heading = m.Group + ", " + heading
		}
		end := phases[len(phases)-1].To
		var list []string
		for _, ph := range phases {
			b := Mark{Group: heading, Names: []string{ph.Moment}, style: m.style, From: k * ph.From, Value: k * ph.To, Low: math.NaN(), High: math.NaN()}
			b.style.solid, b.style.pattern = ph.Moment != notebook.MomentHello && ph.Moment != notebook.MomentOrdered, 0
			b.Words = fmt.Sprintf("%s %s (%s %%)", words.Digits(k*(ph.To-ph.From), 3), unit, words.Digits(100*(ph.To-ph.From)/end, 2))
			w.Bars = append(w.Bars, b)
			list = append(list, ph.Moment+" "+b.Words)
		}
		said = append(said, heading+": "+strings.Join(list, ", "))
	}
	if len(w.Bars) == 0 {
		return nil
	}
	title := "From the request to each moment of a start"
	if !representative {
		title += ", emulated"
	}
	f := &Figure{File: file, Title: p.Beside(title), Emulated: !representative}
	f.How = "From the top down, for each guest: the mean time from one moment to the next, and its share of the whole; each bar begins where the one above it ends. Pale: " +
		"what the ruler and the reading back of limits take, which a start without Tare has not."
	if !representative {
		f.Caption = "Hatched: emulated, which says nothing of a VM’s cost."
	}
	f.Alt = "Bars one after the other. " + strings.Join(said, "; ") + "."
	w.Low, w.High = 0, 1.02*k*top
	f.Picture = w.Draw("time since the request, " + unit)
	return f
}
