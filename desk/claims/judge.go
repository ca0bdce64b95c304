package claims

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// Judge gives every claim its verdict, in their order.
//
// The claims of a call are corrected for together: each of the K that have at least one comparison here, those that come to the same counted
// once, gets Alpha/K (Bonferroni), and its comparisons share that as their logic needs. What must all be shown is shown at the whole of
// it (intersection-union test); of what any one shows, each gets an equal part. Either way an interval decides only
// when it lies on one side. So the chance that a call has any false "holds here" or "does not hold here" is Alpha at
// most, whatever is true. Of a claim's two answers one is false, so one of its two tests can err, and gets the whole. Holm's steps, which
// test what is left at Alpha/(K−1), would break the promise: the claim that was decided has a true answer as before (TestHolm).
func Judge(s *data.Summary, all []Claim) []Verdict {
	j := newJudge(s)
	trees := make([]*node, len(all))
	needs := make([][]Selector, len(all))
	tested := map[any]bool{}
	for i, c := range all {
		trees[i], needs[i] = j.tree(c)
		if trees[i].compared() {
			tested[trees[i].test()] = true
		}
	}
	var vs []Verdict
	for i, c := range all {
		v := j.verdict(c, trees[i], stats.Alpha/float64(max(len(tested), 1)))
		v.Needs = needs[i]
		vs = append(vs, v)
	}
	return vs
}

// tree applies a claim's hypothesis to the measured rows, and returns the selectors that it needs. It uses the claim's own hypothesis, or an
// alternative's if more of that was measured.
func (j *judge) tree(c Claim) (best *node, needs []Selector) {
	for _, as := range append([]Claim{c}, c.Otherwise...) {
		j.without = as.Without
		n := j.build(as.Hypothesis)
		if best == nil || !best.compared() || n.compared() && n.unmeasured() < best.unmeasured() {
			best, needs = n, as.Hypothesis.needs()
		}
	}
	return best, needs
}

// unmeasured counts the comparisons that lack a side.
func (n *node) unmeasured() (all int) {
	if n.kind == absent && !n.seen {
		return 1
	}
	for _, k := range n.kids {
		all += k.unmeasured()
	}
	return all
}

type judge struct {
	sum     *data.Summary
	without []Exclusion        // of the claim that is being built
	varies  map[parameter]bool // has several values
	seen    map[asked]seen
}

// parameter is a parameter of a workload, or a factor of its treatments.
type parameter struct{ workload, name string }

// asked is a quantity of a row.
type asked struct {
	of       *data.Row
	quantity string // by the function named
}

// named is a quantity as a text, because its two lists are not comparable.
func named(q data.Quantity) string { return fmt.Sprintf("%q %q", q.Of, q.Per) }

// seen is a row with the values of a quantity instead of its metric's; why: it has none.
type seen struct {
	row *data.Row
	why data.Doubt
}

// of is the row with what a quantity was in it.
func (j *judge) of(r *data.Row, q data.Quantity) seen {
	if q.Own() {
		return seen{row: r}
	}
	key := asked{r, named(q)}
	s, known := j.seen[key]
	if !known {
		values, why := r.ValuesOf(q)
		s = seen{&data.Row{Values: values}, why}
		j.seen[key] = s
	}
	return s
}

func newJudge(s *data.Summary) *judge {
	j := &judge{sum: s, seen: map[asked]seen{}}
	j.variable()
	return j
}

// node is a hypothesis about the rows that are there: a comparison, one that cannot be made, or a logic over others.
type node struct {
	kind kind
	kids []*node
	cmp  *comparison
	why  []Gap // absent: the reasons
	seen bool  // absent: measured, but must not decide
	next bool  // absent: only trials that are still to come are missing; cmp is what they will compare
	out  bool  // absent: the paper leaves out all that there is
}

type kind int

const (
	every kind = iota
	some
	most // more than half
	leaf
	absent
)

// needs is how many of the node's children must be shown to show it (yes), or refuted to refute it.
func (n *node) needs(yes bool) int {
	all := len(n.kids)
	hold := map[kind]int{every: all, some: min(1, all), most: all/2 + 1}[n.kind]
	if yes {
		return hold
	}
	return all - hold + 1
}

// comparison is a value, a ratio or a difference, or one over another, with the bounds that it should lie in.
type comparison struct {
	terms
	said   Comparison
	bounds Region
	doubt  float64 // factor that bare metal differed from itself by, where the A/A check missed; else 1

	known map[float64]stats.Quotient // by alpha: the same interval is asked for many times
	ahead map[aim]float64            // for the same reason
}

// aim is to show a comparison (yes), or to refute it.
type aim struct {
	alpha float64
	yes   bool
}

// terms are what is compared.
type terms struct {
	by          By
	what        data.Quantity
	over, below pair           // below is zero where there is only one term; a pair's y is nil where it is a value
	whole       *data.Quantity // of below; nil: it is what, too
}

// lower is the quantity of what is below.
func (t *terms) lower() data.Quantity {
	if t.whole != nil {
		return *t.whole
	}
	return t.what
}

func missing(why ...Gap) *node { return &node{kind: absent, why: why} }

func lacks(why data.Doubt) Gap { return Gap{Reason: why} }

// add adds what is not there yet.
func add[T any](to []T, v T) []T {
	if slices.ContainsFunc(to, func(o T) bool { return reflect.DeepEqual(o, v) }) {
		return to
	}
	return append(to, v)
}

func (j *judge) build(h Hypothesis) *node {
	many := func(k kind, of []Hypothesis) *node {
		n := &node{kind: k}
		for _, h := range of {
			n.kids = append(n.kids, j.build(h))
		}
		return n
	}
	f := h.form()
	var what data.Quantity
	var to, than Selector
	if f.measured != nil {
		what = f.measured.quantity()
	}
	if f.to != nil {
		to = *f.to
	}
	if f.than != nil {
		than = *f.than
	}
	switch {
	case h.Unrecorded != "":
		return missing(lacks(Unrecorded{h.Unrecorded}))
	case h.Trend != nil:
		return j.each(*f.of, to, than, func(of, to, _ Selector) *node { return j.trend(of, to, what, h.Trend) })
	case f.name != "":
		return j.each(*f.of, to, than, func(of, to, than Selector) *node {
			var all []terms
			var about []Selector // that are needed for one
			switch f.name {
			case "value":
				all, about = j.values(of, what), []Selector{of}
			case "ratio":
				all, about = j.single(ByRatio, of, to, what), []Selector{of, of.over(to)}
			case "difference":
				all, about = j.single(ByDifference, of, to, what), []Selector{of, of.over(to)}
			case "removed":
				all, about = j.removed(of, to, what), []Selector{of, of.over(to), of.over(bareMetal)}
			case "part":
				all, about = j.part(of, to, what, data.Quantity{Of: h.Part.Whole}), []Selector{of, of.over(to)}
			case "gain":
				other := of.over(than)
				all, about = j.gain(of, to, than, what), []Selector{of, of.over(to), other, other.over(to)}
			}
			if all == nil {
				return j.nothing(what, about...)
			}
			var parts []sized
			for _, t := range all {
				parts = append(parts, sized{t.over.x, j.compare(t, f.bounds.region())})
			}
			return f.sizes.over(parts)
		})
	case h.Any != nil:
		return many(some, h.Any)
	case h.Most != nil:
		return many(most, h.Most)
	}
	return many(every, h.All)
}

// bareMetal is the default denominator of a ratio.
var bareMetal = Selector{Platform: Values{"bm"}}

// each goes through every choice that the selectors' lists leave: all of them must hold.
func (j *judge) each(of, to, than Selector, make func(of, to, than Selector) *node) *node {
	if to.empty() {
		to = bareMetal
	}
	n := &node{kind: every}
	for _, o := range of.each() {
		for _, t := range to.each() {
			for _, th := range than.each() {
				n.kids = append(n.kids, make(o, t, th))
			}
		}
	}
	// A finding about several is not about what the paper leaves out.
	out := func(k *node) bool { return k.out }
	if in := slices.DeleteFunc(slices.Clone(n.kids), out); len(in) > 0 {
		n.kids = in
	} else {
		n.out = true
	}
	return n
}

// sized is a part of a hypothesis at one size.
type sized struct {
	row  *data.Row
	node *node
}

// over brings parts together as the hypothesis' sizes say. The smallest size is the smallest at which the workload was
// measured in this way, on any host: what is the only size of a host need not be a small one.
func (s Sizes) over(parts []sized) *node {
	n := &node{kind: every}
	ends := map[string]*data.Row{}
	work := func(r *data.Row) string { return r.Treatment.Label() }
	for _, p := range parts {
		k := work(p.row)
		e := ends[k]
		if c := 0; e != nil {
			c = bySize(p.row.Treatment.Instance, e.Treatment.Instance)
			if s == Smallest && c >= 0 || s == Largest && c <= 0 {
				continue
			}
		}
		ends[k] = p.row
	}
	atSize := map[data.Size]*node{}
	for _, p := range parts {
		switch s {
		case Smallest, Largest:
			if bySize(p.row.Treatment.Instance, ends[work(p.row)].Treatment.Instance) != 0 {
				continue
			}
			n.kids = append(n.kids, p.node)
		case Some:
			n.kind = some
			key := data.SizeOf(p.row.Treatment.Instance)
			if atSize[key] == nil {
				atSize[key] = &node{kind: every}
				n.kids = append(n.kids, atSize[key])
			}
			atSize[key].kids = append(atSize[key].kids, p.node)
		default:
			n.kids = append(n.kids, p.node)
		}
	}
	return n
}

// values are each row by itself.
func (j *judge) values(of Selector, what data.Quantity) (all []terms) {
	var rows []pair
	for _, r := range j.rows(of) {
		rows = append(rows, pair{x: r})
	}
	for _, p := range withoutEmulated(asPublished(telling(rows, what))) {
		all = append(all, terms{by: ByValue, what: what, over: p})
	}
	return all
}

// telling leaves out the pairs that do not report a quantity where others do: of some kinds of study some ask for more than others, and those that do not say nothing of it.
func telling(pairs []pair, what data.Quantity) []pair {
	silent := func(p pair) bool {
		_, why := p.x.ValuesOf(what)
		_, silent := why.(data.NoSuchMetric)
		return silent && p.x.Traits().Partial
	}
	if slices.ContainsFunc(pairs, func(p pair) bool { return !silent(p) }) {
		return slices.DeleteFunc(pairs, silent)
	}
	return pairs
}

// asPublished leaves out the pairs that were measured otherwise than the publications have it where others were not: guests weighed with the host's huge pages,
// say, are of another size.
func asPublished(pairs []pair) []pair {
	departs := func(p pair) bool { return p.x.Traits().Departs }
	if slices.ContainsFunc(pairs, func(p pair) bool { return !departs(p) }) {
		return slices.DeleteFunc(pairs, departs)
	}
	return pairs
}

// single is each pair by itself.
func (j *judge) single(by By, of, to Selector, what data.Quantity) (all []terms) {
	for _, p := range asPublished(telling(j.pairs(of, to), what)) {
		all = append(all, terms{by: by, what: what, over: p})
	}
	return all
}

// removed is each pair's difference over what its first row costs more than bare metal.
func (j *judge) removed(of, to Selector, what data.Quantity) (all []terms) {
	for _, p := range j.pairs(of, to) {
		for _, bare := range j.rows(of.over(bareMetal)) {
			if bareMetal.fits(p.x, bare) {
				all = append(all, terms{by: ByDifference, what: what, over: p, below: pair{p.x, bare}})
			}
		}
	}
	return all
}

// part is each pair's difference over its difference in the whole.
func (j *judge) part(of, to Selector, what, whole data.Quantity) (all []terms) {
	for _, p := range j.pairs(of, to) {
		all = append(all, terms{by: ByDifference, what: what, over: p, below: p, whole: &whole})
	}
	return all
}

// gain is each pair over the same of other treatments.
func (j *judge) gain(of, to, than Selector, what data.Quantity) (all []terms) {
	other, its := of.over(than), to
	if len(its.Platform)+len(its.Machine) == 0 {
		its.Machine = other.Machine // a VM gains over the same VM, provisioned otherwise
	}
	for _, p := range j.pairs(of, to) {
		for _, q := range j.pairs(other, its) {
			if than.fits(p.x, q.x) {
				all = append(all, terms{by: ByRatio, what: what, over: p, below: q})
			}
		}
	}
	return all
}

// nothing is where no comparison could be made of what these selectors choose: because of the first of them that is
// not there, which is reason enough.
func (j *judge) nothing(what data.Quantity, of ...Selector) *node {
	var all []Selector
	for _, s := range of {
		s = j.known(s)
		if why := j.absence(s, what); why != nil {
			n := missing(why...)
			n.out = j.leavesOut(s) != ""
			return n
		}
		all = add(all, s)
	}
	return missing(lacks(NotTogether{all}))
}

// trend makes one part of everything that differs only on the axis.
func (j *judge) trend(of, to Selector, what data.Quantity, t *Trend) *node {
	by := cmp.Or(t.By, ByRatio)
	var pairs []pair
	about := []Selector{of}
	if by == ByValue {
		for _, v := range j.values(of, what) {
			pairs = append(pairs, v.over)
		}
	} else {
		pairs, about = j.pairs(of, to), append(about, of.over(to))
	}
	lines := j.lines(pairs, t.Over, oneHost)
	if t.Over == OverHostCores && lines == nil {
		lines = j.lines(pairs, t.Over, j.alike)
	}
	if lines == nil {
		if len(pairs) == 0 {
			return j.nothing(what, about...)
		}
		return missing(lacks(j.noTrend(pairs, j.known(of), t.Over)))
	}
	var parts []sized
	for _, line := range lines {
		parts = append(parts, sized{line[0].x, j.steps(line, by, what, t)})
	}
	if t.Over == OverInstance {
		return Each.over(parts)
	}
	return t.Sizes.over(parts)
}

// mostPairs is the largest number of pairs of hosts that a step of a trend compares. If there are more, each host takes part in at least one pair, so
// that Tare can read thousands of hosts.
const mostPairs = 100

// steps are the comparisons that a trend along a line makes.
func (j *judge) steps(line []pair, by By, what data.Quantity, t *Trend) *node {
	steps := &node{kind: every}
	add := func(later, earlier []pair, bounds Region) {
		compare := func(l, e int) {
			steps.kids = append(steps.kids, j.compare(terms{by: by, what: what, over: later[l], below: earlier[e]}, bounds))
		}
		if len(later)*len(earlier) > mostPairs {
			for i := range max(len(later), len(earlier)) {
				compare(i%len(later), i%len(earlier))
			}
			return
		}
		for l := range later {
			for e := range earlier {
				compare(l, e)
			}
		}
	}
	places := atEachPlace(line, t.Over)
	end := len(places) - 1
	for i := range places[:end] {
		switch {
		case t.Constant > 0: // no two of them differ by more
			for _, p := range places[i+1:] {
				add(p, places[i], equal(t.Constant))
			}
		case end == 1: // the one step is the whole way
		case t.Falls > 0:
			add(places[i+1], places[i], noRise(t.Falls))
		default:
			add(places[i+1], places[i], noFall(t.Rises))
		}
	}
	switch {
	case t.Falls > 0:
		add(places[end], places[0], lower(t.Falls))
	case t.Rises > 0:
		add(places[end], places[0], higher(t.Rises))
	}
	return steps
}

// atEachPlace divides a line by the places on its axis. Hosts with the same number of cores are not compared with each other. On other axes each
// pair has a place of its own, because sizes may differ only in their memory.
func atEachPlace(line []pair, over string) (places [][]pair) {
	for i, p := range line {
		if over == OverHostCores && i > 0 && p.x.HostCores == line[i-1].x.HostCores {
			places[len(places)-1] = append(places[len(places)-1], p)
			continue
		}
		places = append(places, []pair{p})
	}
	return places
}

// noTrend says why pairs of one or several hosts make no line.
func (j *judge) noTrend(pairs []pair, of Selector, over string) data.Doubt {
	x := pairs[0].x
	if over == OverInstance {
		return NeedsTwo{Of: of, Over: over, Here: x.Treatment.Instance.Name}
	}
	at, _ := position(over, x)
	d := NeedsTwo{Of: of, Over: over, Here: strconv.FormatFloat(at, 'g', -1, 64)}
	if over != OverHostCores {
		return d
	}
	d.Cores, d.CPU = x.Treatment.Instance.Cores, j.sum.HostOf(x.HostID).CPUModel
	for _, anyCPU := range []bool{false, true} {
		lines := j.lines(pairs, over, func(id *data.Identity) {
			id.Digest, id.Input = "", ""
			if j.alike(id); anyCPU {
				id.HostID = ""
			}
		})
		if lines == nil {
			continue
		}
		u := UnlikeHosts{Of: of, Images: !anyCPU}
		for _, p := range lines[0] {
			u.Hosts = add(u.Hosts, UnlikeHost{p.x.HostCores, j.sum.HostOf(p.x.HostID).CPUModel})
		}
		return u
	}
	return d
}

// oneHost keeps each line on one host.
func oneHost(*data.Identity) {}

// alike lets a line include all hosts with the same CPU model.
func (j *judge) alike(id *data.Identity) {
	id.HostID = cmp.Or(j.sum.HostOf(id.HostID).CPUModel, id.HostID)
}

// lines groups pairs that differ only in their place on the axis, and sorts them by it. Those with fewer than two places are not lines. The
// function widen removes what may differ within a line from an identity.
func (j *judge) lines(pairs []pair, over string, widen func(*data.Identity)) [][]pair {
	key := func(r *data.Row) data.Identity {
		t := r.Treatment.Without(over)
		id := data.Identity{
			HostID: r.HostID, Workload: t.Workload, Assigned: data.Assigned(t), Digest: r.Image.Digest, Input: r.Image.Input,
			Variant: t.Variant(), Provisioning: t.Provisioning, Size: data.SizeOf(t.Instance), HostCores: r.HostCores,
		}
		switch over {
		case OverInstance:
		case OverHostCores:
			id.HostCores = 0
			widen(&id)
		default:
			id.Digest, id.Input = "", "" // the parameter may decide how the image is made
		}
		return id
	}
	type line struct{ x, y data.Identity }
	var order []line
	lines := map[line][]pair{}
	for _, p := range pairs {
		if _, ok := position(over, p.x); !ok {
			continue
		}
		k := line{x: key(p.x)}
		if p.y != nil {
			k.y = key(p.y)
		}
		if lines[k] == nil {
			order = append(order, k)
		}
		lines[k] = append(lines[k], p)
	}
	var all [][]pair
	for _, k := range order {
		line := lines[k]
		at := func(p pair) float64 { v, _ := position(over, p.x); return v }
		slices.SortStableFunc(line, func(a, b pair) int {
			return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(a.x.Treatment.Instance.Memory, b.x.Treatment.Instance.Memory))
		})
		if at(line[0]) < at(line[len(line)-1]) {
			all = append(all, line)
		}
	}
	return all
}

// compare makes the comparison, or says why it must not be made.
func (j *judge) compare(t terms, bounds Region) *node {
	c := &comparison{terms: t, bounds: bounds, doubt: 1, known: map[float64]stats.Quotient{}, ahead: map[aim]float64{}}
	c.said.What, c.said.Over, c.said.Whole = t.what, j.term(t.by, t.over), t.whole
	if t.below.x != nil {
		below := j.term(t.by, t.below)
		c.said.Below = &below
	}
	var why []Gap
	for _, r := range c.rows() {
		if u := unfit(r, t.what); u != nil {
			why = add(why, lacks(u))
		}
	}
	if why != nil {
		later := !slices.ContainsFunc(why, func(g Gap) bool { _, is := g.Reason.(Unmeasured); return !is })
		return &node{kind: absent, why: why, seen: c.measured(j), next: later, cmp: c}
	}
	for _, q := range c.quantities() {
		for _, r := range c.rows() {
			switch none := j.of(r, q).why.(type) {
			case nil:
			case data.NotTraced: // as it is for most treatments of a folder
				why = add(why, lacks(none))
			default:
				why = add(why, lacks(NoValue{r.Treatment, none}))
			}
		}
	}
	if why != nil {
		return missing(why...)
	}
	if c.estimate(j, stats.Alpha).N == 0 {
		return &node{kind: absent, why: []Gap{lacks(NoCommonRound{c.said})}, next: true, cmp: c}
	}
	// What fails is mostly what would have been slow: whoever reads the verdict has to know.
	for _, r := range c.rows() {
		if r.Failed > 0 {
			c.said.Failed = append(c.said.Failed, Failed{r.Treatment, r.Failed, r.Trials})
		}
	}
	if c.acrossHosts() {
		c.said.Unlike = j.sum.Unlike([]string{t.below.x.HostID, t.over.x.HostID})
	}
	c.doubt = j.sum.Doubt(t.over.x)
	if t.below.x != nil {
		c.doubt *= j.sum.Doubt(t.below.x)
	}
	return &node{kind: leaf, cmp: c}
}

// acrossHosts says whether a ratio on one host is compared with one on another.
func (c *comparison) acrossHosts() bool {
	return c.below.x != nil && c.below.x.HostID != c.over.x.HostID
}

func (c *comparison) rows() (all []*data.Row) {
	for _, r := range []*data.Row{c.over.x, c.over.y, c.below.x, c.below.y} {
		if r != nil && !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	return all
}

// quantities are those that are compared.
func (c *comparison) quantities() []data.Quantity {
	if c.whole == nil {
		return []data.Quantity{c.what}
	}
	return []data.Quantity{c.what, *c.whole}
}

// measured says whether there are figures of all, and at most an A/A check speaks against them. Such a comparison
// counts as tested, or what is tested would depend on what came out.
func (c *comparison) measured(j *judge) bool {
	return !slices.ContainsFunc(c.rows(), func(r *data.Row) bool {
		return !representative(r, c.what) || r.Rounds == 0 || r.LoadShared || slices.ContainsFunc(c.quantities(), func(q data.Quantity) bool { return j.of(r, q).why != nil })
	})
}

// alpha is how often an interval may miss, at either end, of which the test that shows the comparison (yes) or refutes it may err in a share
// alpha. Only one end can make it err, where there is one bound, or where the interval must lie between two: it may miss there as often
// as others do at both (two one-sided tests). A ratio of differences is left out: its interval turns around where the lower one changes its sign.
func (c *comparison) alpha(alpha float64, yes bool) float64 {
	oneEnd := yes || math.IsInf(c.bounds.Low, -1) || math.IsInf(c.bounds.High, 1)
	if oneEnd && !(c.by == ByDifference && c.below.x != nil) {
		return 2 * alpha
	}
	return alpha
}

// estimate is what the comparison comes to, with an interval that may miss in a share alpha.
func (c *comparison) estimate(j *judge, alpha float64) stats.Quotient {
	q, ok := c.known[alpha]
	if !ok {
		q = c.quotient(j, alpha)
		c.known[alpha] = q
	}
	return q
}

// quotient works it out. Differences are made within each round, and a difference over another is a ratio of two such
// (Fieller, as all ratios). A ratio over a ratio has the interval that two intervals at alpha/2 leave: that is right
// however they depend on each other, and needs no more than [data.Summary.Ratio]. Ratios on two hosts are independent, so their interval is
// [data.Summary.Relative]. A row that stands on both sides is cancelled first.
func (c *comparison) quotient(j *judge, alpha float64) stats.Quotient {
	s := j.sum
	of := func(r *data.Row) *data.Row { return j.of(r, c.what).row }
	less := func(p pair, q data.Quantity) *data.Row {
		return &data.Row{Values: data.Minus(j.of(p.x, q).row.Values, j.of(p.y, q).row.Values)}
	}
	mean := func(r *data.Row) stats.Quotient { return s.Mean(r, alpha).Quotient() }
	a, b := c.over, c.below
	switch {
	case c.by == ByValue && b.x == nil:
		return mean(of(a.x))
	case c.by == ByValue:
		return s.Ratio(of(a.x), of(b.x), alpha)
	case c.by == ByDifference && b.x == nil:
		return mean(less(a, c.what))
	case c.by == ByDifference:
		return s.Ratio(less(a, c.what), less(b, c.lower()), alpha)
	case b.x == nil:
		return s.Ratio(of(a.x), of(a.y), alpha)
	case a.y == b.y:
		return s.Ratio(of(a.x), of(b.x), alpha)
	case a.x == b.x:
		return s.Ratio(of(b.y), of(a.y), alpha)
	case c.acrossHosts():
		return s.Relative(of(a.x), of(a.y), of(b.x), of(b.y), alpha)
	}
	p, q := s.Ratio(of(a.x), of(a.y), alpha/2), s.Ratio(of(b.x), of(b.y), alpha/2)
	out := stats.Quotient{Value: p.Value / q.Value, Low: math.Inf(-1), High: math.Inf(1), N: min(p.N, q.N)}
	switch {
	case math.IsNaN(p.Low) || math.IsNaN(q.Low):
		out.Low, out.High = math.NaN(), math.NaN()
	case p.HasInterval() && q.HasInterval() && p.Low >= 0 && q.Low > 0:
		out.Low, out.High = p.Low/q.High, p.High/q.Low
	}
	return out
}

// unit is that of what the comparison comes to.
func (c *comparison) unit() string {
	if c.by == ByRatio || c.below.x != nil {
		return ""
	}
	return c.what.Unit(c.over.x)
}

// met says where the interval lies, widened by what bare metal differed from itself. How much wider a difference would
// have to be, a factor does not say: such a host decides none.
func (c *comparison) met(q stats.Quotient) Met {
	low, high := q.Low/c.doubt, q.High*c.doubt
	switch {
	case c.by == ByDifference && c.doubt != 1:
		return Open
	case !q.HasInterval() || math.IsNaN(low) || math.IsNaN(high):
		return Open
	case c.bounds.Low <= low && high <= c.bounds.High:
		return Yes
	case high < c.bounds.Low || c.bounds.High < low:
		return No
	}
	return Open
}

// compared says whether anything was measured that the node is about.
func (n *node) compared() bool {
	return n.kind == leaf || n.kind == absent && n.seen || slices.ContainsFunc(n.kids, (*node).compared)
}

// comparisonTest identifies the test of a comparison.
type comparisonTest struct {
	by          By
	what, lower string // by the function named
	over, below pair
	bounds      Region
}

// logicTest identifies the test of a logic over other tests: the last of these, and all before it.
type logicTest struct {
	kind         kind
	before, last any // tests; before is nil if there are none
}

// test identifies the test of a measured node, by a comparable value. Nodes with the same test use the same intervals, and so are wrong
// together.
func (n *node) test() any {
	switch c := n.cmp; n.kind {
	case leaf:
		return comparisonTest{c.by, named(c.what), named(c.lower()), c.over, c.below, c.bounds}
	case absent:
		return n
	}
	var tests []any
	for _, k := range n.kids {
		if k.compared() {
			tests = append(tests, k.test())
		}
	}
	if len(tests) == 1 {
		return tests[0]
	}
	var all any
	for _, t := range tests {
		all = logicTest{n.kind, all, t}
	}
	return all
}

// share says what each child gets of alpha when the node is to be shown (yes) or refuted. Where k of the n children that can show anything must
// do so, each gets alpha/(n−k+1): all of them get the whole, and where any one is enough, it is divided. If fewer than k are true, at least n−k+1
// are false. Of d+j false ones, with d = n−k, at least j must err, which happens in at most (d+j)/(d+1)/j of alpha (a partial conjunction test).
func (n *node) share(alpha float64, yes bool) float64 {
	able := 0
	for _, k := range n.kids {
		if k.compared() {
			able++
		}
	}
	return alpha / float64(max(able-n.needs(yes)+1, 1))
}

// holds says what the node's logic makes of the verdicts of its comparisons: whether it is shown (yes), or refuted.
func (n *node) holds(alpha float64, yes bool, said func(c *comparison, alpha float64) bool) bool {
	switch n.kind {
	case leaf:
		return said(n.cmp, alpha)
	case absent:
		return n.next && said(n.cmp, alpha)
	}
	part, missing := n.share(alpha, yes), n.needs(yes)
	for _, k := range n.kids {
		if missing > 0 && k.holds(part, yes, said) {
			missing--
		}
	}
	return len(n.kids) > 0 && missing <= 0
}

// shown says whether intervals at alpha show the node (yes) or refute it.
func (j *judge) shown(n *node, alpha float64, yes bool) bool {
	return n.holds(alpha, yes, func(c *comparison, alpha float64) bool { return j.decides(c, alpha, yes) })
}

// decides says whether a comparison's interval lies within its bounds (yes), or outside.
func (j *judge) decides(c *comparison, alpha float64, yes bool) bool {
	met := c.met(c.estimate(j, c.alpha(alpha, yes)))
	return c.able(yes) && (yes && met == Yes || !yes && met == No)
}

// able says whether an interval could ever show the comparison (yes) or refute it. A value that is a lower bound shows that there is at least so
// much, and refutes that there is at most so much. Where two such values are compared, a difference may be shown: it is refuted by none, since
// what was not counted may be that difference.
func (c *comparison) able(yes bool) bool {
	if !c.what.Undercounted() {
		return true
	}
	value := c.by == ByValue && c.below.x == nil
	if yes {
		return !value || math.IsInf(c.bounds.High, 1)
	}
	return value && math.IsInf(c.bounds.Low, -1)
}

// could says whether more rounds could show the node (yes), or refute it, with the comparisons that can be made. What
// an A/A check that misses stands against is done only where it is clear of it already.
func (j *judge) could(n *node, alpha float64, yes bool) bool {
	return n.holds(alpha, yes, func(c *comparison, alpha float64) bool {
		return c.able(yes) && c.doubt == 1 || j.decides(c, alpha, yes)
	})
}

// looks says whether the estimates, if they were exact, would show the node.
func (j *judge) looks(n *node) bool {
	return n.holds(stats.Alpha, true, func(c *comparison, _ float64) bool {
		q := c.estimate(j, stats.Alpha)
		return c.bounds.Low <= q.Value && q.Value <= c.bounds.High
	})
}

// evidence lists the comparisons beneath n, each with the interval that it had a part in the verdict with.
func (j *judge) evidence(n *node, alpha float64, yes bool) (all []judged) {
	if n.kind == leaf {
		c := n.cmp
		miss := c.alpha(alpha, yes)
		q := c.estimate(j, miss)
		e := Evidence{
			Comparison: c.said, Emulated: slices.ContainsFunc(c.rows(), func(r *data.Row) bool { return !r.Representative }),
			Estimate: q.Value, Unit: c.unit(), Low: q.Low, High: q.High, Level: 1 - miss, Rounds: q.N, Wanted: c.bounds, Met: c.met(q),
		}
		return []judged{{e, c, alpha}}
	}
	part := n.share(alpha, yes)
	for _, k := range n.kids {
		all = append(all, j.evidence(k, part, yes)...)
	}
	return all
}

type judged struct {
	Evidence
	cmp   *comparison
	alpha float64
}

// absences are the reasons beneath n, each once.
func (n *node) absences() (why []Gap) {
	if n.kind == absent {
		for _, g := range n.why {
			why = add(why, g)
		}
	}
	for _, k := range n.kids {
		for _, g := range k.absences() {
			why = add(why, g)
		}
	}
	return why
}

func (j *judge) verdict(c Claim, n *node, alpha float64) Verdict {
	v := Verdict{Claim: c, Missing: n.absences(), Tested: n.compared(), Deciding: -1}
	yes := true
	switch {
	case j.shown(n, alpha, true):
		v.Answer = Holds
	case j.shown(n, alpha, false):
		v.Answer, yes = DoesNotHold, false
	case j.could(n, alpha, true) && j.could(n, alpha, j.looks(n)):
		v.Answer, yes = NotDecided, j.looks(n)
	default:
		v.Answer = NotTestable
	}
	js := j.evidence(n, alpha, yes)
	switch v.Answer {
	case NotDecided:
		v.wait(j.rounds(n, alpha, yes))
		if len(js) == 0 {
			v.Answer = NotTestable // as yet
		}
	case NotTestable: // some part of it may yet refute it, or be enough
		for _, way := range []bool{true, false} {
			more, waits := j.rounds(n, alpha, way)
			if math.IsInf(more, 1) { // unless nothing is known of it yet
				waits = slices.DeleteFunc(waits, func(c *comparison) bool { return c.estimate(j, stats.Alpha).N > 1 })
			}
			if len(waits) > 0 && j.could(n, alpha, way) {
				v.wait(more, waits)
			}
		}
	}
	for _, e := range js {
		v.Evidence = append(v.Evidence, e.Evidence)
		if e.cmp.doubt > 1 && (e.Met == Open || v.Answer == NotTestable && e.Met == No) {
			v.Missing = add(v.Missing, lacks(Unsteady{e.cmp.doubt, j.place(e.cmp.over.x)}))
		}
		if v.Answer == NotTestable && e.cmp.what.Undercounted() {
			v.Missing = add(v.Missing, lacks(LowerBound{e.cmp.what}))
		}
	}
	j.decide(&v, js, yes)
	v.containers(js)
	return v
}

// wait notes what would decide it.
func (v *Verdict) wait(more float64, for_ []*comparison) {
	if !math.IsInf(more, 1) {
		v.More = int(more)
	}
	for _, c := range for_ {
		for _, r := range c.rows() {
			v.Waits = add(v.Waits, r.Treatment)
		}
	}
}

// containers notes at which share of the host containers were judged.
func (v *Verdict) containers(js []judged) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, e := range js {
		for _, r := range e.cmp.rows() {
			if r.Treatment.Platform == notebook.CN && r.CHR > 0 {
				low, high = min(low, r.CHR), max(high, r.CHR)
			}
		}
	}
	if low <= high {
		v.CHRLow, v.CHRHigh = low, high
	}
}

// decide finds the comparison that a verdict rests on.
func (j *judge) decide(v *Verdict, js []judged, yes bool) {
	of := func(m Met) (some []int) {
		for i, e := range js {
			if e.Met == m {
				some = append(some, i)
			}
		}
		return some
	}
	far := func(i int) float64 { return js[i].cmp.bounds.distance(js[i].Low, js[i].High) }
	byDistance := func(i, k int) int { return cmp.Compare(far(i), far(k)) }
	switch v.Answer {
	case Holds:
		some := of(Yes)
		v.Deciding, v.Alike = slices.MinFunc(some, byDistance), len(some)
	case DoesNotHold:
		some := of(No)
		v.Deciding, v.Alike = slices.MaxFunc(some, byDistance), len(some)
	case NotDecided:
		open := of(Open)
		v.Alike = len(open)
		if len(open) == 0 {
			for i := range js {
				open = append(open, i)
			}
		}
		// What is to be shown waits for the slowest comparison; to refute it the quickest is enough.
		v.Deciding = open[0]
		needs := j.enough(js[open[0]].cmp, js[open[0]].alpha, yes)
		for _, i := range open[1:] {
			if n := j.enough(js[i].cmp, js[i].alpha, yes); yes && n > needs || !yes && n < needs {
				v.Deciding, needs = i, n
			}
		}
	}
}

// distance is how far an interval is from the region's nearest bound, on either side.
func (r Region) distance(low, high float64) float64 {
	d := math.Inf(1)
	for _, b := range []float64{r.Low, r.High} {
		if b == 0 || math.IsInf(b, 0) {
			continue
		}
		for _, end := range []float64{low, high} {
			d = min(d, math.Abs((end-b)/b))
		}
	}
	return d
}

// few is how many rounds of a comparison leave open whether it is the quickest of several.
const few = 6

// rounds is about how many more rounds would show the node (yes) or refute it, if the estimates and the noise stay, and the comparisons that
// this waits for: all, or where one is enough the quickest, and those about which little is known yet. +Inf: that is not foreseeable.
func (j *judge) rounds(n *node, alpha float64, yes bool) (more float64, waits []*comparison) {
	switch n.kind {
	case leaf:
		if more = j.enough(n.cmp, alpha, yes); more > 0 {
			waits = []*comparison{n.cmp}
		}
		return more, waits
	case absent:
		if n.next {
			waits = []*comparison{n.cmp}
		}
		return math.Inf(1), waits
	}
	part, needs := n.share(alpha, yes), n.needs(yes)
	type child struct {
		more  float64
		waits []*comparison
	}
	var kids []child
	for _, k := range n.kids {
		r, of := j.rounds(k, part, yes)
		kids = append(kids, child{r, of})
		waits = append(waits, of...)
	}
	slices.SortStableFunc(kids, func(a, b child) int { return cmp.Compare(a.more, b.more) })
	switch {
	case needs > len(kids):
		more = math.Inf(1)
	case needs > 0:
		more = kids[needs-1].more
	}
	if needs < len(kids) && !math.IsInf(more, 1) { // the quickest are enough
		var quickest []*comparison
		for _, k := range kids[:needs] {
			quickest = append(quickest, k.waits...)
		}
		waits = slices.DeleteFunc(waits, func(c *comparison) bool { return !slices.Contains(quickest, c) && c.estimate(j, stats.Alpha).N >= few })
	}
	return more, waits
}

// enough is about how many more rounds would bring the comparison's interval within its bounds (yes), or out of them.
func (j *judge) enough(c *comparison, alpha float64, yes bool) (more float64) {
	if more, known := c.ahead[aim{alpha, yes}]; known {
		return more
	}
	defer func() { c.ahead[aim{alpha, yes}] = more }()
	if j.decides(c, alpha, yes) {
		return 0
	}
	if !c.able(yes) {
		return math.Inf(1)
	}
	// An interval of one standard deviation, however often one looks, tells the spread: a sure one may be cut off at 0, or have no bounds.
	easy := 0.32 * stats.Alpha / (1 - j.sum.Sure(c.over.x, stats.Alpha).Level())
	q := c.estimate(j, easy)
	if !q.HasInterval() {
		return math.Inf(1)
	}
	made, sure := j.sum.Sure(c.over.x, easy), j.sum.Sure(c.over.x, c.alpha(alpha, yes))
	until := func(half, narrow float64) float64 {
		if math.IsInf(narrow, 1) { // no bound is on that side
			return 1
		}
		if n := stats.Foresee(q.N, half, made, narrow, sure); n > 0 && narrow > 0 {
			return float64(n - q.N)
		}
		return math.Inf(1)
	}
	b, v := c.bounds, q.Value
	low, high := v-q.Low, q.High-v
	switch {
	case yes:
		return max(until(low, v-b.Low), until(high, b.High-v))
	case v < b.Low:
		return until(high, b.Low-v)
	case v > b.High:
		return until(low, v-b.High)
	}
	return math.Inf(1)
}

// needs are the treatments that a hypothesis is about, each once.
func (h Hypothesis) needs() []Selector {
	var out []Selector
	pair := func(of, to Selector) {
		if to.empty() {
			to = bareMetal
		}
		for _, o := range of.each() {
			out = add(out, o)
			for _, t := range to.each() {
				out = add(out, o.over(t))
			}
		}
	}
	for _, p := range h.kids() {
		for _, s := range p.needs() {
			out = add(out, s)
		}
	}
	switch f := h.form(); {
	case f.of == nil:
	case f.to == nil:
		for _, o := range f.of.each() {
			out = add(out, o)
		}
	default:
		pair(*f.of, *f.to)
		if f.than != nil {
			for _, than := range f.than.each() {
				pair(f.of.over(than), *f.to)
			}
		}
		if f.name == "removed" {
			pair(*f.of, bareMetal)
		}
	}
	return out
}
