package model

import (
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"tare/stats"
)

// line is a weighted least-squares fit of y on the columns of x, where each y has a known noise and all share an
// unknown misfit: what the sizes do in addition to the form. The misfit is Paule and Mandel's: as large as makes the residuals
// what they ought to be; none where the noise alone explains them. Intervals are Hartung and Knapp's (Student's t with
// as many degrees as there are points more than parameters, scaled by the residuals), and never narrower than the
// noise alone makes them: few points agree too well by luck.
type line struct {
	beta       *mat.VecDense
	cov        *mat.SymDense // of beta, by noise and misfit
	misfit     float64       // variance
	mostMisfit float64       // as large as it may well be: for predictions, where too small a one would promise too much
	scale      float64       // of cov by the residuals; 1 where there is a misfit, less where they are less than the noise
	df         int           // points less parameters
	noiseDF    float64       // degrees that the noise is known by

	byResiduals, byNoise float64 // Student's t of the intervals, for each way of knowing the spread
}

// misfitDoubt is the chance that residuals are as small as they are, or smaller, were the misfit mostMisfit. Few points
// often show no misfit where there is one; the simulations show that with this one predictions keep their promise.
const misfitDoubt = 0.25

// fitLine fits, with intervals of 1 − alpha; the noise is known by so many degrees. False where the columns of x do not
// determine the parameters or a number is beyond all bounds.
func fitLine(x *mat.Dense, y, noise []float64, noiseDF, alpha float64) (*line, bool) {
	n, p := x.Dims()
	l := &line{df: n - p, noiseDF: noiseDF, scale: 1, byResiduals: math.Inf(1), byNoise: stats.Student(noiseDF, alpha)}
	if l.df < 0 {
		return nil, false
	}
	if l.df > 0 {
		l.byResiduals = stats.Student(float64(l.df), alpha)
	}
	q, _, ok := l.solve(x, y, noise)
	if !ok {
		return nil, false
	}
	if l.df == 0 {
		return l, true
	}
	if !l.explain(x, y, noise, distuv.ChiSquared{K: float64(l.df)}.Quantile(misfitDoubt)) {
		return nil, false
	}
	l.mostMisfit = l.misfit
	want := float64(l.df)
	l.scale = min(1, q/want)
	return l, l.explain(x, y, noise, want)
}

// explain finds the misfit with which the residuals' weighted squares are what is wanted, none where they are less
// without, and solves for it.
func (l *line) explain(x *mat.Dense, y, noise []float64, want float64) bool {
	l.misfit = 0
	// The squares are a falling, convex function of the misfit, so that Newton's steps come up to it from below.
	for range 100 {
		squares, slope, ok := l.solve(x, y, noise)
		if !ok {
			return false
		}
		if squares <= want*(1+1e-9) {
			return true
		}
		l.misfit += (squares - want) / slope
	}
	return true
}

// solve finds beta and cov for the misfit, the sum of the residuals' weighted squares, and how fast that falls as the
// misfit grows.
func (l *line) solve(x *mat.Dense, y, noise []float64) (squares, slope float64, ok bool) {
	n, p := x.Dims()
	wx, wy := mat.NewDense(n, p, nil), mat.NewVecDense(n, nil)
	for i := range n {
		w := 1 / math.Sqrt(noise[i]+l.misfit)
		for j := range p {
			wx.Set(i, j, w*x.At(i, j))
		}
		wy.SetVec(i, w*y[i])
	}
	var normal mat.SymDense
	normal.SymOuterK(1, wx.T())
	var chol mat.Cholesky
	if !chol.Factorize(&normal) || chol.Cond() > 1e12 {
		return 0, 0, false
	}
	l.cov = &mat.SymDense{}
	if chol.InverseTo(l.cov) != nil {
		return 0, 0, false
	}
	var qr mat.QR
	qr.Factorize(wx)
	l.beta = mat.NewVecDense(p, nil)
	if qr.SolveVecTo(l.beta, false, wy) != nil {
		return 0, 0, false
	}
	var rest mat.VecDense
	rest.MulVec(wx, l.beta)
	rest.SubVec(wy, &rest)
	for i := range n {
		r := rest.AtVec(i) * rest.AtVec(i)
		squares += r
		slope += r / (noise[i] + l.misfit)
	}
	return squares, slope, stats.Finite(squares)
}

// at is the combination a of the parameters with its interval; more is a variance that comes to it from elsewhere.
func (l *line) at(a []float64, more float64) Param {
	v := mat.NewVecDense(len(a), a)
	value, variance := mat.Dot(v, l.beta), mat.Inner(v, l.cov, v)
	half := max(l.byResiduals*math.Sqrt(l.scale*variance+more), l.byNoise*math.Sqrt(variance+more))
	return Param{value, value - half, value + half}
}

// none is the p-value of the test that all parameters but the first are zero: the larger of the one with the residuals'
// scale and the one with the noise's, as in the intervals.
func (l *line) none() float64 {
	p := l.beta.Len()
	k := p - 1
	if l.df < 1 || k < 1 {
		return math.NaN()
	}
	sub := mat.NewSymDense(k, nil)
	b := mat.NewVecDense(k, nil)
	for i := range k {
		b.SetVec(i, l.beta.AtVec(i+1))
		for j := i; j < k; j++ {
			sub.SetSym(i, j, l.cov.At(i+1, j+1))
		}
	}
	var chol mat.Cholesky
	var solved mat.VecDense
	if !chol.Factorize(sub) || chol.SolveVecTo(&solved, b) != nil {
		return math.NaN()
	}
	f := mat.Dot(b, &solved) / float64(k)
	if f == 0 {
		return 1
	}
	byResiduals := 0.0 // where the points lie on the form exactly
	if scaled := f / l.scale; !math.IsInf(scaled, 0) {
		byResiduals = distuv.F{D1: float64(k), D2: float64(l.df)}.Survival(scaled)
	}
	byNoise := distuv.F{D1: float64(k), D2: l.noiseDF}.Survival(f)
	return max(byResiduals, byNoise)
}
