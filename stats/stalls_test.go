package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// stalling runs studies of a treatment that stalls and a steady treatment, with one trial of 0.2 s a round. One of so many trials (every) takes
// longer, by a share (size). A study ends when its ratio is known to ± 1 %. missed is how often the last interval misses. hidden is how often it misses even
// with the rarest visible stall added at its upper end. took is the number of rounds.
func stalling(seed uint64, every, size, base float64, rounds, trials, studies int) (missed, hidden, took float64) {
	const cap, precision, seconds = 200, 0.01, 0.2
	g := rand.New(rand.NewPCG(seed, 35))
	sure := Confidence{Alpha: Alpha, Looks: cap, Precision: precision}
	for range studies {
		var x, y []float64
		var seen []Seen
		for {
			v := 1 + base*g.NormFloat64()
			if g.Float64() < 1/every {
				v += size
			}
			x, y, seen = append(x, v), append(y, 1+base*g.NormFloat64()), append(seen, Seen{1, seconds})
			sure.Floor = Floor(rounds, trials, seen, seen)
			if q := Ratio(x, y, sure); sure.ends(q) || len(x) == cap {
				if !q.Contains(1 + size/every) {
					missed += 1 / float64(studies)
				}
				if unseen := size / float64(max(Rarest(len(x)), 1)); q.Low > 1+size/every || q.High+unseen < 1+size/every {
					hidden += 1 / float64(studies)
				}
				took += float64(len(x)) / float64(studies)
				break
			}
		}
	}
	return missed, hidden, took
}

// TestRareStalls lets only one treatment stall, in studies that end when the ratio is precise. At most 10 % of them miss if six or more stalls are
// expected in the least number of trials of a side. Rarest says which rarer stalls a study may not have seen.
func TestRareStalls(t *testing.T) {
	const studies = 400
	for i, c := range []struct {
		every, size, base float64
		rounds            int
	}{
		{2, 0.12, 0.0013, 3}, {3, 0.12, 0.0013, 3}, {3, 0.3, 0.005, 5}, {LeastTrials / 6.0, 0.12, 0.0013, 3}, {LeastTrials / 6.0, 0.12, 0.01, 3},
		{LeastTrials / 6.0, 0.3, 0.005, 5}, {LeastTrials / 6.0, 1, 0.0013, 3}, {LeastTrials / 6.0, 1, 0.005, 5},
		// Rarer ones.
		{5, 0.3, 0.005, 5}, {10, 0.3, 0.005, 5}, {35, 0.12, 0.0013, 3}, {35, 0.12, 0.0013, 5}, {20, 0.3, 0.005, 5}, {20, 0.3, 0.005, 20}, {100, 1, 0.005, 5},
	} {
		before, _, few := stalling(uint64(i), c.every, c.size, c.base, c.rounds, 0, studies)
		after, hidden, took := stalling(uint64(i), c.every, c.size, c.base, c.rounds, LeastTrials, studies)
		expected := LeastTrials / c.every
		t.Logf("1 in %.3g +%.0f %%, base %.2f %%, floor %d: misses in %.0f %% (%.0f rounds) by rounds alone, %.1f %% (%.0f rounds) with %d trials, in which %.1f are expected; in %.1f %% with what cannot be seen",
			c.every, 100*c.size, 100*c.base, c.rounds, 100*before, few, 100*after, took, LeastTrials, expected, 100*hidden)
		if expected >= 6-1e-9 && after > 0.1 {
			t.Errorf("1 in %.3g: misses in %.1f %%, want at most 10 %%", c.every, 100*after)
		}
		if hidden > 0.1 {
			t.Errorf("1 in %.3g: the summary's sentence leaves out what is missing in %.1f %%", c.every, 100*hidden)
		}
		if expected < 3 && float64(Rarest(LeastTrials)) > c.every {
			t.Errorf("1 in %.3g may not be seen in %d trials, and nothing says so", c.every, LeastTrials)
		}
	}
}

func TestFloor(t *testing.T) {
	side := func(rounds, trials int, seconds float64) (all []Seen) {
		for range rounds {
			all = append(all, Seen{trials, seconds})
		}
		return all
	}
	for _, c := range []struct {
		what   string
		rounds int
		trials int
		sides  [][]Seen
		want   int
	}{
		{"rounds alone count", 3, 0, [][]Seen{side(3, 1, 0.2)}, 3},
		{"short trials", 3, 20, [][]Seen{side(30, 1, 0.2), side(30, 1, 0.2)}, 20},
		{"several in a guest", 3, 20, [][]Seen{side(30, 7, 1.4), side(30, 7, 1.4)}, 3},
		{"on one side only", 3, 20, [][]Seen{side(30, 20, 4), side(30, 2, 0.4)}, 10},
		{"of half an hour", 3, 20, [][]Seen{side(5, 1, 1800), side(5, 1, 1800)}, 3},
		{"of half a minute", 3, 20, [][]Seen{side(5, 1, 30), side(5, 1, 24)}, 5},
		{"foreseen", 3, 20, [][]Seen{side(4, 1, 0.2), side(4, 2, 0.4)}, 20},
		{"foreseen by time", 3, 20, [][]Seen{side(2, 1, 12), side(2, 1, 12)}, 10},
		{"nothing yet", 3, 20, [][]Seen{nil, nil}, 3},
		{"trials that take no time", 3, 20, [][]Seen{side(2, 1, 0), side(2, 1, math.NaN())}, 20},
	} {
		if got := Floor(c.rounds, c.trials, c.sides...); got != c.want {
			t.Errorf("%s: %d rounds, want %d", c.what, got, c.want)
		}
	}
	for runs, want := range map[int]int{0: 0, 5: 0, 6: 2, 20: 6, 300: 100} {
		if got := Rarest(runs); got != want {
			t.Errorf("of %d runs: 1 in %d, want 1 in %d", runs, got, want)
		}
	}
}
