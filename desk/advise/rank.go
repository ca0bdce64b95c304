package advise

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/desk/data"
	"tare/desk/model"
	"tare/notebook"
	"tare/stats"
)

// layers is how much stands between the work and the host. Of two that cannot be told apart, the fewer the better.
var layers = map[string]int{notebook.BM: 0, notebook.CN: 1, notebook.VM: 2, notebook.VMCN: 3}

// tieRule says how near ties are broken, for people.
const tieRule = "measured before predicted, fewer cores, less memory, fewer layers (bare metal, container, VM, container in a VM), unpinned before pinned"

// simpler orders choices that cannot be told apart, as tieRule says.
func simpler(x, y Choice) int {
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
		cmp.Compare(x.High, y.High),
	)
}

// rank makes the ranking of one group.
func (a *adviser) rank(g *group) (Ranking, error) {
	out := Ranking{Host: g.name, Workload: g.label, Metric: g.figure, Prefer: a.o.Prefer, host: g.host, image: g.image, port: g.port}
	networks := a.s.Networks(g.work.Workload)
	name := func(t notebook.Treatment) string { return describe(t, networks) }
	for _, r := range g.rows {
		t := r.Treatment
		if t.AA || !a.wants(t) {
			continue
		}
		if why := unrankable(r, g); why != "" {
			out.Apart = append(out.Apart, Apart{Name: name(t), Reason: why})
			continue
		}
		c := a.measured(r, g)
		if !finite(c.High) {
			out.Apart = append(out.Apart, Apart{Name: name(t), Reason: "no interval: " + lacking(r, g.figure)})
			continue
		}
		c.Name = name(t)
		out.Choices = append(out.Choices, c)
	}
	if g.figure == g.metric {
		for _, c := range a.predicted(g, &out) {
			c.Name = name(c.Treatment)
			out.Choices = append(out.Choices, c)
		}
	} else {
		out.Notes = append(out.Notes, "the model predicts "+g.metric.Name+" alone: sizes that were not measured are not ranked by "+g.figure.Name)
	}
	for _, l := range a.s.LeftOut {
		t := l.Treatment
		if l.Host == g.name && notebook.Label(t.Workload, t.Params) == g.label && !t.AA && a.wants(t) {
			out.Apart = append(out.Apart, Apart{Name: name(t), Reason: "left out: " + l.Reason})
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
			out.Notes = append(out.Notes, fmt.Sprintf("the A/A check failed at %s: bare metal differed from itself by a factor of up to %.3g, and what is compared there is wider by as much", i.Name, d))
		}
	}
	a.order(&out)
	if len(out.Choices) == 0 {
		out.Why = "Nothing can be ranked: " + a.whyNot(g, &out) + "."
	} else {
		out.Why = a.why(&out)
	}
	return out, nil
}

// whyNot says why a ranking has no choice.
func (a *adviser) whyNot(g *group, r *Ranking) string {
	const most = 3
	var reasons []string
	for _, p := range r.Apart {
		if why := strings.TrimSuffix(clean(p.Reason), "."); !slices.Contains(reasons, why) {
			reasons = append(reasons, why)
		}
	}
	if more := len(reasons) - most; more > 0 {
		reasons = append(reasons[:most], fmt.Sprintf("and %d more reasons", more))
	}
	if len(reasons) > 0 {
		return strings.Join(reasons, "; ")
	}
	var sizes []string
	for _, w := range g.rows {
		i := w.Treatment.Instance
		if a.size != nil && a.size.SameSize(i) && len(a.o.Exclude) > 0 {
			return "--exclude " + strings.Join(a.o.Exclude, ",") + " leaves nothing of what was measured at " + clean(a.o.Instance)
		}
		if name := clean(i.Name); !slices.Contains(sizes, name) {
			sizes = append(sizes, name)
		}
	}
	switch {
	case a.size == nil && len(a.o.Exclude) == 0:
		return "the A/A check alone was measured"
	case a.size == nil:
		return "--exclude " + strings.Join(a.o.Exclude, ",") + " leaves nothing of what was measured"
	}
	return clean(a.o.Instance) + " was not measured, only " + strings.Join(sizes, ", ") + ", and the model predicts nothing for it"
}

// unrankable says why a row is not ranked; empty: it may be.
func unrankable(r *data.Row, g *group) string {
	switch {
	case r.Rounds == 0:
		return said(r, "no trial succeeded", "not measured yet", "every trial failed")
	case !r.Representative:
		return "not representative: taken under software emulation (tcg), which says nothing about a VM's cost"
	case r.Doubtful:
		return said(r, "not to be trusted: bare metal differed from itself by as much", "not to be trusted")
	case r.Unreliable():
		return r.Failures
	case r.Treatment.Isolation != "":
		return "a rung of the isolation ladder: an experiment's setting, and nothing to apply"
	case r.HostCores != g.cores:
		return fmt.Sprintf("measured with %d of the host's %d CPUs online: an experiment's setting, and nothing to apply", r.HostCores, g.cores)
	}
	return ""
}

// said is the first of a row's notes that begins with one of these.
func said(r *data.Row, otherwise string, beginnings ...string) string {
	for _, n := range r.Notes {
		if slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(n, b) }) {
			return n
		}
	}
	return otherwise
}

// lacking says why a figure has no interval.
func lacking(r *data.Row, figure notebook.Metric) string {
	switch n := len(r.Values); n {
	case 0:
		return "no trial gave " + figure.Name
	case 1:
		return "one round only, two at least are needed"
	default:
		return fmt.Sprintf("the mean over %d rounds is too large for a number", n)
	}
}

// weight is what the metric is multiplied by to be ranked.
func (a *adviser) weight(t notebook.Treatment) float64 {
	if a.o.Prefer == Cost {
		return t.Instance.Cores
	}
	return 1
}

func (a *adviser) measured(r *data.Row, g *group) Choice {
	e, w := a.s.Mean(r, stats.Alpha), a.weight(r.Treatment)
	c := Choice{
		Treatment: r.Treatment, row: r, Value: w * e.Value, Low: w * data.Floor(g.figure, e.Low), High: w * e.High,
		Ratio: r.Ratio, RatioLow: data.Floor(g.metric, r.RatioLow), RatioHigh: r.RatioHigh, Against: unknown(),
	}
	if g.figure != g.metric {
		c.Ratio, c.RatioLow, c.RatioHigh = math.NaN(), math.NaN(), math.NaN()
		if bm := g.bareMetal(r.Treatment.Instance); bm != nil {
			q := a.s.Ratio(r, bm, stats.Alpha)
			if bm == r {
				q.Value, q.Low, q.High = 1, 1, 1 // by definition, whatever its noise
			}
			c.Ratio, c.RatioLow, c.RatioHigh = q.Value, data.Floor(g.figure, q.Low), q.High
		}
	}
	if r.Failed > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%d of its %d trials failed", r.Failed, r.Trials))
	}
	all := true
	if c.CPUs, all = a.cpusOf(r); !all {
		c.Notes = append(c.Notes, "its guests had several CPU sets, of which this is the commonest")
	}
	return c
}

func unknown() stats.Quotient {
	return stats.Quotient{Value: math.NaN(), Low: math.NaN(), High: math.NaN()}
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
// other sizes, at each size at which bare metal was measured. A ratio alone says no time; so of a size that was asked
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
	for _, v := range model.Fit(a.s, model.Options{Alpha: alpha}).Overheads {
		p := v.Group
		if v.Cannot != "" || p.Engine == notebook.LayersEngine || p.Metric != g.metric || p.Workload != g.work.Workload || notebook.Label(p.Workload, p.Params) != g.label {
			continue
		}
		for _, i := range at {
			t := notebook.Treatment{
				Workload: p.Workload, Params: p.Params, Platform: p.Platform, Engine: p.Engine, Accelerator: p.Accelerator,
				Provisioning: p.Provisioning, Instance: i, Network: p.Network,
			}
			if !t.Representative() || !a.wants(t) || g.measured(t) || !possible(t) {
				continue
			}
			q, ok := v.Predict(i.Cores, g.cores)
			if !ok || !finite(q.Low) || !finite(q.High) {
				continue
			}
			c := Choice{Treatment: t, Predicted: true, Ratio: q.Ratio, RatioLow: data.Floor(g.metric, q.Low), RatioHigh: q.High, Against: unknown()}
			w := a.weight(t)
			if out.ByRatio {
				c.Value, c.Low, c.High = w*q.Ratio, w*c.RatioLow, w*q.High
			} else {
				// Each of two intervals misses in half of the cases in which their product may.
				e := a.s.Mean(g.bareMetal(i), alpha)
				c.Value, c.Low, c.High = w*q.Ratio*e.Value, w*c.RatioLow*data.Floor(g.metric, e.Low), w*q.High*e.High
			}
			if !finite(c.Value) || !finite(c.High) {
				continue
			}
			if q.Extrapolated {
				c.Notes = append(c.Notes, "outside of the sizes that were measured")
			}
			if q.Why != "" {
				c.Notes = append(c.Notes, q.Why)
			}
			all = append(all, c)
		}
	}
	if out.ByRatio && len(all) > 0 {
		t := notebook.Treatment{Workload: g.work.Workload, Params: g.work.Params, Platform: notebook.BM, Instance: *a.size}
		if a.wants(t) && possible(t) {
			w := a.weight(t)
			all = append(all, Choice{
				Treatment: t, Predicted: true, Value: w, Low: w, High: w, Ratio: 1, RatioLow: 1, RatioHigh: 1, Against: unknown(),
			})
		}
		out.Notes = append(out.Notes, "bare metal was not measured at "+a.size.Name+": overhead ratios are ranked, as the model predicts them")
	}
	return all
}

// measured says whether a treatment has figures of its own, good or doubtful.
func (g *group) measured(t notebook.Treatment) bool {
	return slices.ContainsFunc(g.rows, func(r *data.Row) bool {
		m := r.Treatment
		return r.Rounds > 0 && r.HostCores == g.cores && m.Platform == t.Platform && m.Engine == t.Engine && m.Accelerator == t.Accelerator &&
			m.Provisioning == t.Provisioning && m.Network == t.Network && m.Instance.SameSize(t.Instance)
	})
}

// possible says whether a treatment can be: a part of a core is a quota's, in a container.
func possible(t notebook.Treatment) bool {
	return whole(t.Instance.Cores) || t.Platform == notebook.CN && t.Provisioning == notebook.Vanilla
}

func whole(f float64) bool { return f == math.Trunc(f) && f >= 1 }

// order ranks the choices by the upper end of their intervals. Those that cannot be told from the leader, and whose
// estimates are no higher than its upper end, come first, the simplest of them before the others.
func (a *adviser) order(r *Ranking) {
	c := r.Choices
	if len(c) == 0 {
		return
	}
	slices.SortStableFunc(c, func(x, y Choice) int { return cmp.Compare(x.High, y.High) })
	leader := c[0]
	for i := range c {
		if i == 0 {
			c[i].Tied, c[i].leads = true, true
			c[i].Against = stats.Quotient{Value: 1, Low: 1, High: 1}
			continue
		}
		c[i].Against = a.against(c[i], leader, len(c)-1)
		c[i].Tied = !c[i].Against.HasInterval() || c[i].Against.Contains(1)
	}
	// What is badly known is a tie with nearly anything, and no good choice for being simple.
	for i := range c {
		c[i].Near = c[i].Tied && c[i].Value <= leader.High
	}
	slices.SortStableFunc(c, func(x, y Choice) int {
		switch {
		case x.Near && y.Near:
			return simpler(x, y)
		case x.Near:
			return -1
		case y.Near:
			return 1
		}
		return cmp.Compare(x.High, y.High)
	})
	for i := range c {
		c[i].Rank = i + 1
	}
}

// against is x over y, as one of so many comparisons. Where both were measured in the same rounds it is made from
// these; else, and for predictions, from the two intervals. It is wider by what bare metal differed from itself where
// the A/A check misses: two that are both far from bare metal may be no farther from each other than that.
func (a *adviser) against(x, y Choice, comparisons int) stats.Quotient {
	q := stats.Quotient{Value: x.Value / y.Value, Low: x.Low / y.High, High: x.High / y.Low}
	if !(y.Low > 0) {
		q.High = math.Inf(1)
	}
	if x.row == nil || y.row == nil {
		return q
	}
	if p := a.s.Ratio(x.row, y.row, stats.Alpha/float64(comparisons)); p.N > 0 {
		w := a.weight(x.Treatment) / a.weight(y.Treatment)
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

// why says in one sentence why the first is first.
func (a *adviser) why(r *Ranking) string {
	best := r.Choices[0]
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s %s", capital(best.Name), r.what(), r.figure(best))
	if r.unit() != "" {
		b.WriteString(" " + r.unit())
	}
	if best.Predicted && !r.defined(best) {
		b.WriteString(", predicted and not measured")
	}
	if best.Treatment.Platform != notebook.BM && !r.ByRatio && finite(best.RatioHigh) && finite(best.RatioLow) {
		fmt.Fprintf(&b, ", %s of bare metal", interval(best.Ratio, best.RatioLow, best.RatioHigh))
	}
	for i, other := range r.beside(best) {
		b.WriteString([]string{"; ", ", and "}[i])
		q := a.against(other, best, len(r.Choices)-1)
		q.Low = data.Floor(r.Metric, q.Low)
		word := map[Preference]string{Latency: "faster", Cost: "cheaper"}[a.o.Prefer]
		switch {
		case !q.HasInterval():
			fmt.Fprintf(&b, "%s cannot be told from it", other.Name)
		case q.Contains(1):
			fmt.Fprintf(&b, "%s cannot be told from it: %s of it", other.Name, interval(q.Value, q.Low, q.High))
		case q.Value < 1:
			fmt.Fprintf(&b, "%s takes %s of it, and is less simple", other.Name, interval(q.Value, q.Low, q.High))
		default:
			fmt.Fprintf(&b, "%s times %s than %s", interval(q.Value, q.Low, q.High), word, other.Name)
		}
	}
	if len(r.Choices) == 1 {
		b.WriteString("; nothing else can be ranked")
	}
	for _, n := range best.Notes {
		b.WriteString("; " + n)
	}
	b.WriteByte('.')
	return clean(b.String())
}

// defined says whether a choice's value needs neither measuring nor predicting: bare metal's ratio is 1.
func (r *Ranking) defined(c Choice) bool { return r.ByRatio && c.Treatment.Platform == notebook.BM }

// figure is what is ranked of a choice, with its interval.
func (r *Ranking) figure(c Choice) string {
	if r.defined(c) {
		return strconv.FormatFloat(c.Value, 'g', -1, 64) + " by definition"
	}
	return interval(c.Value, c.Low, c.High)
}

// beside are one or two that the best is held against in words, as far as there are any: the leader by the upper end,
// where another stands before it for being simpler; the same with the other provisioning; the first that can be told
// from the leader.
func (r *Ranking) beside(best Choice) []Choice {
	var all []Choice
	t := best.Treatment
	add := func(of func(Choice) bool) {
		i := slices.IndexFunc(r.Choices, func(c Choice) bool { return c.Rank != best.Rank && of(c) })
		if i >= 0 && len(all) < 2 && !slices.ContainsFunc(all, func(c Choice) bool { return c.Rank == r.Choices[i].Rank }) {
			all = append(all, r.Choices[i])
		}
	}
	add(func(c Choice) bool { return c.leads })
	add(func(c Choice) bool {
		o := c.Treatment
		return o.Platform == t.Platform && o.Engine == t.Engine && o.Accelerator == t.Accelerator && o.Network == t.Network &&
			o.Provisioning != t.Provisioning && o.Instance.SameSize(t.Instance)
	})
	add(func(c Choice) bool { return !c.Tied && c.Value > best.Value })
	if len(all) == 0 {
		add(func(Choice) bool { return true })
	}
	return all
}

// what is ranked, in words.
func (r *Ranking) what() string {
	what := r.Metric.Name
	if r.ByRatio {
		what = "overhead ratio"
	}
	if r.Prefer == Cost {
		return "cores × " + what
	}
	return what
}

// unit of what is ranked; empty where it has none.
func (r *Ranking) unit() string {
	switch {
	case r.ByRatio || r.Metric.Unit == "1":
		return ""
	case r.Prefer == Cost && r.Metric.Unit == "s":
		return "core-seconds"
	}
	return r.Metric.Unit
}
