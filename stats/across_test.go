package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// bcg are the 13 trials of a vaccine against tuberculosis that the package metafor for R has as dat.bcg (Colditz et al., 1994): vaccinated people
// with and without the disease, then the others, and how people were allocated: alternating, at random, or systematically.
var bcg = []struct {
	tpos, tneg, cpos, cneg float64
	alloc                  int
}{
	{4, 119, 11, 128, 1}, {6, 300, 29, 274, 1}, {3, 228, 11, 209, 1}, {62, 13536, 248, 12619, 1}, {33, 5036, 47, 5761, 0}, {180, 1361, 372, 1079, 0},
	{8, 2537, 10, 619, 1}, {505, 87886, 499, 87892, 1}, {29, 7470, 45, 7232, 1}, {17, 1699, 65, 1600, 2}, {186, 50448, 141, 27197, 2},
	{5, 2493, 3, 2338, 2}, {27, 16886, 29, 17825, 2},
}

// TestAcrossIsAsPublished: the estimates are those that the documentation of metafor has for dat.bcg.
func TestAcrossIsAsPublished(t *testing.T) {
	var risk, odds []Effect
	classes := make([][]Effect, 3)
	for _, b := range bcg {
		treated, others := b.tpos+b.tneg, b.cpos+b.cneg
		e := Effect{Value: math.Log(b.tpos / treated * others / b.cpos), Variance: 1/b.tpos - 1/treated + 1/b.cpos - 1/others}
		risk = append(risk, e)
		classes[b.alloc] = append(classes[b.alloc], e)
		odds = append(odds, Effect{Value: math.Log(b.tpos * b.cneg / b.tneg / b.cpos), Variance: 1/b.tpos + 1/b.tneg + 1/b.cpos + 1/b.cneg})
	}
	a := AcrossOf(risk, 0.05)
	near(t, "mean", a.Mean, -0.7145, 5e-5)
	near(t, "variance between", a.Between*a.Between, 0.3132, 5e-5)
	near(t, "share", a.Share(), 0.9222, 5e-5)
	// The interval by the definition of Hartung and Knapp; the usual one, with standard error 0.1798, is narrower.
	r := randomOf(risk)
	sum, q := 0.0, 0.0
	for i, v := range r.values {
		w := 1 / (r.variances[i] + a.Between*a.Between)
		sum, q = sum+w, q+w*(v-a.Mean)*(v-a.Mean)
	}
	near(t, "usual standard error", 1/math.Sqrt(sum), 0.1798, 5e-5)
	near(t, "lower end", a.Low, a.Mean-2.178813*math.Sqrt(q/12/sum), 1e-6)
	near(t, "upper end", a.High, a.Mean+2.178813*math.Sqrt(q/12/sum), 1e-6)

	// The Q-profile intervals of the variance between: chi-squared quantiles with 12 degrees of freedom.
	for _, c := range []struct {
		of        []Effect
		low, high float64
	}{{risk, 0.1197, 1.1115}, {odds, 0.1302, 1.1812}} {
		r := randomOf(c.of)
		near(t, "lower end of the variance", r.betweenAt(23.336664, 0), c.low, 1e-4)
		near(t, "upper end of the variance", r.betweenAt(4.403789, 0), c.high, 1e-4)
	}

	c := ClassesOf(classes, 0.05)
	near(t, "variance within classes", c.Between*c.Between, 0.3615, 5e-5)
	near(t, "alternating", c.Means[0].Value, -0.5180, 5e-5)
	near(t, "random", c.Means[1].Value, -0.5180-0.4478, 1e-4)
	near(t, "systematic", c.Means[2].Value, -0.5180+0.0890, 1e-4)
	if c.P < 0.4 || c.P > 0.5 { // 0.4132 by a chi-squared test, which takes the variance for certain
		t.Errorf("p of the classes: %.4f", c.P)
	}
}

// fleetOf draws hosts: their true values vary by sd, their measured ones by 1 around these, as rounds show it.
func fleetOf(g *rand.Rand, hosts, rounds int, sd float64) (all []Effect) {
	for range hosts {
		within := math.Exp(0.3 * g.NormFloat64()) // hosts are not equally noisy
		free := float64(rounds - 1)
		v := 0.0
		for range rounds - 1 {
			z := g.NormFloat64()
			v += z * z
		}
		all = append(all, Effect{Value: sd*g.NormFloat64() + within*g.NormFloat64(), Variance: within * within * v / free, Free: free})
	}
	return all
}

// TestNextHost: the interval for the next host holds that host's true value as often as promised, and the interval of the mean holds the true mean.
func TestNextHost(t *testing.T) {
	g := rand.New(rand.NewPCG(40, 1))
	for _, c := range []struct {
		hosts, rounds, studies int
		variance               float64
	}{{5, 10, 700, 1}, {5, 10, 700, 3}, {5, 5, 700, 1}, {20, 10, 500, 1}, {20, 10, 500, 3}, {20, 5, 500, 1}, {100, 10, 300, 1}, {100, 10, 300, 3}} {
		sd := math.Sqrt(c.variance)
		next, mean, wide := 0.0, 0.0, 0.0
		for range c.studies {
			a := AcrossOf(fleetOf(g, c.hosts, c.rounds, sd), 0.05)
			chance := func(x float64) float64 { return math.Erfc(-x/sd/math.Sqrt2) / 2 }
			next += (chance(a.NextHigh) - chance(a.NextLow)) / float64(c.studies) // of each next host that there can be
			wide += (a.NextHigh - a.NextLow) / 2 / 1.96 / sd / float64(c.studies)
			if a.Low <= 0 && a.High >= 0 {
				mean += 1 / float64(c.studies)
			}
		}
		said := fmt.Sprintf("%d hosts of %d rounds, %g times the variance: next host %.1f %%, %.2f times as wide as for a known distribution; mean %.1f %%",
			c.hosts, c.rounds, c.variance, 100*next, wide, 100*mean)
		t.Log(said)
		if next < promised || mean < promised {
			t.Error(said)
		}
	}
}

// TestClassesAndOutliers: a class or a host that differs is found, and in studies without one few are reported.
func TestClassesAndOutliers(t *testing.T) {
	g := rand.New(rand.NewPCG(40, 2))
	const studies = 400
	for _, c := range []struct {
		hosts int
		sd    float64
	}{{6, 1}, {12, 0}, {30, 0}, {30, 1}, {30, 3}, {200, 0}, {200, 1}} {
		falseClass, falseHost, class, host := 0, 0, 0, 0
		for range studies {
			all := fleetOf(g, c.hosts, 10, c.sd)
			half := func() [][]Effect { return [][]Effect{all[:c.hosts/3], all[c.hosts/3:]} }
			if ClassesOf(half(), 0.05).P < 0.05 {
				falseClass++
			}
			if len(Outliers(all, 0.05, c.hosts)) > 0 {
				falseHost++
			}
			by := 6 * math.Hypot(c.sd, 1)
			all[c.hosts/2].Value += 3 * by
			if found := Outliers(all, 0.05, c.hosts); len(found) > 0 && slices.ContainsFunc(found, func(o Outlier) bool { return o.At == c.hosts/2 }) {
				host++
			}
			all[c.hosts/2].Value -= 3 * by
			for i := range c.hosts / 3 {
				all[i].Value += by
			}
			if ClassesOf(half(), 0.05).P < 0.05 {
				class++
			}
		}
		said := fmt.Sprintf("%d hosts that vary by %g: of %d studies, a false class in %d, a false host in %d, the true class in %d, the true host in %d",
			c.hosts, c.sd, studies, falseClass, falseHost, class, host)
		t.Log(said)
		if falseClass > 0.08*studies || falseHost > 0.08*studies || c.hosts > 6 && (class < studies || host < 0.98*studies) {
			t.Error(said)
		}
	}
	// Three outliers of one value do not hide each other.
	all := fleetOf(g, 30, 10, 1)
	for i := range 3 {
		all[i].Value += 30
	}
	var at []int
	for _, o := range Outliers(all, 0.05, 30) {
		at = append(at, o.At)
	}
	if slices.Sort(at); !slices.Equal(at, []int{0, 1, 2}) {
		t.Errorf("outliers %v, want 0, 1 and 2", at)
	}
}

// TestAcrossAtItsEdges: few hosts, equal values, no variances and values that are none.
func TestAcrossAtItsEdges(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	none := []Effect{{Value: nan, Variance: 1}, {Value: 1, Variance: inf}, {Value: -inf, Variance: 1}, {Value: 1, Variance: -1}, {Value: 1, Variance: nan}}
	of := func(effects ...Effect) Across { return AcrossOf(append(slices.Clone(none), effects...), 0.05) }
	if a := of(); a.N != 0 || !math.IsNaN(a.Mean) || !math.IsNaN(a.Low) || a.Between != 0 || a.Share() != 0 {
		t.Errorf("no host: %+v", a)
	}
	if a := of(Effect{Value: 2, Variance: 0.25}); a.N != 1 || a.Mean != 2 || !math.IsNaN(a.Low) || a.Within != 0.5 || a.Ratio().HasInterval() {
		t.Errorf("one host: %+v", a)
	}
	a := of(Effect{Value: 1, Variance: 0.01}, Effect{Value: 3, Variance: 0.01})
	near(t, "mean of two", a.Mean, 2, 1e-9)
	near(t, "variance between two", a.Between*a.Between, 2-0.01, 1e-6)
	near(t, "upper end of two", a.High, 2+12.7062, 1e-3)
	if !math.IsNaN(a.NextLow) || !math.IsNaN(a.NextHigh) {
		t.Errorf("two hosts say nothing of a third: %+v", a)
	}
	if q := a.Ratio(); !(q.Low < q.AtLeast && q.AtLeast < q.Value && q.Value < q.AtMost && q.AtMost < q.High) {
		t.Errorf("the ratio of two: %+v", q)
	}
	same := slices.Repeat([]Effect{{Value: 0.1}}, 5)
	if a := of(same...); a.NextLow > a.Low || math.Abs(a.Mean-0.1) > 1e-15 || a.Between > 1e-8 || a.High-a.Low > 1e-6 || a.NextHigh-a.NextLow > 1e-6 {
		t.Errorf("equal values without noise: %+v", a)
	}
	if a := of(slices.Repeat([]Effect{{Value: 0.1, Variance: 4}}, 5)...); a.Between != 0 || !(a.NextLow < 0.1 && a.NextHigh > 0.1) {
		t.Errorf("equal values: %+v", a)
	}
	// A host whose rounds were alike by luck does not outweigh the others.
	if a := of(Effect{Value: 5}, Effect{Value: 1, Variance: 1}, Effect{Value: 1.5, Variance: 1}, Effect{Value: 0.5, Variance: 1}); !Finite(a.Low) || !Finite(a.NextHigh) || a.High < 1 {
		t.Errorf("one host without noise: %+v", a)
	}
	for _, e := range [][]Effect{
		{{Value: 1e300, Variance: 1}, {Value: -1e300, Variance: 1}, {Value: 0, Variance: 1e300}},
		{{Value: 1, Variance: 1e-300}, {Value: 2, Variance: 1e300}, {Value: 3, Variance: 1}, {Value: 3, Variance: 1}, {Value: 3, Variance: 1}},
	} {
		AcrossOf(e, 0.05) // ends
		Outliers(e, 0.05, 1)
		ClassesOf([][]Effect{e[:2], e[2:]}, 0.05)
	}
	if c := ClassesOf([][]Effect{same}, 0.05); !math.IsNaN(c.P) {
		t.Errorf("one class: %+v", c)
	}
	if found := Outliers(append(same[:3:3], Effect{Value: 9}), 0.05, 1); found != nil {
		t.Errorf("four hosts: %+v", found)
	}
	if found := Outliers(append(slices.Clone(same), Effect{Value: 9}), 0.05, 1); len(found) != 1 || found[0].At != 5 {
		t.Errorf("equal values and another: %+v", found)
	}
	if e := (Pairs{[]float64{2}, []float64{1}}).Effect(); e.Counts() || math.Abs(e.Value-math.Log(2)) > 1e-12 {
		t.Errorf("one pair: %+v", e)
	}
	if (Pairs{}).Effect().Counts() || (Pairs{[]float64{1, 0}, []float64{0, 0}}).Effect().Counts() {
		t.Error("pairs without a ratio count")
	}
}

// TestEffect: its variance is that of logarithms of ratios of means over many studies.
func TestEffect(t *testing.T) {
	g := rand.New(rand.NewPCG(40, 3))
	const studies, rounds = 4000, 10
	var values []float64
	said := 0.0
	for range studies {
		p := Pairs{make([]float64, rounds), make([]float64, rounds)}
		for i := range rounds {
			shared := 1 + 0.1*g.NormFloat64() // cancels
			p.X[i], p.Y[i] = 1.2*shared*(1+0.02*g.NormFloat64()), shared*(1+0.03*g.NormFloat64())
		}
		e := p.Effect()
		values = append(values, e.Value)
		said += e.Variance / studies
	}
	near(t, "mean", mean(values), math.Log(1.2), 1e-3)
	near(t, "variance", said/(VarianceOfMean(values)*studies), 1, 0.06)
}

// TestAcrossIsFast: a fleet of ten thousand hosts takes milliseconds for a configuration.
func TestAcrossIsFast(t *testing.T) {
	g := rand.New(rand.NewPCG(40, 4))
	all := fleetOf(g, 10_000, 10, 1)
	began := time.Now()
	AcrossOf(all, 0.05)
	Outliers(all, 0.05, len(all))
	took := time.Since(began)
	t.Log(took)
	if took > 2*time.Second { // bounded, whatever the host does
		t.Errorf("ten thousand hosts took %v", took)
	}
}
