package chart

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/desk/data"
	"tare/desk/words"
	"tare/notebook"
	arrivalskind "tare/notebook/kinds/arrivals"
	"tare/stats"
)

// started is a row's rate.
func started(r *data.Row) float64 {
	rate, err := strconv.ParseFloat(r.Treatment.Params[notebook.ParamRate], 64)
	if err != nil || rate <= 0 {
		return math.NaN()
	}
	return rate
}

// risen are the rows of a panel that are of one kind of guest and were started under load, at rising rates.
func (p *Panel) risen() (all [][]*data.Row, marks []Mark) {
	index := map[string]int{}
	for i, r := range p.Rows {
		if r.Arrivals == nil || !stats.Finite(started(r)) || !stats.Finite(r.Mean) {
			continue
		}
		m := p.Mark(i)
		n, known := index[m.Names[0]]
		if !known {
			n = len(all)
			index[m.Names[0]], all, marks = n, append(all, nil), append(marks, m)
		}
		all[n] = append(all[n], r)
	}
	for _, rows := range all {
		slices.SortStableFunc(rows, func(a, b *data.Row) int { return int(started(a) - started(b)) })
	}
	return all, marks
}

// bringups is how long starts took over the rate at which they were asked for (Figure 5.1 of "characterization"): of each engine the mean and p95, with what the client
// itself was late by, and the paper's.
func bringups(p *Panel, stem string) *Figure {
	all, marks := p.risen()
	if len(all) == 0 {
		return nil
	}
	f := &Figure{File: stem + "-bring-up", Title: p.Beside("Start time over the rate of requests")}
	f.How = "Solid: the mean time from the moment for which a request was meant to the end of the engine’s call, with its 95 % interval over rounds; dashed, the 95th " +
		"percentile; dotted, from the same moment to the application’s first answer. The thin line at the foot is how late the client made one request in a hundred: as long as it is far " +
		"below, the client is not what was measured. Crosses are the paper’s mean and 95th percentile. Both axes are logarithmic. An engine is beyond its knee at the first rate at " +
		"which it completes fewer than 90 % of the requests in the time in which they come, or its 95th percentile is more than twice that at the least rate."
	var knees, said []string
	for i, rows := range all {
		knees = append(knees, fmt.Sprintf("%s %s", marks[i].Names[0], knee(rows)))
		for _, r := range rows {
			said = append(said, fmt.Sprintf("%s, %s a second: mean %s s, 95th percentile %s s, first answer %s s, %s a second completed, client %s ms late and at %s %% of a core", marks[i].Names[0],
				words.Digits(started(r), 3), words.Digits(r.Mean, 3), words.Digits(r.Known(arrivalskind.StartP95.Name).Value, 3), words.Digits(r.Known(arrivalskind.AnswerMean.Name).Value, 3),
				words.Digits(r.Known(arrivalskind.RateReached.Name).Value, 3), words.Digits(1e3*r.Known(arrivalskind.ClientLate.Name).Value, 2), words.Digits(r.Known(arrivalskind.ClientCPU.Name).Value, 2)))
		}
	}
	f.Caption = "The knee: " + strings.Join(knees, "; ") + "."
	f.Alt = "Lines over the rate. " + strings.Join(said, "; ") + "."
	f.Picture = drawBringups(all, marks)
	return f
}

// knee says where it is.
func knee(rows []*data.Row) string {
	i, why := data.Knee(rows, started)
	if why == data.NoKnee {
		return fmt.Sprintf("none up to %s a second", words.Digits(started(rows[len(rows)-1]), 3))
	}
	at := words.Digits(started(rows[i]), 3)
	said := fmt.Sprintf("beyond it at %s a second", at)
	if i > 0 {
		said = fmt.Sprintf("between %s and %s a second", words.Digits(started(rows[i-1]), 3), at)
	}
	if why == data.KneeRate {
		return said + fmt.Sprintf(" (%s a second completed)", words.Digits(rows[i].Known(arrivalskind.RateReached.Name).Value, 3))
	}
	return said + " (its 95th percentile has more than doubled)"
}

func drawBringups(all [][]*data.Row, marks []Mark) *Picture {
	const left, right, tall = 50, 10, 230
	p95 := func(r *data.Row) float64 { return r.Known(arrivalskind.StartP95.Name).Value }
	answer := func(r *data.Row) float64 { return r.Known(arrivalskind.AnswerMean.Name).Value }
	late := func(r *data.Row) float64 { return r.Known(arrivalskind.ClientLate.Name).Value }
	mean := func(r *data.Row) float64 { return r.Mean }
	published := all[0][0].Arrivals.Published
	x0, x1, y0, y1 := math.Inf(1), 0.0, math.Inf(1), 0.0
	reach := func(rate, v float64) {
		if v > 0 && stats.Finite(v) && rate > 0 {
			x0, x1, y0, y1 = min(x0, rate), max(x1, rate), min(y0, v), max(y1, v)
		}
	}
	for _, rows := range all {
		for _, r := range rows {
			for _, of := range []func(*data.Row) float64{mean, p95, answer, late} {
				reach(started(r), of(r))
			}
		}
	}
	for _, o := range published {
		reach(float64(o.Rate), o.Mean)
		reach(float64(o.Rate), o.P95)
	}
	c := &Picture{w: pageWidth}
	c.text(2, 13, start, smallSize, muted, "seconds, over requests to start a second")
	top := c.legend(marks, 20) + 10
	base := top + tall
	c.h = base + 20
	x0, x1, y0, y1 = x0/1.15, x1*1.15, y0/1.3, y1*1.3
	x := func(v float64) float64 {
		return left + (pageWidth-right-left)*within(math.Log(v/x0)/math.Log(x1/x0), 0, 1)
	}
	y := func(v float64) float64 { return base - tall*within(math.Log(v/y0)/math.Log(y1/y0), 0, 1) }
	for _, t := range apart(decades(x0, x1), x, smallSize, left, pageWidth-2) {
		c.line(grid, 0.7, x(t.value), top, x(t.value), base)
		c.text(x(t.value), base+13, middle, smallSize, muted, t.label)
	}
	for _, t := range decades(y0, y1) {
		if lead := t.label[strings.LastIndexAny(t.label, "0.")+1:]; lead != "" && !strings.HasPrefix(lead, "1") && y1 > 100*y0 {
			continue // powers of ten alone
		}
		c.line(grid, 0.7, left, y(t.value), pageWidth-right, y(t.value))
		c.text(left-5, y(t.value)+3.5, end, smallSize, muted, t.label)
	}
	for _, o := range published {
		for _, v := range []float64{o.Mean, o.P95} {
			px, py := x(float64(o.Rate)), y(v)
			c.line(ink, 1.2, px-4, py-4, px+4, py+4)
			c.line(ink, 1.2, px-4, py+4, px+4, py-4)
		}
	}
	for i, rows := range all {
		col := marks[i].style.platform
		for _, line := range []struct {
			of    func(*data.Row) float64
			width float64
			dash  []float64
		}{{mean, 1.6, nil}, {p95, 1.2, []float64{6, 3}}, {answer, 1.2, []float64{1.5, 2.5}}, {late, 0.6, nil}} {
			var pts []point
			for _, r := range rows {
				if v := line.of(r); v > 0 && stats.Finite(v) {
					pts = append(pts, point{x(started(r)), y(v)})
				}
			}
			if len(pts) > 0 {
				c.lines(col, line.width, line.dash, pts...)
			}
		}
		for _, r := range rows {
			at := point{x(started(r)), y(r.Mean)}
			if stats.Finite(r.MeanLow) && stats.Finite(r.MeanHigh) {
				c.whisker(col, 1.2, false, at.x, y(max(r.MeanLow, y0)), y(min(r.MeanHigh, y1)), base, top)
			}
			c.symbol(marks[i].style, at.x, at.y)
		}
	}
	c.line(ink, 1, left, base, pageWidth-right, base)
	return c
}
