// Package fit is what a study of the kind "fit" configures and records: how many guests fit on a host until one of them keeps its objective no more.
package fit

import (
	"fmt"

	"tare/notebook"
)

// Name is the kind's.
const Name = "fit"

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
	Fitted *Fitted `json:"fitted,omitempty"`
}

// SeenBy is what the trial recorded; nothing where it recorded something else.
func SeenBy(t *notebook.Trial) Seen {
	s, err := notebook.SeenOf[Seen](t)
	if err != nil {
		return Seen{}
	}
	return s
}

// Config is how it is sought how many guests fit: guests that are busy are added beside the measured one until it keeps the objective no more.
type Config struct {
	Metric string  `json:"metric"` // p50 to p99: of the measured guest's runs, or of what each of them reports by that name
	Factor float64 `json:"factor"` // it stays below so many times what it is alone
	To     int     `json:"to"`     // guests that are never exceeded
}

// Objective is what has to be kept, in words.
func (f Config) Objective() string {
	return fmt.Sprintf("%s below %g times its value alone", f.Metric, f.Factor)
}

// Figure is the metric of such a search: one over the guests that fit, so that less is better as in every metric.
func (f Config) Figure() notebook.Metric {
	return notebook.Metric{Name: "share of the host that a guest needs (" + f.Objective() + ")", Unit: "1"}
}

// Guests is how many guests fit, the measured one among them.
var Guests = notebook.Metric{Name: "guests that fit", Unit: "1"}

// What runs out.
const (
	OutOfCPU       = "CPU"
	OutOfMemory    = "memory"
	OutOfIO        = "I/O"
	OutOfProcesses = "process ids"
	OutOfEngine    = "the engine"
)

// Step is one number of guests that was tried.
type Step struct {
	Guests  int       `json:"guests"`
	Runs    int       `json:"runs"`             // of the measured guest
	Values  []float64 `json:"values,omitempty"` // of each of them: its time, or what it says of itself as Fit.Metric
	Tail    float64   `json:"tail"`             // Fit.Metric of them, in the workload's unit
	Ratio   float64   `json:"ratio,omitempty"`  // Tail over that of the guest alone; 0: it is alone, or failed
	Low     float64   `json:"low,omitempty"`    // of its 95 % interval, which holds however long a search goes on; 0: too few runs for it
	High    float64   `json:"high,omitempty"`
	Met     bool      `json:"met,omitempty"`     // it keeps the objective
	Decided bool      `json:"decided,omitempty"` // the interval excludes the objective's factor; else Met is what the runs say, and they were too few to be as sure
	Failure string    `json:"failure,omitempty"` // why so many guests cannot be had, or not be kept busy

	// Shares of the time of the step's runs in which something of the host waited for it (PSI, some); nil: the kernel does not say.
	Pressure  map[string]float64 `json:"pressure,omitempty"`
	Available int64              `json:"available,omitempty"` // bytes of memory left
	Processes int                `json:"processes,omitempty"` // threads that the host had
	Most      int                `json:"most,omitempty"`      // that it can have
}

// Fitted is what a search found.
type Fitted struct {
	Steps   []Step `json:"steps"`             // in the order in which they were made
	Guests  int    `json:"guests"`            // that fit
	Decided bool   `json:"decided,omitempty"` // so is that they fit, and that one more does not
	RanOut  string `json:"ran_out,omitempty"` // OutOfCPU, …; empty: nothing did, up to Fit.To
	Why     string `json:"why,omitempty"`     // what was seen of it
}
