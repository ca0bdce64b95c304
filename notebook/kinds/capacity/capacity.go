// Package capacity is what a study of the kind "capacity" configures and records: the greatest rate of requests at which a service meets an objective.
package capacity

import (
	"fmt"
	"time"

	"tare/notebook"
)

// Name is the kind's.
const Name = "capacity"

// Of is how the study does that; nil where it is of another kind, or a folder says it in no way that can be read.
func Of(s notebook.Study) *Config {
	c, err := notebook.ConfigOf[Config](s, Name)
	if err != nil {
		return nil
	}
	return c
}

// Seen is what a trial recorded.
type Seen struct {
	Steps []Step `json:"steps,omitempty"` // in the order in which they were made
}

// SeenBy is what the trial recorded; nothing where it recorded something else.
func SeenBy(t *notebook.Trial) Seen {
	s, err := notebook.SeenOf[Seen](t)
	if err != nil {
		return Seen{}
	}
	return s
}

// Config is how the greatest rate is sought at which a service meets an objective.
type Config struct {
	Metric string  `json:"metric"` // of the load's results, a time: "p99"
	Bound  float64 `json:"bound"`  // seconds that it may be at most
	From   int     `json:"from"`   // requests a second at the first step
	To     int     `json:"to"`     // that are never exceeded
	Raise  float64 `json:"raise"`  // by which share each step is higher than the one before
	HoldS  float64 `json:"hold_s"` // seconds of each step
}

// Objective is what has to be met, in words.
func (c Config) Objective() string {
	return fmt.Sprintf("%s at most %s", c.Metric, time.Duration(c.Bound*float64(time.Second)))
}

// Figure is the metric of what seeks a capacity: one over the capacity, so that less is better as in every metric. The capacity itself
// is its secondary metric.
func (c Config) Figure() notebook.Metric {
	return notebook.Metric{Name: "time per request at capacity (" + c.Objective() + ")", Unit: "s"}
}

// PerSecond is the capacity: requests a second at which the objective is just met.
var PerSecond = notebook.Metric{Name: "capacity", Unit: "1/s"}

// Step is one rate at which a service was asked.
type Step struct {
	Rate       int     `json:"rate"`              // requests a second that were sent
	Throughput float64 `json:"throughput"`        // that were answered
	Mean       float64 `json:"mean"`              // response time, seconds
	Tail       float64 `json:"tail"`              // Capacity.Metric, seconds
	Failure    string  `json:"failure,omitempty"` // why requests failed, or the load did: the times are of no use
	Met        bool    `json:"met,omitempty"`     // the objective
	HoldS      float64 `json:"hold_s,omitempty"`  // seconds for which it was held; 0: Capacity.HoldS
}
