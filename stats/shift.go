package stats

import (
	"math"
	"slices"
)

// Shift is a change of the level of a history. A level is the mean of consecutive values.
type Shift struct {
	At            int     // index of the first value of the new level
	Before, After float64 // means of the two levels
}

// LeastHistory is the least number of values in which Shifts looks for a change.
const LeastHistory = 10

const (
	precision    = 1e-12
	leastLevel   = 3  // values of a level: a single outlier is not a level
	usualHistory = 40 // number of values for which surprising holds
	ageing       = 3  // the evidence for a level of n values must be about (n−2)^ageing times as strong as for one of 3 values
	surprising   = 5  // in 95 of 100 histories of usualHistory values without a change, no look reaches this score (TestShifts)
)

// Shifts finds where the level of a history changes, in the order of time. The caller looks again whenever a value is added. In 95 of 100
// histories without a change, none of the first 40 looks reports one. Longer histories need stronger evidence: in 91 of 100, none of 200 looks
// reports one. This holds for independent values with a normal distribution. among is the number of histories that the caller looks at
// together: more histories need stronger evidence, too. A history of fewer than LeastHistory values has no shift. spread is the standard
// deviation of the values around their levels; NaN: too few values.
//
// Shifts divides a history where the means of its parts differ most, and then divides the parts: E-divisive means (Matteson and James 2014,
// with the exponent 2; Daly et al. 2020). It estimates the noise from the distances of the values to their levels. A threshold from
// simulated histories of normal values decides whether a difference is more than noise. Permutations would not distinguish three new values
// after thirty others from chance.
func Shifts(values []float64, among int) (all []Shift, spread float64) {
	h := history{values: values, starts: []int{0}}
	if len(values) < 2 {
		return nil, math.NaN()
	}
	limit := surprising + 2*math.Log(max(float64(len(values))/usualHistory, 1)) + math.Log(float64(among))
	for {
		score, at := h.best()
		if score < limit {
			break
		}
		h.starts = append(h.starts, at)
		slices.Sort(h.starts)
	}
	for i, at := range h.starts[1:] {
		all = append(all, Shift{at, mean(values[h.starts[i]:at]), mean(values[at:h.end(i+1)])})
	}
	return all, math.Sqrt(h.rest() / float64(len(values)-len(h.starts)))
}

// history is a history of values, divided into levels.
type history struct {
	values []float64
	starts []int // of the levels
}

// end is the index after the last value of a level.
func (h history) end(level int) int {
	if level+1 < len(h.starts) {
		return h.starts[level+1]
	}
	return len(h.values)
}

// rest is the sum of the squared distances of the values to their levels.
func (h history) rest() (sum float64) {
	for i, from := range h.starts {
		level := h.values[from:h.end(i)]
		m := mean(level)
		for _, v := range level {
			sum += (v - m) * (v - m)
		}
	}
	return sum
}

// best finds the place with the strongest evidence for one more division, and its score. The score is about the negative logarithm of the
// probability that chance causes so large a difference at that place. It is lowered for older places, which need more evidence (ageing):
// earlier looks had a chance at them already. Each look adds only one new place.
func (h history) best() (score float64, at int) {
	score = math.Inf(-1)
	if len(h.values) < LeastHistory {
		return score, 0
	}
	rest := h.rest()
	rounding := 0.0 // squares that may be errors of rounding
	for _, v := range h.values {
		rounding += v * v * precision * precision
	}
	free := float64(len(h.values) - len(h.starts) - 1)
	for i, from := range h.starts {
		level := h.values[from:h.end(i)]
		all, sum := mean(level)*float64(len(level)), 0.0
		for k, v := range level {
			old, young := float64(k), float64(len(level)-k)
			if k >= leastLevel && len(level)-k >= leastLevel {
				apart := sum/old - (all-sum)/young
				gain := apart * apart * old * young / (old + young)
				// Student's t, converted to a standard normal value (Wallace 1959).
				z := math.Sqrt(free*math.Log1p(gain/max(rest-gain, rounding))) * (8*free + 1) / (8*free + 3)
				if s := z*z/2 - ageing*math.Log(young-leastLevel+1); gain > rounding && s > score {
					score, at = s, from+k
				}
			}
			sum += v
		}
	}
	return score, at
}
