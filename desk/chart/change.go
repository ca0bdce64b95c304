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
			Group: words.Work(x.Old.Treatment) + " at " + words.Plain(x.Old.Treatment.Instance.Name),
			Names: []string{words.Described(x.Old.Treatment, network), words.Treatment(x.Old.Treatment, network)}, under: words.Brief(x.Old.Treatment),
			style: newStyles(c.Old.Rows, network).of(x.Old.Treatment, network), Value: x.Ratio.Value, Low: x.Ratio.Low, High: x.Ratio.High,
			Words: words.Measured(x.Ratio.Value, x.Ratio.Low, x.Ratio.High, ""), Faint: x.Answer == stats.Inconclusive || x.Answer == "", Plain: x.Answer == stats.Slower || x.Answer == stats.Faster,
		}
		if x.Figure {
			m.Group += ", " + words.Plain(words.Caption(x.Old.Metric.Name))
		}
		if math.IsNaN(x.Ratio.Value) {
			m.Missing = words.NotInBoth
		}
		marks = append(marks, m)
		m.Words += ", " + words.ChangeMark(x)
		said = append(said, m)
	}
	f := Figure{File: "comparison", Title: "After over before", Lead: words.Compared(c), How: words.ChangeMarks(c)}
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
