package words

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"tare/desk/compare"
	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// workNames say what shipped workloads do, where their names do not.
var workNames = map[string]string{
	"cpu": "CPU-bound work", "ladder-cpu": "CPU-bound work", "ladder-syscall": "system calls", "ladder-io": "synced writes", "ladder-fork": "process creation",
	"ladder-fault": "page faults", "ladder-network": "network requests", "command": "this command", "ffmpeg": "FFmpeg", "wordpress": "WordPress", "cassandra": "Cassandra",
	"web": "this service", "postgres": "PostgreSQL", "redis": "Redis",
}

// pluralWork are the kinds of work whose names are plural.
var pluralWork = []string{"system calls", "synced writes", "page faults", "network requests"}

// mostSentences is how many sentences a headline has.
const mostSentences = 4

// spot is what the headline says about one place.
type spot struct {
	s        *data.Summary
	rows     []*data.Row
	t        tally
	families [][]*data.Row // of what can be ranked: rows that differ only in their limit
	work     string        // "CPU-bound work at 1 CPU, 1 GB"
	noun     string        // "CPU-bound work"
	networks bool
}

// spotted are the places that a headline speaks of, in their order.
func spotted(s *data.Summary) (told []*spot, more int) {
	places, _ := toCompare(s.Places())
	named := places
	if len(places) > mostSentences {
		named = foremost(places)
	}
	for _, rows := range named {
		p := spotOf(s, rows)
		at := rows[0].Treatment
		p.noun = cmp.Or(workNames[at.Workload], Plain(at.Workload))
		p.work = p.noun + p.apart(places) + measuring(s, rows[0])
		told = append(told, p)
	}
	return told, len(places) - len(told)
}

// spotOf is a place with what can be ranked there.
func spotOf(s *data.Summary, rows []*data.Row) *spot {
	p := &spot{s: s, rows: rows, networks: s.Networks(rows[0].Treatment.Workload)}
	p.t = tallied(rows, p.environment)
	p.rank(p.alternatives(p.t.ranked))
	return p
}

// rank sets the rows that the place ranks.
func (p *spot) rank(rows []*data.Row) {
	p.t.ranked = rows
	p.families = data.Together(rows, func(a, b *data.Row) bool {
		return a.Treatment.Variant() == b.Treatment.Variant() && (a.Treatment.Provisioning == b.Treatment.Provisioning || !p.limited(a))
	})
}

// instead returns findings for the environments whose own metric has no interval. It uses the first secondary metric that ranks any of them:
// throughput, for a service whose response times vary too much.
func (p *spot) instead() []string {
	for _, rows := range data.InFigures(p.rows) {
		q := spotOf(p.s, rows)
		q.rank(slices.DeleteFunc(q.t.ranked, func(r *data.Row) bool {
			return !slices.ContainsFunc(p.t.unbounded, func(o *data.Row) bool { return o.Treatment.ID == r.Treatment.ID })
		}))
		if len(q.t.ranked) > 0 {
			q.noun, q.work, q.t.unbounded = p.noun, p.work, nil
			found, _ := q.sentences()
			return found
		}
	}
	return nil
}

// alternatives are the rows that are compared with the reference in sentences. Beside a container or VM as the reference, bare metal is in
// the table only: whoever names such a reference chooses between containers and VMs.
func (p *spot) alternatives(ranked []*data.Row) []*data.Row {
	metal := func(r *data.Row) bool { return r.Treatment.Platform == notebook.BM }
	if len(p.s.Baseline) == 0 || slices.ContainsFunc(p.references(), metal) {
		return ranked
	}
	if rest := slices.DeleteFunc(slices.Clone(ranked), metal); len(rest) > 0 {
		return rest
	}
	return ranked
}

// apart is what tells the place from the others with the same workload: " (transaction=tpcb) at 1 CPU, 1 GB"; empty: there are no others.
func (p *spot) apart(places [][]*data.Row) (text string) {
	own := p.rows[0]
	var others []*data.Row
	for _, rows := range places {
		if rows[0] != own && rows[0].Treatment.Workload == own.Treatment.Workload {
			others = append(others, rows[0])
		}
	}
	if others == nil {
		return ""
	}
	assigned := maps.Clone(own.Treatment.Assigned())
	maps.DeleteFunc(assigned, func(name, value string) bool {
		return !slices.ContainsFunc(others, func(o *data.Row) bool { return o.Treatment.Assigned()[name] != value })
	})
	if len(assigned) > 0 {
		text = " (" + Plain(notebook.Assignments(assigned, ", ")) + ")"
	}
	size := func(r *data.Row) string { return join(", ", []string{Size(r.Treatment.Instance), Online(p.s, r)}) }
	if text == "" || slices.ContainsFunc(others, func(o *data.Row) bool { return size(o) != size(own) }) {
		text += " at " + size(own)
	}
	return text
}

func (p *spot) environment(r *data.Row) string { return Environment(r.Treatment, p.networks) }

// subject names a family: "Docker". Where the reference is of the same family, the limit tells the two apart: "Docker with --cpus".
func (p *spot) subject(r *data.Row) string {
	if p.limited(r) {
		return InSentence(r.Treatment, p.networks)
	}
	return join(", ", append([]string{product(r.Treatment, true)}, details(r.Treatment, p.networks)...))
}

// limited says whether the limit of a row is part of its name: the reference differs only in that.
func (p *spot) limited(r *data.Row) bool {
	return len(p.s.Baseline) > 0 && slices.ContainsFunc(p.references(), func(b *data.Row) bool { return b.Treatment.Variant() == r.Treatment.Variant() })
}

// by names the limit of a row to follow a figure, where the subject does not.
func (p *spot) by(r *data.Row) string {
	if p.limited(r) {
		return ""
	}
	return withLimit(r.Treatment)
}

// place says on which host, and against what where that is not bare metal.
func (p *spot) place() string {
	return p.against() + " on " + p.host() + " (95 % confidence)"
}

// host names the place's host, where there are several.
func (p *spot) host() string {
	if len(p.s.Hosts) > 1 {
		return Plain(p.rows[0].Host)
	}
	return "this host"
}

// onHost names the place's host where there are several: " on host-16".
func (p *spot) onHost() string {
	if len(p.s.Hosts) > 1 {
		return " on " + p.host()
	}
	return ""
}

// against names the reference where that is not bare metal of the same size.
func (p *spot) against() string {
	if len(p.s.Baseline) == 0 {
		return ""
	}
	return " compared with " + p.reference()
}

// compared begins a sentence with the reference where that is not bare metal of the same size.
func (p *spot) compared(sentence string) string {
	if len(p.s.Baseline) == 0 {
		return Capital(sentence)
	}
	return "Compared with " + p.reference() + ", " + sentence
}

// references are the rows that the place's are compared with.
func (p *spot) references() (all []*data.Row) {
	for _, r := range p.rows {
		if b := p.s.Base(r); b != nil && !slices.Contains(all, b) {
			all = append(all, b)
		}
	}
	return all
}

// reference names what the place is compared with: "bare metal", "Docker with --cpus". Its size is named where it is another one.
func (p *spot) reference() string {
	if len(p.s.Baseline) == 0 {
		return cmp.Or(phrases(p.rows[0]).Baseline, "bare metal")
	}
	names := data.Distinct(p.references(), func(b *data.Row) string {
		name := p.subject(b)
		if !b.Treatment.Instance.SameSize(p.rows[0].Treatment.Instance) {
			name += " at " + Size(b.Treatment.Instance)
		}
		return name
	})
	if len(names) == 0 {
		return Plain(notebook.ReferenceText(p.s.Baseline))
	}
	return List(names)
}

// worst is how much a row may cost at most, a share: the end of its interval.
func worst(r *data.Row) float64 {
	low, high := r.RatioLow, r.RatioHigh
	switch {
	case r.Metric.MoreIsBetter():
		return 1 - low
	case !r.Metric.Directed():
		return max(high-1, 1-low)
	}
	return high - 1
}

// bounded says whether the finding at the place is a bound: all that is ranked is equivalent.
func (p *spot) bounded() bool {
	if len(p.t.ranked) == 0 || len(p.t.unbounded) > 0 || phrases(p.t.ranked[0]).Answer != nil {
		return false
	}
	return !slices.ContainsFunc(p.t.ranked, func(r *data.Row) bool { return p.clear(r) || p.s.Verdict(r) != stats.Equivalent })
}

// clear says whether a row is known to be better or worse than a reference other than bare metal, by whatever amount. Whoever names such a
// reference chooses between the two, and needs to know which is better.
func (p *spot) clear(r *data.Row) bool {
	return len(p.s.Baseline) > 0 && direction(p.s, r) != ""
}

// direction is slower or faster where a row's interval excludes the reference, whatever the margin; otherwise "".
func direction(s *data.Summary, r *data.Row) stats.Verdict {
	c := r.Cost()
	switch {
	case s.Finding(r) == "" || r.Doubtful || r.Unreliable():
		return ""
	case c.Low > 1:
		return stats.Slower
	case c.High < 1:
		return stats.Faster
	}
	return ""
}

// subjects are the families in a sentence: "Docker and crun".
func (p *spot) subjects() (names string, several bool) {
	all := data.Distinct(p.t.ranked, p.subject)
	return Capital(List(all)), len(all) > 1
}

// atMost is the bound on what all that is ranked costs: "CPU-bound work by at most 1.2 %".
func (p *spot) atMost() (object string, none bool) {
	most := math.Inf(-1)
	for _, r := range p.t.ranked {
		most = max(most, worst(r))
	}
	return p.work + " by at most " + upwards(most), most <= 0
}

// boundVerb is what is done to work at most, with what precedes its name: "slows ", "lowers the bandwidth of ".
func boundVerb(r *data.Row, several bool) string {
	s := "s"
	if several {
		s = ""
	}
	switch {
	case phrases(r).Of != nil:
		return "raise" + s + " the" + phrases(r).Of(r) + " of "
	case r.Metric.MoreIsBetter():
		return "lower" + s + " the " + Called(r.Metric) + " of "
	case !r.Metric.Directed():
		return "change" + s + " the " + Called(r.Metric) + " of "
	case timed(r.Metric):
		return "slow" + s + " "
	}
	return "raise" + s + " the " + Called(r.Metric) + " of "
}

// timed says whether a metric is a time.
func timed(m notebook.Metric) bool {
	return slices.Contains([]string{"ns", "us", "µs", "ms", "s", "min", "h"}, m.Unit) && m.Directed() && !m.MoreIsBetter()
}

// upwards writes a share as per cent, rounded up so that the text never claims a lower bound than the data show.
func upwards(share float64) string {
	d := 1
	switch {
	case share >= 0.1:
		d = 0
	case share < 0.001:
		d = 2
	}
	return Outward(100*share, d, true) + " %"
}

// Outward writes a number with so many decimals, rounded up or down.
func Outward(v float64, decimals int, up bool) string {
	p := math.Pow(10, float64(decimals))
	if up {
		return Number(math.Ceil(v*p-1e-6)/p, decimals)
	}
	return Number(math.Floor(v*p+1e-6)/p, decimals)
}

// Headline is the finding of the folders, the most important sentence first, each with the intervals of the table.
func Headline(s *data.Summary) (all []string) {
	spots, more := spotted(s)
	if len(spots) == 0 {
		return []string{"Nothing was measured."}
	}
	if line := together(spots); line != "" {
		all = []string{line}
	} else {
		var open []string
		for _, p := range spots {
			found, not := p.sentences()
			all, open = append(all, found...), append(open, not...)
		}
		all = append(all, open...)
	}
	all = data.Distinct(all, func(line string) string { return line })
	if n := len(all) - mostSentences; n > 0 {
		all, more = all[:mostSentences], more+n
	}
	once(all, onlyEmulated)
	if more > 0 {
		all = append(all, "The tables below have "+Count(more, "more answer")+".")
	}
	if c := ofKernels(s); c != nil {
		all = slices.Insert(all, 0, Compared(c))
	}
	return all
}

// ofKernels compares the two kernels that the VMs of one folder had, where the folder has no other comparison; nil: it has, or has no two.
func ofKernels(s *data.Summary) *compare.Comparison {
	if len(s.Folders) != 1 || !onlyMeans(s) {
		return nil
	}
	c, err := compare.Kernels(s, s.Margin())
	if err != nil { // one kernel, or more than two
		return nil
	}
	return c
}

// once leaves a remark at the end of the last of the lines that have it.
func once(lines []string, remark string) {
	said := false
	for i, line := range slices.Backward(lines) {
		if rest, has := strings.CutSuffix(line, remark); has && said {
			lines[i] = rest
		} else {
			said = said || has
		}
	}
}

// together is one sentence for places at which the same environments cost a bounded share of times; empty: they need one each.
func together(spots []*spot) string {
	if len(spots) < 2 {
		return ""
	}
	names, several := spots[0].subjects()
	var objects []string
	for _, p := range spots {
		if other, _ := p.subjects(); !p.bounded() || other != names || p.rows[0].Host != spots[0].rows[0].Host || !timed(p.t.ranked[0].Metric) || phrases(p.t.ranked[0]).Of != nil {
			return ""
		}
		object, none := p.atMost()
		if none {
			return ""
		}
		objects = append(objects, object)
	}
	return names + " " + boundVerb(spots[0].t.ranked[0], several) + List(objects) + spots[0].place() + "."
}

// sentences are the findings at one place, and what is open there.
func (p *spot) sentences() (found, open []string) {
	if finding := phrases(p.rows[0]).Finding; finding != nil && p.t.good > 0 {
		if found = finding(Unranked{Work: p.noun, Host: p.host(), Rows: p.rows, Named: p.environment}); found != nil {
			return found, nil
		}
	}
	if line, varied := p.unanswered(); line != "" {
		if varied {
			open = p.instead()
		}
		if open != nil { // they come after what other places show by their own metric
			p.work = "the " + Called(p.rows[0].Metric) + " of " + p.work
			line, _ = p.unanswered()
		}
		return nil, append(open, line)
	}
	if found = p.own(); found == nil {
		found, open = p.each()
	}
	return append(found, p.instead()...), open
}

// own are the sentences of a kind of study, or the bound that holds for all environments of the place; nil: each needs its own.
func (p *spot) own() []string {
	first := p.t.ranked[0]
	if answer := phrases(first).Answer; answer != nil {
		at := Ranked{Work: p.noun, Rows: p.t.ranked, To: p.reference(), Named: func(r *data.Row) string { return p.subject(r) + p.by(r) }}
		if i := slices.IndexFunc(p.rows, (*data.Row).IsBaseline); i >= 0 {
			at.Base = p.rows[i]
		}
		if lines := answer(at); lines != nil {
			return lines
		}
	}
	if p.bounded() {
		names, several := p.subjects()
		object, none := p.atMost()
		if none && timed(first.Metric) && phrases(first).Of == nil {
			not := "does not slow "
			if several {
				not = "do not slow "
			}
			return []string{names + " " + not + p.work + p.place() + p.caveat(p.t.ranked) + "."}
		}
		return []string{names + " " + boundVerb(first, several) + object + p.place() + p.caveat(p.t.ranked) + "."}
	}
	return nil
}

// each are sentences about one environment after the other.
func (p *spot) each() (found, open []string) {
	var within, cannotTell []string
	var unsettled []*data.Row
	order := byFinding(p.s.Margin())
	for _, f := range p.families {
		slices.SortStableFunc(f, order)
	}
	slices.SortStableFunc(p.families, func(a, b []*data.Row) int { return order(a[0], b[0]) })
	for _, f := range p.families {
		var said, cannot, small []string
		for _, r := range f {
			switch v := p.s.Verdict(r); {
			case v == stats.Slower, v == stats.Faster, p.clear(r):
				said = append(said, p.differs(r))
			case v == stats.Equivalent:
				small = append(small, "by at most "+upwards(max(worst(r), 0))+p.by(r))
			case direction(p.s, r) != "":
				said = append(said, p.differs(r)+", not shown to be "+margin(p.s.Margin())+" or more")
			default:
				cannot, unsettled = append(cannot, p.couldBe(r)), append(unsettled, r)
			}
		}
		if said != nil {
			found = append(found, p.compared(p.work+leading(f[0])+p.subject(f[0])+p.onHost()+" "+strings.Join(said, ", and ")+p.caveat(f)+"."))
		}
		if small != nil {
			within = append(within, Capital(p.subject(f[0]))+" "+boundVerb(f[0], false)+p.work+" "+strings.Join(small, ", and ")+p.place()+".")
		}
		if cannot != nil {
			cannotTell = append(cannotTell, p.subject(f[0])+" "+strings.Join(data.Distinct(cannot, func(c string) string { return c }), ", and ")+p.caveat(f))
		}
	}
	if cannotTell != nil {
		open = append(open, p.compared("this run cannot tell for "+p.work+p.onHost()+": "+strings.Join(cannotTell, "; ")+".")+p.settles(unsettled))
	}
	return append(found, within...), open
}

// leading goes from the work to what runs it.
func leading(r *data.Row) string {
	if r.Treatment.Platform == notebook.BM {
		return " on "
	}
	return " in "
}

// caveat is what limits the figures of rows, to follow them.
func (p *spot) caveat(rows []*data.Row) string {
	for _, r := range rows {
		if c := Caveat(r); c != "" {
			return c
		}
	}
	return ""
}

// is and has agree with the work.
func (p *spot) is(one, many string) string {
	if slices.Contains(pluralWork, p.work) {
		return many
	}
	return one
}

// differs says by how much a row differs, with the row's own 95 % interval: "is 31 % slower with --cpus (27 to 35)".
func (p *spot) differs(r *data.Row) string {
	v, low, high := r.Ratio, r.RatioLow, r.RatioHigh
	if v >= 2 {
		d := Places(v, low, high)
		ends := " (" + timesSpan(low, high, d) + ")"
		what := " times as long"
		verb := p.is("takes ", "take ")
		if o := phrases(r); o.Times != nil {
			what, verb = o.Times(r), cmp.Or(o.Verb, "has")+" "
		} else if !timed(r.Metric) {
			what, verb = " times the "+Called(r.Metric), p.is("has ", "have ")
		}
		return verb + Number(v, d) + what + p.by(r) + ends
	}
	less := v < 1
	change, from, to := 100*(v-1), 100*(low-1), 100*(high-1)
	if less {
		change, from, to = -change, -to, -from
	}
	d := sidedPlaces(change, from, to, 2)
	ends := " (" + Number(from, d) + " to " + Number(to, d) + ")"
	said := Number(change, d) + " %"
	switch o := phrases(r); {
	case o.Of != nil:
		more := " more"
		if less {
			more = " less"
		}
		said = cmp.Or(o.Verb, "has") + " " + said + more + o.Of(r)
	case timed(r.Metric):
		said = p.is("is ", "are ") + said + map[bool]string{false: " slower", true: " faster"}[less]
	default:
		said = p.is("has ", "have ") + said + " " + comparative(r.Metric, less) + " " + Called(r.Metric)
	}
	return said + p.by(r) + ends
}

// wide is the ratio beyond which couldBe writes an inconclusive interval as factors, because large percentages are hard to read.
const wide = 2

// couldBe writes an inconclusive interval: "could be 3 % faster or 9 % slower with --cpus", or for a wide one "could take 0.4 to 3.1 times
// as long with --cpus".
func (p *spot) couldBe(r *data.Row) string {
	low, high := r.RatioLow, r.RatioHigh
	if low < 1.0/wide || high > wide {
		return p.couldTake(r)
	}
	lower, higher, be := " "+comparative(r.Metric, true), " "+comparative(r.Metric, false), "have"
	what := " " + Called(r.Metric)
	switch o := phrases(r); {
	case o.Of != nil:
		lower, higher, what, be = " less", " more", o.Of(r), "have"
	case timed(r.Metric):
		lower, higher, what, be = " faster", " slower", "", "be"
	}
	percent := func(share float64) string {
		if share >= 0.1 {
			return Number(100*share, 0) + " %"
		}
		return Number(100*share, 1) + " %"
	}
	return "could " + be + " " + percent(1-low) + lower + " or " + percent(high-1) + higher + what + p.by(r)
}

// couldTake writes an inconclusive interval as factors, without an end that is too uncertain to print.
func (p *spot) couldTake(r *data.Row) string {
	verb, what := "have", " times the "+Called(r.Metric)
	if o := phrases(r); o.Times != nil {
		what = o.Times(r)
		if o.Verb == "takes" {
			verb = "take"
		}
	} else if timed(r.Metric) {
		verb, what = "take", " times as long"
	}
	low, high := r.RatioLow, r.RatioHigh
	end := func(v float64) string {
		s := Digits(v, 2)
		if s == Digits(1, 2) { // which side it is on matters
			s = Digits(v, 3)
		}
		return s
	}
	between := end(low) + " to " + end(high)
	switch {
	case !(low > 1.0/vagueEnd) && high > vagueEnd:
		return "could differ by any factor" + p.by(r)
	case !(low > 1.0/vagueEnd):
		between = "at most " + end(high)
	case high > vagueEnd:
		between = "at least " + end(low)
	}
	return "could " + verb + " " + between + what + p.by(r)
}

// settles says what would settle rows, with the time that it takes, to follow what is not settled.
func (p *spot) settles(rows []*data.Row) string {
	s := p.s
	if c := s.Check(p.rows[0]).Resolution(); c > s.Margin() {
		return " It resolves differences of " + upwards(resolved(c, rows)) + ", more than the margin of " + margin(s.Margin()) + "."
	}
	more, enough := 0, true
	for _, r := range rows {
		n := s.Rounds(r) - r.RatioRounds
		if n <= 0 {
			return " More than " + Thousands(stats.MostRounds) + " rounds would be needed to settle it at ±" + margin(s.Margin()) + "."
		}
		more = max(more, n)
		enough = enough && n <= hopeless*r.RatioRounds
	}
	needed := "about " + Count(more, "more round") + in(s, more)
	if !enough {
		return " At this noise a verdict at ±" + margin(s.Margin()) + " is impractical: it would need " + needed + "."
	}
	return " At this noise " + needed + " would settle it at ±" + margin(s.Margin()) + "."
}

// resolved is the smallest difference that the rows can show, as a share: half of the widest of their intervals and of the A/A check's.
func resolved(check float64, rows []*data.Row) float64 {
	for _, r := range rows {
		if half := (r.RatioHigh - r.RatioLow) / 2; r.Quotient().HasInterval() && stats.Finite(half) && !(half <= check) {
			check = half
		}
	}
	return check
}

// in is the time that so many rounds take, in brackets.
func in(s *data.Summary, rounds int) string {
	if t := lasting(s, rounds); t != "" {
		return " (" + t + ")"
	}
	return ""
}

// lasting is the time that so many more rounds take by what the folders' rounds took: "7 min"; empty: not known.
func lasting(s *data.Summary, rounds int) string {
	if len(s.Folders) == 0 {
		return ""
	}
	each := s.Folders[len(s.Folders)-1].RoundS
	switch t := each * float64(rounds); {
	case !stats.Finite(t):
		return ""
	case t < 60:
		return fmt.Sprintf("%.0f s", math.Ceil(t))
	case t < 2*3600:
		return fmt.Sprintf("%.0f min", math.Ceil(t/60))
	default:
		return fmt.Sprintf("%.0f h", math.Ceil(t/3600))
	}
}

// unanswered says why nothing is known at the place, and what would help; empty: something is known. varied reports
// whether the reason is that the reference varied too much for an interval.
func (p *spot) unanswered() (line string, varied bool) {
	t := p.t
	to := p.reference()
	check := p.s.Check(p.rows[0])
	waiting := pending(p.rows)
	doubtful := slices.ContainsFunc(p.rows, func(r *data.Row) bool { return r.Doubtful })
	emulated := !slices.ContainsFunc(p.rows, func(r *data.Row) bool { return r.Representative && !beside(r) })
	virtual := slices.ContainsFunc(p.rows, func(r *data.Row) bool { return !r.Representative })
	switch {
	case t.trials == 0:
		return "Nothing was measured yet for " + p.work + "." + again(p.s), false
	case t.good == 0:
		return "Every run of " + p.work + " failed." + t.failed, false
	case t.good > 0 && t.open > 0 && t.lonely:
		return p.amounts(to), false
	case len(t.ranked) > 0:
		return "", false
	case emulated && virtual && !waiting:
		return p.emulated(), false
	case doubtful && check != nil:
		return "Do not use these figures yet: " + fromItself(*check) + ". More rounds show whether that is chance." + again(p.s), false
	case waiting && p.s.Folders[0].Rounds <= 1:
		return "Interrupted in round 1: nothing can be compared yet." + again(p.s), false
	case t.alone:
		return "Only " + to + " was measured for " + p.work + ": there is nothing to compare with it." + again(p.s), false
	case len(t.unbounded) > 0:
		return p.varied(), true
	case t.open > 0:
		return "One round gives no interval for " + p.work + ": at least two are needed." + again(p.s), false
	}
	return "Nothing can be compared for " + p.work + ": too many runs failed." + t.failed, false
}

// varied says that the reference varied too much for an interval.
func (p *spot) varied() string {
	if few := fewest(p.t.unbounded); few <= 3 {
		return Count(few, "round") + " are too few for an interval for " + p.work + ": " + p.reference() + " varied too much between them." + again(p.s)
	}
	return Capital(p.reference()) + " varied too much to give an interval for " + p.work + width(p.s.Check(p.rows[0])) + ". Try `tare doctor --noise`, or a longer workload."
}

// onlyEmulated follows figures of emulated VMs.
const onlyEmulated = " Compare these figures only with those of other emulated VMs: this host has no hardware virtualization."

// emulated are the figures of emulated VMs, which are compared with nothing but emulated VMs.
func (p *spot) emulated() string {
	if slices.ContainsFunc(p.rows, func(r *data.Row) bool { return r.Representative }) {
		return "Nothing is compared: the VMs were emulated, because this host has no hardware virtualization."
	}
	var all []string
	for _, r := range p.rows {
		if r.Rounds > 0 && !r.Unreliable() {
			all = append(all, p.environment(r)+": "+amountOr(r, Called(r.Metric)+" "+Mean(r)))
		}
	}
	return Capital(p.work) + ": " + firstFew(all) + "." + onlyEmulated
}

// amounts are the figures of a place without a reference.
func (p *spot) amounts(to string) string {
	var all []string
	for _, f := range amounts(p.rows, p.environment) {
		all = append(all, strings.TrimSuffix(f, "."))
	}
	return Capital(p.work) + ", without " + to + " to compare with: " + firstFew(all) + "."
}

// firstFew lists the figures of environments; of many, the first, and how many more there are.
func firstFew(all []string) string {
	const most = 3
	if n := len(all) - most; n > 0 {
		all = append(all[:most], Count(n, "more environment"))
	}
	return strings.Join(all, "; ")
}

// width says how wide a check's interval is, in brackets.
func width(a *data.AACheck) string {
	if v := a.Resolution(); stats.Finite(v) {
		return " (A/A check: ±" + upwards(v) + ")"
	}
	return ""
}

// again is the command that goes on with a folder, to follow a sentence.
func again(s *data.Summary) string {
	if c := Continue(s); c != "" {
		return " Continue: " + c
	}
	return ""
}

// CPUs counts CPUs, or parts of one: "1 CPU", "0.5 CPUs".
func CPUs(n float64) string {
	if n == 1 {
		return "1 CPU"
	}
	return fmt.Sprintf("%g CPUs", n)
}

// Size writes an instance type as users say it: "1 CPU, 1 GB".
func Size(i notebook.Instance) string {
	if i.Cores <= 0 || i.Memory <= 0 {
		return Plain(i.Name)
	}
	cpus := CPUs(i.Cores)
	if i.Memory < 1<<30 {
		return fmt.Sprintf("%s, %.4g MB", cpus, float64(i.Memory)/(1<<20))
	}
	return fmt.Sprintf("%s, %.4g GB", cpus, float64(i.Memory)/(1<<30))
}
