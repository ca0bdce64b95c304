// Package explain says where a treatment's extra time went: the account of the gap between it and bare metal, by what the
// time went on, in seconds with 95 % intervals, and with a remainder that nothing explains. It adds up to the gap.
//
// # How it is made
//
// With `tare run --explain` each guest does, in random order, as many explained trials, which probes look at, as others.
// The gap is of the others alone: the mean over rounds of a treatment's elapsed time less that of bare metal in the same
// round. What is booked to a category is the mean over rounds of the treatment's seconds in it less bare metal's, of explained
// trials (notebook.Probes.Wall, which sums to a trial's elapsed time). What is left of the gap is unexplained; among it is
// what the probes cost the one more than the other, which [Account.ProbeCost] says. Only rounds count that have all four:
// explained and other trials, of both; so the sum is exact. Intervals are Student's t over rounds, shares of the gap
// Fieller's (package stats), both made wider for a stopping rule's looks as every interval of a summary is.
//
// The account is of elapsed time, whatever the workload's metric. Paper "pinning" took such figures by hand (section III-A
// and Figure 2); the account itself is Tare's own.
package explain

import (
	"errors"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// Keys of [Part] in [Account.Parts], in the order in which they are shown. Those of [Account.Fine] are notebook.Walls and
// Unexplained.
const (
	User        = notebook.WallUser
	System      = notebook.WallSystem
	Throttled   = notebook.WallThrottled
	Core        = notebook.WallCore
	IO          = "io"      // WallBlock and WallNetwork
	Waiting     = "waiting" // WallFutex, WallSleep and WallOther
	Hypervisor  = notebook.WallHypervisor
	Unexplained = "unexplained"
)

// Accounts are what the folders say.
type Accounts struct {
	Accounts []Account // one a treatment that has explained trials, in the order of Summary.Rows

	// Versus are accounts of one treatment against another that is not bare metal: of the slower of vanilla and pinned
	// against the faster one, all else equal, where the interval of their difference excludes 0.
	Versus []Account

	Notes   []string // about all of it
	Summary *data.Summary
}

// Account is where the time of one treatment went, and where what it took longer than its baseline did. What is not known
// is NaN, which JSON shows as null; Notes then say why.
type Account struct {
	Row      *data.Row // the treatment, in Accounts.Summary.Rows
	Label    string    // "cn docker vanilla 1/1GB"
	Place    string    // what it is compared within: "ffmpeg (segments=1) on bench"
	Baseline *data.Row // what it is compared with: bare metal, in Versus the other provisioning; nil: nothing, or it is bare metal
	Against  string    // Baseline in few words: "bare metal", "bare metal of 1 core", "pinned"
	Emulated bool      // the treatment or the baseline is: not a VM's cost
	Coarse   bool      // nothing followed the scheduler: of user, system and throttled time alone
	Doubtful bool      // bare metal differed from itself by as much: not to be trusted

	Rounds    int // that count: with explained and other trials that succeeded, of both
	Explained int // its explained trials, in whatever round
	Failed    int // of them; they are not used

	Elapsed stats.Estimate // seconds, of the trials that no probe looked at, over Rounds
	Times   stats.Quotient // Elapsed over the baseline's
	Gap     stats.Estimate // seconds: Elapsed less the baseline's
	Parts   []Part         // as they are shown; the last is Unexplained; their Seconds sum to Gap. Empty without a baseline
	Fine    []Part         // by notebook.Walls, and Unexplained
	Spent   []Spent        // what its own explained trials' time went on, by notebook.Walls (Coarse: those three), over all its rounds

	ProbeCost stats.Quotient    // elapsed time of explained trials over that of the others, in the same rounds
	Missing   map[string]string // by probe: why it, or a part of it, did not look on
	Lost      int64             // events that the probes lost, of all its explained trials

	Figures []Figure                // of the probes, in the order of notebook.ProbeFigures and of what stands before the name
	Spread  []notebook.Distribution // of all its explained trials together
	Inside  []notebook.Distribution // vm: as seen in the guest
	Stacks  []notebook.Stack        // the longest waits by kernel stack, longest first

	Sentence string // in plain words, by rules
	Notes    []string
}

// HasGap says whether the interval of the gap excludes 0: without it there is nothing to explain.
func (a *Account) HasGap() bool { return excludesZero(a.Gap) }

// Part is one category of an account.
type Part struct {
	Key     string
	Label   string         // "waiting for a core"
	Seconds stats.Estimate // of the gap
	Share   stats.Quotient // of the gap; NaN where the gap's interval contains 0

	// Cause says whether it may be named as one: whether its interval excludes 0 at a level that is corrected for all the
	// parts that could have been named (Bonferroni), so that of a hundred sentences at most five name one that is nothing.
	Cause bool
}

// Told says whether the interval excludes 0: a part without that is no cause of anything.
func (p *Part) Told() bool { return excludesZero(p.Seconds) }

// Spent is what a treatment's own time went on.
type Spent struct {
	Key     string // one of notebook.Walls
	Label   string
	Seconds stats.Estimate // in a trial, mean over rounds
}

// Figure is one of the probes' figures, for each trial.
type Figure struct {
	Name   string         // as in notebook.Probes.Figures: "vcpu.switches"; with "inside." before it where a VM's guest saw it
	Of     string         // notebook.ProbeFigure.Name: "switches"
	Unit   string         // "1", "s", "B"
	Help   string         // what it is
	Mean   stats.Estimate // of a trial, over rounds
	Total  float64        // of all explained trials that have it
	Before stats.Estimate // the baseline's Mean; N 0 where it has none
	More   stats.Estimate // Mean less Before, paired by round
}

// ErrNone is in the error of folders without explained trials.
var ErrNone = errors.New("no explained trials")

// Read reads the folders and makes the accounts of what they hold. Folders without explained trials are an error that says
// how to get some, with ErrNone in it; others are those of data.Read.
func Read(dirs []string) (*Accounts, error) {
	s, err := data.Read(dirs, data.Options{})
	if err != nil {
		return nil, err
	}
	return From(s)
}
