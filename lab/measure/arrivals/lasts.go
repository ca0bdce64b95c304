package arrivals

import (
	"strconv"

	"tare/lab/measure"
	"tare/notebook"
)

// Lasts implements measure.Timed: containers are made, started at the rate, and removed, some at the same time.
func (c config) Lasts(t notebook.Treatment, guest, _ notebook.Span) notebook.Span {
	rate, err := strconv.Atoi(notebook.FactorRate.Of(t))
	if err != nil || rate < 1 {
		rate = 1
	}
	n := min(max(int(float64(rate)*c.ForS), c.Least), c.Most)
	s := measure.Of(n, guest)
	s.Low, s.High = s.Low/together, s.High+1
	return s.Plus(notebook.Span{Low: float64(n) / float64(rate), High: 2*float64(n)/float64(rate) + 2})
}

var _ measure.Timed = config{}
