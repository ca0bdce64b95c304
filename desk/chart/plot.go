package chart

import (
	"math"
	"strings"

	"tare/desk/words"
	"tare/stats"
)

// Plot is lines over two logarithmic axes.
type Plot struct {
	Axis       string // what the values are, over what
	Left, Tall float64
	Legend     []Mark
	Lines      []Line
	Crosses    []Point // published values
	Across     float64 // a dashed line at this value; 0: none
	Most       float64 // no value above it is shown; 0: all are
	Powers     bool    // of a long axis of values only the powers of ten are named
	Nothing    string  // the text where there is no line
}

// Line is a line of a plot.
type Line struct {
	Of      int     // in the legend: it has that mark's colour
	Width   float64 // 0: its points are not joined
	Dash    []float64
	Symbols bool // its points are marked, with their intervals
	Points  []Point
}

// Point is a value at a place of the other axis.
type Point struct {
	X float64
	Y stats.Estimate
}

func (p Point) seen() bool { return p.X > 0 && p.Y.Value > 0 && stats.Finite(p.Y.Value) }

// span is the range of both axes.
func (p *Plot) span() (x0, x1, y0, y1 float64) {
	x0, x1, y0, y1 = math.Inf(1), 0.0, math.Inf(1), 0.0
	if p.Across > 0 {
		y0, y1 = p.Across, p.Across
	}
	reach := func(points []Point) {
		for _, at := range points {
			if at.seen() {
				x0, x1, y0, y1 = min(x0, at.X), max(x1, at.X), min(y0, at.Y.Value), max(y1, at.Y.Value)
			}
		}
	}
	for _, l := range p.Lines {
		reach(l.Points)
	}
	reach(p.Crosses)
	return x0, x1, y0, y1
}

// Draw draws it.
func (p *Plot) Draw() *Picture {
	const right = 10
	c := &Picture{w: pageWidth}
	c.text(2, 13, start, smallSize, muted, fit(p.Axis, smallSize, pageWidth-4))
	top := c.legend(p.Legend, 20) + 10
	base := top + p.Tall
	c.h = base + 20
	x0, x1, y0, y1 := p.span()
	if !(x1 > 0) {
		c.text(pageWidth/2, top+p.Tall/2, middle, smallSize, muted, p.Nothing)
		return c
	}
	x0, x1, y0, y1 = x0/1.15, x1*1.15, y0/1.3, y1*1.3
	if p.Most > 0 {
		y1 = min(y1, p.Most)
	}
	x := func(v float64) float64 {
		return p.Left + (pageWidth-right-p.Left)*within(math.Log(v/x0)/math.Log(x1/x0), 0, 1)
	}
	y := func(v float64) float64 { return base - p.Tall*within(math.Log(v/y0)/math.Log(y1/y0), 0, 1) }
	for _, t := range apart(decades(x0, x1), x, smallSize, p.Left, pageWidth-2) {
		c.line(grid, 0.7, x(t.value), top, x(t.value), base)
		c.text(x(t.value), base+13, middle, smallSize, muted, t.label)
	}
	for _, t := range decades(y0, y1) {
		if p.Powers && y1 > 100*y0 && !power(t.label) {
			continue
		}
		c.line(grid, 0.7, p.Left, y(t.value), pageWidth-right, y(t.value))
		c.text(p.Left-5, y(t.value)+3.5, end, smallSize, muted, t.label)
	}
	if p.Across > 0 {
		c.lines(ink, 1, []float64{4, 3}, point{p.Left, y(p.Across)}, point{pageWidth - right, y(p.Across)})
	}
	for _, at := range p.Crosses {
		px, py := x(at.X), y(at.Y.Value)
		c.line(ink, 1.2, px-4, py-4, px+4, py+4)
		c.line(ink, 1.2, px-4, py+4, px+4, py-4)
	}
	for _, l := range p.Lines {
		look := p.Legend[l.Of].style
		var pts []point
		for _, at := range l.Points {
			if at.seen() {
				pts = append(pts, point{x(at.X), y(at.Y.Value)})
			}
		}
		if l.Width > 0 && len(pts) > 0 {
			c.lines(look.platform, l.Width, l.Dash, pts...)
		}
		for _, at := range l.Points {
			if !l.Symbols || !at.seen() {
				continue
			}
			if e := at.Y; stats.Finite(e.Low) && stats.Finite(e.High) {
				c.whisker(look.platform, 1.2, false, x(at.X), y(max(e.Low, y0)), y(min(e.High, y1)), base, top)
			}
			c.symbol(look, x(at.X), y(at.Y.Value))
		}
	}
	c.line(ink, 1, p.Left, base, pageWidth-right, base)
	return c
}

// decades are the ticks of a logarithmic axis: 1, 2 and 5 times powers of ten, or where it is too short for these the round values
// that there are.
func decades(low, high float64) (list []tick) {
	if high < 4*low {
		return ticks(low, high, 6)
	}
	for e := math.Floor(math.Log10(low)); e <= math.Log10(high); e++ {
		for _, k := range []float64{1, 2, 5} {
			if v := k * math.Pow(10, e); v >= low && v <= high {
				list = append(list, tick{v, words.Number(v, max(0, int(-e)))})
			}
		}
	}
	return list
}

// power says whether a tick's label is that of a power of ten.
func power(label string) bool {
	lead := label[strings.LastIndexAny(label, "0.")+1:]
	return lead == "" || strings.HasPrefix(lead, "1")
}
