package stats

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// arm is one of the three guests of a round: bare metal, its A/A control, and what is compared with them.
type arm struct {
	ratio, guest, trial float64 // standard deviations of guests and of trials
	trials              func(*rand.Rand) int
}

func (a arm) round(g *rand.Rand, host float64) (s Sum) {
	level := a.ratio * host * (1 + a.guest*g.NormFloat64())
	for range a.trials(g) {
		s.Add(level * (1 + a.trial*g.NormFloat64()))
	}
	return s
}

func just(n int) func(*rand.Rand) int { return func(*rand.Rand) int { return n } }

// TestPooledBaselineKeepsCoverage takes the ratio to bare metal pooled with its A/A control. The ratio's interval misses in about 5 % of studies.
// This holds where something slows whole rounds, where guests differ, where arms have different numbers of trials, and where some rounds lack one arm.
// The interval is narrower than the one for the ratio to only bare metal.
func TestPooledBaselineKeepsCoverage(t *testing.T) {
	const studies = 8000
	between := func(low, high int) func(*rand.Rand) int {
		return func(g *rand.Rand) int { return low + g.IntN(high-low+1) }
	}
	mostly := func(n int) func(*rand.Rand) int { // an arm that has no trial in one round of five
		return func(g *rand.Rand) int {
			if g.IntN(5) == 0 {
				return 0
			}
			return n
		}
	}
	for i, c := range []struct {
		name           string
		host           float64
		guest, trial   float64
		bm, aa, x      func(*rand.Rand) int
		narrower, most float64 // the width, as a share of the width relative to only bare metal
	}{
		{"one trial each", 0.05, 0, 0.02, just(1), just(1), just(1), 0.8, 0.92},
		{"guests differ, four trials", 0.05, 0.02, 0.02, just(4), just(4), just(4), 0.8, 0.92},
		{"8, 8 and 2 trials", 0.2, 0.01, 0.03, just(8), just(8), just(2), 0.85, 0.99},
		{"the control did fewer", 0.05, 0.005, 0.03, just(8), between(1, 8), just(8), 0.8, 1},
		{"any numbers", 0.05, 0.01, 0.03, between(1, 8), between(1, 8), between(1, 8), 0.75, 0.95},
		{"an arm is missing at times", 0.05, 0.01, 0.02, mostly(2), mostly(2), just(2), 0.6, 0.95},
	} {
		for _, rounds := range []int{5, 20} {
			g := rand.New(rand.NewPCG(uint64(i), 2))
			missed, width, alone := 0.0, 0.0, 0.0
			for range studies {
				var order []int
				bm, aa, x := map[int]Sum{}, map[int]Sum{}, map[int]Sum{}
				for r := range rounds {
					host := 1 + c.host*g.NormFloat64()
					order = append(order, r)
					bm[r] = arm{1, c.guest, c.trial, c.bm}.round(g, host)
					aa[r] = arm{1, c.guest, c.trial, c.aa}.round(g, host)
					x[r] = arm{1.1, c.guest, c.trial, c.x}.round(g, host)
				}
				xs, ys, _ := Paired(order, x, Pooled(bm, aa))
				q := Ratio(xs, ys, Sure(0))
				if q.HasInterval() && !q.Contains(1.1) {
					missed += 1.0 / studies
				}
				xs, ys, _ = Paired(order, x, bm)
				if one := Ratio(xs, ys, Sure(0)); one.HasInterval() && rounds == 20 {
					width, alone = width+q.High-q.Low, alone+one.High-one.Low
				}
			}
			said := fmt.Sprintf("%s, %d rounds: misses in %.1f %%", c.name, rounds, 100*missed)
			if rounds == 20 {
				said += fmt.Sprintf(", %.2f times as wide as relative to only bare metal", width/alone)
			}
			t.Log(said)
			if missed > Alpha+0.007 {
				t.Errorf("%s, want at most 5 %%", said)
			}
			if rounds == 20 && (width/alone < c.narrower || width/alone > c.most) {
				t.Errorf("%s, want %v to %v", said, c.narrower, c.most)
			}
		}
	}
}

func TestPooled(t *testing.T) {
	got := Pooled(map[int]Sum{0: {Of: 8, N: 4}, 1: {Of: 3, N: 1}, 2: {}}, map[int]Sum{0: {Of: 4, N: 1}, 3: {Of: 10, N: 2}})
	for round, want := range map[int]float64{0: 3, 1: 3, 3: 5} { // of arms, whatever their trials; or of the only arm
		if got[round].Mean() != want {
			t.Errorf("round %d: %v, want %v", round, got[round].Mean(), want)
		}
	}
	if _, is := got[2]; is || len(got) != 3 {
		t.Errorf("%v: a round without a trial has no value", got)
	}
}
