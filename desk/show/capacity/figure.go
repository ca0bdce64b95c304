package capacity

import (
	"tare/desk/chart"
	"tare/desk/words"
	"tare/notebook"
	"tare/stats"
)

// figure draws throughput against latency: for each service a line over the rates at which it was asked, and the objective. Each
// place of the panel needs an axis of its own, so the figure shows the last place.
func figure(p *chart.Panel, stem string) *chart.Figure {
	const tall = 200
	plot := &chart.Plot{Left: 44, Tall: tall, Nothing: noRate}
	var knees []string
	var objective *Curve
	for i, r := range p.Rows {
		curve, is := r.Of.(*Curve)
		if !is || r.Treatment.AA || p.Places[i] != p.Places[len(p.Places)-1] {
			continue
		}
		m := p.Mark(i)
		m.Words = answers(r)
		line := chart.Line{Of: len(plot.Legend), Width: 1.4, Symbols: true}
		if r.Treatment.Provisioning == notebook.Vanilla {
			line.Dash = []float64{5, 3}
		}
		for _, at := range curve.Points {
			line.Points = append(line.Points, chart.Point{X: float64(at.Rate), Y: inMS(at.Tail)})
		}
		plot.Legend, plot.Lines = append(plot.Legend, m), append(plot.Lines, line)
		if k := curve.Knee; stats.Finite(k.Value) {
			knees = append(knees, m.Names[0]+" "+words.Measured(k.Value, max(0, k.Low), k.High, ""))
		}
		if objective == nil {
			objective = curve
		}
	}
	if objective == nil {
		return nil
	}
	of := objective.Objective
	plot.Axis, plot.Across = axis(of.Metric), of.Bound*1e3
	plot.Most = 100 * plot.Across
	return &chart.Figure{
		File: stem + "-capacity", Title: p.Beside(figureTitle), How: how(of.Metric), Caption: captionOf(knees),
		Alt: chart.InWords(lead(of.Objective()), plot.Legend), Picture: plot.Draw(),
	}
}

func inMS(e stats.Estimate) stats.Estimate {
	e.Value, e.Low, e.High = e.Value*1e3, e.Low*1e3, e.High*1e3
	return e
}
