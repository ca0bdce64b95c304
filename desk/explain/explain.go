// Package explain says where a treatment's extra time went: the account of its overhead over bare metal, by what the time
// is attributed to, in seconds with 95 % intervals, and with a remainder that nothing explains. It adds up to the overhead.
//
// # How it is made
//
// With `tare run --explain` each guest does, in random order, as many traced trials, which tracers observe, as others. The
// overhead is only of the others: the mean over rounds of a treatment's elapsed time less that of bare metal in the same
// round. What is attributed to a category is the mean over rounds of the treatment's seconds in it less bare metal's, of
// traced trials (notebook.Trace.Wall, which sums to a trial's elapsed time). What is left of the overhead is unexplained;
// among it is what the tracers cost the one more than the other, which [Account.TracerCost] says. Only rounds count that
// have all four: traced and other trials, of both; so the sum is exact. Intervals are Student's t over rounds, shares of
// the overhead Fieller's (package stats), both made wider for a stopping rule's looks as every interval of the desk is.
//
// The account is of elapsed time, whatever the workload's metric. If the tracers divided the time of requests, it is replaced by two: of the mean
// time of requests, and of its 99th percentile. Paper "pinning" took such figures by hand (section III-A
// and Figure 2); the account itself is Tare's own.
package explain

import (
	"cmp"
	"errors"
	"math"
	"slices"

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
	Accounts []*Account // one for each treatment with traced trials, or one for each Subject of its requests, in the order of Summary.Rows

	// Versus are accounts of one treatment against another that is not bare metal: of the slower of vanilla and pinned
	// against the faster one, all else equal, where the interval of their difference excludes 0.
	Versus []*Account

	Doubts  []data.Doubt // about all of it
	Summary *data.Summary
}

// Against says what an account's baseline is. Zero: bare metal of the same size.
type Against struct {
	Provisioning string  // the same treatment, provisioned in this other way
	Cores        float64 // bare metal with so many cores, which is larger
}

// Account is where the time of one treatment went, and where what it took longer than its baseline did. What is not known
// is NaN, which JSON shows as null; Doubts then say why.
type Account struct {
	view view

	Of          Subject   // what is divided; a row has at most one account for each Subject and baseline
	Row         *data.Row // the treatment, in Accounts.Summary.Rows
	OtherImages bool      // the same work was also done with another image: it needs to be named
	Baseline    *data.Row // what it is compared with: bare metal, in Versus the other provisioning; nil: nothing, or it is bare metal
	Against     Against   // what Baseline is
	Emulated    bool      // the treatment or the baseline is: not a VM's cost
	Tier        int       // notebook.Tier…: what it is made of; 0: Coarse
	Coarse      bool      // nothing followed the scheduler: only user, system and throttled time are known
	Doubtful    bool      // bare metal differed from itself by as much: not to be trusted

	Rounds int // that count: with traced and other trials that succeeded, of both
	Traced int // its traced trials, in whatever round
	Failed int // of them; they are not used

	Elapsed  stats.Estimate // seconds of the time that Of names, in the trials that no tracer observed, over Rounds
	Times    stats.Quotient // Elapsed over the baseline's
	Overhead stats.Estimate // seconds: Elapsed less the baseline's
	Parts    []Part         // as they are shown; the last is Unexplained; their Seconds sum to Overhead. Empty without a baseline
	Fine     []Part         // by notebook.Walls, or for requests by notebook.RequestWalls, and Unexplained
	Spent    []Spent        // what its own traced trials' time went on, by the same keys (Coarse: three of them; requests: also Remainder), over all its rounds

	Slow   stats.Estimate // OfP99: seconds by which the requests around the 99th percentile took longer than those around the median, in traced trials
	SlowOn []Spent        // what they went on, in the order of Fine

	TracerCost stats.Quotient          // the time of Of in traced trials over that in the others, in the same rounds
	Missing    map[string]data.Missing // by tracer: why it, or a part of it, observed nothing
	Lost       int64                   // events that the tracers lost, of all its traced trials

	// DiskPerRequest is how many reads and writes of block devices the guest asked for in a trial, for each request to its service; N 0: it has
	// no service, or nobody counted them (paper "pinning", section III-B3: at least one). What the kernel writes back later in its own
	// threads is not among them.
	DiskPerRequest stats.Estimate

	Figures []Figure                // the tracers' metrics, in the order of notebook.TracerMetrics and of what stands before the name
	Spread  []notebook.Distribution // of all its traced trials together
	Inside  []notebook.Distribution // vm: as seen in the guest
	Stacks  []notebook.Stack        // the longest waits by kernel stack, longest first

	Doubts []data.Doubt
}

// Significant says whether the interval of the overhead excludes 0: without it there is nothing to explain.
func (a *Account) Significant() bool { return excludesZero(a.Overhead) }

// An overhead below nearZero of the time that its baseline takes is near zero. Parts of cancelling times its size or more cancel out, and their
// difference is mostly noise, so shares of it say nothing.
const (
	nearZero   = 0.01
	cancelling = 2
)

// Divisible says whether there is an overhead that can be divided: shares of it say something, and its causes.
func (a *Account) Divisible() bool { return a.Significant() && !a.NearZero() }

// NearZero says whether the overhead is significant and next to nothing, while its parts are not. Then there are no shares, and no cause.
func (a *Account) NearZero() bool {
	if !a.Significant() || !(math.Abs(a.Times.Value-1) < nearZero) {
		return false
	}
	return slices.ContainsFunc(a.Parts, func(p Part) bool { return math.Abs(p.Seconds.Value) >= cancelling*math.Abs(a.Overhead.Value) })
}

// leastSized is the share of the overhead's estimate that the nearer end of its interval has to be for shares of it to have both ends.
const leastSized = 0.5

// Sized says whether the overhead is known well enough to be divided by.
func (a *Account) Sized() bool {
	v := a.Overhead.Value
	return a.Overhead.HasInterval() && min(a.Overhead.Low/v, a.Overhead.High/v) >= leastSized
}

// supported is a share as far as the overhead supports it. Of small overheads only those are significant that came out too large, so a share of one is too
// small: its end away from zero holds in 76 % of accounts only, and is left out.
func (a *Account) supported(q stats.Quotient) stats.Quotient {
	if a.Sized() {
		return q
	}
	if q.Low < 0 {
		q.Low = math.Inf(-1)
	}
	if q.High > 0 {
		q.High = math.Inf(1)
	}
	return q
}

// Part is one category of an account.
type Part struct {
	Key     string         // one of this package's constants; in Account.Fine one of notebook.Walls or Unexplained
	Seconds stats.Estimate // of the overhead
	Share   stats.Quotient // of the overhead; NaN if the overhead is not significant or near zero, infinite at an end that the data do not support

	// Cause says whether a sentence may name the part as a cause. Its interval must exclude 0 at a level that is corrected for
	// all the parts that the sentence could name (Bonferroni). At most five sentences in a hundred then name a wrong cause.
	Cause bool
}

// Significant says whether the interval excludes 0. Otherwise the part is not a cause.
func (p *Part) Significant() bool { return excludesZero(p.Seconds) }

// LeastShare is the smallest share of the overhead for which a sentence names a part. MostCauses is how many parts it names.
const (
	LeastShare = 0.1
	MostCauses = 2
)

// Causes are the parts on the overhead's side that a sentence names as its causes, the largest first.
func (a *Account) Causes() []*Part {
	if !a.Divisible() {
		return nil
	}
	var all []*Part
	for i := range a.Parts {
		p := &a.Parts[i]
		if p.Cause && p.Seconds.Value > 0 == (a.Overhead.Value > 0) {
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(p, q *Part) int {
		return cmp.Compare(math.Abs(q.Seconds.Value), math.Abs(p.Seconds.Value))
	})
	n := 0
	for n < len(all) && n < MostCauses && (n == 0 || all[n].Share.Value >= LeastShare) {
		n++
	}
	return all[:n]
}

// Offset is the largest part on the other side that may be named and is worth a word; nil where there is none.
func (a *Account) Offset() *Part {
	if !a.Divisible() {
		return nil
	}
	var most *Part
	for i := range a.Parts {
		p := &a.Parts[i]
		if p.Cause && p.Seconds.Value > 0 != (a.Overhead.Value > 0) && -p.Share.Value >= LeastShare && (most == nil || p.Share.Value < most.Share.Value) {
			most = p
		}
	}
	return most
}

// Spent is what a treatment's own time went on.
type Spent struct {
	Key     string         // one of notebook.Walls
	Seconds stats.Estimate // in a trial, mean over rounds
}

// Figure is one of the tracers' metrics, for each trial.
type Figure struct {
	Name   string         // as in notebook.Trace.Figures: "vcpu.switches"; with "inside." before it where a VM's guest saw it
	Of     string         // notebook.TracerMetric.Name: "switches"
	Unit   string         // "1", "s", "B"
	Mean   stats.Estimate // of a trial, over rounds
	Total  stats.Number   // of all traced trials that have it
	Before stats.Estimate // the baseline's Mean; N 0 where it has none
	More   stats.Estimate // Mean less Before, paired by round
}

// Significant says whether the figure differs from the baseline's: whether the interval of More excludes 0.
func (f *Figure) Significant() bool { return excludesZero(f.More) }

// ErrNone is in the error of folders without traced trials.
var ErrNone = errors.New("no traced trials")

// excludesZero says whether there is an interval and 0 is not in it.
func excludesZero(e stats.Estimate) bool { return e.HasInterval() && (e.Low > 0 || e.High < 0) }
