package idlecost

import (
	"tare/lab/measure"
	"tare/notebook"
)

// Lasts implements measure.Timed: the work alone, and next to each number of idle guests.
func (c config) Lasts(_ notebook.Treatment, guest, work notebook.Span) notebook.Span {
	all := 0
	if n := len(c.Guests); n > 0 {
		all = c.Guests[n-1]
	}
	watch := leastWatch.Seconds() + watchBefore.Seconds()
	return measure.Of(all, guest).Plus(measure.Of(c.Runs*(1+len(c.Guests)), work)).Plus(notebook.Span{Low: watch, High: 2 * watch})
}

var _ measure.Timed = config{}
