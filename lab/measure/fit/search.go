package fit

import (
	"math"
	"slices"
	"time"

	"tare/lab/proc"
	"tare/notebook"
	record "tare/notebook/kinds/fit"
	"tare/stats"
)

// attempt is one number of guests and the results of its runs so far.
type attempt struct {
	record.Step
	waited map[string]time.Duration // how long work waited for each resource of the host, out of ran
	ran    time.Duration
	tail   stats.Estimate // the quantile of its values
	full   bool           // the host has no memory for so many guests
	clear  bool           // its runs would decide it if the value without neighbours were known exactly
}

// search is a search for the number of guests that fit: it says which number comes next, and which number must be settled. It
// depends only on its attempts; the first of them is the measured guest without neighbours. More runs may change the judgement of a
// number.
type search struct {
	record.Config
	q     float64 // the quantile of the runs that the objective names
	tried []*attempt
}

// ends returns the least number that missed the objective and the greatest number below it that kept the objective; nil: none yet.
func (c *search) ends() (met, missed *attempt) {
	for _, a := range c.tried {
		if !a.Met && (missed == nil || a.Guests < missed.Guests) {
			missed = a
		}
	}
	for _, a := range c.tried {
		if a.Met && (met == nil || a.Guests > met.Guests) && (missed == nil || a.Guests < missed.Guests) {
			met = a
		}
	}
	return met, missed
}

// number is the next number of guests to try; false: no number is left.
func (c *search) number() (guests int, ok bool) {
	switch met, missed := c.ends(); {
	case len(c.tried) == 0:
		return 1, true
	case met == nil:
		return 0, false
	case missed == nil:
		return min(2*met.Guests, c.To), met.Guests < c.To
	default:
		return (met.Guests + missed.Guests) / 2, missed.Guests-met.Guests > 1
	}
}

// next returns the attempt to run next, and the number of its runs. A number of guests that was not tried yet comes first; after
// these, an attempt that leaves the result undecided, which settles reports. nil: the search is over.
func (c *search) next() (a *attempt, runs int, settles bool) {
	if len(c.tried) > 0 && c.tried[0].Failure != nil {
		return nil, 0, false
	}
	if n, ok := c.number(); ok {
		a = &attempt{Step: record.Step{Guests: n}}
		c.tried = append(c.tried, a)
		return a, fitRuns, false
	}
	for _, m := range c.more() {
		if a == nil || len(m.Values) < len(a.Values) {
			a = m
		}
	}
	return a, fitBlock, true
}

// judge decides for each attempt whether it keeps the objective, from the ratio of the quantile of its runs to the quantile of the
// runs without neighbours. An attempt is decided if the ratio's interval excludes the factor of the objective. The interval is
// valid at any time (stats.Anytime); each of the two quantiles gets half of the error probability. The interval holds for this
// guest and does not cover differences between guests.
func (c *search) judge() {
	for i, a := range c.tried {
		if a.tail.N != len(a.Values) {
			a.tail = stats.Anytime(a.Values, c.q, stats.Alpha/2)
		}
		if a.Runs, a.Met, a.Decided, a.clear = len(a.Values), i == 0, i == 0, i == 0; a.Runs > 0 {
			a.Tail = a.tail.Value
		}
		v, alone := a.tail, c.tried[0].tail
		if i == 0 || a.Failure != nil || v.N == 0 || alone.N == 0 {
			continue
		}
		a.Ratio, a.Low, a.High = v.Value/alone.Value, 0, 0
		if !math.IsInf(alone.High, 0) && v.Low > 0 {
			a.Low = v.Low / alone.High
		}
		if !math.IsInf(v.High, 0) && alone.Low > 0 {
			a.High = v.High / alone.Low
		}
		bound := c.Factor * alone.Value
		a.Met, a.clear = a.Ratio < c.Factor, v.High < bound || v.Low >= bound
		a.Decided = a.Low >= c.Factor || a.High > 0 && a.High < c.Factor
	}
}

// open returns the attempts that decide the result and that more runs could settle.
func (c *search) open() (all []*attempt) {
	met, missed := c.ends()
	for _, a := range []*attempt{met, missed} {
		if a != nil && !a.Decided && a.Failure == nil && (len(a.Values) < fitMost || len(c.tried[0].Values) < fitMost) {
			all = append(all, a)
		}
	}
	return all
}

// more returns the attempts that need more runs to settle the open ones, each once: the guest without neighbours, and the open
// attempts that are not clear.
func (c *search) more() (all []*attempt) {
	open := c.open()
	if len(open) == 0 {
		return nil
	}
	alone := c.tried[0]
	if len(alone.Values) < fitMost {
		all = append(all, alone)
	}
	for _, a := range open {
		if len(a.Values) < fitMost && (!a.clear || len(all) == 0) {
			all = append(all, a)
		}
	}
	return all
}

// found is the result of all attempts. It leaves out the failure of the guest without neighbours.
func (c *search) found() *record.Fitted {
	f := &record.Fitted{}
	for _, a := range c.tried {
		f.Steps = append(f.Steps, a.Step)
	}
	met, missed := c.ends()
	if met != nil {
		f.Guests, f.Decided = met.Guests, met.Decided
	}
	if missed != nil {
		f.Decided = f.Decided && (missed.Decided || missed.Failure != nil)
		f.RanOut, f.Why = ranOut(missed.Step, missed.full)
	}
	return f
}

// fitting says what a search found and how sure that is.
func fitting(t notebook.Treatment, f record.Config, found record.Fitted) *notebook.Message {
	var step *notebook.Message
	if i := slices.IndexFunc(found.Steps, func(s record.Step) bool { return s.Guests == found.Guests && s.Guests > 1 }); i >= 0 {
		step = said(found.Steps[i])
	}
	return notebook.Say("fitting", "treatment", t.ID, "guests", found.Guests, "metric", f.Metric, "factor", f.Factor, "step", step, "ran_out", found.RanOut, "why", found.Why)
}

// wait adds the waiting between two readings.
func (a *attempt) wait(before, after map[string]time.Duration) {
	for of, now := range after {
		was, ok := before[of]
		if !ok {
			continue
		}
		if a.waited == nil {
			a.waited, a.Pressure = map[string]time.Duration{}, map[string]float64{}
		}
		a.waited[of] += now - was
		a.Pressure[of] = min(a.waited[of].Seconds()/a.ran.Seconds(), 1)
	}
}

// left reads what the host has left with the guests of a step.
func left(s *record.Step) (err error) {
	if s.Available, err = proc.Host.Memory("MemAvailable"); err != nil {
		return err
	}
	s.Processes, s.Most, err = proc.Host.Tasks()
	return err
}

// pressures are the waiting times that the kernel counts (PSI).
func pressures() map[string]time.Duration {
	all := map[string]time.Duration{}
	for _, of := range []string{"cpu", "memory", "io"} {
		if d, err := proc.Host.Pressure(of); err == nil { // otherwise it is unknown, and the record does not list it
			all[of] = d
		}
	}
	return all
}

// ranOut says which resource of the host ran out when the guests of a step did not fit; full: the host had no memory for them.
func ranOut(s record.Step, full bool) (what string, why *notebook.Message) {
	switch {
	case s.Most > 0 && float64(s.Processes) >= fitProcesses*float64(s.Most):
		return record.OutOfProcesses, notebook.Say("many-threads", "guests", s.Guests, "threads", s.Processes, "most", s.Most)
	case full:
		return record.OutOfMemory, s.Failure
	case s.Failure != nil:
		return record.OutOfEngine, notebook.Say("with-guests", "guests", s.Guests, "cause", s.Failure)
	}
	most, share := "", fitWait
	names := map[string]string{"memory": record.OutOfMemory, "io": record.OutOfIO, "cpu": record.OutOfCPU}
	for _, of := range []string{"memory", "io", "cpu"} {
		if p := s.Pressure[of]; p >= share {
			most, share = of, p
		}
	}
	if most == "" {
		return record.OutOfCPU, notebook.Say("nothing-waited", "step", said(s))
	}
	return names[most], notebook.Say("waited", "step", said(s), "share", share, "for", names[most])
}

// said describes the runs of a step, how sure their ratio is, and whether it decides.
func said(s record.Step) *notebook.Message {
	worth := any(nil) // nil: each run counts as one
	if n := float64(len(s.Values)) / stats.Resemblance(s.Values); n < 0.9*float64(len(s.Values)) {
		worth = n
	}
	return notebook.Say("step", "guests", s.Guests, "ratio", s.Ratio, "low", s.Low, "high", s.High, "runs", s.Runs, "worth", worth, "decided", s.Decided)
}
