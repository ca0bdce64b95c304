package chart

import (
	"fmt"
	"strings"

	"tare/desk/words"
	"tare/stats"
)

// entries are the page-table entries of a panel's guests by whether another guest has the same (Figures 5.5 to 5.8 of "characterization").
func entries(p *Panel, stem string) *Figure {
	l := &list{axis: "% of the page-table entries", pitch: 22, high: 100}
	var active, elsewhere []float64
	for i, r := range p.Rows {
		if r.Treatment.AA {
			continue
		}
		for _, s := range r.PageStates() {
			m := p.Mark(i)
			m.Group = strings.TrimPrefix(m.Group+", "+words.PageStateName(s.State), ", ")
			m.Dots, m.Missing, m.Value, m.Low, m.High = nil, "", s.Groupable.Value, s.Groupable.Low, s.Groupable.High
			m.Words = words.Measured(m.Value, max(m.Low, 0), min(m.High, 100), "%")
			share, of := words.PublishedGroupable(r.Treatment.Workload, s.State)
			reference := Mark{Group: m.Group, Names: []string{"the paper, " + of, "the paper"}, Value: share, Faint: true, IsReference: true}
			reference.Words = words.Digits(reference.Value, 3) + " %"
			if n := len(l.marks); n == 0 || l.marks[n-1].Group != m.Group {
				l.marks, active, elsewhere = append(l.marks, reference), append(active, 0), append(elsewhere, 0)
			}
			l.marks, active, elsewhere = append(l.marks, m), append(active, s.ActiveGroupable.Value), append(elsewhere, s.Elsewhere.Value)
		}
	}
	if len(l.marks) == 0 {
		return nil
	}
	f := &Figure{File: stem + "-entries", Title: p.Beside("Page-table entries that several guests have")}
	f.How = "Each bar is the share of entries that are groupable: another guest has the same frame at the same address. Solid: those that are active, on the " +
		"kernel’s active list, too. What is beyond the bar is exclusive. The thin line is the 95 % interval of the groupable share. The grey line is the paper’s, of the application or, where it prints none, the mean of all."
	var said []string
	for i, m := range l.marks {
		if !m.IsReference {
			said = append(said, fmt.Sprintf("%s, %s: %s groupable, %s %% active and groupable, %s %% the same frame at another address",
				m.Group, m.Names[0], m.Words, words.Digits(active[i], 3), words.Digits(elsewhere[i], 3)))
		}
	}
	f.Alt = "Bars in two parts, in percent. " + strings.Join(said, "; ") + "."
	c := l.draw()
	for i, m := range l.marks {
		top, foot := c.middle[i]-7, c.middle[i]+7
		if m.IsReference {
			c.line(muted, 2, c.in(m.Value), top, c.in(m.Value), foot)
			continue
		}
		solid, pale := m.style, m.style
		solid.solid, pale.solid, solid.pattern, pale.pattern = true, false, 0, 0
		both := min(max(active[i], 0), m.Value)
		if both > 0 {
			c.box(solid, c.in(0), top, c.in(both), foot)
		}
		if m.Value > both {
			c.box(pale, c.in(both), top, c.in(m.Value), foot)
		}
		if m.hasInterval() {
			c.whisker(ink, 1.2, true, c.middle[i], c.x(m.Low), c.x(m.High), c.x0, c.x1)
		}
	}
	c.rule(ink, 1, c.in(0))
	f.Picture = c.Picture
	return f
}

// repeated are the page faults of a panel's guests that repeat another's translation (Figure 5.9).
func repeated(p *Panel, stem string) *Figure {
	l := &list{axis: "% of the page faults", pitch: 22, high: 100}
	for i, r := range p.Rows {
		of := r.Faults()
		if of == nil || r.Treatment.AA || !stats.Finite(of.Repeated.Value) {
			continue
		}
		m := p.Mark(i)
		m.Dots, m.Missing, m.Value, m.Low, m.High = nil, "", of.Repeated.Value, of.Repeated.Low, of.Repeated.High
		m.Words = words.Measured(m.Value, max(m.Low, 0), min(m.High, 100), "%")
		if n := len(l.marks); n == 0 || l.marks[n-1].Group != m.Group {
			l.marks = append(l.marks, Mark{Group: m.Group, Names: []string{"the paper, mean", "the paper"}, Value: words.PublishedRepeated, Faint: true, IsReference: true,
				Words: words.Digits(words.PublishedRepeated, 4) + " %"})
		}
		l.marks = append(l.marks, m)
	}
	if len(l.marks) == 0 {
		return nil
	}
	f := &Figure{File: stem + "-repeated", Title: p.Beside("Page faults that repeat another guest’s")}
	f.How = "Each bar is the share of page faults after which a page table has what another guest’s has had before: the same frame at the same address. The " +
		"thin line is its 95 % interval. The grey line is the mean of the paper’s applications."
	var said []string
	for _, m := range l.marks {
		if !m.IsReference {
			said = append(said, fmt.Sprintf("%s, %s: %s", m.Group, m.Names[0], m.Words))
		}
	}
	f.Alt = "Bars, in percent. " + strings.Join(said, "; ") + "."
	c := l.draw()
	for i, m := range l.marks {
		top, foot := c.middle[i]-7, c.middle[i]+7
		if m.IsReference {
			c.line(muted, 2, c.in(m.Value), top, c.in(m.Value), foot)
			continue
		}
		c.box(m.style, c.in(0), top, c.in(m.Value), foot)
		if m.hasInterval() {
			c.whisker(ink, 1.2, true, c.middle[i], c.x(m.Low), c.x(m.High), c.x0, c.x1)
		}
	}
	c.rule(ink, 1, c.in(0))
	f.Picture = c.Picture
	return f
}
