package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Where the host's speed drifts from turn to turn, the levels of turns have only the noise of trials and of guests. Those of trials
// that are not paired count the host's as well.
func TestLevelsOfTurns(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 2))
	const trial, guest, host = 0.01, 0.005, 0.03
	var x, y [][]float64
	for range 2000 {
		gx, gy := 1+guest*g.NormFloat64(), 1+guest*g.NormFloat64()
		var xs, ys []float64
		for range 8 {
			now := 1 + host*g.NormFloat64()
			xs, ys = append(xs, 1.2*now*gx*(1+trial*g.NormFloat64())), append(ys, now*gy*(1+trial*g.NormFloat64()))
		}
		x, y = append(x, xs), append(y, ys)
	}
	near := func(got, want float64) bool { return math.Abs(got/want-1) < 0.1 }
	if l := LevelsOfTurns(x, y); !near(l.Trial, 2*trial*trial) || !near(l.Guest, 2*guest*guest) || l.Free != 2000*7 {
		t.Errorf("%+v, want a trial of %g and a guest of %g", l, 2*trial*trial, 2*guest*guest)
	}
	if l := LevelsOf(x, y); l.Trial < 5*2*trial*trial {
		t.Errorf("%+v: without pairs the host's noise counts", l)
	}
	if l := LevelsOfTurns(x[:1], y[:1]); l != (Levels{}) {
		t.Errorf("one round: %+v", l)
	}
	y[0] = y[0][:3]
	if l := LevelsOfTurns(x, y); l.Free != 1999*7 {
		t.Errorf("a round with other numbers counts: %+v", l)
	}
}
