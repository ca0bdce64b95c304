package predict

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// Observed predicts a container that was observed while it ran, in an engine, with a provisioning and so many CPUs (0: no limit). Ratios are
// relative to that environment, and bare metal is one of those that are predicted. It fails where the calibration does not have the
// environment, or is of another host than h.
func (c *Calibration) Observed(o *notebook.Observation, engine, provisioning string, cores float64, h notebook.Host) (*Forecasts, error) {
	out := &Forecasts{}
	if err := c.same(h.ID, h.Hostname, h.Kernel, out); err != nil {
		return nil, err
	}
	reference := c.engine(engine, provisioning, cores)
	if reference == nil {
		return nil, fmt.Errorf("the calibration has nothing of %s, in which %s runs: a prediction is relative to that; calibrate with --platforms bm,cn:%s and those that you want", engine, o.Target.Name, engine)
	}
	w, why := observedWork(o)
	if why != nil {
		out.Skipped = append(out.Skipped, Skipped{notebook.Treatment{Workload: o.Target.Name}, why})
		return out, nil
	}
	w.Size = c.kernel.size(w)
	c.warn([]*Work{w}, out)
	bare := &Environment{Treatment: notebook.Treatment{Platform: notebook.BM, Instance: reference.Treatment.Instance}}
	f := Forecast{Work: w, Reference: reference, Seconds: o.Seconds}
	for _, e := range slices.Concat([]*Environment{bare}, c.Environments) {
		if e != reference && e.Treatment.Instance == reference.Treatment.Instance {
			f.Predictions = append(f.Predictions, e.instead(reference, w))
		}
	}
	out.Works = append(out.Works, f)
	return out, nil
}

// engine is the environment of an engine that is most like a container's: with as many CPUs, and then with the provisioning.
func (c *Calibration) engine(name, provisioning string, cores float64) (found *Environment) {
	most := 0
	for _, e := range c.Environments {
		t := e.Treatment
		if t.Platform != notebook.CN || t.Engine != name {
			continue
		}
		like := 1
		if t.Instance.Cores == cores {
			like += 2
		}
		if t.Provisioning == provisioning {
			like++
		}
		if like > most {
			most, found = like, e
		}
	}
	return found
}

// observedWork is what the target did in each second in which its threads ran.
func observedWork(o *notebook.Observation) (*Work, data.Doubt) {
	w := &Work{Treatment: notebook.Treatment{Workload: o.Target.Name}, Trials: 1}
	wall := map[string]float64{}
	for _, s := range o.Slices {
		for key, seconds := range s.Wall {
			wall[key] += seconds
		}
	}
	// While it waits for requests, nothing can slow it down.
	ran := o.Figures["run_s"] + wall[notebook.WallBlock]
	inUser := wall[notebook.WallUser] / (wall[notebook.WallUser] + wall[notebook.WallSystem])
	w.system = o.Figures["run_s"] * (1 - inUser) / ran
	for _, e := range Events {
		n, known := o.Figures[e.Figure]
		switch {
		case slices.Contains(waits, e.Figure):
			n, known = float64(o.Waits[e.Figure]), o.Waits != nil
		case e.Name == Computing:
			n, known = o.Figures["run_s"]*inUser, true
		case e.Name == DiskWaits:
			n, known = wall[notebook.WallBlock], true
		}
		if !known || !(ran > 0) || !stats.Finite(n) {
			return nil, Uncounted{e.Tracer}
		}
		w.Rates = append(w.Rates, max(n, 0)/ran)
	}
	return w, nil
}

// instead is what the work takes in the environment relative to a reference, in which its events were counted: 1 + Σ f·z·(c − c of the
// reference), with the size z, and f per second there.
func (e *Environment) instead(reference *Environment, w *Work) Prediction {
	ratio, variance, wider := 1.0, 0.0, 0.0
	var parts shareOfEvents
	for _, of := range []struct {
		*Environment
		sign float64
	}{{e, 1}, {reference, -1}} {
		if of.Treatment.Platform == notebook.BM {
			continue
		}
		if of.model == nil {
			return refuse(e, of.Cannot)
		}
		if why := of.model.unlike(w); why != nil {
			return refuse(e, why)
		}
		shares := of.shares(w)
		more, v := of.model.adds(shares)
		ratio, variance, wider = ratio+of.sign*more, variance+v, max(wider, of.model.wider.few, of.model.wider.many)
		parts.add(of.sign, shares, of.model.costs)
	}
	p := within(e, scaled(ratio), wider*math.Sqrt(variance)*slopeAt(ratio), wider)
	if p.Refused != nil {
		return p
	}
	p.Parts = parts.list(w, wider)
	return p
}

// adds is what events add to the ratio, and its variance with that of the misfit.
func (m *model) adds(shares []float64) (more, variance float64) {
	_, sd, _ := m.costs.predict(shares, m.misfit)
	more = mat.Dot(mat.NewVecDense(len(shares), shares), m.costs.mean)
	sd /= slopeAt(1 + more)
	return more, sd * sd
}
