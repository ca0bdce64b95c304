package data

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/notebook"
)

// name is a row's treatment in words, without workload and instance type: "a pinned docker container".
func (r *Row) name() string { return name(r.Treatment) }

func name(t notebook.Treatment) string {
	words := []string{"a"}
	if t.Provisioning != "" {
		words = append(words, t.Provisioning)
	}
	switch t.Platform {
	case notebook.BM:
		if t.AA {
			return "bare metal under another name"
		}
		return "bare metal"
	case notebook.CN:
		words = append(words, t.Engine, "container")
	case notebook.VM:
		words = append(words, "VM")
	case notebook.VMCN:
		words = append(words, t.Engine, "container in a VM")
	default:
		words = append(words, t.Engine, t.Platform)
	}
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
	if strings.ContainsRune("aeiou", rune(words[1][0])) {
		words[0] = "an"
	}
	return strings.Join(words, " ") + isolated(t.Isolation)
}

// digits is how many decimals a ratio deserves whose interval is so wide, from least to 6.
func digits(width float64, least int) int {
	if !(width > 0) || math.IsInf(width, 0) {
		return max(least, 2)
	}
	return min(max(int(math.Ceil(-math.Log10(width))), least), 6)
}

// interval writes "1.02 (1.00 to 1.04)", with as many decimals as the interval deserves.
func interval(v, low, high float64) string {
	if !finite(low) || !finite(high) {
		return fmt.Sprintf("%.2f (no interval)", v)
	}
	d := digits(high-low, 2)
	return fmt.Sprintf("%.*f (%.*f to %.*f)", d, v, d, low, d, high)
}

// rung says whether a row is of a layer of the isolation ladder, and no whole container.
func (r *Row) rung() bool {
	return r.Treatment.Isolation != "" && r.Treatment.Isolation != notebook.IsolationFull
}

// mostStatements bounds how many comparisons the answer tells; the table has them all.
const mostStatements = 2

// sentence answers the question of the folders: what costs least, by how much, and how sure that is. A row that is not
// representative, or not to be trusted, is not ranked; rows that the intervals do not tell apart are called so.
func sentence(s *Summary, baseline map[string]string) string {
	type place struct {
		host, workload, params, image string
		metric                        notebook.Metric
		cores                         float64
		memory                        int64
		hostCores                     int
	}
	var places []place
	rows := map[place][]*Row{}
	for i := range s.Rows {
		r := &s.Rows[i]
		t := r.Treatment
		p := place{r.HostID, t.Workload, sortedParams(t.Params), r.Image.Digest + r.Image.Input, r.Metric, t.Instance.Cores, t.Instance.Memory, r.HostCores}
		if rows[p] == nil {
			places = append(places, p)
		}
		rows[p] = append(rows[p], r)
	}
	// Between bare metal and whole containers a ladder has many rungs. None is a platform to choose: where there are whole ones
	// the answer is of those.
	rungs := false
	for p, list := range rows {
		if slices.ContainsFunc(list, func(r *Row) bool {
			return !r.rung() && !r.IsBaseline() && !r.Treatment.AA && r.Representative && r.Rounds > 0
		}) {
			rows[p] = slices.DeleteFunc(list, func(r *Row) bool { return r.rung() && !r.IsBaseline() })
			rungs = rungs || len(rows[p]) < len(list)
		}
	}
	// The place of the baseline alone compares nothing.
	compared := slices.DeleteFunc(slices.Clone(places), func(p place) bool {
		return !slices.ContainsFunc(rows[p], func(r *Row) bool { return !r.IsBaseline() && !r.Treatment.AA })
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
			where += " (" + p.params + ")"
		}
		where += " at " + r.Treatment.Instance.Name
		if onHosts {
			where += " on " + r.Host
		}
		if on := s.Online(p.host, p.workload, p.hostCores); on != "" {
			if !onHosts {
				where += " on the host"
			}
			where += " " + on
		}
		named := (*Row).name
		if s.Networks(p.workload) {
			named = func(r *Row) string { return r.name() + connected(r.Treatment.Network) }
		}
		parts = append(parts, statement(where, rows[p], baseline, named))
	}
	if n := len(places) - len(told); n > 0 {
		parts = append(parts, fmt.Sprintf("The table has %d more %s.", n, map[bool]string{true: "comparison", false: "comparisons"}[n == 1]))
	}

	if rungs {
		parts = append(parts, "What each layer of isolation costs is in the table, and in the report as a staircase.")
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
		parts = append(parts, "VMs were emulated here and say nothing about a VM's cost.")
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
func statement(where string, rows []*Row, baseline map[string]string, named func(*Row) string) string {
	var ranked []*Row
	trials, good, open := 0, 0, 0
	lonely := true // there is nothing to compare with
	beside := ""   // what failed of it
	to, than := "bare metal", "bare metal's"
	for _, r := range rows {
		trials += r.Trials
		good += r.Trials - r.Failed
		if r.IsBaseline() && r.Unreliable() && r.Rounds > 0 {
			beside = " Of " + named(r) + " itself " + strings.TrimSuffix(r.Failures, ".") + "; they do not count."
		}
		if !r.Representative || r.Doubtful || r.Treatment.AA || r.IsBaseline() || r.Unreliable() {
			continue
		}
		lonely = lonely && r.Baseline == ""
		if finite(r.Ratio) && finite(r.RatioLow) && finite(r.RatioHigh) {
			ranked = append(ranked, r)
		} else if r.Rounds > 0 {
			open++
		}
	}
	if len(baseline) > 0 {
		to = "that of " + assignments(baseline)
		than = to
	}
	switch {
	case trials == 0:
		return where + ", nothing was measured yet."
	case good == 0:
		return where + ", every trial failed."
	case open > 0 && lonely:
		return where + ", bare metal was not measured, so there is nothing to compare with."
	case len(ranked) == 0 && open > 0:
		return where + ", no cost is known with its uncertainty: that takes two rounds or more in which it and what it is compared with succeed."
	case len(ranked) == 0:
		return where + ", nothing was measured that can be ranked."
	}
	slices.SortStableFunc(ranked, func(a, b *Row) int { return cmp.Compare(a.Ratio, b.Ratio) })
	figure := func(r *Row) string { return interval(r.Ratio, r.RatioLow, r.RatioHigh) }
	list := func(rows []*Row) string {
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
	if !slices.ContainsFunc(ranked, func(r *Row) bool { return r.RatioLow > 1 || r.RatioHigh < 1 }) {
		if len(ranked) == 1 {
			return fmt.Sprintf("%s, the cost of %s cannot be told from %s: %s times it (95 %% interval).", where, named(ranked[0]), than, figure(ranked[0])) + beside
		}
		return fmt.Sprintf("%s, no cost can be told from %s: as multiples of it, with 95 %% intervals, %s%s.", where, than, list(ranked[:min(most, len(ranked))]), more) + beside
	}
	best := ranked[0]
	tied := slices.IndexFunc(ranked, func(r *Row) bool { return r.RatioLow > best.RatioHigh })
	if tied < 0 {
		tied = len(ranked)
	}
	// Ranked by the ratio, one with a wide interval may overlap behind one that does not.
	group, rest := slices.Clone(ranked[:tied]), []*Row(nil)
	for _, r := range ranked[tied:] {
		if r.RatioLow <= best.RatioHigh {
			group = append(group, r)
		} else {
			rest = append(rest, r)
		}
	}
	d := digits(best.RatioHigh-best.RatioLow, 2)
	first := fmt.Sprintf("%.*f times %s (95 %% interval %.*f to %.*f)", d, best.Ratio, to, d, best.RatioLow, d, best.RatioHigh)
	if best.RatioLow <= 1 && best.RatioHigh >= 1 {
		first += ", which cannot be told from 1"
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
		var figures []string
		for i, r := range group[1:min(most, len(group))] {
			figures = append(figures, "the "+ordinals[i+1]+" "+figure(r))
		}
		which := "cost least and cannot be told apart"
		if len(rest) == 0 {
			which = "cannot be told apart"
		}
		fmt.Fprintf(&b, "%s, %s and %s %s: the %s %s; %s", where, strings.Join(names[:len(names)-1], ", "), names[len(names)-1], which, ordinals[0], first, strings.Join(figures, ", "))
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
