package advise

import (
	"cmp"
	"math"
	"slices"

	"tare/desk/data"
	"tare/desk/model"
	"tare/notebook"
	"tare/stats"
)

// layers is how many layers stand between the work and the host. Of two choices that are not distinguishable, the one with fewer layers is better.
var layers = map[string]int{notebook.BM: 0, notebook.CN: 1, notebook.VM: 2, notebook.VMCN: 3}

// worst returns the end of a choice's interval that ranks it. Lower is better, whatever the metric.
func (r *Ranking) worst(c Choice) float64 {
	if r.Metric.MoreIsBetter() {
		return -c.Low
	}
	return c.High
}

// estimated returns a choice's value. Lower is better, whatever the metric.
func (r *Ranking) estimated(c Choice) float64 {
	if r.Metric.MoreIsBetter() {
		return -c.Value
	}
	return c.Value
}

// simpler orders choices that are not distinguishable: measured before predicted, then by cores, memory, layers and pinning.
func (r *Ranking) simpler(x, y Choice) int {
	s, t := x.Treatment, y.Treatment
	number := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(number(x.Predicted), number(y.Predicted)),
		cmp.Compare(s.Instance.Cores, t.Instance.Cores),
		cmp.Compare(s.Instance.Memory, t.Instance.Memory),
		cmp.Compare(layers[s.Platform], layers[t.Platform]),
		cmp.Compare(number(s.Provisioning == notebook.Pinned), number(t.Provisioning == notebook.Pinned)),
		cmp.Compare(r.worst(x), r.worst(y)),
	)
}

// rank makes the ranking of one group.
func (a *adviser) rank(g *group) Ranking {
	first := g.rows[0]
	out := Ranking{
		Host: first.Host, Workload: g.label, Metric: g.figure, Prefer: a.o.Prefer, Wanted: a.o, Networks: a.s.Networks(g.work.Workload),
		OnHost: a.s.HostOf(first.HostID).Host, Image: first.Image, Port: g.port,
		Sizes: data.Distinct(g.rows, func(r *data.Row) string { return r.Treatment.Instance.Name }),
	}
	for _, r := range g.rows {
		t := r.Treatment
		out.AtSize = out.AtSize || a.size != nil && a.size.SameSize(t.Instance)
		if t.AA || !a.wants(t) {
			continue
		}
		if why := unrankable(r, g); why != nil {
			out.Apart = append(out.Apart, Apart{t, why})
			continue
		}
		c := a.measured(r, g)
		if !stats.Finite(c.High) {
			out.Apart = append(out.Apart, Apart{t, lacking(g.values(r), g.figure)})
			continue
		}
		out.Choices = append(out.Choices, c)
	}
	if a.o.Objective == nil { // a price is not relative to bare metal
		out.withoutInterval()
	}
	if g.figure == g.metric {
		out.Choices = append(out.Choices, a.predicted(g, &out)...)
	} else {
		out.Doubts = append(out.Doubts, NoPrediction{g.metric.Name, g.figure.Name})
	}
	for _, l := range a.s.LeftOut {
		t := l.Treatment
		if l.Host == out.Host && t.Label() == g.label && !t.AA && a.wants(t) {
			out.Apart = append(out.Apart, Apart{t, data.Omitted{Reason: l.Reason}})
		}
	}
	unsteady := map[notebook.Instance]bool{}
	for _, c := range out.Choices {
		i := c.Treatment.Instance
		if c.row == nil || unsteady[i] {
			continue
		}
		if d := a.s.Doubt(c.row); d > 1 {
			unsteady[i] = true
			out.Doubts = append(out.Doubts, UnsteadySize{i.Name, d})
		}
	}
	for i := range out.Choices {
		c := &out.Choices[i]
		c.All = c.at(stats.Alpha / float64(len(out.Choices)))
	}
	a.order(&out)
	a.beside(&out)
	if a.o.Objective != nil {
		out.Offers = a.offers(g, &out)
	}
	return out
}

// withoutInterval takes from the choices what has no interval of its ratio to bare metal, though that was measured at its size: the summary
// finds nothing of it. Bare metal is set apart too if no choice is left to compare with it.
func (r *Ranking) withoutInterval() {
	without := func(c Choice) bool {
		return c.row.Baseline != "" && !(stats.Finite(c.RatioLow) && stats.Finite(c.RatioHigh))
	}
	open := slices.DeleteFunc(slices.Clone(r.Choices), func(c Choice) bool { return !without(c) })
	r.Choices = slices.DeleteFunc(r.Choices, without)
	for _, c := range open {
		r.Apart = append(r.Apart, Apart{c.Treatment, NoRatioInterval{}})
	}
	r.Choices = slices.DeleteFunc(r.Choices, func(c Choice) bool {
		sameSize := func(o Choice) bool { return o.Treatment.Instance.SameSize(c.Treatment.Instance) }
		others := slices.ContainsFunc(r.Choices, func(o Choice) bool { return sameSize(o) && !o.row.IsBaseline() })
		if !c.row.IsBaseline() || others || !slices.ContainsFunc(open, sameSize) {
			return false
		}
		r.Apart = append(r.Apart, Apart{c.Treatment, NothingBeside{}})
		return true
	})
}

// unrankable says why a row is not ranked; nil: it may be.
func unrankable(r *data.Row, g *group) data.Doubt {
	failed, any := r.Failures()
	switch {
	case !g.figure.Directed():
		return NoDirection{g.figure.Name}
	case r.Rounds == 0 && any:
		return failed
	case r.Rounds == 0:
		return data.NotMeasured{}
	case !r.Representative:
		return data.Emulated{}
	case r.LoadShared:
		return data.SharedLoad{}
	case g.of(r).Doubtful:
		for _, d := range g.of(r).Doubts {
			if d, is := d.(data.WithinUnsteadiness); is {
				return d
			}
		}
		return data.UnsteadyHost{}
	case r.Unreliable():
		return failed
	case r.Treatment.Isolation != "":
		return LadderRung{}
	case r.HostCores != g.cores:
		return PartOnline{r.HostCores, g.cores}
	}
	return nil
}

// lacking says why a metric has no interval.
func lacking(values []data.Value, figure notebook.Metric) data.Doubt {
	switch n := len(values); n {
	case 0:
		return NoValue{figure.Name}
	case 1:
		return data.OneRound{}
	default:
		return data.Overflow{}
	}
}

// weight is what the metric is multiplied by to be ranked.
func (a *adviser) weight(t notebook.Treatment, m notebook.Metric) float64 {
	switch {
	case a.o.Prefer != Cost:
		return 1
	case m.MoreIsBetter():
		return 1 / t.Instance.Cores
	}
	return t.Instance.Cores
}

func (a *adviser) measured(r *data.Row, g *group) Choice {
	x, w := g.of(r), a.weight(r.Treatment, g.figure)
	c := Choice{
		Treatment: r.Treatment, row: x, weight: w, Value: w * a.s.Mean(x, stats.Alpha).Value, Ratio: r.Ratio, Against: stats.NoRatio,
		at: func(alpha float64) Span {
			e := a.s.Mean(x, alpha)
			return Span{w * data.Floor(g.figure, e.Low), w * e.High, math.NaN(), math.NaN()}.of(g.figure, a.overBareMetal(r, g, alpha))
		},
	}
	if g.figure != g.metric {
		c.Ratio = a.overBareMetal(r, g, stats.Alpha).Value
	}
	c.Span = c.at(stats.Alpha)
	if r.Failed > 0 {
		c.Doubts = append(c.Doubts, SomeFailed{r.Failed, r.Trials})
	}
	for _, d := range r.Doubts {
		switch d.(type) {
		case data.IgnoresFlushes, data.FoundState, data.ShortRuns:
			c.Doubts = append(c.Doubts, d)
		}
	}
	all := true
	if c.CPUs, all = cpusOf(r); !all {
		c.Doubts = append(c.Doubts, SeveralCPUSets{})
	}
	return c
}

// of is the span with the ratio's interval.
func (s Span) of(m notebook.Metric, ratio stats.Quotient) Span {
	s.RatioLow, s.RatioHigh = data.Floor(m, ratio.Low), ratio.High
	return s
}

// overBareMetal is the ratio to bare metal of what is ranked, at a level; NaN where there is none.
func (a *adviser) overBareMetal(r *data.Row, g *group, alpha float64) stats.Quotient {
	base := g.bareMetal(r.Treatment.Instance)
	if g.figure == g.metric { // a part of a core has a larger baseline
		base = nil
		if i := slices.IndexFunc(g.rows, func(b *data.Row) bool { return b.Treatment.ID == r.Baseline && b.HostID == r.HostID }); i >= 0 {
			base = g.rows[i]
		}
	}
	switch {
	case base == r, r.IsBaseline():
		return stats.Quotient{Value: 1, Low: 1, High: 1} // by definition, whatever its noise
	case base == nil:
		return stats.NoRatio
	}
	return a.s.Ratio(g.of(r), g.of(base), alpha)
}

// bareMetal is the group's row of bare metal at a size; nil where there is none.
func (g *group) bareMetal(i notebook.Instance) *data.Row {
	for _, r := range g.rows {
		if t := r.Treatment; t.Platform == notebook.BM && !t.AA && t.Instance.SameSize(i) && r.HostCores == g.cores && r.Rounds > 0 {
			return r
		}
	}
	return nil
}

// predicted are the choices that were not measured and that the model speaks of: every platform that was measured at
// other sizes, at each size at which bare metal was measured. A ratio by itself gives no time; so of a size that was asked
// for and at which bare metal was not measured, all are predicted, and the ratios are ranked.
func (a *adviser) predicted(g *group, out *Ranking) []Choice {
	var at []notebook.Instance
	for _, r := range g.rows {
		i := r.Treatment.Instance
		if g.bareMetal(i) == r && (a.size == nil || a.size.SameSize(i)) && r.Representative && !r.Unreliable() {
			at = append(at, i)
		}
	}
	alpha := stats.Alpha / 2 // the other half is bare metal's
	if len(at) == 0 && a.size != nil && len(out.Choices) == 0 {
		out.ByRatio = true
		at, alpha = []notebook.Instance{*a.size}, stats.Alpha
	}
	if len(at) == 0 {
		return nil
	}
	var all []Choice
	for n, v := range a.fit(alpha) {
		p := v.Group
		if v.Cannot != nil || p.Engine == notebook.LayersEngine || p.Metric != g.metric || p.Workload != g.work.Workload || p.Label() != g.label {
			continue
		}
		for _, i := range at {
			t := p.Treatment
			t.Instance = i
			shared := slices.ContainsFunc(g.rows, func(r *data.Row) bool {
				return r.LoadShared && r.Treatment.Variant() == t.Variant() && r.Treatment.Provisioning == t.Provisioning
			})
			if shared || !t.Representative() || !a.wants(t) || g.measured(t) || !possible(t) {
				continue
			}
			q, ok := v.Predict(i.Cores, g.cores)
			if !ok || !stats.Finite(q.Low) || !stats.Finite(q.High) {
				continue
			}
			c := Choice{Treatment: t, Predicted: true, Ratio: q.Ratio, Against: stats.NoRatio}
			w, base := a.weight(t, g.figure), g.bareMetal(i)
			c.Value = w * q.Ratio
			if !out.ByRatio {
				c.Value *= a.s.Mean(base, alpha).Value
			}
			c.at = func(share float64) Span {
				one := alpha * share / stats.Alpha
				q, _ := a.fit(one)[n].Predict(i.Cores, g.cores)
				ratio := Span{RatioLow: data.Floor(g.metric, q.Low), RatioHigh: q.High}
				ratio.Low, ratio.High = w*ratio.RatioLow, w*ratio.RatioHigh
				if !out.ByRatio { // each of two intervals misses in half of the cases in which their product may
					e := a.s.Mean(base, one)
					ratio.Low, ratio.High = ratio.Low*data.Floor(g.metric, e.Low), ratio.High*e.High
				}
				return ratio
			}
			c.Span = c.at(stats.Alpha)
			if !stats.Finite(c.Value) || !stats.Finite(c.High) {
				continue
			}
			if q.Extrapolated {
				c.Doubts = append(c.Doubts, Extrapolated{})
			}
			if q.Ambiguous {
				c.Doubts = append(c.Doubts, Ambiguous{})
			}
			all = append(all, c)
		}
	}
	if out.ByRatio && len(all) > 0 {
		t := notebook.Treatment{Workload: g.work.Workload, Params: g.work.Params, Factors: g.work.Factors, Platform: notebook.BM, Instance: *a.size}
		if a.wants(t) && possible(t) {
			w := a.weight(t, g.figure)
			all = append(all, Choice{
				Treatment: t, Predicted: true, Value: w, Span: Span{w, w, 1, 1}, Ratio: 1, Against: stats.NoRatio, at: func(float64) Span { return Span{w, w, 1, 1} },
			})
		}
		out.Doubts = append(out.Doubts, RatiosRanked{a.size.Name})
	}
	return all
}

// fit is the model's fits, made once at each level.
func (a *adviser) fit(alpha float64) []*model.Overhead {
	if a.fits[alpha] == nil {
		if a.fits == nil {
			a.fits = map[float64]*model.Model{}
		}
		a.fits[alpha] = model.Fit(a.s, model.Options{Alpha: alpha})
	}
	return a.fits[alpha].Overheads
}

// measured says whether a treatment has figures of its own, good or doubtful.
func (g *group) measured(t notebook.Treatment) bool {
	return slices.ContainsFunc(g.rows, func(r *data.Row) bool {
		m := r.Treatment
		return r.Rounds > 0 && r.HostCores == g.cores && m.Platform == t.Platform && m.Engine == t.Engine && m.Accelerator == t.Accelerator && m.Kernel == t.Kernel &&
			m.Provisioning == t.Provisioning && m.Network == t.Network && m.Machine == t.Machine && m.Instance.SameSize(t.Instance)
	})
}

// possible says whether a treatment can be: a part of a core is a quota's, in a container.
func possible(t notebook.Treatment) bool {
	return t.Instance.Whole() || t.Platform == notebook.CN && t.Provisioning == notebook.Vanilla
}

// order ranks the choices by the worse end of their intervals: the upper one, or the lower one where higher is better. Those that are not
// distinguishable from the leader, and whose estimates are no worse than its worse end, come first, the simplest of them before the others.
func (a *adviser) order(r *Ranking) {
	c := r.Choices
	if len(c) == 0 {
		return
	}
	slices.SortStableFunc(c, func(x, y Choice) int { return cmp.Compare(r.worst(x), r.worst(y)) })
	leader := c[0]
	for i := range c {
		if i == 0 {
			c[i].Tied, c[i].Leads = true, true
			c[i].Against = stats.Quotient{Value: 1, Low: 1, High: 1}
			continue
		}
		c[i].Against = a.against(c[i], leader, len(c))
		c[i].Tied = !c[i].Against.HasInterval() || c[i].Against.Contains(1)
	}
	// What is badly known is a tie with nearly anything, and no good choice for being simple.
	for i := range c {
		c[i].Near = c[i].Tied && r.estimated(c[i]) <= r.worst(leader)
	}
	slices.SortStableFunc(c, func(x, y Choice) int {
		switch {
		case x.Near && y.Near:
			return r.simpler(x, y)
		case x.Near:
			return -1
		case y.Near:
			return 1
		}
		return cmp.Compare(r.worst(x), r.worst(y))
	})
	for i := range c {
		c[i].Rank = i + 1
	}
}

// pairs is how many comparisons of two so many choices allow. The data choose which of them are made: the leader leads because its values are small. So
// all of them count, or of equal choices one looks worse than the leader far too often.
func pairs(choices int) float64 { return float64(choices) * float64(choices-1) / 2 }

// against is x over y, of so many choices. Where both were measured in the same rounds it is made from
// these, at the level of all pairs; else, and for predictions, from two of the intervals that hold for all choices at once. It is wider by what bare metal
// differed from itself where the A/A check misses: two that are both far from bare metal may be no farther from each other than that.
func (a *adviser) against(x, y Choice, choices int) stats.Quotient {
	q := stats.Quotient{Value: x.Value / y.Value, Low: x.All.Low / y.All.High, High: x.All.High / y.All.Low}
	if !(y.All.Low > 0) {
		q.High = math.Inf(1)
	}
	if x.row == nil || y.row == nil {
		return q
	}
	if p := a.s.Ratio(x.row, y.row, stats.Alpha/pairs(choices)); p.N > 0 {
		w := x.weight / y.weight
		q = stats.Quotient{Value: w * p.Value, Low: w * p.Low, High: w * p.High, N: p.N}
	}
	doubt := a.s.Doubt(x.row)
	if !x.Treatment.Instance.SameSize(y.Treatment.Instance) {
		doubt *= a.s.Doubt(y.row)
	}
	if doubt > 1 {
		q.Low, q.High = q.Low/doubt, q.High*doubt
	}
	return q
}

// beside compares the first choice with one or two that say why it is first, as far as there are any: the leader by the
// upper end, where another stands before it for being simpler; the same with the other provisioning; the first that is
// distinguishable from the leader.
func (a *adviser) beside(r *Ranking) {
	if len(r.Choices) == 0 {
		return
	}
	best := r.Choices[0]
	t := best.Treatment
	add := func(of func(Choice) bool) {
		i := slices.IndexFunc(r.Choices, func(c Choice) bool { return c.Rank != best.Rank && of(c) })
		if i >= 0 && len(r.Beside) < 2 && !slices.ContainsFunc(r.Beside, func(c Comparison) bool { return c.Choice == i }) {
			q := a.against(r.Choices[i], best, len(r.Choices))
			q.Low = data.Floor(r.Metric, q.Low)
			r.Beside = append(r.Beside, Comparison{i, q})
		}
	}
	add(func(c Choice) bool { return c.Leads })
	add(func(c Choice) bool {
		o := c.Treatment
		return o.Platform == t.Platform && o.Engine == t.Engine && o.Accelerator == t.Accelerator && o.Kernel == t.Kernel && o.Network == t.Network && o.Machine == t.Machine &&
			o.Provisioning != t.Provisioning && o.Instance.SameSize(t.Instance)
	})
	add(func(c Choice) bool { return !c.Tied && r.estimated(c) > r.estimated(best) })
	if len(r.Beside) == 0 {
		add(func(Choice) bool { return true })
	}
}

// Defined says whether a choice's value needs neither measuring nor predicting: bare metal's ratio is 1.
func (r *Ranking) Defined(c Choice) bool { return r.ByRatio && c.Treatment.Platform == notebook.BM }

// Doubts about a ranking, its choices and what is not ranked, in addition to those of package data.
type (
	// LadderRung: a rung of the isolation ladder is an experiment's setting.
	LadderRung struct{}
	// PartOnline: it was measured with so many of the host's CPUs online, which is an experiment's setting.
	PartOnline struct{ Online, CPUs int }
	// NoValue: no trial has a value of the metric.
	NoValue struct{ Metric string }
	// NoDirection: neither high nor low values of the metric are better.
	NoDirection struct{ Metric string }
	// NoRatioInterval: the ratio to bare metal has no interval.
	NoRatioInterval struct{}
	// NothingBeside: the choice is bare metal, and no other choice of its size has an interval of its ratio to bare metal.
	NothingBeside struct{}
	// NoPrediction: the model predicts one metric, so that what was not measured is not ranked by another.
	NoPrediction struct{ Predicted, Ranked string }
	// UnsteadySize: bare metal differed from itself by up to this factor at an instance type.
	UnsteadySize struct {
		Instance string
		Factor   float64
	}
	// RatiosRanked: bare metal was not measured at the instance type, so that predicted overhead ratios are ranked.
	RatiosRanked struct{ Instance string }
	// SomeFailed: so many of a choice's trials failed.
	SomeFailed struct{ Failed, Trials int }
	// SeveralCPUSets: a choice's guests had several CPU sets.
	SeveralCPUSets struct{}
	// Extrapolated: a prediction is outside the sizes that were measured.
	Extrapolated struct{}
	// Ambiguous: see model.Prediction.Ambiguous.
	Ambiguous struct{}
)

func (LadderRung) Doubt()      {}
func (PartOnline) Doubt()      {}
func (NoValue) Doubt()         {}
func (NoDirection) Doubt()     {}
func (NoRatioInterval) Doubt() {}
func (NothingBeside) Doubt()   {}
func (NoPrediction) Doubt()    {}
func (UnsteadySize) Doubt()    {}
func (RatiosRanked) Doubt()    {}
func (SomeFailed) Doubt()      {}
func (SeveralCPUSets) Doubt()  {}
func (Extrapolated) Doubt()    {}
func (Ambiguous) Doubt()       {}
