package study

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"

	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
)

// Capacity is how a study file says how capacities are sought: the rate of requests is raised step by step until the objective
// is missed, and then the greatest that meets it is closed in on.
type Capacity struct {
	Objective string `yaml:"objective"`       // METRIC=TIME: p99=50ms
	From      int    `yaml:"from,omitempty"`  // requests a second at the first step; default 10
	To        int    `yaml:"to,omitempty"`    // at most; default a million
	Raise     string `yaml:"raise,omitempty"` // from step to step; default 50%
	Hold      string `yaml:"hold,omitempty"`  // each step; default 10s
}

const (
	halvings = 4               // of the way between the last rate that met the objective and the first that missed it
	mostRate = 1e6             // requests a second
	overtime = 2 * time.Minute // that a load may take beyond its step, to begin and to hear late answers
)

var figureOK = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_.]{0,39}$`)

// parse reads it; a nil one is none.
func (c *Capacity) parse() (*notebook.Capacity, error) {
	if c == nil {
		return nil, nil
	}
	out := &notebook.Capacity{From: c.From, To: c.To, Raise: 0.5, HoldS: 10}
	metric, text, ok := strings.Cut(c.Objective, "=")
	bound, err := time.ParseDuration(text)
	if !ok || err != nil || bound <= 0 || !figureOK.MatchString(metric) {
		return nil, fmt.Errorf("objective: %q: METRIC=TIME was expected, like p99=50ms", c.Objective)
	}
	out.Metric, out.Bound = metric, bound.Seconds()
	if out.From == 0 {
		out.From = 10
	}
	if out.To == 0 {
		out.To = mostRate
	}
	if out.From < 1 || out.To > mostRate || out.From >= out.To {
		return nil, fmt.Errorf("from: %d to %d requests a second: numbers from 1 to %d, the second greater, were expected", out.From, out.To, int(mostRate))
	}
	if c.Raise != "" {
		if out.Raise, err = parseShare(c.Raise); err != nil || out.Raise < 0.01 {
			return nil, fmt.Errorf("raise: %q: a share from 1%% to 100%% was expected", c.Raise)
		}
	}
	if c.Hold != "" {
		d, err := time.ParseDuration(c.Hold)
		if err != nil || d < time.Second || d > time.Hour || d%time.Second != 0 {
			return nil, fmt.Errorf("hold: %q: a time in whole seconds from 1s to 1h was expected", c.Hold)
		}
		out.HoldS = d.Seconds()
	}
	return out, nil
}

// ascent is a search for a capacity: which rate comes next. It is a function of the steps alone.
type ascent struct {
	notebook.Capacity
	met, missed notebook.Step // the greatest rate that met the objective, and the least that missed it; zero: none yet
	halved      int
}

// next is the next rate; false: there is none.
func (a *ascent) next() (rate int, ok bool) {
	switch {
	case a.met.Rate == 0 && a.missed.Rate == 0:
		return a.From, true
	case a.met.Rate == 0 || a.missed.Rate == 0 && a.met.Rate >= a.To:
		return 0, false
	case a.missed.Rate == 0:
		return min(a.To, max(a.met.Rate+1, int(math.Round(float64(a.met.Rate)*(1+a.Raise))))), true
	}
	rate = int(math.Round(math.Sqrt(float64(a.met.Rate) * float64(a.missed.Rate))))
	a.halved++
	return rate, a.halved <= halvings && rate > a.met.Rate && rate < a.missed.Rate
}

// take takes what a step gave.
func (a *ascent) take(s notebook.Step) {
	if s.Met {
		a.met = s
	} else {
		a.missed = s
	}
}

// capacity is the rate at which the objective is just met, between the last two, as if the time grew evenly in its logarithm;
// cause says why there is none.
func (a *ascent) capacity() (rate float64, cause string) {
	objective := a.Objective()
	switch {
	case a.met.Rate == 0:
		said := fmt.Sprintf("%s was %.3g s", a.Metric, a.missed.Tail)
		if a.missed.Failure != "" {
			said = a.missed.Failure
		} else if a.missed.Tail <= a.Bound {
			said = fmt.Sprintf("%.3g a second were answered", a.missed.Throughput)
		}
		return 0, fmt.Sprintf("the objective, %s, was missed at the least rate, %d requests a second: %s; begin with less (from)", objective, a.From, said)
	case a.missed.Rate == 0:
		return 0, fmt.Sprintf("the objective, %s, was met at %d requests a second, the most that the study allows: allow more (to)", objective, a.met.Rate)
	}
	low, high := float64(a.met.Rate), float64(a.missed.Rate)
	if a.missed.Failure != "" || !(a.missed.Tail > a.Bound) || !(a.met.Tail > 0) {
		return low, ""
	}
	return low * math.Pow(high/low, math.Log(a.Bound/a.met.Tail)/math.Log(a.missed.Tail/a.met.Tail)), ""
}

// climb seeks the capacity of a service, one step alone where it is a warm-up. over: the guest, or its load's place, is of no
// use any more, and failure says why.
func (r *Run) climb(ctx context.Context, s *service, warmup bool) (tr notebook.Trial, over bool) {
	a := ascent{Capacity: *r.Plan.Study.Capacity}
	tr.Start = time.Now().UTC()
	ahead, bound, err := s.clock(ctx)
	if err != nil {
		tr.Failure = err.Error() + diagnosis(s.place)
		return tr, true
	}
	var used ruler.Result
	for ctx.Err() == nil {
		rate, ok := a.next()
		if !ok {
			break
		}
		if a.missed.Rate > 0 { // what it could not answer it may still be working on
			if tr.Failure = s.await(ctx); tr.Failure != "" {
				return tr, true
			}
		}
		order := s.open(rate, a.HoldS)
		tr.Command = order.Argv
		asking, enough := s.during(ctx)
		res, host, err := s.place.Ruler().Run(asking, order)
		enough()
		switch {
		case s.over():
			tr.Failure = "its service ended: " + s.how()
			return tr, true
		case err != nil:
			tr.Failure = err.Error() + diagnosis(s.place)
			return tr, true
		}
		tr.ElapsedS, tr.HostS = tr.ElapsedS+res.Elapsed.Seconds(), tr.HostS+host.Seconds()
		used.UserS, used.SystemS = used.UserS+res.UserS, used.SystemS+res.SystemS
		if len(tr.Warnings) == 0 {
			tr.Warnings = saturated(s.usage(res, 0, 0), res.Elapsed)
		}
		step := s.ready.Workload.Step(res, rate, a.Capacity)
		a.take(step)
		tr.Steps = append(tr.Steps, step)
		if warmup {
			tr.Failure = step.Failure
			return tr, false
		}
	}
	tr.Load = s.usage(used, ahead, bound)
	later, laterBound, err := s.clock(ctx)
	if err != nil {
		tr.Failure = err.Error() + diagnosis(s.place)
		return tr, true
	}
	rate, cause := a.capacity()
	if tr.Failure = cmp.Or(wander(ahead, bound, later, laterBound, time.Duration(tr.HostS*float64(time.Second))), cause); tr.Failure == "" {
		tr.Value, tr.Figures = 1/rate, map[string]float64{notebook.CapacityFigure.Name: rate}
	}
	return tr, false
}

// open is the order of one step of a capacity's search.
func (s *service) open(rate int, seconds float64) ruler.Order {
	w := s.ready.Workload
	o := w.Order(w.Load.Open, w.AtRate(s.ready.Params, rate, int(seconds)), s.ready.Image, workload.Seat{Instance: s.of.Instance, Address: s.guest.Address().Connect})
	o.Timeout = time.Duration(seconds*float64(time.Second)) + overtime
	return o
}
