// Package data reads the folders of one or several studies, each once, into what the rest of the desk works with: a row
// for each treatment with its cells (what it gave in each round), its ratio to a baseline with the 95 % intervals of
// both, and every doubt about them. A doubt is a code with arguments ([Doubt]) and never a sentence: package words alone
// says things in English. It is a pure function of the folders: the same folders give the same data anywhere.
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

	// Baseline chooses what the ratios are relative to, instead of bare metal at the same instance type: ParseReference makes one of a name. Keys are
	// platform, engine, accelerator, kernel, provisioning, instance, network, isolation, machine, host_cores, or the name of a parameter of
	// the workload. Without an instance, the reference is looked for at each row's own instance type; without a network or
	// host_cores, the row's own goes before others. It must match one treatment for each workload and its parameters; else Read says which there
	// are. A row for which it matches none has no ratio. An empty value matches what has none. Empty map: bare metal.
	Baseline map[string]string

	// Margin is how small a difference from the baseline does not matter, a share such as 0.01; 0 means the one that the first folder's study
	// was to decide at, or that its design names, or else stats.Margin.
	Margin float64
}

// Summary is what the folders say.
type Summary struct {
	// Rows, one a treatment, in the order of the studies; the A/A row of an instance type follows its bm row.
	Rows []*Row

	Folders []Folder  // as read, in the order given
	Hosts   []Host    // each once
	LeftOut []LeftOut // what the studies asked for and was not done, and why
	AA      []AACheck // one for each workload (with parameters) and instance type that has an A/A row
	// Calibrations are what the A/A checks of a host and metric show together.
	Calibrations []Calibration
	Ruler        []RulerCost // the ruler's own cost, by platform, engine and accelerator
	Warnings     []Warning   // said by trials, each text once with its count
	Doubts       []Doubt     // about all of it: level of the intervals, rounds not finished, …

	Kinds    []Kind            // that can be read, as Options have them
	Baseline map[string]string // what the ratios are relative to, as Options have it
	margin   float64
}

// Margin is how small a difference from the baseline does not matter, as Options have it.
func (s *Summary) Margin() float64 {
	var d notebook.Design
	if len(s.Folders) > 0 {
		d = s.Folders[0].Study.Design
	}
	return cmp.Or(s.margin, d.Decide, d.Margin, stats.Margin)
}

// Rounds is about how many rounds in all, with those of another folder where no rule counts looks, would say whether a row's difference
// from its baseline matters; 0: more than stats.MostRounds, or not foreseeable.
func (s *Summary) Rounds(r *Row) int {
	c := s.Sure(r, stats.Alpha)
	if b := s.Base(r); b != nil {
		_, _, both := Paired(r, b)
		c = s.ruled(r, b, both, stats.Alpha)
	}
	return r.Quotient().Rounds(s.Margin(), c, c.Extended())
}

// Verdict is what the row's ratio says of its difference from its baseline, against the margin. A row without a ratio is inconclusive. So is one that
// must not be trusted: too many of its trials failed, or bare metal differed from itself by as much. Empty: the row is a baseline, or has none.
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

// Bounds are one-sided bounds of the row's ratio: at least low, at most high, each at 95 %. Where a sentence speaks of so many rows, the bounds
// that it names hold together at 95 % (Bonferroni).
func (s *Summary) Bounds(r *Row, of int) (low, high float64) {
	b := s.Base(r)
	if of < 2 || b == nil || b == r {
		return r.Quotient().Bounds()
	}
	xs, ys, both := Paired(r, b)
	return stats.Bounds(xs, ys, s.ruled(r, b, both, stats.Alpha), of)
}

// Quotient is the row's ratio to its baseline, with its interval.
func (r *Row) Quotient() stats.Quotient {
	return stats.Quotient{Value: r.Ratio, Low: r.RatioLow, High: r.RatioHigh, N: r.RatioRounds, AtLeast: r.RatioAtLeast, AtMost: r.RatioAtMost}
}

// Cost is a quotient of a metric's means as a cost: what it comes to in the metric's direction, so that above 1 is worse. Of a metric of which
// more is better it is one over the quotient. What is shown is the quotient itself, as papers print it; what is said of it (that it costs more, that it
// is the best, that the margin is passed) is said of the cost.
func Cost(m notebook.Metric, q stats.Quotient) stats.Quotient {
	if m.MoreIsBetter() {
		return q.Inverse()
	}
	return q
}

// Cost is that of the row's ratio to its baseline.
func (r *Row) Cost() stats.Quotient { return Cost(r.Metric, r.Quotient()) }

// Decided is the smallest margin at which the row is equivalent to its baseline: it is at any larger one. +Inf where there is none.
func (r *Row) Decided() float64 { return r.Quotient().Decided() }

// Folder is one folder as read.
type Folder struct {
	Dir      string
	Study    notebook.Study
	Host     string    // ID, in Summary.Hosts
	Rounds   int       // that have at least one trial
	Begun    bool      // the last of them is not whole: trials of it are still to be done
	Torn     bool      // its last record was cut off and does not count
	Trials   int       // lines in trials.jsonl, warm-ups, traced ones and failures included
	Failed   int       // of them, of any kind
	Ends     []End     // of its sessions, in order
	Together bool      // guests were alive at the same time, and did their trials in random turns
	RoundS   float64   // seconds that a round usually took; NaN where nothing was measured
	Last     time.Time // end of its last trial
	// Quiet is what was set on the host for its sessions (notebook.Said), a text for each that differs; "nothing" is one.
	Quiet []string
	// Args are those of the command that began it, as they were typed; empty where none are recorded.
	Args []string
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
	HostCores      int     // that the host had online meanwhile
	CHR            float64 // container-to-host core ratio: the instance's cores over HostCores
	Guests         int     // that gave at least one measured trial, failed ones included; traced trials are not measured ones
	Rounds         int     // in which at least one measured trial succeeded
	Trials         int     // measured trials, failed ones included, warm-ups and traced ones not
	Failed         int     // of them
	Lost           int     // rounds in which it was tried and nothing succeeded
	Mean           float64 // in Metric.Unit: mean over rounds of the mean of each round's trials
	MeanLow        float64
	MeanHigh       float64
	Ratio          float64 // over the baseline's mean in the rounds that both have, of bare metal with its A/A control; the baseline itself is 1
	RatioLow       float64
	RatioHigh      float64
	RatioAtLeast   float64 // one-sided bounds of 95 %, by which the verdict is made (stats.Quotient.AtLeast)
	RatioAtMost    float64
	RatioRounds    int     // rounds that count in the ratio
	Robust         float64 // the ratio as a few slow rounds do not move it (stats.Robust)
	Disturbed      int     // rounds in which the host did much beside its guest (Cell.Disturbed)
	Baseline       string  // treatment id that the ratio is relative to; empty: none
	Representative bool    // false under software emulation: never ranked
	Doubtful       bool    // the A/A check failed here by as much as this row differs: not to be trusted, never ranked
	LoadFrom       string  // the machine that its service was asked from; empty: the host itself
	Kind           string  // of its study; empty: its work was timed
	Config         Config  // how its study measures, as its kind has it; nil: its work was timed
	identity       string  // Config's
	Of             any     // what its trials recorded beyond values and metrics, as its kind has it; nil: nothing
	// LoadShared: a load on this host could use the CPUs of a guest with a quota, or left it no more CPUs than a CPU set has. So it decides
	// nothing about quotas.
	LoadShared bool
	Doubts     []Doubt
	Kernels    []string           // guest kernels, with where a VM's was taken from
	Machines   []notebook.Machine // of VMs; a zero one is of a folder from before it was recorded
	CPUs       map[string]int     // how many guests with a measured trial that succeeded could use which CPUs of the host ("0-1,4")

	Cells     []Cell      // by folder and round
	Values    []Value     // of the cells in which a measured trial succeeded: what Mean and Ratio are made of
	Secondary []Secondary // the workload's secondary metrics, in its order
	IsFigure  bool        // it is one of another row's Figures
	again     *Row        // of bare metal, the row of its A/A control, with which it counts as a baseline (Paired)
	Figures   []*Row      // the row in each of those of them of which it is said which values are better: Metric, means, ratio, interval and doubts are of that
	Trace     *Trace      // what tracers saw of it; nil where no folder that it is in was traced

	Dots   []Dot // measured, successful trials, for plots; at most a hundred, evenly drawn from all
	DotsOf int   // how many measured, successful trials there are
}

// mostFailed is the share of a row's trials that may fail without more being asked.
const mostFailed = 0.1

// Unreliable says whether so much of the row failed that its numbers, which are of what succeeded, must not rank it: a
// round without any success, or more than a tenth of its trials.
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
	Tried   int             // measured trials, failed ones included
	Value   stats.Sum       // of the metric, over the measured trials that succeeded
	Order   Order           // of the same trials
	Stopped stats.Sum       // of the elapsed time, over those that were stopped at the time limit
	Work                    // of the trials that succeeded
	Beside  notebook.Beside // over all measured trials of which it is known
	Traced  *TracedCell     // of the traced trials that succeeded; nil where there are none
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
