package words

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// rung says whether a row is a layer of the isolation ladder and not a whole container.
func rung(r *data.Row) bool {
	return r.Treatment.Isolation != "" && r.Treatment.Isolation != notebook.IsolationFull && !r.IsBaseline()
}

// beside says whether other rows are compared with this one: it is the baseline, or bare metal again.
func beside(r *data.Row) bool { return r.IsBaseline() || r.Treatment.AA }

// Answer is what folders say, in the order of what matters to a choice.
type Answer struct {
	Headline []string // the finding, as Headline has it
	Remarks  []string // what must be known of all of it, in sentences
}

// How many workloads the answer names, and findings where nothing is compared; the table has them all.
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
	a.Headline = Headline(s)
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
	if short := shortest(s.Rows); short != "" {
		a.Remarks = append(a.Remarks, short)
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
	// A place with only the baseline compares nothing.
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
		remarks = append(remarks, was(doubtful, "treatment")+" not ranked: the difference is within the A/A noise (bare metal against itself).")
	}
	if failing > 0 {
		remarks = append(remarks, was(failing, "treatment")+" not ranked: too many runs failed.")
	}
	if moved > 0 {
		remarks = append(remarks, was(moved, "ratio")+" dominated by a few outlier rounds: see the notes.")
	}
	return remarks
}

// disturbed is a sentence about rounds in which other programs used much of the host, where they are many.
func disturbed(s *data.Summary) []string {
	n, rounds := 0, 0
	for _, d := range s.Doubts {
		if d, is := d.(data.Stalled); is {
			n, rounds = n+d.Rounds, rounds+d.Of
		}
	}
	if n == 0 || n*10 < rounds { // other load on the host may disturb one platform more than another
		return nil
	}
	return []string{fmt.Sprintf("Other programs used more than 5 %% of the CPU in %d of %s, which may explain the result: see the notes.", n, Count(rounds, "round"))}
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

// tally counts the rows at one place.
type tally struct {
	trials, good int
	ranked       []*data.Row // rows that can be ranked: they have an interval
	open         int         // rows that cannot be ranked: they have no interval
	unbounded    []*data.Row // those of the open rows that lack bounds
	lonely       bool        // no row has a baseline
	alone        bool        // only the baseline ran
	failed       string      // failures of the baseline, to follow a sentence; empty: too few to mention
}

// tallied counts the rows at one place.
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
			if _, unbounded := data.Has[data.Unbounded](r); unbounded {
				t.unbounded = append(t.unbounded, r)
			}
		}
	}
	return t
}

// Caveat says in a few words what limits a row's number, to follow it; empty: nothing does.
func Caveat(r *data.Row) (said string) {
	if d, has := data.Has[data.IgnoresFlushes](r); has && d.Sure {
		said += ", but a crash of the host can lose its writes: they are not flushed"
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
			all = append(all, Capital(Doubt(d))+".")
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

// pending reports whether something is still to be measured of a place's first round. What is emulated is not waited for.
func pending(rows []*data.Row) bool {
	return slices.ContainsFunc(rows, func(r *data.Row) bool { return r.Trials == 0 && r.Representative && !r.Treatment.AA })
}

// amounts are what rows have where there is nothing that they are compared with, the least first.
func amounts(rows []*data.Row, named func(*data.Row) string) (findings []string) {
	said := slices.DeleteFunc(slices.Clone(rows), func(r *data.Row) bool {
		return !r.Representative || r.Unreliable() || r.Rounds == 0
	})
	slices.SortStableFunc(said, func(a, b *data.Row) int { return cmp.Compare(a.Mean, b.Mean) })
	for _, r := range said {
		amount := amountOr(r, Called(r.Metric)+" "+Mean(r))
		findings = append(findings, fmt.Sprintf("%s: %s%s.", Capital(named(r)), amount, Caveat(r)))
	}
	if n := len(findings) - mostFindings; n > 1 {
		findings = append(findings[:mostFindings], fmt.Sprintf("%d more platforms are in the table.", n))
	}
	return findings
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

// MoreRounds says how many more rounds would settle something: as likely as not, and likely.
func MoreRounds(even int) string {
	return fmt.Sprintf("%s (even odds), %d (likely)", Count(even, "more round"), stats.Likely(even))
}

// unforeseen says why no number of rounds is named.
var unforeseen = fmt.Sprintf("not settled within %d rounds, by this estimate", stats.MostRounds)

// margin writes a margin in as many digits as it has.
func margin(share float64) string { return fmt.Sprintf("%.4g %%", 100*share) }
