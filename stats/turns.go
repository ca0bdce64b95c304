package stats

import "math"

// LevelsOfTurns is [LevelsOf] where x[i][j] and y[i][j] are of one turn of guests that were alive at the same time. What slows the host
// for a turn cancels in their difference, and so it is neither the trials' noise nor the guests'. A round in which the two have
// different numbers of trials tells nothing of the trials.
func LevelsOfTurns(x, y [][]float64) (l Levels) {
	if len(x) < 2 || len(x) != len(y) {
		return l
	}
	l.Rounds = len(x)
	var xs, ys []float64
	for i := range x {
		xs, ys = append(xs, mean(x[i])), append(ys, mean(y[i]))
	}
	mx, my := mean(xs), mean(ys)
	if mx == 0 || my == 0 {
		return l
	}
	rest := make([]float64, len(x)) // of the rounds
	var squares, inverse float64
	for i := range x {
		rest[i] = xs[i]/mx - ys[i]/my
		n := len(x[i])
		inverse += 1 / float64(max(n, 1)) / float64(len(x))
		if n != len(y[i]) {
			continue
		}
		for j := range n {
			d := x[i][j]/mx - y[i][j]/my - rest[i]
			squares += d * d
		}
		l.Free += n - 1
	}
	if l.Free > 0 {
		l.Trial = squares / float64(l.Free)
	}
	all := scatter(rest, mean(rest)) * float64(len(rest))
	l.Guest, l.Error = all-l.Trial*inverse, all*math.Sqrt(2/float64(len(rest)-1))
	return l
}
