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

// capacities is throughput against latency: of each service a line over the rates at which it was asked, of what its objective
// is about, with the objective. It has an axis of its own for each place of the panel, and so is drawn of one.
func capacities(p *Panel, stem string) *Figure {
	var marks []mark
	var curves []*data.Curve
	for i, r := range p.Rows {
		if r.Curve == nil || r.Treatment.AA || p.Places[i] != p.Places[len(p.Places)-1] {
			continue
		}
		m := p.mark(i)
		m.words = words.Answers(r)
		marks, curves = append(marks, m), append(curves, r.Curve)
	}
	if len(marks) == 0 {
		return nil
	}
	of := curves[0].Objective
	f := &Figure{File: stem + "-capacity", Title: p.beside("Throughput against latency")}
	f.How = "Each mark is " + words.Plain(of.Metric) + " at a rate of requests, the mean over rounds with its 95 % interval where two rounds or more have that rate; " +
		"rates between the steps are those that closed in on the capacity. Where requests failed there is no mark. Both axes are logarithmic; the line across is the objective."
	var knees []string
	for i, c := range curves {
		if k := c.Knee; stats.Finite(k.Value) {
			knees = append(knees, fmt.Sprintf("%s %s", marks[i].names[0], words.Measured(k.Value, max(0, k.Low), k.High, "")))
		}
	}
	if knees != nil {
		f.Caption = "The knee, the rate with the most throughput for its mean response time, in requests a second: " + strings.Join(knees, "; ") + "."
	}
	f.Alt = inWords("Lines, each to its capacity at "+words.Plain(of.Objective())+". ", marks)
	f.picture = drawCurves(marks, curves, words.Plain(of.Metric)+" in ms, over requests a second")
	return f
}

// drawCurves draws lines over the rate.
func drawCurves(marks []mark, curves []*data.Curve, axis string) *canvas {
	const left, right, tall = 44, 10, 200
	bound := curves[0].Objective.Bound * 1e3
	x0, x1, y0, y1 := math.Inf(1), 0.0, bound, bound
	for _, c := range curves {
		for _, pt := range c.Points {
			if v := pt.Tail.Value * 1e3; v > 0 && stats.Finite(v) {
				x0, x1 = min(x0, float64(pt.Rate)), max(x1, float64(pt.Rate))
				y0, y1 = min(y0, v), max(y1, v)
			}
		}
	}
	c := &canvas{w: pageWidth}
	c.text(2, 13, start, smallSize, muted, fit(axis, smallSize, pageWidth-4))
	top := c.legend(marks, 20) + 10
	base := top + tall
	c.h = base + 20
	if !(x1 > 0) {
		c.text(pageWidth/2, top+tall/2, middle, smallSize, muted, "no rate was answered")
		return c
	}
	x0, x1, y0, y1 = x0/1.15, x1*1.15, y0/1.3, min(y1*1.3, 100*bound)
	x := func(v float64) float64 {
		return left + (pageWidth-right-left)*within(math.Log(v/x0)/math.Log(x1/x0), 0, 1)
	}
	y := func(v float64) float64 { return base - tall*within(math.Log(v/y0)/math.Log(y1/y0), 0, 1) }
	for _, t := range apart(decades(x0, x1), x, smallSize, left, pageWidth-2) {
		c.line(grid, 0.7, x(t.value), top, x(t.value), base)
		c.text(x(t.value), base+13, middle, smallSize, muted, t.label)
	}
	for _, t := range decades(y0, y1) {
		c.line(grid, 0.7, left, y(t.value), pageWidth-right, y(t.value))
		c.text(left-5, y(t.value)+3.5, end, smallSize, muted, t.label)
	}
	c.lines(ink, 1, []float64{4, 3}, point{left, y(bound)}, point{pageWidth - right, y(bound)})
	for i, of := range curves {
		col, pts := marks[i].style.platform, []point(nil)
		good := slices.DeleteFunc(slices.Clone(of.Points), func(p data.Point) bool { return !(p.Tail.Value > 0) || !stats.Finite(p.Tail.Value) })
		for _, p := range good {
			pts = append(pts, point{x(float64(p.Rate)), y(p.Tail.Value * 1e3)})
		}
		var dash []float64
		if !marks[i].style.solid {
			dash = []float64{5, 3}
		}
		c.lines(col, 1.4, dash, pts...)
		for j, p := range good {
			if e := p.Tail; stats.Finite(e.Low) && stats.Finite(e.High) {
				c.whisker(col, 1.2, false, pts[j].x, y(max(e.Low*1e3, y0)), y(min(e.High*1e3, y1)), base, top)
			}
			c.symbol(marks[i].style, pts[j].x, pts[j].y)
		}
	}
	c.line(ink, 1, left, base, pageWidth-right, base)
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
