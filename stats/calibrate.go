package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Control is a ratio that is 1 in truth, since both sides are the same treatment: their values in the same rounds, and the confidence with which
// its interval is made.
type Control struct {
	X, Y []float64
	Confidence
}

// Calibration says what several controls of one host show together. Each control misses 1 in one study of twenty by chance, so about two of
// forty miss it on the steadiest host. Together the controls show more: by how much the host's intervals are too narrow.
type Calibration struct {
	Places int     // controls that have an interval, and differ at all
	Miss   []bool  // for each control given: it excludes 1 by more than chance over all places explains
	Factor float64 // how many times as wide as they are intervals would have to be; NaN where there are fewer than two places
	Low    float64 // so many times at least
}

// Narrow says whether the host's intervals are too narrow at all of its places together.
func (c Calibration) Narrow() bool { return c.Low > 1 }

// Calibrate judges controls together. On a host whose intervals are right, a share alpha of calibrations says that a place misses or that
// intervals are too narrow. Bonferroni's correction over the places uses half of alpha, and the factor uses the other half. A single place has
// all of alpha, as its own interval has.
//
// Each control's own t distribution turns its distance from 1 into a normal score. If all t are divided by the true factor, the sum of the
// squared scores follows a chi-squared distribution. Its degrees of freedom are the number of places. A single place that misses says nothing
// about the other places. Calibrate leaves it out of the sum, unless so many places miss that the host must be the cause. No score counts for more
// than the score of a place that just misses.
func Calibrate(controls []Control, alpha float64) Calibration {
	c := Calibration{Miss: make([]bool, len(controls)), Factor: math.NaN(), Low: math.NaN()}
	var of []int
	var judged []distance
	for i, k := range controls {
		if d := k.distance(); !math.IsNaN(d.t) {
			of, judged = append(of, i), append(judged, d)
		}
	}
	c.Places = len(judged)
	each, together := alpha, 0.0
	if c.Places > 1 {
		each, together = alpha/2/float64(c.Places), alpha/2
	}
	most := -distuv.UnitNormal.Quantile(each / 2)
	var rest []distance
	for i, d := range judged {
		if c.Miss[of[i]] = d.score(1) > most; !c.Miss[of[i]] {
			rest = append(rest, d)
		}
	}
	if misses := c.Places - len(rest); misses > max(1, c.Places/10) {
		rest = judged
	}
	if len(rest) < 2 {
		return c
	}
	sum := func(factor float64) (all float64) {
		for _, d := range rest {
			s := min(d.score(factor), most)
			all += s * s
		}
		return all
	}
	right := distuv.ChiSquared{K: float64(len(rest))}
	c.Factor, c.Low = decreasing(sum, right.Quantile(0.5)), decreasing(sum, right.Quantile(1-together))
	return c
}

// decreasing is where a function that never grows comes down to a value, by bisection of the logarithm.
func decreasing(f func(float64) float64, to float64) float64 {
	low, high := math.Log(1e-3), math.Log(1e6)
	for range 40 {
		if mid := (low + high) / 2; f(math.Exp(mid)) > to {
			low = mid
		} else {
			high = mid
		}
	}
	return math.Exp(high)
}

// distance is how far a control is from 1.
type distance struct {
	t    float64 // Student's, without its sign; NaN where there is no interval, or nothing differs
	n    int
	c    Confidence
	last bool // looking ended with the interval
}

func (k Control) distance() distance {
	d := distance{math.NaN(), len(k.X), k.Confidence, false}
	q := Ratio(k.X, k.Y, k.Confidence)
	if !q.HasInterval() {
		return d
	}
	apart := make([]float64, len(k.X))
	for i := range apart {
		apart[i] = k.X[i] - k.Y[i]
	}
	m := mean(apart)
	d.t, d.last = math.Abs(m)/math.Sqrt(scatter(apart, m)), d.c.ends(q)
	if d.c.Looks > 0 { // as in student
		d.c.Looks = max(d.c.Looks, d.n)
	}
	return d
}

// score is the normal score of the distance over a factor: what a normal value exceeds, without its sign, as rarely as an interval that is made as this
// one is misses by as much.
func (d distance) score(factor float64) float64 {
	p := 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(d.n - 1)}.Survival(d.t/factor)
	c := d.c
	for range 20 { // of which alpha an interval would be that ends there: nearly in proportion to p
		made := c
		if d.last {
			made = c.Last()
		}
		alpha := p * c.Alpha / made.single()
		done := math.Abs(alpha-c.Alpha) <= 1e-9*alpha
		if c.Alpha = alpha; done || alpha == 0 {
			break
		}
	}
	if c.Alpha >= 1 {
		return 0
	}
	return -distuv.UnitNormal.Quantile(c.Alpha / 2)
}
