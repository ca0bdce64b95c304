package stats

import "math"

// Allan is the Allan variance of consecutive values at m of them, as a share of their mean squared: half the mean square of the difference between the mean
// of m values and that of the next m, over all such pairs, which overlap (IEEE 1139). NaN where there is no such pair.
func Allan(values []float64, m int) float64 {
	n := len(values) - 2*m + 1
	if m < 1 || n < 1 {
		return math.NaN()
	}
	of, sum := mean(values), 0.0
	for i := range n {
		d := (mean(values[i+m:i+2*m]) - mean(values[i:i+m])) / of
		sum += d * d / 2
	}
	return sum / float64(n)
}

// NoiseParts is the noise of consecutive trials, as variances in shares of their mean squared: what is each trial's own, which longer trials average out, and what a
// host's speed drifts by from one to the next, which grows with the time that they take.
type NoiseParts struct{ Own, Drift float64 }

// NoisePartsOf separates the two by the Allan variance at 1, 2 and 4 trials, which is Own/m + Drift·m: by least squares of what it is off by as a share, each
// weighted by how many independent pairs there are. Of too few values Drift is 0.
func NoisePartsOf(values []float64) NoiseParts {
	var aa, ab, bb, ay, by float64
	for _, m := range []float64{1, 2, 4} {
		v := Allan(values, int(m))
		if !(v > 0) {
			continue
		}
		w := float64(len(values))/m - 1
		a, b := 1/m/v, m/v
		aa, ab, bb, ay, by = aa+w*a*a, ab+w*a*b, bb+w*b*b, ay+w*a, by+w*b
	}
	det := aa*bb - ab*ab
	w := NoiseParts{(ay*bb - by*ab) / det, (by*aa - ay*ab) / det}
	switch {
	case aa == 0: // there is no noise, or too little to know
		return NoiseParts{}
	case !(det > 0) || w.Drift < 0:
		return NoiseParts{Own: ay / aa}
	case w.Own < 0:
		return NoiseParts{Drift: by / bb}
	}
	return w
}

// Spread is the standard deviation of a trial, as a share of its mean, among trials that lie so far apart, in lengths of a trial. It is
// 1/√2 of that of the difference of two of them.
func (w NoiseParts) Spread(apart float64) float64 { return math.Sqrt(w.Own + w.between(apart)) }

// between is what the host's speed adds to the variance of a trial at this distance.
func (w NoiseParts) between(apart float64) float64 {
	return w.Drift * max(1.5*apart-0.5, 0) // Drift is of trials that follow each other, where a third of it averages out within them
}

// Gain is how many times less the difference of two trials varies where they are so many times as long; less than 1 where it varies more. apart is how far they
// lie apart, in lengths of a trial: what is between them takes longer too.
func (w NoiseParts) Gain(times, apart float64) float64 {
	drift := w.between(apart)
	if w.Own+drift == 0 {
		return math.Sqrt(times)
	}
	return math.Sqrt((w.Own + drift) / (w.Own/times + drift*times))
}
