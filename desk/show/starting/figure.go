package starting

import (
	"fmt"
	"math"
	"strings"

	"tare/desk/chart"
	"tare/desk/words"
	"tare/notebook"
)

// timeline draws how a panel's guests start: a bar from each moment to the next, guest by guest (Table 5.1 of
// "virtualization-overheads").
func timeline(p *chart.Panel, stem string) *chart.Figure {
	return timelineOf(p, stem+"-timeline", true)
}

// emulatedTimeline draws the same for emulated guests. Their long times would make the bars of the others too short to see.
func emulatedTimeline(p *chart.Panel, stem string) *chart.Figure {
	return timelineOf(p, stem+"-emulated-timeline", false)
}

func timelineOf(p *chart.Panel, file string, representative bool) *chart.Figure {
	w := &chart.Fall{}
	top := 0.0
	for _, r := range p.Rows {
		if r.Representative != representative {
			continue
		}
		for _, ph := range phases(r) {
			top = math.Max(top, ph.To)
		}
	}
	unit, k := words.Scale(top)
	var guests []string
	for i, r := range p.Rows {
		all := phases(r)
		if len(all) == 0 || r.Treatment.AA || r.Representative != representative {
			continue
		}
		m := p.Mark(i)
		heading := m.Name(0)
		if m.Group != "" {
			heading = m.Group + ", " + heading
		}
		end := all[len(all)-1].To
		var list []string
		for _, ph := range all {
			b := m.Part(words.Caption(ph.Moment), ph.Moment != notebook.MomentHello && ph.Moment != notebook.MomentOrdered)
			b.Group, b.From, b.Value = heading, k*ph.From, k*ph.To
			b.Words = fmt.Sprintf("%s %s (%s %%)", words.Digits(k*(ph.To-ph.From), 3), unit, words.Digits(100*(ph.To-ph.From)/end, 2))
			w.Bars = append(w.Bars, b)
			list = append(list, words.Caption(ph.Moment)+" "+b.Words)
		}
		guests = append(guests, heading+": "+strings.Join(list, ", "))
	}
	if len(w.Bars) == 0 {
		return nil
	}
	f := &chart.Figure{File: file, Title: p.Beside(title(representative)), Emulated: !representative, How: how}
	if !representative {
		f.Caption = emulated
	}
	f.Alt = alt(guests)
	w.Low, w.High = 0, 1.02*k*top
	f.Picture = w.Draw(axis(unit))
	return f
}
