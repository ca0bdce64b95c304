package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"tare/stats"
)

// way is one way of doing what a comparison is about.
type way struct {
	name  string
	limit float64                 // times as long as the first way that is promised at most; 0: nothing is promised
	run   func() (float64, error) // seconds
}

// comparison runs its ways in turn and holds each against the first.
type comparison struct {
	title  string
	ways   []way
	budget time.Duration // after which no round begins, whatever the intervals are
}

// Rounds of a comparison. A pair of runs, one after the other, has the same host; the median of the pairs' ratios does not see the
// rounds in which something else took the CPU from one of the two.
const (
	leastRounds = 10
	mostRounds  = 5000
	occasional  = 8     // after the least, a way of which nothing is promised takes part in one of so many rounds: bpftrace takes seconds to attach
	narrow      = 0.005 // half an interval's width at which more rounds say nothing new
)

// Verdicts of a promise.
const (
	met        = "met"
	notMet     = "not met"
	notDecided = "not decided"
)

// run does rounds, the ways in random order, until every promise is decided, or until the budget is spent (where nothing is promised,
// until every interval is narrow); it prints what came of each way and says which promises were not kept. A way that fails is left out and
// is not kept where something was promised of it.
func (c comparison) run() error {
	fmt.Printf("\n%s\n", c.title)
	took := make([][]float64, len(c.ways))
	ratios := make([][]float64, len(c.ways)) // to the first way in the same round
	failed := make([]error, len(c.ways))
	promised := slices.ContainsFunc(c.ways, func(w way) bool { return w.limit > 0 })
	began := time.Now()
	for round := 0; round < mostRounds && (round < 2 || time.Since(began) < c.budget); {
		now := make([]float64, len(c.ways))
		for _, i := range rand.New(rand.NewPCG(2, uint64(round))).Perm(len(c.ways)) {
			if failed[i] != nil || promised && i > 0 && c.ways[i].limit == 0 && round >= leastRounds && round%occasional > 0 {
				continue
			}
			s, err := c.ways[i].run()
			if err != nil && i == 0 {
				return fmt.Errorf("%s: %w", c.ways[0].name, err)
			}
			now[i], failed[i] = s, err
		}
		for i, s := range now {
			if s > 0 {
				took[i] = append(took[i], s)
				ratios[i] = append(ratios[i], s/now[0])
			}
		}
		if round++; round < leastRounds {
			continue
		}
		open := false
		for i, w := range c.ways {
			open = open || i > 0 && failed[i] == nil && (w.limit > 0 || !promised) && !decided(median(ratios[i]), w.limit)
		}
		if !open {
			break
		}
	}
	var broken error
	for i, w := range c.ways {
		switch {
		case failed[i] != nil && w.limit > 0:
			broken = errors.Join(broken, fmt.Errorf("%s: %w", w.name, failed[i]))
			fallthrough
		case failed[i] != nil:
			fmt.Printf("  %-34s left out: %v\n", w.name, failed[i])
			continue
		case i == 0:
			fmt.Printf("  %-34s %12s\n", w.name, duration(stats.Median(took[i])))
			continue
		}
		q := median(ratios[i])
		line := fmt.Sprintf("  %-34s %12s   %5.3f (%.3f to %.3f), %d rounds", w.name, duration(stats.Median(took[i])), q.Value, q.Low, q.High, q.N)
		if w.limit > 0 {
			v := verdict(q, w.limit)
			line += fmt.Sprintf("   at most %.2f: %s", w.limit, v)
			if v == notMet {
				broken = errors.Join(broken, fmt.Errorf("%s: %.3f times (%.3f to %.3f), at most %.2f is promised", w.name, q.Value, q.Low, q.High, w.limit))
			}
		}
		fmt.Println(line)
	}
	return broken
}

// median is that of the rounds' ratios with its interval: order statistics, between which it lies unless coin tosses fall so unevenly that
// a bet on them has made 1 into 1/stats.Alpha (Krichevsky and Trofimov's, that the coin is what it has been so far). So it holds after every
// round at once, and assumes nothing of how the ratios are spread.
func median(ratios []float64) stats.Quotient {
	all, n := slices.Sorted(slices.Values(ratios)), len(ratios)
	q := stats.Quotient{Value: stats.Median(all), Low: math.Inf(-1), High: math.Inf(1), N: n}
	lg := func(v float64) float64 { l, _ := math.Lgamma(v); return l }
	for heads := 0; heads <= (n-1)/2; heads++ {
		won := lg(float64(heads)+0.5) + lg(float64(n-heads)+0.5) - lg(float64(n)+1) - math.Log(math.Pi) + float64(n)*math.Ln2
		if won < math.Log(1/stats.Alpha) {
			break
		}
		q.Low, q.High = all[heads], all[n-1-heads]
	}
	return q
}

// decided says whether more rounds are not worth their time.
func decided(q stats.Quotient, limit float64) bool {
	return limit > 0 && verdict(q, limit) != notDecided || q.High-q.Low <= 2*narrow
}

// verdict says whether a ratio keeps to its limit.
func verdict(q stats.Quotient, limit float64) string {
	switch {
	case q.High <= limit:
		return met
	case q.Low > limit:
		return notMet
	}
	return notDecided
}

// duration writes seconds in the unit that suits them.
func duration(s float64) string {
	switch {
	case s < 1e-6:
		return fmt.Sprintf("%.0f ns", s*1e9)
	case s < 1e-3:
		return fmt.Sprintf("%.1f us", s*1e6)
	case s < 1:
		return fmt.Sprintf("%.1f ms", s*1e3)
	}
	return fmt.Sprintf("%.2f s", s)
}
