package chart

import (
	"cmp"
	"math"
	"slices"

	"tare/desk/words"
	"tare/stats"
)

// Paths are lines over two logarithmic axes. The lower axis is of counts; each has its name at its end, as engines of one platform have one
// colour.
type Paths struct {
	Axis  string
	Lines []Path
}

// Path is a line of such.
type Path struct {
	Mark
	After  string // its name's, in any form
	Dash   []float64
	Points []Point
}

// named says which line it is, in its longest form or its briefest.
func (l *Path) named(form int) string { return l.Name(form) + l.After }

// Draw draws them.
func (p *Paths) Draw() *Picture {
	lines := p.Lines
	const left, pitch, mostName = 44, 14, 150
	x0, x1, y0, y1 := math.Inf(1), 0.0, math.Inf(1), 0.0
	form := 0
	for i := range lines {
		for width(lines[i].named(form), smallSize) > mostName && form < len(lines[i].Names)-1 {
			form++
		}
		for _, w := range lines[i].Points {
			x0, x1 = min(x0, w.X), max(x1, w.X)
			y0, y1 = min(y0, w.Y.Value), max(y1, w.Y.Value)
		}
	}
	names, after := 0.0, 0.0
	said := make([]string, len(lines))
	for i := range lines {
		said[i] = lines[i].Name(form)
		names, after = max(names, width(said[i], smallSize)), max(after, width(lines[i].After, smallSize))
	}
	names = min(names, mostName-after)
	said = distinct(said, smallSize, names)
	tall := max(200, pitch*float64(len(lines)))
	const top = 30
	base, right := top+tall, pageWidth-2-names-after-22
	c := &Picture{w: pageWidth, h: base + 20}
	c.text(2, 13, start, smallSize, muted, fit(p.Axis, smallSize, pageWidth-4))
	x0, x1, y0, y1 = x0/1.1, x1*1.1, y0/1.3, y1*1.3
	x := func(v float64) float64 { return left + (right-left)*within(math.Log(v/x0)/math.Log(x1/x0), 0, 1) }
	y := func(v float64) float64 { return base - tall*within(math.Log(v/y0)/math.Log(y1/y0), 0, 1) }
	var numbers []tick
	for _, l := range lines {
		for _, w := range l.Points {
			if t := (tick{w.X, words.Thousands(int(w.X))}); !slices.Contains(numbers, t) {
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
		for _, w := range l.Points {
			pts = append(pts, point{x(w.X), y(w.Y.Value)})
		}
		c.lines(col, 1.4, l.Dash, pts...)
		for j, w := range l.Points {
			if e := w.Y; stats.Finite(e.Low) && stats.Finite(e.High) {
				c.whisker(col, 1.2, false, pts[j].x, y(max(e.Low, y0)), y(min(e.High, y1)), base, top)
			}
			c.symbol(l.style, pts[j].x, pts[j].y)
		}
		last := pts[len(pts)-1]
		c.line(muted, 0.6, last.x+6, last.y, right+16, at[i])
		c.text(right+19, at[i]+3.5, start, smallSize, ink, said[i]+l.After)
	}
	c.line(ink, 1, left, base, right, base)
	return c
}

// ends are where the names of lines stand: each at its line's end, and no two nearer to each other than a pitch.
func ends(lines []Path, y func(float64) float64, pitch, top, base float64) []float64 {
	order, at := make([]int, len(lines)), make([]float64, len(lines))
	for i, l := range lines {
		order[i], at[i] = i, y(l.Points[len(l.Points)-1].Y.Value)
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
