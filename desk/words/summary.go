// Package words turns the desk's values and doubts into English. It is the only package that does: what a number means is
// decided where the number is made, and what it is called is decided here.
package words

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// rung says whether a row is a layer of the isolation ladder and not a whole container.
func rung(r *data.Row) bool {
	return r.Treatment.Isolation != "" && r.Treatment.Isolation != notebook.IsolationFull
}

// mostStatements bounds how many comparisons the answer names; the table has them all.
const mostStatements = 2

// Summary answers the question of the folders, with the uncertainty of the answer: what costs least, and by how much. A row
// that is not representative, or not to be trusted, is not ranked; rows that are not distinguishable are called so. It is
// never empty.
func Summary(s *data.Summary) string {
	type place struct {
		host, workload, params, image string
		metric                        notebook.Metric
		cores                         float64
		memory                        int64
		hostCores                     int
	}
	var places []place
	rows := map[place][]*data.Row{}
	for i := range s.Rows {
		r := &s.Rows[i]
		t := r.Treatment
		p := place{r.HostID, t.Workload, Work("", t.Params), r.Image.Digest + r.Image.Input, r.Metric, t.Instance.Cores, t.Instance.Memory, r.HostCores}
		if rows[p] == nil {
			places = append(places, p)
		}
		rows[p] = append(rows[p], r)
	}
	// Between bare metal and whole containers a ladder has many rungs. None is a platform to choose: where there are whole ones
	// the answer is of those.
	rungs := false
	for p, list := range rows {
		if slices.ContainsFunc(list, func(r *data.Row) bool {
			return !rung(r) && !r.IsBaseline() && !r.Treatment.AA && r.Representative && r.Rounds > 0
		}) {
			rows[p] = slices.DeleteFunc(list, func(r *data.Row) bool { return rung(r) && !r.IsBaseline() })
			rungs = rungs || len(rows[p]) < len(list)
		}
	}
	// The place of the baseline alone compares nothing.
	compared := slices.DeleteFunc(slices.Clone(places), func(p place) bool {
		return !slices.ContainsFunc(rows[p], func(r *data.Row) bool { return !r.IsBaseline() && !r.Treatment.AA })
	})
	if len(compared) > 0 {
		places = compared
	}
	// Of many places, the first and the last: the smallest and the largest instance type.
	told := places
	if len(places) > mostStatements {
		told = []place{places[0], places[len(places)-1]}
	}
	several := func(of func(place) string) bool {
		return slices.ContainsFunc(places, func(p place) bool { return of(p) != of(places[0]) })
	}
	onHosts := several(func(p place) string { return p.host })
	withParams := several(func(p place) string { return p.params })

	var parts []string
	for _, p := range told {
		r := rows[p][0]
		where := "For " + p.workload
		if withParams && p.params != "" {
			where += p.params
		}
		where += " at " + r.Treatment.Instance.Name
		if onHosts {
			where += " on " + r.Host
		}
		if on := Online(s, r); on != "" {
			if !onHosts {
				where += " on the host"
			}
			where += " " + on
		}
		named := func(r *data.Row) string { return Name(data.NameOf(r.Treatment)) }
		if s.Networks(p.workload) {
			named = func(r *data.Row) string { return Name(data.NameOf(r.Treatment)) + connected(r.Treatment.Network) }
		}
		parts = append(parts, statement(where, rows[p], s.Baseline, named))
	}
	if n := len(places) - len(told); n > 0 {
		parts = append(parts, fmt.Sprintf("The table has %d more %s.", n, map[bool]string{true: "comparison", false: "comparisons"}[n == 1]))
	}

	if rungs {
		parts = append(parts, "The cost of each layer of isolation is in the table, and in the report as a staircase.")
	}
	emulated, doubtful, failing := false, 0, 0
	for i := range s.Rows {
		emulated = emulated || !s.Rows[i].Representative && s.Rows[i].Trials > 0
		if s.Rows[i].Doubtful && s.Rows[i].Representative {
			doubtful++
		}
		if r := &s.Rows[i]; r.Unreliable() && r.Rounds > 0 && r.Representative && !r.Doubtful && !r.IsBaseline() && !r.Treatment.AA {
			failing++
		}
	}
	if emulated {
		parts = append(parts, "VMs were emulated here, so their figures do not represent a VM's cost.")
	}
	switch {
	case doubtful == 1:
		parts = append(parts, "One treatment is not ranked: bare metal differed from itself by as much.")
	case doubtful > 1:
		parts = append(parts, fmt.Sprintf("%d treatments are not ranked: bare metal differed from itself by as much.", doubtful))
	}
	switch {
	case failing == 1:
		parts = append(parts, "One treatment is not ranked: too many of its trials failed.")
	case failing > 1:
		parts = append(parts, fmt.Sprintf("%d treatments are not ranked: too many of their trials failed.", failing))
	}
	if len(parts) == 0 {
		return "Nothing was measured."
	}
	return strings.Join(parts, " ")
}

// ordinals say which of those named before a figure is of.
var ordinals = []string{"first", "second", "third", "fourth"}

// statement is the answer at one place: one workload, host, its CPUs online, and instance type. Named says a row's
// treatment in words.
func statement(where string, rows []*data.Row, baseline map[string]string, named func(*data.Row) string) string {
	var ranked []*data.Row
	trials, good, open := 0, 0, 0
	lonely := true // there is nothing to compare with
	beside := ""   // what failed of it
	to := "bare metal"
	for _, r := range rows {
		trials += r.Trials
		good += r.Trials - r.Failed
		if r.IsBaseline() && r.Unreliable() && r.Rounds > 0 {
			f, _ := r.Failures()
			beside = " Of " + named(r) + " itself, " + strings.TrimSuffix(Failures(f), ".") + "; failed trials do not count."
		}
		if !r.Representative || r.Doubtful || r.Treatment.AA || r.IsBaseline() || r.Unreliable() {
			continue
		}
		lonely = lonely && r.Baseline == ""
		if stats.Finite(r.Ratio) && stats.Finite(r.RatioLow) && stats.Finite(r.RatioHigh) {
			ranked = append(ranked, r)
		} else if r.Rounds > 0 {
			open++
		}
	}
	if len(baseline) > 0 {
		to = data.Assignments(baseline)
	}
	switch {
	case trials == 0:
		return where + ", nothing was measured yet."
	case good == 0:
		return where + ", every trial failed."
	case open > 0 && lonely:
		return where + ", bare metal was not measured, so there is no baseline to compare with."
	case len(ranked) == 0 && open > 0:
		return where + ", no overhead has an interval yet: that takes at least two rounds in which both a platform and its baseline succeed."
	case len(ranked) == 0:
		return where + ", nothing that was measured can be ranked."
	}
	slices.SortStableFunc(ranked, func(a, b *data.Row) int { return cmp.Compare(a.Ratio, b.Ratio) })
	figure := func(r *data.Row) string { return Interval(r.Ratio, r.RatioLow, r.RatioHigh) }
	figures := func(rows []*data.Row) string {
		var all []string
		for _, r := range rows {
			all = append(all, named(r)+" "+figure(r))
		}
		return strings.Join(all, ", ")
	}
	// From here "costs 1.02 times bare metal (95 % interval 1.00 to 1.04)", and the rest in short.
	const most = 4
	more := ""
	if n := len(ranked) - most; n > 0 {
		more = fmt.Sprintf(", and %d more", n)
	}
	if !slices.ContainsFunc(ranked, func(r *data.Row) bool { return r.RatioLow > 1 || r.RatioHigh < 1 }) {
		if len(ranked) == 1 {
			return fmt.Sprintf("%s, %s is not distinguishable from %s: it costs %s times as much (95 %% interval).", where, named(ranked[0]), to, figure(ranked[0])) + beside
		}
		return fmt.Sprintf("%s, nothing is distinguishable from %s: as multiples of it, with 95 %% intervals, %s%s.", where, to, figures(ranked[:min(most, len(ranked))]), more) + beside
	}
	best := ranked[0]
	tied := slices.IndexFunc(ranked, func(r *data.Row) bool { return r.RatioLow > best.RatioHigh })
	if tied < 0 {
		tied = len(ranked)
	}
	// Ranked by the ratio, one with a wide interval may overlap behind one that does not.
	group, rest := slices.Clone(ranked[:tied]), []*data.Row(nil)
	for _, r := range ranked[tied:] {
		if r.RatioLow <= best.RatioHigh {
			group = append(group, r)
		} else {
			rest = append(rest, r)
		}
	}
	d := Decimals(best.RatioHigh-best.RatioLow, 2)
	first := fmt.Sprintf("%.*f times %s (95 %% interval %.*f to %.*f)", d, best.Ratio, to, d, best.RatioLow, d, best.RatioHigh)
	if best.RatioLow <= 1 && best.RatioHigh >= 1 {
		first += ", not distinguishable from 1"
	}
	var b strings.Builder
	switch {
	case len(group) == 1 && len(rest) == 0:
		fmt.Fprintf(&b, "%s, %s costs %s", where, named(best), first)
	case len(group) == 1:
		fmt.Fprintf(&b, "%s, %s costs least: %s", where, named(best), first)
	default:
		var names []string
		for _, r := range group[:min(most, len(group))] {
			names = append(names, named(r))
		}
		if n := len(group) - len(names); n > 0 {
			names = append(names, fmt.Sprintf("%d more", n))
		}
		var of []string
		for i, r := range group[1:min(most, len(group))] {
			of = append(of, "the "+ordinals[i+1]+" "+figure(r))
		}
		which := "cost least and are not distinguishable from each other"
		if len(rest) == 0 {
			which = "are not distinguishable from each other"
		}
		fmt.Fprintf(&b, "%s, %s and %s %s: the %s %s; %s", where, strings.Join(names[:len(names)-1], ", "), names[len(names)-1], which, ordinals[0], first, strings.Join(of, ", "))
	}
	for i, r := range rest {
		if i == most-1 && len(rest) > most {
			fmt.Fprintf(&b, "; %d more cost up to %s", len(rest)-i, figure(rest[len(rest)-1]))
			break
		}
		fmt.Fprintf(&b, "; %s %s", named(r), figure(r))
	}
	b.WriteByte('.')
	return b.String() + beside
}
