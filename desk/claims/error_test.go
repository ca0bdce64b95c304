package claims

import (
	"fmt"
	"math"
	"testing"
)

// truths are the verdicts of a world without noise, where nothing is left open.
func truths(t *testing.T, w *world, claims []Claim) map[string]Answer {
	t.Helper()
	out := map[string]Answer{}
	for _, v := range Judge(w.exact(), claims) {
		if v.Answer != NotTestable {
			out[v.Claim.ID] = v.Answer
		}
		if v.Answer == NotDecided {
			t.Fatalf("%s is not decided without noise: %s", v.Claim.ID, Why(v))
		}
	}
	return out
}

// simulate judges the world in so many runs: the share of them in which any verdict is false, and the share of verdicts
// that say what is true.
func simulate(t *testing.T, w *world, claims []Claim, rounds int, noise float64, runs int) (wrong, found float64) {
	t.Helper()
	truth := truths(t, w, claims)
	if len(truth) == 0 {
		t.Fatal("nothing can be tested")
	}
	for run := range runs {
		bad := false
		for _, v := range Judge(w.measure(rounds, noise, uint64(1000+run)), claims) {
			switch {
			case v.Answer != Holds && v.Answer != DoesNotHold:
			case v.Answer == truth[v.Claim.ID]:
				found++
			default:
				bad = true
			}
		}
		if bad {
			wrong++
		}
	}
	return wrong / float64(runs), found / float64(runs*len(truth))
}

// edge is a world of n workloads, each with a claim whose bound is as near to what is true as can be, on the side
// given: the hardest for the promise about false verdicts.
func edge(n int, side float64) (*world, []Claim) {
	w := newWorld(host("h", 16))
	var all []Claim
	for i := range n {
		work := fmt.Sprint("w", i)
		w.add(0, work+" bm large", 1)
		w.add(0, work+" bm xlarge", 1)
		w.add(0, work+" cn docker vanilla large", 1.02+side*1e-6)
		w.add(0, work+" cn docker vanilla xlarge", 1.02+side*1e-6)
		of := Selector{Workload: Values{work}, Platform: Values{"cn"}}
		h := Hypothesis{Ratio: &Pair{Of: of, Sizes: []Sizes{Each, Some, Smallest}[i%3], Bounds: Bounds{Higher: 0.02}}}
		if i%4 == 3 {
			// A sum of two: at least one of them on the wrong side would do.
			h = Hypothesis{Any: []Hypothesis{h, {Ratio: &Pair{Of: of, Bounds: Bounds{AtMost: 1}}}}}
		}
		all = append(all, Claim{ID: work, Hypothesis: h})
	}
	return w, all
}

// In at most 5 % of runs is any verdict false: where nothing has an effect, and where every truth is at its bound.
func TestFalseVerdicts(t *testing.T) {
	for _, c := range []struct {
		name   string
		make   func() (*world, []Claim)
		rounds int
		noise  float64
		runs   int
	}{
		{"no platform costs anything", func() (*world, []Claim) { return nullWorld(), shipped(t) }, 8, 0.03, 15},
		{"a small host where nothing costs anything", func() (*world, []Claim) {
			w := smallWorld()
			for i := range w.truth {
				w.truth[i] = 4
			}
			return w, shipped(t)
		}, 6, 0.02, 60},
		{"the truth just below its bound", func() (*world, []Claim) { return edge(8, -1) }, 8, 0.03, 200},
		{"the truth just above its bound", func() (*world, []Claim) { return edge(8, 1) }, 8, 0.03, 200},
	} {
		w, claims := c.make()
		wrong, found := simulate(t, w, claims, c.rounds, c.noise, c.runs)
		t.Logf("%s: any false verdict in %.1f %% of runs, %.0f %% of verdicts found", c.name, 100*wrong, 100*found)
		if wrong > 0.05 {
			t.Errorf("%s: any false verdict in %.1f %% of runs", c.name, 100*wrong)
		}
	}
}

// What is true is found with enough rounds, and none of it is taken for false. All of the paper together leaves some
// ratios little room between their bounds; those are not decided.
func TestTrueEffectsAreFound(t *testing.T) {
	for _, c := range []struct {
		rounds int
		noise  float64
		least  float64
	}{{20, 0.01, 0.6}, {100, 0.01, 0.8}} {
		wrong, found := simulate(t, paperWorld(), shipped(t), c.rounds, c.noise, 8)
		t.Logf("%d rounds: %.0f %% found, any false in %.0f %% of runs", c.rounds, 100*found, 100*wrong)
		if found < c.least || wrong > 0.05 {
			t.Errorf("%d rounds: %.0f %% found (want %.0f), any false in %.0f %% of runs", c.rounds, 100*found, 100*c.least, 100*wrong)
		}
	}
}

// The number of rounds that "not decided" speaks of would do, mostly.
func TestRoundsThatWouldDo(t *testing.T) {
	w := newWorld(host("h", 16))
	w.add(0, "x bm large", 1)
	w.add(0, "x cn docker vanilla large", 1.06)
	h := Hypothesis{Ratio: &Pair{Of: Selector{Workload: Values{"x"}, Platform: Values{"cn"}}, Bounds: Bounds{Higher: 0.02}}}
	claims := []Claim{{ID: "c", Hypothesis: h}}
	const noise = 0.05
	decided, tried := 0, 0
	for run := range 400 {
		s := w.measure(6, noise, uint64(run))
		j := newJudge(s)
		n := j.build(h)
		v := j.verdict(claims[0], n, 0.05)
		if v.Answer != NotDecided || math.Abs(v.Evidence[0].Estimate-1.06) > 0.01 {
			continue // a guess is as good as the estimate that it is made of
		}
		rounds := j.rounds(n, 0.05, true)
		if math.IsInf(rounds, 0) {
			t.Errorf("run %d: no number of rounds would do: %s", run, Why(v))
			continue
		}
		tried++
		if Judge(w.measure(int(rounds), noise, uint64(9000+run)), claims)[0].Answer == Holds {
			decided++
		}
	}
	if tried < 30 || float64(decided) < 0.35*float64(tried) {
		t.Errorf("%d of %d decided with as many rounds as it said", decided, tried)
	}
	t.Logf("%d of %d decided", decided, tried)
}

func BenchmarkJudge(b *testing.B) {
	s := paperWorld().measure(20, 0.03, 1)
	all := shipped(b)
	for b.Loop() {
		Judge(s, all)
	}
}
