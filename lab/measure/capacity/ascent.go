package capacity

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/notebook"
	record "tare/notebook/kinds/capacity"
)

// ascent is a search for a capacity: it says which rate comes next and how long the step at that rate lasts. It depends only on the results
// of the steps.
//
// A step may miss the objective by chance because the host stalls, or meet it by chance because it had few requests. So the search
// repeats a miss, and two of three steps at a rate decide. After the first decided miss, every rate needs two steps that agree, even
// if the first meets the objective. Each step then lasts until it has sent enough requests. If all rates below a miss meet the
// objective, the search tries the missed rate again.
//
// If an earlier search found an approximate capacity, the search begins there. It looks for a rate that meets the objective and one
// that misses it. Its strides grow from 5 %. It then halves the interval between the two rates until that is 5 % too. Every rate needs
// two steps that agree.
type ascent struct {
	record.Config
	start  int           // where an earlier search found the capacity, less half a stride; 0: nothing is known
	stride float64       // factor of the next stride from start; 0: the first
	met    []record.Step // the rates that met the objective, rising
	firm   int           // the last of met, if two steps agree on it; else 0
	missed record.Step   // the lowest rate that missed the objective; zero: none yet
	sure   bool          // a second decision confirmed the miss
	tries  []record.Step // steps at a rate that is not decided
	halved int
}

// last is the greatest rate that met the objective; zero: none did.
func (a *ascent) last() record.Step {
	if len(a.met) == 0 {
		return record.Step{}
	}
	return a.met[len(a.met)-1]
}

// next is the next rate and for how many seconds it is held; false: the search is over.
func (a *ascent) next() (rate int, seconds float64, ok bool) {
	rate, ok = a.rate()
	seconds = a.HoldS
	if len(a.tries) > 0 || a.near() { // the rate is near the capacity
		seconds = a.long(rate)
	}
	return rate, seconds, ok
}

func (a *ascent) rate() (rate int, ok bool) {
	low, high := a.last().Rate, a.missed.Rate
	switch {
	case len(a.tries) > 0:
		return a.tries[0].Rate, true
	case low == 0 && high == 0:
		return min(max(cmp.Or(a.start, a.From), a.From), a.To), true
	case a.start > 0:
		return a.around(low, high)
	case low == 0 || high == 0 && low >= a.To:
		return 0, false
	case high == 0:
		return min(a.To, max(low+1, int(math.Round(float64(low)*(1+a.Raise))))), true
	case a.firm != low:
		return low, true
	}
	if rate = int(math.Round(math.Sqrt(float64(low) * float64(high)))); a.halved < halvings && low < rate && rate < high {
		a.halved++
		return rate, true
	}
	return high, !a.sure
}

// near reports whether the search is so near the capacity that every rate needs two steps that agree.
func (a *ascent) near() bool { return a.missed.Rate > 0 || a.start > 0 }

// around is the next rate of a search that began where an earlier one ended.
func (a *ascent) around(low, high int) (rate int, ok bool) {
	switch {
	case low == 0 && high <= a.From, high == 0 && low >= a.To:
		return 0, false
	case low == 0:
		return max(a.From, min(high-1, int(math.Round(float64(high)/a.further())))), true
	case high == 0:
		return min(a.To, max(low+1, int(math.Round(float64(low)*a.further())))), true
	}
	rate = int(math.Round(math.Sqrt(float64(low) * float64(high))))
	return rate, float64(high) > 1.02*a.first()*float64(low) && low < rate && rate < high // rates are whole numbers
}

// first is the factor of the first stride.
func (a *ascent) first() float64 { return 1 + min(a.Raise, 0.05) }

// further is the factor of the next stride: each is as long as all before it and the first once more.
func (a *ascent) further() float64 {
	now := cmp.Or(a.stride, a.first())
	a.stride = now * now
	return now
}

// begins is where the next search of a service of this capacity begins: its first stride then has the capacity in its middle.
func (a *ascent) begins(capacity float64) int { return int(capacity / math.Sqrt(a.first())) }

const (
	beyond   = 2   // requests of a step that should take longer than the objective's percentile; two steps decide a rate
	mostHold = 120 // longest time to hold a rate for that, in seconds
)

// long is for how many seconds a deciding step is held: until it has sent enough requests for the objective's percentile, if the
// objective is one.
func (a *ascent) long(rate int) float64 {
	percent, err := strconv.ParseFloat(strings.TrimPrefix(a.Metric, "p"), 64)
	if err != nil || !(percent < 100) {
		return a.HoldS
	}
	return max(a.HoldS, min(math.Ceil(beyond/(1-percent/100)/float64(rate)), mostHold))
}

// take adds the result of a step.
func (a *ascent) take(s record.Step) {
	a.tries = append(a.tries, s)
	met, near := 0, a.near()
	for _, t := range a.tries {
		if t.Met {
			met++
		}
	}
	if met < 2 && len(a.tries)-met < 2 && (near || !s.Met) {
		return
	}
	s = middle(a.tries)
	a.tries = nil
	if a.last().Rate == s.Rate { // the rate was tried again
		a.met = a.met[:len(a.met)-1]
	}
	switch {
	case s.Met:
		if a.met = append(a.met, s); near {
			a.firm = s.Rate
		}
		if s.Rate == a.missed.Rate { // the rate meets the objective after all, so the climb goes on
			a.missed, a.halved = record.Step{}, 0
		}
	default:
		a.missed, a.sure = s, near
		if last := a.last(); !near && last.Rate > 0 && a.HoldS >= a.long(last.Rate) { // its only step was long enough to be the first of two
			a.tries = append(a.tries, last)
		}
	}
}

// middle is the step that decided among the steps at a rate: the middle one, or the lesser of two misses.
func middle(steps []record.Step) record.Step {
	worse := func(s record.Step) (n int) { // a failure is worse than a miss
		if !s.Met {
			n++
		}
		if s.Failure != nil {
			n++
		}
		return n
	}
	slices.SortStableFunc(steps, func(s, t record.Step) int {
		return cmp.Or(cmp.Compare(worse(s), worse(t)), cmp.Compare(s.Tail, t.Tail))
	})
	return steps[(len(steps)-1)/2]
}

// capacity is the rate at which the objective is just met. It is interpolated between the last rate that met the objective and the
// first that missed it, as if the logarithm of the time grew evenly with the rate; cause says why there is none.
func (a *ascent) capacity() (rate float64, cause *notebook.Message) {
	met := a.last()
	switch {
	case met.Rate == 0:
		seen := notebook.Say("slow", "metric", a.Metric, "was_s", a.missed.Tail)
		if a.missed.Failure != nil {
			seen = a.missed.Failure
		} else if a.missed.Tail <= a.Bound {
			seen = notebook.Say("few-answered", "rate", a.missed.Throughput)
		}
		return 0, notebook.Say("missed-at-least-rate", "metric", a.Metric, "bound_s", a.Bound, "rate", a.From, "seen", seen)
	case a.missed.Rate == 0:
		return 0, notebook.Say("met-at-greatest-rate", "metric", a.Metric, "bound_s", a.Bound, "rate", met.Rate)
	}
	low, high := float64(met.Rate), float64(a.missed.Rate)
	if a.missed.Failure != nil || !(a.missed.Tail > a.Bound) || !(met.Tail > 0) {
		return low, nil
	}
	return low * math.Pow(high/low, math.Log(a.Bound/met.Tail)/math.Log(a.missed.Tail/met.Tail)), nil
}
