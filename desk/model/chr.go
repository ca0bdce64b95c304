package model

import (
	"cmp"
	"math"
	"slices"

	"tare/desk/data"
)

// Range is a range of CHR.
type Range struct{ Low, High float64 }

// PaperCHR are the ranges in which a container's CHR should be, by workload: section IV-A of the paper "pinning". It
// has none for MPI.
var PaperCHR = map[string]Range{
	"ffmpeg":    {0.07, 0.14},
	"wordpress": {0.14, 0.28},
	"cassandra": {0.28, 0.57},
}

// Verdict is whether a suitable CHR was found.
type Verdict string

const (
	Found      Verdict = "found"       // Low and High are known: the smallest suitable CHR is between them
	NotReached Verdict = "not reached" // even the largest measured CHR has more overhead than the tolerance
	NotDecided Verdict = "not decided" // the data neither show nor exclude that the largest CHR is suitable
	NoAnswer   Verdict = "no answer"   // no measurement or no fit
)

// Suitable is the smallest CHR for which the overhead is below the tolerance. The overhead of every larger measured size
// must be below it too.
type Suitable struct {
	Verdict   Verdict
	Low       float64 // the smallest CHR that the data do not exclude; NaN for NotReached and NoAnswer
	High      float64 // the smallest CHR that the data show to be suitable; NaN: none
	OrLess    bool    // Low is the smallest measured CHR; the true value may be less
	HostCores int     // the host's cores, where the core count matters in addition to CHR (Separated); otherwise 0
	Fitted    bool    // by the fit, not by the rows
}

func noAnswer(fitted bool) Suitable {
	return Suitable{Verdict: NoAnswer, Low: math.NaN(), High: math.NaN(), Fitted: fitted}
}

// step is the result at one CHR.
type step struct {
	chr             float64
	shown, excluded bool // that its overhead is within the tolerance
}

// smallest goes from the largest CHR down: all are shown down to High, none is excluded down to Low.
func smallest(steps []step, fitted bool) Suitable {
	s := noAnswer(fitted)
	if len(steps) == 0 {
		return s
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(b.chr, a.chr) })
	shown, open := true, true
	for i := 0; i < len(steps); {
		chr := steps[i].chr
		for ; i < len(steps) && steps[i].chr == chr; i++ {
			shown, open = shown && steps[i].shown, open && !steps[i].excluded
		}
		if shown {
			s.High = chr
		}
		if open {
			s.Low = chr
		}
	}
	switch {
	case math.IsNaN(s.Low):
		s.Verdict = NotReached
	case math.IsNaN(s.High):
		s.Verdict = NotDecided
	default:
		s.Verdict = Found
	}
	s.OrLess = s.Low == steps[len(steps)-1].chr
	return s
}

// byRows judges by the rows' own ratios. That all from some CHR on are within the tolerance needs each to be, so that
// each is judged at the whole level; that none is excluded by chance needs the level divided by their number.
func (v *Overhead) byRows(s *data.Summary) Suitable {
	if len(v.Points) == 0 {
		return noAnswer(false)
	}
	var steps []step
	for _, p := range v.Points {
		whole := s.Ratio(p.row, p.baseline, v.alpha)
		part := s.Ratio(p.row, p.baseline, v.alpha/float64(len(v.Points)))
		steps = append(steps, step{p.CHR, whole.High <= 1+v.Tolerance, part.Low > 1+v.Tolerance})
	}
	for _, chr := range v.unsure {
		steps = append(steps, step{chr: chr})
	}
	return smallest(steps, false)
}

// byFit judges by the fit's interval at every CHR between the least and the greatest that were measured, on the
// largest host.
func (v *Overhead) byFit() Suitable {
	low, high := v.Points[0].CHR, v.Points[len(v.Points)-1].CHR
	host := slices.Max(data.Distinct(v.Points, func(p Point) int { return p.HostCores }))
	const parts = 400 // a step is less than 2 % of CHR over a thousandfold range
	var steps []step
	for i := range parts + 1 {
		chr := high * math.Pow(low/high, float64(i)/parts)
		r := v.line.at(v.form.terms(chr*float64(host), host), v.line.mostMisfit)
		steps = append(steps, step{chr, r.High <= 1+v.Tolerance, r.Low > 1+v.Tolerance})
	}
	s := smallest(steps, true)
	if v.form.separate {
		s.HostCores = host
	}
	return s
}
