//go:build linux

package main

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"tare/notebook/notebooktest"
	"tare/stats"
)

// simulated makes tries of a command with itself, with intervals this many times too narrow for the scatter of their ratios.
func simulated(rng *rand.Rand, n int, took, half, narrow float64) (all []try) {
	for range n {
		v := 1 + half*narrow*rng.NormFloat64()/1.96
		all = append(all, try{took, stats.Quotient{Value: v, Low: v - half, High: v + half}})
	}
	return all
}

func TestWidened(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, narrow := range []float64{0.4, 1, 3} { // 0.4: too wide, so they are narrowed
		if w := widened(simulated(rng, 4000, 6, 0.001, narrow)); math.Abs(w/narrow-1) > 0.1 {
			t.Errorf("intervals %.1f times as narrow as they should be are widened %.2f times", narrow, w)
		}
	}
	ends := func(low, high float64) try { return try{6, stats.Quotient{Value: 1, Low: low, High: high}} }
	for _, c := range []struct {
		try         try
		wider, want float64
	}{
		{ends(0.99, 1.01), 1, 6},
		{ends(0.999, 1.001), 3, 6}, // an interval that is narrow enough needs the time it took
		{ends(0.99, 1.01), 2, 24},
		{ends(0.99, 1.04), 1, 96},
	} {
		if got := c.try.needs(c.wider); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%+v widened %g times needs %g s, want %g", c.try, c.wider, got, c.want)
		}
	}
}

func TestReport(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, c := range []struct {
		took, narrow, half float64 // Tare's time; how much too narrow hyperfine's intervals are; half of their width
		broken             bool
	}{{3, 3, 0.01, false}, {1, 1, 0.01, false}, {3, 0.9, 0.01, false}, {12, 1, 0.02, true}, {30, 1, 0.01, true}} {
		var rounds []tried
		for range 10 {
			rounds = append(rounds, tried{simulated(rng, 1, c.took, 0.01, 1), simulated(rng, 3, 6, c.half, c.narrow), simulated(rng, 2, 6, 0.01, 1)})
		}
		if err := report(rounds, spent{runs: 1}); (err != nil) != c.broken {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A pair counts by the typical width of its containers, and the median of the pairs counts.
func TestJudgeTurns(t *testing.T) {
	pair := func(times, most float64) turnsPair {
		return turnsPair{turned{halves: []float64{0.01, 0.04}, most: []float64{most, most}}, turned{halves: []float64{0.02 / times, 0.02 / times}}}
	}
	for _, c := range []struct {
		times  []float64
		most   float64
		busy   bool
		broken bool
	}{
		{[]float64{1, 1.5, 2.6, 3, 4}, 5, false, false}, {[]float64{1, 1.5, 2.4, 3, 4}, 5, false, true},
		{[]float64{1, 1.5, 2.4, 3, 4}, 5, true, false}, {[]float64{1, 1.5, 1.9, 3, 4}, 5, true, true},
		{[]float64{1, 1.5, 1.9, 3, 4}, 1.8, true, false}, // no order could do it
	} {
		var pairs []turnsPair
		for _, times := range c.times {
			pairs = append(pairs, pair(times, c.most))
		}
		if err := judgeTurns(pairs, c.busy); (err != nil) != c.broken {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// The parts of a study's time add up to it.
func TestSpentIn(t *testing.T) {
	began := time.Date(2026, 11, 25, 1, 0, 0, 0, time.UTC)
	at := func(s float64) time.Time { return began.Add(time.Duration(s * float64(time.Second))) }
	f := notebooktest.New(2).Add("bm large", 1)
	g, x := notebooktest.One(0, f.Study.Treatments[0].ID, 1)
	g.Start, g.ProvisionS, x.Start, x.HostS = at(3), 0.5, at(4), 2
	dir := notebooktest.Write(t, f.Study, f.Host, g, x)
	got, err := spentIn(dir, began, at(7))
	if want := (spent{runs: 2, guests: 0.5, between: 0.5, before: 3, after: 1}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}
