package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol) {
		t.Errorf("%s = %v, want %v ± %v", what, got, want, tol)
	}
}

func TestQuantileAgainstTables(t *testing.T) {
	for _, c := range []struct {
		level float64
		n     int
		want  float64
	}{
		{0.95, 2, 12.7062}, {0.95, 3, 4.30265}, {0.95, 5, 2.77645}, {0.95, 30, 2.04523}, {0.99, 5, 4.60409}, {0.9875, 10, 3.111},
		{0.95, 1001, 1.96234},
	} {
		near(t, "quantile", Confidence{Alpha: 1 - c.level}.critical(c.n), c.want, 1e-3*c.want)
	}
}

func TestMeanWorked(t *testing.T) {
	e := Mean([]float64{4, 5, 6, 7, 8}, Sure(0))
	near(t, "value", e.Value, 6, 0)
	half := 2.776445 * math.Sqrt(2.5/5)
	near(t, "low", e.Low, 6-half, 1e-5)
	near(t, "high", e.High, 6+half, 1e-5)
	if one := Mean([]float64{3}, Sure(0)); one.Value != 3 || one.HasInterval() || one.N != 1 {
		t.Errorf("mean of one value: %+v", one)
	}
	if none := Mean(nil, Sure(0)); !math.IsNaN(none.Value) || none.HasInterval() {
		t.Errorf("mean of none: %+v", none)
	}
}

// Fieller's interval worked by the definition: the ends are where |mean d| = t·s_d/√n.
func TestRatioEndsMeetTheDefinition(t *testing.T) {
	x := []float64{2.1, 2.3, 1.9, 2.6, 2.2, 2.0}
	y := []float64{1.0, 1.2, 0.9, 1.1, 1.05, 1.0}
	q := Ratio(x, y, Sure(0))
	for _, r := range []float64{q.Low, q.High} {
		d := make([]float64, len(x))
		for i := range x {
			d[i] = x[i] - r*y[i]
		}
		e := Mean(d, Sure(0))
		near(t, "nearer end of the interval of mean d", min(math.Abs(e.Low), math.Abs(e.High)), 0, 1e-9)
	}
	if !(q.Low < q.Value && q.Value < q.High) || !q.HasInterval() || q.N != 6 {
		t.Errorf("%+v", q)
	}
}

func TestRatioWithoutNoise(t *testing.T) {
	third := 1.0 / 3
	for _, n := range []int{2, 3, 7, 1000} {
		x, y := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i], y[i] = 2*third, third
		}
		if q := Ratio(x, y, Sure(0)); q.Value != 2 || q.Low != 2 || q.High != 2 || !Precise(q, 0) {
			t.Errorf("n=%d: %+v, want exactly 2", n, q)
		}
		if e := Mean(x, Sure(0)); e.Low != e.Value || e.High != e.Value {
			t.Errorf("n=%d: %+v, want no spread", n, e)
		}
	}
	// A treatment against itself has ratio 1 exactly, however noisy.
	v := []float64{4, 5, 6, 4.5}
	if q := Ratio(v, v, Sure(0)); q.Value != 1 || q.Low != 1 || q.High != 1 {
		t.Errorf("against itself: %+v", q)
	}
}

func TestRatioWithoutAnswer(t *testing.T) {
	if q := Ratio(nil, nil, Sure(0)); !math.IsNaN(q.Value) || q.HasInterval() || Precise(q, 1) || q.Contains(1) {
		t.Errorf("of none: %+v", q)
	}
	if q := Ratio([]float64{3}, []float64{2}, Sure(0)); q.Value != 1.5 || q.HasInterval() || Precise(q, 1) {
		t.Errorf("of one round: %+v", q)
	}
	if q := Ratio([]float64{3, 4}, []float64{0, 0}, Sure(0)); !math.IsNaN(q.Value) || q.HasInterval() {
		t.Errorf("over zero: %+v", q)
	}
	// A denominator as noisy as it is large: no ratio is excluded.
	q := Ratio([]float64{3, 4, 5}, []float64{0.1, 9, 0.2}, Sure(0))
	if !math.IsInf(q.Low, -1) || !math.IsInf(q.High, 1) || q.HasInterval() || Precise(q, 10) {
		t.Errorf("noisy denominator: %+v", q)
	}
}

func TestRatioKeepsItsDigits(t *testing.T) {
	// Noise of 1e-9 of the value: the naive quadratic's discriminant has no correct digit here.
	x, y := []float64{2 + 2e-9, 2, 2 - 2e-9}, []float64{1, 1, 1}
	q := Ratio(x, y, Sure(0))
	half := 4.302653 * 2e-9 / math.Sqrt(3)
	near(t, "half width", (q.High-q.Low)/2, half, half*1e-5)
}

// What several looks are worth is simulated: in studies of normal noise the share with any interval that misses is as promised, after as
// many rounds as one likes; a little less, and not much.
func TestLooksAreWorth(t *testing.T) {
	const studies = 20_000
	g := rand.New(rand.NewPCG(1989, 1977))
	for _, c := range [][2]float64{{0.05, 3}, {0.05, 5}, {0.05, 10}, {0.05, 20}, {0.05, 50}, {0.05, 200}, {0.01, 20}, {0.01, 100}, {0.002, 20}, {0.1, 24}, {0.1, 200}, {0.033, 24}, {0.012, 200}} {
		c := Confidence{Alpha: c[0], Looks: int(c[1])}
		ends := make([]float64, c.Looks+1)
		for n := 2; n <= c.Looks; n++ {
			ends[n] = c.critical(n)
		}
		missed, above := 0, 0
		for range studies {
			mean, squares := 0.0, 0.0
			low, high := false, false
			for n := 1; n <= c.Looks; n++ {
				v := g.NormFloat64()
				d := v - mean
				mean += d / float64(n)
				squares += d * (v - mean)
				if n > 1 {
					end := ends[n] * math.Sqrt(squares/float64(n-1)/float64(n))
					low, high = low || mean < -end, high || mean > end
				}
			}
			if low || high {
				missed++
			}
			if high {
				above++
			}
		}
		share, oneEnd := float64(missed)/studies, float64(above)/studies
		noise := 3 * math.Sqrt(c.Alpha/studies)
		t.Logf("%+v: %.4f, at one end %.4f", c, share, oneEnd)
		if share > c.Alpha+noise || share < 0.8*c.Alpha-noise || oneEnd > c.Alpha/2+noise/math.Sqrt2 {
			t.Errorf("%+v: %.4f of the studies have an interval that misses, at one end %.4f", c, share, oneEnd)
		}
	}
}

// Looking ends with the first interval that is as precise as asked. With normal noise, the share of studies with any interval that misses stays as
// promised. This holds for every scatter of rounds, and for every least and greatest number of rounds. The studies end after far fewer rounds.
func TestTheLastLook(t *testing.T) {
	const studies = 20_000
	g := rand.New(rand.NewPCG(1965, 1945))
	for _, d := range [][2]int{{2, 10}, {3, 20}, {3, 200}, {4, 60}, {5, 10}, {5, 30}, {5, 200}, {7, 30}, {10, 12}, {10, 60}, {10, 200}, {20, 24}, {20, 60}, {20, 200}, {30, 100}, {50, 200}} {
		floor, cap := d[0], d[1]
		last, one := Confidence{Alpha: Alpha, Looks: cap, Precision: 1, Floor: floor}, Sure(cap)
		// Tables by the number of rounds, because the loop asks tens of millions of times. Bounds are one-sided.
		ending, before, alone := make([]float64, cap+1), make([]float64, cap+1), make([]float64, cap+1)
		endingBound, beforeBound := make([]float64, cap+1), make([]float64, cap+1)
		for n := 2; n <= cap; n++ {
			ending[n], before[n], alone[n] = last.Last().critical(n), last.critical(n), one.critical(n)
			endingBound[n], beforeBound[n] = last.Last().OneSided().critical(n), last.OneSided().critical(n)
		}
		most, mostAbove, fewer := 0.0, 0.0, 0.0
		for _, needed := range []float64{1, 3, 5, 8, 15, 40, 120, 400} { // rounds that a study of known noise would need, without looking
			missed, above, rounds, would := 0, 0, 0, 0
			for range studies {
				mean, squares := 0.0, 0.0
				misses, isAbove, over, wouldBe := false, false, false, false
				for n := 1; n <= cap && !(over && wouldBe); n++ {
					v := math.Sqrt(needed) / 1.96 * g.NormFloat64()
					d := v - mean
					mean += d / float64(n)
					squares += d * (v - mean)
					if n < 2 {
						continue
					}
					error := math.Sqrt(squares / float64(n-1) / float64(n))
					if !over {
						rounds++
						half, bound := ending[n]*error, endingBound[n]*error
						if over = n >= max(floor, leastFloor) && half <= 1; !over {
							half, bound = before[n]*error, beforeBound[n]*error
						}
						misses = misses || math.Abs(mean) > half
						isAbove = isAbove || mean > bound
					}
					if !wouldBe {
						would++
						wouldBe = n >= floor && alone[n]*error <= 1
					}
				}
				if misses {
					missed++
				}
				if isAbove {
					above++
				}
			}
			most, mostAbove = max(most, float64(missed)/studies), max(mostAbove, float64(above)/studies)
			if needed > float64(floor) && needed < float64(cap)/2 {
				fewer = max(fewer, float64(rounds)/float64(would))
			}
		}
		t.Logf("%d to %d rounds, the last at %.1f %%: at most %.4f miss, of bounds of one side %.4f; of the rounds at most %.2f", floor, cap, 100*last.Last().Level(), most, mostAbove, fewer)
		if mostAbove > Alpha+0.0045 {
			t.Errorf("%d to %d rounds: %.4f of the studies have a bound of one side that misses", floor, cap, mostAbove)
		}
		if noise := 3 * math.Sqrt(Alpha/studies); most > Alpha+noise || most < 0.6*Alpha {
			t.Errorf("%d to %d rounds: %.4f of the studies have an interval that misses", floor, cap, most)
		}
		if fewer > 0.9 { // the more, the fewer rounds there are in all
			t.Errorf("%d to %d rounds: %.2f of those with one boundary for all looks", floor, cap, fewer)
		}
	}
}

func TestConfidence(t *testing.T) {
	near(t, "level at one look", Sure(0).Level(), 0.95, 1e-12)
	near(t, "level of two rounds", Sure(2).Level(), 0.95, 1e-12)
	if l := Sure(20).Level(); !(l > 0.99 && l < 0.995) {
		t.Errorf("level at each of twenty looks: %v", l)
	}
	if got := Sure(20).Share(10); got != (Confidence{Alpha: Alpha / 10, Looks: 20}) {
		t.Errorf("one of ten: %+v", got)
	}
	if a, b := Sure(5).critical(50), Sure(50).critical(50); a != b {
		t.Errorf("more rounds than looks: %v, want %v", a, b)
	}
}

// Two samples that were not measured in pairs: the ends are where Welch's t of x − R·y is the critical one, and the interval covers.
func TestChange(t *testing.T) {
	x, y := []float64{2.1, 2.3, 1.9, 2.6, 2.2}, []float64{1.0, 1.2, 0.9, 1.1, 1.05, 1.0, 1.3}
	q := Change(x, y, Sure(0))
	mx, my := mean(x), mean(y)
	vx, vy := scatter(x, mx), scatter(y, my)
	ends := (mx - q.Low*my) / math.Sqrt(vx+q.Low*q.Low*vy)
	near(t, "t at the other end", (q.High*my-mx)/math.Sqrt(vx+q.High*q.High*vy), ends, 1e-9)
	if !(ends > 2.1 && ends < 2.8) || !(q.Low < q.Value && q.Value < q.High) || q.N != 5 {
		t.Errorf("%+v with t = %.3f", q, ends)
	}
	if q := Change([]float64{2, 2}, []float64{1, 1, 1}, Sure(0)); q.Low != 2 || q.High != 2 {
		t.Errorf("without noise: %+v", q)
	}
	for _, few := range [][2][]float64{{nil, y}, {x, nil}, {x[:1], y}, {x, y[:1]}} {
		if q := Change(few[0], few[1], Sure(0)); q.HasInterval() {
			t.Errorf("of %d and %d values: %+v", len(few[0]), len(few[1]), q)
		}
	}
	g := rand.New(rand.NewPCG(1947, 1946))
	const studies = 4000
	held := 0
	for range studies {
		x, y := make([]float64, 6), make([]float64, 10)
		for i := range x {
			x[i] = 1.3 * (1 + 0.1*g.NormFloat64())
		}
		for i := range y {
			y[i] = 1 + 0.02*g.NormFloat64()
		}
		if Change(x, y, Sure(0)).Contains(1.3) {
			held++
		}
	}
	if share := float64(held) / studies; share < promised || share > 0.97 {
		t.Errorf("it holds the truth in %.1f %%", 100*share)
	}
}

func TestPrecise(t *testing.T) {
	q := Quotient{Value: 2, Low: 1.9, High: 2.15, N: 5}
	if Precise(q, 0.074) || !Precise(q, 0.076) {
		t.Error("the farther end decides: 0.15 of 2 is 7.5 %")
	}
}

func TestMedian(t *testing.T) {
	v := []float64{3, 1, 2}
	if Median(v) != 2 || !slices.Equal(v, []float64{3, 1, 2}) || Median([]float64{4, 1}) != 2.5 || !math.IsNaN(Median(nil)) {
		t.Error("median")
	}
}

// Robust is by the book where a computer can make all pairs, and a stall in one round of five does not move it as it moves the mean.
func TestRobust(t *testing.T) {
	g := rand.New(rand.NewPCG(7, 7))
	for n := 1; n < 40; n++ {
		x, y, logs := make([]float64, n), make([]float64, n), []float64(nil)
		for i := range n {
			x[i], y[i] = math.Exp(g.NormFloat64()), math.Exp(g.NormFloat64())
			if n%3 == 0 { // ties
				x[i], y[i] = math.Ceil(x[i]), 1
			}
		}
		for i := range n {
			for j := i; j < n; j++ {
				logs = append(logs, (math.Log(x[i]/y[i])+math.Log(x[j]/y[j]))/2)
			}
		}
		if got, want := Robust(x, y), math.Exp(Median(logs)); math.Abs(got/want-1) > 1e-12 {
			t.Errorf("%d rounds: %v, by all pairs %v", n, got, want)
		}
	}
	x, y := make([]float64, 20), make([]float64, 20)
	for i := range x {
		x[i], y[i] = 1.1*math.Exp(0.01*g.NormFloat64()), math.Exp(0.01*g.NormFloat64())
		if i%5 == 0 {
			x[i] *= 3
		}
	}
	if got := Robust(x, y); math.Abs(got-1.1) > 0.02 || Ratio(x, y, Sure(0)).Value < 1.4 {
		t.Errorf("with stalls %v, and the ratio of the means %v; the truth is 1.1", got, Ratio(x, y, Sure(0)))
	}
	for _, none := range [][2][]float64{{nil, nil}, {{0}, {1}}, {{1}, {0}}, {{-1}, {-1}}, {{math.NaN()}, {1}}} {
		if got := Robust(none[0], none[1]); !math.IsNaN(got) {
			t.Errorf("%v: %v", none, got)
		}
	}
}

// Half an interval that is foreseen from values is the one of as many values.
func TestWidth(t *testing.T) {
	values := []float64{1, 4, 2, 8, 5}
	e := Mean(values, Sure(0))
	if got, want := Width(values, len(values), Sure(0)), (e.High-e.Low)/2; math.Abs(got/want-1) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestRelative: the ratio of two ratios holds the truth in 93 % of pairs of studies at least, whatever slows whole rounds of them, and whatever
// level each study has.
func TestRelative(t *testing.T) {
	x := Pairs{[]float64{2.2, 2.0, 2.1}, []float64{1.1, 1.0, 1.05}}
	y := Pairs{[]float64{1.5, 1.5}, []float64{1, 1}}
	if q := Relative(x, y, Sure(0)); math.Abs(q.Value-4.0/3) > 1e-12 || math.Abs(q.Low-q.Value) > 1e-9 || math.Abs(q.High-q.Value) > 1e-9 || q.N != 2 {
		t.Errorf("without noise of its own: %+v", q)
	}
	one := Pairs{[]float64{2}, []float64{1}}
	for _, few := range []Pairs{{}, one, {[]float64{1, -3}, []float64{1, 1}}, {[]float64{1, 2}, []float64{0, 0}}} {
		if q, r := Relative(few, y, Sure(0)), Relative(y, few, Sure(0)); q.HasInterval() || r.HasInterval() {
			t.Errorf("of %v: %+v and %+v", few, q, r)
		}
	}
	if q := Relative(one, y, Sure(0)); math.Abs(q.Value-4.0/3) > 1e-12 {
		t.Errorf("of one pair: %+v", q)
	}
	const studies, ratio = 4000, 1.1
	for i, c := range []struct {
		n, m     int
		cv, base float64
	}{{2, 2, 0.01, 0.01}, {2, 20, 0.05, 0.01}, {3, 20, 0.05, 0.01}, {5, 20, 0.05, 0.01}, {3, 3, 0.1, 0.1}, {3, 3, 0.2, 0.2}, {5, 10, 0.2, 0.05}, {10, 10, 0.2, 0.2}, {20, 20, 0.02, 0.02}} {
		g := rand.New(rand.NewPCG(uint64(i), 1947))
		pairs := func(n int, mean float64) (p Pairs) {
			level := math.Exp(0.1 * g.NormFloat64())
			for range n {
				slow := level * (1 + 0.3*g.Float64())
				p.X = append(p.X, slow*mean*(1+c.cv*g.NormFloat64()))
				p.Y = append(p.Y, slow*(1+c.base*g.NormFloat64()))
			}
			return p
		}
		held := 0
		for range studies {
			if Relative(pairs(c.n, 1.5*ratio), pairs(c.m, 1.5), Sure(0)).Contains(ratio) {
				held++
			}
		}
		t.Logf("%+v: %.1f %%", c, 100*float64(held)/studies)
		if float64(held)/studies < promised {
			t.Errorf("%+v: the interval holds the truth in %.1f %%, want at least 93 %%", c, 100*float64(held)/studies)
		}
	}
}
