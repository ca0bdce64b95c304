package measure

import "tare/notebook"

// Timed is a Config that says in advance about how long a trial takes, in seconds. A trial of another Config is one run of the work.
type Timed interface {
	// Lasts is the time of a trial of the treatment. guest is the time to make and remove one guest. work is the time of one run of
	// the work; 0 if it is not known.
	Lasts(t notebook.Treatment, guest, work notebook.Span) notebook.Span
}

// Of multiplies a span by a number.
func Of(n int, s notebook.Span) notebook.Span {
	return s.Times(notebook.Span{Low: float64(n), High: float64(n)})
}
