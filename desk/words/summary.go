package words

import (
	"cmp"
	"fmt"
	"maps"
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

// beside says whether a row is there to be compared with others: the baseline, or bare metal again.
func beside(r *data.Row) bool { return r.IsBaseline() || r.Treatment.AA }

// mostStatements bounds how many comparisons the answer names; the table has them all.
const mostStatements = 2

// Summary answers the question of the folders, with the uncertainty of the answer: what costs least, and by how much. A row
// that is not representative, or not to be trusted, is not ranked; rows that are not distinguishable are called so. It is
// never empty.
func Summary(s *data.Summary) string {
	places := s.Places()
	// Between bare metal and whole containers a ladder has many rungs. None is a platform to choose: where there are whole ones
	// the answer is of those.
	rungs := false
	for i, rows := range places {
		if slices.ContainsFunc(rows, func(r *data.Row) bool { return !rung(r) && !beside(r) && r.Representative && r.Rounds > 0 }) {
			places[i] = slices.DeleteFunc(rows, rung)
			rungs = rungs || len(places[i]) < len(rows)
		}
	}
	// The place of the baseline alone compares nothing.
	compared := slices.DeleteFunc(slices.Clone(places), func(rows []*data.Row) bool {
		return !slices.ContainsFunc(rows, func(r *data.Row) bool { return !beside(r) })
	})
	if len(compared) > 0 {
		places = compared
	}
	// Of many places, the first and the last: the smallest and the largest instance type.
	told := places
	if len(places) > mostStatements {
		told = [][]*data.Row{places[0], places[len(places)-1]}
	}
	withParams := slices.ContainsFunc(places, func(rows []*data.Row) bool {
		return !maps.Equal(rows[0].Treatment.Params, places[0][0].Treatment.Params)
	})
	var parts []string
	for _, rows := range told {
		at := *rows[0]
		if !withParams {
			at.Treatment.Params = nil
		}
		parts = append(parts, statement("For "+Where(s, &at), rows, s))
	}
	if n := len(places) - len(told); n > 0 {
		parts = append(parts, "The table has "+Count(n, "more comparison")+".")
	}
	if rungs {
		parts = append(parts, "The cost of each layer of isolation is in the table, and in the report as a staircase.")
	}
	emulated, doubtful, failing := false, 0, 0
	for _, r := range s.Rows {
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
		parts = append(parts, "VMs were emulated here, so their figures do not represent a VM's cost.")
	}
	if doubtful > 0 {
		parts = append(parts, was(doubtful, "treatment")+" not ranked: bare metal differed from itself by as much.")
	}
	if failing > 0 {
		parts = append(parts, was(failing, "treatment")+" not ranked: too many trials failed.")
	}
	if len(parts) == 0 {
		return "Nothing was measured."
	}
	return strings.Join(parts, " ")
}

// ordinals say which of those named before a figure is of.
var ordinals = []string{"first", "second", "third", "fourth"}

// statement is the answer at one place.
func statement(where string, rows []*data.Row, s *data.Summary) string {
	named := func(r *data.Row) string {
		n := Name(data.NameOf(r.Treatment))
		if s.Networks(r.Treatment.Workload) {
			n += connected(r.Treatment)
		}
		return n
	}
	figure := func(r *data.Row) string { return Interval(r.Ratio, r.RatioLow, r.RatioHigh) }
	var ranked []*data.Row
	trials, good, open := 0, 0, 0
	lonely := true // there is nothing to compare with
	failed := ""   // what failed of it
	unbounded := false
	alone := true // beside the baseline there is nothing that ran
	for _, r := range rows {
		trials += r.Trials
		good += r.Trials - r.Failed
		alone = alone && (beside(r) || r.Trials == 0)
		if r.IsBaseline() && r.Unreliable() && r.Rounds > 0 {
			f, _ := r.Failures()
			failed = " Of " + named(r) + " itself, " + strings.TrimSuffix(Doubt(f), ".") + "; failed trials do not count."
		}
		if !r.Representative || r.Doubtful || beside(r) || r.Unreliable() {
			continue
		}
		lonely = lonely && r.Baseline == ""
		if stats.Finite(r.Ratio) && stats.Finite(r.RatioLow) && stats.Finite(r.RatioHigh) {
			ranked = append(ranked, r)
		} else if r.Rounds > 0 {
			open++
			unbounded = unbounded || slices.ContainsFunc(r.Doubts, func(d data.Doubt) bool { _, ok := d.(data.Unbounded); return ok })
		}
	}
	to := "bare metal"
	if len(s.Baseline) > 0 {
		to = data.Assignments(s.Baseline)
	}
	switch {
	case trials == 0:
		return where + ", nothing was measured yet."
	case good == 0:
		return where + ", every trial failed."
	case open > 0 && lonely:
		return where + ", bare metal was not measured, so there is no baseline to compare with."
	case alone:
		return where + ", only " + to + " was measured: there is nothing to compare with it."
	case len(ranked) == 0 && unbounded:
		return where + ", no overhead has bounds yet: " + to + " varied too much. More rounds or a quieter host would give it some."
	case len(ranked) == 0 && open > 0:
		return where + ", no overhead has an interval yet: that takes at least two rounds in which both a platform and its baseline succeed."
	case len(ranked) == 0:
		return where + ", nothing that was measured can be ranked."
	}
	slices.SortStableFunc(ranked, func(a, b *data.Row) int { return cmp.Compare(a.Ratio, b.Ratio) })
	best := ranked[0]
	if best.Curve != nil {
		i := slices.IndexFunc(rows, (*data.Row).IsBaseline)
		var base *data.Row
		if i >= 0 {
			base = rows[i]
		}
		return carries(where, slices.DeleteFunc(ranked, func(r *data.Row) bool { return r.Curve == nil }), base, to, named) + failed
	}
	d := Decimals(best.RatioHigh - best.RatioLow)
	times, bounds := Number(best.Ratio, d), Bounds(best.RatioLow, best.RatioHigh, d)
	const most = 4
	if !slices.ContainsFunc(ranked, func(r *data.Row) bool { return r.RatioLow > 1 || r.RatioHigh < 1 }) {
		if len(ranked) == 1 {
			return fmt.Sprintf("%s, %s is not distinguishable from %s: the ratio is %s (95 %% interval %s).", where, named(best), to, times, bounds) + failed
		}
		var all []string
		for _, r := range ranked[:min(most, len(ranked))] {
			all = append(all, named(r)+" "+figure(r))
		}
		if n := len(ranked) - most; n > 0 {
			all = append(all, fmt.Sprintf("and %d more", n))
		}
		return fmt.Sprintf("%s, nothing is distinguishable from %s: as multiples of it, with 95 %% intervals, %s.", where, to, strings.Join(all, ", ")) + failed
	}
	var group, rest []*data.Row // what is not distinguishable from the best, and what costs more
	for _, r := range ranked {
		if r.RatioLow <= best.RatioHigh {
			group = append(group, r)
		} else {
			rest = append(rest, r)
		}
	}
	first := fmt.Sprintf("%s times %s (95 %% interval %s)", times, to, bounds)
	if best.RatioLow <= 1 && best.RatioHigh >= 1 {
		first += ", not distinguishable from 1"
	}
	var said []string
	switch {
	case len(ranked) == 1:
		said = []string{fmt.Sprintf("%s, %s costs %s", where, named(best), first)}
	case len(group) == 1:
		said = []string{fmt.Sprintf("%s, %s costs least: %s", where, named(best), first)}
	default:
		var names, others []string
		for i, r := range group[:min(most, len(group))] {
			names = append(names, named(r))
			if i > 0 {
				others = append(others, "the "+ordinals[i]+" "+figure(r))
			}
		}
		if n := len(group) - len(names); n > 0 {
			names = append(names, fmt.Sprintf("%d more", n))
		}
		which := "cost least and are not distinguishable from each other"
		if len(rest) == 0 {
			which = "are not distinguishable from each other"
		}
		said = []string{fmt.Sprintf("%s, %s %s: the %s %s", where, list(names), which, ordinals[0], first), strings.Join(others, ", ")}
	}
	for i, r := range rest {
		if i == most-1 && len(rest) > most {
			said = append(said, fmt.Sprintf("%d more cost up to %s", len(rest)-i, figure(rest[len(rest)-1])))
			break
		}
		said = append(said, named(r)+" "+figure(r))
	}
	return strings.Join(said, "; ") + "." + failed
}
