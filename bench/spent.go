//go:build linux

package main

import (
	"fmt"
	"time"

	"tare/notebook"
)

// spent is where the wall time of a study went, in seconds.
type spent struct {
	runs    float64 // the command's runs, on the host's clock
	guests  float64 // making them
	between float64 // between runs: orders, records, removing guests
	before  float64 // before the first guest: reading the study, opening the host, the rehearsal
	after   float64 // after the last run: the summary and the report
}

// spentIn reads from a folder where the time of its study went, between its begin and its end.
func spentIn(dir string, began, ended time.Time) (s spent, err error) {
	f, err := notebook.Read(dir)
	if err != nil {
		return s, err
	}
	first, last := ended, began
	for _, g := range f.Guests {
		s.guests += g.ProvisionS
		if g.Start.Before(first) {
			first = g.Start
		}
	}
	err = f.Trials(func(t *notebook.Trial) error {
		s.runs += t.HostS
		if end := t.Start.Add(time.Duration(t.HostS * float64(time.Second))); end.After(last) {
			last = end
		}
		return nil
	})
	s.before, s.after = first.Sub(began).Seconds(), ended.Sub(last).Seconds()
	s.between = max(last.Sub(first).Seconds()-s.runs-s.guests, 0)
	return s, err
}

func (s spent) plus(o spent) spent {
	return spent{s.runs + o.runs, s.guests + o.guests, s.between + o.between, s.before + o.before, s.after + o.after}
}

// String gives the shares in per cent.
func (s spent) String() string {
	share := 100 / (s.runs + s.guests + s.between + s.before + s.after)
	return fmt.Sprintf("%.0f %% the command's runs, %.0f %% before the first guest, %.0f %% making guests, %.0f %% between runs, %.0f %% after the last",
		share*s.runs, share*s.before, share*s.guests, share*s.between, share*s.after)
}
