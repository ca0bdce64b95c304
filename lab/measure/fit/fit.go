// Package fit searches for the number of guests that fit on the host. It adds busy guests next to the measured one until the
// measured one no longer keeps an objective, which is relative to the time that its work takes without neighbours.
package fit

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"tare/lab/crowd"
	"tare/lab/measure"
	"tare/lab/workload"
	"tare/notebook"
	record "tare/notebook/kinds/fit"
)

// Kind is fit as a kind of study. A study file cannot name it; an objective does: "p95 < 1.5x".
var Kind = measure.Kind{
	Name: record.Name,
	Rules: measure.Rules{
		Search: true, Bounded: true, Crowd: true, BareMetal: true,
		Untraced: "the search times its trials, and traced trials take longer",
	},
	Seek: seek,
}

// objectiveOK matches an objective: "p95 < 1.5x".
var objectiveOK = regexp.MustCompile(`^\s*p([1-9][0-9])\s*<\s*([0-9]+(?:\.[0-9]+)?)\s*x\s*$`)

const (
	mostFit      = 512              // guests
	fitRuns      = 20               // runs of the measured guest at each number of guests during the search, at most
	fitBlock     = 30               // further runs each time, while it is undecided whether a number keeps the objective
	fitMost      = 800              // runs in all, at each number of guests
	fitSettling  = 10 * time.Minute // how long a search without a time budget goes on to settle its result
	fitWatch     = time.Second      // shortest watch of neighbours: in less the kernel has not counted what they wait for
	fitRounds    = 2                // searches: the second shows how reliable the first is
	fitWait      = 0.1              // share of the time spent waiting for something, from which it counts as what ran out
	fitProcesses = 0.9              // share of the greatest number of threads of the host, from which threads count as what ran out
)

// seek reads an objective; false: the text is not one.
func seek(text string) (measure.Config, bool) {
	m := objectiveOK.FindStringSubmatch(text)
	if m == nil {
		return nil, false
	}
	factor, err := strconv.ParseFloat(m[2], 64)
	if err != nil || factor <= 1 || factor > 1000 {
		return nil, false
	}
	return config{Config: record.Config{Metric: "p" + m[1], Factor: factor, To: mostFit}}, true
}

// config is how a study searches for the number of guests that fit.
type config struct {
	measure.Defaults
	record.Config
}

// Record implements measure.Config.
func (c config) Record() any { return &c.Config }

// Identity implements measure.Config: nothing, because the command itself names the objective.
func (config) Identity([]*workload.Ready) []any { return nil }

// Design implements measure.Config. Each trial is a whole search.
func (config) Design(d notebook.Design) notebook.Design {
	d.Floor, d.Cap, d.Precision, d.Trials, d.Warmups = fitRounds, fitRounds, 0, 1, 0
	d.Emulated = 1
	return d
}

// Neighbours implements measure.Config.
func (config) Neighbours() []string { return []string{notebook.BusyCPU} }

// Accepts implements measure.Config.
func (c config) Accepts(w *workload.Workload) error {
	m := w.Primary()
	for _, o := range w.Secondary() {
		if o.Name == c.Metric {
			m = o
		}
	}
	switch {
	case !m.Directed():
		return fmt.Errorf("has a %s without a direction; name a time, or another metric where lower is better", m.Name)
	case m.MoreIsBetter():
		return fmt.Errorf("has a %s where higher is better, but the search for how many guests fit needs a metric where lower is better: name a time, or another such metric", m.Name)
	}
	return nil
}

// Metrics implements measure.Config.
func (c config) Metrics(*workload.Workload, []string) (notebook.Metric, []notebook.Metric) {
	return c.Figure(), []notebook.Metric{record.Guests}
}

// Subject implements measure.Config.
func (c config) Subject(b measure.Bench, of measure.Cell) measure.Subject {
	return &subject{measure.NewPlain(b, of), c.Config}
}

type subject struct {
	*measure.Plain
	record.Config
}

func (s *subject) neighbour(busy string) *workload.Ready { return s.Neighbour(s.Treatment, busy) }

// Trial implements measure.Subject: it searches for the number of guests that fit.
func (s *subject) Trial(ctx context.Context, _ measure.Step) (tr notebook.Trial, over bool, err error) {
	search := search{Config: s.Config}
	search.q, _ = strconv.ParseFloat("0."+search.Metric[1:], 64)
	if slices.ContainsFunc(s.Ready.Workload.Also, func(m workload.Metric) bool { return m.Name == search.Metric }) {
		search.q = 0.5 // each run reports this figure itself, and the median of the runs counts
	}
	var found *record.Fitted
	defer func() { tr.Seen = record.Seen{Fitted: found} }()
	tr.Start = time.Now().UTC()
	tr.Command = s.Ready.Workload.Command
	c, cause := crowd.NewNeighbours(s.Bench, s.Treatment, true, s.neighbour)
	if cause != nil {
		tr.Failure = cause
		return tr, true, nil
	}
	defer func() {
		tr.HostS = time.Since(tr.Start).Seconds()
		if lerr := c.Leave(ctx); lerr != nil {
			err = errors.Join(err, fmt.Errorf("a neighbour could not be removed: %w; `tare clean` tries again", lerr))
		}
	}()
	end := s.Until(fitSettling)
	for {
		a, runs, settles := search.next()
		if a == nil || settles && time.Now().After(end) {
			break
		}
		var until time.Time
		if settles {
			until = end
		}
		dead, err := s.attempt(ctx, c, &search, a, runs, until)
		if err != nil || ctx.Err() != nil {
			return tr, true, err // the caller checks ctx
		}
		if dead || search.tried[0].Failure != nil {
			tr.Failure = a.Failure
		}
		if found = search.found(); tr.Failure != nil {
			return tr, dead, nil
		}
	}
	n := found.Guests
	tr.Value, tr.Figures = 1/float64(n), map[string]float64{record.Guests.Name: float64(n)}
	s.Note(fitting(s.Treatment, search.Config, *found))
	return tr, false, nil
}

// attempt gives the measured guest as many neighbours as the attempt needs. It then runs the measured guest until the attempt is
// decided, at most runs more times, and not after until, unless that is zero. The neighbours are watched over all of these runs
// together. dead: the guest can no longer be used; the attempt's failure says why.
func (s *subject) attempt(ctx context.Context, c *crowd.Neighbours, search *search, a *attempt, runs int, until time.Time) (dead bool, err error) {
	defer search.judge()
	if err := c.Shrink(ctx, a.Guests-1); err != nil {
		return true, err
	}
	kinds := slices.Repeat([]string{notebook.BusyCPU}, a.Guests-1-c.Len())
	if a.Failure, err = c.Add(ctx, s.Guest(), kinds...); a.Failure != nil || err != nil {
		a.full = c.Full()
		return false, errors.Join(err, left(&a.Step), c.Shrink(ctx, c.Working())) // removes the neighbours that have no work yet
	}
	stand := len(a.Values)
	var before map[string]time.Duration
	var began time.Time
	busy := c.Watch(s.Guest())
	for i := 0; i <= runs || time.Since(began) < fitWatch; i++ {
		if !until.IsZero() && time.Now().After(until) {
			break
		}
		tr, dead, err := s.Time(ctx, stepIn(i))
		if err != nil || ctx.Err() != nil {
			return dead, err
		}
		if tr.Failure != nil {
			crowd.CheckNeighbours(&tr, busy)
			a.Failure = tr.Failure
			return dead, left(&a.Step)
		}
		if i == 0 {
			busy, before, began = c.Watch(s.Guest()), pressures(), time.Now()
			continue // the first run warms up
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
	if _, why, _ := busy(); why != nil { // these runs did not have the neighbours they should have had
		a.Values, a.Failure = a.Values[:stand], why
		return false, left(&a.Step)
	}
	a.ran += time.Since(began)
	a.wait(before, pressures())
	return false, left(&a.Step)
}

// stepIn is run i of an attempt; the first is a warm-up.
func stepIn(i int) measure.Step {
	if i == 0 {
		return measure.Step{Role: measure.Warmup}
	}
	return measure.Step{Index: i}
}
