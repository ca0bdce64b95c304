package memory

import (
	"tare/lab/measure"
	"tare/notebook"
)

// Lasts implements measure.Timed: at each number of guests they settle and are weighed, and once more where the kernel merges pages.
func (c config) Lasts(_ notebook.Treatment, guest, _ notebook.Span) notebook.Span {
	most := 1
	if n := len(c.Guests); n > 0 {
		most = c.Guests[n-1]
	}
	each := notebook.Span{Low: 1, High: 8}
	if c.KSM != "" {
		each = each.Plus(notebook.Span{Low: 2, High: 60})
	}
	return measure.Of(most, guest).Plus(measure.Of(max(len(c.Guests), 1), each))
}

var _ measure.Timed = config{}
