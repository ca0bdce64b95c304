package arrivals

import (
	"math"
	"slices"
	"strconv"

	"tare/desk/chart"
	"tare/desk/data"
	"tare/notebook"
	kind "tare/notebook/kinds/arrivals"
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
func risen(p *chart.Panel) (all [][]*data.Row, marks []chart.Mark) {
	index := map[string]int{}
	for i, r := range p.Rows {
		if r.Kind != kind.Name || !stats.Finite(started(r)) || !stats.Finite(r.Mean) {
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
func bringups(p *chart.Panel, stem string) *chart.Figure {
	all, marks := risen(p)
	if len(all) == 0 {
		return nil
	}
	const left, tall = 50, 230
	plot := &chart.Plot{Axis: bringupAxis, Left: left, Tall: tall, Powers: true, Legend: marks}
	for _, o := range published(all[0][0]) {
		for _, v := range []float64{o.Mean, o.P95} {
			plot.Crosses = append(plot.Crosses, chart.Point{X: float64(o.Rate), Y: stats.Estimate{Value: v}})
		}
	}
	mean := func(r *data.Row) stats.Estimate {
		return stats.Estimate{Value: r.Mean, Low: r.MeanLow, High: r.MeanHigh}
	}
	known := func(m notebook.Metric) func(*data.Row) stats.Estimate {
		return func(r *data.Row) stats.Estimate { return r.Known(m.Name) }
	}
	for i, rows := range all {
		for _, line := range []struct {
			chart.Line
			of func(*data.Row) stats.Estimate
		}{
			{chart.Line{Width: 1.6}, mean}, {chart.Line{Width: 1.2, Dash: []float64{6, 3}}, known(kind.StartP95)},
			{chart.Line{Width: 1.2, Dash: []float64{1.5, 2.5}}, known(kind.AnswerMean)}, {chart.Line{Width: 0.6}, known(kind.ClientLate)},
			{chart.Line{Symbols: true}, mean}, // over the lines
		} {
			line.Of = i
			for _, r := range rows {
				line.Points = append(line.Points, chart.Point{X: started(r), Y: line.of(r)})
			}
			plot.Lines = append(plot.Lines, line.Line)
		}
	}
	return &chart.Figure{
		File: stem + "-bring-up", Title: p.Beside(bringupTitle), How: bringupHow, Caption: knees(all, marks), Alt: bringupAlt(all, marks), Picture: plot.Draw(),
	}
}

// Rates of a knee: an engine that answers fewer than kneeRate of the requests in the time in which they come, or whose p95 is more than kneeTail times that of the
// least rate, is beyond it.
const (
	kneeRate = 0.9
	kneeTail = 2
)

// kneeWhy says by what a rate is beyond the knee.
type kneeWhy int

// Reasons.
const (
	noKnee kneeWhy = iota // no rate was
	atRate                // it was not achieved
	atTail                // starts took more than twice as long as at the least rate
)

// kneeOf is the first of rows, which are of one engine at rising rates, that is beyond the engine's knee; len(rows): none is.
func kneeOf(rows []*data.Row, rate func(*data.Row) float64) (i int, why kneeWhy) {
	for i, r := range rows {
		if reached := r.Known(kind.RateReached.Name).Value; !(reached >= kneeRate*rate(r)) { // nor where none was
			return i, atRate
		}
		first, tail := rows[0].Known(kind.StartP95.Name).Value, r.Known(kind.StartP95.Name).Value
		if stats.Finite(first) && tail > kneeTail*first {
			return i, atTail
		}
	}
	return len(rows), noKnee
}
