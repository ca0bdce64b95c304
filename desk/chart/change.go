package chart

import (
	"math"
	"slices"

	"tare/desk/compare"
	"tare/desk/words"
	"tare/stats"
)

// OfComparison draws what changed between two folders: a mark and a whisker for each treatment, and the margin.
func OfComparison(c *compare.Comparison) Figure {
	var marks, said []Mark
	for _, x := range append(slices.Clone(c.Host), c.Changes...) {
		network := c.Old.Networks(x.Old.Treatment.Workload)
		m := Mark{
			Group: words.Work(x.Old.Treatment.Workload, x.Old.Treatment.Params) + " at " + words.Plain(x.Old.Treatment.Instance.Name),
			Names: []string{words.Described(x.Old.Treatment, network), words.Treatment(x.Old.Treatment, network)}, under: words.Brief(x.Old.Treatment),
			style: newStyles(c.Old.Rows, network).of(x.Old.Treatment, network), Value: x.Ratio.Value, Low: x.Ratio.Low, High: x.Ratio.High,
			Words: words.Measured(x.Ratio.Value, x.Ratio.Low, x.Ratio.High, ""), Faint: x.Answer == stats.Open || x.Answer == "", Plain: x.Answer == stats.More || x.Answer == stats.Less,
		}
		if x.Figure {
			m.Group += ", " + words.Plain(x.Old.Metric.Name)
		}
		if math.IsNaN(x.Ratio.Value) {
			m.Missing = "no value in one of the folders"
		}
		marks = append(marks, m)
		if x.Answer == "" {
			m.Words += ", which is the host's change"
		} else {
			m.Words += ", " + words.Answered(x)
		}
		said = append(said, m)
	}
	f := Figure{File: "comparison", Title: "After over before", Lead: words.Compared(c)}
	f.How = "Each mark is a treatment's mean after over its mean before, with its interval, corrected for all that are compared"
	if len(c.Host) > 0 {
		f.How = "Each mark is a treatment's ratio to bare metal after over that before, with its interval, corrected for all that are compared. Where a folder lacks bare metal it is of the means. Bare metal's own mark is its mean after over its mean before, which is the host's change"
	}
	f.How += "; the line at 1 is no change, and the thin lines beside it the margin within which a change does not matter. The name of what is open, and of bare metal, is grey."
	if slices.ContainsFunc(c.Changes, func(x compare.Change) bool { return x.Old.Metric.MoreIsBetter() }) {
		f.How += " Where more is better, what is below 1 is worse."
	}
	f.Alt = InWords("Marks with intervals. ", said)
	l := &list{axis: "after over before", pitch: 22, marks: marks}
	l.low, l.high = ratioSpan(marks)
	l.low, l.high = min(l.low, 1/(1+c.Margin)), max(l.high, 1+c.Margin)
	d := l.draw()
	d.rule(ink, 1, d.x(1))
	for _, end := range []float64{1 / (1 + c.Margin), 1 + c.Margin} {
		d.rule(muted, 0.5, d.x(end))
	}
	d.intervals(marks)
	f.Picture = d.Picture
	return f.finish(map[string]bool{})
}
