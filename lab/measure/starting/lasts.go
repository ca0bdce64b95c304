package starting

import (
	"tare/lab/measure"
	"tare/notebook"
)

// Lasts implements measure.Timed: a start with the work's first answer, and where the study asks for it a restore.
func (c config) Lasts(t notebook.Treatment, guest, work notebook.Span) notebook.Span {
	s := guest.Plus(notebook.Span{High: min(work.High, 10)})
	if !notebook.PullOf(t).None() { // and the engine forgets the image before
		s = s.Plus(notebook.Span{Low: 1, High: 8})
	}
	if c.Restore {
		s = s.Plus(notebook.Span{High: 4})
	}
	return s
}

var _ measure.Timed = config{}
