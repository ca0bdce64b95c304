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

// update is what is believed of the costs after these rows. How far a row may be off depends on the costs: its variance is found from the
// costs, and the costs from the variances, in turns (iterated feasible generalized least squares). Two that take turns at being much too high
// settle half way, on a logarithmic scale.
func (b belief) update(rows []*Row, m misfit) (belief, bool) {
	costs := b.mean
	variances := m.variances(rows, costs)
	var found []float64 // variances at the costs
	for range turns {
		var ok bool
		if costs, ok = b.mode(rows, variances, costs); !ok {
			return b, false
		}
		found = m.variances(rows, costs)
		changed := 0.0
		for i, v := range found {
			changed = max(changed, math.Abs(math.Log(v/variances[i])))
			variances[i] = math.Sqrt(variances[i] * v)
		}
		if changed < settled {
			break
		}
	}
	lambda, _ := b.told(rows, 1, found, costs) // as without takes it away again
	cov, ok := inverse(lambda)
	return belief{costs, cov, lambda}, ok
}

// mode is the most probable costs after rows of these variances. As the scaled ratios are not linear in the costs, it is found by Gauss and
// Newton, beginning at costs; a step that is too long is halved.
func (b belief) mode(rows []*Row, variances []float64, costs *mat.VecDense) (*mat.VecDense, bool) {
	least := b.unlikely(rows, variances, costs)
	for range steps {
		lambda, right := b.told(rows, 1, variances, costs)
		var chol mat.Cholesky
		if !chol.Factorize(lambda) {
			return nil, false
		}
		step := mat.NewVecDense(costs.Len(), nil)
		if chol.SolveVecTo(step, right) != nil {
			return nil, false
		}
		step.SubVec(step, costs)
		for ; mat.Norm(step, math.Inf(1)) > near; step.ScaleVec(0.5, step) {
			next := mat.NewVecDense(costs.Len(), nil)
			next.AddVec(costs, step)
			if u := b.unlikely(rows, variances, next); u < least {
				costs, least = next, u
				break
			}
		}
		if mat.Norm(step, math.Inf(1)) <= near {
			break
		}
	}
	return costs, true
}

const (
	turns   = 10
	settled = 0.03 // change of a variance's logarithm
	steps   = 30
	near    = 1e-4 // of bare metal's time for an event
)

// unlikely is how improbable costs are after rows of these variances: twice the negative logarithm, less what does not depend on the costs.
func (b belief) unlikely(rows []*Row, variances []float64, costs *mat.VecDense) float64 {
	away := mat.NewVecDense(costs.Len(), nil)
	away.SubVec(costs, b.mean)
	all := mat.Inner(away, b.precision, away)
	for i, row := range rows {
		x, _, _ := at(costs, row.shares)
		all += (row.scaled - x) * (row.scaled - x) / variances[i]
	}
	return all
}

// variances are those of rows around their predictions by these costs, with their noise.
func (m misfit) variances(rows []*Row, costs mat.Vector) (all []float64) {
	for _, row := range rows {
		_, _, share := at(costs, row.shares)
		all = append(all, row.variance+m.variance(row.shares, share))
	}
	return all
}

// told is the precision of b, and this precision times the mean. What rows of these variances tell of the costs near some is added to each (a
// sign of 1), or taken away (-1).
func (b belief) told(rows []*Row, sign float64, variances []float64, costs *mat.VecDense) (lambda *mat.SymDense, right *mat.VecDense) {
	n := costs.Len()
	lambda, right = mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	lambda.CopySym(b.precision)
	right.MulVec(b.precision, b.mean)
	for i, row := range rows {
		x, slope, _ := at(costs, row.shares)
		weight := sign / variances[i]
		lambda.SymRankOne(lambda, weight, slope)
		right.AddScaledVec(right, weight*(row.scaled-x+mat.Dot(slope, costs)), slope)
	}
	return lambda, right
}

// without is the belief less what rows told it, near where it is.
func (b belief) without(rows []*Row, m misfit) (belief, bool) {
	lambda, right := b.told(rows, -1, m.variances(rows, b.mean), b.mean)
	cov, ok := inverse(lambda)
	mean := mat.NewVecDense(right.Len(), nil)
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
