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
	"tare/stats"
)

// fitOK is an objective of how many guests fit: "p95 < 1.5x".
var fitOK = regexp.MustCompile(`^\s*p([1-9][0-9])\s*<\s*([0-9]+(?:\.[0-9]+)?)\s*x\s*$`)

const (
	mostFit      = 512 // guests
	fitRuns      = 20  // of the measured guest at each number of guests, at most
	fitRounds    = 2   // searches: the second says how far the first can be trusted
	fitWait      = 0.1 // share of the time that something waits, from which on it counts as what ran out
	fitProcesses = 0.9 // share of the threads that the host can have
)

// parseFit reads an objective; false: it is none.
func parseFit(text string) (f notebook.Fit, ok bool) {
	m := fitOK.FindStringSubmatch(text)
	if m == nil {
		return f, false
	}
	factor, err := strconv.ParseFloat(m[2], 64)
	if err != nil || factor <= 1 || factor > 1000 {
		return f, false
	}
	return notebook.Fit{Metric: "p" + m[1], Factor: factor, To: mostFit}, true
}

// crowd is a search for how many guests fit: which number comes next. It is a function of the steps alone.
type crowd struct {
	notebook.Fit
	met, missed int // the greatest number that kept the objective, and the least that did not; 0: none yet
}

// next is the next number of guests; false: there is none.
func (c *crowd) next() (guests int, ok bool) {
	switch {
	case c.met == 0:
		return 1, c.missed == 0
	case c.missed == 0:
		return min(2*c.met, c.To), c.met < c.To
	}
	return (c.met + c.missed) / 2, c.missed-c.met > 1
}

// take takes what a step gave.
func (c *crowd) take(s notebook.FitStep) {
	if s.Met {
		c.met = s.Guests
	} else {
		c.missed = s.Guests
	}
}

// quantile says of values which quantile they have, by the nearest rank.
func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(int(math.Ceil(q*float64(len(sorted))-1e-9))-1, 0)]
}

// atLeast is the chance of k or more of n, each with the chance p.
func atLeast(k, n int, p float64) (sum float64) {
	for i := k; i <= n; i++ {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(i + 1))
		c, _ := math.Lgamma(float64(n - i + 1))
		sum += math.Exp(a - b - c + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return min(sum, 1)
}

// keeps judges the runs of a step: the quantile q of all runs is below the bound, or it is not. It is decided by the exact binomial test of how many runs
// are over the bound, at the level of an interval that is looked at after every run (stats.Confidence); after the last run it is as the runs have it.
func keeps(over, runs int, q float64) (met, decided bool) {
	alpha := 1 - stats.Sure(fitRuns).Level()
	switch {
	case atLeast(over, runs, 1-q) <= alpha:
		return false, true // so many would hardly be over it
	case 1-atLeast(over+1, runs, 1-q) <= alpha:
		return true, true // more would be
	}
	return float64(over) <= (1-q)*float64(runs), false
}

// fit seeks how many guests fit. over: the guest is of no use any more. The error is of a guest that cannot be removed.
func (r *Run) fit(ctx context.Context, g Guest, s *service, ready *workload.Ready, t notebook.Treatment, rehearsal bool) (tr notebook.Trial, over bool, err error) {
	f := *r.Plan.Study.Fit
	tr.Start = time.Now().UTC()
	tr.Command = ready.Workload.Command
	if rehearsal {
		f.To = 1
	}
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
	found := &notebook.Fitted{}
	search := crowd{Fit: f}
	alone := 0.0
	for {
		n, ok := search.next()
		if !ok {
			break
		}
		step, dead, err := r.crowded(ctx, c, g, s, ready, n, alone, f)
		if err != nil || ctx.Err() != nil {
			return tr, true, err // its caller sees the end of ctx
		}
		found.Steps = append(found.Steps, step)
		if n == 1 {
			if alone = step.Tail; step.Failure != "" || rehearsal {
				tr.Failure = step.Failure
				return tr, dead, nil
			}
			step.Met = true
		}
		search.take(step)
		if dead {
			tr.Failure, tr.Fitted = step.Failure, found
			return tr, true, nil
		}
	}
	found.Guests = search.met
	if i := slices.IndexFunc(found.Steps, func(s notebook.FitStep) bool { return s.Guests == search.missed }); i >= 0 {
		found.RanOut, found.Why = ranOut(found.Steps[i])
	}
	tr.Fitted = found
	tr.Value, tr.Figures = 1/float64(found.Guests), map[string]float64{notebook.FitFigure.Name: float64(found.Guests)}
	r.notes = append(r.notes, fitting(t, f, *found))
	return tr, false, nil
}

// fitting says what a search found.
func fitting(t notebook.Treatment, f notebook.Fit, found notebook.Fitted) string {
	guests := "guests fit"
	if found.Guests == 1 {
		guests = "guest fits"
	}
	text := fmt.Sprintf("%s: %d %s (%s)", t.ID, found.Guests, guests, f.Objective())
	if found.RanOut == "" {
		return fmt.Sprintf("%s, the most that are tried", text)
	}
	return fmt.Sprintf("%s; what runs out first is %s: %s", text, found.RanOut, found.Why)
}

// crowded makes the measured guest's neighbours as many as it takes, and has it run until it is decided whether it keeps the objective. dead: the guest is of
// no use any more.
func (r *Run) crowded(ctx context.Context, c *company, g Guest, s *service, ready *workload.Ready, n int, alone float64, f notebook.Fit) (step notebook.FitStep, dead bool, err error) {
	step = notebook.FitStep{Guests: n, Bound: alone * f.Factor}
	if err := c.shrink(ctx, n-1); err != nil {
		return step, true, err
	}
	kinds := slices.Repeat([]string{notebook.BusyCPU}, n-1-len(c.guests))
	if step.Failure, err = r.add(ctx, c, g, kinds); step.Failure != "" || err != nil {
		return step, false, errors.Join(err, left(&step), c.shrink(ctx, len(c.works))) // those that have no work yet
	}
	q, _ := strconv.ParseFloat("0."+f.Metric[1:], 64)
	if slices.ContainsFunc(ready.Workload.Also, func(m notebook.Metric) bool { return m.Name == f.Metric }) {
		q = 0.5 // each run says its own, of which the median counts
	}
	before := pressures()
	began := time.Now()
	var values []float64
	for i := range fitRuns + 1 {
		busy := c.watch(g)
		tr, d, err := r.time(ctx, g, s, ready, c.of, stepIn(i))
		if err != nil || ctx.Err() != nil {
			return step, d, err
		}
		if _, over := accompanied(&tr, busy); over || tr.Failure != "" {
			step.Failure = tr.Failure
			return step, d, left(&step)
		}
		if i == 0 {
			before, began = pressures(), time.Now()
			continue // it warms up
		}
		v := tr.Value
		if own, ok := tr.Figures[f.Metric]; ok {
			v = own
		}
		if values = append(values, v); n > 1 && v >= step.Bound {
			step.Over++
		}
		if n > 1 {
			if step.Met, step.Decided = keeps(step.Over, len(values), q); step.Decided {
				break
			}
		}
	}
	step.Runs, step.Tail = len(values), quantile(values, q)
	if n > 1 && !step.Decided {
		step.Met = step.Tail < step.Bound
	}
	took := time.Since(began)
	for of, now := range pressures() {
		if was, ok := before[of]; ok {
			if step.Pressure == nil {
				step.Pressure = map[string]float64{}
			}
			step.Pressure[of] = min((now-was).Seconds()/took.Seconds(), 1)
		}
	}
	return step, false, left(&step)
}

// stepIn is a run of a step; the first is a warm-up.
func stepIn(i int) step { return step{warmup: i == 0, index: i} }

// left reads what the host has left with so many guests.
func left(s *notebook.FitStep) (err error) {
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
func ranOut(s notebook.FitStep) (what, why string) {
	switch {
	case s.Most > 0 && float64(s.Processes) >= fitProcesses*float64(s.Most):
		return notebook.OutOfProcesses, fmt.Sprintf("with %d guests the host had %d of the %d threads that it can have", s.Guests, s.Processes, s.Most)
	case strings.Contains(s.Failure, "of memory left"):
		return notebook.OutOfMemory, s.Failure
	case s.Failure != "":
		return notebook.OutOfEngine, fmt.Sprintf("with %d guests: %s", s.Guests, s.Failure)
	}
	most, share := "", fitWait
	names := map[string]string{"memory": notebook.OutOfMemory, "io": notebook.OutOfIO, "cpu": notebook.OutOfCPU}
	for _, of := range []string{"memory", "io", "cpu"} {
		if p := s.Pressure[of]; p >= share {
			most, share = of, p
		}
	}
	said := fmt.Sprintf("with %d guests %d of %d runs took %.3g or more, and the bound is %.3g", s.Guests, s.Over, s.Runs, min(s.Tail, s.Bound), s.Bound)
	if !s.Decided {
		said += ", which is too close to be sure of"
	}
	if most == "" {
		return notebook.OutOfCPU, said + "; nothing waited for memory or I/O for as much as a tenth of the time"
	}
	return names[most], fmt.Sprintf("%s; for %.0f %% of the time something waited for %s", said, 100*share, names[most])
}
