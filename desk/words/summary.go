package words

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// rung says whether a row is a layer of the isolation ladder and not a whole container.
func rung(r *data.Row) bool {
	return r.Treatment.Isolation != "" && r.Treatment.Isolation != notebook.IsolationFull && !r.IsBaseline()
}

// beside says whether a row is there to be compared with others: the baseline, or bare metal again.
func beside(r *data.Row) bool { return r.IsBaseline() || r.Treatment.AA }

// Answer is what folders say, in the order of what matters to a choice.
type Answer struct {
	Statements []Statement
	Remarks    []string // what must be known of all of it, in sentences
}

// Statement is the answer at one place. Where nothing can be said of it, the lead says why, and there are no findings.
type Statement struct {
	Lead     string   // ends in a colon where findings follow
	Findings []string // one for each platform: what costs how much, then what makes no difference, then what is open and what would settle it
}

// How many places the answer names, and findings of each; the table has them all.
const (
	mostStatements = 2
	mostWorkloads  = 4
	mostFindings   = 6
)

// Summary answers the question of the folders, with the uncertainty of the answer: what costs how much. A row that is not representative, or not
// to be trusted, is not in it, and a remark says so. It is never empty.
func Summary(s *data.Summary) (a Answer) {
	places, rungs := toCompare(s.Places())
	told := foremost(places)
	for _, rows := range told {
		at := *rows[0]
		if !withParams(places, rows[0]) {
			at.Treatment.Params, at.Treatment.Factors = nil, nil
		}
		a.Statements = append(a.Statements, statement("For "+Where(s, &at), rows, s))
	}
	if n := len(places) - len(told); n > 0 {
		a.Remarks = append(a.Remarks, "The table has "+Count(n, "more comparison")+".")
	}
	switch n := len(figures(told)); n {
	case 0:
	case 1:
		a.Remarks = append(a.Remarks, "One more metric has a table of its own.")
	default:
		a.Remarks = append(a.Remarks, Count(n, "more metric")+" have tables of their own.")
	}
	if rungs {
		a.Remarks = append(a.Remarks, "The cost of each layer of isolation is in the table, and in the report as a staircase.")
	}
	a.Remarks = append(a.Remarks, notRanked(s.Rows)...)
	a.Remarks = append(a.Remarks, caveats(s)...)
	a.Remarks = append(a.Remarks, disturbed(s)...)
	if len(a.Statements) == 0 && len(a.Remarks) == 0 {
		a.Statements = []Statement{{Lead: "Nothing was measured."}}
	}
	return a
}

// toCompare are the places at which something is compared; all of them, where nothing is. rungs: the layers of a ladder were left out.
func toCompare(all [][]*data.Row) (places [][]*data.Row, rungs bool) {
	// Between bare metal and whole containers a ladder has many rungs. None is a platform to choose: where there are whole ones
	// the answer is of those.
	for i, rows := range all {
		if slices.ContainsFunc(rows, func(r *data.Row) bool { return !rung(r) && !beside(r) && r.Representative && r.Rounds > 0 }) {
			all[i] = slices.DeleteFunc(rows, rung)
			rungs = rungs || len(all[i]) < len(rows)
		}
	}
	// The place of the baseline alone compares nothing.
	places = slices.DeleteFunc(slices.Clone(all), func(rows []*data.Row) bool {
		return !slices.ContainsFunc(rows, func(r *data.Row) bool { return !beside(r) })
	})
	if len(places) == 0 {
		places = all
	}
	return places, rungs
}

// foremost are the places that the answer names. Of many, the first of each workload; of one workload the first and the last: the smallest and the
// largest instance type.
func foremost(places [][]*data.Row) (told [][]*data.Row) {
	if len(places) <= mostStatements {
		return places
	}
	for _, of := range data.Together(places, func(a, b []*data.Row) bool { return a[0].Treatment.Workload == b[0].Treatment.Workload }) {
		told = append(told, of[0])
	}
	if len(told) == 1 {
		told = append(told, places[len(places)-1])
	}
	return told[:min(len(told), mostWorkloads)]
}

// withParams says whether a row's workload is there with other parameters too.
func withParams(places [][]*data.Row, r *data.Row) bool {
	return slices.ContainsFunc(places, func(rows []*data.Row) bool {
		return rows[0].Treatment.Workload == r.Treatment.Workload && !rows[0].Treatment.SameWork(r.Treatment)
	})
}

// notRanked are sentences about rows that no answer is made of, or is to be read with care.
func notRanked(rows []*data.Row) (remarks []string) {
	emulated, doubtful, failing, moved := false, 0, 0, 0
	for _, r := range rows {
		if _, has := data.Has[data.RobustDiffers](r); has {
			moved++
		}
		switch {
		case !r.Representative:
			emulated = emulated || r.Trials > 0
		case r.Doubtful:
			doubtful++
		case r.Unreliable() && r.Rounds > 0 && !beside(r):
			failing++
		}
	}
	if emulated {
		remarks = append(remarks, "VMs were emulated here, so their figures do not represent a VM's cost.")
	}
	if doubtful > 0 {
		remarks = append(remarks, was(doubtful, "treatment")+" not ranked: bare metal differed from itself by as much.")
	}
	if failing > 0 {
		remarks = append(remarks, was(failing, "treatment")+" not ranked: too many trials failed.")
	}
	if moved > 0 {
		remarks = append(remarks, was(moved, "ratio")+" made by a few rounds: see the notes.")
	}
	return remarks
}

// disturbed is a sentence about rounds in which the host did much beside its guests, where they are many.
func disturbed(s *data.Summary) []string {
	n, rounds := 0, 0
	for _, d := range s.Doubts {
		if d, is := d.(data.Stalled); is {
			n, rounds = n+d.Rounds, rounds+d.Of
		}
	}
	if n == 0 || n*10 < rounds { // what is done beside may fall on one platform more than on another
		return nil
	}
	return []string{fmt.Sprintf("In %d of %s the host did much beside its guests, and what was measured may be that: see the notes.", n, Count(rounds, "round"))}
}

// figures are the secondary metrics that have rows of their own at these places, each once.
func figures(places [][]*data.Row) (all []notebook.Metric) {
	for _, rows := range places {
		for _, r := range rows {
			for _, f := range r.Figures {
				if !slices.Contains(all, f.Metric) {
					all = append(all, f.Metric)
				}
			}
		}
	}
	return all
}

// statement is the answer at one place.
func statement(where string, rows []*data.Row, s *data.Summary) Statement {
	named := func(r *data.Row) string {
		n := Name(data.NameOf(r.Treatment))
		if s.Networks(r.Treatment.Workload) {
			n += connected(r.Treatment)
		}
		return n
	}
	t := tallied(rows, named)
	to := cmp.Or(phrases(rows[0]).Baseline, "bare metal")
	where += measuring(s, rows[0])
	if m := rows[0].Metric; Direction(m) != "" {
		where += ", " + Plain(Caption(m.Name)) + " (" + Direction(m) + ")"
	}
	if len(s.Baseline) > 0 {
		to = data.Assignments(s.Baseline)
	}
	if t.good > 0 && t.open > 0 && t.lonely {
		return Statement{Lead: where + ", where bare metal was not measured (95 % intervals):" + t.failed, Findings: amounts(rows, named)}
	}
	if why := t.nothing(rows, to, pending(rows, named)); why != "" {
		return Statement{Lead: where + ", " + why + t.failed}
	}
	slices.SortStableFunc(t.ranked, func(a, b *data.Row) int { return cmp.Compare(a.Cost().Value, b.Cost().Value) })
	if answer := phrases(t.ranked[0]).Answer; answer != nil {
		at := Ranked{Where: where, Rows: t.ranked, To: to, Named: named}
		if i := slices.IndexFunc(rows, (*data.Row).IsBaseline); i >= 0 {
			at.Base = rows[i]
		}
		if lead := answer(at); lead != "" {
			return Statement{Lead: lead + t.failed}
		}
	}
	st := Statement{Lead: where + ", against " + to + " (95 % intervals, margin " + margin(s.Margin()) + "):"}
	for _, g := range byPlatform(t.ranked, s.Margin()) {
		st.Findings = append(st.Findings, g.finding(s, named))
	}
	if n := len(st.Findings) - mostFindings; n > 1 {
		st.Findings = append(st.Findings[:mostFindings], fmt.Sprintf("%d more platforms are in the table.", n))
	}
	if short := shortest(t.ranked); short != "" {
		st.Findings = append(st.Findings, short)
	}
	if t.failed != "" {
		st.Findings = append(st.Findings, strings.TrimSpace(t.failed))
	}
	return st
}

// tally is what there is at one place.
type tally struct {
	trials, good int
	ranked       []*data.Row // with an interval to be ranked by
	open         int         // without one
	unbounded    bool        // some of these for want of bounds
	lonely       bool        // there is nothing to compare with
	alone        bool        // beside the baseline there is nothing that ran
	failed       string      // what failed of the baseline, to follow a sentence; empty: too little to say
}

// tallied counts what there is at one place.
func tallied(rows []*data.Row, named func(*data.Row) string) tally {
	t := tally{lonely: true, alone: true}
	for _, r := range rows {
		t.trials += r.Trials
		t.good += r.Trials - r.Failed
		t.alone = t.alone && (beside(r) || r.Trials == 0)
		if r.IsBaseline() && r.Unreliable() && r.Rounds > 0 {
			f, _ := r.Failures()
			t.failed = " Of " + named(r) + " itself, " + strings.TrimSuffix(Doubt(f), ".") + "; failed trials do not count."
		}
		if !r.Representative || r.Doubtful || beside(r) || r.Unreliable() {
			continue
		}
		t.lonely = t.lonely && r.Baseline == ""
		if stats.Finite(r.Ratio) && stats.Finite(r.RatioLow) && stats.Finite(r.RatioHigh) {
			t.ranked = append(t.ranked, r)
		} else if r.Rounds > 0 {
			t.open++
			_, unbounded := data.Has[data.Unbounded](r)
			t.unbounded = t.unbounded || unbounded
		}
	}
	return t
}

// nothing says why nothing at the place can be ranked, and what is still to be measured of it; empty: something can.
func (t tally) nothing(rows []*data.Row, to, waiting string) string {
	switch {
	case t.trials == 0:
		return "nothing was measured yet."
	case t.good == 0:
		return "every trial failed."
	case t.alone && waiting == "":
		return "only " + to + " was measured: there is nothing to compare with it."
	case t.alone:
		return "there is nothing to compare yet. " + waiting
	case len(t.ranked) > 0:
		return ""
	case t.unbounded:
		return "no overhead has bounds yet: " + to + " varied too much. More rounds or a quieter host would give it some."
	case t.open > 0:
		return strings.TrimSpace("no overhead has an interval yet: that takes at least two rounds in which both a platform and its baseline succeed. " + waiting)
	case waiting != "":
		return "there is nothing to compare yet. " + waiting
	case !slices.ContainsFunc(rows, func(r *data.Row) bool { return r.Representative && !beside(r) && r.Rounds > 0 }):
		return "only emulated VMs were measured, which are never ranked: their figures are in the table."
	}
	return "nothing that was measured can be ranked."
}

// Caveat says in a few words what limits a row's number, to follow it; empty: nothing does.
func Caveat(r *data.Row) (said string) {
	if d, has := data.Has[data.IgnoresFlushes](r); has && d.Sure {
		said += ", with flushes ignored"
	}
	if d, has := data.Has[data.ShortRuns](r); has && d.Below > 0 {
		said += ", below the measurement overhead (" + Duration(d.Below) + ")"
	}
	return said
}

// caveats are sentences about what limits numbers of all that was read.
func caveats(s *data.Summary) (all []string) {
	for _, d := range s.Doubts {
		switch d.(type) {
		case data.FlushesIgnored:
			all = append(all, capital(Doubt(d))+".")
		case data.StateFound:
			all = append(all, Doubt(d)+". Let the command remove what it leaves, or write it to {scratch}, which Tare empties before each run.")
		}
	}
	return all
}

// shortest says what else differs where runs are short; empty: they are not.
func shortest(rows []*data.Row) string {
	least := math.Inf(1)
	for _, r := range rows {
		if _, short := data.Has[data.ShortRuns](r); short {
			least = min(least, r.Mean)
		}
	}
	if math.IsInf(least, 1) {
		return ""
	}
	return "Runs take " + Duration(least) + ": at this length the choice of CPU, the wake-up and the start of the process differ too. Longer runs show the platform better."
}

// pending names what is still to be measured of a place's first round; empty: nothing. What is emulated is not waited for.
func pending(rows []*data.Row, named func(*data.Row) string) string {
	const most = 4
	var names []string
	for _, r := range rows {
		if r.Trials == 0 && r.Representative && !r.Treatment.AA {
			names = append(names, named(r))
		}
	}
	n := len(names)
	if n == 0 {
		return ""
	}
	if n > most {
		names = append(names[:most-1], fmt.Sprintf("%d more", n-most+1))
	}
	verb := " is still to be measured"
	if n > 1 {
		verb = " are still to be measured"
	}
	return capital(List(names)) + verb + ": the same `tare run` goes on."
}

// amounts are what rows have where there is nothing that they are compared with, the least first.
func amounts(rows []*data.Row, named func(*data.Row) string) (findings []string) {
	said := slices.DeleteFunc(slices.Clone(rows), func(r *data.Row) bool {
		return !r.Representative || r.Unreliable() || r.Rounds == 0
	})
	slices.SortStableFunc(said, func(a, b *data.Row) int { return cmp.Compare(a.Mean, b.Mean) })
	for _, r := range said {
		amount := Plain(Caption(r.Metric.Name)) + " " + Measured(r.Mean, data.Floor(r.Metric, r.MeanLow), r.MeanHigh, r.Metric.Unit)
		if of := phrases(r).Amount; of != nil {
			amount = of(r, amount)
		}
		findings = append(findings, fmt.Sprintf("%s: %s%s.", capital(named(r)), amount, Caveat(r)))
	}
	if n := len(findings) - mostFindings; n > 1 {
		findings = append(findings[:mostFindings], fmt.Sprintf("%d more platforms are in the table.", n))
	}
	return findings
}

// group is one platform's rows at a place: vanilla and pinned.
type group []*data.Row

// byPlatform puts the rows that differ in their provisioning alone together: first those that cost more or less, the largest difference first,
// then those that make no difference, then what is open.
func byPlatform(rows []*data.Row, margin float64) []group {
	all := data.Together(rows, func(a, b *data.Row) bool { return a.Treatment.Variant() == b.Treatment.Variant() })
	groups := make([]group, len(all))
	order := byFinding(margin)
	for i, g := range all {
		groups[i] = g
		slices.SortStableFunc(g, order)
	}
	slices.SortStableFunc(groups, func(a, b group) int { return order(a[0], b[0]) })
	return groups
}

// byFinding orders rows by what matters to a choice.
func byFinding(margin float64) func(a, b *data.Row) int {
	rank := func(r *data.Row) int {
		switch r.Cost().Verdict(margin) {
		case stats.Slower, stats.Faster:
			return 0
		case stats.Equivalent:
			return 1
		}
		return 2
	}
	size := func(r *data.Row) float64 { return math.Abs(math.Log(r.Ratio)) }
	return func(a, b *data.Row) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(size(b), size(a))) }
}

// finding says what is known of a platform: "A vanilla docker container costs 31 % more (27 to 35); pinned, 10 % more (8 to 12)." Where guests
// were weighed it "takes 31 % more memory", and of a metric of which more is better it "gives 31 % less".
func (g group) finding(s *data.Summary, named func(*data.Row) string) string {
	var parts []string
	for i, r := range g {
		q := r.Quotient()
		said := beyond(q, r)
		before, after := " costs ", " " // what is said: of the first, after its name, and of the others
		switch {
		case r.Metric.MoreIsBetter():
			before = " gives "
		case phrases(r).Verb != "":
			before = " " + phrases(r).Verb + " "
		case !r.Metric.Directed():
			before = " has "
		}
		answer := r.Cost().Verdict(s.Margin())
		switch answer {
		case stats.Equivalent:
			said = fmt.Sprintf("no difference of %s or more: %s", margin(s.Margin()), said)
			before = " makes "
		case stats.Inconclusive:
			said += atMost(q)
			if n := s.Rounds(r) - q.N; n > 0 {
				said += ", about " + MoreRounds(n)
			} else {
				said += ", " + unforeseen
			}
			before, after = ": ", " open: "
		}
		said += Caveat(r)
		switch {
		case i > 0:
			parts = append(parts, Plain(r.Treatment.Provisioning)+","+after+said)
		case answer == stats.Inconclusive:
			parts = append(parts, "Open for "+named(r)+before+said)
		default:
			parts = append(parts, capital(named(r))+before+said)
		}
	}
	return strings.Join(parts, "; ") + "."
}

// MoreRounds says how many more rounds would settle something: as likely as not, and likely.
func MoreRounds(even int) string {
	return fmt.Sprintf("%s (even odds), %d (likely)", Count(even, "more round"), stats.Likely(even))
}

// unforeseen says why no number of rounds is named.
var unforeseen = fmt.Sprintf("not settled within %d rounds by this estimate", stats.MostRounds)

// atMost says what a ratio's interval leaves, in the digits in which the interval is written: ", at most 2.1 % more or 1.1 % less".
func atMost(q stats.Quotient) string {
	if !q.HasInterval() {
		return ""
	}
	d := min(Places(100*(q.Value-1), 100*(q.Low-1), 100*(q.High-1)), 3)
	var all []string
	switch {
	case q.Value >= 2:
		all = append(all, Number(q.High, Places(q.Value, q.Low, q.High))+" times as much")
	case q.High > 1:
		all = append(all, Number(100*(q.High-1), d)+" % more")
	}
	if q.Low < 1 {
		all = append(all, Number(100*(1-q.Low), d)+" % less")
	}
	return ", at most " + strings.Join(all, " or ")
}

// margin writes a margin in as many digits as it has.
func margin(share float64) string { return fmt.Sprintf("%.4g %%", 100*share) }

// capital makes the first letter of a sentence large.
func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}
