package replay

import (
	"cmp"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"
)

// external is a wake by something outside: after which step, and when.
type external struct {
	step        int32
	left, woken time.Duration
}

// cycles is what one thread did from wake to wait.
type cycles struct {
	by    int32 // the thread
	open  bool
	first int32
	began time.Duration
	spans []span
	took  time.Duration
}

// cycle ends what a thread did since its last wake from outside, and begins anew.
func (b *builder) cycle(t *thread, last, first int32, at time.Duration) {
	c := b.cycles[t.own.number]
	if c == nil {
		c = &cycles{by: t.number}
		b.cycles[t.own.number] = c
	}
	if c.open {
		s := span{arrived: c.began, first: c.first, last: last, took: t.out - c.began}
		c.spans = append(c.spans, s)
		c.took += s.took
	}
	c.open, c.first, c.began = true, first, at
}

// timers decides for each thread whether what wakes it from outside comes at fixed times, or some time after the thread has begun to wait.
func (b *builder) timers() {
	for _, all := range b.waits {
		var slept, apart []float64
		for i, x := range all {
			slept = append(slept, (x.woken - x.left).Seconds())
			if i > 0 {
				apart = append(apart, (x.woken - all[i-1].woken).Seconds())
			}
		}
		if len(apart) < 5 {
			continue
		}
		if v := variation(slept); v > steady || variation(apart) < regular || v >= variation(apart)/2 {
			continue
		}
		for _, x := range all {
			s := &b.w.steps[x.step]
			if s.from != x.woken {
				continue // it has been moved
			}
			s.from, s.pause = 0, max(0, x.woken-x.left)
		}
	}
}

// steady is the greatest variation of waits that are always the same, and regular that of times that are as far from each other as on a clock.
const (
	steady  = 0.2
	regular = 0.02
)

// variation is the standard deviation as a share of the mean.
func variation(v []float64) float64 {
	mean, variance := stat.PopMeanVariance(v, nil)
	if mean == 0 {
		return 0
	}
	return math.Sqrt(variance) / mean
}

// nearlyAll is the share of the time from wake to wait that the threads have which are timed.
const nearlyAll = 0.9

// timed are the threads that took longest from wake to wait: as many as account for nearly all of that time.
func (b *builder) timed() (some []*cycles) {
	var all []*cycles
	sum := time.Duration(0)
	for _, c := range b.cycles {
		all = append(all, c)
		sum += c.took
	}
	slices.SortFunc(all, func(x, y *cycles) int { return cmp.Or(cmp.Compare(y.took, x.took), cmp.Compare(x.first, y.first)) })
	taken := time.Duration(0)
	for _, c := range all {
		if float64(taken) < nearlyAll*float64(sum) {
			some = append(some, c)
		}
		taken += c.took
	}
	return some
}

// spans keeps the requests. Without requests, it takes what the timed threads did from wake to wait.
func (b *builder) spans() {
	if b.w.Requests = len(b.w.spans) > 0; !b.w.Requests {
		for _, c := range b.timed() {
			b.w.spans = append(b.w.spans, c.spans...)
		}
	}
	slices.SortFunc(b.w.spans, func(x, y span) int { return cmp.Or(cmp.Compare(x.arrived, y.arrived), cmp.Compare(x.last, y.last)) })
}
