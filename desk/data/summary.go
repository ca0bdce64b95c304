// Package data reads the folders of one or several studies, each once, into what the rest of the desk works with: a row
// for each treatment with its cells (what it gave in each round), its ratio to a baseline with the 95 % intervals of
// both, and every doubt about them. A doubt is a code with arguments ([Doubt]) and never a sentence: only package words
// writes English. It is a pure function of the folders: the same folders give the same data anywhere.
package data

import (
	"cmp"
	"time"

	"tare/notebook"
	"tare/stats"
)

// Options say how folders are to be read.
type Options struct {
	// Kinds are the kinds of study that can be read, besides those that time work.
	Kinds []Kind

	// Baseline chooses what the ratios are relative to. It must match one treatment for each workload and its parameters; else Read says which
	// there are. A row for which it matches none has no ratio. Empty: the reference that all the folders' studies name, or else bare metal.
	Baseline notebook.Reference

	// Margin is the smallest difference from the baseline that matters, a share such as 0.01. 0 means the margin that the first folder's study
	// decides at, or the one that its design names, or else stats.Margin.
	Margin float64
}

// Summary is what the folders say.
type Summary struct {
	// Rows has one row for each treatment, in the order of the studies. The A/A row of an instance type follows its bm row.
	Rows []*Row

	Folders []Folder  // in the given order
	Hosts   []Host    // each once
	LeftOut []LeftOut // not done: treatments that the studies asked for, and why
	AA      []AACheck // A/A checks: one for each workload (with parameters) and instance type that has an A/A row
	// Calibrations are what the A/A checks of a host and metric show together.
	Calibrations []Calibration
	Ruler        []RulerCost // measurement overhead: the ruler's cost, by platform, engine and accelerator
	Warnings     []Warning   // from trials: each text once with its count
	Doubts       []Doubt     // about the whole summary: level of the intervals, rounds not finished, …

	Kinds    []Kind             // the readable kinds, from Options
	Baseline notebook.Reference // reference of the ratios; empty: bare metal
	margin   float64
}

// Margin is the smallest difference from the baseline that matters, from Options.
func (s *Summary) Margin() float64 {
	var d notebook.Design
	if len(s.Folders) > 0 {
		d = s.Folders[0].Study.Design
	}
	return cmp.Or(s.margin, d.Decide, d.Margin, stats.Margin)
}

// Rounds estimates how many rounds in all would decide whether a row's difference from its baseline matters. Where no rule counts looks, another
// folder adds the missing rounds. 0: more than stats.MostRounds, or not foreseeable.
func (s *Summary) Rounds(r *Row) int {
	c := s.Sure(r, stats.Alpha)
	if b := s.Base(r); b != nil {
		_, _, both := Paired(r, b)
		c = s.ruled(r, b, both, stats.Alpha)
	}
	return r.Quotient().Rounds(s.Margin(), c, c.Extended())
}

// Verdict compares the row's ratio to its baseline with the margin. A row without a ratio is inconclusive. An untrusted row is inconclusive
// too: too many of its trials failed, or bare metal differed from itself by as much. Empty: the row is a baseline, or has none.
func (s *Summary) Verdict(r *Row) stats.Verdict {
	switch {
	case r.Baseline == "" || r.IsBaseline():
		return ""
	case r.Doubtful || r.Unreliable():
		return stats.Inconclusive
	}
	return r.Cost().Verdict(s.Margin())
}

// Finding is the verdict on the row as answers give it. It is empty where nothing is compared: for a baseline, the A/A control, an emulated
// environment, and a row whose ratio has no interval.
func (s *Summary) Finding(r *Row) stats.Verdict {
	if r.Treatment.AA || !r.Representative || !stats.Finite(r.Ratio) || !r.Quotient().HasInterval() {
		return ""
	}
	return s.Verdict(r)
}

// Quotient is the row's ratio to its baseline, with its interval.
func (r *Row) Quotient() stats.Quotient {
	return stats.Quotient{Value: r.Ratio, Low: r.RatioLow, High: r.RatioHigh, N: r.RatioRounds, AtLeast: r.RatioAtLeast, AtMost: r.RatioAtMost}
}

// Cost turns a quotient of a metric's means into a cost: above 1 is worse. For a metric where higher is better, the cost is one over the
// quotient. Reports show the quotient itself, as papers print it. Their verdicts and words ("costs more", the best, beyond the margin) follow the cost.
func Cost(m notebook.Metric, q stats.Quotient) stats.Quotient {
	if m.MoreIsBetter() {
		return q.Inverse()
	}
	return q
}

// Cost is the cost of the row's ratio to its baseline.
func (r *Row) Cost() stats.Quotient { return Cost(r.Metric, r.Quotient()) }

// Decided is the smallest margin at which the row is equivalent to its baseline. It is equivalent at any larger margin. +Inf: there is no such margin.
func (r *Row) Decided() float64 { return r.Quotient().Decided() }

// Folder is one folder as read.
type Folder struct {
	Dir      string
	Study    notebook.Study
	Host     string    // ID, in Summary.Hosts
	Rounds   int       // rounds with at least one trial
	Watched  int       // rounds in which what other programs used was recorded
	Begun    bool      // the last round is not complete: some of its trials are missing
	Torn     bool      // damage: the last record was cut off and does not count
	Trials   int       // lines in trials.jsonl: warm-ups, traced trials and failures included
	Failed   int       // failed trials of any kind
	Ends     []End     // ends of its sessions, in order
	Together bool      // interleaved: guests were alive at the same time, and did their trials in random turns
	RoundS   float64   // seconds that a round usually took; NaN where nothing was measured
	Last     time.Time // end of its last trial
	// Quiet is what was set on the host for its sessions (notebook.Said), one text for each different setting; "nothing" is one.
	Quiet []string
	// Args are the arguments of the command that began it, as typed; empty where none are recorded.
	Args []string

	baselines map[string]string // by treatment: what the rule of its study compares it with; nil: bare metal
}

// Ended is how its last session ended.
func (f Folder) Ended() End {
	if len(f.Ends) == 0 {
		return End{}
	}
	return f.Ends[len(f.Ends)-1]
}

// Host is a host of the folders.
type Host struct {
	notebook.Host
	Name string // its hostname; with a part of its ID where two hosts have the same one
}

// Row is one treatment's result. Where a number is not known it is NaN (an interval's end may be ±Inf), which
// JSON shows as null; Doubts then say why.
type Row struct {
	Treatment      notebook.Treatment
	Host           string // Host.Name
	HostID         string
	Metric         notebook.Metric
	Image          notebook.Image
	HostCores      int     // cores that the host had online during the trials
	CHR            float64 // container-to-host core ratio: the instance's cores over HostCores
	Guests         int     // guests with at least one measured trial, including failed ones; traced trials are not measured
	Rounds         int     // rounds with at least one successful measured trial
	Trials         int     // measured trials: failed ones included, without warm-ups and traced trials
	Failed         int     // failed measured trials
	Lost           int     // rounds in which it was tried and nothing succeeded
	Mean           float64 // in Metric.Unit: mean over rounds of the mean of each round's trials
	MeanLow        float64
	MeanHigh       float64
	Ratio          float64 // mean divided by the baseline's, in the rounds that both have; bare metal includes its A/A control; the baseline itself is 1
	RatioLow       float64
	RatioHigh      float64
	RatioAtLeast   float64 // one-sided bounds of 95 %, which decide the verdict (stats.Quotient.AtLeast)
	RatioAtMost    float64
	RatioRounds    int     // rounds that count in the ratio
	Robust         float64 // robust ratio: a few slow rounds do not move it (stats.Robust)
	Disturbed      int     // rounds in which other programs used much of the host (Cell.Disturbed)
	Baseline       string  // treatment id that the ratio is relative to; empty: none
	Representative bool    // false under software emulation: never ranked
	Doubtful       bool    // never ranked: the A/A check failed here by as much as this row differs
	LoadFrom       string  // the machine that applied its service's load; empty: the host itself
	Kind           string  // kind of its study; empty: its work was timed
	Config         Config  // how its study measures; nil: its work was timed
	identity       string  // Config.Identity
	Of             any     // what its trials recorded beyond values and metrics, in its kind's type; nil: nothing
	// LoadShared: a load on this host could use the CPUs of a guest with a quota, or left it no more CPUs than a CPU set has. So it decides
	// nothing about quotas.
	LoadShared bool
	Doubts     []Doubt
	Kernels    []string           // guest kernels; a VM's with its source
	Machines   []notebook.Machine // machines of VMs; a zero one is from a folder that does not record it
	CPUs       map[string]int     // number of guests by the host CPUs that they could use ("0-1,4"); only guests with a successful measured trial

	Cells     []Cell      // by folder and round
	Values    []Value     // basis of Mean and Ratio: the cells with a successful measured trial
	Secondary []Secondary // the workload's secondary metrics, in its order
	IsFigure  bool        // it is one of another row's Figures
	again     *Row        // bare metal's A/A control: the baseline includes both (Paired)
	Figures   []*Row      // one row for each secondary metric whose better direction is known: its Metric, means, ratio, interval and doubts
	Trace     *Trace      // what tracers saw; nil where none of its folders was traced

	Dots   []Dot // measured, successful trials, for plots; at most a hundred, evenly drawn from all
	DotsOf int   // how many measured, successful trials there are
}

// mostFailed is the share of a row's trials that may fail without more being asked.
const mostFailed = 0.1

// Unreliable says whether too much of the row failed to rank it: a round without any success, or more than a tenth of its trials. Its
// numbers are only of successful trials.
func (r *Row) Unreliable() bool {
	return r.Failed > 0 && (r.Lost > 0 || float64(r.Failed) > mostFailed*float64(r.Trials))
}

// Failures says how many of the row's trials failed, and why; false where none did.
func (r *Row) Failures() (TrialsFailed, bool) {
	for _, d := range r.Doubts {
		if f, is := d.(TrialsFailed); is {
			return f, true
		}
	}
	return TrialsFailed{}, false
}

// IsBaseline says whether the row is what its group's ratios are relative to.
func (r *Row) IsBaseline() bool { return r.Baseline != "" && r.Baseline == r.Treatment.ID }

// SecondaryValues are the row's values of a secondary metric, by its name, as Values are of the metric.
func (r *Row) SecondaryValues(name string) (all []Value) {
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Secondary[name].N > 0 {
			all = append(all, Value{Block: c.Block, Mean: c.Secondary[name].Mean(), Trials: c.Secondary[name].N})
		}
	}
	return all
}

// Block is a round of a folder: what was measured in it was measured at nearly the same time.
type Block struct {
	Folder int // index in Summary.Folders
	Round  int
}

// Compare orders blocks by folder and round.
func (b Block) Compare(other Block) int {
	return cmp.Or(cmp.Compare(b.Folder, other.Folder), cmp.Compare(b.Round, other.Round))
}

// Cell is what one treatment gave in one block.
type Cell struct {
	Block
	Tried   int             // measured trials, including failed ones
	Value   stats.Sum       // successful trials: the metric of the measured ones
	Order   Order           // successful trials: the order of the same ones
	Stopped stats.Sum       // timed-out trials: their elapsed time
	Work                    // successful trials: their work
	Beside  notebook.Beside // all measured trials for which it is known
	Traced  *TracedCell     // successful traced trials; nil where there are none
}

// Value is what one treatment gave in one block, where a measured trial succeeded.
type Value struct {
	Block
	Mean   float64 // of the successful trials, in the metric's unit
	Trials int     // so many
}

// Secondary is a secondary metric of a workload: a percentile, a rate. Its interval is made as the metric's.
type Secondary struct {
	Metric          notebook.Metric
	Mean, Low, High float64 // NaN where unknown
	Rounds          int
}

// Dot is one measured, successful trial.
type Dot struct {
	Folder int // index in Summary.Folders
	Round  int
	Guest  string
	Trial  int
	Start  time.Time
	Value  float64 // in the metric's unit
}

// LeftOut is a treatment that was asked for and not done.
type LeftOut struct {
	Host      string // Host.Name
	Treatment notebook.Treatment
	Reason    *notebook.Message
}

// RulerCost is what the ruler itself takes to run an empty process, over the guests of one platform.
type RulerCost struct {
	Host                          string // Host.Name
	Platform, Engine, Accelerator string
	Kernel                        string // of its guests, where one was named
	Guests                        int
	Median, Low, High             float64 // seconds: the guests' medians: their median, smallest and largest
	RoundTrip                     float64 // seconds: median over guests of the smallest round trip host, ruler, host
}

// Warning is something that trials said about themselves.
type Warning struct {
	Text       Text
	Count      int      // trials that said it
	Treatments []string // ids, sorted
}
