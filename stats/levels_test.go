package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// machine is a host in simulated time: how slow it is at a moment, how guests differ and how trials do, and what they take, in seconds.
type machine struct {
	name          string
	slow          func(g *rand.Rand) func(at float64) float64
	guest, trial  func(*rand.Rand) float64 // of mean zero
	making, works float64
}

func always(*rand.Rand) func(float64) float64 { return func(float64) float64 { return 1 } }

func normal(sd float64) func(*rand.Rand) float64 {
	return func(g *rand.Rand) float64 { return sd * g.NormFloat64() }
}

var machines = []machine{
	{"normal", always, normal(0.02), normal(0.05), 2, 0.3},
	{"log-normal", always, lognormal(0.1), lognormal(0.3), 1, 0.2},
	{"heavy-tailed, guests alike", always, normal(0), studentT3, 3, 0.2},
	{"one trial in 3 disturbed", always, normal(0.01), disturbed(3, 0.2), 0.3, 0.2},
	{"drifting: a sine of 20 % in two minutes", func(g *rand.Rand) func(float64) float64 {
		phase := 2 * math.Pi * g.Float64()
		return func(at float64) float64 { return 1 + 0.2*math.Sin(phase+2*math.Pi*at/120) }
	}, normal(0.01), normal(0.05), 1, 0.2},
	{"one trial in 35 held up", always, normal(0), heldUp, 0.24, 0.204},
	{"drifting: 1 % slower each ten seconds", func(*rand.Rand) func(float64) float64 {
		return func(at float64) float64 { return 1 + 0.001*at }
	}, normal(0.01), normal(0.05), 1, 0.2},
}

// study runs rounds of two guests in random order, with as many trials as Levels.Trials gives, until look says so, for so long
// or so many rounds.
func (m machine) study(g *rand.Rand, ratio float64, rounds int, seconds float64, of func(x, y []float64) Quotient, look func(q Quotient) (stop bool)) (q Quotient, trials int) {
	at, slow := 0.0, m.slow(g)
	var x, y [][]float64
	var xs, ys []float64
	q = NoRatio
	for len(xs) < rounds {
		n := 1
		if len(xs) > 0 {
			n = LevelsOf(x, y).Trials(2*m.making, 2*m.works, 1)
		}
		if at+2*(m.making+float64(n)*m.works) > seconds {
			break
		}
		trials += n
		var values [2][]float64
		for _, side := range g.Perm(2) {
			at += m.making
			guest := 1 + m.guest(g)
			for range n {
				v := slow(at) * guest * (1 + m.trial(g))
				at += m.works
				if side == 0 {
					v *= ratio
				}
				values[side] = append(values[side], v)
			}
		}
		x, y = append(x, values[0]), append(y, values[1])
		xs, ys = append(xs, mean(values[0])), append(ys, mean(values[1]))
		if len(xs) < 2 {
			continue
		}
		if q = of(xs, ys); look(q) {
			break
		}
	}
	return q, trials
}

// TestCoverageWithAllocation chooses the number of trials from earlier measurements. An interval contains the ratio in at least 93 % of
// studies, both where a rule stops them and where somebody stops as soon as the interval misses.
func TestCoverageWithAllocation(t *testing.T) {
	const studies, rounds = 1500, 40
	sure := Confidence{Alpha: Alpha, Looks: rounds, Precision: 0.03, Floor: 5}
	of := func(x, y []float64) Quotient { return Ratio(x, y, sure) }
	for i, m := range machines {
		for _, spite := range []bool{false, true} {
			const ratio = 1.3
			g := rand.New(rand.NewPCG(uint64(i), 2013))
			missed, trials, n := 0, 0, 0
			for range studies {
				q, did := m.study(g, ratio, rounds, math.Inf(1), of, func(q Quotient) bool {
					return sure.ends(q) || spite && q.HasInterval() && !q.Contains(ratio)
				})
				if q.HasInterval() && !q.Contains(ratio) {
					missed++
				}
				trials, n = trials+did, n+q.N
			}
			held := 1 - float64(missed)/studies
			t.Logf("%s, spite %v: %.1f %%, %.1f rounds of %.1f trials", m.name, spite, 100*held, float64(n)/studies, float64(trials)/float64(n))
			if held < promised {
				t.Errorf("%s, spite %v: the interval holds it in %.1f %%, want at least 93 %%", m.name, spite, 100*held)
			}
		}
	}
}

func TestLevels(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 2))
	var x, y [][]float64
	for round := range 4000 {
		host := 1 + 0.3*math.Sin(float64(round)/50) // what slows the whole round is of neither level
		guest := func(mean float64) (of []float64) {
			level := mean * host * (1 + 0.02*g.NormFloat64())
			for range 2 + round%3 {
				of = append(of, level*(1+0.05*g.NormFloat64()))
			}
			return of
		}
		x, y = append(x, guest(2)), append(y, guest(1))
	}
	// Of two guests each. The trials' noise is a share of the host's own level, which adds 0.3²/2 of that noise.
	l := LevelsOf(x, y)
	if trial, guest := 2*0.05*0.05*1.045, 2*0.02*0.02*1.045; math.Abs(l.Trial/trial-1) > 0.05 || math.Abs(l.Guest/guest-1) > 0.25 || l.Free != 2*8000-2000+0 && l.Free < 15000 {
		t.Errorf("%+v, want trials of %.3g and guests of %.3g", l, trial, guest)
	}
	// A guest that costs sixteen times its trial, with noise of trials 6.25 times that of guests: 4 · 2.5.
	if n := l.Trials(16, 1, 1); n < 9 || n > 12 {
		t.Errorf("%d trials in a guest, want about 10", n)
	}
	if n := (Levels{}).Trials(0.19, 1, 1); n != 1 {
		t.Errorf("%d trials in a guest that costs a fifth of one, want 1: none is spent on what changes nothing", n)
	}
	for _, c := range []struct {
		l     Levels
		least int
		want  int
	}{
		{Levels{}, 1, 4}, {Levels{}, 6, 6}, {LevelsOf(x[:1], y[:1]), 1, 4}, {Levels{Trial: 1, Guest: 1e-9, Free: 4, Rounds: 2}, 1, 4}, // nothing is known: √16
		{Levels{Trial: 1, Guest: 100, Error: 1, Free: 9, Rounds: 5}, 1, 1}, {Levels{Trial: 1, Guest: 100, Error: 1, Free: 9, Rounds: 5}, 2, 2},
		{Levels{Trial: 1, Guest: -1, Error: 0.25, Free: 9, Rounds: 5}, 1, 8}, // √(16 · 4)
		{Levels{Trial: 1, Guest: 0, Error: 1e-9, Free: 9, Rounds: 5}, 1, MostTrials}, {Levels{Free: 9, Rounds: 5}, 1, 1},
	} {
		if n := c.l.Trials(16, 1, c.least); n != c.want {
			t.Errorf("%+v, at least %d: %d trials, want %d", c.l, c.least, n, c.want)
		}
	}
}

// TestAnInjectedPercentIsFound measures a command of 0.2 s that costs 1 % more, and looks after each round. On a quiet host the interval lies
// above 1 within 60 s in nine of ten studies. On a busy host it seldom does.
//
// Tare measured the noise on 22 November 2026, with a loop of 0.2 s on bare metal. The host was a virtual machine with two CPUs that are threads
// of one core. Quiet: 70 guests ran one trial each. 68 of them differed by 0.13 %. One trial was held up by 3 % and one by 10 %. The standard deviation
// is 1.2 %, almost all of it from these two. The test uses this noise and normal noise. Busy: other programs ran on the core's other thread, and 22
// guests ran four trials each. Trials differed by 2.6 % within a guest, and guests differed by 0.5 %. Making, warming up and removing a guest took
// 0.24 s. A trial with its record took 0.204 s.
func TestAnInjectedPercentIsFound(t *testing.T) {
	const studies, rounds = 1000, 200
	sure := Confidence{Alpha: Alpha, Looks: rounds, Precision: 0.002, Floor: 3}
	of := func(x, y []float64) Quotient { return Ratio(x, y, sure) }
	for _, c := range []struct {
		m         machine
		low, high float64 // the share of studies that find it
	}{
		{machine{"quiet", always, normal(0), heldUp, 0.24, 0.204}, 0.9, 1},
		{machine{"quiet, as normal", always, normal(0.003), normal(0.012), 0.24, 0.204}, 0.9, 1},
		{machine{"busy", always, normal(0.005), normal(0.026), 0.24, 0.204}, 0.15, 0.4},
	} {
		g := rand.New(rand.NewPCG(7, 2024))
		found, cheaper, took := 0, 0, 0
		for range studies {
			q, _ := c.m.study(g, 1.01, rounds, 60, of, func(q Quotient) bool { return q.HasInterval() && !q.Contains(1) })
			switch took += q.N; {
			case q.Low > 1:
				found++
			case q.High < 1:
				cheaper++
			}
		}
		share := float64(found) / studies
		t.Logf("%s: found in %.1f %%, in %.1f rounds; called cheaper in %d", c.m.name, 100*share, float64(took)/studies, cheaper)
		if share < c.low || share > c.high || cheaper > studies/40 {
			t.Errorf("%s: found in %.1f %%, want %.0f to %.0f %%; called cheaper in %d of %d", c.m.name, 100*share, 100*c.low, 100*c.high, cheaper, studies)
		}
	}
}

// heldUp is steady within 0.13 % except for one trial in 35, which takes up to 12 % longer.
func heldUp(g *rand.Rand) float64 {
	v := 0.0013*g.NormFloat64() - 0.06/35
	if g.Float64() < 1.0/35 {
		v += 0.12 * g.Float64()
	}
	return v
}
