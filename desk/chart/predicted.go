package chart

import (
	"math"

	"tare/desk/data"
	"tare/desk/predict"
	"tare/desk/words"
	"tare/stats"
)

// OfChecks draws how good predictions are: of each left-out workload what was predicted, over what was measured; nil where none was
// predicted.
func OfChecks(checks []predict.Check) *Figure {
	const tall = 300
	plot := &Plot{Left: 44, Tall: tall, Axis: words.PredictedAxis, Nothing: words.NotPredicted}
	var rows []*data.Row
	for i := range checks {
		rows = append(rows, &data.Row{Treatment: checks[i].Environment.Treatment})
	}
	styles := newStyles(rows, false)
	low, high := math.Inf(1), 0.0
	for i := range checks {
		c := &checks[i]
		t := c.Environment.Treatment
		line := Line{Of: i, Symbols: true}
		for j := range c.Left {
			l := &c.Left[j]
			if l.Predicted.Refused != nil {
				continue
			}
			line.Points = append(line.Points, Point{l.Ratio, stats.Estimate{Value: l.Predicted.Ratio, Low: l.Predicted.Low, High: l.Predicted.High}})
			low, high = min(low, l.Ratio), max(high, l.Ratio)
		}
		plot.Legend = append(plot.Legend, Mark{
			Names: []string{words.Environment(t, false), words.Short(t, false)}, style: styles.of(t, false), Low: math.NaN(), High: math.NaN(), Value: math.NaN(),
			Words: words.QualityBriefly(&c.Quality),
		})
		plot.Lines = append(plot.Lines, line)
	}
	if !(high > 0) {
		return nil
	}
	same := func(v float64) Point { return Point{v, stats.Estimate{Value: v}} }
	plot.Lines = append([]Line{{Of: 0, Width: 1, Dash: []float64{4, 3}, Points: []Point{same(low), same(high)}}}, plot.Lines...)
	return &Figure{
		File: "predicted", Title: words.PredictedTitle, How: words.PredictedHow, Caption: words.LeftOutEach, Alt: InWords(words.PredictedTitle, plot.Legend), Picture: plot.Draw(),
	}
}
