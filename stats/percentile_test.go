package stats

import (
	"math"
	"math/rand/v2"
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
