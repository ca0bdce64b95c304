package capacity

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/desk/words"
	"tare/notebook"
	kind "tare/notebook/kinds/capacity"
)

//go:embed messages.tmpl
var messages string

var _ = words.AddMessages(messages)

// The captions of the metrics.
var _ = words.AddCaptions(notebook.MetricNames{
	"capacity_time(%s,%s)": "time per request at capacity (%s at most %s)",
	"capacity_rate":        "capacity",
})

var phrases = words.Phrases{Amount: amount, Answer: carries}

// answers says how many requests a second a service answered at its objective; empty if that is not known.
func answers(r *data.Row) string {
	i := slices.IndexFunc(r.Secondary, func(s data.Secondary) bool { return s.Metric == kind.PerSecond })
	if i < 0 || r.Of == nil {
		return ""
	}
	s := r.Secondary[i]
	return words.Measured(s.Mean, data.Floor(s.Metric, s.Low), s.High, "requests a second")
}

func amount(r *data.Row, mean string) string {
	if r.Of == nil {
		return mean
	}
	return answers(r)
}

// carries is the answer at one place. It covers the rows that can be ranked, the one with the greatest capacity first.
func carries(at words.Ranked) string {
	if at.Rows[0].Of == nil {
		return ""
	}
	var all []string
	for _, r := range at.Rows {
		curve, is := r.Of.(*Curve)
		if !is {
			continue
		}
		share := words.Measured(100/r.Ratio, 100/r.RatioHigh, 100/r.RatioLow, "%")
		if len(all) == 0 {
			share += fmt.Sprintf(" of %s's requests at %s", at.To, words.Plain(curve.Objective.Objective()))
			if at.Base != nil && answers(at.Base) != "" {
				share += ", " + answers(at.Base)
			}
		}
		all = append(all, at.Named(r)+" carries "+share)
	}
	return fmt.Sprintf("%s, %s.", at.Where, strings.Join(all, "; "))
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
