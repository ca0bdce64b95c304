package model

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// Fit fits every group of the summary's rows. It never fails: a group that cannot be fitted says why.
func Fit(s *data.Summary, o Options) *Model {
	m := &Model{Tolerance: o.Tolerance, Alpha: o.Alpha}
	if !(m.Tolerance > 0) {
		m.Tolerance = defaultTolerance
	}
	if !(m.Alpha > 0 && m.Alpha < 1) {
		m.Alpha = stats.Alpha
	}
	rows := slices.DeleteFunc(slices.Clone(s.Rows), func(r *data.Row) bool { return !belongs(r) })
	for _, of := range data.Together(rows, func(a, b *data.Row) bool { return groupOf(a).equal(groupOf(b)) }) {
		v := &Overhead{Group: groupOf(of[0]), Tolerance: m.Tolerance, alpha: m.Alpha}
		v.fit(s, of)
		m.Overheads = append(m.Overheads, v)
	}
	return m
}

// belongs says whether the row is of a platform that can have an overhead over bare metal, in time: neither what a guest takes of the host's memory
// nor a rate follows its cores as the model has it.
func belongs(r *data.Row) bool {
	t := r.Treatment
	return t.Platform != notebook.BM && !t.AA && t.Isolation == "" && !r.Traits().NoModel && r.Metric.Directed() && !r.Metric.MoreIsBetter() // a rung of the ladder is not a platform to choose
}

func groupOf(r *data.Row) Group {
	t := r.Treatment
	t.ID, t.Instance, t.HostCores, t.Rounds = "", notebook.Instance{}, 0, 0
	return Group{t, r.Metric}
}

func (g Group) equal(o Group) bool {
	return g.SameWork(o.Treatment) && g.Metric == o.Metric && g.Variant() == o.Variant() && g.Provisioning == o.Provisioning
}

func (v *Overhead) fit(s *data.Summary, rows []*data.Row) {
	nan := Param{math.NaN(), math.NaN(), math.NaN()}
	v.PTO, v.PerCPU, v.Fixed, v.PSO = nan, nan, nan, nan
	v.SizeP, v.Misfit, v.LeftRMS, v.LeftMost, v.Size = math.NaN(), math.NaN(), math.NaN(), math.NaN(), Unknown
	v.Predicted = noAnswer(true)
	if r, ok := PaperCHR[v.Group.Workload]; ok {
		v.Paper = &r
	}
	v.gather(s, rows)
	v.Across = v.across(s)
	v.Measured = v.byRows(s)
	if v.Cannot = v.tooFew(); v.Cannot != nil {
		return
	}
	v.form = v.chooseForm()
	x, y, noise, ok := v.columns(v.Points)
	if ok {
		v.line, ok = fitLine(x, y, noise, v.freedom(), v.alpha)
	}
	if !ok {
		v.line = nil
		v.Cannot = NotSeparable{}
		return
	}
	v.parameters()
	v.leaveOut()
	v.Predicted = v.byFit()
	v.doubts()
}

// gather takes the rows that count, by CHR, and lists why the others do not.
func (v *Overhead) gather(s *data.Summary, rows []*data.Row) {
	for _, r := range rows {
		p, why := pointOf(s, r)
		if why == nil {
			v.Points = append(v.Points, p)
			continue
		}
		v.Skipped = append(v.Skipped, why)
		if r.Trials > 0 && r.CHR > 0 {
			v.unsure = append(v.unsure, r.CHR)
		}
	}
	slices.SortStableFunc(v.Points, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.CHR, b.CHR), cmp.Compare(a.Cores, b.Cores))
	})
	v.steady()
	if len(v.Points) > 0 {
		v.Smallest = v.Points[0]
	}
}

// pointOf is the row as a point of the fit, or the reason why it is none.
func pointOf(s *data.Summary, r *data.Row) (Point, data.Doubt) {
	p := Point{
		Cores: r.Treatment.Instance.Cores, HostCores: r.HostCores, CHR: r.CHR,
		Ratio: r.Ratio, Low: r.RatioLow, High: r.RatioHigh, Fitted: math.NaN(), row: r,
	}
	switch {
	case !r.Representative:
		return p, data.Emulated{}
	case r.Unreliable():
		f, _ := r.Failures()
		return p, f
	case r.Doubtful:
		return p, WithinUnsteadiness{}
	case r.Trials == 0:
		return p, data.NotMeasured{}
	case !stats.Finite(r.Ratio) || r.Ratio <= 0:
		return p, NoRatio{}
	case !stats.Finite(r.RatioLow) || !stats.Finite(r.RatioHigh):
		return p, NoBounds{}
	case !(p.Cores > 0) || p.HostCores <= 0 || p.Cores > float64(p.HostCores):
		return p, NoSize{}
	}
	p.CHR = p.Cores / float64(p.HostCores)
	if p.baseline = baselineOf(s, r); p.baseline == nil {
		return p, OtherBaseline{}
	}
	if !p.measure() {
		return p, FewCommonRounds{}
	}
	return p, nil
}

// baselineOf is the bare metal that the row's ratio is relative to; nil where it is relative to something else.
func baselineOf(s *data.Summary, r *data.Row) *data.Row {
	for _, b := range s.Rows {
		t := b.Treatment
		if t.ID == r.Baseline && b.HostID == r.HostID && t.Platform == notebook.BM && !t.AA && t.Workload == r.Treatment.Workload && b.Metric == r.Metric && b.Image == r.Image &&
			b.HostCores == r.HostCores && t.Instance.Cores == r.Treatment.Instance.Cores && t.Instance.Memory == r.Treatment.Instance.Memory {
			return b
		}
	}
	return nil
}

// measure works out how the rounds' ratios spread about the row's, in shares of it.
func (p *Point) measure() bool {
	xs, ys, _ := data.Paired(p.row, p.baseline)
	var squares, sum float64
	for i := range xs {
		sum += ys[i]
		e := xs[i] - p.Ratio*ys[i]
		squares += e * e
	}
	n := len(xs)
	mean := sum / float64(n) * p.Ratio
	p.freedom = float64(n - 1)
	p.spread = squares / p.freedom / (mean * mean)
	return n >= 2 && stats.Finite(p.spread)
}

// freedom is how many degrees of freedom the points' noise is known by.
func (v *Overhead) freedom() (df float64) {
	for _, p := range v.Points {
		df += p.freedom
	}
	return df
}

// priorDF is how many degrees of freedom the group's common spread adds to each row's own. A row's own spread has one
// degree less than the row has rounds. Without the common spread, few rounds that agree by luck would outweigh all
// others. With a much larger value, the fit would trust a size too much that really is noisier.
const priorDF = 4.0

// resolution is the smallest relative error of a ratio: clocks do not resolve less.
const resolution = 1e-6

// steady gives each point its standard error: of its own rounds' spread, drawn towards that of the group.
func (v *Overhead) steady() {
	var sum float64
	df := v.freedom()
	for _, p := range v.Points {
		sum += p.freedom * p.spread
	}
	for i := range v.Points {
		p := &v.Points[i]
		spread := (p.freedom*p.spread + priorDF*sum/df) / (p.freedom + priorDF)
		p.SE = p.Ratio * max(math.Sqrt(spread/(p.freedom+1)), resolution)
	}
}

// tooFew says why the sizes do not suffice; nil where they do.
func (v *Overhead) tooFew() data.Doubt {
	n := len(data.Distinct(v.Points, func(p Point) float64 { return p.CHR }))
	switch {
	case n >= leastSizes:
		return nil
	case len(v.Points) > 0:
		largest := slices.Max(data.Distinct(v.Points, func(p Point) int { return p.HostCores }))
		return TooFewSizes{Overhead: v, CHRs: n, Needed: leastSizes, Lacking: leastSizes - n, Largest: largest}
	case len(v.Skipped) > 0:
		return NothingCounts{v.Skipped[0]}
	}
	return NothingCounts{data.NotMeasured{}}
}

// form is which terms the fit has.
type form struct {
	separate bool // κ and δ; else κ for both
}

// terms are the fit's columns at a size.
func (f form) terms(cores float64, hostCores int) []float64 {
	beyond := (float64(hostCores) - cores) / cores
	if f.separate {
		return []float64{1, beyond, 1 / cores}
	}
	return []float64{1, beyond}
}

// size is an instance's cores and its host's.
type size struct {
	cores float64
	host  int
}

func (p Point) size() size { return size{p.Cores, p.HostCores} }

// chooseForm has both terms where hosts of several core counts tell them apart: where 1/c is not itself nearly a line
// in (H − c)/c, and points remain for the misfit.
func (v *Overhead) chooseForm() form {
	points := data.Distinct(v.Points, Point.size)
	if len(data.Distinct(v.Points, func(p Point) int { return p.HostCores })) < 2 || len(points) < leastToSeparate {
		return form{}
	}
	var x, y []float64
	for _, p := range points {
		x, y = append(x, float64(p.host)/p.cores), append(y, 1/p.cores)
	}
	// Of the spread of 1/c, less than this share of its own leaves intervals ten times as wide.
	const own = 0.01
	r := stat.Correlation(x, y, nil) // NaN where all have the same cores: then nothing tells the terms apart either
	return form{separate: 1-r*r > own}
}

// columns are the form's terms at the points, their ratios and their variances; false where they are fewer than terms.
func (v *Overhead) columns(points []Point) (x *mat.Dense, y, noise []float64, ok bool) {
	p := len(v.form.terms(1, 1))
	if len(points) < p {
		return nil, nil, nil, false
	}
	x = mat.NewDense(len(points), p, nil)
	for i, pt := range points {
		x.SetRow(i, v.form.terms(pt.Cores, pt.HostCores))
		y, noise = append(y, pt.Ratio), append(noise, pt.SE*pt.SE)
	}
	return x, y, noise, true
}

func (v *Overhead) parameters() {
	l := v.line
	v.Separated, v.DF, v.Misfit = v.form.separate, l.df, math.Sqrt(l.misfit)
	at := func(a ...float64) Param { return l.at(a[:l.beta.Len()], 0) }
	v.PTO, v.PerCPU = at(1, 0, 0), at(0, 1, 0)
	v.PTO.Value, v.PTO.Low, v.PTO.High = v.PTO.Value-1, v.PTO.Low-1, v.PTO.High-1
	if v.form.separate {
		v.Fixed = at(0, 0, 1)
	}
	small := v.form.terms(v.Smallest.Cores, v.Smallest.HostCores)
	small[0] = 0
	v.PSO = at(small...)
	v.SizeP = l.none()
	switch v.Size = NotShown; {
	case v.SizeP < v.alpha && v.PSO.Low > 0:
		v.Size = Falls
	case v.SizeP < v.alpha && v.PSO.High < 0:
		v.Size = Grows
	}
	for i := range v.Points {
		p := &v.Points[i]
		p.Fitted = l.at(v.form.terms(p.Cores, p.HostCores), 0).Value
	}
}

// leaveOut predicts each size from all others, weighted as in the whole fit.
func (v *Overhead) leaveOut() {
	var squares float64
	for _, out := range data.Distinct(v.Points, Point.size) {
		var others, left []Point
		for _, p := range v.Points {
			if p.size() == out {
				left = append(left, p)
			} else {
				others = append(others, p)
			}
		}
		x, y, noise, ok := v.columns(others)
		if !ok {
			continue
		}
		l := &line{misfit: v.line.misfit}
		if _, _, ok = l.solve(x, y, noise); !ok {
			continue // without this size the others do not tell the terms apart
		}
		predicted := l.at(v.form.terms(out.cores, out.host), 0).Value
		for _, p := range left {
			e := predicted/p.Ratio - 1
			v.Left = append(v.Left, Left{Cores: p.Cores, HostCores: p.HostCores, Predicted: predicted})
			squares += e * e
			if !(math.Abs(e) <= math.Abs(v.LeftMost)) {
				v.LeftMost = e
			}
		}
	}
	if len(v.Left) > 0 {
		v.LeftRMS = math.Sqrt(squares / float64(len(v.Left)))
	}
}

// Predict is the ratio at a size on a host of so many cores, with its interval (1 − Alpha) for what many rounds there
// would show. Where the group was not fitted, or the size is none (cores above the host's), it says false.
func (v *Overhead) Predict(cores float64, hostCores int) (Prediction, bool) {
	if v.line == nil || !(cores > 0) || cores > float64(hostCores) {
		return Prediction{}, false
	}
	at := func(c float64, h int) Param { return v.line.at(v.form.terms(c, h), v.line.mostMisfit) }
	here := at(cores, hostCores)
	p := Prediction{Ratio: here.Value, Low: here.Low, High: here.High}

	chr := cores / float64(hostCores)
	outside := func(x float64, of func(Point) float64) bool {
		const rounding = 1e-9
		all := data.Distinct(v.Points, of)
		return x < slices.Min(all)*(1-rounding) || x > slices.Max(all)*(1+rounding)
	}
	p.Extrapolated = outside(chr, func(p Point) float64 { return p.CHR }) || outside(cores, func(p Point) float64 { return p.Cores }) ||
		outside(float64(hostCores), func(p Point) float64 { return float64(p.HostCores) })

	if others := v.otherReadings(cores, hostCores); len(others) > 0 {
		for _, o := range others {
			other := at(o.cores, o.host)
			p.Low, p.High = min(p.Low, other.Low), max(p.High, other.High)
		}
		p.Ambiguous = true
	}
	p.Low = max(p.Low, 0) // of times no ratio is less
	return p, true
}

// otherReadings are the measured sizes that a size would resemble, did not CHR govern the size term: of as many cores
// where no host like this was measured, of such a host where only one number of cores was. Where hosts of several core
// counts told κ and δ apart there are none.
func (v *Overhead) otherReadings(cores float64, hostCores int) (others []size) {
	if v.form.separate {
		return nil
	}
	hosts := data.Distinct(v.Points, func(p Point) int { return p.HostCores })
	if !slices.Contains(hosts, hostCores) {
		for _, h := range hosts {
			if cores <= float64(h) {
				others = append(others, size{cores, h})
			}
		}
	}
	all := data.Distinct(v.Points, func(p Point) float64 { return p.Cores })
	if len(all) == 1 && all[0] != cores && all[0] <= float64(hostCores) {
		others = append(others, size{all[0], hostCores})
	}
	return others
}

// doubts says what has to be known when the fit is read.
func (v *Overhead) doubts() {
	say := func(d data.Doubt) { v.Doubts = append(v.Doubts, d) }
	if !v.Separated {
		if hosts := data.Distinct(v.Points, func(p Point) int { return p.HostCores }); len(hosts) == 1 {
			say(OneHostSize{hosts[0]})
		} else {
			say(AlikeSizes{leastToSeparate})
		}
	}
	if hosts := data.Distinct(v.Points, func(p Point) string { return p.row.HostID }); len(hosts) > 1 {
		say(SeveralHosts{len(hosts)})
	}
	if images := data.Distinct(v.Points, func(p Point) notebook.Image { return p.row.Image }); len(images) > 1 {
		say(SeveralImages{len(images)})
	}
	if v.DF == 1 {
		say(OneDegree{})
	}
	if len(v.Skipped) > 0 {
		say(NotFitted{len(v.Skipped)})
	}
}
