package idlecost

import (
	_ "embed"
	"fmt"
	"strings"

	"tare/desk/chart"
	"tare/desk/data"
	"tare/desk/words"
	"tare/notebook"
)

//go:embed messages.tmpl
var messages string

var _ = words.AddMessages(messages)

// The captions of the metrics.
var _ = words.AddCaptions(notebook.MetricNames{
	"slowdown(%s)": "slowdown beside %s idle guests",
	"slowdown(1)":  "slowdown beside 1 idle guest",
	cpuTime:        "CPU time of an idle guest",
	wakeUps:        "wake-ups of an idle guest",
})

// The names that the metrics had before they had keys.
var _ = notebook.Renames(Kind.Key, notebook.MetricNames{
	"slowdown beside %s idle guests": "slowdown(%s)",
	"slowdown beside 1 idle guest":   "slowdown(1)",
	"CPU time of an idle guest":      cpuTime,
	"wake-ups of an idle guest":      wakeUps,
})

const (
	title   = "Slowdown beside idle guests"
	axis    = "times as long as alone, over the number of idle guests"
	nothing = "no slowdown was measured"
	lead    = "Lines over the number of idle guests. "
	how     = "A guest shares its CPUs with this many idle guests. Each mark is the time of its work over the time of the same work alone in the same guest: the mean over " +
		"rounds with its 95 % interval. Both axes are logarithmic; the horizontal line marks a slowdown of 1, which is none."
)

// said is a row's slowdowns in words, and what an idle guest uses.
func said(r *data.Row, points []chart.Point) string {
	var all []string
	for _, at := range points {
		all = append(all, fmt.Sprintf("%s times beside %.0f", words.Measured(at.Y.Value, at.Y.Low, at.Y.High, ""), at.X))
	}
	for _, of := range []struct{ metric, unit string }{{cpuTime, "ms of CPU time a second"}, {wakeUps, "wake-ups a second"}} {
		if e := r.Known(of.metric); e.N > 0 {
			all = append(all, "each idle guest "+words.Measured(e.Value, data.Floor(r.Metric, e.Low), e.High, of.unit))
		}
	}
	return strings.Join(all, ", ")
}
