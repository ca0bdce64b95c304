package data

import (
	"math"
	"testing"

	"tare/notebook"
	arrivalskind "tare/notebook/kinds/arrivals"
)

// Of rising rates the first is beyond the knee at which fewer than nine requests of ten are answered in the time in which they come, or the tail has more
// than doubled; noise that stays below that makes none.
func TestKnee(t *testing.T) {
	type at struct{ rate, reached, tail float64 }
	for name, c := range map[string]struct {
		rates []at
		want  int
		why   KneeWhy
	}{
		"never saturated":          {[]at{{1, 1, 0.2}, {4, 4, 0.2}, {8, 8, 0.25}, {16, 15.9, 0.3}}, 4, NoKnee},
		"saturated":                {[]at{{1, 1, 0.2}, {4, 4, 0.2}, {8, 7, 0.25}, {16, 7, 9}}, 2, KneeRate},
		"slower and no less":       {[]at{{1, 1, 0.2}, {4, 4, 0.39}, {8, 8, 0.41}, {16, 16, 0.3}}, 2, KneeTail},
		"both at once":             {[]at{{1, 1, 0.2}, {4, 2, 2}}, 1, KneeRate},
		"saturated from the first": {[]at{{4, 3, 0.2}, {8, 3, 0.4}}, 0, KneeRate},
		"noise":                    {[]at{{1, 0.95, 0.3}, {4, 3.7, 0.2}, {8, 8.2, 0.5}, {16, 14.5, 0.4}, {32, 31, 0.59}}, 5, NoKnee},
		"exactly at the bounds":    {[]at{{1, 1, 0.25}, {10, 9, 0.5}}, 2, NoKnee},
		"one rate":                 {[]at{{1, 1, 0.2}}, 1, NoKnee},
		"a tail that is not known": {[]at{{1, 1, math.NaN()}, {4, 4, 3}}, 2, NoKnee},
		"nothing completed":        {[]at{{1, 1, 0.2}, {4, math.NaN(), math.NaN()}, {8, 2, 1}}, 1, KneeRate},
		"none":                     {nil, 0, NoKnee},
	} {
		var rows []*Row
		rates := map[*Row]float64{}
		for _, a := range c.rates {
			r := &Row{}
			for m, v := range map[notebook.Metric]float64{arrivalskind.RateReached: a.reached, arrivalskind.StartP95: a.tail} {
				if !math.IsNaN(v) {
					r.Secondary = append(r.Secondary, Secondary{Metric: m, Mean: v})
				}
			}
			rows, rates[r] = append(rows, r), a.rate
		}
		if i, why := Knee(rows, func(r *Row) float64 { return rates[r] }); i != c.want || why != c.why {
			t.Errorf("%s: %d, %d; want %d, %d", name, i, why, c.want, c.why)
		}
	}
}
