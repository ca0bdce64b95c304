package predict

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"tare/notebook"
)

// What is assumed before a workload is seen. The probes give each cost in a loop that does nothing else. In a program an event costs
// something else. The factor between the two has a part that is common to all events (withCommon), and one of its own (misfit.own). Where the
// loop shows no difference, the cost may be a share of bare metal's own time for the event (withFloor).
const (
	wide          = 100.0 // times bare metal's time for an event: standard deviation of its cost before the probes
	probeSD       = 0.05  // of a probe's ratio, in addition to its noise
	withCommon    = 0.2
	withFloor     = 0.10
	withComputing = 0.01 // the same of computing, which no platform here changes but by what it shares with others

	// Of waits for sockets and locks. In a loop two threads wait for each other. A program waits for what comes from outside of it, and then a
	// sandbox's kernel waits too.
	withWaits = 10.0

	leastRatio = 0.02 // of bare metal's time: nothing is predicted to take less
	heavyTail  = 2.0  // degrees of freedom of Student's t when misfits are judged
)

// misfit is how far works are off beyond their noise: standard deviations, of the scaled ratio.
type misfit struct {
	base  float64 // of any work
	rest  float64 // of the part of bare metal's time in which it does not compute
	share float64 // of the part of its time that costs are
	own   float64 // standard deviation of each cost, in shares of what it is in a loop

	computing float64 // of the part of bare metal's time in which it computes; each environment has its own (Environment.computes)
}

// in is the misfit in an environment.
func (m misfit) in(e *Environment) misfit {
	m.computing = e.computes
	return m
}

// owns are the values of misfit.own that are tried.
var owns = []float64{0.15, 0.4}

// misfits are those that are tried.
var misfits = func() (all []misfit) {
	for _, base := range []float64{0.01, 0.02} {
		for _, rest := range []float64{0.02, 0.05, 0.1, 0.2} {
			for _, share := range []float64{0.1, 0.25, 0.6} {
				for _, own := range owns {
					all = append(all, misfit{base: base, rest: rest, share: share, own: own})
				}
			}
		}
	}
	return all
}()

// belief is a normal distribution of the costs.
type belief struct {
	mean           *mat.VecDense
	cov, precision *mat.SymDense // each the other's inverse
}

// inverse is that of a symmetric matrix; false: it has none.
func inverse(of *mat.SymDense) (*mat.SymDense, bool) {
	var chol mat.Cholesky
	out := mat.NewSymDense(of.SymmetricDim(), nil)
	return out, chol.Factorize(of) && chol.InverseTo(out) == nil
}

// model is an environment's: what is believed of costs, how far works are off, and how wide intervals are.
type model struct {
	costs  belief
	misfit misfit
	wider  widths
	most   []float64 // the highest rate of each of Events in what it was learned from
}

// scaled is a ratio on the scale on which predictions are off by about as much whatever they are: its logarithm above 1, and below it what it
// lacks to 1. A work that takes a tenth instead of a fifth of bare metal's time is as far off as one that takes ten per cent less.
func scaled(ratio float64) float64 {
	if ratio > 1 {
		return math.Log(ratio)
	}
	return ratio - 1
}

// unscaled is the ratio.
func unscaled(x float64) float64 {
	if x > 0 {
		return math.Exp(x)
	}
	return max(1+x, leastRatio)
}

// slopeAt is the derivative of scaled.
func slopeAt(ratio float64) float64 { return 1 / max(ratio, 1) }

// at is the scaled ratio of a work with these rates, its derivative by the costs, and the share of the time that costs are.
func at(costs mat.Vector, rates []float64) (x float64, slope *mat.VecDense, share float64) {
	r := mat.NewVecDense(len(rates), rates)
	ratio := 1 + mat.Dot(r, costs)
	for k, rate := range rates {
		share += math.Abs(rate * costs.AtVec(k))
	}
	slope = mat.NewVecDense(len(rates), nil)
	slope.ScaleVec(slopeAt(ratio), r)
	return scaled(ratio), slope, share * slopeAt(ratio)
}

// variance is that of a row around its prediction, without that of the costs.
func (m misfit) variance(rates []float64, share float64) float64 {
	square := func(x float64) float64 { return x * x }
	return square(m.base) + square(m.rest*max(0, 1-rates[computing])) + square(m.share*share) + square(m.computing*rates[computing])
}

// computing is the place of Computing in Events.
const computing = 0

// update is what is believed of the costs after these rows: the mode by Gauss and Newton, as the scaled ratios are not linear in them.
func (b belief) update(rows []*Row, m misfit) (belief, bool) {
	n := b.mean.Len()
	from := mat.NewVecDense(n, nil)
	from.MulVec(b.precision, b.mean)

	costs := mat.VecDenseCopyOf(b.mean)
	var lambda *mat.SymDense
	for range steps {
		lambda = mat.NewSymDense(n, nil)
		lambda.CopySym(b.precision)
		right := mat.VecDenseCopyOf(from)
		for _, row := range rows {
			x, slope, share := at(costs, row.shares)
			weight := 1 / (row.variance + m.variance(row.shares, share))
			lambda.SymRankOne(lambda, weight, slope)
			right.AddScaledVec(right, weight*(row.scaled-x+mat.Dot(slope, costs)), slope)
		}
		var chol mat.Cholesky
		if !chol.Factorize(lambda) {
			return b, false
		}
		next := mat.NewVecDense(n, nil)
		if chol.SolveVecTo(next, right) != nil {
			return b, false
		}
		next.SubVec(next, costs)
		costs.AddScaledVec(costs, damping, next)
		if mat.Norm(next, math.Inf(1)) < near {
			break
		}
	}
	cov, ok := inverse(lambda)
	return belief{costs, cov, lambda}, ok
}

const (
	steps   = 30
	damping = 0.9
	near    = 1e-6 // of bare metal's time for an event
)

// without is the belief less what rows told it, near where it is.
func (b belief) without(rows []*Row, m misfit) (belief, bool) {
	n := b.mean.Len()
	lambda, right := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	lambda.CopySym(b.precision)
	right.MulVec(lambda, b.mean)
	for _, row := range rows {
		x, slope, share := at(b.mean, row.shares)
		weight := 1 / (row.variance + m.variance(row.shares, share))
		lambda.SymRankOne(lambda, -weight, slope)
		right.AddScaledVec(right, -weight*(row.scaled-x+mat.Dot(slope, b.mean)), slope)
	}
	cov, ok := inverse(lambda)
	mean := mat.NewVecDense(n, nil)
	mean.MulVec(cov, right)
	return belief{mean, cov, lambda}, ok
}

// predict is the scaled ratio of a work with these rates, with its standard deviation.
func (b belief) predict(rates []float64, m misfit) (x, sd, share float64) {
	x, slope, share := at(b.mean, rates)
	return x, math.Sqrt(mat.Inner(slope, b.cov, slope) + m.variance(rates, share)), share
}

// probed is what is believed of the costs after only the probes.
func probed(probes []*Row) (loop belief, ok bool) {
	n := len(Events)
	b := belief{mat.NewVecDense(n, nil), mat.NewSymDense(n, nil), mat.NewSymDense(n, nil)}
	for k := range n {
		b.cov.SetSym(k, k, wide*wide)
		b.precision.SetSym(k, k, 1/(wide*wide))
	}
	return b.update(probes, misfit{base: probeSD})
}

// inPrograms widens what the probes say of costs to what they may be in programs, for each of owns; nil where that is not possible.
func (b belief) inPrograms() map[float64]belief {
	all := map[float64]belief{}
	for _, own := range owns {
		cov := mat.NewSymDense(b.mean.Len(), nil)
		cov.CopySym(b.cov)
		cov.SymRankOne(cov, withCommon*withCommon, b.mean)
		for k, e := range Events {
			c := b.mean.AtVec(k)
			floor := withFloor
			switch {
			case e.Name == Computing:
				floor = withComputing
			case e.Figure == notebook.WallNetwork || e.Figure == notebook.WallFutex:
				floor = withWaits
			}
			cov.SetSym(k, k, cov.At(k, k)+own*own*c*c+floor*floor)
		}
		precision, ok := inverse(cov)
		if !ok {
			return nil
		}
		all[own] = belief{b.mean, cov, precision}
	}
	return all
}
