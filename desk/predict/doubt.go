package predict

import "tare/notebook"

// Doubts about works and predictions, in addition to those of package data.
type (
	// Untraced: bare metal has no traced trials of the work.
	Untraced struct{}
	// Uncounted: the tracer that counts events did not observe the work.
	Uncounted struct{ Tracer string }
	// TooFewProbes: the environment has so many kinds of events, and so many are needed.
	TooFewProbes struct{ Probes, Needed int }
	// TooFewWorks: the environment has so many rows of workloads, and so many are needed.
	TooFewWorks struct{ Rows, Needed int }
	// TooWide: the interval would reach from the value divided by this factor to the value times it.
	TooWide struct{ Factor float64 }
	// Unlike: the work has many more of these events than any program of the calibration.
	Unlike struct{ Event Event }
	// OtherSize: the work ran on bare metal of this size, and the environment has another.
	OtherSize struct{ Ran string }
	// NotFitted: no estimate of the costs there is a number.
	NotFitted struct{}
	// OtherKernel: the calibration was measured under one kernel, and the work ran under another.
	OtherKernel struct{ Calibration, Run string }
	// Included: the calibration has measured this many of the works that are predicted, of which this is the first.
	Included struct {
		Works int
		First notebook.Treatment
	}
	// IgnoredFlushes: in the calibration, guests of this environment did not pass on to the disk what was synced in them.
	IgnoredFlushes struct{ Environment notebook.Treatment }
)

func (Untraced) Doubt()       {}
func (Uncounted) Doubt()      {}
func (TooFewProbes) Doubt()   {}
func (TooFewWorks) Doubt()    {}
func (TooWide) Doubt()        {}
func (Unlike) Doubt()         {}
func (OtherSize) Doubt()      {}
func (NotFitted) Doubt()      {}
func (OtherKernel) Doubt()    {}
func (Included) Doubt()       {}
func (IgnoredFlushes) Doubt() {}
