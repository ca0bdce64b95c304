package crowd

import (
	"time"

	"tare/lab/engine"
	"tare/notebook"
)

// WatchConfinement starts watching whether a guest and its load stay on their CPUs. The function it returns is called after the trial: it
// writes what was seen into the trial's record, and fails a trial that left its CPUs. Both calls must be made while nothing is
// measured.
func WatchConfinement(g Guest, s *Service) func(tr *notebook.Trial) {
	its := g.Watch()
	var load engine.Watch
	if s != nil {
		load = s.Place.Watch()
	}
	return func(tr *notebook.Trial) {
		elapsed := time.Duration(tr.ElapsedS * float64(time.Second))
		if its != nil {
			tr.Confined = its(tr.Usage, elapsed)
			fail(tr, escaped(tr.Confined))
		}
		if load != nil {
			if why := escaped(load(notebook.Usage{}, 0)); why != nil {
				fail(tr, notebook.Say("of-load", "cause", why))
			}
		}
	}
}

// fail marks a trial that left its CPUs as failed, unless it has already failed.
func fail(tr *notebook.Trial, why *notebook.Message) {
	if tr.Failure == nil {
		tr.Failure = why
	}
}

// escaped says how a guest left its CPUs; nil if it did not.
func escaped(c *notebook.Confined) *notebook.Message {
	switch c.Escape {
	case "":
		return nil
	case notebook.EscapeSet:
		return notebook.Say("cpu-set-changed", "cpus", c.CPUs)
	case notebook.EscapeLeft:
		return notebook.Say("left-cgroup", "cpus", c.CPUs)
	case notebook.EscapeForeign:
		return notebook.Say("other-cpus-used", "used_s", *c.ForeignS, "cpus", c.CPUs)
	case notebook.EscapeTime:
		return notebook.Say("too-much-cpu-time", "cpus", c.CPUs)
	}
	return notebook.Say("cpus-unproven", "cpus", c.CPUs, "why", c.Why)
}
