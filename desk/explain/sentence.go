package explain

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

// Sentences are made by rules. A part is named as a cause only where its interval excludes 0 though it was picked from all of
// them ([Part.Cause]), a figure that the baseline has too only where their difference does; a share is of the gap, and there
// is none where the gap's interval contains 0.

// nouns are what the gap "was".
var nouns = map[string]string{
	User: "running its own code", System: "the kernel running for it", Throttled: "throttling", Core: "waiting for a core", IO: "waiting for I/O",
	Waiting: "waiting for something else", Hypervisor: "the hypervisor", Unexplained: "unexplained",
}

// leastShare is the share of the gap from which on a part is worth a word, and mostCauses how many are told.
const (
	leastShare = 0.1
	mostCauses = 2
)

// evidence is a figure that says how a part came about: of those that are told from the baseline's, the first.
var evidence = []struct {
	part, of string
	say      string // with the figure, and the baseline's
}{
	{User, "node_migrations", "threads were moved to another NUMA node %s times a trial, against %s times"},
	{User, "cache_migrations", "threads were moved to a core with another cache %s times a trial, against %s times"},
	{User, "migrations", "threads were moved to another core %s times a trial, against %s times"},
	{System, "cgroup_s", "by samples, cgroup accounting took %s s of a trial, against %s s"},
	{System, "minor_faults", "%s page faults a trial, against %s"},
	{System, "switches", "%s context switches a trial, against %s"},
	{Core, "preemptions", "threads had to leave their core %s times a trial, against %s times"},
	{IO, "major_faults", "%s page faults that had to read a trial, against %s"},
	{IO, "read_bytes", "%s bytes were read a trial, against %s"},
	{IO, "written_bytes", "%s bytes were written a trial, against %s"},
	{Waiting, "waits", "threads waited %s times a trial, against %s times"},
	{Hypervisor, "steal_s", "the hypervisor under this machine took %s s of a trial, against %s s"},
}

// sentence is an account in plain words.
func sentence(a *Account) string {
	if a.Baseline == nil {
		return alone(a)
	}
	what, of := a.Label, a.Label
	if a.Emulated {
		of += ", emulated, which says nothing about a VM's cost"
		what += " is emulated, which says nothing about a VM's cost; it"
	}
	s := ""
	switch {
	case a.Rounds == 0:
		return what + " has no account: see its notes."
	case !a.Gap.HasInterval():
		more := "more"
		if a.Gap.Value < 0 {
			more = "less"
		}
		return fmt.Sprintf("%s took %s %s than %s, in one round only: what that says is not known.", what, unit(math.Abs(a.Gap.Value)), more, a.Against)
	case !a.HasGap() && a.metricDiffers():
		r := a.Row
		return fmt.Sprintf("%s: its trials took as long as those of %s, as they do where the load comes at a fixed rate, so an account of their time says nothing about its %s, which is %s.",
			of, a.Against, data.Printable(r.Metric.Name), times(stats.Quotient{Value: r.Ratio, Low: r.RatioLow, High: r.RatioHigh}, "bare metal's"))
	case !a.HasGap():
		return fmt.Sprintf("%s: the gap to %s is within the noise (%s).", of, a.Against, between(a.Gap)) + a.trust()
	case a.Row.Treatment.AA:
		more := "more"
		if a.Gap.Value < 0 {
			more = "less"
		}
		return fmt.Sprintf("%s took %s %s than %s (%s), though it is bare metal: that is what this host makes of nothing, and no cost.", what, unit(math.Abs(a.Gap.Value)), more, a.Against, between(a.Gap))
	case a.Times.HasInterval():
		s = fmt.Sprintf("%s is %s", what, times(a.Times, a.Against))
	case a.Gap.Value > 0:
		s = fmt.Sprintf("%s is slower than %s by %s", what, a.Against, unit(a.Gap.Value))
	default:
		s = fmt.Sprintf("%s is faster than %s by %s", what, a.Against, unit(-a.Gap.Value))
	}
	return s + ": " + a.causes() + "." + a.trust()
}

// comparison is an account of the slower of two provisionings against the faster, in plain words.
func comparison(a *Account) string {
	slower := a.Row.Treatment.Provisioning
	s := a.other()
	if a.Emulated {
		s += ", emulated,"
	}
	s += " is faster than " + slower + " here"
	if c := a.told(); len(c) > 0 && c[0].Key != Unexplained {
		s += " because " + a.causes()
	} else {
		s += ": " + a.causes()
	}
	if a.Times.HasInterval() {
		s += "; " + slower + " takes " + times(a.Times, "as long")
	}
	return s + "." + a.trust()
}

// other is the label of the baseline: the account's own, with the other provisioning.
func (a *Account) other() string {
	return strings.Replace(a.Label, a.Row.Treatment.Provisioning, a.Baseline.Treatment.Provisioning, 1)
}

// alone is a treatment without a baseline in words: what its own time went on.
func alone(a *Account) string {
	if !finite(a.Elapsed.Value) || !(a.Elapsed.Value > 0) || len(a.Spent) == 0 {
		return a.Label + " has no account: see its notes."
	}
	all := 0.0
	for _, s := range a.Spent {
		all += s.Seconds.Value
	}
	spent := slices.Clone(a.Spent)
	slices.SortStableFunc(spent, func(x, y Spent) int { return cmp.Compare(y.Seconds.Value, x.Seconds.Value) })
	var parts []string
	for _, s := range spent {
		if part := s.Seconds.Value / all; part >= leastShare && len(parts) <= mostCauses {
			parts = append(parts, fmt.Sprintf("%.0f %% %s", 100*part, s.Label))
		}
	}
	s := a.Label
	if a.Row.Treatment.Platform == notebook.BM {
		s += ", which others are compared with,"
	}
	s += " took " + unit(a.Elapsed.Value)
	if len(parts) > 0 {
		s += "; of its explained trials " + strings.Join(parts, ", ")
		if a.Coarse {
			s += ", of what is known"
		}
	}
	return s + "."
}

// metricDiffers says whether the workload's metric is another figure than the elapsed time, and differs from bare metal's
// where the time does not.
func (a *Account) metricDiffers() bool {
	other := slices.ContainsFunc(a.Notes, func(n string) bool { return strings.HasPrefix(n, ofElapsed) })
	r := a.Row
	return other && a.Baseline.Treatment.ID == r.Baseline && (r.RatioLow > 1 || r.RatioHigh < 1)
}

// told are the parts on the gap's side that are worth a word, the largest first.
func (a *Account) told() []*Part {
	var all []*Part
	for i := range a.Parts {
		p := &a.Parts[i]
		if p.Cause && p.Seconds.Value > 0 == (a.Gap.Value > 0) {
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(p, q *Part) int {
		return cmp.Compare(math.Abs(q.Seconds.Value), math.Abs(p.Seconds.Value))
	})
	n := 0
	for n < len(all) && n < mostCauses && (n == 0 || all[n].Share.Value >= leastShare) {
		n++
	}
	return all[:n]
}

// causes says what the gap was, in words that follow a colon or "because".
func (a *Account) causes() string {
	all := a.told()
	if len(all) == 0 {
		return fmt.Sprintf("of the gap's %d parts none can be told from nothing", len(a.Parts))
	}
	less := ""
	if a.Gap.Value < 0 {
		less = "less "
	}
	var parts []string
	for i, p := range all {
		share := shareWords(p.Share)
		var s string
		switch {
		case p.Key == Unexplained && i == 0:
			s = "unexplained is the largest part that can be told from nothing, " + share + " of the gap"
		case p.Key == Unexplained:
			s = share + " is unexplained"
		case i == 0:
			s = share + " of the gap was " + less + nouns[p.Key]
		default:
			s = share + " was " + less + nouns[p.Key]
		}
		if e := a.evidence(p); e != "" {
			s += " (" + e + ")"
		}
		parts = append(parts, s)
	}
	if against := a.against(); against != "" {
		parts = append(parts, against)
	}
	return strings.Join(parts, "; ")
}

// against is the largest part on the other side.
func (a *Account) against() string {
	var most *Part
	for i := range a.Parts {
		p := &a.Parts[i]
		if p.Cause && p.Seconds.Value > 0 != (a.Gap.Value > 0) && -p.Share.Value >= leastShare && (most == nil || p.Share.Value < most.Share.Value) {
			most = p
		}
	}
	how := "less "
	if a.Gap.Value < 0 {
		how = "more "
	}
	if most == nil {
		return ""
	}
	q := most.Share
	q.Value, q.Low, q.High = -q.Value, -q.High, -q.Low
	if most.Key == Unexplained {
		return shareWords(q) + " went the other way, unexplained"
	}
	return how + nouns[most.Key] + " made it smaller by " + shareWords(q)
}

// evidence is what a figure says about a part; empty where none that is told does.
func (a *Account) evidence(p *Part) string {
	switch p.Key {
	case Throttled:
		spent, of := a.total("throttled_periods"), a.total("periods")
		if of > 0 && spent > 0 && p.Seconds.Value > 0 {
			return fmt.Sprintf("the CPU quota was spent in %.0f of %.0f periods", spent, of)
		}
	case Core:
		if at, ok := slowest(a.Spread, notebook.RunQueue, ""); ok && p.Seconds.Value > 0 {
			return "one wait for a core in 100 took " + unit(at) + " or more"
		}
	}
	for _, e := range evidence {
		if e.part != p.Key {
			continue
		}
		for i := range a.Figures {
			if f := &a.Figures[i]; f.Of == e.of && f.Before.N > 0 && excludesZero(f.More) && f.More.Value > 0 == (p.Seconds.Value > 0) {
				return fmt.Sprintf(e.say, quantity(f.Mean.Value), quantity(f.Before.Value))
			}
		}
	}
	if p.Key == Hypervisor && p.Seconds.Value > 0 {
		if n := a.total("exits"); n > 0 {
			return "virtual CPUs were left " + quantity(n/float64(max(a.Explained-a.Failed, 1))) + " times a trial"
		}
	}
	return ""
}

// total is a figure's sum over all explained trials; 0 where there is none. By reason or by device there may be more of it.
func (a *Account) total(of string) float64 {
	for i := range a.Figures {
		if f := &a.Figures[i]; f.Name == of {
			return f.Total
		}
	}
	return 0
}

// slowest is what one value in a hundred of a distribution of the work is at least; seconds. Of a bucket its lower end is
// known to be reached.
func slowest(all []notebook.Distribution, what, of string) (float64, bool) {
	var counts [buckets]int64
	n := int64(0)
	for _, d := range all {
		if d.What != what || d.Of != of || d.Unit != "s" || d.Role != notebook.RoleWork && d.Role != notebook.RoleVCPU {
			continue
		}
		for i, c := range d.Counts[:min(len(d.Counts), buckets)] {
			counts[i] += max(c, 0)
			n += max(c, 0)
		}
	}
	above := int64(0)
	for i := len(counts) - 1; i > 0; i-- {
		if above += counts[i]; above*100 >= n && n > 0 {
			return math.Ldexp(1e-9, i), true
		}
	}
	return 0, false
}

// trust follows the sentence of what the A/A check makes doubtful.
func (a *Account) trust() string {
	if a.Doubtful {
		return " It is not to be trusted: bare metal differed from itself by as much."
	}
	return ""
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// shareWords writes a share with its interval, "92 % (88 to 96)".
func shareWords(q stats.Quotient) string {
	if !q.HasInterval() {
		return percent(q.Value)
	}
	return percent(q.Value) + " (" + hundredths(q.Low) + " to " + hundredths(q.High) + ")"
}

func percent(share float64) string { return hundredths(share) + " %" }

// hundredths writes a share in hundredths; what is rounded to nothing has no sign.
func hundredths(share float64) string { return unsigned(fmt.Sprintf("%.0f", 100*share)) }

func unsigned(number string) string {
	if strings.Trim(number, "-0.") == "" {
		return strings.TrimPrefix(number, "-")
	}
	return number
}

// times writes "1.50 times bare metal (1.45–1.55)", with as many decimals as the interval deserves.
func times(q stats.Quotient, of string) string {
	d := 2
	if w := q.High - q.Low; w > 0 {
		d = min(max(int(math.Ceil(-math.Log10(w))), 2), 6)
	}
	return fmt.Sprintf("%.*f times %s (%.*f–%.*f)", d, q.Value, of, d, q.Low, d, q.High)
}

// scale is the unit that suits a time, and what seconds are multiplied by for it.
func scale(seconds float64) (name string, by float64) {
	switch s := math.Abs(seconds); {
	case s == 0 || s >= 1:
		return "s", 1
	case s < 1e-3:
		return "µs", 1e6
	}
	return "ms", 1e3
}

// unit writes a time in a unit that suits it.
func unit(seconds float64) string {
	name, by := scale(seconds)
	return fmt.Sprintf("%.3g %s", seconds*by, name)
}

// between writes an interval of time, "−3 to 12 ms".
func between(e stats.Estimate) string {
	name, by := scale(max(math.Abs(e.Low), math.Abs(e.High)))
	return strings.ReplaceAll(fmt.Sprintf("%.3g to %.3g %s", e.Low*by, e.High*by, name), "-", "−")
}

// quantity writes a figure in three digits, whole where it is large.
func quantity(v float64) string {
	if math.Abs(v) >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
