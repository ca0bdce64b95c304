package stats

import (
	"math/rand/v2"
	"testing"
)

// extended runs studies of twenty rounds without a rule, with a ratio's standard deviation of 2.5 % a round. While the verdict at a margin of
// 1 % is inconclusive and extensions are left, it adds rounds. It adds the foreseen number, or twenty where none is foreseen, multiplied by times. It
// reads all rounds together.
func extended(seed uint64, truth float64, extensions, times, studies int) (missed, wrong, decided, asked float64) {
	const rounds, margin, sd = 20, 0.01, 0.0177
	g := rand.New(rand.NewPCG(seed, 157))
	count := func(n *float64, is bool) {
		if is {
			*n += 1 / float64(studies)
		}
	}
	for range studies {
		var x, y []float64
		named := true
		add := func(n int) {
			for range n {
				x, y = append(x, truth*(1+sd*g.NormFloat64())), append(y, 1+sd*g.NormFloat64())
			}
		}
		add(rounds)
		for made := Sure(0); ; made = made.Extended() {
			q := Ratio(x, y, made)
			a := q.Verdict(margin)
			if a == Inconclusive && made.Extensions < extensions {
				n := q.Rounds(margin, made, made.Extended()) - q.N
				if named = n > 0; !named {
					n = rounds
				}
				add(times * n)
				continue
			}
			count(&missed, !q.Contains(truth))
			count(&wrong, a == Equivalent && truth >= 1+margin || a == Slower && truth < 1+margin || a == Faster)
			count(&asked, made.Extensions > 0 && named)
			count(&decided, made.Extensions > 0 && named && a != Inconclusive)
			break
		}
	}
	return missed, wrong, decided, asked
}

// TestExtensions extends studies whose verdict is inconclusive, and reads all rounds together. The last interval misses in at most 5 % of
// studies, no matter how often a study is extended. The number of rounds that Tare names is enough in about half of the studies. Twice that number
// is enough in most.
func TestExtensions(t *testing.T) {
	const studies, noise = 6000, 0.006 // two standard errors of 5 %
	for i, truth := range []float64{1, 1.005, 1.00999, 1.01001, 1.02} {
		for _, extensions := range []int{1, 2, 5} {
			missed, wrong, _, _ := extended(uint64(i), truth, extensions, 1, studies)
			t.Logf("ratio %v, up to %d extensions: misses in %.1f %%, wrong answers in %.1f %%", truth, extensions, 100*missed, 100*wrong)
			if missed > Alpha+noise || wrong > Alpha+0.01 { // the first verdict has had its Alpha
				t.Errorf("ratio %v, up to %d extensions: misses in %.1f %%, wrong answers in %.1f %%, want at most 5 and 6 %%", truth, extensions, 100*missed, 100*wrong)
			}
		}
	}
	for _, c := range []struct {
		truth float64
		times int
		low   float64
		high  float64
	}{{1, 1, 0.5, 0.8}, {1.005, 1, 0.4, 0.8}, {1.02, 1, 0.5, 0.9}, {1, 2, 0.8, 1}, {1.005, 2, 0.6, 1}, {1.02, 2, 0.8, 1}} {
		_, _, decided, asked := extended(7, c.truth, 1, c.times, studies)
		share := decided / asked
		t.Logf("ratio %v, %d times as many as named: decided in %.0f %%", c.truth, c.times, 100*share)
		if share < c.low || share > c.high {
			t.Errorf("ratio %v, %d times as many as named: decided in %.0f %%, want %.0f to %.0f %%", c.truth, c.times, 100*share, 100*c.low, 100*c.high)
		}
	}
}
