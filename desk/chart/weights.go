package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/desk/words"
	"tare/stats"
)

// path is a line over the number of guests: of a treatment as its guests are, or with their pages merged.
type path struct {
	Mark
	merged bool
	points []data.Weighing
}

// named says which line it is, in its longest form or its briefest.
func (l *path) named(form int) string {
	if l.merged {
		return l.Name(form) + " + KSM"
	}
	return l.Name(form)
}

// weights is the memory of each guest over the number of guests (Figure 6.2 of "virtualization-overheads"): a line for each treatment, and a
// second one where pages were merged. It is drawn of the last place of the panel, as capacities are.
func weights(p *Panel, stem string) *Figure {
	var lines []path
	emulated := false
	for i, r := range p.Rows {
		if r.Weights == nil || r.Treatment.AA || p.Places[i] != p.Places[len(p.Places)-1] {
			continue
		}
		for j, points := range [][]data.Weighing{r.Weights.Points, r.Weights.Merged} {
			points = slices.DeleteFunc(slices.Clone(points), func(w data.Weighing) bool { return !(w.PSS.Value > 0) || !stats.Finite(w.PSS.Value) })
			if len(points) > 0 {
				lines = append(lines, path{p.Mark(i), j > 0, points})
				emulated = emulated || !r.Representative
			}
		}
	}
	if len(lines) == 0 || !slices.ContainsFunc(lines, func(l path) bool { return len(l.points) > 1 }) {
		return nil // bars say it
	}
	f := &Figure{File: stem + "-guests", Title: p.Beside("Memory by number of guests")}
	f.How = "Each mark is what one guest takes of the host’s memory among so many: PSS of all over their number, the mean over rounds with its 95 % interval. " +
		Provisionings(p.Rows, "Hollow marks", "filled ones") + " Both axes are logarithmic."
	if slices.ContainsFunc(lines, func(l path) bool { return l.merged }) {
		f.How += " Dashed: with their pages merged by the kernel (KSM)."
	}
	if emulated {
		f.Caption = "What is emulated has its emulator’s own memory in it, which is not that of a VM with hardware virtualization."
	}
	var said []string
	for _, l := range lines {
		var at []string
		for _, w := range l.points {
			at = append(at, fmt.Sprintf("%d %s", w.Guests, words.Measured(w.PSS.Value, data.Floor(p.Rows[0].Metric, w.PSS.Low), w.PSS.High, "")))
		}
		said = append(said, l.named(0)+": "+strings.Join(at, ", "))
	}
	f.Alt = "Lines: MiB of each guest by the number of guests. " + strings.Join(said, "; ") + "."
	f.Picture = drawPaths(lines, "PSS of each guest in MiB, over the number of guests")
	return f
}

// drawPaths draws lines over the number of guests, each with its name at its end: engines of one platform have one colour.
func drawPaths(lines []path, axis string) *Picture {
	const left, pitch, mostName = 44, 14, 150
	x0, x1, y0, y1 := math.Inf(1), 0.0, math.Inf(1), 0.0
	form := 0
	for i := range lines {
		for width(lines[i].named(form), smallSize) > mostName && form < len(lines[i].Names)-1 {
			form++
		}
		for _, w := range lines[i].points {
			x0, x1 = min(x0, float64(w.Guests)), max(x1, float64(w.Guests))
			y0, y1 = min(y0, w.PSS.Value), max(y1, w.PSS.Value)
		}
	}
	names := 0.0
	for i := range lines {
		names = max(names, min(width(lines[i].named(form), smallSize), mostName))
	}
	tall := max(200, pitch*float64(len(lines)))
	const top = 30
	base, right := top+tall, pageWidth-2-names-22
	c := &Picture{w: pageWidth, h: base + 20}
	c.text(2, 13, start, smallSize, muted, fit(axis, smallSize, pageWidth-4))
	x0, x1, y0, y1 = x0/1.1, x1*1.1, y0/1.3, y1*1.3
	x := func(v float64) float64 { return left + (right-left)*within(math.Log(v/x0)/math.Log(x1/x0), 0, 1) }
	y := func(v float64) float64 { return base - tall*within(math.Log(v/y0)/math.Log(y1/y0), 0, 1) }
	var numbers []tick
	for _, l := range lines {
		for _, w := range l.points {
			if t := (tick{float64(w.Guests), words.Thousands(w.Guests)}); !slices.Contains(numbers, t) {
				numbers = append(numbers, t)
			}
		}
	}
	slices.SortFunc(numbers, func(a, b tick) int { return cmp.Compare(a.value, b.value) })
	for _, t := range apart(numbers, x, smallSize, left-8, right+10) {
		c.line(grid, 0.7, x(t.value), top, x(t.value), base)
		c.text(x(t.value), base+13, middle, smallSize, muted, t.label)
	}
	for _, t := range decades(y0, y1) {
		c.line(grid, 0.7, left, y(t.value), right, y(t.value))
		c.text(left-5, y(t.value)+3.5, end, smallSize, muted, t.label)
	}
	at := ends(lines, y, pitch, top, base)
	for i := range lines {
		l := &lines[i]
		col, pts := l.style.platform, []point(nil)
		for _, w := range l.points {
			pts = append(pts, point{x(float64(w.Guests)), y(w.PSS.Value)})
		}
		var dash []float64
		if l.merged {
			dash = []float64{5, 3}
		}
		c.lines(col, 1.4, dash, pts...)
		for j, w := range l.points {
			if e := w.PSS; stats.Finite(e.Low) && stats.Finite(e.High) {
				c.whisker(col, 1.2, false, pts[j].x, y(max(e.Low, y0)), y(min(e.High, y1)), base, top)
			}
			c.symbol(l.style, pts[j].x, pts[j].y)
		}
		last := pts[len(pts)-1]
		c.line(muted, 0.6, last.x+6, last.y, right+16, at[i])
		c.text(right+19, at[i]+3.5, start, smallSize, ink, fit(l.named(form), smallSize, names))
	}
	c.line(ink, 1, left, base, right, base)
	return c
}

// ends are where the names of lines stand: each at its line's end, and no two nearer to each other than a pitch.
func ends(lines []path, y func(float64) float64, pitch, top, base float64) []float64 {
	order, at := make([]int, len(lines)), make([]float64, len(lines))
	for i, l := range lines {
		order[i], at[i] = i, y(l.points[len(l.points)-1].PSS.Value)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(at[a], at[b]) })
	least := top
	for _, i := range order { // each below the one above it
		at[i] = max(at[i], least)
		least = at[i] + pitch
	}
	most := base
	for _, i := range slices.Backward(order) { // and all of them above the axis
		at[i] = min(at[i], most)
		most = at[i] - pitch
	}
	return at
}

// added is what one more guest adds, divided into anonymous memory and files (Figures 6.3 and 6.4).
func added(p *Panel, stem string) *Figure {
	l := &list{axis: "MiB that one more guest adds", pitch: 22}
	var files []float64
	var from, to int
	for i, r := range p.Rows {
		if r.Weights == nil || r.Weights.Added == nil || r.Treatment.AA {
			continue
		}
		a := r.Weights.Added
		if !stats.Finite(a.PSS.Value) || !stats.Finite(a.Anonymous.Value) || !stats.Finite(a.File.Value) {
			continue
		}
		m := p.Mark(i)
		m.Dots, m.Value, m.Low, m.High = nil, a.PSS.Value, a.PSS.Low, a.PSS.High
		m.From = max(a.Anonymous.Value, 0)
		m.Words = words.Measured(m.Value, m.Low, m.High, "")
		l.marks, files = append(l.marks, m), append(files, max(a.File.Value, 0))
		from, to = a.From, a.To
	}
	if len(l.marks) == 0 {
		return nil
	}
	f := &Figure{File: stem + "-added", Title: p.Beside("What one more guest adds")}
	f.How = "Each bar is what the PSS of all guests grows by with each one more, pages not merged. Solid: anonymous memory, as the host sees it, " +
		"which a VM’s whole RAM is. Pale: pages of files and shared memory. The thin line is the 95 % interval of the sum."
	f.Caption = fmt.Sprintf("From %d to %d guests.", from, to)
	if slices.ContainsFunc(l.marks, func(m Mark) bool { return m.style.emulated }) {
		f.Caption += " Hatched, closely for anonymous memory: emulated, with its emulator’s own memory in it."
	}
	var said []string
	for i, m := range l.marks {
		said = append(said, fmt.Sprintf("%s, %s: %s, anonymous %s, files %s", m.Group, m.Names[0], m.Words, words.Digits(m.From, 3), words.Digits(files[i], 3)))
		l.high = max(l.high, m.From+files[i])
	}
	f.Alt = "Bars in two parts, in MiB. " + strings.Join(said, "; ") + "."
	l.low, l.high = span(l.marks, 0, l.high, 0.1*l.high)
	if l.high *= 1.04; !(l.high > 0) {
		return nil
	}
	l.low = min(l.low, 0)
	c := l.draw()
	for i, m := range l.marks {
		solid, pale := m.style, m.style
		solid.solid, pale.solid, solid.pattern, pale.pattern = true, false, 0, 0
		top, foot := c.middle[i]-7, c.middle[i]+7
		if m.From > 0 {
			c.box(solid, c.in(0), top, c.in(m.From), foot)
		}
		if files[i] > 0 {
			c.box(pale, c.in(m.From), top, c.in(m.From+files[i]), foot)
		}
		if m.hasInterval() {
			c.whisker(ink, 1.2, true, c.middle[i], c.x(m.Low), c.x(m.High), c.x0, c.x1)
		}
	}
	c.rule(ink, 1, c.in(0))
	f.Picture = c.Picture
	return f
}
