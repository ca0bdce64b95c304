package chart

import (
	"fmt"
	"math"

	"tare/desk/data"
	"tare/desk/predict"
	"tare/desk/words"
	"tare/stats"
)

// OfChecks draws how good the predictions of each environment are: of each left-out workload what was predicted, over what was measured.
// Environments without a prediction have no figure.
func OfChecks(checks []predict.Check) (all []Figure) {
	for i := range checks {
		if c := &checks[i]; c.N > 0 {
			all = append(all, ofCheck(c, fmt.Sprintf("predicted-%d-%s", i+1, Slug(words.PredictedEnvironment(c.Environment)))))
		}
	}
	return all
}

func ofCheck(c *predict.Check, file string) Figure {
	const tall = 240
	t := c.Environment.Treatment
	look := newStyles([]*data.Row{{Treatment: t}}, false).of(t, false)
	mark := Mark{
		Names: []string{words.Environment(t, false), words.Short(t, false)}, style: look, Low: math.NaN(), High: math.NaN(), Value: math.NaN(), Words: words.QualityBriefly(&c.Quality),
	}
	works := Line{Symbols: true}
	low, high := math.Inf(1), 0.0
	for i := range c.Left {
		l := &c.Left[i]
		if p := &l.Predicted; p.Refused == nil {
			works.Points = append(works.Points, Point{l.Ratio, stats.Estimate{Value: p.Ratio, Low: p.Low, High: p.High}})
			low, high = min(low, l.Ratio), max(high, l.Ratio)
		}
	}
	same := func(v float64) Point { return Point{v, stats.Estimate{Value: v}} }
	plot := &Plot{
		Axis: words.PredictedAxis, Left: 44, Tall: tall, Nothing: words.NotPredicted, Legend: []Mark{mark},
		Lines: []Line{{Width: 1, Dash: []float64{4, 3}, Points: []Point{same(low), same(high)}}, works},
	}
	return Figure{
		File: file, Title: words.PredictedTitle + ": " + words.PredictedEnvironment(c.Environment), How: words.PredictedHow, Caption: words.LeftOutEach,
		Alt: InWords(words.PredictedTitle, plot.Legend), Picture: plot.Draw(),
	}
}
