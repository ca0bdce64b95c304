// Package capacity holds the configuration and the records of a study of the kind "capacity": the greatest rate of requests at
// which a service meets an objective.
package capacity

import (
	"fmt"
	"time"

	"tare/notebook"
)

// Name is the name of the kind.
const Name = "capacity"

// Seen is what a trial recorded.
type Seen struct {
	Steps []Step `json:"steps,omitempty"` // in the order in which they were made
}

// Config is how a study searches for the greatest rate at which a service meets an objective.
type Config struct {
	Metric string  `json:"metric"` // a time among the load's results: "p99"
	Bound  float64 `json:"bound"`  // the greatest value that meets the objective, in seconds
	From   int     `json:"from"`   // requests a second in the first step
	To     int     `json:"to"`     // greatest rate
	Raise  float64 `json:"raise"`  // increase from step to step, as a share
	HoldS  float64 `json:"hold_s"` // seconds of each step
}

// Objective is the objective in words.
func (c Config) Objective() string {
	return fmt.Sprintf("%s at most %s", c.Metric, c.bound())
}

func (c Config) bound() time.Duration { return time.Duration(c.Bound * float64(time.Second)) }

// Figure is the metric of a search for a capacity: one over the capacity, so that less is better as in every metric. The capacity
// itself is its secondary metric.
func (c Config) Figure() notebook.Metric {
	return notebook.Metric{Name: fmt.Sprintf("capacity_time(%s,%s)", c.Metric, c.bound()), Unit: "s"}
}

// PerSecond is the capacity: requests a second at which the objective is just met.
var PerSecond = notebook.Metric{Name: "capacity_rate", Unit: "1/s"}

// Step is one rate at which a service was asked.
type Step struct {
	Rate       int               `json:"rate"`              // requests sent a second
	Throughput float64           `json:"throughput"`        // requests answered a second
	Mean       float64           `json:"mean"`              // response time, seconds
	Tail       float64           `json:"tail"`              // Config.Metric, seconds
	Failure    *notebook.Message `json:"failure,omitempty"` // why requests or the load failed; the times then mean nothing
	Met        bool              `json:"met,omitempty"`     // whether it met the objective
	HoldS      float64           `json:"hold_s,omitempty"`  // seconds for which the rate was held; 0: Config.HoldS
}
