package words

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// ResultOf is the first answer to the question of the folders. With all, and where all are emulated, emulated environments have their figures.
func ResultOf(s *data.Summary, all bool) Result {
	r := Result{Headline: Headline(s)}
	all = all || !slices.ContainsFunc(s.Rows, func(r *data.Row) bool { return r.Representative }) // nothing else has figures
	for _, rows := range s.Places() {
		r.Tables = append(r.Tables, tableOf(s, rows, all))
		for _, of := range data.InFigures(rows) {
			r.Tables = append(r.Tables, tableOf(s, of, all))
		}
	}
	r.Tables = slices.DeleteFunc(r.Tables, func(t ResultTable) bool { return len(t.Lines) == 0 })
	r.Absent = withoutFigure(s, all)
	r.Made = howMade(s)
	for _, b := range []ResultBlock{effects(s), unsaid(s), reliance(s), next(s)} {
		if len(b.Lines) > 0 {
			r.Blocks = append(r.Blocks, b)
		}
	}
	return r
}

// ReasonsToDoubt is the head of the list of Cautions.
const ReasonsToDoubt = "Reasons to doubt it"

// Cautions say what limits the result, each once.
func Cautions(s *data.Summary) []string { return cautions(reliance(s).Lines) }

// cautions are the texts of those items that limit the result.
func cautions(items []ResultItem) (all []string) {
	for _, item := range items {
		if item.Mark == Caution {
			all = append(all, item.Text)
		}
	}
	return all
}

// tableOf is one place's table.
func tableOf(s *data.Summary, rows []*data.Row, all bool) ResultTable {
	first := rows[0]
	of := join(", ", []string{Work(first.Treatment), Size(first.Treatment.Instance), Online(s, first)})
	if len(s.Hosts) > 1 {
		of += " on " + Plain(first.Host)
	}
	what, better := Called(first.Metric), "lower is better"
	if d := Direction(first.Metric); d != "" {
		better = d
	}
	if rate := rateOf(first); rate != nil {
		what, better = Plain(rate.Name(first)), "higher is better"
	}
	t := ResultTable{
		Of:    of + measuring(s, first) + Image(s, first) + ". " + Capital(what) + "; " + better + ".",
		Value: "mean", Change: "vs bare metal", Verdict: "at ±" + margin(s.Margin()),
	}
	if len(s.Baseline) > 0 {
		t.Change = "vs reference"
		if !slices.ContainsFunc(rows, (*data.Row).IsBaseline) {
			t.Of += " Reference: " + ReferenceOf(s) + "."
		}
	}
	networks := s.Networks(first.Treatment.Workload)
	scale := scaleOf(rows)
	for _, r := range rows {
		if r.Treatment.AA || !r.Representative && !all {
			continue
		}
		t.Lines = append(t.Lines, lineOf(s, r, scale, networks))
		if c := r.Control(); c != nil && HasRate(r) { // the reference is both
			t.Lines = append(t.Lines, ResultLine{Name: Environment(r.Treatment, networks) + ", A/A control", Value: valueOf(s, c, scale), Change: "counts as well"})
		}
	}
	return t
}

// scaleOf is what seconds are multiplied by in a table, and the unit.
type inUnit struct {
	unit string
	by   float64
}

func scaleOf(rows []*data.Row) inUnit {
	m := rows[0].Metric
	if m.Unit != "s" {
		return inUnit{Plain(m.Unit), 1}
	}
	for _, r := range rows {
		if stats.Finite(r.Mean) && r.Representative {
			unit, by := Scale(r.Mean)
			return inUnit{unit, by}
		}
	}
	return inUnit{"s", 1}
}

// lineOf is an environment's line.
func lineOf(s *data.Summary, r *data.Row, in inUnit, networks bool) ResultLine {
	l := ResultLine{Name: Environment(r.Treatment, networks)}
	if r.Rounds == 0 {
		switch f, failed := r.Failures(); {
		case failed:
			l.Missing = Doubt(f)
		default:
			l.Missing = Doubt(data.NotMeasured{})
		}
		return l
	}
	l.Value = valueOf(s, r, in)
	switch {
	case r.Baseline == "":
		l.Change = "no reference"
	case r.IsBaseline():
		l.Change = "reference"
	case !stats.Finite(r.Ratio):
		l.Change = "unknown"
	case !r.Quotient().HasInterval():
		l.Change = change(AmountChange(r).Value) + " (no interval)"
	default:
		l.Change = changeOf(AmountChange(r))
	}
	l.Said = said(s, r)
	return l
}

// valueOf is a row's mean with its interval, of bare metal with that of its A/A control: "445.5 ± 4.0 ms". An interval that would
// reach below 0, where the metric cannot, has its ends: "10 ms (0 to 53)".
func valueOf(s *data.Summary, r *data.Row, in inUnit) string {
	e := s.MeanOfBoth(r)
	mean, low, high := e.Value*in.by, e.Low*in.by, e.High*in.by
	if rate := rateOf(r); rate != nil {
		e := rate.Of(r)
		mean, low, high, in.unit = e.Value, e.Low, e.High, "1/s"
	}
	if least := data.Floor(r.Metric, low); least > low && stats.Finite(low) {
		return Measured(mean, least, high, in.unit)
	}
	value := Number(mean, min(Places(mean, low, high), 4))
	if stats.Finite(low) && stats.Finite(high) {
		value = PlusMinus(mean, low, high, 4)
	}
	if in.unit != "" && in.unit != "1" {
		value += " " + in.unit
	}
	return value
}

// change writes a ratio as a change, one of 2 or more as a factor.
func change(ratio float64) string {
	if ratio >= 2 {
		return Digits(ratio, 3) + " times"
	}
	return Signed(Number(100*(ratio-1), 1)) + " %"
}

// changeOf writes a change with its interval: "+0.3 % (−0.8 to +1.4)", of a large one "2.23 times (2.17 to 2.29)".
func changeOf(q stats.Quotient) string {
	switch {
	case !stats.Finite(q.High):
		return PerCent(q)
	case q.Value >= 2:
		d := min(Places(q.Value, q.Low, q.High), 3)
		if q.Low < 1 && d == 0 { // an end below 1 must not read as 1
			d = 1
		}
		return Number(q.Value, d) + " times (" + timesSpan(q.Low, q.High, d) + ")"
	}
	return perCent(q, 2)
}

// vagueEnd is by how much an interval's upper end must exceed its lower one to say nothing more than the lower one does.
const vagueEnd = 100

// timesSpan writes the interval of a factor, so vague an upper end as 12022.1 without it: "2.5 to 7.9", "at least 2.5".
func timesSpan(low, high float64, d int) string {
	if low > 0 && high > vagueEnd*low {
		return "at least " + Number(low, d)
	}
	return Number(low, d) + " to " + Number(high, d)
}

// said is a row's verdict in words. An inconclusive one may still have a direction.
func said(s *data.Summary, r *data.Row) string {
	v := s.Finding(r)
	switch v {
	case stats.Equivalent:
		if q := r.Quotient(); q.Low > 1 || q.High < 1 {
			return string(v) + ", but not zero"
		}
	case stats.Inconclusive:
		switch d := direction(s, r); {
		case r.Doubtful:
			return string(v) + ": the A/A check failed"
		case r.Unreliable():
			return string(v) + ": too many runs failed"
		case d != "" && r.Metric.Directed():
			return string(d) + " or equivalent"
		}
	}
	return string(v)
}

// withoutFigure are the environments without a figure: emulated ones, and those that this host does not have, each once.
func withoutFigure(s *data.Summary, all bool) (lines []ResultLine) {
	add := func(name, why string) {
		name = strings.TrimSuffix(name, ", emulated")
		if !slices.ContainsFunc(lines, func(l ResultLine) bool { return l.Name == name }) {
			if n := len(lines); strings.HasPrefix(why, "not measured: ") && (n > 0 && lines[n-1].Missing == why || n > 1 && lines[0].Missing == why) {
				why = "not measured: same reason"
			}
			lines = append(lines, ResultLine{Name: name, Missing: why})
		}
	}
	if !all {
		for _, r := range s.Rows {
			if !r.Representative {
				add(EnvironmentOf(s, r), emulatedWhy(r))
			}
		}
	}
	for _, l := range s.LeftOut {
		if l.Treatment.AA {
			continue
		}
		add(Environment(l.Treatment, s.Networks(l.Treatment.Workload))+", "+Size(l.Treatment.Instance), "not measured: "+Message(l.Reason))
	}
	const most = 6
	if n := len(lines) - most; n > 0 {
		lines = append(lines[:most], ResultLine{Name: Count(n, "more environment"), Missing: "not measured: see --verbose"})
	}
	return lines
}

// emulatedWhy says why an emulated environment has no figure.
func emulatedWhy(r *data.Row) string {
	if len(r.Values) == 0 {
		return "no run succeeded"
	}
	return "emulated, not compared (no KVM here): see --all"
}

// howMade says how the figures were made.
func howMade(s *data.Summary) string {
	rounds, trials, failed, together := 0, 0, 0, false
	for _, f := range s.Folders {
		rounds, trials, failed = rounds+f.Rounds, trials+f.Trials, failed+f.Failed
	}
	if trials == 0 {
		return ""
	}
	for _, f := range s.Folders {
		together = together || f.Together
	}
	how := "in random order, with fresh environments in each round"
	if together {
		how = "in random order, fresh environments in each round, runs in random turns"
	}
	rounded, common := Count(rounds, "round"), ""
	if least := fewest(s.Rows); len(s.Folders) == 1 && least < rounds {
		rounded += ", at least " + Number(float64(least), 0) + " of each environment,"
		common = " Changes use only the rounds that both environments have, so they may differ from those of the means."
	}
	run := "run"
	if names := data.Distinct(s.Rows, func(r *data.Row) string { return phrases(r).Run }); len(names) == 1 && names[0] != "" {
		run = names[0]
	}
	last := s.Folders[len(s.Folders)-1].Last
	tested := ""
	if slices.ContainsFunc(s.Rows, func(r *data.Row) bool { return oneSided(s, r) }) {
		tested = "; verdicts are one-sided tests, so the interval of a faster or slower row may reach slightly inside the margin"
	}
	return fmt.Sprintf("%s %s; %s of %s failed. Intervals are of 95 %%%s.%s %s.", rounded, how, Thousands(failed), Count(trials, run), tested, common, last.UTC().Format("2 Jan 2006, 15:04 UTC"))
}

// oneSided says whether a row is beyond the margin by its verdict, though its interval, of two sides, begins within.
func oneSided(s *data.Summary, r *data.Row) bool {
	if r.Doubtful || beside(r) || !r.Representative { // the table shows no verdict
		return false
	}
	beyond := 1 + s.Margin()
	v := s.Verdict(r)
	return (v == stats.Slower || v == stats.Faster) && r.RatioLow < beyond && r.RatioHigh > 1/beyond
}

// fewest is the least number of rounds of a row that ran.
func fewest(rows []*data.Row) int {
	least := math.MaxInt
	for _, r := range rows {
		if r.Trials > 0 && r.Rounds == 0 { // all of it failed
			return math.MaxInt
		}
		if r.Rounds > 0 {
			least = min(least, r.Rounds)
		}
	}
	return least
}

// aspects are what the workloads of a first look measure.
var aspects = map[string]string{"cpu": "computation", "ladder-cpu": "computation", "ladder-syscall": "system calls", "ladder-io": "synced writes", "ladder-network": "network", "ladder-fork": "process creation", "ladder-fault": "page faults"}

// unsaid is what the result does not say.
func unsaid(s *data.Summary) ResultBlock {
	b := ResultBlock{Head: "What this does not say"}
	add := func(text, command string) { b.Lines = append(b.Lines, ResultItem{Text: text, Command: command}) }
	works := data.Distinct(s.Rows, func(r *data.Row) string { return r.Treatment.Workload })
	var measured, others []string
	for _, w := range works {
		if of := aspects[w]; of != "" && !slices.Contains(measured, of) {
			measured = append(measured, of)
		}
	}
	for _, of := range []string{"computation", "system calls", "synced writes", "network"} {
		if !slices.Contains(measured, of) {
			others = append(others, of)
		}
	}
	timing := slices.ContainsFunc(s.Rows, func(r *data.Row) bool { return r.Kind == "" })
	switch {
	case !timing:
	case len(measured) > 0 && len(others) > 0 && !slices.ContainsFunc(works, func(w string) bool { return aspects[w] == "" }):
		text := "Only " + List(measured) + " " + agree(measured) + " measured. " + Capital(List(others)) + " may cost more"
		if slices.ContainsFunc(s.Rows, func(r *data.Row) bool { return r.Treatment.Platform == notebook.BM }) {
			add(text+":", "sudo tare run ladder")
		} else { // the ladder compares with bare metal, which was not wanted
			add(text+".", "")
		}
	case len(works) > 0:
		var named []string
		for _, w := range works[:min(len(works), 3)] {
			name := workNames[w]
			if name == "" {
				name = Plain(w)
			}
			named = append(named, name)
		}
		if n := len(works) - len(named); n > 0 {
			named = append(named, Count(n, "more workload"))
		}
		on := "this host"
		if len(s.Hosts) > 1 {
			on = "these hosts"
		}
		add("Only "+List(named)+" "+agree(named)+" measured, on "+on+". Other work may cost more or less.", "")
	}
	for _, d := range s.Doubts {
		switch d := d.(type) {
		case data.HostIsGuest:
			if !slices.ContainsFunc(s.Rows, func(r *data.Row) bool { return r.Treatment.Platform == notebook.BM }) {
				continue
			}
			add("The host, "+Plain(d.Host)+", is itself a virtual machine ("+Plain(d.Hypervisor)+"): \"bare metal\" means this VM without another layer.", "")
		case data.FlushesIgnored:
			add(Sentence(Doubt(d)), "")
		}
	}
	return b
}

func agree(names []string) string {
	if len(names) == 1 && !strings.HasSuffix(names[0], "s") {
		return "was"
	}
	return "were"
}

// reliance is how far the result is to be trusted.
func reliance(s *data.Summary) ResultBlock {
	b := ResultBlock{Head: "How far to trust it"}
	add := func(mark ResultMark, text string) {
		if text != "" {
			b.Lines = append(b.Lines, ResultItem{Mark: mark, Text: text})
		}
	}
	b.Lines = append(b.Lines, checked(s)...)
	for _, d := range s.Doubts {
		switch d := d.(type) {
		case data.StateFound:
			add(Caution, Sentence(Doubt(d))+" Let the command remove what it leaves, or write it to {scratch}, which Tare empties before each run.")
		case data.FewRounds:
			mark := Caution
			if d.OutOfTime() && d.Rounds >= fewRounds {
				mark = NoMark
			}
			add(mark, Doubt(d)+".")
		case data.NarrowHost, data.Torn: // some begin with a folder's name
			add(Caution, Doubt(d)+".")
		}
	}
	b.Lines = append(append(b.Lines, disturbances(s)...), swings(s)...)
	trials := 0 // warm-ups too, as the counts of warnings
	for _, f := range s.Folders {
		trials += f.Trials
	}
	everywhere := environments(s, s.Rows)
	for _, x := range s.Warnings {
		if x.Text.First.Is("load-saturated") {
			where := ""
			silent := func(r *data.Row) bool { return !slices.Contains(x.Treatments, r.Treatment.ID) }
			if names := environments(s, slices.DeleteFunc(slices.Clone(s.Rows), silent)); len(names) < len(everywhere) {
				where = " (" + List(names) + ")"
			}
			add(Caution, fmt.Sprintf("In %d of %s%s ", x.Count, Count(trials, "run"), where)+Text(x.Text)+"; compare with a load from another machine (--load-from).")
		}
	}
	b.Lines = append(b.Lines, rowCaveats(s)...)
	return b
}

// environments are the rows' names, each once.
func environments(s *data.Summary, rows []*data.Row) []string {
	return data.Distinct(rows, func(r *data.Row) string { return EnvironmentOf(s, r) })
}

// disturbances say in how many rounds other programs used much of the host; none where no round recorded it.
func disturbances(s *data.Summary) []ResultItem {
	n, total := 0, 0
	for _, d := range s.Doubts {
		if d, is := d.(data.Stalled); is {
			n += d.Rounds
		}
	}
	for _, f := range s.Folders {
		total += f.Watched
	}
	switch {
	case total == 0:
		return nil
	case n == 0:
		return []ResultItem{{Mark: Passed, Text: "Other programs disturbed no round."}}
	case n*10 < total:
		return []ResultItem{{Text: fmt.Sprintf("Other programs disturbed %d of %s; all rounds count.", n, Count(total, "round"))}}
	default:
		return []ResultItem{{Mark: Caution, Text: fmt.Sprintf("Other programs or the hypervisor below used more than 5 %% of the CPU in %d of %s, which may explain the result.", n, Count(total, "round"))}}
	}
}

// checked are the A/A checks: each that fails or checks nothing, and one line for those that hold.
func checked(s *data.Summary) (lines []ResultItem) {
	var holds, empty []data.AACheck
	caution := func(a data.AACheck, text string) {
		lines = append(lines, ResultItem{Mark: Caution, Text: "A/A check of " + CheckWhere(s, a) + ": " + text})
	}
	for _, a := range s.AA {
		if a.Figure != (notebook.Metric{}) {
			continue
		}
		switch {
		case a.Verdict == data.Holds && (a.Low < 1-vague || a.High > 1+vague):
			empty = append(empty, a)
		case a.Verdict == data.Holds:
			holds = append(holds, a)
		case a.Verdict == data.Misses:
			caution(a, fromItself(a)+".")
		case a.Verdict == data.Narrow:
			caution(a, "intervals on this host are too narrow, by "+Digits(a.Factor, 2)+" times.")
		default:
			caution(a, "not known: too few or too noisy rounds.")
		}
	}
	switch {
	case len(holds) == 1:
		lines = append(lines, ResultItem{Mark: Passed, Text: "A/A check: " + fromItself(holds[0]) + ", consistent with zero."})
	case len(holds) > 1:
		worst := 0.0
		for _, a := range holds {
			worst = max(worst, math.Abs(a.Ratio-1))
		}
		lines = append(lines, ResultItem{Mark: Passed, Text: fmt.Sprintf("A/A check: in %d places bare metal differs from itself by %s at most, consistent with zero.", len(holds), upwards(worst))})
	}
	switch {
	case len(empty) == 1 && len(s.AA) == 1:
		lines = append(lines, ResultItem{Mark: Caution, Text: "A/A check: " + fromItself(empty[0]) + ", too uncertain to check anything."})
	case len(empty) == 1:
		caution(empty[0], fromItself(empty[0])+", too uncertain to check anything.")
	case len(empty) > 1:
		lines = append(lines, ResultItem{Mark: Caution, Text: fmt.Sprintf("A/A check: in %d places bare metal's difference from itself is too uncertain to check anything.", len(empty))})
	}
	return lines
}

// fromItself says by how much bare metal differs from itself: "bare metal differs from itself by +9 % (+5 to +12)".
func fromItself(a data.AACheck) string {
	d := sidedPlaces(100*(a.Ratio-1), 100*(a.Low-1), 100*(a.High-1), 2)
	at := func(v float64) string { return Signed(Number(100*(v-1), d)) }
	return "bare metal differs from itself by " + at(a.Ratio) + " % (" + at(a.Low) + " to " + at(a.High) + ")"
}

// fewRounds is the least number of rounds at which a run that its time budget ended gets no caution.
const fewRounds = 5

// vague is the least deviation from 1 of an end of an A/A control's interval that checks nothing.
const vague = 0.25

// unsteady is how many times the slowest round of bare metal takes of the fastest where the host is called unsteady.
const unsteady = 1.5

// swings says between which values bare metal's rounds lie, in the place where they differ most; none where they hardly differ.
func swings(s *data.Summary) (lines []ResultItem) {
	var where *data.Row
	worst, least, most := 0.0, 0.0, 0.0
	for _, r := range s.Rows {
		if r.Treatment.Platform != notebook.BM || r.Kind != "" || len(r.Values) < 3 {
			continue
		}
		low, high := math.Inf(1), 0.0
		for _, v := range r.Values {
			low, high = min(low, v.Mean), max(high, v.Mean)
		}
		if low > 0 && high/low > worst {
			where, worst, least, most = r, high/low, low, high
		}
	}
	if worst < unsteady {
		return nil
	}
	from, to := quantity(least), quantity(most)+" "+where.Metric.Unit
	if where.Metric.Unit == "s" {
		from, to = Duration(least), Duration(most)
	}
	return []ResultItem{{Mark: Caution, Text: Sentence(fmt.Sprintf("bare metal's rounds of %s lie between %s and %s: the host is unsteady", Where(s, where), from, strings.TrimSpace(to)))}}
}

// waiting names the environments that are inconclusive with less than half of the rounds that others have.
func waiting(s *data.Summary) (texts []string) {
	for _, rows := range s.Places() {
		most := 0
		for _, r := range rows {
			most = max(most, r.Rounds)
		}
		for _, r := range rows {
			_, failed := data.Has[data.TrialsFailed](r)
			if r.Representative && !r.Treatment.AA && r.Kind == "" && !failed && 0 < r.Rounds && 2*r.Rounds < most && s.Verdict(r) == stats.Inconclusive {
				texts = append(texts, fmt.Sprintf("%s has only %d of %s. With little time, Tare measures what it can decide first",
					Capital(EnvironmentOf(s, r)), r.Rounds, Count(most, "round")))
			}
		}
	}
	return texts
}

// rowCaveats are what limits single environments: each sentence once.
func rowCaveats(s *data.Summary) (lines []ResultItem) {
	const most = 3
	var texts []string
	for _, r := range s.Rows {
		if !r.Representative {
			continue
		}
		for _, d := range r.Doubts {
			switch d.(type) {
			case data.TrialsFailed, data.RobustDiffers, data.IgnoresFlushes:
				if r.Rounds > 0 {
					texts = append(texts, Capital(EnvironmentOf(s, r))+": "+Doubt(d))
				}
			}
		}
	}
	texts = data.Distinct(append(waiting(s), texts...), func(t string) string { return t })
	for i, t := range texts {
		if i == most && len(texts) > most+1 {
			lines = append(lines, ResultItem{Mark: Caution, Text: Count(len(texts)-most, "more caveat") + " on single environments: see --verbose."})
			break
		}
		lines = append(lines, ResultItem{Mark: Caution, Text: Sentence(t)})
	}
	if short := shortest(s.Rows); short != "" {
		lines = append(lines, ResultItem{Mark: Caution, Text: short})
	}
	return lines
}
