package capacity

import (
	"math"

	"tare/lab/measure"
	"tare/notebook"
)

// Lasts implements measure.Timed: a search has a few steps at least, and at most all from the first rate to the greatest.
func (c config) Lasts(notebook.Treatment, notebook.Span, notebook.Span) notebook.Span {
	ascent := math.Log(float64(c.To)/float64(c.From)) / math.Log1p(c.Raise)
	step := notebook.Span{Low: c.HoldS, High: c.HoldS + 2}
	return step.Times(notebook.Span{Low: 1 + halvings, High: math.Ceil(min(ascent, 20)) + halvings})
}

var _ measure.Timed = config{}
