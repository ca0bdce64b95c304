package explain

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// Subject is what an account divides.
type Subject string

// Subjects.
const (
	OfElapsed Subject = ""     // the elapsed time of a trial
	OfMean    Subject = "mean" // the mean time of requests, which is the workload's metric
	OfP99     Subject = "p99"  // its 99th percentile; the parts are those of the requests from the 98.5th to the 99.5th
)

// Keys of parts that only requests have, in addition to the keys Wall….
const (
	Running   = "running"
	Queued    = notebook.RequestQueued
	Disk      = "disk" // WallBlock and WallMemory
	Load      = notebook.RequestLoad
	Remainder = "remainder" // what the load measured in the same trials minus all parts
)

// view finds the time that an account divides.
type view struct {
	of          Subject
	took        func(*data.Cell) stats.Sum       // seconds of the trials that no tracer observed
	traced      func(*data.TracedCell) stats.Sum // the same for the traced trials
	spent       func(*data.TracedCell) data.Seconds
	shown, fine []category
}

// seconds is a category's mean time in a trial.
func (c category) seconds(of data.Seconds) (sum float64) {
	for _, key := range c.of {
		sum += of.Of(key).Mean()
	}
	return sum
}

// sum adds up the mean times of categories.
func sum(all []category, of data.Seconds) (sum float64) {
	for _, c := range all {
		sum += c.seconds(of)
	}
	return sum
}

// ofElapsed divides the elapsed time.
var ofElapsed = view{
	took:   func(c *data.Cell) stats.Sum { return c.Elapsed },
	traced: func(c *data.TracedCell) stats.Sum { return c.Elapsed },
	spent:  func(c *data.TracedCell) data.Seconds { return c.Wall },
	shown:  shown, fine: fine,
}

// shownRequests are the categories of requests.
var shownRequests = []category{
	{Running, []string{notebook.WallUser}}, {Throttled, []string{notebook.WallThrottled}}, {Core, []string{notebook.WallCore}}, {Queued, []string{notebook.RequestQueued}},
	{Disk, []string{notebook.WallBlock, notebook.WallMemory}}, {notebook.WallNetwork, []string{notebook.WallNetwork}}, {notebook.WallFutex, []string{notebook.WallFutex}},
	{Waiting, []string{notebook.WallSleep, notebook.WallOther}}, {Load, []string{notebook.RequestLoad}},
}

// fineRequests has one category for each key of the notebook.
var fineRequests = func() (all []category) {
	for _, k := range notebook.RequestWalls {
		key := k
		if k == notebook.WallUser {
			key = Running
		}
		all = append(all, category{key, []string{k}})
	}
	return all
}()

// p99 is the secondary metric for the 99th percentile of a workload's times.
const p99 = "p99"

// ofMean and ofP99 divide the times of requests.
var (
	ofMean = view{
		of:     OfMean,
		took:   func(c *data.Cell) stats.Sum { return c.Value },
		traced: func(c *data.TracedCell) stats.Sum { return c.Value },
		spent:  func(c *data.TracedCell) data.Seconds { return c.Mean },
		shown:  shownRequests, fine: fineRequests,
	}
	ofP99 = view{
		of:     OfP99,
		took:   func(c *data.Cell) stats.Sum { return c.Secondary[p99] },
		traced: func(c *data.TracedCell) stats.Sum { return c.Secondary[p99] },
		spent:  func(c *data.TracedCell) data.Seconds { return c.P99 },
		shown:  shownRequests, fine: fineRequests,
	}
)

// mostApart is the largest relative difference between the mean time of requests and the mean that the load or the command reports. If they differ
// by more, the tracers did not see what was timed.
const mostApart = 0.2

// alike reports whether the mean of requests, as a share of the metric, shows that the metric is their mean. What passed outside the service's sockets
// may be any part of it.
func alike(of string, share float64) bool {
	if of == notebook.RequestsServed {
		return share <= 1+mostApart
	}
	return math.Abs(share-1) <= mostApart
}

// views lists the times of a row that can be divided.
func (b *book) views(r *data.Row) []view {
	percentile := slices.ContainsFunc(r.Secondary, func(m data.Secondary) bool { return m.Metric.Name == p99 && m.Metric.Unit == "s" })
	if !percentile || r.Metric.Unit != "s" { // the metric is not the time of an operation
		return []view{ofElapsed}
	}
	var value, divided []float64
	tail := false
	for _, c := range b.cells(r, traced) {
		if c.Traced.Mean != nil {
			value, divided = append(value, c.Traced.Value.Mean()), append(divided, sum(fineRequests, c.Traced.Mean))
		}
		tail = tail || c.Traced.P99 != nil && c.Traced.Secondary[p99].N > 0
	}
	switch {
	case len(value) == 0 || !alike(r.Trace.Requests.Of, stat.Mean(divided, nil)/stat.Mean(value, nil)):
		return []view{ofElapsed}
	case tail && r.Trace.Requests.Of != notebook.RequestsServed: // the slow ones at the sockets need not be those that were slow for the load
		return []view{ofMean, ofP99}
	}
	return []view{ofMean}
}

// slow compares slow requests with median ones.
func (b *book) slow(a *Account, cells []*data.Cell) {
	of := func(all []category) stats.Estimate {
		return b.mean(cells, func(c *data.Cell) float64 { return sum(all, c.Traced.P99) - sum(all, c.Traced.P50) })
	}
	a.Slow = of(a.view.fine)
	for _, c := range a.view.fine {
		a.SlowOn = append(a.SlowOn, Spent{Key: c.key, Seconds: of([]category{c})})
	}
}

// ofRequests adds the caveats of an account of requests.
func ofRequests(a *Account) {
	of := a.Row.Trace.Requests
	if a.Of == OfP99 {
		return // the account of the mean says so
	}
	switch {
	case of.ByAll > 0:
		a.Doubts = append(a.Doubts, SharedConnections{})
	case of.Of == notebook.RequestsWakes:
		a.Doubts = append(a.Doubts, FromWakes{})
	case of.Of == notebook.RequestsServed:
		a.Doubts = append(a.Doubts, AtSockets{})
	}
}

// Before finds the account of an account's baseline for the same Subject; nil: there is none.
func (as *Accounts) Before(a *Account) *Account {
	i := slices.IndexFunc(as.Accounts, func(b *Account) bool { return b.Row == a.Baseline && b.Of == a.Of })
	if i < 0 {
		return nil
	}
	return as.Accounts[i]
}
