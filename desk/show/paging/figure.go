package paging

import (
	"strings"

	"tare/desk/chart"
	"tare/desk/data"
	"tare/desk/words"
	kind "tare/notebook/kinds/paging"
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

// rates draws how many page faults the guests of each application have (Figure 5.10): for a million instructions, or for a second of CPU time
// where the CPU does not count instructions.
func rates(p *chart.Panel, stem string) *chart.Figure {
	for _, m := range []struct{ name, axis string }{{kind.FaultsPerInstructions.Name, perInstructionsAxis}, {kind.FaultsPerCPU.Name, perCPUAxis}} {
		if f := applications(p, m.axis, func(r *data.Row) stats.Estimate { return r.Known(m.name) }); f != nil {
			f.File, f.Title, f.How = stem+"-rate", p.Beside(rateTitle), rateHow
			return f
		}
	}
	return nil
}

// copies draws the copy-on-write faults of each application's guests (Figure 5.11).
func copies(p *chart.Panel, stem string) *chart.Figure {
	f := applications(p, repeatedAxis, func(r *data.Row) stats.Estimate { return r.Known(kind.FaultShare("copy-on-write").Name) })
	if f != nil {
		f.File, f.Title, f.How = stem+"-copies", p.Beside(copiesTitle), copiesHow
	}
	return f
}

// applications draws one number of each row where the panel shows workloads side by side; nil: it does not, or no row has the number.
func applications(p *chart.Panel, axis string, of func(*data.Row) stats.Estimate) *chart.Figure {
	if !p.OfWorkloads() {
		return nil
	}
	b := &chart.Bars{Axis: axis, Pitch: 22}
	var said []string
	for i, r := range p.Rows {
		e := of(r)
		if r.Treatment.AA || !stats.Finite(e.Value) {
			continue
		}
		m := p.Mark(i)
		m.Dots, m.Missing, m.Value, m.Low, m.High = nil, "", e.Value, max(e.Low, 0), e.High
		m.Words = words.Measured(m.Value, m.Low, m.High, "")
		bar := chart.Bar{Mark: m, Look: chart.Whole, End: m.Value}
		b.Bars, said = append(b.Bars, bar), append(said, repeatedSaid(bar))
	}
	if !b.Reach(0) {
		return nil
	}
	return &chart.Figure{Alt: applicationsAlt(axis, said), Picture: b.Draw()}
}
