package replay

import (
	"cmp"
	"math"
	"slices"
	"time"

	"tare/notebook"
	"tare/stats"
)

// interval is what a thread did for a time.
type interval struct {
	from, to time.Duration
	did      did
	by       int32 // the thread that ended the wait, by its number; none
}

// did is one of the parts of an account.
type did uint8

const (
	ran did = iota
	stood
	held
	waited // and further: for accountWaits
)

// accountWaits are the reasons for which a thread waits, in the order of did from waited on.
var accountWaits = [...]string{notebook.WallBlock, notebook.WallMemory, notebook.WallNetwork, notebook.WallFutex, notebook.WallSleep, notebook.WallOther}

const (
	queued = waited + did(len(accountWaits)) // others were served first
	load   = queued + 1                      // it was not at the service: the load, the network, and making the connection
	parts  = int(load) + 1
)

// key is the name of a part.
func (d did) key() string {
	switch d {
	case ran:
		return notebook.WallUser
	case stood:
		return notebook.WallCore
	case held:
		return notebook.WallThrottled
	case queued:
		return notebook.RequestQueued
	case load:
		return notebook.RequestLoad
	}
	return accountWaits[d-waited]
}

// waitedFor is the part of a wait.
func waitedFor(reason string) did {
	if i := slices.Index(accountWaits[:], reason); i >= 0 {
		return waited + did(i)
	}
	return waited + did(len(accountWaits)-1)
}

// served is a request, for its account.
type served struct {
	arrived, taken, moved, done time.Duration // moved: since when another thread worked at it than the one that took it
	by, last                    int32         // the threads that took it and that answered it
}

// note appends an interval to what a thread did.
func (t *thread) note(from, to time.Duration, d did, by int32) {
	if to > from {
		t.did = append(t.did, interval{from, to, d, by})
	}
}

// mostFollowed is how many wakes are followed from one thread to the next.
const mostFollowed = 8

// follow adds up what a thread did between two times. If it waited and a thread of the target ended the wait, it waited for what that one did.
func (b *builder) follow(sum *[parts]time.Duration, thread int32, from, to time.Duration, depth int) {
	if to <= from {
		return
	}
	all := b.all[thread].did
	i, _ := slices.BinarySearchFunc(all, from, func(v interval, at time.Duration) int {
		if v.to <= at {
			return -1
		}
		return 1
	})
	at := from
	for ; i < len(all) && all[i].from < to; i++ {
		v := all[i]
		begin, end := max(v.from, at), min(v.to, to)
		sum[waitedFor(notebook.WallOther)] += begin - at // nothing is known of it
		at = end
		if v.did >= waited && v.by != none && v.by != thread && depth < mostFollowed {
			b.follow(sum, v.by, begin, end, depth+1)
			continue
		}
		sum[v.did] += end - begin
	}
	sum[waitedFor(notebook.WallOther)] += max(0, to-at)
}

// queue adds up why a thread did not take a request between two times: it could not run, it ran for others, or it had not been woken yet.
func (b *builder) queue(sum *[parts]time.Duration, by int32, from, to time.Duration) {
	var before [parts]time.Duration
	b.follow(&before, by, from, to, mostFollowed)
	for d, took := range before {
		if d := did(d); d == stood || d == held {
			sum[d] += took
		} else {
			sum[queued] += took
		}
	}
}

// account divides the time of a request.
func (b *builder) account(s served) (sum [parts]time.Duration) {
	b.queue(&sum, s.by, s.arrived, s.taken)
	middle := s.done
	if s.by != s.last {
		middle = min(max(s.moved, s.taken), s.done)
	}
	b.follow(&sum, s.by, s.taken, middle, 0)
	b.follow(&sum, s.last, middle, s.done, 0)
	return sum
}

// Percentiles between which requests are taken to say what the 99th percentile and the median are made of.
var (
	around99 = [2]float64{0.985, 0.995}
	around50 = [2]float64{0.45, 0.55}
)

// fewestAround99 is how many requests there must be for five of them to be near the 99th percentile.
const fewestAround99 = 500

// accounts divides the times of all requests.
func (b *builder) accounts() *notebook.Requests {
	if len(b.served) == 0 {
		return nil
	}
	slices.SortFunc(b.served, func(x, y served) int {
		return cmp.Or(cmp.Compare(x.done-x.arrived, y.done-y.arrived), cmp.Compare(x.arrived, y.arrived), cmp.Compare(x.by, y.by))
	})
	took := make([]float64, len(b.served))
	for i, s := range b.served {
		took[i] = (s.done - s.arrived).Seconds()
	}
	return divide(notebook.RequestsServed, took, func(i int) [parts]time.Duration { return b.account(b.served[i]) })
}

// divide makes the account of requests. took has their seconds, the shortest first, and divided(i) divides the time of the i-th.
func divide(of string, took []float64, divided func(i int) [parts]time.Duration) *notebook.Requests {
	var sums [][parts]time.Duration
	some := min(mostDivided, len(took))
	times := make([]float64, some)
	for n := range some { // evenly by their time
		i := n * len(took) / some
		times[n], sums = took[i], append(sums, divided(i))
	}
	all := &notebook.Requests{Of: of, N: len(took), Mean: mean(sums), Median: stats.Quantile(took, 0.5), Tail: stats.Quantile(took, tail)}
	from, to := about(times, around50, all.Median)
	all.P50 = mean(sums[from:to])
	if len(took) >= fewestAround99 {
		from, to = about(times, around99, all.Tail)
		all.P99 = mean(sums[from:to])
	}
	return all
}

// mostDivided is how many requests are divided. Many at once on one thread take long.
const mostDivided = 4000

// about returns which requests are between two quantiles. It leaves out the slowest or the fastest of them until their mean is as near as can be
// to a value. In a long tail the slowest would otherwise make the mean much larger. times are in order.
func about(times []float64, of [2]float64, value float64) (from, to int) {
	n := float64(len(times))
	from = int(of[0] * n)
	to = max(from+1, int(of[1]*n))
	sum := 0.0
	for _, t := range times[from:to] {
		sum += t
	}
	off := func(sum float64, n int) float64 { return math.Abs(sum/float64(n) - value) }
	for to-from > 1 {
		left, by := sum-times[from], 1
		if sum > value*float64(to-from) {
			left, by = sum-times[to-1], 0
		}
		if off(left, to-from-1) >= off(sum, to-from) {
			break
		}
		sum, from, to = left, from+by, to-1+by
	}
	return from, to
}

// mean is the mean of sums, in seconds by part.
func mean(sums [][parts]time.Duration) map[string]float64 {
	all := map[string]float64{}
	for _, s := range sums {
		for d, took := range s {
			if took != 0 {
				all[did(d).key()] += took.Seconds() / float64(len(sums))
			}
		}
	}
	return all
}
