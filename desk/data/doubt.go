package data

import "tare/notebook"

// Doubt is something that a reader must know before trusting a number: a code with its arguments. Each code is a type of
// its own, here or in the package that finds it; package words turns it into a sentence. Doubts are comparable, so that
// a report states a doubt of several numbers once.
type Doubt interface{ Doubt() }

// Name is what of a treatment names it among those that it is compared with.
type Name struct {
	Platform, Engine, Accelerator, Kernel, Provisioning, Isolation, Machine string
	AA                                                                      bool
}

// NameOf is a treatment's name.
func NameOf(t notebook.Treatment) Name {
	return Name{t.Platform, t.Engine, t.Accelerator, t.Kernel, t.Provisioning, t.Isolation, t.Machine, t.AA}
}

// Doubts about a row.
type (
	// Emulated: it ran under emulation, of the machine or of the guest's kernel mode.
	Emulated struct{}
	// Omitted: it was asked for and not done.
	Omitted struct{ Reason *notebook.Message }
	// NotMeasured: none of its trials has run yet.
	NotMeasured struct{}
	// TrialsFailed: so many of its measured trials failed.
	TrialsFailed struct {
		Failed, Trials int
		Cause          Cause
	}
	// SharedLoad: the load of a guest with a quota could use the same CPUs, or left the guest no more CPUs than a CPU set has.
	SharedLoad struct{}
	// OneRound: there is no interval, because that takes two rounds.
	OneRound struct{}
	// UnsteadyHost: the A/A check that this row is of misses 1, by more than chance explains over so many places.
	UnsteadyHost struct{ Places int }
	// WithinUnsteadiness: bare metal differed from itself by as much as the row differs from it; the check's ratio, and how many times as wide as they
	// are the intervals would have to be by so many places together (1: as wide as they are).
	WithinUnsteadiness struct {
		Ratio, Low, High, Factor float64
		Places                   int
	}
	// NarrowHost: over so many places of a host, bare metal differs from itself by Factor times what its intervals allow, by Low times at least.
	NarrowHost struct {
		Host, Figure string // Figure: the secondary metric; empty: the workloads' own
		Places       int
		Factor, Low  float64
	}
	// NoBareMetal: there is no ratio, because bare metal was not measured at this instance type.
	NoBareMetal struct{ Instance string }
	// NoReference: there is no ratio, because the environment that was named as the reference was not measured with this work.
	NoReference struct{ Reference string }
	// BaselineFailed: there is no ratio, because no trial of the baseline succeeded.
	BaselineFailed struct{ Baseline Name }
	// NoCommonRound: there is no ratio, because no round has a value of both.
	NoCommonRound struct{ Baseline Name }
	// OneCommonRound: the ratio has no interval, because only one round has a value of both.
	OneCommonRound struct{ Baseline Name }
	// BaselineZero: there is no ratio, because the baseline's mean is zero.
	BaselineZero struct{ Baseline Name }
	// Unbounded: the ratio's interval has no bounds, because the baseline varied too much.
	Unbounded struct{ Baseline Name }
	// UnpairedRounds: so many rounds count in the ratio; in so many more the baseline has no value.
	UnpairedRounds struct {
		Paired, Unpaired int
		Baseline         Name
	}
	// BaselineElsewhere: in the rounds that count in the ratio, the baseline's mean was this one. Its mean over all its rounds, which tables show, is
	// so different that the two means give a ratio outside the interval.
	BaselineElsewhere struct {
		Mean, Low, High float64 // in Metric.Unit
		Metric          notebook.Metric
		Rounds          int
		Baseline        Name
	}
	// RobustDiffers: the robust ratio, which a few slow rounds do not move, is outside the ratio's interval.
	RobustDiffers struct{ Robust float64 }
	// SeldomHeld: a CPU quota (throttled) or the machine below the host (steal) held it back in only a few runs. So its mean and interval may
	// not contain the cost.
	SeldomHeld struct {
		By       Holder
		Runs, Of int
	}
	// Trend: from a guest's first trial to its last, its values grow by so much more than the baseline's. A guest has at most Most trials.
	Trend struct {
		Change, Low, High float64
		Most              int
		Baseline          Name
	}
	// TimedOut: so many of its trials, and of the baseline's, were stopped at the time limit. No mean includes them. Ratio is a lower bound of the
	// ratio if each counts as the time limit. If they are the baseline's, it is an upper bound. It is 0 where there is no such bound.
	TimedOut struct {
		Runs, Of, Base, BaseOf int
		Baseline               Name
		Ratio, Low, High       float64
	}
	// Overflow: the mean is too large for a number.
	Overflow struct{}
	// GuestSaid: what the laboratory noted about its guests.
	GuestSaid struct{ Text Text }
	// WarmupFailed: a warm-up failed.
	WarmupFailed struct{ Cause Text }
	// TracedFailed: a traced trial failed.
	TracedFailed struct{ Cause Text }
)

// Holder is what holds a guest back.
type Holder string

// What may hold a guest back now and then.
const (
	Quota Holder = "quota"
	Steal Holder = "steal"
)

// Doubts about all that was read.
type (
	// KernelChanged: folders of one host were measured under different kernels.
	KernelChanged struct{ Dir, Host, Kernel, Earlier string }
	// Quieted: what was set on a host for the time of the runs, to make it quieter.
	Quieted struct{ Host, Set string }
	// QuietDiffers: sessions on one host were run with different settings; "" is with none set.
	QuietDiffers struct{ Dir, Host, Set, Earlier string }
	// HostIsGuest: the host is itself a virtual machine.
	HostIsGuest struct{ Host, Hypervisor string }
	// Looks: intervals are wider, because the study could have stopped after any of so many rounds.
	Looks struct {
		Rounds      int
		Level       float64 // of each look's intervals
		Until, Last float64 // of a ratio's to bare metal until it is as precise as the study asks, and then; 0 where it asks for no precision
	}
	// Extended: so many folders without a stopping rule are read together, and each may have been run for what those before it said.
	Extended struct {
		Folders int
		Level   float64 // of intervals over rounds of them all
	}
	// Uncorrected: so many ratios are shown, three or more, each with an interval of its own level.
	Uncorrected struct{ Ratios int }
	// Unseen: of the runs on which the least of the ratios rests, a stall that strikes fewer than one in Rarest may not have been seen.
	Unseen struct{ Runs, Rarest int }
	// FewRounds: a folder has fewer rounds than its design asks for at least.
	FewRounds struct {
		Dir                string
		Rounds, Floor, Cap int
		Begun              bool // the last of them is not whole
		Ended              End  // of its last session
		Sessions           int
	}
	// Torn: a folder's last record was cut off.
	Torn struct{ Dir string }
	// Stalled: in so many of a folder's rounds other programs used much of the host; the largest shares of its CPU time in any of them.
	Stalled struct {
		Dir            string
		Rounds, Of     int
		Stolen, Others float64
	}
	// MoreWarnings: so many warnings are of kinds beyond those that are listed.
	MoreWarnings struct{ Count int }
)

func (Emulated) Doubt()           {}
func (Omitted) Doubt()            {}
func (NotMeasured) Doubt()        {}
func (TrialsFailed) Doubt()       {}
func (SharedLoad) Doubt()         {}
func (OneRound) Doubt()           {}
func (UnsteadyHost) Doubt()       {}
func (WithinUnsteadiness) Doubt() {}
func (NarrowHost) Doubt()         {}
func (NoBareMetal) Doubt()        {}
func (NoReference) Doubt()        {}
func (BaselineFailed) Doubt()     {}
func (NoCommonRound) Doubt()      {}
func (OneCommonRound) Doubt()     {}
func (BaselineZero) Doubt()       {}
func (Unbounded) Doubt()          {}
func (UnpairedRounds) Doubt()     {}
func (BaselineElsewhere) Doubt()  {}
func (Overflow) Doubt()           {}
func (Trend) Doubt()              {}
func (TimedOut) Doubt()           {}
func (Uncorrected) Doubt()        {}
func (SeldomHeld) Doubt()         {}
func (GuestSaid) Doubt()          {}
func (WarmupFailed) Doubt()       {}
func (TracedFailed) Doubt()       {}
func (KernelChanged) Doubt()      {}
func (Quieted) Doubt()            {}
func (QuietDiffers) Doubt()       {}
func (HostIsGuest) Doubt()        {}
func (Looks) Doubt()              {}
func (Extended) Doubt()           {}
func (Unseen) Doubt()             {}
func (FewRounds) Doubt()          {}
func (Torn) Doubt()               {}
func (MoreWarnings) Doubt()       {}
func (RobustDiffers) Doubt()      {}
func (Stalled) Doubt()            {}

// End is how a session of `tare run` ended.
type End struct {
	Reason   *notebook.Message // nil: Open or None
	Open     bool              // its start has no end: it is still running or was killed
	Recorded bool              // false: no session is recorded at all
}

// FolderDoubt is a doubt about one folder.
type FolderDoubt interface {
	Doubt
	// InFolder returns the doubt with the path of its folder replaced by what name returns for it.
	InFolder(name func(dir string) string) Doubt
}

// InFolder implements FolderDoubt.
func (d KernelChanged) InFolder(name func(string) string) Doubt { d.Dir = name(d.Dir); return d }

// InFolder implements FolderDoubt.
func (d QuietDiffers) InFolder(name func(string) string) Doubt { d.Dir = name(d.Dir); return d }

// OutOfTime reports whether nothing but the time budget decided how many rounds there are. It was set before the first of them, so their number
// says nothing of their values. Whoever goes on with a folder may have done so for what it said.
func (d FewRounds) OutOfTime() bool {
	return d.Floor == d.Cap && d.Sessions == 1 && d.Ended.Reason.Is("time-budget")
}

// InFolder implements FolderDoubt.
func (d FewRounds) InFolder(name func(string) string) Doubt { d.Dir = name(d.Dir); return d }

// InFolder implements FolderDoubt.
func (d Torn) InFolder(name func(string) string) Doubt { d.Dir = name(d.Dir); return d }

// InFolder implements FolderDoubt.
func (d Stalled) InFolder(name func(string) string) Doubt { d.Dir = name(d.Dir); return d }
