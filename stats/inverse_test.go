package stats

import (
	"math"
	"testing"
)

// One over a quotient is that of the same means the other way round, with the same answer the other way round; where it reaches to 0 it has no upper end.
func TestInverse(t *testing.T) {
	x, y := []float64{2, 2.1, 2.2, 1.9, 2.05}, []float64{1, 1.02, 1.01, 0.97, 1.03}
	there, back := Ratio(x, y, Sure(0)), Ratio(y, x, Sure(0))
	got := there.Inverse()
	if off := math.Abs(got.Value-back.Value) + math.Abs(got.Low-back.Low) + math.Abs(got.High-back.High); off > 1e-12 || got.N != back.N {
		t.Errorf("%+v, the other way round %+v", got, back)
	}
	for _, margin := range []float64{0, 0.01, 0.2} {
		for _, q := range []Quotient{{0.84, 0.82, 0.86, 5}, {1.2, 1.19, 1.21, 5}, {1, 0.999, 1.001, 5}, {1, 0.9, 1.1, 5}} {
			want := map[Answer]Answer{More: Less, Less: More, Same: Same, Open: Open}[q.Answer(margin)]
			if a := q.Inverse().Answer(margin); a != want {
				t.Errorf("%+v at %g: one over it %s, want %s", q, margin, a, want)
			}
		}
	}
	inf := math.Inf(1)
	for _, c := range []struct{ q, want Quotient }{
		{Quotient{0.5, 0, 1, 3}, Quotient{2, 1, inf, 3}},
		{Quotient{0.5, -0.1, 1, 3}, Quotient{2, -inf, inf, 3}},
		{Quotient{2, -inf, inf, 3}, Quotient{0.5, -inf, inf, 3}},
		{Quotient{0, 0, 0, 3}, Quotient{inf, inf, inf, 3}},
	} {
		if got := c.q.Inverse(); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.q, got, c.want)
		}
	}
	if n := NoRatio.Inverse(); !math.IsNaN(n.Value) || !math.IsNaN(n.Low) || n.HasInterval() {
		t.Errorf("of nothing: %+v", n)
	}
}
