package fit

import (
	"tare/lab/measure"
	"tare/notebook"
)

// Lasts implements measure.Timed: without a time budget a search goes on for as long as it takes to settle its result.
func (config) Lasts(_ notebook.Treatment, guest, work notebook.Span) notebook.Span {
	return measure.Of(2, guest).Plus(measure.Of(fitRuns, work)).Plus(notebook.Span{Low: 20, High: 2 * fitSettling.Seconds()})
}

var _ measure.Timed = config{}
