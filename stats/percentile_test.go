package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The intervals contain the true percentile in 95 % of samples or more, and an end that no value can give is infinite.
func TestPercentilesCover(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		n int
		p float64
	}{{10, 0.5}, {50, 0.5}, {50, 0.95}, {8, 0.95}, {500, 0.99}} {
		const samples = 400
		hit := 0
		for range samples {
			values := make([]float64, c.n)
			for i := range values {
				values[i] = r.ExpFloat64()
			}
			e, truth := Percentile(values, c.p), -math.Log(1-c.p)
			if e.Low <= truth && truth <= e.High {
				hit++
			}
		}
		if share := float64(hit) / samples; share < 0.92 {
			t.Errorf("p%g of %d values: %.3f of the intervals contain it", 100*c.p, c.n, share)
		}
	}
	if e := Percentile([]float64{3, 1, 2}, 0.5); e.Value != 2 || !math.IsInf(e.High, 1) || !math.IsInf(e.Low, -1) {
		t.Errorf("of three values: %+v", e)
	}
	if e := Percentile(nil, 0.5); !math.IsNaN(e.Value) {
		t.Errorf("of none: %+v", e)
	}
	ten := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	if e := Percentile(ten, 0.5); e.Value != 5.5 || e.Low != 2 || e.High != 9 { // tables have the 2nd and the 9th of ten
		t.Errorf("median of ten values: %+v", e)
	}
}

// However often one looks, the quantile is in the interval each time in 95 % of series; and looking at an end that was made for one look is not so sure.
func TestPercentilesHoldAtAnyTime(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, p := range []float64{0.5, 0.95} {
		const series, most = 300, 300
		truth, out, once := -math.Log(1-p), 0, 0
		for range series {
			var values []float64
			left, leftOnce := false, false
			for range most {
				values = append(values, r.ExpFloat64())
				if len(values)%6 > 0 {
					continue
				}
				e, o := Anytime(values, p, Alpha), Percentile(values, p)
				left = left || truth < e.Low || truth > e.High
				leftOnce = leftOnce || truth < o.Low || truth > o.High
			}
			if left {
				out++
			}
			if leftOnce {
				once++
			}
		}
		if share := float64(out) / series; share > Alpha {
			t.Errorf("p%g: the interval was once without it in %.3f of the series", 100*p, share)
		}
		if share := float64(once) / series; share < 2*Alpha {
			t.Errorf("p%g: intervals for one look were without it in %.3f of the series only: the test says nothing", 100*p, share)
		}
	}
	same := slices.Repeat([]float64{2}, 200)
	for n, high := range map[int]float64{1: math.Inf(1), 104: math.Inf(1), 105: 2, 200: 2} {
		if e := Anytime(same[:n], 0.95, Alpha); e.Value != 2 || e.High != high || n > 1 && e.Low != 2 {
			t.Errorf("%d values that are alike: %+v", n, e)
		}
	}
	if e := Anytime(nil, 0.5, Alpha); !math.IsNaN(e.Value) {
		t.Errorf("of none: %+v", e)
	}
}
