package replay

import (
	"slices"
	"time"

	"tare/stats"
)

// request is a request that is under way.
type request struct {
	chain          *chain        // nil: that of the thread that took it
	by             *thread       // that took it
	arrived, again time.Duration // again: when further bytes came
	taken, sent    bool
	last           int32
	done           time.Duration
	account        served
}

// pooled returns the threads that take requests, and reports whether they share them: whichever is free takes the next one, as in Go or in a pool
// of threads. In nginx a connection keeps its thread.
func pooled(events []Event) (takers map[int32]bool, pool bool) {
	taker := map[uint64]int32{}
	takers = map[int32]bool{}
	same, other := 0, 0
	for i := range events {
		e := &events[i]
		if e.Kind != Takes {
			continue
		}
		if last, known := taker[e.Value]; known && last == e.Thread {
			same++
		} else if known {
			other++
		}
		taker[e.Value], takers[e.Thread] = e.Thread, true
	}
	return takers, len(takers) > 1 && float64(other) >= shared*float64(same+other)
}

// slots is how many of the threads that take requests were ready or ran at once, but for a small part of the time.
func (b *builder) slots() int {
	all := time.Duration(0)
	for n, took := range b.busy {
		if n > 0 {
			all += took
		}
	}
	rare := time.Duration(float64(all) * seldom)
	for n := len(b.busy) - 1; n > 0; n-- {
		if rare -= b.busy[n]; rare < 0 {
			return n
		}
	}
	return 1
}

// seldom is the small part of the time.
const seldom = 0.02

// changes notes that a thread became ready, or waits.
func (b *builder) changes(t *thread, by int) {
	if !t.takes || t.able == (by > 0) {
		return
	}
	t.able = by > 0
	b.able += by
}

// shared is the least share of requests that another thread takes than the one that took the connection's last one, if threads share them.
const shared = 0.1

// arrives notes that bytes came to a connection.
func (b *builder) arrives(e *Event, at time.Duration) {
	r := b.open[e.Value]
	if r == nil || !r.taken || r.sent { // not more of a request that a thread works at
		b.arrivals[e.CPU] = at
	}
	switch {
	case r == nil:
		b.open[e.Value] = &request{arrived: at, last: none}
	case r.sent:
		b.gaps = append(b.gaps, (at - r.done).Seconds())
		b.apart = append(b.apart, (at - r.arrived).Seconds())
		b.finish(r)
		b.open[e.Value] = &request{arrived: at, last: none}
	case r.taken && r.again == 0:
		r.again = at
	}
}

// transfers notes that a thread takes bytes from a connection, or gives it some.
func (b *builder) transfers(t *thread, e *Event, at time.Duration) {
	r := b.open[e.Value]
	if r == nil {
		return // it came before the timeline began
	}
	if e.Kind == Sends {
		if r.taken {
			b.answers(t, r, at)
		}
		return
	}
	if r.sent && r.again > 0 { // the next request came before it was seen that the last one was answered
		b.finish(r)
		r = &request{arrived: r.again, last: none}
		b.open[e.Value] = r
	}
	if !r.taken {
		r.taken = true
		r.account = served{arrived: r.arrived, taken: at, by: t.number}
		b.stop(t, at)
		if b.pool {
			r.chain = b.chain()
			b.w.shared[r.chain.number] = true
			t.at = r.chain
		}
		b.anew(t, step{by: none, from: r.arrived})
		r.by = t
	}
	t.serves = r
}

// answers notes that a thread answers a request, or goes on to do so. If another thread of a pool took the request, what this one did since it
// waited was for the request too.
func (b *builder) answers(t *thread, r *request, at time.Duration) {
	r.last, r.done, r.sent = b.stop(t, at), at, true
	r.account.moved, r.account.done, r.account.last = t.since, at, t.number
	if by := r.by; r.chain != nil && by != t && by.serves == r {
		handed := !by.on && by.out <= t.since // otherwise both worked at it at once
		if by.serves = nil; by.on {
			b.stop(by, at)
			by.at = by.own
			b.anew(by, step{by: none})
		}
		if handed && t.at == t.own && t.run > r.chain.last { // otherwise one might have waited for the other
			b.move(t, r.chain)
		}
	}
	t.serves = nil
	b.anew(t, step{by: none})
}

// move moves what a thread did since it waited from its own chain to the end of another one.
func (b *builder) move(t *thread, to *chain) {
	s := &b.w.steps[t.run]
	if s.by != none {
		b.w.steps[s.by].wakes = none
	}
	if s.group != none {
		g := &b.w.groups[s.group]
		g.steps = slices.DeleteFunc(g.steps, func(n int32) bool { return n == t.run })
	}
	s.by, s.group, s.from, s.pause = none, none, 0, 0
	end := t.at.last
	if t.at.last = t.before; t.before == none {
		b.w.heads[t.at.number] = none
	} else {
		b.w.steps[t.before].next = none
	}
	b.link(to, t.run)
	to.last = end
	for n := t.run; n != none; n = b.w.steps[n].next {
		b.w.steps[n].chain = to.number
	}
}

// finish notes that a request was answered, if it was.
func (b *builder) finish(r *request) {
	if r.sent && r.last != none {
		b.w.spans = append(b.w.spans, span{arrived: r.arrived, first: none, last: r.last, took: r.done - r.arrived})
		b.served = append(b.served, r.account)
		r.sent = false
	}
}

// closedLoop reports whether clients seem to send the next request some time after the answer, rather than when it is due.
func (b *builder) closedLoop() bool {
	if len(b.gaps) < fewestGaps {
		return false
	}
	const atOnce = 0.1 // of the time of a request
	if stats.Median(b.gaps) < atOnce*stats.Median(b.apart) {
		return true
	}
	v := variation(b.gaps)
	return v <= steady && v < variation(b.apart)/2
}

// fewestGaps is how many requests must have followed another one on their connection to say how clients behave.
const fewestGaps = 20
