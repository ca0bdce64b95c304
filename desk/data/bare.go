package data

import "math"

// Bare is the row without its host and without what was measured there: only what it is of. Its numbers are NaN.
func (r *Row) Bare() *Row {
	nan := math.NaN()
	return &Row{
		Treatment: r.Treatment, Metric: r.Metric, Representative: r.Representative, Kind: r.Kind, Config: r.Config, identity: r.identity, IsFigure: r.IsFigure,
		Baseline: r.Baseline, CHR: nan, Mean: nan, MeanLow: nan, MeanHigh: nan, Ratio: nan, RatioLow: nan, RatioHigh: nan,
		RatioAtLeast: nan, RatioAtMost: nan, Robust: nan,
	}
}
