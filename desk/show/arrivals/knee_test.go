package arrivals

import (
	"math"
	"testing"

	"tare/desk/data"
	"tare/notebook"
	kind "tare/notebook/kinds/arrivals"
)

// The knee is the first rate at which fewer than nine of ten requests are answered in the time in which they arrive. It is also the
// first rate at which the tail has more than doubled. Noise below these limits makes no knee.
func TestKnee(t *testing.T) {
	type at struct{ rate, reached, tail float64 }
	for name, c := range map[string]struct {
		rates []at
		want  int
		why   kneeWhy
	}{
		"never saturated":          {[]at{{1, 1, 0.2}, {4, 4, 0.2}, {8, 8, 0.25}, {16, 15.9, 0.3}}, 4, noKnee},
		"saturated":                {[]at{{1, 1, 0.2}, {4, 4, 0.2}, {8, 7, 0.25}, {16, 7, 9}}, 2, atRate},
		"slower and no less":       {[]at{{1, 1, 0.2}, {4, 4, 0.39}, {8, 8, 0.41}, {16, 16, 0.3}}, 2, atTail},
		"both at once":             {[]at{{1, 1, 0.2}, {4, 2, 2}}, 1, atRate},
		"saturated from the first": {[]at{{4, 3, 0.2}, {8, 3, 0.4}}, 0, atRate},
		"noise":                    {[]at{{1, 0.95, 0.3}, {4, 3.7, 0.2}, {8, 8.2, 0.5}, {16, 14.5, 0.4}, {32, 31, 0.59}}, 5, noKnee},
		"exactly at the bounds":    {[]at{{1, 1, 0.25}, {10, 9, 0.5}}, 2, noKnee},
		"one rate":                 {[]at{{1, 1, 0.2}}, 1, noKnee},
		"a tail that is not known": {[]at{{1, 1, math.NaN()}, {4, 4, 3}}, 2, noKnee},
		"nothing completed":        {[]at{{1, 1, 0.2}, {4, math.NaN(), math.NaN()}, {8, 2, 1}}, 1, atRate},
		"none":                     {nil, 0, noKnee},
	} {
		var rows []*data.Row
		rates := map[*data.Row]float64{}
		for _, a := range c.rates {
			r := &data.Row{}
			for m, v := range map[notebook.Metric]float64{kind.RateReached: a.reached, kind.StartP95: a.tail} {
				if !math.IsNaN(v) {
					r.Secondary = append(r.Secondary, data.Secondary{Metric: m, Mean: v})
				}
			}
			rows, rates[r] = append(rows, r), a.rate
		}
		if i, why := kneeOf(rows, func(r *data.Row) float64 { return rates[r] }); i != c.want || why != c.why {
			t.Errorf("%s: %d, %d; want %d, %d", name, i, why, c.want, c.why)
		}
	}
}
