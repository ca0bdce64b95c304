package page

import (
	"tare/desk/ladder"
	"tare/desk/show"
	"tare/desk/words"
)

// rungTable is the table under a staircase.
type rungTable struct {
	ID, Title, Metric string
	Rows              []rungRow
	Gaps              []pair
	Sums              bool   // the model of single layers predicts some of the rungs
	Unlike            []pair // what whole containers have otherwise than the layers
}

type rungRow struct {
	Name, Sub        string
	Below            string
	Own, Ratio, Mean show.Value
	Sum, OverGroup   show.Value // what the model of single layers predicts, and what it is compared with
	Rounds           string
	Muted            bool
	Significant      bool
}

func rungs(id string, c *ladder.Staircase) *rungTable {
	t := &rungTable{ID: id, Title: words.Plain(c.Workload) + " at " + words.Plain(c.Instance.Name), Metric: words.Metric(c.Metric)}
	if c.Metric.MoreIsBetter() {
		t.Title += ", " + words.CostOf(c.Metric)
	}
	for _, r := range c.Rungs {
		name := words.Plain(words.LadderRung(r))
		if !r.Measured() {
			t.Gaps = together(t.Gaps, pair{name, words.Stop(words.Doubt(r.Missing))})
			continue
		}
		if r.Kind == ladder.Engine {
			for _, n := range words.Doubts(r.Row.Doubts) {
				t.Unlike = together(t.Unlike, pair{name, words.Stop(n)})
			}
		}
		row := rungRow{Name: name, Below: "–", Own: show.Value{Value: "–", Interval: "–"}, Rounds: words.Thousands(r.Own.N), Significant: r.Significant, Muted: r.Emulated || r.Doubtful || r.Failing}
		row.Sub = words.RungTags(r)
		if sum, known := c.Model.Of(r); known {
			t.Sums = true
			row.Sum, row.OverGroup = ofMetric(c.Metric, sum.Predicted, sum.PLow, sum.PHigh), ofMetric(c.Metric, sum.Measured, sum.MLow, sum.MHigh)
		}
		row.Mean = ofMetric(c.Metric, r.Row.Mean, r.Row.MeanLow, r.Row.MeanHigh)
		if r.Kind == ladder.BareMetal {
			row.Ratio, row.Rounds = show.Value{Value: "1", Interval: "by definition"}, words.Thousands(r.Row.Rounds)
		} else {
			row.Ratio = ofMetric(c.Metric, r.Ratio.Value, r.Ratio.Low, r.Ratio.High)
			row.Own = ofMetric(c.Metric, r.Own.Value, r.Own.Low, r.Own.High)
		}
		if r.Below != nil {
			row.Below = words.Plain(words.LadderRung(r.Below))
		}
		t.Rows = append(t.Rows, row)
	}
	show.Align(t.Rows, func(r *rungRow) *show.Value { return &r.Own })
	show.Align(t.Rows, func(r *rungRow) *show.Value { return &r.Ratio })
	show.Align(t.Rows, func(r *rungRow) *show.Value { return &r.Mean })
	return t
}
