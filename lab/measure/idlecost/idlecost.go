//go:build linux

// Package idlecost measures what idle guests cost: the CPU time and the wake-ups of their processes, and how much longer work takes
// in a guest that shares its CPUs with them.
package idlecost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tare/lab/crowd"
	"tare/lab/measure"
	"tare/lab/workload"
	"tare/notebook"
)

// Kind is idle-cost as a kind of study.
var Kind = measure.Kind{
	Name: "idle-cost",
	Rules: measure.Rules{
		Once: "each trial makes its own idle guests", Untraced: "a trial consists of many runs, and tracers see only their sum",
		LoadHere: "the study sends no requests to a service", Search: true, Crowd: true,
	},
	Part: measure.PartOf(config.checked),
}

const (
	mostGuests  = 200
	usualRuns   = 5
	leastWatch  = 2 * time.Second        // for which idle guests are watched
	watchBefore = 500 * time.Millisecond // wait before that, until the effects of a guest's start are over
)

// config is how a study measures the cost of idle guests. Its fields are the kind's part of a study file, and of study.json.
type config struct {
	measure.Defaults `yaml:"-" json:"-"`

	Guests []int `yaml:"guests,omitempty" json:"guests"` // numbers of idle guests at the same time, rising; default 1, 4 and 16
	Runs   int   `yaml:"runs,omitempty" json:"runs"`     // runs of the work at each number; default 5
}

// checked is the config with its defaults. An error says what is wrong in it.
func (c config) checked() (measure.Config, error) {
	if len(c.Guests) == 0 {
		c.Guests = []int{1, 4, 16}
	}
	for i, n := range c.Guests {
		if n < 1 || n > mostGuests || i > 0 && n <= c.Guests[i-1] {
			return nil, measure.Wrong("guests", "%v: must be numbers from 1 to %d, each greater than the one before", c.Guests, mostGuests)
		}
	}
	if c.Runs == 0 {
		c.Runs = usualRuns
	}
	if c.Runs < 1 || c.Runs > 100 {
		return nil, measure.Wrong("runs", "%d: must be from 1 to 100", c.Runs)
	}
	return c, nil
}

// Record implements measure.Config.
func (c config) Record() any { return c }

// Identity implements measure.Config.
func (c config) Identity([]*workload.Ready) []any { return []any{c} }

// Accepts implements measure.Config.
func (config) Accepts(w *workload.Workload) error {
	if w.Service != nil {
		return errors.New("is a service: name one whose command ends")
	}
	return nil
}

// slowdown is the metric for a number of idle guests: the time of the work next to them over its time without them.
func slowdown(guests int) notebook.Metric {
	return notebook.Metric{Name: fmt.Sprintf("slowdown(%d)", guests), Unit: "1", Better: notebook.Lower}
}

// What an idle guest uses, at the greatest number of guests.
var (
	cpuTime = notebook.Metric{Name: "idle_guest_cpu", Unit: "ms/s", Better: notebook.Lower}
	wakeUps = notebook.Metric{Name: "idle_guest_wake_ups", Unit: "1/s", Better: notebook.Lower}
)

// Metrics implements measure.Config.
func (c config) Metrics(*workload.Workload, []string) (first notebook.Metric, also []notebook.Metric) {
	for _, n := range c.Guests {
		also = append(also, slowdown(n))
	}
	last := len(also) - 1
	return also[last], append(also[:last:last], cpuTime, wakeUps)
}

// Subject implements measure.Config.
func (c config) Subject(b measure.Bench, of measure.Cell) measure.Subject {
	return &subject{measure.NewPlain(b, of), c}
}

type subject struct {
	*measure.Plain
	config
}

// Trial implements measure.Subject. It times the work without idle guests, and then next to each number of them. A trial that does
// not count is one run without idle guests.
func (s *subject) Trial(ctx context.Context, step measure.Step) (tr notebook.Trial, over bool, err error) {
	if !step.Counts() {
		return s.Time(ctx, step)
	}
	tr.Start = time.Now().UTC()
	var idle []crowd.Guest
	defer func() {
		tr.HostS = time.Since(tr.Start).Seconds()
		err = errors.Join(err, crowd.DestroyAll(ctx, idle))
	}()
	tr.Figures = map[string]float64{}
	alone := 0.0
	for _, n := range append([]int{0}, s.config.Guests...) {
		for len(idle) < n {
			g, cause := s.another(ctx, idle)
			if cause != nil {
				tr.Failure = notebook.Say("of-idle-guest", "guest", len(idle)+1, "of", slices.Max(s.config.Guests), "cause", cause)
				return tr, true, nil
			}
			idle = append(idle, g)
		}
		took, err := s.times(ctx, &tr)
		if tr.Failure != nil || err != nil || ctx.Err() != nil {
			return tr, true, err
		}
		if n == 0 {
			alone = took
			continue
		}
		tr.Figures[slowdown(n).Name] = took / alone
	}
	if cause := s.watch(ctx, idle, tr.Figures); cause != nil {
		tr.Failure = cause
	}
	first, _ := s.Metrics(nil, nil)
	tr.Value = tr.Figures[first.Name]
	return tr, true, nil
}

// another makes one more idle guest, on the measured guest's CPUs; cause says why it cannot.
func (s *subject) another(ctx context.Context, idle []crowd.Guest) (g crowd.Guest, cause *notebook.Message) {
	each, err := (append([]crowd.Guest{s.Guest()}, idle...))[len(idle)].Resident() // all guests are alike
	if err != nil {
		return nil, notebook.ErrorMessage(err)
	}
	if cause := crowd.Room(1+len(idle), each, 0); cause != nil {
		return nil, cause
	}
	ctx, cancel := context.WithTimeout(ctx, crowd.ProvisionTimeout)
	defer cancel()
	g, err = s.Provision(ctx, crowd.Want{Treatment: s.Treatment, ID: crowd.NewID(), Work: s.Ready})
	if err != nil {
		return nil, notebook.Say("no-guest", "cause", err)
	}
	return g, nil
}

// times is the mean time of the runs after the first, which warms up. A run that fails fails the trial.
func (s *subject) times(ctx context.Context, tr *notebook.Trial) (mean float64, err error) {
	for i := range s.config.Runs + 1 {
		step := measure.Step{Index: i}
		if i == 0 {
			step.Role = measure.Warmup
		}
		one, _, err := s.Time(ctx, step)
		if one.Failure != nil || err != nil || ctx.Err() != nil {
			tr.Failure, tr.Output = one.Failure, one.Output
			return 0, err
		}
		tr.Command = one.Command
		if i > 0 {
			tr.ElapsedS += one.ElapsedS
			mean += one.ElapsedS / float64(s.config.Runs)
		}
	}
	return mean, nil
}

// watch measures what the idle guests use while nothing works; cause says why it cannot.
func (s *subject) watch(ctx context.Context, idle []crowd.Guest, figures map[string]float64) (cause *notebook.Message) {
	pause := func(d time.Duration) {
		select {
		case <-ctx.Done():
		case <-time.After(d): // the interval over which the use is measured
		}
	}
	pause(watchBefore)
	began := time.Now()
	before, err := usedBy(idle)
	if err != nil {
		return notebook.Say("idle-guests-unread", "cause", err)
	}
	pause(leastWatch)
	after, err := usedBy(idle)
	if err != nil {
		return notebook.Say("idle-guests-unread", "cause", err)
	}
	per := time.Since(began).Seconds() * float64(len(idle))
	figures[cpuTime.Name] = 1000 * max(after.cpu-before.cpu, 0).Seconds() / per
	figures[wakeUps.Name] = float64(max(after.wakeUps-before.wakeUps, 0)) / per
	return nil
}
