package replay

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"tare/stats"
)

// Prediction is how long the requests would take on a platform, or took when they were recorded.
type Prediction struct {
	Mean, P99 stats.Estimate // seconds: the mean over the beginnings of periods that were tried; the intervals are those of another time as long as the recorded one
	Throttled float64        // seconds for which CPUs stood still because of the limit, added over CPUs
	Queued    float64        // seconds for which threads were ready without a CPU, added over threads (see Outcome)
}

const (
	blocks = 20   // into which the time is divided: requests that are near to each other share their fate
	draws  = 1000 // of the bootstrap
	starts = 10   // at which a period is assumed to begin, if that is not known
	trials = 40   // at which it is assumed to begin to find out
)

// LeastOff is the error that every replay may have, as the natural logarithm of a ratio. In the cases of `scripts/bench predictions`, half are nearer.
const LeastOff = 0.1

// Predict replays the work on a platform. likely is when its periods may begin (see Phases); nil: that is not known.
func (w *Work) Predict(p Platform, likely []time.Duration, k Kernel) Prediction {
	switch {
	case p.Quota == 0:
		likely = []time.Duration{0}
	case likely == nil:
		likely = evenly(p.Period, starts)
	}
	var all []Outcome
	for _, p.Phase = range likely {
		all = append(all, w.Run(p, k))
	}
	return w.summary(all)
}

// Measured is what was recorded.
func (w *Work) Measured() Prediction {
	var o Outcome
	for _, s := range w.spans {
		o.Took = append(o.Took, s.took.Seconds())
		o.At = append(o.At, s.arrived.Seconds())
	}
	return w.summary([]Outcome{o})
}

// Widened is the prediction with intervals for replays that are off.
func (p Prediction) Widened(by Offset) Prediction {
	p.Mean.Low, p.Mean.High = p.Mean.Low*math.Exp(-by.Mean), p.Mean.High*math.Exp(by.Mean)
	p.P99.Low, p.P99.High = p.P99.Low*math.Exp(-by.P99), p.P99.High*math.Exp(by.P99)
	return p
}

// Offset is how far a replay is from what was measured, as absolute natural logarithms of the ratios.
type Offset struct{ Mean, P99 float64 }

// Off is how far a replay of the platform that was recorded is from what was measured there.
func Off(measured, replayed Prediction) Offset {
	return Offset{math.Abs(math.Log(replayed.Mean.Value / measured.Mean.Value)), math.Abs(math.Log(replayed.P99.Value / measured.P99.Value))}
}

// AtLeast is the offset, but at least LeastOff.
func (o Offset) AtLeast() Offset { return Offset{max(o.Mean, LeastOff), max(o.P99, LeastOff)} }

// Phases are when the periods of the recorded platform may have begun: a replay with them comes as near as any to what was recorded.
func (w *Work) Phases(p Platform, k Kernel) (likely []time.Duration) {
	if p.Quota == 0 {
		return nil
	}
	all := evenly(p.Period, trials)
	off := make([]float64, len(all))
	for i, at := range all {
		p.Phase = at
		off[i] = w.unlike(w.Run(p, k))
	}
	const asGood = 1.1
	best := slices.Min(off)
	for i, at := range all {
		if off[i] <= asGood*best {
			likely = append(likely, at)
		}
	}
	if n := len(likely); n > starts { // evenly
		for i := range starts {
			likely[i] = likely[i*n/starts]
		}
		likely = likely[:starts]
	}
	return likely
}

// unlike is by how much the times of an outcome differ from the recorded ones: in each block of time the shortest from the shortest, and so on,
// because which of several requests is served first may be different.
func (w *Work) unlike(o Outcome) (sum float64) {
	var then, now [blocks][]float64
	for j, of := range o.Of {
		b := w.block(w.spans[of].arrived.Seconds())
		then[b], now[b] = append(then[b], w.spans[of].took.Seconds()), append(now[b], o.Took[j])
	}
	for b := range then {
		slices.Sort(then[b])
		slices.Sort(now[b])
		for i := range then[b] {
			sum += math.Abs(then[b][i] - now[b][i])
		}
	}
	return sum
}

// block is the part of the time to which something belongs that came at a time, in seconds.
func (w *Work) block(at float64) int { return min(blocks-1, max(0, int(at/w.Seconds*blocks))) }

// evenly are n times in a period, as far from each other as possible.
func evenly(period time.Duration, n int) (all []time.Duration) {
	for i := range n {
		all = append(all, period*time.Duration(2*i+1)/time.Duration(2*n))
	}
	return all
}

func (w *Work) summary(all []Outcome) (p Prediction) {
	var means, tails []float64
	for _, o := range all {
		p.Throttled += o.Throttled.Seconds() / float64(len(all))
		p.Queued += o.Queued.Seconds() / float64(len(all))
		if len(o.Took) > 0 {
			took := slices.Sorted(slices.Values(o.Took))
			means, tails = append(means, stat.Mean(took, nil)), append(tails, stats.Quantile(took, tail))
		}
	}
	nan := math.NaN()
	p.Mean, p.P99 = stats.Estimate{Value: nan, Low: nan, High: nan}, stats.Estimate{Value: nan, Low: nan, High: nan}
	if len(means) == 0 {
		return p
	}
	p.Mean.Value, p.P99.Value = stat.Mean(means, nil), stat.Mean(tails, nil)
	w.bootstrap(all, &p)
	return p
}

// tail is the quantile that is predicted in addition to the mean.
const tail = 0.99

// bootstrap makes the intervals: of one of the outcomes, blocks of time are drawn with replacement.
func (w *Work) bootstrap(all []Outcome, p *Prediction) {
	parts := make([][blocks][]float64, len(all))
	n := 0
	for i, o := range all {
		n += len(o.Took)
		for j, took := range o.Took {
			b := w.block(o.At[j])
			parts[i][b] = append(parts[i][b], took)
		}
	}
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	var means, tails, drawn []float64
	for range max(draws/10, min(draws, mostDrawn*len(all)/max(1, n))) {
		of := &parts[rng.IntN(len(parts))]
		drawn = drawn[:0]
		for range blocks {
			drawn = append(drawn, of[rng.IntN(blocks)]...)
		}
		if len(drawn) > 0 {
			slices.Sort(drawn)
			means, tails = append(means, stat.Mean(drawn, nil)), append(tails, stats.Quantile(drawn, tail))
		}
	}
	p.Mean, p.P99 = another(p.Mean.Value, means), another(p.P99.Value, tails)
}

// another is a value with the interval in which that of another time lies. What was drawn says how far a value is from the true one. That of another
// time is as far from it, so the two are further from each other, by the square root of 2.
func another(value float64, drawn []float64) stats.Estimate {
	slices.Sort(drawn)
	end := func(p float64) float64 {
		return value * math.Pow(stats.Quantile(drawn, p)/value, math.Sqrt2)
	}
	return stats.Estimate{Value: value, Low: min(value, end(stats.Alpha/2)), High: max(value, end(1-stats.Alpha/2))}
}

// mostDrawn bounds how many requests a bootstrap draws.
const mostDrawn = 10_000_000
