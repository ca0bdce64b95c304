package page

import (
	"math"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/desk/ladder"
	"tare/desk/words"
)

// rungTable is the table under a staircase.
type rungTable struct {
	ID, Title, Metric string
	Rows              []rungRow
	Gaps              []rungGap
	Unlike            []rungGap // what whole containers have otherwise than the layers
}

type rungRow struct {
	Name, Sub         string
	Own, OwnWords     string
	Below             string
	Ratio, RatioWords string
	Mean, Interval    string
	Rounds            string
	Muted             bool
	Significant       bool
}

// rungGap is what was not measured for one reason, or what one thing is to be known of.
type rungGap struct{ What, Why string }

func rungs(id string, c *ladder.Staircase) *rungTable {
	t := &rungTable{ID: id, Title: words.Plain(c.Workload) + " at " + words.Plain(c.Instance.Name), Metric: words.Plain(c.Metric.Name)}
	if u := words.Plain(c.Metric.Unit); u != "" {
		t.Metric += ", " + u
	}
	for i := range c.Rungs {
		r := &c.Rungs[i]
		name := words.Plain(words.LadderRung(r))
		if !r.Measured() {
			why := words.Stop(words.Doubt(r.Missing))
			if j := slices.IndexFunc(t.Gaps, func(g rungGap) bool { return g.Why == why }); j >= 0 {
				t.Gaps[j].What += ", " + name
			} else {
				t.Gaps = append(t.Gaps, rungGap{name, why})
			}
			continue
		}
		if r.Kind == ladder.Engine {
			for _, n := range words.Doubts(r.Row.Doubts) {
				why := words.Stop(n)
				if j := slices.IndexFunc(t.Unlike, func(g rungGap) bool { return g.Why == why }); j >= 0 {
					t.Unlike[j].What += ", " + name
				} else {
					t.Unlike = append(t.Unlike, rungGap{name, why})
				}
			}
		}
		row := rungRow{Name: name, Own: "–", OwnWords: "–", Below: "–", Ratio: "–", RatioWords: "–", Rounds: words.Thousands(r.Own.N), Significant: r.Significant, Muted: r.Emulated || r.Doubtful || r.Failing}
		var subs []string
		for _, s := range []struct {
			is   bool
			text string
		}{{r.Emulated, "emulated: not a VM’s cost"}, {r.Doubtful, "doubtful"}, {r.Failing, "too many trials failed"}, {r.Significant, "distinguishable from none"}} {
			if s.is {
				subs = append(subs, s.text)
			}
		}
		if len(r.With) > 0 {
			subs = append(subs, "with "+words.Plain(strings.Join(r.With, ", ")))
		}
		row.Sub = strings.Join(subs, "; ")
		d := words.Places(r.Row.Mean, r.Row.MeanLow, r.Row.MeanHigh)
		row.Mean, row.Interval = words.Number(r.Row.Mean, d), words.Bounds(data.Floor(c.Metric, r.Row.MeanLow), r.Row.MeanHigh, d)
		set := func(value, interval *string, v, low, high float64) {
			if !math.IsNaN(v) {
				d := words.Places(v, low, high)
				*value, *interval = words.Number(v, d), words.Bounds(data.Floor(c.Metric, low), high, d)
			}
		}
		set(&row.Ratio, &row.RatioWords, r.Ratio.Value, r.Ratio.Low, r.Ratio.High)
		if r.Kind == ladder.BareMetal {
			row.Ratio, row.RatioWords, row.Rounds = "1", "by definition", words.Thousands(r.Row.Rounds)
		} else {
			set(&row.Own, &row.OwnWords, r.Own.Value, r.Own.Low, r.Own.High)
		}
		if r.Below >= 0 {
			row.Below = words.Plain(words.LadderRung(&c.Rungs[r.Below]))
		}
		t.Rows = append(t.Rows, row)
	}
	var own, ratio, mean []*string
	for i := range t.Rows {
		own, ratio, mean = append(own, &t.Rows[i].Own), append(ratio, &t.Rows[i].Ratio), append(mean, &t.Rows[i].Mean)
	}
	alignPoints(own)
	alignPoints(ratio)
	alignPoints(mean)
	return t
}
