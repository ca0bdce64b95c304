// Package capacity searches for the greatest rate of requests at which a service meets an objective. It raises the rate step by
// step until the objective is missed, and then narrows down the greatest rate that meets it.
package capacity

import (
	"cmp"
	"errors"
	"math"
	"regexp"
	"strings"
	"time"

	"tare/lab/crowd"
	"tare/lab/measure"
	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
	record "tare/notebook/kinds/capacity"
	"tare/yamlfile"
)

// Kind is capacity as a kind of study.
var Kind = measure.Kind{
	Name: record.Name,
	Rules: measure.Rules{
		Search:   true,
		Turns:    true,
		Untraced: "a capacity trial consists of many loads and cannot be traced",
	},
	Part: measure.PartOf(file.config),
}

// file is the kind's part of a study file.
type file struct {
	Objective string `yaml:"objective" jsonschema:"required"` // METRIC=TIME: p99=50ms
	From      int    `yaml:"from,omitempty"`                  // requests a second in the first step; default 10
	To        int    `yaml:"to,omitempty"`                    // greatest rate; default a million
	Raise     string `yaml:"raise,omitempty"`                 // increase from step to step; default 50%
	Hold      string `yaml:"hold,omitempty"`                  // length of a step; default 10s
}

const (
	halvings = 3               // of the interval between the last rate that met the objective and the first that missed it
	mostRate = 1e6             // requests a second
	overtime = 2 * time.Minute // time that a load may take beyond its step, to start and to receive late answers
)

var metricOK = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_.]{0,39}$`)

func (f file) config() (measure.Config, error) {
	out := config{found: map[string]int{}, Config: record.Config{From: cmp.Or(f.From, 10), To: cmp.Or(f.To, mostRate), Raise: 0.5, HoldS: 10}}
	metric, text, ok := strings.Cut(f.Objective, "=")
	bound, err := time.ParseDuration(text)
	if !ok || err != nil || bound <= 0 || !metricOK.MatchString(metric) {
		return nil, measure.Wrong("objective", "%q: must be METRIC=TIME, like p99=50ms", f.Objective)
	}
	out.Metric, out.Bound = metric, bound.Seconds()
	if out.From < 1 || out.To > mostRate || out.From >= out.To {
		return nil, measure.Wrong("from", "%d to %d requests a second: must be from 1 to %d, and from must be less than to", out.From, out.To, int(mostRate))
	}
	if f.Raise != "" {
		if out.Raise, err = yamlfile.Share(f.Raise); err != nil || out.Raise < 0.01 {
			return nil, measure.Wrong("raise", "%q: must be a share from 1%% to 100%%", f.Raise)
		}
	}
	if f.Hold != "" {
		d, err := time.ParseDuration(f.Hold)
		if err != nil || d < time.Second || d > time.Hour || d%time.Second != 0 {
			return nil, measure.Wrong("hold", "%q: must be a time in whole seconds from 1s to 1h", f.Hold)
		}
		out.HoldS = d.Seconds()
	}
	return out, nil
}

// config is how a study searches for capacities.
type config struct {
	measure.Defaults
	record.Config
	found map[string]int // where the next search begins, by place; nil: nothing is remembered
}

// Record implements measure.Config.
func (c config) Record() any { return &c.Config }

// Identity implements measure.Config.
func (c config) Identity([]*workload.Ready) []any { return []any{&c.Config} }

// Accepts implements measure.Config.
func (config) Accepts(w *workload.Workload) error {
	if w.Load == nil || len(w.Load.Open) == 0 {
		return errors.New("has no load at a rate, which capacity studies need: set open: in its load")
	}
	return nil
}

// Metrics implements measure.Config.
func (c config) Metrics(*workload.Workload, []string) (notebook.Metric, []notebook.Metric) {
	return c.Figure(), []notebook.Metric{record.PerSecond}
}

// Subject implements measure.Config.
func (c config) Subject(b measure.Bench, of measure.Cell) measure.Subject {
	return &subject{Plain: measure.NewPlain(b, of), config: c}
}

// open is the order that runs one step of a search.
func open(s *crowd.Service, rate int, seconds float64) ruler.Order {
	w := s.Ready.Workload
	o := w.Order(w.Load.Open, w.AtRate(s.Ready.Params, rate, int(seconds)), s.Ready.Image, crowd.Reached(s.Guest, s.Treatment))
	o.Timeout = time.Duration(seconds*float64(time.Second)) + overtime
	return o
}

// carried is the share of a step's requests that must be answered, and chance is how many fewer may be, in standard deviations of the
// number of requests: loads such as pgbench send at random times, so a step of few requests may send far fewer than its rate.
const carried, chance = 0.9, 2

// leastAnswered is the throughput, in requests a second, below which a step at a rate misses the objective.
func leastAnswered(rate int, seconds float64) float64 {
	sent := float64(rate) * seconds
	return max(0, carried*sent-chance*math.Sqrt(sent)) / seconds
}

// stepOf is the result of a load that held a rate for seconds, and whether it met the objective.
func stepOf(r ruler.Result, rate int, seconds float64, c record.Config) record.Step {
	s := record.Step{Rate: rate, Failure: workload.Failure(r)}
	if s.Failure != nil {
		return s
	}
	number, cause := workload.Printed(r)
	for key, to := range map[string]*float64{"requests_per_second": &s.Throughput, "mean": &s.Mean, c.Metric: &s.Tail} {
		v, why := number(key)
		if *to = v; cause == nil {
			cause = why
		}
	}
	s.Failure = cause
	s.Met = cause == nil && s.Tail <= c.Bound && s.Throughput >= leastAnswered(rate, seconds)
	return s
}
