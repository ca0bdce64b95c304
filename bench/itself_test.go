//go:build linux

package main

import (
	"math"
	"math/rand/v2"
	"testing"

	"tare/stats"
)

// tries of a command with itself whose intervals are so many times as narrow as their ratios scatter.
func simulated(rng *rand.Rand, n int, took, half, narrow float64) (all []try) {
	for range n {
		v := 1 + half*narrow*rng.NormFloat64()/1.96
		all = append(all, try{took, stats.Quotient{Value: v, Low: v - half, High: v + half}})
	}
	return all
}

func TestWidened(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, narrow := range []float64{0.4, 1, 3} { // those that are too wide are narrowed
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
		{ends(0.999, 1.001), 3, 6}, // it took what it took, narrow enough long before or not
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
		took, narrow float64 // Tare's; and how much too narrow hyperfine's intervals of ± 1 % are
		broken       bool
	}{{3, 3, false}, {3, 1, false}, {30, 1, true}} {
		var rounds []tried
		for range 10 {
			rounds = append(rounds, tried{simulated(rng, 1, c.took, 0.01, 1), simulated(rng, 3, 6, 0.01, c.narrow), simulated(rng, 2, 6, 0.01, 1)})
		}
		if err := report(rounds, 0.9); (err != nil) != c.broken {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
