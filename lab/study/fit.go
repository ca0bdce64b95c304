package study

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/lab/proc"
	"tare/lab/workload"
	"tare/notebook"
	fitkind "tare/notebook/kinds/fit"
	"tare/stats"
)

// fitOK is an objective of how many guests fit: "p95 < 1.5x".
var fitOK = regexp.MustCompile(`^\s*p([1-9][0-9])\s*<\s*([0-9]+(?:\.[0-9]+)?)\s*x\s*$`)

const (
	mostFit      = 512              // guests
	fitRuns      = 20               // of the measured guest at each number of guests, at most, while it is sought
	fitBlock     = 30               // more of them each time, where they leave open whether a number keeps the objective
	fitMost      = 800              // of them in all, at each number
	fitSettling  = 10 * time.Minute // for which a search without a time budget goes on to settle what it found
	fitWatch     = time.Second      // for which neighbours are watched at least: in less the kernel has not counted what they wait for
	fitRounds    = 2                // searches: the second says how far the first can be trusted
	fitWait      = 0.1              // share of the time that something waits, from which on it counts as what ran out
	fitProcesses = 0.9              // share of the threads that the host can have
)

// parseFit reads an objective; false: it is none.
func parseFit(text string) (f fitkind.Config, ok bool) {
	m := fitOK.FindStringSubmatch(text)
	if m == nil {
		return f, false
	}
	factor, err := strconv.ParseFloat(m[2], 64)
	if err != nil || factor <= 1 || factor > 1000 {
		return f, false
	}
	return fitkind.Config{Metric: "p" + m[1], Factor: factor, To: mostFit}, true
}

// attempt is one number of guests, and what its runs have given so far.
type attempt struct {
	fitkind.Step
	waited map[string]time.Duration // for which something of the host waited, of ran
	ran    time.Duration
	tail   stats.Estimate // of its values
	clear  bool           // its runs would decide it, were the value alone exactly what it seems to be
}

// crowd is a search for how many guests fit: which number comes next, and which has to be settled. It is a function of the attempts alone, the first of
// which is the measured guest alone. What it thinks of a number may change as that has more runs.
type crowd struct {
	fitkind.Config
	q     float64 // the quantile of the runs that is meant
	tried []*attempt
}

// ends are the least number that missed the objective, and the greatest below it that kept it; nil: none yet.
func (c *crowd) ends() (met, missed *attempt) {
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

// number is the next number of guests to try; false: there is none.
func (c *crowd) number() (guests int, ok bool) {
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

// next is the attempt that shall have runs, and how many: a number of guests that was not tried yet; and where there is none, one of those that leave open what
// was found. settles says which. nil: the search is over.
func (c *crowd) next() (a *attempt, runs int, settles bool) {
	if len(c.tried) > 0 && c.tried[0].Failure != "" {
		return nil, 0, false
	}
	if n, ok := c.number(); ok {
		a = &attempt{Step: fitkind.Step{Guests: n}}
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

// judge says of each attempt whether it keeps the objective: by the quantile of its runs over that of the runs alone. It is decided where the interval of that
// ratio excludes the objective's factor. The interval holds at any time (stats.Anytime), each of the two quantiles' with half of what may be wrong. It is of this
// guest: what another would have is not in it.
func (c *crowd) judge() {
	for i, a := range c.tried {
		if a.tail.N != len(a.Values) {
			a.tail = stats.Anytime(a.Values, c.q, stats.Alpha/2)
		}
		if a.Runs, a.Met, a.Decided, a.clear = len(a.Values), i == 0, i == 0, i == 0; a.Runs > 0 {
			a.Tail = a.tail.Value
		}
		v, alone := a.tail, c.tried[0].tail
		if i == 0 || a.Failure != "" || v.N == 0 || alone.N == 0 {
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

// open are the attempts on which what was found rests, and which more runs could decide.
func (c *crowd) open() (all []*attempt) {
	met, missed := c.ends()
	for _, a := range []*attempt{met, missed} {
		if a != nil && !a.Decided && a.Failure == "" && (len(a.Values) < fitMost || len(c.tried[0].Values) < fitMost) {
			all = append(all, a)
		}
	}
	return all
}

// more are the attempts that shall have more runs so that the open ones are decided, none twice: the guest alone, and those that are not clear.
func (c *crowd) more() (all []*attempt) {
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

// fit seeks how many guests fit. over: the guest is of no use any more. The error is of a guest that cannot be removed.
func (r *Run) fit(ctx context.Context, g Guest, s *service, ready *workload.Ready, t notebook.Treatment) (tr notebook.Trial, over bool, err error) {
	search := crowd{Config: *fitkind.Of(r.Plan.Study)}
	search.q, _ = strconv.ParseFloat("0."+search.Metric[1:], 64)
	if slices.ContainsFunc(ready.Workload.Also, func(m workload.Metric) bool { return m.Name == search.Metric }) {
		search.q = 0.5 // each run says its own, of which the median counts
	}
	var found *fitkind.Fitted
	defer func() { tr.Seen = fitkind.Seen{Fitted: found} }()
	tr.Start = time.Now().UTC()
	tr.Command = ready.Workload.Command
	seats, err := r.Lab.Seats(t)
	if err != nil {
		tr.Failure = "its neighbours have no CPUs: " + err.Error()
		return tr, true, nil
	}
	c := &company{of: t, seats: seats, spread: true}
	defer func() {
		tr.HostS = time.Since(tr.Start).Seconds()
		if lerr := c.leave(ctx); lerr != nil {
			err = errors.Join(err, fmt.Errorf("a neighbour could not be removed: %w; `tare clean` tries again", lerr))
		}
	}()
	end := r.share()
	for {
		a, runs, settles := search.next()
		if a == nil || settles && time.Now().After(end) {
			break
		}
		var until time.Time
		if settles {
			until = end
		}
		dead, err := r.crowded(ctx, c, g, s, ready, &search, a, runs, until)
		if err != nil || ctx.Err() != nil {
			return tr, true, err // its caller sees the end of ctx
		}
		if dead || search.tried[0].Failure != "" {
			tr.Failure = a.Failure
		}
		if found = search.found(); tr.Failure != "" {
			return tr, dead, nil
		}
	}
	n := found.Guests
	tr.Value, tr.Figures = 1/float64(n), map[string]float64{fitkind.Guests.Name: float64(n)}
	r.notes = append(r.notes, fitting(t, search.Config, *found))
	return tr, false, nil
}

// share is when a search has had its part of the time that all searches have; without a time budget that is fitSettling from now.
func (r *Run) share() time.Time {
	if r.Deadline.IsZero() {
		return time.Now().Add(fitSettling)
	}
	left := 0
	for _, t := range r.Plan.Study.Treatments {
		for round := range r.Plan.Study.Design.Most(t) {
			if !r.gaveUp[t.ID] && len(r.todo(t, round)) > 0 {
				left++
			}
		}
	}
	return time.Now().Add(time.Duration(0.9 * float64(time.Until(r.Deadline)) / float64(max(left, 1)))) // the rest is for making and removing guests
}

// found is what the attempts say. The failure of the guest alone is none of theirs.
func (c *crowd) found() *fitkind.Fitted {
	f := &fitkind.Fitted{}
	for _, a := range c.tried {
		f.Steps = append(f.Steps, a.Step)
	}
	met, missed := c.ends()
	if met != nil {
		f.Guests, f.Decided = met.Guests, met.Decided
	}
	if missed != nil {
		f.Decided = f.Decided && (missed.Decided || missed.Failure != "")
		f.RanOut, f.Why = ranOut(missed.Step)
	}
	return f
}

// fitting says what a search found, and how sure that is.
func fitting(t notebook.Treatment, f fitkind.Config, found fitkind.Fitted) string {
	guests := "guests fit"
	if found.Guests == 1 {
		guests = "guest fits"
	}
	text := fmt.Sprintf("%s: %d %s (%s)", t.ID, found.Guests, guests, f.Objective())
	least := slices.IndexFunc(found.Steps, func(s fitkind.Step) bool { return s.Guests == found.Guests && s.Guests > 1 })
	if least >= 0 {
		text += "; " + said(found.Steps[least])
	}
	if found.RanOut == "" {
		text += "; more are not tried"
	} else {
		text += fmt.Sprintf("; what runs out first is %s: %s", found.RanOut, found.Why)
	}
	return text + "; all of it is from one measured guest, and another may be slower or faster"
}

// crowded makes the measured guest's neighbours as many as the attempt has, and has it run until the attempt decides, at most so many times more, or until
// then; a zero time is none. Its neighbours are watched for all of that time at once. dead: the guest is of no use any more, as the attempt's failure says.
func (r *Run) crowded(ctx context.Context, c *company, g Guest, s *service, ready *workload.Ready, search *crowd, a *attempt, runs int, until time.Time) (dead bool, err error) {
	defer search.judge()
	if err := c.shrink(ctx, a.Guests-1); err != nil {
		return true, err
	}
	kinds := slices.Repeat([]string{notebook.BusyCPU}, a.Guests-1-len(c.guests))
	if a.Failure, err = r.add(ctx, c, g, kinds); a.Failure != "" || err != nil {
		return false, errors.Join(err, left(&a.Step), c.shrink(ctx, len(c.works))) // those that have no work yet
	}
	stand := len(a.Values)
	var before map[string]time.Duration
	var began time.Time
	busy := c.watch(g)
	for i := 0; i <= runs || time.Since(began) < fitWatch; i++ {
		if !until.IsZero() && time.Now().After(until) {
			break
		}
		tr, dead, err := r.time(ctx, g, s, ready, c.of, stepIn(i))
		if err != nil || ctx.Err() != nil {
			return dead, err
		}
		if tr.Failure != "" {
			accompanied(&tr, busy)
			a.Failure = tr.Failure
			return dead, left(&a.Step)
		}
		if i == 0 {
			busy, before, began = c.watch(g), pressures(), time.Now()
			continue // it warms up
		}
		v := tr.Value
		if own, ok := tr.Figures[search.Metric]; ok {
			v = own
		}
		a.Values = append(a.Values, v)
		if search.judge(); a.Guests > 1 && (a.Decided || until.IsZero() && a.clear) && time.Since(began) >= fitWatch {
			break
		}
	}
	if len(a.Values) == stand {
		return false, left(&a.Step)
	}
	if _, why, _ := busy(); why != "" { // so these runs were none beside such neighbours
		a.Values, a.Failure = a.Values[:stand], why
		return false, left(&a.Step)
	}
	a.ran += time.Since(began)
	a.wait(before, pressures())
	return false, left(&a.Step)
}

// wait adds what waited between the two readings.
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

// stepIn is a run of a step; the first is a warm-up.
func stepIn(i int) step { return step{warmup: i == 0, index: i} }

// left reads what the host has left with so many guests.
func left(s *fitkind.Step) (err error) {
	if s.Available, err = proc.Host.Memory("MemAvailable"); err != nil {
		return err
	}
	s.Processes, s.Most, err = proc.Host.Tasks()
	return err
}

// pressures are those that the kernel counts.
func pressures() map[string]time.Duration {
	all := map[string]time.Duration{}
	for _, of := range []string{"cpu", "memory", "io"} {
		if d, err := proc.Host.Pressure(of); err == nil { // else it is not known, which the record says by having none
			all[of] = d
		}
	}
	return all
}

// ranOut says what the host had too little of when so many guests did not fit.
func ranOut(s fitkind.Step) (what, why string) {
	switch {
	case s.Most > 0 && float64(s.Processes) >= fitProcesses*float64(s.Most):
		return fitkind.OutOfProcesses, fmt.Sprintf("with %d guests the host had %d of the %d threads that it can have", s.Guests, s.Processes, s.Most)
	case strings.Contains(s.Failure, "of memory left"):
		return fitkind.OutOfMemory, s.Failure
	case s.Failure != "":
		return fitkind.OutOfEngine, fmt.Sprintf("with %d guests: %s", s.Guests, s.Failure)
	}
	most, share := "", fitWait
	names := map[string]string{"memory": fitkind.OutOfMemory, "io": fitkind.OutOfIO, "cpu": fitkind.OutOfCPU}
	for _, of := range []string{"memory", "io", "cpu"} {
		if p := s.Pressure[of]; p >= share {
			most, share = of, p
		}
	}
	if most == "" {
		return fitkind.OutOfCPU, said(s) + "; nothing waited for memory or I/O for as much as a tenth of the time"
	}
	return names[most], fmt.Sprintf("%s; for %.0f %% of the time something waited for %s", said(s), 100*share, names[most])
}

// said is what a step's runs were like, how sure that is, and whether it decides.
func said(s fitkind.Step) string {
	text := fmt.Sprintf("with %d guests it is %.3g times its value alone (", s.Guests, s.Ratio)
	switch {
	case s.Low > 0 && s.High > 0:
		text += fmt.Sprintf("%.3g to %.3g, ", s.Low, s.High)
	case s.Low > 0:
		text += fmt.Sprintf("%.3g or more, ", s.Low)
	case s.High > 0:
		text += fmt.Sprintf("%.3g or less, ", s.High)
	}
	runs := "runs"
	if s.Runs == 1 {
		runs = "run"
	}
	text += fmt.Sprintf("%d %s", s.Runs, runs)
	if worth := float64(len(s.Values)) / stats.Resemblance(s.Values); worth < 0.9*float64(len(s.Values)) {
		text += fmt.Sprintf(" that resemble each other, worth %.0f", worth)
	}
	text += ")"
	if !s.Decided {
		text += ", which does not decide it"
	}
	return text
}
