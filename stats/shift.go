package stats

import (
	"math"
	"slices"
)

// Shift is a change of the level of a history.
type Shift struct {
	At            int     // index of the first value of the new level
	Before, After float64 // means of the two levels
}

// LeastHistory is how many values a history needs for a change to be found in it.
const LeastHistory = 10

const (
	leastLevel   = 3  // values of a level: a single odd value is none
	usualHistory = 40 // values, for which surprising holds
	ageing       = 3  // power of a new level's age by which chance must be smaller
	surprising   = 5  // the score that no look at a history of usualHistory values without a change reaches in 95 of 100 (TestShifts)
)

// Shifts finds where the level of a history changes, in the order of time. The history is looked at again whenever a value is added. In 95 of
// 100 histories without a change, none of the first 40 looks reports one; longer histories need stronger evidence, so that the same holds for all
// of their looks. The same holds for several histories that are looked at together: the evidence must be stronger the more there are (among). A
// history of fewer than 10 values has no shift, and a level has at least 3 values. spread is the standard deviation of a value around its
// level; NaN: there are too few.
//
// It divides a history where the means of its parts differ most, and goes on with the parts: E-divisive means (Matteson and James 2014, with the
// exponent 2; Daly et al. 2020). The noise is learned from the history: it is what remains around all its levels. Permutations do not decide
// whether a difference is more than noise, as they cannot tell three new values after thirty from chance. A threshold from simulated
// histories of normal values does.
func Shifts(values []float64, among int) (all []Shift, spread float64) {
	h := history{values: values, starts: []int{0}}
	limit := surprising + math.Log(max(float64(len(values))/usualHistory, 1)) + math.Log(float64(among))
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

// end is the end of a level.
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

// best is the place where one more division would be most surprising, and its score: about the negative logarithm of the chance of a so large
// difference at that place, less what makes older levels need more evidence (ageing). A look has one place that is as new as can be. Looks
// before it had all other ones.
func (h history) best() (score float64, at int) {
	score = math.Inf(-1)
	if len(h.values) < LeastHistory {
		return score, 0
	}
	rest := h.rest()
	free := float64(len(h.values) - len(h.starts) - 1)
	for i, from := range h.starts {
		level := h.values[from:h.end(i)]
		all, sum := mean(level)*float64(len(level)), 0.0
		for k, v := range level {
			old, young := float64(k), float64(len(level)-k)
			if k >= leastLevel && len(level)-k >= leastLevel {
				apart := sum/old - (all-sum)/young
				gain := apart * apart * old * young / (old + young)
				// The score of Student's t as that of a normal value (Wallace 1959).
				z := math.Sqrt(free*math.Log1p(gain/max(rest-gain, math.SmallestNonzeroFloat64))) * (8*free + 1) / (8*free + 3)
				if s := z*z/2 - ageing*math.Log(young-leastLevel+1); s > score {
					score, at = s, from+k
				}
			}
			sum += v
		}
	}
	return score, at
}
