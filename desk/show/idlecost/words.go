package idlecost

import (
	_ "embed"
	"fmt"
	"strings"

	"tare/desk/chart"
	"tare/desk/data"
	"tare/desk/words"
)

//go:embed messages.tmpl
var messages string

var _ = words.AddMessages(messages)

// metric is the name of the slowdown next to a number of idle guests, as in a study.
func metric(guests int) string {
	if guests == 1 {
		return "slowdown beside 1 idle guest"
	}
	return fmt.Sprintf("slowdown beside %d idle guests", guests)
}

const (
	title   = "Slowdown beside idle guests"
	axis    = "times as long as alone, over the number of idle guests"
	nothing = "no slowdown was measured"
	lead    = "Lines over the number of idle guests. "
	how     = "Each mark is how many times as long the work takes of a guest that shares its CPUs with so many idle guests as it takes alone in the same guest, the mean over " +
		"rounds with its 95 % interval. Both axes are logarithmic; the line across is no slowdown."
)

// said is a row's slowdowns in words, and what an idle guest uses.
func said(r *data.Row, points []chart.Point) string {
	var all []string
	for _, at := range points {
		all = append(all, fmt.Sprintf("%s times beside %.0f", words.Measured(at.Y.Value, at.Y.Low, at.Y.High, ""), at.X))
	}
	for _, of := range []struct{ metric, unit string }{{"CPU time of an idle guest", "ms of CPU time a second"}, {"wake-ups of an idle guest", "wake-ups a second"}} {
		if e := r.Known(of.metric); e.N > 0 {
			all = append(all, "each idle guest "+words.Measured(e.Value, data.Floor(r.Metric, e.Low), e.High, of.unit))
		}
	}
	return strings.Join(all, ", ")
}
