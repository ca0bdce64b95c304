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
	if off := math.Abs(got.Value-back.Value) + math.Abs(got.Low-back.Low) + math.Abs(got.High-back.High) + math.Abs(got.AtLeast-back.AtLeast) + math.Abs(got.AtMost-back.AtMost); off > 1e-12 || got.N != back.N {
		t.Errorf("%+v, the other way round %+v", got, back)
	}
	of := func(value, low, high float64) Quotient { return Quotient{Value: value, Low: low, High: high, N: 3} }
	for _, margin := range []float64{0, 0.01, 0.2} {
		for _, q := range []Quotient{of(0.84, 0.82, 0.86), of(1.2, 1.19, 1.21), of(1, 0.999, 1.001), of(1, 0.9, 1.1)} {
			want := map[Verdict]Verdict{Slower: Faster, Faster: Slower, Equivalent: Equivalent, Inconclusive: Inconclusive}[q.Verdict(margin)]
			if a := q.Inverse().Verdict(margin); a != want {
				t.Errorf("%+v at %g: one over it %s, want %s", q, margin, a, want)
			}
		}
	}
	inf := math.Inf(1)
	for _, c := range []struct{ q, want Quotient }{
		{of(0.5, 0, 1), of(2, 1, inf)},
		{of(0.5, -0.1, 1), of(2, -inf, inf)},
		{of(2, -inf, inf), of(0.5, -inf, inf)},
		{of(0, 0, 0), of(inf, inf, inf)},
	} {
		if got := c.q.Inverse(); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.q, got, c.want)
		}
	}
	if n := NoRatio.Inverse(); !math.IsNaN(n.Value) || !math.IsNaN(n.Low) || n.HasInterval() {
		t.Errorf("of nothing: %+v", n)
	}
}
