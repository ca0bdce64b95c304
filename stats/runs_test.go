package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// resembling draws runs that resemble those before them: a part of what varies is each run's own.
func resembling(g *rand.Rand, n int, correlation, own float64) []float64 {
	level := g.NormFloat64()
	all := make([]float64, n)
	for i := range all {
		all[i] = math.Sqrt(1-own)*level + math.Sqrt(own)*g.NormFloat64()
		level = correlation*level + math.Sqrt(1-correlation*correlation)*g.NormFloat64()
	}
	return all
}

// leaves is the share of series of 400 runs in which the interval of a quantile is once without it.
func leaves(seed uint64, p, correlation, own float64, series int) float64 {
	g := rand.New(rand.NewPCG(seed, 9))
	truth := math.Sqrt2 * math.Erfinv(2*p-1)
	out := 0
	for range series {
		values := resembling(g, 400, correlation, own)
		for n := 5; n <= len(values); n += 1 + n/20 {
			if e := Anytime(values[:n], p, Alpha); truth < e.Low || truth > e.High {
				out++
				break
			}
		}
	}
	return float64(out) / float64(series)
}

// Consecutive runs of one guest resemble each other. Up to a correlation of 0.7 between neighbouring runs, at most 5 % of series ever have an
// interval that misses, no matter how often one looks. This holds for the median and for the 95th percentile. At 0.9 more series miss, and the last
// two cases say how many. Where a fifth of the variance is each run's own, few runs do not show how slowly the rest changes. If runs counted as
// independent, 12, 63 and 97 % of series would miss at 0.3, 0.7 and 0.9.
func TestQuantilesOfRunsThatResembleEachOther(t *testing.T) {
	const series = 400
	for _, c := range []struct{ p, correlation, own, most float64 }{
		{0.5, 0, 0, Alpha}, {0.5, 0.3, 0, Alpha}, {0.5, 0.5, 0, Alpha}, {0.5, 0.7, 0, Alpha},
		{0.95, 0, 0, Alpha}, {0.95, 0.5, 0, Alpha}, {0.95, 0.7, 0, Alpha},
		{0.5, 0.9, 0, 0.08}, {0.5, 0.9, 0.2, 0.22},
	} {
		if share := leaves(1, c.p, c.correlation, c.own, series); share > c.most {
			t.Errorf("p%g of runs with correlation %g, %g their own: the interval was once without it in %.3f of the series, at most %g expected", 100*c.p, c.correlation, c.own, share, c.most)
		}
	}
}

// Independent runs count for nearly their number. Runs that resemble each other count for as few as they are worth.
func TestWhatRunsAreWorth(t *testing.T) {
	g := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct{ correlation, low, high float64 }{{0, 1, 1.4}, {0.5, 2.4, 4.2}, {0.7, 4.2, 8}} {
		sum := 0.0
		for range 50 {
			sum += Resemblance(resembling(g, 400, c.correlation, 0)) / 50
		}
		if sum < c.low || sum > c.high {
			t.Errorf("runs with correlation %g: %.2f of them count as one, want %g to %g", c.correlation, sum, c.low, c.high)
		}
	}
	for _, c := range [][]float64{nil, {1}, {2, 2, 2, 2}} {
		if got := Resemblance(c); got != 1 {
			t.Errorf("%v: %g", c, got)
		}
	}
	if got := Resemblance([]float64{1, 2}); !(got >= 1 && got <= 2) {
		t.Errorf("two values: %g", got)
	}
}
