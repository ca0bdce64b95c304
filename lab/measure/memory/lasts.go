package memory

import (
	"tare/lab/measure"
	"tare/notebook"
)

// Lasts implements measure.Timed: at each number of guests they settle and are weighed, and once more where the kernel merges pages. There may
// be no room for the further guests.
func (c config) Lasts(_ notebook.Treatment, guest, _ notebook.Span) notebook.Span {
	each := notebook.Span{Low: 1, High: 8}
	if c.KSM != "" {
		each = each.Plus(notebook.Span{Low: 2, High: 60})
	}
	lasts := func(numbers []int) notebook.Span {
		return measure.Of(numbers[len(numbers)-1], guest).Plus(measure.Of(len(numbers), each))
	}
	return notebook.Span{Low: lasts(c.Guests).Low, High: lasts(c.Numbers()).High}
}

var _ measure.Timed = config{}
