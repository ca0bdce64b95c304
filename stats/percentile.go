package stats

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/mathext"
)

// Percentile is the p-quantile (0 < p < 1) of a distribution from independent values, by the method of Hyndman and Fan's type 7. Its interval has a
// confidence of 95 % or more and assumes nothing about the distribution. Its ends are two of the ordered values. The binomial distribution of
// how many values lie below the quantile selects them (Hahn and Meeker, Statistical Intervals, section 5.2). With too few values for an end, that
// end is infinite.
func Percentile(values []float64, p float64) Estimate {
	n := len(values)
	e := Estimate{Value: math.NaN(), Low: math.NaN(), High: math.NaN(), N: n}
	if n == 0 || !(p > 0 && p < 1) {
		return e
	}
	s := slices.Sorted(slices.Values(values))
	e.Value, e.Low, e.High = Quantile(s, p), math.Inf(-1), math.Inf(1)
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

// Anytime is Percentile of consecutive runs, with an interval that holds however often one looks: in at least 1−alpha of all series that the values may be the
// beginning of, the quantile is in the interval after each value of the series at once. So one may look after every value, stop when one likes, and go on.
//
// An end is the ordered value beyond which more, or fewer, values lie than a quantile has beyond it. How likely that is, is judged by a likelihood ratio: of the
// shares that deny it, each as likely as another, over the quantile's own share. Such a ratio is a martingale, and exceeds 2/alpha at any time with a chance of at
// most alpha/2 (Ville's inequality; Robbins, Statistical methods related to the law of the iterated logarithm, 1970; Howard and Ramdas, Sequential estimation of
// quantiles with applications to A/B testing and best-arm identification, 2022). Where there are too few values for an end, it is infinite: with alpha 0.05, the
// upper end of the 0.95 quantile takes 105 values that are alike.
//
// Nothing is assumed of how values are distributed, but of how they depend on each other: consecutive runs resemble each other, and n of them count as n over
// [Resemblance]. With that the interval misses in at most 5 % of series up to a correlation of 0.7 from one run to the next
// (TestQuantilesOfRunsThatResembleEachOther); at 0.9 it misses in more. Drift that goes on for the whole series is beyond it.
func Anytime(values []float64, p, alpha float64) Estimate {
	n := len(values)
	e := Estimate{Value: math.NaN(), Low: math.NaN(), High: math.NaN(), N: n}
	if n == 0 || !(p > 0 && p < 1) {
		return e
	}
	s := slices.Sorted(slices.Values(values))
	e.Value, e.Low, e.High = Quantile(s, p), math.Inf(-1), math.Inf(1)
	least, each := math.Log(2/alpha), Resemblance(values)
	beyond := func(share float64) (k int, ok bool) {
		k = sort.Search(n+1, func(k int) bool { return more(float64(k)/each, float64(n)/each, share) >= least })
		return k, k <= n && k > 0
	}
	if k, ok := beyond(1 - p); ok {
		e.Low = s[n-k] // so many values are at it or above it
	}
	if k, ok := beyond(p); ok {
		e.High = s[k-1] // so many are at it or below it
	}
	return e
}

// Resemblance is how many consecutive values are worth one independent value. It is 1 plus twice the sum of the correlations of their ranks
// over all distances. The sum ends at the pair of distances whose correlations are no longer positive (Geyer, Practical Markov chain Monte Carlo,
// 1992). Few values cannot show it. So it is at least the resemblance of a first-order autoregression with the largest plausible correlation. It
// is 1 where all values are equal.
func Resemblance(values []float64) float64 {
	n := len(values)
	r := ranks(values)
	var squares float64
	for _, v := range r {
		squares += v * v
	}
	if squares == 0 {
		return 1
	}
	at := func(distance int) (c float64) { // the mean of the ranks is known to itself, which takes about 1/n off each
		for i := distance; i < n; i++ {
			c += r[i] * r[i-distance]
		}
		return c/squares*float64(n)/float64(n-distance) + 1/float64(n)
	}
	sum := 0.0
	for d := 1; d+1 < n/2; d += 2 {
		pair := at(d) + at(d+1)
		if pair <= 0 {
			break
		}
		sum += pair
	}
	next := 0.0
	if n > 2 {
		next = max(at(1), 0)
	}
	next += unsure / math.Sqrt(float64(n))
	next = min(next, 1)
	return min(max(1+2*sum, (1+next)/(1-next)), float64(n))
}

// unsure is by how many standard errors the correlation of consecutive values may well be larger than it looks.
const unsure = 1.0

// ranks are those of the values, equal ones with their mean rank, less the mean of all.
func ranks(values []float64) []float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(values[i], values[j]) })
	r := make([]float64, len(values))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && values[order[j]] == values[order[i]] {
			j++
		}
		for _, at := range order[i:j] {
			r[at] = float64(i+j-len(order)) / 2
		}
		i = j
	}
	return r
}

// Quantile is the p-quantile of sorted values, Hyndman and Fan's type 7.
func Quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := int(at)
	v := sorted[i]
	if i+1 < len(sorted) {
		v += (at - float64(i)) * (sorted[i+1] - sorted[i])
	}
	return v
}

// more is the logarithm of how much likelier k of n are with a share above that one, each as likely as another, than with that share. It grows with k.
func more(k, n, share float64) float64 {
	a, b := k+1, n-k+1
	return mathext.Lbeta(a, b) + math.Log(mathext.RegIncBeta(b, a, 1-share)/(1-share)) - (a-1)*math.Log(share) - (b-1)*math.Log1p(-share)
}
