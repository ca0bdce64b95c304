package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// driftingTrials draws the times of consecutive trials of so many seconds on a host whose speed drifts, as shares: an Ornstein-Uhlenbeck process with that standard
// deviation and time constant, averaged over each trial, and noise of each trial's own, which is white in time: so large at 0.45 s, as it was fitted on a real host.
func driftingTrials(g *rand.Rand, n int, seconds, slow, constant, white float64) []float64 {
	const steps = 10 // in a trial
	keep := math.Exp(-seconds / steps / constant)
	level := slow * g.NormFloat64()
	all := make([]float64, n)
	for i := range all {
		for range steps {
			all[i] += level / steps
			level = keep*level + slow*math.Sqrt(1-keep*keep)*g.NormFloat64()
		}
		all[i] += 1 + white*math.Sqrt(0.45/seconds)*g.NormFloat64()
	}
	return all
}

// gains returns how many times narrower intervals become with so many times the work. said is the median that rehearsals of at most 5 s and
// 33 trials predict. real is the true factor.
func gains(g *rand.Rand, times, seconds, slow, constant, white float64) (said, real float64) {
	var all []float64
	for range 400 {
		values := driftingTrials(g, min(33, int(5/seconds)), seconds, slow, constant, white)
		all = append(all, NoisePartsOf(values).Gain(times, 3.3))
	}
	spread := func(seconds float64) (v float64) { // of two trials in a round of four guests that each take 0.2 s to make and warm up as long
		const studies = 4000
		slot := 2*seconds + 0.2
		for range studies {
			apart := slot * []float64{1, 1, 1, 2, 2, 3}[g.IntN(6)]
			d := pair(g, seconds, apart, slow, constant, white)
			v += d * d
		}
		return math.Sqrt(v)
	}
	return Median(all), spread(seconds) / spread(times*seconds)
}

// pair draws the difference of two trials that begin at this distance, in seconds.
func pair(g *rand.Rand, seconds, apart, slow, constant, white float64) float64 {
	const steps = 10 // in a trial
	level, sum := slow*g.NormFloat64(), [2]float64{}
	pass := func(s float64) {
		keep := math.Exp(-s / constant)
		level = keep*level + slow*math.Sqrt(1-keep*keep)*g.NormFloat64()
	}
	for i := range sum {
		for range steps {
			sum[i] += level / steps
			pass(seconds / steps)
		}
		sum[i] += white * math.Sqrt(0.45/seconds) * g.NormFloat64()
		pass(apart - seconds)
	}
	return sum[1] - sum[0]
}

// What longer work would bring is foreseen from a few seconds of trials in a row. Where a host's speed drifts, it is not √3 for three times the work, nor √10
// for ten: with the noise of a real host (1.8 % that drifts in 4.5 s, 0.93 % of each trial's own) it is next to nothing.
func TestWhatLongerWorkWouldBring(t *testing.T) {
	g := rand.New(rand.NewPCG(11, 12))
	for _, c := range []struct{ seconds, slow, constant, white float64 }{
		{0.45, 0, 1, 0.02}, {0.1, 0, 1, 0.02}, {0.45, 0.018, 4.5, 0.0093}, {0.2, 0.018, 4.5, 0.0093}, {0.1, 0.018, 4.5, 0.0093}, {0.1, 0.018, 30, 0.0093},
	} {
		for _, times := range []float64{3, 10} {
			said, real := gains(g, times, c.seconds, c.slow, c.constant, c.white)
			if said > 1.4*real || said < 0.7*real {
				t.Errorf("%+v: %g times the work is said to make intervals %.2f times narrower, and makes them %.2f", c, times, said, real)
			}
		}
	}
	if w := NoisePartsOf([]float64{1, 1, 1, 1, 1}); w != (NoiseParts{}) || w.Gain(4, 3) != 2 {
		t.Errorf("without noise: %+v", w)
	}
	for _, v := range []float64{Allan([]float64{1, 2, 3}, 2), Allan(nil, 1), Allan([]float64{1, 2}, 0)} {
		if !math.IsNaN(v) {
			t.Errorf("an Allan variance of too few values: %g", v)
		}
	}
	near(t, "Allan variance", Allan([]float64{1, 3, 1, 3}, 1), 0.5*4/4, 1e-12) // of their mean squared
}
