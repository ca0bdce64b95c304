// Package predict says what work would cost in an environment in which it never ran, from what it does on bare metal. It is a pure function
// of summaries. docs/model.md has the equations, and says what they leave out.
//
// A calibration has measured programs that repeat one kind of event (the workload "events") and other workloads, on bare metal and in the
// environments. On bare metal it counted their events. In an environment each event takes a little more time or less, so that
//
//	r = 1 + Σ rate(event) · size · cost(event)
//
// where r is the time relative to bare metal's, a rate is in events per second of bare metal's time, and a cost is in seconds. The size is the
// kernel's time for the program's events, relative to its time for the same events in a loop. The costs are estimated from all rows
// together. How far predictions are off is estimated by predicting each workload from the others.
package predict

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/notebook"
)

// Probes is the workload that repeats one kind of event.
const Probes = "events"

// Event is what has a cost.
type Event struct {
	Name   string
	Figure string // of the tracers: how many there are; of waits their reason
	Tracer string // that counts it
}

// Tracers are those that count the events, and that a calibration and a run for a prediction need.
var Tracers = []string{notebook.TracerCalls, notebook.TracerScheduler, notebook.TracerCPU, notebook.TracerMemory}

// waits are the reasons for which a thread leaves its core that have costs: the events "network_waits" and so on. Those for a disk are DiskWaits,
// and those for a time are "sleep_calls".
var waits = []string{notebook.WallNetwork, notebook.WallFutex, notebook.WallOther}

// Two are no events. Their rates are the shares of the time in which the work itself computes, and in which it waits for a disk.
const (
	Computing = "computing"
	DiskWaits = "disk_waits"
)

// Events are all that have costs.
var Events = func() []Event {
	all := []Event{{Computing, "user_s", notebook.TracerCPU}}
	for _, tracer := range notebook.Tracers {
		if tracer.Name != notebook.TracerCalls {
			continue
		}
		for _, m := range tracer.Metrics {
			all = append(all, Event{m.Name, m.Name, tracer.Name})
		}
	}
	all = append(all, Event{"minor_faults", "minor_faults", notebook.TracerMemory}, Event{DiskWaits, notebook.WallBlock, notebook.TracerScheduler})
	for _, reason := range waits {
		all = append(all, Event{reason + "_waits", reason, notebook.TracerScheduler})
	}
	return all
}()

// syncCalls is the place of flushes in Events.
var syncCalls = slices.IndexFunc(Events, func(e Event) bool { return e.Name == "sync_calls" })

// Work is what one workload with its parameters did on bare metal.
type Work struct {
	Treatment notebook.Treatment // on bare metal
	Rates     []float64          // of Events, per second of bare metal's time
	Trials    int                // traced ones, in which the events were counted
	Size      float64            // of its events: bare metal's time in the kernel for them, relative to its time for the same events in the workload Probes

	system float64 // share of the time without tracers that it is in the kernel, plus the time that the tracers add there
	slower float64 // its time with tracers, divided by its time without them
}

// sizeOf is the size of the work's events of a kind.
func (w *Work) sizeOf(e Event) float64 {
	if e.inKernel() {
		return w.Size
	}
	return 1
}

// probe says whether the work repeats one kind of event.
func (w *Work) probe() bool { return w.Treatment.Workload == Probes }

// Row is what one work took in an environment.
type Row struct {
	*Work
	Ratio, Low, High float64   // measured, as a cost: above 1 is worse
	Shown            bool      // it differs from bare metal by more than the study's margin
	scaled, variance float64   // of the ratio, on the scale of predictions
	noise            float64   // standard deviation, no less than single disturbed rounds make it
	freedom          float64   // degrees by which variance is known
	shares           []float64 // Rates times Size, as shares of the highest rates in the calibration
}

// Environment is what a calibration says of one platform with its engine, provisioning and size.
type Environment struct {
	Treatment notebook.Treatment // without its work
	Emulated  bool
	Rows      []*Row     // of workloads
	Probes    []*Row     // of the workload Probes
	Failed    []Skipped  // what bare metal did and the environment did not
	Cannot    data.Doubt // why there is no model; nil: there is one

	computes       float64 // standard deviation between works of what computing takes, on the scale of predictions
	ignoresFlushes bool    // what was synced in its guests did not reach the disk

	own    []float64          // bare metal's time for each of Events at most, in seconds
	priors map[float64]belief // of the costs, by the probes, for each misfit.own; nil: the probes do not give any
	model  *model
}

// Skipped is work that tells nothing of a calibration or of an environment.
type Skipped struct {
	Treatment notebook.Treatment
	Why       data.Doubt
}

// Calibration is what a study says of events and environments.
type Calibration struct {
	Host         data.Host
	Environments []*Environment
	Skipped      []Skipped // works without counts
	works        []*Work
	kernel       kernel
}

// Prediction is the ratio to be expected of a work in an environment, as a cost, with its interval. All are NaN where Refused says why there
// is none.
type Prediction struct {
	Environment      *Environment
	Ratio, Low, High float64
	Parts            []Part // what events add to the ratio, the largest first
	Refused          data.Doubt

	half, wider float64 // half width of the interval on the scale of predictions, and in standard deviations
}

// Part is what the events of one kind add to a ratio.
type Part struct {
	Event
	Rate             float64 // per second of bare metal's time
	Value, Low, High float64
}

// Forecast is what is predicted of one work.
type Forecast struct {
	*Work
	Reference   *Environment // in which it was observed, and which ratios are relative to; nil: bare metal
	Seconds     float64      // for which it was observed
	Predictions []Prediction // of each environment
}

// Forecasts are what a calibration says of works that ran on bare metal.
type Forecasts struct {
	Works   []Forecast
	Skipped []Skipped
	Doubts  []data.Doubt
}

// Predict reads what ran on bare metal, and predicts it in each environment of the calibration. It fails where that was on another host.
func (c *Calibration) Predict(run *data.Summary) (*Forecasts, error) {
	out := &Forecasts{}
	for _, h := range run.Hosts {
		if err := c.same(h.ID, h.Name, h.Kernel, out); err != nil {
			return nil, err
		}
	}
	works, skipped := worksOf(run)
	out.Skipped = skipped
	if len(works)+len(skipped) == 0 {
		return nil, errors.New("nothing there is timed work that ran on bare metal: a prediction needs such a run with --explain=" + strings.Join(Tracers, ","))
	}
	c.warn(works, out)
	for _, w := range works {
		w.Size = c.kernel.size(w)
		f := Forecast{Work: w}
		for _, e := range c.Environments {
			f.Predictions = append(f.Predictions, e.predict(w))
		}
		out.Works = append(out.Works, f)
	}
	return out, nil
}

// warn notes what limits predictions of works.
func (c *Calibration) warn(works []*Work, out *Forecasts) {
	known := slices.DeleteFunc(slices.Clone(works), func(w *Work) bool {
		return !slices.ContainsFunc(c.works, func(o *Work) bool { return o.Treatment.ID == w.Treatment.ID })
	})
	if len(known) > 0 {
		out.Doubts = append(out.Doubts, Included{len(known), known[0].Treatment})
	}
	syncs := slices.ContainsFunc(works, func(w *Work) bool { return w.Rates[syncCalls] > seldom })
	for _, e := range c.Environments {
		if syncs && e.ignoresFlushes {
			out.Doubts = append(out.Doubts, IgnoredFlushes{e.Treatment})
		}
	}
}

// same says whether work ran on the calibration's host. Another kernel there is a doubt.
func (c *Calibration) same(id, name, kernel string, out *Forecasts) error {
	if id != c.Host.ID {
		own := c.Host.Name
		if own == name {
			own, name = fmt.Sprintf("%s (%.8s)", own, c.Host.ID), fmt.Sprintf("%s (%.8s)", name, id)
		}
		return fmt.Errorf("the calibration is of the host %s, and the work ran on %s: costs of events differ between hosts; run the calibration on %[2]s", own, name)
	}
	if kernel != c.Host.Kernel {
		out.Doubts = append(out.Doubts, OtherKernel{c.Host.Kernel, kernel})
	}
	return nil
}

// predict is the prediction of a work in the environment.
func (e *Environment) predict(w *Work) Prediction {
	switch {
	case e.model == nil:
		return refuse(e, e.Cannot)
	case !e.Treatment.Instance.SameSize(w.Treatment.Instance):
		return refuse(e, OtherSize{w.Treatment.Instance.Name})
	}
	return e.model.predict(e, w)
}

func refuse(e *Environment, why data.Doubt) Prediction {
	nan := math.NaN()
	return Prediction{Environment: e, Ratio: nan, Low: nan, High: nan, Refused: why}
}

const (
	// mostFactor is how far the ends of an interval may be from its value for it to be of use.
	mostFactor = 2.5
	// beyond is how many times more often than in any program of the calibration an event may happen. From there on nothing is known of it.
	beyond = 3.0
	// seldom is how many events a second are too few to matter, whatever they cost. The start of a program has a few of many kinds.
	seldom = 20.0
)

// predict is the prediction of a work by a model of an environment.
func (m *model) predict(e *Environment, w *Work) Prediction {
	if why := m.unlike(w); why != nil {
		return refuse(e, why)
	}
	shares := e.shares(w)
	x, sd, share := m.costs.predict(shares, m.misfit)
	wider := m.wider.of(share)
	p := within(e, x, wider*sd, wider)
	if p.Refused != nil {
		return p
	}
	var parts shareOfEvents
	parts.add(1, shares, m.costs)
	p.Parts = parts.list(w, wider)
	return p
}

// shareOfEvents is what each of Events adds to a ratio, and its variance.
type shareOfEvents struct{ value, variance []float64 }

// add adds what events add by costs, times a sign.
func (s *shareOfEvents) add(sign float64, shares []float64, costs belief) {
	if s.value == nil {
		s.value, s.variance = make([]float64, len(Events)), make([]float64, len(Events))
	}
	for k, share := range shares {
		s.value[k] += sign * share * costs.mean.AtVec(k)
		s.variance[k] += share * share * costs.cov.At(k, k)
	}
}

// list has the parts of a work's ratio, the largest first, with intervals of so many standard deviations.
func (s *shareOfEvents) list(w *Work, wider float64) (parts []Part) {
	for k, event := range Events {
		half := wider * math.Sqrt(s.variance[k])
		parts = append(parts, Part{event, w.Rates[k], s.value[k], s.value[k] - half, s.value[k] + half})
	}
	slices.SortStableFunc(parts, func(a, b Part) int { return cmp.Compare(math.Abs(b.Value), math.Abs(a.Value)) })
	return parts
}

// within is a prediction on the scale of predictions with half the width of its interval, or the refusal where that is too wide.
func within(e *Environment, x, half, wider float64) Prediction {
	p := Prediction{Environment: e, Ratio: unscaled(x), Low: unscaled(x - half), High: unscaled(x + half), half: half, wider: wider}
	if factor := max(p.High/p.Ratio, p.Ratio/p.Low); !(factor <= mostFactor) {
		return refuse(e, TooWide{factor})
	}
	return p
}

// unlike says which events a work has many more of than any program from which the model was learned; nil: none.
func (m *model) unlike(w *Work) data.Doubt {
	for k, event := range Events {
		if rate := w.Rates[k] * w.sizeOf(event); w.Rates[k] > seldom && rate > beyond*m.most[k] {
			return Unlike{event}
		}
	}
	return nil
}
