package study

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
	capacitykind "tare/notebook/kinds/capacity"
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
	halvings = 3               // of the way between the last rate that met the objective and the first that missed it
	mostRate = 1e6             // requests a second
	overtime = 2 * time.Minute // that a load may take beyond its step, to begin and to hear late answers
)

var figureOK = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_.]{0,39}$`)

// parse reads it; a nil one is none.
func (c *Capacity) parse() (*capacitykind.Config, error) {
	if c == nil {
		return nil, nil
	}
	out := &capacitykind.Config{From: c.From, To: c.To, Raise: 0.5, HoldS: 10}
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

// ascent is a search for a capacity: which rate comes next, and how long it is held. It is a function of the steps alone.
//
// A step misses by chance where the host stalls, and one meets the objective by chance where it had few requests. So a miss is repeated, and of three steps at
// a rate two decide. Once a rate has missed, this holds for each rate, whichever way it came out first, and each is held until enough requests were sent. Where
// all rates below a miss meet the objective, the miss is looked at again.
type ascent struct {
	capacitykind.Config
	met    []capacitykind.Step // the rates that met the objective, rising
	firm   int                 // the last of them, if two steps say so; else 0
	missed capacitykind.Step   // the least that missed it; zero: none yet
	sure   bool                // another miss bears it out
	tries  []capacitykind.Step // at a rate that is not decided
	halved int
}

// last is the greatest rate that met the objective; zero: none did.
func (a *ascent) last() capacitykind.Step {
	if len(a.met) == 0 {
		return capacitykind.Step{}
	}
	return a.met[len(a.met)-1]
}

// next is the next rate, and for how many seconds it is held; false: there is none.
func (a *ascent) next() (rate int, seconds float64, ok bool) {
	rate, ok = a.rate()
	seconds = a.HoldS
	if len(a.tries) > 0 || a.missed.Rate > 0 { // it is near the capacity
		seconds = a.long(rate)
	}
	return rate, seconds, ok
}

func (a *ascent) rate() (rate int, ok bool) {
	low, high := a.last().Rate, a.missed.Rate
	switch {
	case len(a.tries) > 0:
		return a.tries[0].Rate, true
	case low == 0 && high == 0:
		return a.From, true
	case low == 0 || high == 0 && low >= a.To:
		return 0, false
	case high == 0:
		return min(a.To, max(low+1, int(math.Round(float64(low)*(1+a.Raise))))), true
	case a.firm != low:
		return low, true
	}
	if rate = int(math.Round(math.Sqrt(float64(low) * float64(high)))); a.halved < halvings && low < rate && rate < high {
		a.halved++
		return rate, true
	}
	return high, !a.sure
}

const (
	beyond   = 2   // requests of a step, of which two at a rate decide, that shall have taken longer than the percentile
	mostHold = 120 // seconds for which a rate is held for that, at most
)

// long is for how many seconds a rate is held that decides: until so many requests were sent that the objective's percentile, if it is one, is of enough.
func (a *ascent) long(rate int) float64 {
	percent, err := strconv.ParseFloat(strings.TrimPrefix(a.Metric, "p"), 64)
	if err != nil || !(percent < 100) {
		return a.HoldS
	}
	return max(a.HoldS, min(math.Ceil(beyond/(1-percent/100)/float64(rate)), mostHold))
}

// take takes what a step gave.
func (a *ascent) take(s capacitykind.Step) {
	a.tries = append(a.tries, s)
	met, near := 0, a.missed.Rate > 0
	for _, t := range a.tries {
		if t.Met {
			met++
		}
	}
	if met < 2 && len(a.tries)-met < 2 && (near || !s.Met) {
		return
	}
	s = middle(a.tries)
	a.tries = nil
	if a.last().Rate == s.Rate { // it was looked at again
		a.met = a.met[:len(a.met)-1]
	}
	switch {
	case s.Met:
		if a.met = append(a.met, s); near {
			a.firm = s.Rate
		}
		if s.Rate == a.missed.Rate { // so the climb goes on
			a.missed, a.halved = capacitykind.Step{}, 0
		}
	default:
		a.missed, a.sure = s, near
		if last := a.last(); !near && last.Rate > 0 && a.HoldS >= a.long(last.Rate) { // the first of its two steps was long enough
			a.tries = append(a.tries, last)
		}
	}
}

// middle is of the steps at a rate the one that decided: the middle one, of two misses the lesser.
func middle(steps []capacitykind.Step) capacitykind.Step {
	worse := func(s capacitykind.Step) (n int) { // a failure is worse than a miss
		if !s.Met {
			n++
		}
		if s.Failure != "" {
			n++
		}
		return n
	}
	slices.SortStableFunc(steps, func(s, t capacitykind.Step) int {
		return cmp.Or(cmp.Compare(worse(s), worse(t)), cmp.Compare(s.Tail, t.Tail))
	})
	return steps[(len(steps)-1)/2]
}

// capacity is the rate at which the objective is just met, between the last two, as if the time grew evenly in its logarithm;
// cause says why there is none.
func (a *ascent) capacity() (rate float64, cause string) {
	objective, met := a.Objective(), a.last()
	switch {
	case met.Rate == 0:
		said := fmt.Sprintf("%s was %.3g s", a.Metric, a.missed.Tail)
		if a.missed.Failure != "" {
			said = a.missed.Failure
		} else if a.missed.Tail <= a.Bound {
			said = fmt.Sprintf("%.3g a second were answered", a.missed.Throughput)
		}
		return 0, fmt.Sprintf("the objective, %s, was missed at the least rate, %d requests a second: %s; begin with less (from)", objective, a.From, said)
	case a.missed.Rate == 0:
		return 0, fmt.Sprintf("the objective, %s, was met at %d requests a second, the most that the study allows: allow more (to)", objective, met.Rate)
	}
	low, high := float64(met.Rate), float64(a.missed.Rate)
	if a.missed.Failure != "" || !(a.missed.Tail > a.Bound) || !(met.Tail > 0) {
		return low, ""
	}
	return low * math.Pow(high/low, math.Log(a.Bound/met.Tail)/math.Log(a.missed.Tail/met.Tail)), ""
}

// climb seeks the capacity of a service, one step alone where it is a warm-up. over: the guest, or its load's place, is of no
// use any more, and failure says why.
func (r *Run) climb(ctx context.Context, s *service, warmup bool) (tr notebook.Trial, over bool) {
	a := ascent{Config: *capacitykind.Of(r.Plan.Study)}
	var seen capacitykind.Seen
	defer func() { tr.Seen = seen }()
	tr.Start = time.Now().UTC()
	ahead, bound, err := s.clock(ctx)
	if err != nil {
		tr.Failure = err.Error() + diagnosis(s.place)
		return tr, true
	}
	var used ruler.Result
	for ctx.Err() == nil {
		rate, seconds, ok := a.next()
		if !ok {
			break
		}
		if a.missed.Rate > 0 || len(a.tries) > 0 { // what it could not answer it may still be working on
			if tr.Failure = s.await(ctx); tr.Failure != "" {
				return tr, true
			}
		}
		order := s.open(rate, seconds)
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
		step := s.ready.Workload.Step(res, rate, a.Config)
		if seconds > a.HoldS {
			step.HoldS = seconds
		}
		a.take(step)
		seen.Steps = append(seen.Steps, step)
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
		tr.Value, tr.Figures = 1/rate, map[string]float64{capacitykind.PerSecond.Name: rate}
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
