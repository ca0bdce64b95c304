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

// started is the rate of a row.
func started(r *data.Row) float64 {
	rate, err := strconv.ParseFloat(notebook.FactorRate.Of(r.Treatment), 64)
	if err != nil || rate <= 0 {
		return math.NaN()
	}
	return rate
}

// risen returns the rows of a panel that were started under load, grouped by kind of guest, at rising rates.
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

// overRates reports whether no two rows of one kind of guest share a rate, and at least one kind has several rates.
func overRates(all [][]*data.Row) (several bool) {
	for _, rows := range all {
		rates := len(data.Distinct(rows, started))
		if rates < len(rows) {
			return false
		}
		several = several || rates > 1
	}
	return several
}

// bringups draws start times over the rate of requests (Figure 5.1 of "characterization"): the mean and p95 of each engine, the
// client's own lateness, and the paper's values.
func bringups(p *chart.Panel, stem string) *chart.Figure {
	all, marks := risen(p)
	if !overRates(all) {
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

// Limits of a knee. A rate is beyond an engine's knee if the engine answers fewer than kneeRate of the requests in the time in
// which they arrive. A rate is also beyond it if its p95 is more than kneeTail times the p95 at the lowest rate.
const (
	kneeRate = 0.9
	kneeTail = 2
)

// kneeWhy is the reason why a rate is beyond the knee.
type kneeWhy int

// Reasons.
const (
	noKnee kneeWhy = iota // no rate is beyond it
	atRate                // the rate was not achieved
	atTail                // starts took more than twice as long as at the lowest rate
)

// kneeOf returns the index of the first row beyond the engine's knee. rows are of one engine at rising rates; len(rows): none is
// beyond it.
func kneeOf(rows []*data.Row, rate func(*data.Row) float64) (i int, why kneeWhy) {
	for i, r := range rows {
		if reached := r.Known(kind.RateReached.Name).Value; !(reached >= kneeRate*rate(r)) { // also if no rate was reached
			return i, atRate
		}
		first, tail := rows[0].Known(kind.StartP95.Name).Value, r.Known(kind.StartP95.Name).Value
		if stats.Finite(first) && tail > kneeTail*first {
			return i, atTail
		}
	}
	return len(rows), noKnee
}
