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

// way is one way of doing the work of a comparison.
type way struct {
	name  string
	limit float64                 // greatest ratio to the first way's time; 0: no limit
	run   func() (float64, error) // seconds
}

// comparison runs its ways in turn and compares each with the first.
type comparison struct {
	title  string
	ways   []way
	budget time.Duration // no round begins after it, however wide the intervals are
}

// Rounds of a comparison. Both runs of a pair see the same host, because they follow each other. The median of the pairs' ratios ignores
// the rounds in which something else took the CPU from one of the two.
const (
	leastRounds = 10
	mostRounds  = 5000
	occasional  = 8     // after the least rounds, a way without a limit runs in one of this many: bpftrace takes seconds to attach
	narrow      = 0.005 // half an interval's width at which more rounds add nothing
)

// Verdicts on a limit.
const (
	met        = "met"
	notMet     = "not met"
	notDecided = "not decided"
)

// run does rounds, with the ways in random order, until every limit is decided, or every interval is narrow where there is no limit, or until
// the budget is spent. It prints the result of each way. The error names the limits that were missed. A way that fails is left out, and misses
// its limit.
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
				broken = errors.Join(broken, fmt.Errorf("%s: %.3f times (%.3f to %.3f); must be at most %.2f", w.name, q.Value, q.Low, q.High, w.limit))
			}
		}
		fmt.Println(line)
	}
	return broken
}

// median is the median of the rounds' ratios. Its interval lies between two order statistics. The median is outside only if coin tosses fall
// so unevenly that a bet on them turns 1 into 1/stats.Alpha. The bet is Krichevsky and Trofimov's: that the coin stays as it has been so far.
// So the interval holds after every round at once, and assumes nothing about the distribution of the ratios.
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

// decided reports whether more rounds would add nothing.
func decided(q stats.Quotient, limit float64) bool {
	return limit > 0 && verdict(q, limit) != notDecided || q.High-q.Low <= 2*narrow
}

// verdict says whether a ratio is within its limit.
func verdict(q stats.Quotient, limit float64) string {
	switch {
	case q.High <= limit:
		return met
	case q.Low > limit:
		return notMet
	}
	return notDecided
}

// duration writes seconds in a unit that suits their size.
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
