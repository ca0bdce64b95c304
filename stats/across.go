package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Effect is a quantity as one host measured it. For a ratio it is the logarithm ([Pairs.Effect]).
type Effect struct {
	Value    float64
	Variance float64 // of Value, from the host's own rounds
	Free     float64 // degrees of freedom of Variance; 0: it is known for certain
}

// Effect is the logarithm of the ratio of the pairs' means, as one host's effect. The delta method gives its variance: that of the rounds' differences
// x/mean(x) − y/mean(y), over the number of rounds. Value is NaN if a mean is not positive, and Variance is NaN with fewer than two pairs. No
// stopping rule widens it, unlike the intervals of [Ratio].
func (p Pairs) Effect() Effect {
	e := Effect{Value: math.NaN(), Variance: math.NaN(), Free: float64(len(p.X) - 1)}
	if len(p.X) > 0 {
		e.Value, e.Variance = p.log()
	}
	return e
}

// Counts says whether the effect has a value and a variance. Other effects do not count.
func (e Effect) Counts() bool { return Finite(e.Value) && Finite(e.Variance) && e.Variance >= 0 }

// Across is the estimate of a quantity over several hosts. Each host has a true value of its own (a random-effects model).
type Across struct {
	N         int     // hosts that count
	Mean      float64 // over hosts; NaN: of none
	Error     float64 // its standard error; 0: of one host
	Low, High float64 // its interval; NaN: of fewer than two hosts
	Between   float64 // standard deviation of the hosts' true values
	Within    float64 // standard deviation of one host's value around its true one, of a typical host

	// NextLow and NextHigh hold the true value of a further host, drawn as these were. NaN: of fewer than three hosts.
	NextLow, NextHigh float64
}

// Share is the part of the variance of hosts' values that is between hosts (I²; Higgins and Thompson, 2002). 0 where they have none.
func (a Across) Share() float64 {
	if a.Between == 0 {
		return 0
	}
	return a.Between * a.Between / (a.Between*a.Between + a.Within*a.Within)
}

// Ratio is the mean over hosts of logarithms as a ratio: the geometric mean of the hosts' ratios, with its interval and one-sided bounds.
func (a Across) Ratio() Quotient {
	q := Quotient{Value: math.Exp(a.Mean), Low: math.Exp(a.Low), High: math.Exp(a.High), N: a.N, AtLeast: math.NaN(), AtMost: math.NaN()}
	if a.N > 1 {
		half := Student(float64(a.N-1), 2*Alpha) * a.Error
		q.AtLeast, q.AtMost = math.Exp(a.Mean-half), math.Exp(a.Mean+half)
	}
	return q
}

// AcrossOf combines the effects of hosts, with intervals of 1 − alpha. The variance between hosts is the restricted maximum likelihood estimate
// (Viechtbauer, 2005). The interval of the mean is that of Hartung and Knapp (2001). It is at least as wide as one whose weights are certain
// (Röver, Knapp and Friede, 2015). The work is bounded: usually 300 passes over the hosts, and at most 6300.
func AcrossOf(effects []Effect, alpha float64) Across {
	nan := math.NaN()
	r := randomOf(effects)
	a := Across{N: len(r.values), Mean: nan, Low: nan, High: nan, NextLow: nan, NextHigh: nan}
	if a.N == 0 {
		return a
	}
	between := restricted(r)
	at := r.at(between)
	a.Mean, a.Between, a.Within = at.mean, math.Sqrt(between), math.Sqrt(within(r))
	if a.N < 2 {
		return a
	}
	a.Error = at.error
	half := Student(float64(a.N-1), alpha) * at.error
	a.Low, a.High = a.Mean-half, a.Mean+half
	if a.N >= leastHosts {
		low, high := r.next(alpha)
		a.NextLow, a.NextHigh = min(low, a.Low), max(high, a.High) // one host is never known better than the mean of hosts
	}
	return a
}

// BetweenOf is the standard deviation of the hosts' true values, as [AcrossOf] estimates it.
func BetweenOf(effects []Effect) float64 {
	r := randomOf(effects)
	if len(r.values) == 0 {
		return 0
	}
	return math.Sqrt(restricted(r))
}

const (
	leastVariance = 1e-18 // of a host
	leastShare    = 1e-4  // the smallest variance of a host, as a share of the median one
	leastHosts    = 3     // for an interval of the next one
)

// randomEffects are hosts' values, with their variances.
type randomEffects struct{ values, variances, weights []float64 }

// randomOf keeps the effects that count. A variance far below the others is chance. It is raised, because such a host would outweigh all others.
func randomOf(effects []Effect) randomEffects {
	r := randomEffects{}
	for _, e := range effects {
		if e.Counts() {
			r.values, r.variances = append(r.values, e.Value), append(r.variances, e.Variance)
		}
	}
	if len(r.values) > 0 {
		least := max(leastShare*Median(r.variances), leastVariance)
		for i, v := range r.variances {
			r.variances[i] = max(v, least)
		}
	}
	r.weights = make([]float64, len(r.values))
	return r
}

// without are the effects except one. The last effect takes its place.
func (r randomEffects) without(i int) randomEffects {
	last := len(r.values) - 1
	r.values[i], r.variances[i] = r.values[last], r.variances[last]
	return randomEffects{r.values[:last], r.variances[:last], r.weights[:last]}
}

// estimate is that of the mean over hosts, for a variance between them.
type estimate struct {
	mean, error float64
	q           float64 // squared distances of the values to it, in variances
	w, w2, w3   float64 // sums of the weights, their squares and cubes
	distance    float64 // Σ w²·(value − mean)²
}

func (r randomEffects) at(between float64) (e estimate) {
	for i, v := range r.values {
		w := 1 / (r.variances[i] + between)
		r.weights[i] = w
		e.w, e.w2, e.w3, e.mean = e.w+w, e.w2+w*w, e.w3+w*w*w, e.mean+w*v
	}
	e.mean /= e.w
	for i, v := range r.values {
		d := v - e.mean
		wd := r.weights[i] * d
		e.q, e.distance = e.q+wd*d, e.distance+wd*wd
	}
	if n := len(r.values); n > 1 {
		e.error = math.Sqrt(max(e.q/float64(n-1), 1) / e.w)
	}
	return e
}

// information is twice what the restricted likelihood tells of the variance between hosts: one over half of that variance's own variance.
func (e estimate) information() float64 { return e.w2 - 2*e.w3/e.w + e.w2*e.w2/e.w/e.w }

// restricted is the variance between hosts that makes the restricted likelihood largest, by Fisher's scoring with halved steps. The hosts are in
// classes that have a mean each, and one variance between hosts.
func restricted(classes ...randomEffects) float64 {
	free, squares := 0, 0.0
	for _, r := range classes {
		m := mean(r.values)
		for _, v := range r.values {
			squares += (v - m) * (v - m)
		}
		free += len(r.values) - 1
	}
	if free < 1 {
		return 0
	}
	typical := within(classes...)
	between := max(squares/float64(free)-typical, 0)
	for range scorings {
		var score, information float64
		for _, r := range classes {
			if len(r.values) > 1 {
				e := r.at(between)
				score += e.distance - (e.w - e.w2/e.w)
				information += e.information()
			}
		}
		step := score / information
		if !Finite(step) {
			return between
		}
		for between+step < 0 && -step > scored*between && between > 0 {
			step /= 2
		}
		next := max(between+step, 0)
		if next < scored*typical { // it would be halved on and on
			return 0
		}
		if math.Abs(next-between) <= scored*next {
			return next
		}
		between = next
	}
	return between
}

const (
	scorings = 100
	scored   = 1e-8 // a relative step at which scoring ends
)

// within is the variance of a typical host's value (Higgins and Thompson, 2002, equation 9).
func within(classes ...randomEffects) float64 {
	var w, w2, n float64
	for _, r := range classes {
		for _, v := range r.variances {
			w, w2, n = w+1/v, w2+1/v/v, n+1
		}
	}
	if n < 2 || w*w-w2 <= 0 {
		return Median(classes[0].variances)
	}
	return (n - 1) * w / (w*w - w2)
}

// next is the interval of the next host's true value. What is known of the variance between hosts is a distribution: each probability has the
// variance at which the hosts' distances to their mean are as improbable (the generalized Q statistic; Viechtbauer, 2007). The next host's value is
// distributed as for each of these variances in turn (Nagashima, Noma and Furukawa, 2019). An interval from one estimate of the variance is too
// narrow where hosts are few.
func (r randomEffects) next(alpha float64) (low, high float64) {
	chi := distuv.ChiSquared{K: float64(len(r.values) - 1)}
	all := make([]distuv.Normal, betweens)
	between := 0.0
	for i := range all { // the variance grows, so each search begins where the last one ended
		between = r.betweenAt(chi.Quantile(1-(float64(i)+0.5)/betweens), between)
		e := r.at(between)
		all[i] = distuv.Normal{Mu: e.mean, Sigma: math.Sqrt(between + e.error*e.error)}
	}
	quantile := func(p float64) float64 {
		low, high := math.Inf(1), math.Inf(-1)
		for _, n := range all {
			q := n.Quantile(p)
			low, high = min(low, q), max(high, q)
		}
		return low + bisect(high-low, func(x float64) bool {
			below := 0.0
			for _, n := range all {
				below += n.CDF(low+x) / betweens
			}
			return below >= p
		})
	}
	return quantile(alpha / 2), quantile(1 - alpha/2)
}

// betweens is how many variances between hosts stand for their distribution.
const betweens = 100

// betweenAt is the variance between hosts at which their distances to the mean, in variances, add up to q; it is at least low. One over the sum is
// nearly a straight line of the variance, so Newton's steps on that are few; where one leads too far, half of the rest is taken.
func (r randomEffects) betweenAt(q, low float64) float64 {
	m := mean(r.values)
	high := 0.0
	for _, v := range r.values {
		high += (v - m) * (v - m)
	}
	high /= q // with this variance and more, they are nearer
	between := low
	for range newtons {
		e := r.at(between)
		if e.q > q {
			low = between
		} else {
			high = between
		}
		next := between + (e.q/q-1)*e.q/e.distance
		switch {
		case !(high > low):
			return low
		case math.Abs(next-between) <= scored*next:
			return next
		case !(next > low && next < high):
			next = low + (high-low)/2
		}
		between = next
	}
	return between
}

const newtons = 60

// Classes are the means of classes of hosts, whose true values vary as much within each class.
type Classes struct {
	Means   []Estimate // by class, each with its interval
	Between float64    // standard deviation of hosts' true values within a class
	P       float64    // probability that classes of the same mean look as different by chance; NaN: not known
}

// ClassesOf compares classes of hosts, with intervals of 1 − alpha. It is a regression of random effects on the classes, by restricted maximum
// likelihood, with the F test of Knapp and Hartung (2003). It needs two classes, and more hosts than classes. Each class must have an effect that
// counts.
func ClassesOf(classes [][]Effect, alpha float64) Classes {
	c := Classes{P: math.NaN()}
	var all []randomEffects
	n := 0
	for _, of := range classes {
		r := randomOf(of)
		all = append(all, r)
		n += len(r.values)
	}
	free := n - len(all)
	if len(all) < 2 || free < 1 {
		return c
	}
	between := restricted(all...)
	c.Between = math.Sqrt(between)
	var q, w, mean, apart float64
	for _, r := range all {
		e := r.at(between)
		c.Means = append(c.Means, Estimate{Value: e.mean, N: len(r.values)})
		q, w, mean = q+e.q, w+e.w, mean+e.w*e.mean
	}
	scale := max(q/float64(free), 1)
	t := Student(float64(free), alpha)
	for i, r := range all {
		m, e := &c.Means[i], r.at(between)
		half := t * math.Sqrt(scale/e.w)
		m.Low, m.High = m.Value-half, m.Value+half
		apart += e.w * (m.Value - mean/w) * (m.Value - mean/w)
	}
	f := apart / float64(len(all)-1) / scale
	c.P = distuv.F{D1: float64(len(all) - 1), D2: float64(free)}.Survival(f)
	return c
}

// Outlier is a host whose true value is unlike those of the other hosts.
type Outlier struct {
	At       int     // in the effects
	Expected float64 // mean of the others
	Distance float64 // to it, in standard deviations of what is expected there (an externally studentized residual)
}

// Outliers finds the hosts that are unlike the others, the most unlike first. Among so many hosts, or hosts and quantities, a share alpha of the
// searches may find one where there is none (Bonferroni). It compares the host that is farthest from the mean with the others, then the farthest
// of these with the rest, and so on. So two outliers cannot hide each other (Rosner, 1983). The degrees of freedom are those of Welch and
// Satterthwaite, because a host with few rounds knows its own variance badly. Of fewer than five hosts none is called an outlier, and of more at most a
// fifth and at most twenty.
func Outliers(effects []Effect, alpha float64, among int) (found []Outlier) {
	r := randomOf(effects)
	at := make([]int, 0, len(r.values)) // places of the values in effects
	for i, e := range effects {
		if e.Counts() {
			at = append(at, i)
		}
	}
	if len(at) < leastOthers+1 {
		return nil
	}
	var all []Outlier
	between := restricted(r)
	for range min(max(len(at)/5, 1), mostOutliers) {
		e := r.at(between)
		far, farthest := 0, -1.0
		for i, v := range r.values {
			if d := math.Abs(v-e.mean) * math.Sqrt(r.weights[i]); d > farthest {
				far, farthest = i, d
			}
		}
		o := Outlier{At: at[far]}
		value, variance := r.values[far], r.variances[far]
		at[far] = at[len(at)-1]
		at, r = at[:len(at)-1], r.without(far)
		between = restricted(r)
		e = r.at(between)
		total := variance + between + e.error*e.error
		o.Expected, o.Distance = e.mean, (value-e.mean)/math.Sqrt(total)
		unsure := 1 / e.information() // half of the variance of total
		if own := effects[o.At].Free; own > 0 {
			unsure += variance * variance / own
		}
		free := total * total / unsure
		all = append(all, o)
		if t := (distuv.StudentsT{Mu: 0, Sigma: 1, Nu: free}); 2*t.Survival(math.Abs(o.Distance))*float64(among) < alpha {
			found = all // with those before it, which it would have hidden
		}
	}
	return found
}

const (
	leastOthers  = 4
	mostOutliers = 20
)
