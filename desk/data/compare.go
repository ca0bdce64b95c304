package data

import (
	"maps"
	"math"
	"slices"

	"tare/notebook"
	"tare/stats"
)

// Ratio is the mean of x over the mean of y with its interval, over the rounds that both rows have, as the rows' own
// ratios are made. Alpha is the share of such intervals that may miss (stats.Alpha for 95 %; less where many are
// tested at once); that a study may have stopped at any of its looks is counted in beside it. Rows of different hosts
// share no round: the answer is then NaN with N 0.
func (s *Summary) Ratio(x, y *Row, alpha float64) stats.Quotient {
	xs, ys, folders := paired(x, y)
	return stats.Ratio(xs, ys, 1-alpha*s.share(folders))
}

// Mean is the row's mean with its interval, as in Ratio.
func (s *Summary) Mean(x *Row, alpha float64) stats.Estimate {
	xs, _, folders := paired(x, x)
	return stats.Mean(xs, 1-alpha*s.share(folders))
}

// Doubt is what the host made of nothing at a row's place (workload, parameters, instance type, CPUs online), as a
// factor: how far bare metal was from itself where the A/A check misses. 1 where it does not. A ratio of two rows of
// that place that is no farther from 1 says nothing, though both may be far from bare metal.
func (s *Summary) Doubt(r *Row) float64 {
	for i := range s.AA {
		if a := &s.AA[i]; a.Verdict == Misses && a.Host == r.Host && a.Workload == r.Treatment.Workload && maps.Equal(a.Params, r.Treatment.Params) &&
			a.HostCores == r.HostCores && sameSize(a.Instance, r.Treatment.Instance) {
			return a.factor()
		}
	}
	return 1
}

// factor is the farthest end of a check's interval from 1.
func (a *AACheck) factor() float64 {
	if a.Low <= 0 {
		return math.Inf(1)
	}
	return max(a.High, 1/a.Low)
}

// paired gives the values of the rounds that both rows have, and the folders that they are in, each once.
func paired(x, y *Row) (xs, ys []float64, folders []int) {
	of := map[[2]int]float64{}
	for _, v := range y.Values {
		of[[2]int{v.Folder, v.Round}] = v.Mean
	}
	for _, v := range x.Values {
		if w, ok := of[[2]int{v.Folder, v.Round}]; ok {
			xs, ys = append(xs, v.Mean), append(ys, w)
			if !slices.Contains(folders, v.Folder) {
				folders = append(folders, v.Folder)
			}
		}
	}
	return xs, ys, folders
}

// share is how much of Alpha an interval over rounds of these folders may use. Each folder may have stopped at any of
// its looks; together that makes the product of ways, and each way's interval gets its share.
func (s *Summary) share(folders []int) float64 {
	share := 1.0
	for _, f := range folders {
		share *= looked(s.Folders[f].Study.Design)
	}
	return share
}

// Level is that of an interval over rounds of these folders (indices in Folders): 0.95, or more where a study may have
// stopped at several looks.
func (s *Summary) Level(folders []int) float64 { return 1 - stats.Alpha*s.share(folders) }

// looked is the share of Alpha that an interval at one of the design's looks may use; 1 where there is but one.
func looked(d notebook.Design) float64 {
	return (1 - stats.Level(d.Floor, d.Cap, d.Precision)) / stats.Alpha
}
