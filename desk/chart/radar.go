package chart

import (
	"fmt"
	"math"
	"strings"

	"tare/desk/data"
	"tare/desk/words"
	"tare/stats"
)

// radar is a radar chart: each metric has an axis of its own from the middle outwards, on which the best treatment is at 1 (paper
// "cloud-benchmarking", Figures 5 and 8). What was emulated is not in it.
func radar(v *data.Several, stem string) *Figure {
	if !v.Radar {
		return nil
	}
	var lines []Mark
	var shares [][]float64
	place := newStyles(v.Rows, true)
	for i, r := range v.Rows {
		if !r.Representative {
			continue
		}
		own, some := make([]float64, len(v.On)), false
		for j := range v.On {
			own[j] = share(&v.On[j], i)
			some = some || stats.Finite(own[j])
		}
		if some {
			lines = append(lines, Mark{Names: []string{words.Environment(r.Treatment, true), words.Short(r.Treatment, true)}, style: place.of(r.Treatment, true)})
			shares = append(shares, own)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	f := &Figure{File: stem, Title: words.Plain(v.Name) + ": " + words.Plain(v.Title) + " – " + words.Plain(v.Rows[0].Treatment.Instance.Name), How: words.RadarAxes}
	var said []string
	for i, l := range lines {
		var on []string
		for j, s := range shares[i] {
			if stats.Finite(s) {
				on = append(on, fmt.Sprintf("%s %s", words.Plain(v.On[j].Name), words.Number(s, 2)))
			}
		}
		said = append(said, l.Names[0]+": "+strings.Join(on, ", "))
	}
	f.Alt = "Radar chart. " + strings.Join(said, "; ") + "."
	f.Picture = drawRadar(v, lines, shares)
	return f
}

// share is what the i-th treatment has of the best treatment's metric, 1 being the best; NaN: it is not known.
func share(a *data.OnAxis, i int) float64 {
	more, best := a.Of.MoreIsBetter(), math.NaN()
	mean := func(r *data.Row) float64 {
		if r == nil || !r.Representative || !(r.Mean > 0) {
			return math.NaN()
		}
		return r.Mean
	}
	for _, r := range a.Rows {
		if m := mean(r); !math.IsNaN(m) && (math.IsNaN(best) || more == (m > best)) {
			best = m
		}
	}
	own := mean(a.Rows[i])
	if more {
		return own / best
	}
	return best / own
}

// drawRadar draws the axes, their names at their ends, and a line for each treatment, which its symbols and dashes tell from others.
func drawRadar(v *data.Several, lines []Mark, shares [][]float64) *Picture {
	const radius, room = 118.0, 34.0
	c := &Picture{w: pageWidth}
	dash := func(i int) []float64 { return [][]float64{nil, {6, 3}, {2, 2}, {8, 2, 2, 2}, {1, 3}}[i%5] }
	top := c.keys(lines, 0, 26, func(i int, x, y float64) {
		c.lines(lines[i].style.platform, 1.6, dash(i), point{x, y - 4}, point{x + 26, y - 4})
		c.symbol(lines[i].style, x+13, y-4)
	}) + room
	x0, y0 := pageWidth/2, top+radius
	c.h = y0 + radius + room
	n := len(v.On)
	at := func(axis int, share float64) point {
		angle := 2 * math.Pi * float64(axis) / float64(n)
		return point{x0 + radius*share*math.Sin(angle), y0 - radius*share*math.Cos(angle)}
	}
	ring := func(share float64) (pts []point) {
		for i := range n + 1 {
			pts = append(pts, at(i%n, share))
		}
		return pts
	}
	for _, s := range []float64{0.25, 0.5, 0.75, 1} {
		c.lines(grid, 0.8, nil, ring(s)...)
		c.text(x0+3, y0-radius*s+10, start, smallSize-1, muted, words.Number(s, 2))
	}
	for i := range n {
		tip := at(i, 1)
		c.line(grid, 0.8, x0, y0, tip.x, tip.y)
		name := words.Plain(v.On[i].Name)
		if !v.On[i].Of.MoreIsBetter() {
			name += " (inverse)"
		}
		put := at(i, 1.07)
		side, down := middle, 0.0
		switch sine := math.Sin(2 * math.Pi * float64(i) / float64(n)); {
		case sine > 0.2:
			side, down = start, 4
		case sine < -0.2:
			side, down = end, 4
		case put.y > y0:
			down = 10
		}
		free := pageWidth - put.x - 2
		if side == end {
			free = put.x - 2
		} else if side == middle {
			free = pageWidth
		}
		c.text(put.x, put.y+down, side, smallSize, ink, fit(name, smallSize, free))
	}
	for i, l := range lines {
		var run []point
		for j := range n + 1 {
			s := shares[i][j%n]
			if !stats.Finite(s) { // the line is broken there
				if len(run) > 1 {
					c.lines(l.style.platform, 1.6, dash(i), run...)
				}
				run = nil
				continue
			}
			run = append(run, at(j%n, within(s, 0, 1)))
		}
		if len(run) > 1 {
			c.lines(l.style.platform, 1.6, dash(i), run...)
		}
	}
	for i, l := range lines {
		for j, s := range shares[i] {
			if stats.Finite(s) {
				p := at(j, within(s, 0, 1))
				c.symbol(l.style, p.x, p.y)
			}
		}
	}
	return c
}
