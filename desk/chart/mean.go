package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/desk/words"
	"tare/stats"
)

// means is the form that papers use: an upright bar for each treatment, grouped by instance type, with every trial a dot.
func means(p *Panel, stem string) *Figure {
	marks := p.bars(false)
	if len(marks) == 0 || !paperFigure(p.name) && !tell(marks) {
		return nil
	}
	f := &Figure{File: stem + "-mean", Spread: p.name == "", Title: p.title("Mean " + p.metric()), How: words.MeanBars(p.Rows)}
	if slices.ContainsFunc(marks, func(m Mark) bool { return m.style.pattern > 0 }) {
		f.say(words.Stripes(p.named))
	}
	f.say(p.about)
	if slices.ContainsFunc(p.Rows, func(r *data.Row) bool { return !r.Representative }) {
		f.say(words.EmulatedIsElsewhere)
	}
	p.drawBars(f, marks, p.unit())
	return f
}

// seen is the share by which bars have to differ so that a reader sees that they do.
const seen = 0.1

// tell says whether bars from 0 tell anything.
func tell(marks []Mark) bool {
	least, most := math.Inf(1), 0.0
	for _, m := range marks {
		if stats.Finite(m.Value) {
			least, most = min(least, m.Value), max(most, m.Value)
		}
	}
	return most > 0 && most >= (1+seen)*least
}

// emulated has the bars of what ran under emulation, apart from the others.
func emulated(p *Panel, stem string) *Figure {
	marks := p.bars(true)
	if len(marks) == 0 {
		return nil
	}
	f := &Figure{
		File: stem + "-emulated", Title: p.Beside(words.EmulatedTitle), Emulated: true, Spread: true, Folded: words.EmulatedTitle,
		How: words.EmulatedBars, Caption: words.EmulatedCaption,
	}
	p.drawBars(f, marks, p.unit()+" – "+words.NotVMsCost)
	return f
}

// drawBars draws a figure's bars and says what they are.
func (p *Panel) drawBars(f *Figure, marks []Mark, axis string) {
	if slices.ContainsFunc(p.Rows, func(r *data.Row) bool { return r.DotsOf > len(r.Dots) && r.Representative != f.Emulated }) {
		f.say(words.DotsAreSampled)
	}
	f.Alt, f.Picture = InWords("Bars with intervals. ", marks), columns(marks, axis, p.named)
}

// under says on how many lines, by turns, the names of groups stand under their bars. room gives the width of a number of bars. Where the names do not fit whole, short is
// what all of them begin with, and they leave it out.
func under(marks []Mark, room func(bars int) float64) (lines int, short string) {
	lines = 1
	fits := func() bool {
		bars := 0
		for i, m := range marks {
			bars++
			if i+1 < len(marks) && marks[i+1].Group == m.Group {
				continue
			}
			if width(strings.TrimPrefix(m.Group, short+" "), smallSize) > float64(lines)*room(bars) {
				return false
			}
			bars = 0
		}
		return true
	}
	if len(marks) == 0 || fits() {
		return lines, ""
	}
	if word, _, ok := strings.Cut(marks[0].Group, " "); ok && !slices.ContainsFunc(marks, func(m Mark) bool { return !strings.HasPrefix(m.Group, word+" ") }) {
		short = word
	}
	if !fits() {
		lines = 2
	}
	return lines, short
}

// columns draws upright bars by group. Their names stand under them where there is room, else in a legend.
func columns(marks []Mark, axis string, network bool) *Picture {
	const right, gap, tall = 4, 0.7, 190
	_, high := span(marks, 0, 0, 0)
	if high *= 1.05; high <= 0 {
		high = 1
	}
	scale, left := ticks(0, high, 6), 10.0
	for _, t := range scale {
		left = max(left, width(t.label, smallSize)+8)
	}
	n, breaks := float64(len(marks)), 0.0
	for i := 1; i < len(marks); i++ {
		if marks[i].Group != marks[i-1].Group {
			breaks++
		}
	}
	room := pageWidth - left - right
	slot := min(room/(n+gap*breaks), 96) // few bars are not made wider than this; they stand in the middle
	named := slot >= 40 && !network && !slices.ContainsFunc(marks, func(m Mark) bool {
		return width(m.under[0], smallSize) > slot+2 || width(m.under[1], smallSize) > slot+2
	})
	lines, short := under(marks, func(bars int) float64 { return slot * (float64(bars) + gap*0.9) })
	if short != "" {
		axis += ", by " + short
	}
	c := &Picture{w: pageWidth}
	c.text(2, 13, start, smallSize, muted, fit(axis, smallSize, pageWidth-4))
	top := 24.0
	if !named {
		top = c.legend(marks, 20) + 8
	}
	base := top + tall
	c.h = base + 13 + 13*float64(lines)
	if named {
		c.h += 26
	}
	y := func(v float64) float64 { return base - tall*within(v/high, 0, 1.05) }
	for _, t := range scale {
		c.line(grid, 0.7, left, y(t.value), pageWidth-right, y(t.value))
		c.text(left-5, y(t.value)+3.5, end, smallSize, muted, t.label)
	}
	at := left + max(0, room-slot*(n+gap*breaks))/2
	first, groups := at, 0
	for i, m := range marks {
		x0, x1 := at+slot*0.14, at+slot*0.86
		mid := (x0 + x1) / 2
		if m.Missing != "" {
			c.text(mid, base-5, middle, 9, muted, fit(m.Missing, 9, slot))
		} else {
			c.box(m.style, x0, y(m.Value), x1, base)
			c.trials(m, mid, (x1-x0)*0.6, y)
			if m.hasInterval() {
				c.whisker(ink, 1.4, false, mid, y(math.Max(m.Low, 0)), y(m.High), base, top)
			}
		}
		if named {
			c.text(mid, base+14, middle, smallSize, ink, m.under[0])
			c.text(mid, base+26, middle, smallSize, muted, m.under[1])
		}
		at += slot
		if i+1 < len(marks) && marks[i+1].Group == m.Group {
			continue
		}
		foot := c.h - 5 - 13*float64(lines)
		c.line(muted, 0.7, first+slot*0.14, foot, x1, foot)
		center := (first + slot*0.14 + x1) / 2
		name := strings.TrimPrefix(m.Group, short+" ")
		wide := float64(lines)*(at-first+slot*gap*0.9) + float64(lines-1)*slot*gap*0.9
		c.inPage(center, foot+13+13*float64(groups%lines), fit(name, smallSize, min(wide, 0.9*pageWidth)))
		at += gap * slot
		first = at
		groups++
	}
	c.line(ink, 1, left, base, pageWidth-right, base)
	return c
}

// inPage writes a name with its middle at x, or as near to that as the page's edges allow.
func (c *Picture) inPage(x, y float64, name string) {
	half := 0.55 * width(name, smallSize) // another font may be wider
	c.text(max(min(x, pageWidth-2-half), 2+half), y, middle, smallSize, ink, name)
}

// trials draws dots, spread evenly and always the same way over a breadth.
func (c *Picture) trials(m Mark, mid, breadth float64, y func(float64) float64) {
	r := 1.3
	if len(m.Dots) > 40 || breadth < 10 {
		r = 0.9
	}
	var pts []point
	for i, v := range m.Dots {
		pts = append(pts, point{mid + breadth*(spread(i)-0.5), y(v)})
	}
	c.spots(ink, r, pts, m.titles)
}

// legend draws a key for each style below y0, a box, and returns where it ends.
func (c *Picture) legend(marks []Mark, y0 float64) float64 {
	return c.keys(marks, y0, 13, func(i int, x, y float64) { c.box(marks[i].style, x, y-9, x+13, y+1) })
}

// keys is legend with another key for each style, so wide, which is drawn from x on, on the line of text at y.
func (c *Picture) keys(marks []Mark, y0, wide float64, key func(i int, x, y float64)) float64 {
	x, y := 2.0, y0+11
	var seen []string
	for i, m := range marks {
		if slices.Contains(seen, m.Names[0]) {
			continue
		}
		seen = append(seen, m.Names[0])
		name := m.Names[0]
		if width(name, smallSize) > pageWidth/2-wide-11 {
			name = fit(m.Names[len(m.Names)-1], smallSize, pageWidth-wide-11)
		}
		w := wide + 5 + width(name, smallSize) + 12
		if x > 2 && x+w-12 > pageWidth-2 {
			x, y = 2, y+16
		}
		key(i, x, y)
		c.text(x+wide+5, y, start, smallSize, ink, name)
		x += w
	}
	return y + 2
}

// InWords says marks with their values.
func InWords(kind string, marks []Mark) string {
	s := kind
	for i, m := range marks {
		if i > 0 {
			s += "; "
		}
		s += fmt.Sprintf("%s, %s: %s", m.Group, m.Names[0], m.said())
	}
	return s + "."
}
