package crowd

import (
	"fmt"
	"time"

	"tare/lab/engine"
	"tare/notebook"
)

// Stayed starts watching whether a guest and its load stay on their CPUs. The function it returns is called after the trial: it
// writes what was seen into the trial's record, and fails a trial that left its CPUs. Both calls must be made while nothing is
// measured.
func Stayed(g Guest, s *Service) func(tr *notebook.Trial) {
	its := g.Watch()
	var load engine.Watch
	if s != nil {
		load = s.Place.Watch()
	}
	return func(tr *notebook.Trial) {
		elapsed := time.Duration(tr.ElapsedS * float64(time.Second))
		if its != nil {
			tr.Confined = its(tr.Usage, elapsed)
			fail(tr, "", tr.Confined)
		}
		if load != nil {
			fail(tr, "its load: ", load(notebook.Usage{}, 0))
		}
	}
}

// fail marks a trial that left its CPUs as failed, unless it has already failed.
func fail(tr *notebook.Trial, who string, c *notebook.Confined) {
	if why := escaped(c); why != "" && tr.Failure == "" {
		tr.Failure = who + why
	}
}

// escaped says how a guest left its CPUs; empty if it did not.
func escaped(c *notebook.Confined) string {
	switch c.Escape {
	case "":
		return ""
	case notebook.EscapeSet:
		return "its CPU set was changed or removed while it ran, so it could use other CPUs than " + c.CPUs
	case notebook.EscapeLeft:
		return "one of its processes left the cgroup in which the kernel holds it to CPUs " + c.CPUs
	case notebook.EscapeForeign:
		return fmt.Sprintf("it used %.3g s of CPU time on other CPUs than %s", *c.ForeignS, c.CPUs)
	case notebook.EscapeTime:
		return "it used more CPU time than CPUs " + c.CPUs + " have in the time that it took"
	}
	return "it cannot be shown that it stayed on CPUs " + c.CPUs + ": " + c.Why
}
