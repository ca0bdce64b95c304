package replay

import (
	"cmp"
	"math"
	"slices"
	"time"

	"tare/notebook"
)

// Account divides the time of the operations that a load timed. Without any, it divides the requests that came to the target's sockets. Without these,
// it divides the time of the target's threads from a wake to the next wait. It is nil if the timeline has none of them. began is when the timeline began. whole says
// that it goes on until the load had ended.
func Account(events []Event, began time.Duration, timed []Operation, whole bool) *notebook.Requests {
	b := build(events, began)
	switch {
	case len(timed) > 0 && len(b.served) > 0:
		return b.operations(events, timed, whole)
	case len(timed) > 0:
		return nil
	case len(b.served) > 0:
		return b.accounts()
	}
	for _, c := range b.timed() {
		for _, s := range c.spans {
			b.served = append(b.served, served{arrived: s.arrived, taken: s.arrived, done: s.arrived + s.took, by: c.by, last: c.by})
		}
	}
	all := b.accounts()
	if all != nil {
		all.Of = notebook.RequestsWakes
	}
	return all
}

// asked is one request of an operation.
type asked struct {
	Span
	served *served // nil: unknown
}

// off is how far a load's times may differ from the kernel's. The load rounds them. It reads the clock before it sends and after it has received.
const off = 50 * time.Microsecond

// mostlyFound is the least share of requests whose serving thread must be known.
const mostlyFound = 0.95

// operation is an Operation by the time of the builder.
type operation struct {
	Span
	requests []asked
}

// within returns the operations that the timeline covers. If it ends before the load, those count that began before the first one that it does not
// have to its end, so that it leaves out no slower ones.
func (b *builder) within(timed []Operation, whole bool) (all []operation) {
	end := time.Duration(math.MaxInt64)
	for i := range timed {
		if s := timed[i].span(); !whole && s.End-b.w.began > b.now {
			end = min(end, s.Begin)
		}
	}
	for i := range timed {
		s := timed[i].span()
		if s.Begin < b.w.began || s.Begin >= end {
			continue
		}
		o := operation{Span: s.since(b.w.began)}
		for _, r := range timed[i].Requests {
			o.requests = append(o.requests, asked{Span: r.since(b.w.began)})
		}
		all = append(all, o)
	}
	return all
}

// operations divides the time of what the load timed, as far as the timeline goes.
func (b *builder) operations(events []Event, timed []Operation, whole bool) *notebook.Requests {
	all := b.within(timed, whole)
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(x, y operation) int { return cmp.Compare(x.took(), y.took()) })
	var some []*asked
	seconds := make([]float64, len(all))
	for i, o := range all {
		seconds[i] = o.took().Seconds()
		for j := range o.requests {
			some = append(some, &o.requests[j])
		}
	}
	byAll := peak(some) > len(b.open) || float64(b.find(some)) < mostlyFound*float64(len(some))
	var c *crossings
	if byAll || slices.ContainsFunc(some, func(a *asked) bool { return a.served == nil }) {
		c = b.crossings(events)
	}
	a := divide(notebook.RequestsTimed, seconds, func(i int) (sum [parts]time.Duration) {
		all[i].path(&sum, func(a *asked) {
			if a.served == nil || byAll {
				c.account(&sum, a.Span)
				return
			}
			for d, took := range b.account(*a.served) {
				sum[d] += took
			}
			sum[load] += a.took() - (a.served.done - a.served.arrived)
		})
		return sum
	})
	a.ByAll = byAll
	return a
}

// peak is the largest number of requests that the load waited for at the same time.
func peak(some []*asked) (most int) {
	type step struct {
		at time.Duration
		by int
	}
	var steps []step
	for _, a := range some {
		steps = append(steps, step{a.Begin, 1}, step{a.End, -1})
	}
	slices.SortFunc(steps, func(x, y step) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.by, y.by)) })
	n := 0
	for _, s := range steps {
		n += s.by
		most = max(most, n)
	}
	return most
}

// path goes back from the end of an operation to the request that ended last. From the beginning of that request, it goes back to the last one that had
// ended by then, and so on. The time between these requests is the load's.
func (o *operation) path(sum *[parts]time.Duration, divide func(*asked)) {
	at := o.End
	for {
		var last *asked
		for i := range o.requests {
			if a := &o.requests[i]; a.End <= at && (last == nil || a.End > last.End) && a.Begin < a.End {
				last = a
			}
		}
		if last == nil {
			sum[load] += max(0, at-o.Begin)
			return
		}
		sum[load] += at - last.End
		divide(last)
		at = last.Begin
	}
}

// find matches each request that the service served with one that the load timed, and returns the number of matches. If several match, it takes the one
// whose answer the load had first.
func (b *builder) find(some []*asked) (found int) {
	slices.SortFunc(some, func(x, y *asked) int { return cmp.Or(cmp.Compare(x.Begin, y.Begin), cmp.Compare(x.End, y.End)) })
	slices.SortFunc(b.served, func(x, y served) int { return cmp.Or(cmp.Compare(x.arrived, y.arrived), cmp.Compare(x.done, y.done)) })
	var open []*asked // in the order of their ends
	next := 0
	for i := range b.served {
		s := &b.served[i]
		for ; next < len(some) && some[next].Begin <= s.arrived+off; next++ {
			at, _ := slices.BinarySearchFunc(open, some[next].End, func(a *asked, end time.Duration) int { return cmp.Compare(a.End, end) })
			open = slices.Insert(open, at, some[next])
		}
		over, _ := slices.BinarySearchFunc(open, s.arrived, func(a *asked, at time.Duration) int { return cmp.Compare(a.End, at) })
		open = slices.Delete(open, 0, over)
		at, _ := slices.BinarySearchFunc(open, s.done-off, func(a *asked, at time.Duration) int { return cmp.Compare(a.End, at) })
		if at < len(open) {
			open[at].served = s
			open = slices.Delete(open, at, at+1)
			found++
		}
	}
	return found
}

// crossing is when bytes came to the service, were read, or were sent.
type crossing struct {
	at     time.Duration
	of     uint64
	thread int32 // by its number
}

// crossings has all crossings, and what the service's threads did together.
type crossings struct {
	b             *builder
	arrived, sent []crossing
	taken         map[uint64][]crossing // by connection
	together      together
}

func (b *builder) crossings(events []Event) *crossings {
	c := &crossings{b: b, taken: map[uint64][]crossing{}, together: b.together()}
	now := time.Duration(0)
	for i := range events {
		e := &events[i]
		now = max(now, e.At-b.w.began)
		at := crossing{now, e.Value, none}
		switch e.Kind {
		case Arrives:
			c.arrived = append(c.arrived, at)
		case Takes:
			at.thread = b.thread(e.Thread).number
			c.taken[e.Value] = append(c.taken[e.Value], at)
		case Sends:
			c.sent = append(c.sent, at)
		}
	}
	return c
}

// after is the index of the first crossing at a time or later.
func after(all []crossing, at time.Duration) int {
	i, _ := slices.BinarySearchFunc(all, at, func(c crossing, at time.Duration) int { return cmp.Compare(c.at, at) })
	return i
}

// account divides the time of a request whose thread is not known. The request arrived with the first bytes that reached the service after the load
// sent it. Its answer ended with the last bytes that the service sent before the load had the answer.
func (c *crossings) account(sum *[parts]time.Duration, s Span) {
	came, gone := after(c.arrived, s.Begin), after(c.sent, s.End+1)-1
	if came == len(c.arrived) || gone < 0 || c.sent[gone].at <= c.arrived[came].at {
		sum[load] += s.took()
		return
	}
	from, to := c.arrived[came].at, c.sent[gone].at
	sum[load] += from - s.Begin + s.End - to
	taken := c.taken[c.arrived[came].of]
	if i := after(taken, from); i < len(taken) && taken[i].at < to {
		c.b.queue(sum, taken[i].thread, from, taken[i].at)
		from = taken[i].at
	}
	c.together.add(sum, from, to)
}

// together is what all threads did, added up from the beginning: sums[i] covers the time until at[i].
type together struct {
	at   []time.Duration
	sums [][parts]float64 // nanoseconds
}

// change is when one more or one fewer thread does something.
type change struct {
	at time.Duration
	d  did
	by int
}

// together adds up what all threads did. Threads that ran or could have run share each moment equally. If there were none, the time goes
// to what the next ready thread had waited for.
func (b *builder) together() (t together) {
	var changes []change
	for _, th := range b.all {
		for _, v := range th.did {
			changes = append(changes, change{v.from, v.did, 1}, change{v.to, v.did, -1})
		}
	}
	slices.SortFunc(changes, func(x, y change) int {
		return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.by, y.by), cmp.Compare(x.d, y.d))
	})
	var n [parts]int
	var sum [parts]float64
	at := time.Duration(0)
	for i := 0; i < len(changes); {
		now := changes[i].at
		took := float64(now - at)
		if able := n[ran] + n[stood] + n[held]; able > 0 {
			for d := range waited {
				sum[d] += took * float64(n[d]) / float64(able)
			}
		} else {
			ended := waitedFor(notebook.WallOther)
			if changes[i].by < 0 && changes[i].d >= waited {
				ended = changes[i].d
			}
			sum[ended] += took
		}
		for ; i < len(changes) && changes[i].at == now; i++ {
			n[changes[i].d] += changes[i].by
		}
		at = now
		t.at, t.sums = append(t.at, now), append(t.sums, sum)
	}
	return t
}

// until is what all threads did from the beginning until a time.
func (t together) until(at time.Duration) (sum [parts]float64) {
	i, exact := slices.BinarySearch(t.at, at)
	switch {
	case exact:
		return t.sums[i]
	case i == len(t.at):
		if i > 0 {
			sum = t.sums[i-1]
		}
		return sum
	}
	var from [parts]float64
	begin := time.Duration(0)
	if i > 0 {
		from, begin = t.sums[i-1], t.at[i-1]
	}
	share := float64(at-begin) / float64(t.at[i]-begin)
	for d := range sum {
		sum[d] = from[d] + share*(t.sums[i][d]-from[d])
	}
	return sum
}

// add adds what all threads did between two times.
func (t together) add(sum *[parts]time.Duration, from, to time.Duration) {
	x, y := t.until(from), t.until(to)
	rest := to - from
	for d := range x {
		took := time.Duration(y[d] - x[d])
		sum[d] += took
		rest -= took
	}
	sum[waitedFor(notebook.WallOther)] += rest
}
