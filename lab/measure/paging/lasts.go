package paging

import (
	"tare/lab/measure"
	"tare/notebook"
)

// Lasts implements measure.Timed: the guests begin, work until the steady state, and are read.
func (c config) Lasts(_ notebook.Treatment, guest, work notebook.Span) notebook.Span {
	s := measure.Of(c.Guests, guest).Plus(notebook.Span{Low: c.InitialS, High: c.InitialS + 5})
	if c.Tables {
		s = s.Plus(notebook.Span{Low: c.SteadyS, High: c.SteadyS + 10})
	}
	if c.LaterS > 0 { // a function has no later count
		s = s.Plus(notebook.Span{High: c.LaterS + c.FaultsS})
	}
	return s.Plus(notebook.Span{Low: min(c.FaultsS, work.Low), High: c.FaultsS + 5})
}

var _ measure.Timed = config{}
