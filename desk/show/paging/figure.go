package paging

import (
	"strings"

	"tare/desk/chart"
	"tare/desk/words"
	"tare/stats"
)

// share is a mark of a share, in percent.
func share(m chart.Mark, e stats.Estimate) chart.Mark {
	m.Dots, m.Missing, m.Value, m.Low, m.High = nil, "", e.Value, e.Low, e.High
	m.Words = words.Measured(m.Value, max(m.Low, 0), min(m.High, 100), "%")
	return m
}

// reference is a mark of a published share.
func reference(group string, of string, share float64, digits int) chart.Bar {
	return chart.Bar{Mark: chart.Mark{Group: group, Names: thePaper(of), Value: share, Faint: true, IsReference: true, Words: percent(share, digits)}}
}

// entries draws the page-table entries of a panel's guests by whether another guest has the same entry (Figures 5.5 to 5.8 of
// "characterization").
func entries(p *chart.Panel, stem string) *chart.Figure {
	b := &chart.Bars{Axis: entriesAxis, Pitch: 22, High: 100}
	var said []string
	for i, r := range p.Rows {
		if r.Treatment.AA {
			continue
		}
		for _, s := range pageStates(r) {
			m := share(p.Mark(i), s.Groupable)
			m.Group = strings.TrimPrefix(m.Group+", "+stateName(s.State), ", ")
			if n := len(b.Bars); n == 0 || b.Bars[n-1].Group != m.Group {
				published, of := publishedGroupable(r.Treatment.Workload, s.State)
				b.Bars = append(b.Bars, reference(m.Group, of, published, 3))
			}
			bar := chart.Bar{Mark: m, Solid: s.ActiveGroupable.Value, End: m.Value}
			said = append(said, entriesSaid(bar, s.Elsewhere.Value))
			bar.Solid = min(max(bar.Solid, 0), m.Value)
			b.Bars = append(b.Bars, bar)
		}
	}
	if len(b.Bars) == 0 {
		return nil
	}
	return &chart.Figure{File: stem + "-entries", Title: p.Beside(entriesTitle), How: entriesHow, Alt: entriesAlt(said), Picture: b.Draw()}
}

// repeated draws the page faults of a panel's guests that repeat another guest's translation (Figure 5.9).
func repeated(p *chart.Panel, stem string) *chart.Figure {
	b := &chart.Bars{Axis: repeatedAxis, Pitch: 22, High: 100}
	var said []string
	for i, r := range p.Rows {
		of := faults(r)
		if of == nil || r.Treatment.AA || !stats.Finite(of.Repeated.Value) {
			continue
		}
		m := share(p.Mark(i), of.Repeated)
		if n := len(b.Bars); n == 0 || b.Bars[n-1].Group != m.Group {
			b.Bars = append(b.Bars, reference(m.Group, "mean", publishedRepeated, 4))
		}
		bar := chart.Bar{Mark: m, Look: chart.Whole, End: m.Value}
		b.Bars, said = append(b.Bars, bar), append(said, repeatedSaid(bar))
	}
	if len(b.Bars) == 0 {
		return nil
	}
	return &chart.Figure{File: stem + "-repeated", Title: p.Beside(repeatedTitle), How: repeatedHow, Alt: repeatedAlt(said), Picture: b.Draw()}
}
