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
	share := !slices.ContainsFunc(slices.Concat(c.Host, c.Changes), func(x compare.Change) bool { return x.Old.Representative && x.Ratio.Value >= 2 })
	var marks, said []Mark
	for _, x := range append(slices.Clone(c.Host), c.Changes...) {
		if !x.Old.Representative || !x.New.Representative {
			continue
		}
		network := c.Old.Networks(x.Old.Treatment.Workload)
		m := Mark{
			Group: words.Work(x.Old.Treatment) + " at " + words.Plain(x.Old.Treatment.Instance.Name),
			Names: []string{words.Environment(x.Old.Treatment, network), words.Short(x.Old.Treatment, network)}, under: words.Brief(x.Old.Treatment),
			style: newStyles(c.Old.Rows, network).of(x.Old.Treatment, network), Value: x.Ratio.Value, Low: x.Ratio.Low, High: x.Ratio.High,
			Words: words.Measured(x.Ratio.Value, x.Ratio.Low, x.Ratio.High, ""), Faint: x.Answer == stats.Inconclusive || x.Answer == "", Plain: x.Answer == stats.Slower || x.Answer == stats.Faster,
		}
		if share {
			m.Value, m.Low, m.High, m.Words = 100*(x.Ratio.Value-1), 100*(x.Ratio.Low-1), 100*(x.Ratio.High-1), words.PerCent(x.Ratio)
		}
		if x.Figure {
			m.Group += ", " + words.Plain(words.Caption(x.Old.Metric.Name))
		}
		if math.IsNaN(x.Ratio.Value) {
			m.Missing = words.Valueless(c)
		}
		marks = append(marks, m)
		m.Words += ", " + words.ChangeMark(c, x)
		said = append(said, m)
	}
	f := Figure{File: "comparison", Title: words.ComparisonTitle, Lead: words.Compared(c), How: words.ChangeMarks(c, share)}
	f.Alt = InWords("Marks with intervals. ", said)
	l := &list{axis: words.Against100("before"), pitch: 22, marks: marks, signed: share}
	no, low, high := 0.0, 100*(1/(1+c.Margin)-1), 100*c.Margin
	if !share {
		l.axis, no, low, high = "after over before", 1, 1/(1+c.Margin), 1+c.Margin
	}
	l.low, l.high = changeSpan(marks, no)
	l.low, l.high = min(l.low, low), max(l.high, high)
	d := l.draw()
	d.rule(ink, 1, d.x(no))
	for _, end := range []float64{low, high} {
		d.rule(muted, 0.5, d.x(end))
	}
	d.intervals(marks)
	f.Picture = d.Picture
	return f.finish(map[string]bool{})
}
