// Package summary reads one or several studies' folders and says what each treatment cost: a row a treatment,
// with its mean, its ratio to bare metal at the same instance type, the 95 % intervals of both, and every doubt
// about them. It is a pure function of the folders: the same folders give the same summary anywhere.
//
// What a summary will not do: rank a figure taken under software emulation, hide a failed trial, or print a number
// whose uncertainty is unknown without saying so.
package data

import (
	"tare/notebook"
)

// Options say how folders are to be read.
type Options struct {
	// Baseline chooses what the ratios are relative to, instead of bare metal at the same instance type. Keys are
	// platform, engine, accelerator, provisioning, instance, network, isolation, host_cores, or the name of a parameter of
	// the workload. Without an instance, the baseline is looked for at each row's own instance type; without a network or
	// host_cores, the row's own goes before others. It must match one treatment for
	// each workload and its parameters; else Read says which there are. Values are as in the table; an empty value
	// matches what has none. Empty map: bare metal.
	Baseline map[string]string

	// Dots bounds how many trials each row keeps for plots; 0 means 400.
	Dots int
}

// Summary is what the folders say.
type Summary struct {
	// Sentence is the answer in words, with its uncertainty; never empty.
	Sentence string

	// Rows, one a treatment, in the order of the studies; the A/A row of an instance type follows its bm row.
	Rows []Row

	Folders  []Folder    // as read, in the order given
	Hosts    []Host      // each once
	LeftOut  []LeftOut   // what the studies asked for and was not done, and why
	AA       []AACheck   // one for each workload (with parameters) and instance type that has an A/A row
	Ruler    []RulerCost // the ruler's own cost, by platform, engine and accelerator
	Warnings []Warning   // said by trials, each text once with its count
	Notes    []string    // about the summary as a whole: level of the intervals, rounds not finished, …

	at map[treatmentKey]int // in Rows
}

// Row is the row of a folder's treatment, where the folder is an index in Folders; nil where there is no such.
func (s *Summary) Row(folder int, treatment string) *Row {
	i, ok := s.at[treatmentKey{folder, treatment}]
	if !ok {
		return nil
	}
	return &s.Rows[i]
}

// Folder is one folder as read.
type Folder struct {
	Dir    string
	Study  notebook.Study
	Host   string // ID, in Summary.Hosts
	Rounds int    // that have at least one trial
	Begun  bool   // the last of them is not whole: trials of it are still to be done
	Torn   bool   // its last record was cut off and does not count
	Trials int    // lines in trials.jsonl, warm-ups, explained ones and failures included
	Failed int    // of them, of any kind
	// Ends are the reasons why its sessions ended, in order; "still running or killed" where a start has no end.
	Ends []string
	// Args are those of the command that began it, as they were typed; empty where none are recorded.
	Args []string
}

// Host is a host of the folders.
type Host struct {
	notebook.Host
	Name string // its hostname; with a part of its ID where two hosts have the same one
}

// Row is one treatment's result. Where a number is not known it is NaN (an interval's end may be ±Inf), which
// JSON shows as null; Notes then say why.
type Row struct {
	Treatment      notebook.Treatment
	Host           string // Host.Name
	HostID         string
	Metric         notebook.Metric
	Image          notebook.Image
	HostCores      int     // that the host had online meanwhile
	CHR            float64 // container-to-host core ratio: the instance's cores over HostCores
	Guests         int     // that gave at least one measured trial, failed ones included; explained trials are not measured ones
	Rounds         int     // in which at least one measured trial succeeded
	Trials         int     // measured trials, failed ones included, warm-ups and explained ones not
	Failed         int     // of them
	Lost           int     // rounds in which it was tried and nothing succeeded
	Failures       string  // "6 of 12 trials failed: CAUSE"; empty where none did
	Mean           float64 // in Metric.Unit: mean over rounds of the mean of each round's trials
	MeanLow        float64
	MeanHigh       float64
	Ratio          float64 // Mean over the baseline's in the rounds that both have; the baseline itself is 1
	RatioLow       float64
	RatioHigh      float64
	RatioRounds    int    // rounds that count in the ratio
	Baseline       string // treatment id that the ratio is relative to; empty: none
	Representative bool   // false under software emulation: never ranked
	Doubtful       bool   // the A/A check failed here by as much as this row differs: not to be trusted, never ranked
	Notes          []string
	Kernels        []string // guest kernels, with where a VM's was taken from

	Values []Value // by round, in order: what Mean and Ratio are made of
	Also   []Also  // the workload's further figures, in its order

	Dots   []Dot // measured, successful trials, for plots; at most Options.Dots, evenly drawn from all
	DotsOf int   // how many measured, successful trials there are
}

// mostFailed is the share of a row's trials that may fail without more being asked.
const mostFailed = 0.1

// Unreliable says whether so much of the row failed that its figures, which are of what succeeded, must not rank it: a
// round without any success, or more than a tenth of its trials. Failures then says what failed.
func (r *Row) Unreliable() bool {
	return r.Failures != "" && (r.Lost > 0 || float64(r.Failed) > mostFailed*float64(r.Trials))
}

// IsBaseline says whether the row is what its group's ratios are relative to.
func (r *Row) IsBaseline() bool { return r.Baseline != "" && r.Baseline == r.Treatment.ID }

// Value is what one treatment gave in one round: what was measured in it was measured at nearly the same time as the
// other treatments' values of that round.
type Value struct {
	Folder int // index in Summary.Folders
	Round  int
	Mean   float64 // of the round's successful trials, in the metric's unit
	Trials int     // so many
}

// Also is a further figure of a workload: a percentile, a rate. Its interval is made as the metric's.
type Also struct {
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
	Value  float64 // in the metric's unit
}

// LeftOut is a treatment that was asked for and not done.
type LeftOut struct {
	Host      string // Host.Name
	Treatment notebook.Treatment
	Reason    string
}

// Verdict of an A/A check.
type Verdict string

const (
	Holds    Verdict = "holds"   // the interval of bare metal over itself contains 1
	Misses   Verdict = "misses"  // it does not: the host was too unsteady, or the run unlucky (1 in 20)
	NotKnown Verdict = "unknown" // there is no interval: too few rounds, or one without bounds
)

// AACheck is bare metal against itself under another name, at one instance type.
type AACheck struct {
	Host             string // Host.Name
	Workload         string
	Params           map[string]string
	Instance         notebook.Instance
	HostCores        int
	Ratio, Low, High float64
	Verdict          Verdict
	Untrusted        []string // treatment ids whose difference is no larger than what the check shows; when it misses
}

// RulerCost is what the ruler itself takes to run an empty process, over the guests of one platform.
type RulerCost struct {
	Host                          string // Host.Name
	Platform, Engine, Accelerator string
	Guests                        int
	Median, Low, High             float64 // seconds: the guests' medians: their median, smallest and largest
	RoundTrip                     float64 // seconds: median over guests of the smallest round trip host, ruler, host
}

// Warning is something that trials said about themselves.
type Warning struct {
	Text       string
	Count      int      // trials that said it
	Treatments []string // ids, sorted
}
