package data

import (
	"math"
	"time"

	"tare/notebook"
	"tare/stats"
)

// clock notes when the rounds of a folder began and ended.
type clock map[int]*span

type span struct{ from, to time.Time }

func (c clock) add(round int, from, to time.Time) {
	s := c[round]
	if s == nil {
		s = &span{from, to}
		c[round] = s
	}
	if from.Before(s.from) {
		s.from = from
	}
	if to.After(s.to) {
		s.to = to
	}
}

func (c clock) trial(t *notebook.Trial) {
	lasted := max(t.HostS, t.ElapsedS) // trials of some kinds of study know only the host's
	c.add(t.Round, t.Start, t.Start.Add(time.Duration(lasted*float64(time.Second))))
}

// read gives the seconds that a round usually takes, and the end of the last one; NaN and zero where nothing was measured.
func (c clock) read() (roundS float64, last time.Time) {
	var lasted []float64
	for _, s := range c {
		lasted = append(lasted, s.to.Sub(s.from).Seconds())
		if s.to.After(last) {
			last = s.to
		}
	}
	if lasted == nil {
		return math.NaN(), last
	}
	return stats.Median(lasted), last
}

// Check is the A/A check at a row's place; nil where there is none.
func (s *Summary) Check(r *Row) *AACheck {
	for i := range s.AA {
		if s.AA[i].at(r) {
			return &s.AA[i]
		}
	}
	return nil
}

// Resolution is the smallest difference that a check could have detected, a share: half of its interval. NaN where it has none.
func (a *AACheck) Resolution() float64 {
	if a == nil || !stats.Finite(a.Low) || !stats.Finite(a.High) {
		return math.NaN()
	}
	return (a.High - a.Low) / 2
}

// Resolution is the largest of the checks of the workloads' own metrics; NaN where none has one.
func (s *Summary) Resolution() float64 {
	most := math.NaN()
	for i := range s.AA {
		if v := s.AA[i].Resolution(); (s.AA[i].Figure == notebook.Metric{}) && !math.IsNaN(v) && !(v <= most) {
			most = v
		}
	}
	return most
}
