package predict

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"tare/desk/data"
	"tare/notebook"
)

// Calibrate reads a calibration. It fails where that is none: without the workload Probes, or of several hosts.
func Calibrate(s *data.Summary) (*Calibration, error) {
	c := &Calibration{}
	if len(s.Hosts) != 1 {
		return nil, fmt.Errorf("these folders are of %d hosts: costs of events differ between hosts; name folders of one", len(s.Hosts))
	}
	c.Host = s.Hosts[0]
	if err := uniform(s); err != nil {
		return nil, err
	}
	c.works, c.Skipped = worksOf(s)
	c.kernel = kernelOf(c.works)
	for _, w := range c.works {
		w.Size = c.kernel.size(w)
	}
	c.gather(s)
	if len(c.Environments) == 0 {
		return nil, errors.New("no calibration: no environment has a ratio to bare metal whose events were counted; measure one with sudo tare run calibration --explain=" + strings.Join(Tracers, ","))
	}
	for _, e := range c.Environments {
		e.scale()
		e.computes = e.computingSpread()
		if loop, ok := probed(e.Probes); ok {
			e.priors = loop.inPrograms()
		}
	}
	for i, m := range c.fit("") {
		e := c.Environments[i]
		switch {
		case len(e.Probes) < leastProbes:
			e.Cannot = TooFewProbes{len(e.Probes), leastProbes}
		case len(e.Rows) < leastRows:
			e.Cannot = TooFewWorks{len(e.Rows), leastRows}
		case m == nil:
			e.Cannot = NotFitted{}
		default:
			e.model = m
		}
	}
	return c, nil
}

const (
	leastProbes = 10 // kinds of events, of some thirty
	leastRows   = 19 // of which 95 % can be told from all
)

// uniform refuses folders that mix what has costs of its own: several kernels of the host, or several images of one workload.
func uniform(s *data.Summary) error {
	for _, d := range s.Doubts {
		if k, is := d.(data.KernelChanged); is {
			return fmt.Errorf("%s was measured under the kernel %s, and an earlier folder under %s: costs of events differ between kernels; name folders of one", k.Dir, k.Kernel, k.Earlier)
		}
	}
	seen := map[string]bool{}
	for _, r := range s.Rows {
		if seen[r.Treatment.ID] {
			return fmt.Errorf("%s was measured with two images or configurations: name folders that have one", r.Treatment.ID)
		}
		seen[r.Treatment.ID] = true
	}
	return nil
}

// gather puts the rows of each environment together.
func (c *Calibration) gather(s *data.Summary) {
	works := map[string]*Work{}
	for _, w := range c.works {
		works[w.Treatment.ID] = w
	}
	for _, r := range s.Rows {
		base := s.Base(r)
		if t := r.Treatment; t.Platform == notebook.BM || r.Kind != "" || base == nil || t.Isolation != "" || len(t.Factors) > 0 || t.HostCores > 0 {
			continue // a rung of the ladder, or an experiment's setting
		}
		w := works[base.Treatment.ID]
		if w == nil {
			continue
		}
		e := c.environment(r.Treatment)
		if _, ignores := data.Has[data.IgnoresFlushes](r); ignores {
			e.ignoresFlushes = true
		}
		row, why := rowOf(s, r, base, w)
		switch {
		case why != nil:
			e.Failed = append(e.Failed, Skipped{w.Treatment, why})
		case w.probe():
			e.Probes = append(e.Probes, row)
		default:
			e.Rows = append(e.Rows, row)
		}
	}
	for _, e := range c.Environments {
		steady(e.Probes)
		steady(e.Rows)
	}
}

// environment is the one in which a treatment ran. Services are connected by a bridge if the study does not say otherwise; what needs no
// network is not connected, and nothing else of its guests differs.
func (c *Calibration) environment(t notebook.Treatment) *Environment {
	if t.Network == notebook.NetBridge {
		t.Network = ""
	}
	t.ID, t.Workload, t.Params, t.Rounds = "", "", nil, 0
	for _, e := range c.Environments {
		if e.Treatment.Variant() == t.Variant() && e.Treatment.Provisioning == t.Provisioning && e.Treatment.Instance == t.Instance {
			return e
		}
	}
	e := &Environment{Treatment: t, Emulated: !t.Representative()}
	c.Environments = append(c.Environments, e)
	return e
}

// scale finds bare metal's time for each event at most: the reciprocal of the highest rate of any work. The costs are estimated as shares
// of it. Of an event that no program has it is 0: a few of them do not matter, and work with more is refused.
func (e *Environment) scale() {
	e.own = make([]float64, len(Events))
	for k, most := range highest(e.Probes, e.Rows) {
		switch {
		case k == computing:
			e.own[k] = 1
		case most > 0:
			e.own[k] = 1 / most
		}
	}
	for _, rows := range [][]*Row{e.Probes, e.Rows} {
		for _, r := range rows {
			r.shares = e.shares(r.Work)
		}
	}
}

// computingSpread is the standard deviation of what computing takes in the environment, by the probes that only compute. Reading the clock without
// a system call is computing, too.
func (e *Environment) computingSpread() float64 {
	const only = 0.9
	var ratios []float64
	for _, p := range e.Probes {
		if p.Rates[computing] > only {
			ratios = append(ratios, p.scaled)
		}
	}
	return math.Sqrt(spread(ratios) * float64(len(ratios)))
}

// highest are the highest rates of each event.
func highest(all ...[]*Row) []float64 {
	most := make([]float64, len(Events))
	for _, rows := range all {
		for _, r := range rows {
			for k, rate := range r.Rates {
				most[k] = max(most[k], rate*r.sizeOf(Events[k]))
			}
		}
	}
	return most
}

// shares are a work's rates as shares of the highest rates. The rates of events in the kernel are multiplied by the size of the work's events.
func (e *Environment) shares(w *Work) []float64 {
	all := make([]float64, len(Events))
	for k, rate := range w.Rates {
		all[k] = rate * w.sizeOf(Events[k]) * e.own[k]
	}
	return all
}
