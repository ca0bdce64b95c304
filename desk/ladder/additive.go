package ladder

import (
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// Additive is the model in which the layers' costs add up (paper "pinning", section VI: a model of the overhead "based on the isolation level").
// It is fitted on guests with one layer each (notebook.SingleLayers). The nested rungs take no part in the fit, and are compared with what it
// predicts. docs/model.md has the equations.
type Additive struct {
	Rounds int         // that all of the guests have
	Costs  []LayerCost // in the order of notebook.Layers
	Sums   []Sum       // of the nested rungs above the control group, from the lowest up
}

// LayerCost is what a layer costs, as a share of the time with only a control group, with an interval of 95 %. Where a rate is measured, it is
// of the time for one unit.
type LayerCost struct {
	Layer            string
	Value, Low, High float64
	Probability      float64 // that the layer costs anything, by the model
}

// Sum is a nested rung's time beside the sum of its layers, both over the time with only a control group, with intervals of 95 %. The
// prediction's interval is for the measured value, so the rung's own noise is in it.
type Sum struct {
	Rung                   *Rung
	Measured, MLow, MHigh  float64
	Predicted, PLow, PHigh float64
	Interacts              bool    // Measured is outside of what is predicted, corrected for the number of rungs
	Excess                 float64 // Measured − Predicted
	ExcessLow, ExcessHigh  float64 // corrected for the number of rungs
}

// Inside says whether the measured value lies in the prediction's interval.
func (s Sum) Inside() bool { return s.Measured >= s.PLow && s.Measured <= s.PHigh }

// Wider is how many times as wide the prediction's interval is as the measured one.
func (s Sum) Wider() float64 { return (s.PHigh - s.PLow) / (s.MHigh - s.MLow) }

// noSum has no values.
var noSum = Sum{Measured: math.NaN(), MLow: math.NaN(), MHigh: math.NaN(), Predicted: math.NaN(), PLow: math.NaN(), PHigh: math.NaN()}

// Of is the sum of a rung's layers; false, with values that are NaN, where the model has none.
func (a *Additive) Of(r *Rung) (Sum, bool) {
	if a != nil {
		for _, s := range a.Sums {
			if s.Rung == r {
				return s, true
			}
		}
	}
	return noSum, false
}

const leastRounds = 3 // for a variance between rounds and guests

// additive fits the model; nil if the staircase lacks the guests for it.
func (c *Staircase) additive() *Additive {
	usable := func(r *Rung) bool { return r.Measured() && !r.Emulated && !r.Row.Unreliable() }
	base := slices.IndexFunc(c.Rungs, func(r *Rung) bool { return r.Kind == Layer && r.Name == notebook.LayerCGroup })
	if base < 0 || !usable(c.Rungs[base]) {
		return nil
	}
	fitted := []*Rung{c.Rungs[base]}
	for _, r := range c.Singles {
		if usable(r) {
			fitted = append(fitted, r)
		}
	}
	var nested []*Rung
	for _, r := range c.Rungs {
		if r.Kind == Layer && r != fitted[0] && usable(r) {
			nested = append(nested, r)
		}
	}
	m, ok := newMeans(c.Metric, slices.Concat(fitted, nested))
	if len(fitted) < 2 || !ok {
		return nil
	}
	f := average(fitted, m)
	a := &Additive{Rounds: m.rounds}
	z := m.quantile(stats.Alpha)
	for l, layer := range f.layers {
		at := f.predict(f.row([]string{layer}, false))
		a.Costs = append(a.Costs, LayerCost{Layer: layer, Value: at.mean, Low: at.mean - z*at.sd, High: at.mean + z*at.sd, Probability: f.included(l)})
	}
	each := m.quantile(stats.Alpha / float64(max(1, len(nested))))
	for i, r := range nested {
		layers := notebook.LayersOf(r.Treatment.Isolation)
		if !f.knows(layers) {
			continue
		}
		is, noise, floor := m.mean[len(fitted)+i], m.sd[len(fitted)+i], m.sd[0]
		own := z * math.Hypot(noise, floor) // as wide as the interval of its ratio to the control group
		at := f.predict(f.row(layers, true))
		sd := math.Hypot(at.sd, noise)
		s := Sum{Rung: r, Measured: is, MLow: is - own, MHigh: is + own, Predicted: at.mean, PLow: at.mean - z*sd, PHigh: at.mean + z*sd,
			Excess: is - at.mean, ExcessLow: is - at.mean - each*sd, ExcessHigh: is - at.mean + each*sd}
		s.Interacts = s.ExcessLow > 0 || s.ExcessHigh < 0
		a.Sums = append(a.Sums, s)
	}
	return a
}

// means are the guests' geometric means over the rounds that all of them have, over that of the first guest, with their standard deviations.
// The noise is what is left of the logarithms without each guest's and each round's mean, so a host that is slower in a round adds none.
type means struct {
	mean, sd []float64
	rounds   int
	degrees  float64 // of freedom of the noise
}

// quantile is how many standard deviations an interval reaches that misses with the probability alpha.
func (m means) quantile(alpha float64) float64 {
	return stats.Student(m.degrees, alpha)
}

func newMeans(m notebook.Metric, guests []*Rung) (means, bool) {
	var logs [][]float64 // by round, then by guest
	for _, v := range guests[0].Row.Values {
		var round []float64
		for _, g := range guests {
			i := slices.IndexFunc(g.Row.Values, func(o data.Value) bool { return o.Block == v.Block })
			if i < 0 || !(g.Row.Values[i].Mean > 0) {
				break
			}
			l := math.Log(g.Row.Values[i].Mean)
			if m.MoreIsBetter() {
				l = -l
			}
			round = append(round, l)
		}
		if len(round) == len(guests) {
			logs = append(logs, round)
		}
	}
	if len(logs) < leastRounds {
		return means{}, false
	}
	of := make([]float64, len(guests))
	all := 0.0
	for _, round := range logs {
		for g, l := range round {
			of[g] += l / float64(len(logs))
			all += l / float64(len(logs)*len(guests))
		}
	}
	squares := 0.0
	for _, round := range logs {
		here := 0.0
		for _, l := range round {
			here += l / float64(len(guests))
		}
		for g, l := range round {
			d := l - of[g] - here + all
			squares += d * d
		}
	}
	r := means{rounds: len(logs), degrees: float64((len(logs) - 1) * (len(guests) - 1))}
	sd := math.Sqrt(squares / r.degrees / float64(len(logs)))
	for g := range guests {
		mean := math.Exp(of[g] - of[0])
		r.mean, r.sd = append(r.mean, mean), append(r.sd, max(mean*sd, 1e-9)) // 1e-9: without any noise
	}
	return r, true
}

// averaged is the posterior of the additive model. Each layer may cost nothing, or something that is normally distributed about 0 with an unknown
// width. All combinations of layers that cost something, with a grid of widths, are weighted by how likely they make the means. So a layer
// without a cost adds nearly no uncertainty to a sum.
type averaged struct {
	layers []string
	y      *mat.VecDense
	x      *mat.Dense // by guest: 1, and for each layer whether the guest has it
	noise  []float64  // variances of the means
	weight []float64  // of the models
	models []fitted
}

// fitted is the posterior of one model: of the time with only a control group, less 1, and of the layers' costs.
type fitted struct {
	has  []bool // by layer
	mean *mat.VecDense
	cov  *mat.Dense
}

// widths of the costs' distribution, as shares of the time with only a control group.
var widths = []float64{0.005, 0.02, 0.1, 0.5, 2.5}

// floorWidth is the width of the distribution of the time with only a control group about its measured mean: far wider than any noise.
const floorWidth = 0.3

func average(guests []*Rung, m means) *averaged {
	f := &averaged{}
	for _, l := range notebook.Layers {
		if slices.ContainsFunc(guests[1:], func(r *Rung) bool { return r.Treatment.Isolation == notebook.OnlyLayer+l }) {
			f.layers = append(f.layers, l)
		}
	}
	n := len(guests)
	f.y, f.x = mat.NewVecDense(n, nil), mat.NewDense(n, 1+len(f.layers), nil)
	for i, g := range guests {
		f.y.SetVec(i, m.mean[i]-1)
		f.x.SetRow(i, f.row(notebook.LayersOf(g.Treatment.Isolation), true))
		f.noise = append(f.noise, m.sd[i]*m.sd[i])
	}
	f.weigh()
	return f
}

// weigh finds the models that count, with their weights and posteriors. Each combination of layers, and each width, is as likely as any other
// before the means are known.
func (f *averaged) weigh() {
	const unlikely = 1e-6 // of the most likely one's weight
	type model struct {
		has    []bool
		width  float64
		likely float64
	}
	var all []model
	most := math.Inf(-1)
	for chosen := range 1 << len(f.layers) {
		has := make([]bool, len(f.layers))
		for l := range has {
			has[l] = chosen>>l&1 == 1
		}
		among := widths
		if chosen == 0 { // without costs they have no width
			among = widths[:1]
		}
		for _, w := range among {
			likely := f.likely(has, w) - math.Log(float64(len(among)))
			most = max(most, likely)
			all = append(all, model{has, w, likely})
		}
	}
	sum := 0.0
	for _, m := range all {
		if w := math.Exp(m.likely - most); w > unlikely {
			f.weight, f.models, sum = append(f.weight, w), append(f.models, f.posterior(m.has, m.width)), sum+w
		}
	}
	for i := range f.weight {
		f.weight[i] /= sum
	}
}

// row is a guest's row of x: of one with a control group and these layers, or only the costs of the layers.
func (f *averaged) row(layers []string, floor bool) []float64 {
	row := make([]float64, 1+len(f.layers))
	if floor {
		row[0] = 1
	}
	for i, l := range f.layers {
		if slices.Contains(layers, l) {
			row[1+i] = 1
		}
	}
	return row
}

// knows says whether all of the layers above the control group were fitted. A layer that only came with another, which needs it, counts as a
// part of that one.
func (f *averaged) knows(layers []string) bool {
	known := []string{notebook.LayerCGroup, notebook.LayerCPUSet}
	for _, l := range f.layers {
		if slices.Contains(layers, l) {
			known = append(known, notebook.LayersOf(notebook.OnlyLayer+l)...)
		}
	}
	return !slices.ContainsFunc(layers, func(l string) bool { return !slices.Contains(known, l) })
}

// prior is the variance of each column's cost in one model.
func (f *averaged) prior(has []bool, width float64) []float64 {
	v := make([]float64, 1+len(has))
	v[0] = floorWidth * floorWidth
	for l, h := range has {
		if h {
			v[1+l] = width * width
		}
	}
	return v
}

// factorized is the covariance of the means in one model.
func (f *averaged) factorized(prior []float64) *mat.Cholesky {
	n, _ := f.x.Dims()
	v := mat.NewSymDense(n, nil)
	for i := range n {
		at := f.x.RawRowView(i)
		for j := i; j < n; j++ {
			sum := 0.0
			for k, x := range f.x.RawRowView(j) {
				sum += at[k] * x * prior[k]
			}
			if i == j {
				sum += f.noise[i]
			}
			v.SetSym(i, j, sum)
		}
	}
	var ch mat.Cholesky
	if !ch.Factorize(v) {
		panic("ladder: a covariance matrix is not positive definite") // the noise on its diagonal is positive
	}
	return &ch
}

// likely is the logarithm of a model's likelihood, without a constant.
func (f *averaged) likely(has []bool, width float64) float64 {
	ch := f.factorized(f.prior(has, width))
	var solved mat.VecDense
	if err := ch.SolveVecTo(&solved, f.y); err != nil {
		panic(err) // see factorized
	}
	return -0.5 * (mat.Dot(f.y, &solved) + ch.LogDet())
}

func (f *averaged) posterior(has []bool, width float64) fitted {
	_, k := f.x.Dims()
	variances := f.prior(has, width)
	ch, prior := f.factorized(variances), mat.NewDiagDense(k, variances)
	var px, gain mat.Dense // the covariance of costs and means
	var solved mat.VecDense
	px.Mul(prior, f.x.T())
	if err := errors.Join(ch.SolveVecTo(&solved, f.y), ch.SolveTo(&gain, px.T())); err != nil {
		panic(err) // see factorized
	}
	p := fitted{has: has, mean: mat.NewVecDense(k, nil), cov: mat.NewDense(k, k, nil)}
	p.mean.MulVec(&px, &solved)
	p.cov.Mul(&px, &gain)
	p.cov.Sub(prior, p.cov)
	return p
}

// estimate is a mean with its standard deviation.
type estimate struct{ mean, sd float64 }

// predict is the posterior of a sum: row·(1 or 0, costs). The time of a guest has 1 in front, so it is relative to the control group's mean.
func (f *averaged) predict(row []float64) (e estimate) {
	x := mat.NewVecDense(len(row), row)
	square := 0.0
	for i, p := range f.models {
		mean := row[0] + mat.Dot(x, p.mean)
		var cx mat.VecDense
		cx.MulVec(p.cov, x)
		e.mean += f.weight[i] * mean
		square += f.weight[i] * (max(0, mat.Dot(x, &cx)) + mean*mean)
	}
	e.sd = math.Sqrt(max(0, square-e.mean*e.mean))
	return e
}

// included is the probability that a layer costs something.
func (f *averaged) included(layer int) (p float64) {
	for i, m := range f.models {
		if m.has[layer] {
			p += f.weight[i]
		}
	}
	return p
}
