package data

import (
	"maps"
	"math"

	"tare/notebook"
	"tare/stats"
)

// Verdict of an A/A check.
type Verdict string

const (
	Holds    Verdict = "holds"   // bare metal is no farther from itself than chance explains, over all checks of its host
	Misses   Verdict = "misses"  // it is: the host was too unsteady there, or the run unlucky (1 in 20)
	Narrow   Verdict = "narrow"  // chance explains this check, but not all checks of its host together
	NotKnown Verdict = "unknown" // there is no interval: too few rounds, or one without bounds
)

// AACheck is bare metal against itself under another name, at one instance type.
type AACheck struct {
	Host             string // Host.Name
	Workload         string
	Figure           notebook.Metric   // the secondary metric of the check, which has rows of its own; zero: the workload's metric
	Params, Factors  map[string]string // notebook.Treatment's
	Instance         notebook.Instance
	HostCores        int
	Ratio, Low, High float64 // a 95 % interval for this place only
	Verdict          Verdict
	Places           int      // checks of the host that it was judged with, itself included
	Factor           float64  // by how much the host's intervals would have to be wider; 1 unless the verdict, or the verdict of a check judged with it, is Narrow
	Untrusted        []string // if the check does not hold: ids of treatments whose difference is no larger than the check's
}

// Calibration is what the A/A checks of one host and metric show together. Tare calibrates a folder's host once, and not once for each place.
type Calibration struct {
	Host   string          // Host.Name
	Figure notebook.Metric // as in AACheck; the workloads' own metrics are judged together
	stats.Calibration
}

// at says whether the check is of a row's place.
func (a *AACheck) at(r *Row) bool {
	return a.Host == r.Host && a.HostCores == r.HostCores && a.Workload == r.Treatment.Workload && (a.Figure == notebook.Metric{}) == !r.IsFigure && (!r.IsFigure || a.Figure == r.Metric) &&
		maps.Equal(a.Params, r.Treatment.Params) && maps.Equal(a.Factors, r.Treatment.Factors) && a.Instance.SameSize(r.Treatment.Instance)
}

// factor is the largest difference that the host can show at the check's place where none exists. Where the check misses, it is at least the end of
// its interval that is farthest from 1. An interval that all checks together show to be too narrow counts with its widened half width. 1 where the check holds.
func (a *AACheck) factor() float64 {
	wide := 1.0
	switch {
	case a.Verdict != Misses && a.Verdict != Narrow:
		return 1
	case a.Low <= 0:
		return math.Inf(1)
	case a.Factor > 1:
		wide = math.Exp(a.Factor * math.Log(a.High/a.Low) / 2)
	}
	if a.Verdict == Narrow {
		return wide
	}
	return max(a.High, 1/a.Low, wide)
}

// Doubt is the difference that the host showed at a row's place (workload, parameters, instance type, CPUs online) where none exists, as a
// factor: how far bare metal was from itself where the A/A check does not hold. 1 where it does. A ratio of two rows of
// that place that is no farther from 1 says nothing, though both may be far from bare metal.
func (s *Summary) Doubt(r *Row) float64 {
	if a := s.Check(r); a != nil {
		return a.factor()
	}
	return 1
}

// checkAA judges bare metal against itself: all places of a host and metric together.
func (r *reader) checkAA() {
	type family struct {
		host   string
		figure notebook.Metric
	}
	var families []family
	of := map[family][]int{} // in Summary.AA
	var controls []stats.Control
	var rows []*Row
	for _, t := range r.order {
		row := &t.row
		if !row.Treatment.AA {
			continue
		}
		a := AACheck{
			Host: row.Host, Workload: row.Treatment.Workload, Params: row.Treatment.Params, Factors: row.Treatment.Factors, Instance: row.Treatment.Instance, HostCores: row.HostCores,
			Ratio: math.NaN(), Low: math.NaN(), High: math.NaN(), Verdict: NotKnown, Factor: 1,
		}
		if row.IsFigure {
			a.Figure = row.Metric
		}
		c := stats.Control{}
		if bm := r.bareMetal(t); bm != nil {
			xs, ys, both := Paired(row, &bm.row)
			c = stats.Control{X: xs, Y: ys, Confidence: r.sum.ruled(row, &bm.row, both, stats.Alpha)}
			q := stats.Ratio(xs, ys, c.Confidence)
			if a.Ratio, a.Low, a.High = q.Value, q.Low, q.High; q.HasInterval() {
				a.Verdict = Holds
			}
		}
		f := family{a.Host, a.Figure}
		if _, known := of[f]; !known {
			families = append(families, f)
		}
		of[f] = append(of[f], len(r.sum.AA))
		r.sum.AA, controls, rows = append(r.sum.AA, a), append(controls, c), append(rows, row)
	}
	for _, f := range families {
		var its []stats.Control
		for _, i := range of[f] {
			its = append(its, controls[i])
		}
		c := Calibration{f.host, f.figure, stats.Calibrate(its, stats.Alpha)}
		r.sum.Calibrations = append(r.sum.Calibrations, c)
		for n, i := range of[f] {
			a := &r.sum.AA[i]
			a.Places = c.Places
			if c.Narrow() {
				a.Factor = c.Factor
			}
			switch {
			case c.Miss[n]:
				a.Verdict = Misses
				rows[i].doubt(UnsteadyHost{c.Places})
			case a.Verdict == Holds && c.Narrow():
				a.Verdict = Narrow
			}
		}
	}
}

// distrust marks the rows whose difference from bare metal is no larger than what bare metal showed against itself
// where the A/A check does not hold.
func (r *reader) distrust() {
	for i := range r.sum.AA {
		a := &r.sum.AA[i]
		m := a.factor() // differences up to this one may come from the host
		if m == 1 {
			continue
		}
		for _, t := range r.order {
			row := &t.row
			if !a.at(row) || row.Treatment.AA || row.IsBaseline() || !stats.Finite(row.Ratio) {
				continue
			}
			if !stats.Finite(row.RatioLow) || !stats.Finite(row.RatioHigh) || row.RatioLow <= m && row.RatioHigh >= 1/m {
				row.Doubtful = true
				a.Untrusted = append(a.Untrusted, row.Treatment.ID)
				row.doubt(WithinUnsteadiness{Ratio: a.Ratio, Low: a.Low, High: a.High, Factor: a.Factor, Places: a.Places})
			}
		}
	}
}
