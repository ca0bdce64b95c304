package capacity

import (
	"tare/lab/measure"
	"tare/notebook"
)

// Lasts implements measure.Timed. The rehearsal finds about where the capacity is, so a search has four steps at least, and seldom more
// than ten.
func (c config) Lasts(notebook.Treatment, notebook.Span, notebook.Span) notebook.Span {
	return notebook.Span{Low: c.HoldS, High: c.HoldS + 1}.Times(notebook.Span{Low: 4, High: 10})
}

var _ measure.Timed = config{}
