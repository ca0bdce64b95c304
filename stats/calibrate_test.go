package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"tare/stats"
)

// controls are bare metal against itself at so many places, in so many rounds. Each pair of sides has an offset of its own that no round
// shows, of so many standard errors of a ratio.
func controls(g *rand.Rand, places, rounds int, offset float64, c stats.Confidence) (all []stats.Control) {
	for range places {
		k := stats.Control{Confidence: c}
		own := offset * 0.02 * math.Sqrt(2/float64(rounds)) * g.NormFloat64()
		for range rounds {
			level := 1 + 0.05*g.NormFloat64() // of the round: both sides have it
			k.X, k.Y = append(k.X, level*(1+own+0.02*g.NormFloat64())), append(k.Y, level*(1+0.02*g.NormFloat64()))
		}
		all = append(all, k)
	}
	return all
}

// On a host whose intervals are right, at most one calibration in twenty says otherwise, however many places there are. Without a common judgement,
// nearly every study of forty places has places in doubt. Where the intervals are too narrow at all places, all together show it, and single places rarely do.
func TestCalibratedTogether(t *testing.T) {
	const studies = 300
	fixed, ruled := stats.Sure(0), stats.Sure(20)
	until := stats.Confidence{Alpha: stats.Alpha, Looks: 200, Precision: 0.02, Floor: 3}
	for _, x := range []struct {
		name                string
		places, rounds      int
		offset              float64 // in standard errors: the factor is √(1 + offset²)
		c                   stats.Confidence
		said, narrow, alone [2]float64 // shares of studies: that anything is said, that intervals are too narrow; of places that miss by themselves
	}{
		{"one place", 1, 20, 0, fixed, [2]float64{0, 0.08}, [2]float64{0, 0}, [2]float64{0, 0.08}},
		{"2 places", 2, 20, 0, fixed, [2]float64{0, 0.08}, [2]float64{0, 0.05}, [2]float64{0.02, 0.08}},
		{"40 places", 40, 20, 0, fixed, [2]float64{0, 0.08}, [2]float64{0, 0.05}, [2]float64{0.04, 0.06}},
		{"40 places, 3 rounds", 40, 3, 0, fixed, [2]float64{0, 0.08}, [2]float64{0, 0.05}, [2]float64{0.04, 0.06}},
		{"40 places, a rule", 40, 20, 0, ruled, [2]float64{0, 0.02}, [2]float64{0, 0.02}, [2]float64{0, 0.02}},
		{"40 places, until precise", 40, 20, 0, until, [2]float64{0, 0.05}, [2]float64{0, 0.02}, [2]float64{0, 0.04}},
		{"40 places, 1.5 times too narrow", 40, 20, 1.1, fixed, [2]float64{0.85, 1}, [2]float64{0.8, 1}, [2]float64{0.13, 0.23}},
		{"40 places, twice", 40, 20, 1.73, fixed, [2]float64{0.99, 1}, [2]float64{0.97, 1}, [2]float64{0.25, 0.4}},
		{"10 places, twice", 10, 10, 1.73, fixed, [2]float64{0.7, 1}, [2]float64{0.55, 1}, [2]float64{0.2, 0.4}},
	} {
		g := rand.New(rand.NewPCG(31, 1))
		var said, narrow, below, alone, before int
		var factors []float64
		for range studies {
			of := controls(g, x.places, x.rounds, x.offset, x.c)
			c := stats.Calibrate(of, stats.Alpha)
			any, each := c.Narrow(), 0
			for i, k := range of {
				any = any || c.Miss[i]
				if !stats.Ratio(k.X, k.Y, k.Confidence).Contains(1) {
					each++
				}
			}
			if alone += each; each > 0 {
				before++
			}
			if any {
				said++
			}
			if c.Narrow() {
				narrow++
			}
			if c.Low <= math.Sqrt(1+x.offset*x.offset) {
				below++
			}
			factors = append(factors, c.Factor)
		}
		in := func(what string, n, of int, want [2]float64) {
			if got := float64(n) / float64(of); got < want[0] || got > want[1] {
				t.Errorf("%s: %s in %.1f %%, want %.0f to %.0f %%", x.name, what, 100*got, 100*want[0], 100*want[1])
			}
		}
		t.Logf("%s: said in %.1f %%, too narrow in %.1f %%, factor %.2f; %.1f %% of places miss by themselves, in %.1f %% of studies", x.name, 100*float64(said)/studies, 100*float64(narrow)/studies,
			stats.Median(factors), 100*float64(alone)/float64(studies*x.places), 100*float64(before)/studies)
		in("something is said", said, studies, x.said)
		in("too narrow", narrow, studies, x.narrow)
		in("places miss by themselves", alone, studies*x.places, x.alone)
		if x.places == 40 && x.c == fixed {
			in("a place misses by itself", before, studies, [2]float64{0.8, 1})
		}
		if x.places > 1 {
			in("the true factor is at or above the lower bound", below, studies, [2]float64{0.95, 1})
		}
	}
}

// One place that is unsteady says nothing of the others, and a place where nothing differs says nothing at all.
func TestOnePlaceIsUnsteady(t *testing.T) {
	g := rand.New(rand.NewPCG(31, 2))
	narrow := 0
	for range 200 {
		of := controls(g, 39, 20, 0, stats.Sure(0))
		bad := controls(g, 1, 20, 0, stats.Sure(0))[0]
		for i := range bad.X {
			bad.X[i] *= 1.5
		}
		c := stats.Calibrate(append(of, bad), stats.Alpha)
		if !c.Miss[39] {
			t.Fatal("a place with a difference of 50 % does not miss")
		}
		if c.Narrow() {
			narrow++
		}
	}
	if narrow > 30 {
		t.Errorf("one bad place in forty makes all intervals too narrow in %d of 200 studies", narrow)
	}
	same := stats.Control{X: []float64{2, 2, 2}, Y: []float64{2, 2, 2}, Confidence: stats.Sure(0)}
	apart := stats.Control{X: []float64{3, 3, 3}, Y: []float64{2, 2, 2}, Confidence: stats.Sure(0)}
	none := stats.Control{X: []float64{3}, Y: []float64{2}, Confidence: stats.Sure(0)}
	if c := stats.Calibrate([]stats.Control{same, none}, stats.Alpha); c.Places != 0 || c.Narrow() || c.Miss[0] || c.Miss[1] {
		t.Errorf("%+v", c)
	}
	if c := stats.Calibrate([]stats.Control{same, apart, none}, stats.Alpha); c.Places != 1 || c.Narrow() || c.Miss[0] || !c.Miss[1] || c.Miss[2] {
		t.Errorf("%+v", c)
	}
}
