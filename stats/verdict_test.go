package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestVerdictOfBounds(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		q       Quotient
		margin  float64
		want    Verdict
		decided float64
	}{
		{Quotient{Value: 1.02, Low: 1.008, High: 1.032, AtLeast: 1.01, AtMost: 1.03}, 0.01, Slower, 0.03},
		{Quotient{Value: 1.02, Low: 0.999, High: 1.041, AtLeast: 1.001, AtMost: 1.039}, 0, Inconclusive, 0.039}, // the interval holds 1
		{Quotient{Value: 1, Low: 0.9895, High: 1.0105, AtLeast: 0.991, AtMost: 1.009}, 0.01, Equivalent, 1/0.991 - 1},
		{Quotient{Value: 1, Low: 0.989, High: 1.011, AtLeast: 0.991, AtMost: 1.0101}, 0.01, Inconclusive, 0.0101},
		{Quotient{Value: 0.5, Low: 0.48, High: 0.52, AtLeast: 0.49, AtMost: 0.51}, 0.5, Faster, 1/0.49 - 1},
		{Quotient{Value: 1, Low: 0.999, High: 1.001}, 0.01, Equivalent, 1/0.999 - 1}, // no bounds were made
		{Quotient{Value: 1, Low: 0, High: inf, AtLeast: 0, AtMost: inf}, 0.01, Inconclusive, inf},
		{Quotient{Value: nan, Low: nan, High: nan, AtLeast: nan, AtMost: nan}, 0.01, Inconclusive, inf},
	} {
		if got := c.q.Verdict(c.margin); got != c.want {
			t.Errorf("%+v at %v: %s, want %s", c.q, c.margin, got, c.want)
		}
		if got := c.q.Decided(); math.Abs(got-c.decided) > 1e-9 {
			t.Errorf("%+v is decided at %v, want %v", c.q, got, c.decided)
		}
	}
}

// TestVerdictsAreSeldomWrong: for each truth and margin, at most 5 % of verdicts are wrong. At most 6.5 % are wrong where the truth is at the margin
// and the margin is a third of the standard error. At most 5 % of verdicts call equal treatments slower or faster.
func TestVerdictsAreSeldomWrong(t *testing.T) {
	const studies, rounds, sd, noise = 20000, 20, 0.01, 0.004
	for _, margin := range []float64{0, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02} {
		for i, truth := range []float64{1, 1 + margin, 1 + margin - 1e-9, 1/(1+margin) + 1e-9, 1 + margin/2, 1.003} {
			g := rand.New(rand.NewPCG(uint64(i), 90))
			wrong, different := 0.0, 0.0
			for range studies {
				var x, y [rounds]float64
				for r := range rounds {
					x[r], y[r] = truth*(1+sd*g.NormFloat64()), 1+sd*g.NormFloat64()
				}
				v := Ratio(x[:], y[:], Sure(0)).Verdict(margin)
				if v == Slower && truth < 1+margin || v == Faster && truth > 1/(1+margin) || v == Equivalent && (truth >= 1+margin || truth <= 1/(1+margin)) {
					wrong += 1.0 / studies
				}
				if v == Slower || v == Faster {
					different += 1.0 / studies
				}
			}
			most := Alpha
			if margin > 0 && margin <= 0.002 { // compared with a standard error of 0.32 %
				most = 0.065
			}
			if wrong > most+noise || truth == 1 && different > Alpha+noise {
				t.Errorf("margin %v, truth %v: %.1f %% wrong, %.1f %% called different", margin, truth, 100*wrong, 100*different)
			}
		}
	}
}
