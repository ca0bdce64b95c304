package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// rounds is a simulated study of bare metal, its A/A control and one more guest, on a host whose speed drifts: its logarithm is an Ornstein-Uhlenbeck
// process of that standard deviation, which forgets itself after so many seconds.
type rounds struct {
	name          string
	drift, memory float64
	trial         func(*rand.Rand) float64 // a trial's own noise, of mean zero
	stalls        func(*rand.Rand) float64 // only of the third guest; nil: none
	mean          float64                  // of the stalls, by which the ratio is larger
}

// What a guest and a trial take, in seconds, in the two orders: guests that live together and get trials in random turns, or one after another.
const (
	makingGuest               = 0.3
	turnsTrials, turnsSeconds = 8, 0.11
	aloneTrials, aloneSeconds = 1, 0.45
	aloneWarmup, turnsWarmup  = 0.45, 0.02
	drifts, ownNoise          = 0.018, 0.0093 // of one host, measured
)

func (c rounds) drawn(g *rand.Rand, interleaved bool) (round func(ratio float64) (bm, aa, x Sum, took float64)) {
	speed, at, last := c.drift*g.NormFloat64(), 0.0, 0.0
	now := func() float64 {
		if c.drift > 0 {
			keep := math.Exp(-(at - last) / c.memory)
			speed, last = speed*keep+c.drift*math.Sqrt(1-keep*keep)*g.NormFloat64(), at
		}
		return math.Exp(speed)
	}
	return func(ratio float64) (bm, aa, x Sum, took float64) {
		begin := at
		sums := [3]*Sum{&bm, &aa, &x}
		trial := func(guest int, lasts float64) {
			v := 1 + c.trial(g)
			if guest == 2 {
				v *= ratio
				if c.stalls != nil {
					v += c.stalls(g)
				}
			}
			sums[guest].Add(v * now())
			at += lasts
		}
		if interleaved {
			at += 3 * (makingGuest + turnsWarmup)
			for range turnsTrials {
				for _, guest := range g.Perm(3) {
					trial(guest, turnsSeconds)
				}
			}
		} else {
			for _, guest := range g.Perm(3) {
				at += makingGuest + aloneWarmup
				for range aloneTrials {
					trial(guest, aloneSeconds)
				}
			}
		}
		return bm, aa, x, at - begin
	}
}

// study runs rounds until look says so, or for so many, or for so long.
func (c rounds) study(g *rand.Rand, interleaved bool, ratio float64, most int, seconds float64, look func(x, y []float64, trials int) (stop bool)) {
	round := c.drawn(g, interleaved)
	var xs, ys []float64
	trials, at := 0, 0.0
	for len(xs) < most && at < seconds {
		bm, aa, x, took := round(ratio)
		at += took
		trials += x.N
		y := Pooled(map[int]Sum{0: bm}, map[int]Sum{0: aa})
		xs, ys = append(xs, x.Mean()), append(ys, y[0].Mean())
		if look(xs, ys, trials) {
			break
		}
	}
}

var hosts = []rounds{
	{"normal", 0, 1, normal(ownNoise), nil, 0},
	{"log-normal, 20 %", 0, 1, lognormal(0.2), nil, 0},
	{"log-normal, 3 %", 0, 1, lognormal(0.03), nil, 0},
	{"Student's t with 3 degrees, 5 %", 0, 1, studentT3, nil, 0},
	{"Student's t with 3 degrees, 1 %", 0, 1, func(g *rand.Rand) float64 { return studentT3(g) / 5 }, nil, 0},
	{"drifts, 4.5 s", drifts, 4.5, normal(ownNoise), nil, 0},
	{"drifts, 30 s", drifts, 30, normal(ownNoise), nil, 0},
	{"drifts, 200 s", drifts, 200, normal(ownNoise), nil, 0},
}

// each runs a test of each host, guests in turns and one at a time.
func each(t *testing.T, hosts []rounds, test func(t *testing.T, c rounds, interleaved bool, g *rand.Rand)) {
	for i, c := range hosts {
		for order, interleaved := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, interleaved %v", c.name, interleaved), func(t *testing.T) {
				t.Parallel()
				test(t, c, interleaved, rand.New(rand.NewPCG(uint64(i), 33+uint64(order))))
			})
		}
	}
}

// TestAAOfTheWholeRule: of bare metal with its control, and a guest that is the same, at most 5 % of 20,000 comparisons exclude 1, and at most 5 % are
// called slower or faster: 20 rounds, in both orders.
func TestAAOfTheWholeRule(t *testing.T) {
	const studies = 20000
	each(t, hosts, func(t *testing.T, c rounds, interleaved bool, g *rand.Rand) {
		excluded, different, equivalent, width := 0.0, 0.0, 0.0, 0.0
		for range studies {
			c.study(g, interleaved, 1, 20, math.Inf(1), func(x, y []float64, _ int) bool {
				if len(x) < 20 {
					return false
				}
				q := Ratio(x, y, Sure(0))
				if !q.Contains(1) {
					excluded += 1.0 / studies
				}
				switch q.Verdict(Margin) {
				case Slower, Faster:
					different += 1.0 / studies
				case Equivalent:
					equivalent += 1.0 / studies
				}
				width += (q.High - q.Low) / 2 / studies
				return true
			})
		}
		t.Logf("1 is excluded in %.1f %%, called different in %.1f %%, equivalent in %.0f %%; ± %.2f %%", 100*excluded, 100*different, 100*equivalent, 100*width)
		if noise := 0.004; excluded > Alpha+noise || different > Alpha+noise {
			t.Error("want at most 5 %")
		}
	})
}

// rule looks after each round of a study. With precision 0 it ends at a verdict for the margin of 1 %. Otherwise it ends when the ratio has that
// precision. It ends after so many seconds at the latest. missed: at least one interval at a look does not contain the ratio.
func (c rounds) rule(g *rand.Rand, interleaved bool, ratio, precision, seconds float64) (q Quotient, v Verdict, n int, missed bool) {
	const most, floor = 200, 3
	sure := Confidence{Alpha: Alpha, Looks: most, Precision: precision}
	truth := ratio
	if c.stalls != nil {
		truth += c.mean
	}
	c.study(g, interleaved, ratio, most, seconds, func(x, y []float64, trials int) bool {
		n = len(x)
		per := trials / n
		sure.Floor = max(floor, (LeastTrials+per-1)/per)
		q = Ratio(x, y, sure)
		v = q.Verdict(Margin)
		missed = missed || q.HasInterval() && !q.Contains(truth)
		if precision > 0 {
			return sure.ends(q)
		}
		return n >= sure.Floor && v != Inconclusive
	})
	return q, v, n, missed
}

// TestErrorsOfTheWholeRule looks after each round until the verdict is decided, or the ratio is known to ± 1 %. At most 5 % of studies show an
// interval that misses, and at most 5 % end with a wrong verdict. This holds where nothing differs and where the truth is just below the margin.
func TestErrorsOfTheWholeRule(t *testing.T) {
	const studies = 1000
	able := slices.DeleteFunc(slices.Clone(hosts), func(c rounds) bool { return strings.Contains(c.name, "20 %") || strings.Contains(c.name, ", 5 %") })
	each(t, able, func(t *testing.T, c rounds, interleaved bool, g *rand.Rand) {
		for _, precision := range []float64{0, 0.01} {
			for _, truth := range []float64{1, 1.00999} {
				missed, wrong, decided, took := 0.0, 0.0, 0.0, 0.0
				for range studies {
					_, v, n, misses := c.rule(g, interleaved, truth, precision, math.Inf(1))
					count(&missed, misses, studies)
					count(&wrong, v == Slower || v == Faster, studies)
					count(&decided, v != Inconclusive, studies)
					took += float64(n) / studies
				}
				t.Logf("until ± %g, ratio %v: an interval misses in %.1f %%, wrong %.1f %%, decided %.0f %%, %.0f rounds", precision, truth, 100*missed, 100*wrong, 100*decided, took)
				if noise := 0.015; missed > Alpha+noise || wrong > Alpha+noise {
					t.Error("want at most 5 %")
				}
			}
		}
	})
}

func count(share *float64, is bool, of int) {
	if is {
		*share += 1 / float64(of)
	}
}

// TestAnInjectedPercentByTheWholeRule: a guest that costs 1 % more is told from bare metal within 60 s in nine of ten studies where trials are interleaved, and seldom
// where guests come one after another.
func TestAnInjectedPercentByTheWholeRule(t *testing.T) {
	const studies = 1000
	drifting := slices.DeleteFunc(slices.Clone(hosts), func(c rounds) bool { return c.drift == 0 })
	each(t, drifting, func(t *testing.T, c rounds, interleaved bool, g *rand.Rand) {
		found, cheaper, took := 0.0, 0.0, 0.0
		for range studies {
			q, _, n, _ := c.rule(g, interleaved, 1.01, 0.002, 60)
			count(&found, q.Low > 1, studies)
			count(&cheaper, q.High < 1, studies)
			took += float64(n) / studies
		}
		t.Logf("found in %.0f %% after 60 s, %.0f rounds; called cheaper in %.1f %%", 100*found, took, 100*cheaper)
		if interleaved && found < 0.9 || cheaper > 0.01 {
			t.Error("want it found in 90 %")
		}
	})
}

// TestStallsOfTheWholeRule lets only the third guest stall. With six or more expected stalls among the trials that the rule waits for, at most
// 10 % of studies end with an interval that misses. Studies miss rarer stalls more often, and Rarest says so.
func TestStallsOfTheWholeRule(t *testing.T) {
	const studies = 1000
	for i, c := range []struct{ every, size float64 }{{2, 0.12}, {LeastTrials / 6.0, 0.12}, {LeastTrials / 6.0, 1}, {5, 0.3}, {20, 0.3}, {35, 0.12}} {
		host := rounds{name: "stalls", drift: drifts, memory: 4.5, trial: normal(0.0013), mean: c.size / c.every, stalls: func(g *rand.Rand) float64 {
			if g.Float64() < 1/c.every {
				return c.size
			}
			return 0
		}}
		for _, interleaved := range []bool{false, true} {
			g := rand.New(rand.NewPCG(uint64(i), 35))
			missed, took := 0.0, 0.0
			for range studies {
				q, _, n, _ := host.rule(g, interleaved, 1, 0.01, math.Inf(1))
				count(&missed, !q.Contains(1+host.mean), studies)
				took += float64(n) / studies
			}
			t.Logf("1 in %.3g +%.0f %%, interleaved %v: misses in %.1f %%, %.0f rounds", c.every, 100*c.size, interleaved, 100*missed, took)
			if expected := LeastTrials / c.every; expected >= 6-1e-9 && missed > 0.1 {
				t.Error("want at most 10 %")
			}
		}
	}
}
