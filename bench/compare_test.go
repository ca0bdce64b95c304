package main

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// The interval of the median of ratios misses in no more studies than it promises, whatever the noise, even when checked after every
// round.
func TestMedianCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const studies, rounds = 4000, 60
	missed := 0
	for range studies {
		ratios := make([]float64, rounds)
		for i := range ratios {
			ratios[i] = 1.07 * math.Exp(0.1*rng.NormFloat64())
			if rng.IntN(8) == 0 { // something else took the CPU
				ratios[i] *= 1 + 3*rng.Float64()
			}
			if rng.IntN(8) == 0 {
				ratios[i] /= 1 + 3*rng.Float64()
			}
		}
		for n := range rounds {
			if q := median(ratios[:n+1]); q.Low > 1.07 || q.High < 1.07 {
				missed++
				break
			}
		}
	}
	if share := float64(missed) / studies; share > 0.05 {
		t.Errorf("%.3f of the intervals of 95 %% miss", share)
	}
	if q := median([]float64{1, 2}); !math.IsInf(q.High, 1) || verdict(q, 1.1) != notDecided {
		t.Errorf("two pairs decide: %+v", q)
	}
}

func TestComparison(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	noisy := func(mean float64) func() (float64, error) {
		return func() (float64, error) { return mean * math.Exp(0.02*rng.NormFloat64()), nil }
	}
	base := way{name: "base", run: noisy(1)}
	for _, c := range []struct {
		name   string
		way    way
		broken string
	}{
		{"met", way{"a", 1.05, noisy(1.02)}, ""},
		{"not met", way{"a", 1.05, noisy(1.1)}, "must be at most 1.05"},
		{"nothing promised", way{"a", 0, noisy(3)}, ""},
		{"on the line", way{"a", 1.05, noisy(1.05)}, ""},
		{"it fails", way{"a", 1.05, func() (float64, error) { return 0, errors.New("no such program") }}, "no such program"},
		{"rounds without it", way{"a", 1.05, noisy(1.02)}, ""},
		{"another's fails", way{"a", 0, func() (float64, error) { return 0, errors.New("no such program") }}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			ways, n := []way{base, c.way}, 0
			if c.name == "rounds without it" {
				ways = append(ways, way{"for sight", 0, func() (float64, error) { n++; return 3, nil }})
			}
			err := comparison{"a comparison", ways, time.Minute}.run()
			if len(ways) > 2 && (n < leastRounds || n > leastRounds+mostRounds/occasional) {
				t.Errorf("a way without a limit took part in %d rounds", n)
			}
			if (err != nil) != (c.broken != "") || err != nil && !strings.Contains(err.Error(), c.broken) {
				t.Errorf("%v, want %q", err, c.broken)
			}
		})
	}
}
