// Package fit holds the configuration and the records of a study of the kind "fit": how many guests fit on a host before one of
// them no longer keeps its objective.
package fit

import (
	"fmt"

	"tare/notebook"
)

// Name is the name of the kind.
const Name = "fit"

// Seen is what a trial recorded.
type Seen struct {
	Fitted *Fitted `json:"fitted,omitempty"`
}

// Config is how a study searches for the number of guests that fit: it adds busy guests next to the measured one until the measured
// one no longer keeps the objective.
type Config struct {
	Metric string  `json:"metric"` // p50 to p99: of the measured guest's runs, or the figure of that name that each run reports
	Factor float64 `json:"factor"` // it must stay below this many times its value without neighbours
	To     int     `json:"to"`     // greatest number of guests
}

// Figure is the metric of the search: one over the number of guests that fit, so that less is better as in every metric.
func (f Config) Figure() notebook.Metric {
	return notebook.Metric{Name: fmt.Sprintf("host_share(%s,%g)", f.Metric, f.Factor), Unit: "1"}
}

// Guests is the number of guests that fit, including the measured one.
var Guests = notebook.Metric{Name: "guests_fit", Unit: "1"}

// Resources that can run out.
const (
	OutOfCPU       = "CPU"
	OutOfMemory    = "memory"
	OutOfIO        = "I/O"
	OutOfProcesses = "process ids"
	OutOfEngine    = "the engine"
)

// Step is one number of guests that was tried.
type Step struct {
	Guests  int               `json:"guests"`
	Runs    int               `json:"runs"`             // of the measured guest
	Values  []float64         `json:"values,omitempty"` // of each run: its time, or the figure Config.Metric that it reports
	Tail    float64           `json:"tail"`             // Config.Metric over the runs, in the workload's unit
	Ratio   float64           `json:"ratio,omitempty"`  // Tail over that of the guest without neighbours; 0: this is that guest, or the step failed
	Low     float64           `json:"low,omitempty"`    // of the ratio's 95 % interval, which is valid however long a search goes on; 0: too few runs
	High    float64           `json:"high,omitempty"`
	Met     bool              `json:"met,omitempty"`     // it keeps the objective
	Decided bool              `json:"decided,omitempty"` // the interval excludes the objective's factor; otherwise Met is what too few runs suggest
	Failure *notebook.Message `json:"failure,omitempty"` // why so many guests could not be made or kept busy

	// Shares of the time of the step's runs in which work waited for a resource of the host (PSI, some); nil: the kernel does not
	// report them.
	Pressure  map[string]float64 `json:"pressure,omitempty"`
	Available int64              `json:"available,omitempty"` // bytes of memory left
	Processes int                `json:"processes,omitempty"` // threads on the host
	Most      int                `json:"most,omitempty"`      // greatest number of threads that the host allows
}

// Fitted is the result of a search.
type Fitted struct {
	Steps   []Step            `json:"steps"`             // in the order in which they were made
	Guests  int               `json:"guests"`            // the number that fit
	Decided bool              `json:"decided,omitempty"` // it is decided that they fit, and that one more does not
	RanOut  string            `json:"ran_out,omitempty"` // OutOfCPU, …; empty: nothing, up to Config.To guests
	Why     *notebook.Message `json:"why,omitempty"`     // the evidence for RanOut
}
