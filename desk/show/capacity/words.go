package capacity

import (
	"cmp"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/desk/words"
	"tare/notebook"
	kind "tare/notebook/kinds/capacity"
	"tare/stats"
)

//go:embed messages.tmpl
var messages string

var _ = words.AddMessages(messages)

// The captions of the metrics.
var _ = words.AddCaptions(notebook.MetricNames{
	"capacity_time(%s,%s)": "time per request at capacity (%s at most %s)",
	"capacity_rate":        "capacity",
})

var phrases = words.Phrases{Amount: amount, Rate: &words.Rate{Name: rateName, Of: perSecond}, Answer: carries}

func rateName(r *data.Row) string {
	curve, is := r.Of.(*Curve)
	if !is {
		return "requests a second"
	}
	return "requests a second at " + objective(curve)
}

// objective is what a service must meet: "p99 ≤ 50 ms".
func objective(c *Curve) string {
	return words.Plain(c.Objective.Metric) + " ≤ " + bound(c.Objective.Bound)
}

// perSecond is a row's requests a second at its objective.
func perSecond(r *data.Row) stats.Estimate {
	i := slices.IndexFunc(r.Secondary, func(s data.Secondary) bool { return s.Metric == kind.PerSecond })
	if i < 0 {
		return stats.NoMean
	}
	s := r.Secondary[i]
	return stats.Estimate{Value: s.Mean, Low: data.Floor(s.Metric, s.Low), High: s.High, N: r.Rounds}
}

// reference is the requests a second of a row that others are compared with. Bare metal's include those of its A/A control, as ratios to it do.
func reference(r *data.Row) float64 {
	e := perSecond(r)
	if c := r.Control(); c != nil {
		if again := perSecond(c); again.N > 0 && !math.IsNaN(again.Value) {
			return (e.Value*float64(e.N) + again.Value*float64(again.N)) / float64(e.N+again.N)
		}
	}
	return e.Value
}

// answers says how many requests a second a service answered at its objective; empty if that is not known.
func answers(r *data.Row) string {
	e := perSecond(r)
	if math.IsNaN(e.Value) || r.Of == nil {
		return ""
	}
	return words.Measured(e.Value, e.Low, e.High, "requests a second")
}

func amount(r *data.Row, mean string) string {
	if r.Of == nil {
		return mean
	}
	return answers(r)
}

// carries is the finding at one place, the environment with the greatest capacity first: "Docker handles 92 % (90 to 94) of bare metal's 1,840
// requests/s at p99 ≤ 50 ms."
func carries(at words.Ranked) (all []string) {
	rows := slices.SortedStableFunc(slices.Values(at.Rows), func(a, b *data.Row) int { return cmp.Compare(a.Ratio, b.Ratio) })
	for _, r := range rows {
		curve, is := r.Of.(*Curve)
		if !is {
			continue
		}
		low, high := r.RatioLow, r.RatioHigh
		share, from, to := 100/r.Ratio, 100/high, 100/low
		d := min(words.Places(share, from, to), 1)
		bounds := fmt.Sprintf("%s to %s", words.Number(from, d), words.Number(to, d))
		if !(low > 0) || math.IsInf(to, 0) {
			bounds = "at least " + words.Outward(from, d, false)
		}
		of := ""
		if at.Base != nil {
			if v := reference(at.Base); !math.IsNaN(v) {
				of = " " + words.Thousands(int64(math.Round(v)))
			}
		}
		if from < 90 && to > 110 {
			all = append(all, fmt.Sprintf("This run cannot tell what %s handles at %s: %s %% of %s's%s requests/s.", at.Named(r), objective(curve), bounds, at.To, of))
			continue
		}
		doubt := ""
		switch {
		case from < 90 && to > 100:
			doubt = ", perhaps as many"
		case from < 100 && to > 100:
			doubt = ": at most " + words.Number(100-shown(from, d), d) + " % fewer, if any"
		}
		all = append(all, fmt.Sprintf("%s handles %s %% (%s) of %s's%s requests/s at %s%s.", words.Capital(at.Named(r)), words.Number(share, d), bounds, at.To, of,
			objective(curve), doubt))
	}
	return all
}

// shown is a number as it is written with so many decimals.
func shown(v float64, decimals int) float64 {
	by := math.Pow(10, float64(decimals))
	return math.Round(v*by) / by
}

// bound writes an objective's time as somebody chose it: "50 ms".
func bound(seconds float64) string {
	unit, by := words.Scale(seconds)
	return fmt.Sprintf("%.6g %s", seconds*by, unit)
}

const figureTitle = "Throughput against latency"

// how says how to read the figure.
func how(metric string) string {
	return "Each mark is " + words.Plain(metric) + " at a rate of requests, the mean over rounds with its 95 % interval where two rounds or more have that rate; " +
		"rates between the steps are those that closed in on the capacity. Where requests failed there is no mark. Both axes are logarithmic; the line across is the objective."
}

// captionOf says where the knees are; empty if none is known.
func captionOf(knees []string) string {
	if knees == nil {
		return ""
	}
	return "The knee, the rate with the most throughput for its mean response time, in requests a second: " + strings.Join(knees, "; ") + "."
}

func axis(metric string) string { return words.Plain(metric) + " in ms, over requests a second" }
func lead(objective string) string {
	return "Lines, each to its capacity at " + words.Plain(objective) + ". "
}

const noRate = "no rate was answered"
