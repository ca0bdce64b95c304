package stats

import (
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/mathext"
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
	e.Value, e.Low, e.High = quantile(s, p), math.Inf(-1), math.Inf(1)
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

// Anytime is Percentile with an interval that holds however often one looks: in at least 1−alpha of all series that the values may be the beginning of, the quantile is in the
// interval after each value of the series at once. So one may look after every value, stop when one likes, and go on.
//
// An end is the ordered value beyond which more, or fewer, values lie than a quantile has beyond it. How likely that is, is judged by a likelihood ratio: of the
// shares that deny it, each as likely as another, over the quantile's own share. Such a ratio is a martingale, and exceeds 2/alpha at any time with a chance of at
// most alpha/2 (Ville's inequality; Robbins, Statistical methods related to the law of the iterated logarithm, 1970; Howard and Ramdas, Sequential estimation of
// quantiles with applications to A/B testing and best-arm identification, 2022). Where there are too few values for an end, it is infinite: with alpha 0.05, the
// upper end of the 0.95 quantile takes 105 values.
func Anytime(values []float64, p, alpha float64) Estimate {
	n := len(values)
	e := Estimate{Value: math.NaN(), Low: math.NaN(), High: math.NaN(), N: n}
	if n == 0 || !(p > 0 && p < 1) {
		return e
	}
	s := slices.Sorted(slices.Values(values))
	e.Value, e.Low, e.High = quantile(s, p), math.Inf(-1), math.Inf(1)
	least := math.Log(2 / alpha)
	if k := sort.Search(n+1, func(k int) bool { return more(k, n, 1-p) >= least }); k <= n && k > 0 {
		e.Low = s[n-k] // so many values are at it or above it
	}
	if k := sort.Search(n+1, func(k int) bool { return more(k, n, p) >= least }); k <= n && k > 0 {
		e.High = s[k-1] // so many are at it or below it
	}
	return e
}

// quantile is the p-quantile of sorted values, Hyndman and Fan's type 7.
func quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := int(at)
	v := sorted[i]
	if i+1 < len(sorted) {
		v += (at - float64(i)) * (sorted[i+1] - sorted[i])
	}
	return v
}

// more is the logarithm of how much likelier k of n are with a share above that one, each as likely as another, than with that share. It grows with k.
func more(k, n int, share float64) float64 {
	a, b := float64(k+1), float64(n-k+1)
	return mathext.Lbeta(a, b) + math.Log(mathext.RegIncBeta(b, a, 1-share)/(1-share)) - (a-1)*math.Log(share) - (b-1)*math.Log1p(-share)
}
