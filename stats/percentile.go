package stats

import (
	"math"
	"slices"
)

// Percentile is the p-quantile (0 < p < 1) of a distribution of which the values are drawn one by one, by the method of Hyndman and Fan's type 7, with an interval of 95 %
// or more that assumes nothing of the distribution: two of the ordered values, by the binomial distribution of how many lie below the quantile (Hahn and Meeker,
// Statistical Intervals, section 5.2). Where there are too few values for an end, it is infinite.
func Percentile(values []float64, p float64) Estimate {
	n := len(values)
	e := Estimate{Value: math.NaN(), Low: math.NaN(), High: math.NaN(), N: n}
	if n == 0 || !(p > 0 && p < 1) {
		return e
	}
	s := slices.Sorted(slices.Values(values))
	at := p * float64(n-1)
	i := int(at)
	e.Value = s[i]
	if i+1 < n {
		e.Value += (at - float64(i)) * (s[i+1] - s[i])
	}
	e.Low, e.High = math.Inf(-1), math.Inf(1)
	// below(k): the chance that at most k values lie below the quantile.
	logN, _ := math.Lgamma(float64(n + 1))
	below := 0.0
	for k := range n {
		a, _ := math.Lgamma(float64(k + 1))
		b, _ := math.Lgamma(float64(n - k + 1))
		below += math.Exp(logN - a - b + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
		if below <= 0.025 {
			e.Low = s[k] // the (k+1)th: more than k lie below with 97.5 % and more
		}
		if below >= 0.975 {
			e.High = s[k] // at most k lie below, so the (k+1)th is at or above the quantile
			break
		}
	}
	return e
}
