package explain

import (
	"tare/desk/data"
	"tare/notebook"
)

// Doubts about an account, in addition to those of package data.
type (
	// LargerBaseline: bare metal has no part of a core, so bare metal with so many cores (With) is the baseline.
	LargerBaseline struct{ Cores, With float64 }
	// NoBareMetalSize: bare metal was not measured at this instance type.
	NoBareMetalSize struct{ Instance string }
	// NoBareMetalWork: bare metal was not measured for this workload.
	NoBareMetalWork struct{ Workload string }
	// BaselineUntraced: the baseline has no traced trials.
	BaselineUntraced struct{ Against Against }
	// AllTracedFailed: every traced trial of the baseline failed, or of the treatment itself (Own).
	AllTracedFailed struct {
		Against Against
		Own     bool
	}
	// NoCompleteRound: no round has traced and other trials of both that succeeded.
	NoCompleteRound struct{ Against Against }
	// IncompleteRounds: so many of so many rounds have all four.
	IncompleteRounds struct {
		Complete, Of int
		Against      Against
	}
	// Unbelievable: so many of the tracers' numbers are beyond all bounds and were not used.
	Unbelievable struct{ Numbers int }
	// SomeTracedFailed: so many of its traced trials failed and were not used.
	SomeTracedFailed struct {
		Failed, Of int
		Cause      *notebook.Message // of the first
	}
	// EventsLost: the tracers lost so many events.
	EventsLost struct{ Events int64 }
	// JustSignificant: the overhead's interval reaches below half of its estimate.
	JustSignificant struct{}
	// Silent: so many traced trials have nothing from any tracer.
	Silent struct{ Trials int }
	// Coarse: nothing followed the scheduler. Why may be empty.
	Coarse struct {
		Why   data.Missing
		Asked bool // the tracer that does was asked for
	}
	// TracerMissing: a tracer, or a part of it, observed nothing.
	TracerMissing struct {
		Tracer string
		Why    data.Missing
		Partly bool
	}
	// Unseen: the tracers saw so many of a traced trial's seconds.
	Unseen struct{ Saw, Took float64 }
	// OtherMetric: the workload's metric is not the elapsed time, which the account breaks down.
	OtherMetric struct{ Metric string }
	// SharedConnections: connections carried several requests at a time, so Tare does not know which thread served which.
	SharedConnections struct{}
	// FromWakes: the account is of the time from a thread's wake to its next wait.
	FromWakes struct{}
	// AtSockets: the load does not record its requests, so the account is of their time at the service's sockets.
	AtSockets struct{}
	// Untraced: so many folders have no traced trials and are in no account.
	Untraced struct{ Folders int }
)

func (LargerBaseline) Doubt()    {}
func (JustSignificant) Doubt()   {}
func (NoBareMetalSize) Doubt()   {}
func (NoBareMetalWork) Doubt()   {}
func (BaselineUntraced) Doubt()  {}
func (AllTracedFailed) Doubt()   {}
func (NoCompleteRound) Doubt()   {}
func (IncompleteRounds) Doubt()  {}
func (Unbelievable) Doubt()      {}
func (SomeTracedFailed) Doubt()  {}
func (EventsLost) Doubt()        {}
func (Silent) Doubt()            {}
func (Coarse) Doubt()            {}
func (TracerMissing) Doubt()     {}
func (Unseen) Doubt()            {}
func (OtherMetric) Doubt()       {}
func (SharedConnections) Doubt() {}
func (FromWakes) Doubt()         {}
func (AtSockets) Doubt()         {}
func (Untraced) Doubt()          {}
