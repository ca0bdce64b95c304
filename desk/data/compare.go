package data

import (
	"maps"
	"math"

	"tare/notebook"
	"tare/stats"
)

// Ratio is the mean of x over the mean of y with its interval, over the rounds that both rows have, as the rows' own
// ratios are made. Alpha is the share of such intervals that may miss (stats.Alpha for 95 %; less where many are
// tested at once); that a study may have stopped at any of its looks is counted in beside it. Rows of different hosts
// share no round: the answer is then NaN with N 0.
func (s *Summary) Ratio(x, y *Row, alpha float64) stats.Quotient {
	xs, ys, both := Paired(x, y)
	return stats.Ratio(xs, ys, 1-alpha*s.share(folders(both)))
}

// Paired gives the values of two rows in the rounds that both have.
func Paired(x, y *Row) (xs, ys []float64, both []Block) {
	order, xv := sums(x)
	_, yv := sums(y)
	return stats.Paired(order, xv, yv)
}

// Mean is the row's mean with its interval, as in Ratio.
func (s *Summary) Mean(x *Row, alpha float64) stats.Estimate {
	var xs []float64
	for _, v := range x.Values {
		xs = append(xs, v.Mean)
	}
	return stats.Mean(xs, 1-alpha*s.share(folders(x.Values)))
}

// Doubt is what the host made of nothing at a row's place (workload, parameters, instance type, CPUs online), as a
// factor: how far bare metal was from itself where the A/A check misses. 1 where it does not. A ratio of two rows of
// that place that is no farther from 1 says nothing, though both may be far from bare metal.
func (s *Summary) Doubt(r *Row) float64 {
	for i := range s.AA {
		if a := &s.AA[i]; a.Verdict == Misses && a.at(r) {
			return a.factor()
		}
	}
	return 1
}

// at says whether the check is of a row's place.
func (a *AACheck) at(r *Row) bool {
	return a.Host == r.Host && a.HostCores == r.HostCores && a.Workload == r.Treatment.Workload &&
		maps.Equal(a.Params, r.Treatment.Params) && a.Instance.SameSize(r.Treatment.Instance)
}

// factor is the farthest end of a check's interval from 1.
func (a *AACheck) factor() float64 {
	if a.Low <= 0 {
		return math.Inf(1)
	}
	return max(a.High, 1/a.Low)
}

// sums are a row's values by block, and the blocks in order.
func sums(r *Row) (order []Block, of map[Block]stats.Sum) {
	of = make(map[Block]stats.Sum, len(r.Values))
	for _, v := range r.Values {
		order = append(order, v.Block)
		of[v.Block] = stats.Sum{Of: v.Mean, N: 1}
	}
	return order, of
}

// folders are those that blocks, or what is of a block, are in, each once.
func folders[T interface{ in() int }](blocks []T) []int { return Distinct(blocks, T.in) }

func (b Block) in() int { return b.Folder }

// share is how much of Alpha an interval over rounds of these folders may use. Each folder may have stopped at any of
// its looks; together that makes the product of ways, and each way's interval gets its share.
func (s *Summary) share(folders []int) float64 {
	share := 1.0
	for _, f := range folders {
		share *= looked(s.Folders[f].Study.Design)
	}
	return share
}

// Level is that of an interval over these cells: 0.95, or more where a study may have stopped at several looks.
func (s *Summary) Level(cells []*Cell) float64 { return 1 - stats.Alpha*s.share(folders(cells)) }

// looked is the share of Alpha that an interval at one of the design's looks may use; 1 where there is but one.
func looked(d notebook.Design) float64 {
	return (1 - stats.Level(d.Floor, d.Cap, d.Precision)) / stats.Alpha
}
