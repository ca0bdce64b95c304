package ladder

import (
	"math"
	"testing"

	"tare/notebook"
)

// Higher rates are better, so a rung's cost is the rate that it loses. The staircase equals the staircase of times.
func TestTheCostOfARate(t *testing.T) {
	s := whole(0.003)
	for _, r := range s.sum.Rows {
		r.Metric = notebook.Metric{Name: "operations", Unit: "1/s", Better: notebook.Higher}
		for i := range r.Values {
			r.Values[i].Mean = 1 / r.Values[i].Mean
		}
	}
	c := one(t, s)
	for name, want := range map[string]float64{"seccomp": 1.2, "overlay": 0.97, "vm": 1.1} {
		r := c.named(t, name)
		if math.Abs(r.Own.Value-want) > 0.02 || !r.Significant || !r.Own.Contains(r.Own.Value) {
			t.Errorf("%s costs %+v; want %v", name, r.Own, want)
		}
	}
	if top := c.Rungs[c.Top()].Ratio; !(top.Low > 1.2) {
		t.Errorf("all layers together cost %+v", top)
	}
}
