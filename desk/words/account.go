package words

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/desk/data"
	"tare/desk/explain"
	"tare/notebook"
	"tare/stats"
)

// Sentences about time breakdowns follow rules. A part is named as a cause only where its interval excludes 0, after a correction for picking
// it from all parts (explain.Part.Cause). A metric that the baseline has too is named only where the interval of their difference excludes 0. A
// share is a share of the overhead. There is no share where the overhead is not significant.

// parts has words for each category of a time breakdown: its label, and its name as a cause of overhead.
var parts = map[string]struct{ label, cause string }{
	explain.User:         {"running user", "running its own code"},
	explain.System:       {"running system", "the kernel running for it"},
	explain.Throttled:    {"throttled", "throttling"},
	explain.Core:         {"waiting for a core", "waiting for a core"},
	explain.IO:           {"I/O", "waiting for I/O"},
	explain.Waiting:      {"other waiting", "waiting for something else"},
	explain.Hypervisor:   {"hypervisor", "the hypervisor"},
	explain.Unexplained:  {"unexplained", "unexplained"},
	explain.Running:      {"running", "running"},
	explain.Queued:       {"queued before it was read", "queueing before the request was read"},
	explain.Disk:         {"waiting for a disk", "waiting for a disk"},
	explain.Load:         {"load and network", "the load and the network"},
	explain.Remainder:    {label: "remainder"},
	notebook.WallBlock:   {label: "waiting for a block device"},
	notebook.WallMemory:  {label: "waiting for memory"},
	notebook.WallNetwork: {"waiting for a socket", "waiting for a socket"},
	notebook.WallFutex:   {"waiting for each other (futex)", "waiting for locks"},
	notebook.WallSleep:   {label: "sleeping"},
	notebook.WallOther:   {label: "waiting for anything else"},
}

// Part labels a category of an account, by its key: "waiting for a core".
func Part(key string) string { return cmp.Or(parts[key].label, key) }

// Against names the baseline of a time breakdown: "bare metal", "bare metal with 1 core", "a CPU set". Empty: there is none.
func Against(a *explain.Account) string {
	if a.Baseline == nil {
		return ""
	}
	return against(a.Against)
}

func against(b explain.Against) string {
	switch {
	case b.Provisioning != "":
		return limitNames[b.Provisioning]
	case b.Cores > 0:
		return "bare metal with " + cores(b.Cores)
	}
	return "bare metal"
}

// AccountPlace names what an account's treatment is compared within.
func AccountPlace(a *explain.Account) string {
	p := Place(a.Row)
	if a.OtherImages {
		p += Plain(", " + Digests(a.Row.Image))
	}
	return p
}

// evidence lists metrics that show how a part came about. A sentence uses the first one that differs significantly from the baseline's.
var evidence = []struct {
	part, of string
	say      string // with the value, and the baseline's
}{
	// Migrations: the costliest first.
	{explain.User, "node_migrations", "threads were moved to another NUMA node %s times per trial, against %s"},
	{explain.User, "cache_migrations", "threads were moved to a core with another cache %s times per trial, against %s"},
	// Migrations to any core.
	{explain.User, "migrations", "threads were moved to another core %s times per trial, against %s"},

	{explain.System, "cgroup_s", "by samples, cgroup accounting took %s s per trial, against %s s"},
	{explain.System, "minor_faults", "%s page faults per trial, against %s"},
	{explain.System, "switches", "%s context switches per trial, against %s"},

	{explain.Core, "preemptions", "threads had to leave their core %s times per trial, against %s"},

	{explain.IO, "major_faults", "%s page faults per trial that had to read, against %s"},
	{explain.IO, "read_bytes", "%s bytes were read per trial, against %s"},
	{explain.IO, "written_bytes", "%s bytes were written per trial, against %s"},

	{explain.Waiting, "waits", "threads waited %s times per trial, against %s"},
	{explain.Hypervisor, "steal_s", "the hypervisor under this machine took %s s per trial, against %s s"},
}

// Account describes a time breakdown in plain words.
func Account(s *data.Summary, a *explain.Account) string {
	switch {
	case a.Of != explain.OfElapsed:
		return requests(s, a)
	case a.Baseline == nil:
		return alone(s, a)
	case a.Against.Provisioning != "":
		return comparison(s, a)
	}
	label, than := subjectOf(s, a.Row), against(a.Against)
	emulated := ""
	if a.Emulated {
		emulated = " (emulated, which does not represent a VM's cost)"
	}
	subject := label + emulated
	more := "more"
	if a.Overhead.Value < 0 {
		more = "less"
	}
	switch {
	case a.Rounds == 0:
		return subject + " has no time breakdown; its notes say why."
	case !a.Overhead.HasInterval():
		return fmt.Sprintf("%s took %s %s than %s in its only round; one round has no interval.", subject, Duration(math.Abs(a.Overhead.Value)), more, than)
	case (!a.Significant() || a.NearZero()) && metricDiffers(a):
		r := a.Row
		said := fmt.Sprintf("%s: its runs took as long as those of %s, as under any load with a fixed rate. A breakdown of their time does not explain its %s, which is %s.",
			subject, than, Called(r.Metric), Times(r.Quotient(), "bare metal's"))
		if r.Trace != nil && !r.Trace.Asked[notebook.TracerRequests] && !notebook.HasMachine(r.Treatment.Platform) {
			said += " With --explain=deep, Tare divides the time of each request."
		}
		return said
	case !a.Significant():
		return fmt.Sprintf("%s is not distinguishable from %s: its overhead is within the noise (%s).", subject, than, between(a.Overhead)) + trust(a)
	case a.Row.Treatment.AA:
		return fmt.Sprintf("%s took %s %s than %s (%s), although both are bare metal: this is the host's noise, not an overhead.", subject, Duration(math.Abs(a.Overhead.Value)), more, than, between(a.Overhead))
	case a.NearZero():
		return fmt.Sprintf("%s takes %s: next to no overhead. Larger parts of it cancel out (%s), so none of them is its cause.", subject, Times(a.Times, "as long as "+than), cancelling(a)) + trust(a)
	case a.Times.HasInterval():
		subject += " takes " + Times(a.Times, "as long as "+than)
	default:
		subject += fmt.Sprintf(" took %s %s than %s", Duration(math.Abs(a.Overhead.Value)), more, than)
	}
	return subject + ": " + causes(a) + "." + trust(a)
}

// comparison describes in plain words why the slower of two provisionings takes longer than the faster one.
func comparison(s *data.Summary, a *explain.Account) string {
	slower := limitNames[a.Row.Treatment.Provisioning]
	faster := *a.Row
	faster.Treatment.Provisioning = a.Baseline.Treatment.Provisioning
	said := subjectOf(s, &faster)
	if a.Emulated {
		said += ", emulated,"
	}
	said += " is faster than " + slower + " here"
	if c := a.Causes(); len(c) > 0 && c[0].Key != explain.Unexplained {
		said += " because " + causes(a)
	} else {
		said += ": " + causes(a)
	}
	if a.Times.HasInterval() {
		said += "; " + slower + " takes " + Times(a.Times, "as long")
	}
	return said + "." + trust(a)
}

// alone says what a treatment's own time went on, where there is no baseline.
func alone(s *data.Summary, a *explain.Account) string {
	label := subjectOf(s, a.Row) + emulated(a.Row.Treatment)
	if !stats.Finite(a.Elapsed.Value) || !(a.Elapsed.Value > 0) || len(a.Spent) == 0 {
		return label + " has no time breakdown; its notes say why."
	}
	on := largest(a.Spent)
	if a.Row.Treatment.Platform == notebook.BM {
		label += ", the baseline,"
	}
	label += " took " + Duration(a.Elapsed.Value)
	if len(on) > 0 {
		label += "; its traced trials spent " + strings.Join(on, ", ")
		if a.Coarse {
			label += ", of what is known"
		}
	}
	return label + "."
}

// largest lists the largest parts of a time: "39 % sleeping".
func largest(spent []explain.Spent) (on []string) {
	all := 0.0
	for _, s := range spent {
		all += s.Seconds.Value
	}
	spent = slices.Clone(spent)
	slices.SortStableFunc(spent, func(x, y explain.Spent) int { return cmp.Compare(y.Seconds.Value, x.Seconds.Value) })
	for _, s := range spent {
		if part := s.Seconds.Value / all; part >= explain.LeastShare && len(on) <= explain.MostCauses {
			on = append(on, fmt.Sprintf("%.0f %% %s", 100*part, Part(s.Key)))
		}
	}
	return on
}

// Subject names what an account divides: "response time", "99th percentile".
func Subject(a *explain.Account) string {
	switch a.Of {
	case explain.OfMean:
		return Called(a.Row.Metric)
	case explain.OfP99:
		return "99th percentile"
	}
	return "elapsed time"
}

// Slow says why slow requests took longer than median ones. It is empty if Tare does not know.
func Slow(a *explain.Account) string {
	if a.Of != explain.OfP99 || !(a.Slow.Value > 0) {
		return ""
	}
	s := "slow requests (98.5th to 99.5th percentile) took " + Duration(a.Slow.Value)
	if a.Slow.HasInterval() {
		s += " (" + between(a.Slow) + ")"
	}
	s += " longer than median ones"
	if on := largest(a.SlowOn); len(on) > 0 && a.Slow.Low > 0 { // otherwise they may not be slower at all
		s += ": " + strings.Join(on, ", ")
	}
	return s
}

// TimeOf names the axis of an account's time.
func TimeOf(a *explain.Account) string {
	if a.Of == explain.OfElapsed {
		return TrialsTime
	}
	return Plain(Subject(a))
}

// requests describes a time breakdown of requests in plain words.
func requests(s *data.Summary, a *explain.Account) string {
	subject := subjectOf(s, a.Row) + emulated(a.Row.Treatment)
	if a.Baseline == nil && a.Row.Treatment.Platform == notebook.BM {
		subject += ", the baseline"
	}
	subject += ": its " + Subject(a)
	than, more := against(a.Against), "more"
	if a.Overhead.Value < 0 {
		more = "less"
	}
	differs := fmt.Sprintf("%s is %s %s than that of %s", subject, Duration(math.Abs(a.Overhead.Value)), more, than)
	switch {
	case !stats.Finite(a.Elapsed.Value) || len(a.Spent) == 0 || a.Baseline != nil && a.Rounds == 0:
		return subject + " has no time breakdown; the notes say why."
	case a.Baseline == nil:
		subject += " is " + Duration(a.Elapsed.Value)
		if on := largest(a.Spent); len(on) > 0 {
			subject += "; its parts in traced runs: " + strings.Join(on, ", ")
		}
		return subject + "."
	case !a.Overhead.HasInterval():
		return differs + " in its only round; one round has no interval."
	case !a.Significant():
		return fmt.Sprintf("%s is not distinguishable from that of %s: the difference is within the noise (%s).", subject, than, between(a.Overhead)) + trust(a)
	case a.Row.Treatment.AA:
		return fmt.Sprintf("%s (%s), although both are bare metal: this is the host's noise, not an overhead.", differs, between(a.Overhead))
	case a.NearZero():
		return fmt.Sprintf("%s is %s: next to no overhead. Larger parts of it cancel out (%s), so none of them is its cause.", subject, Times(a.Times, "that of "+than), cancelling(a)) + trust(a)
	case a.Times.HasInterval():
		differs = subject + " is " + Times(a.Times, "that of "+than)
	}
	return differs + ": " + causes(a) + "." + trust(a)
}

// metricDiffers says whether the workload's metric is not the elapsed time, and differs from bare metal's where the time
// does not.
func metricDiffers(a *explain.Account) bool {
	other := slices.ContainsFunc(a.Doubts, func(d data.Doubt) bool { _, is := d.(explain.OtherMetric); return is })
	r := a.Row
	return other && a.Baseline.Treatment.ID == r.Baseline && (r.RatioLow > 1 || r.RatioHigh < 1)
}

// causes says what the overhead is attributed to, in words that follow a colon or "because".
func causes(a *explain.Account) string {
	all := a.Causes()
	if len(all) == 0 {
		return fmt.Sprintf("none of the %d parts of the overhead is significant", len(a.Parts))
	}
	less := ""
	if a.Overhead.Value < 0 {
		less = "less "
	}
	var list []string
	for i, p := range all {
		of := Share(p.Share)
		var s string
		switch {
		case p.Key == explain.Unexplained && i == 0:
			s = of + " of the overhead is unexplained, its largest significant part"
		case p.Key == explain.Unexplained:
			s = of + " is unexplained"
		case i == 0:
			s = of + " of the overhead is " + less + parts[p.Key].cause
		default:
			s = of + " is " + less + parts[p.Key].cause
		}
		if e := evident(a, p); e != "" {
			s += " (" + e + ")"
		}
		list = append(list, s)
	}
	if c := counter(a); c != "" {
		list = append(list, c)
	}
	return strings.Join(list, "; ")
}

// cancelling lists the significant parts of an overhead near zero, the largest first: "+1.0 s throttling, −1.0 s waiting for something else".
func cancelling(a *explain.Account) string {
	var all []*explain.Part
	for i := range a.Parts {
		if p := &a.Parts[i]; p.Significant() && p.Key != explain.Unexplained {
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(p, q *explain.Part) int { return cmp.Compare(math.Abs(q.Seconds.Value), math.Abs(p.Seconds.Value)) })
	var list []string
	for _, p := range all[:min(len(all), explain.MostCauses+1)] {
		sign := "+"
		if p.Seconds.Value < 0 {
			sign = "−"
		}
		list = append(list, sign+Duration(math.Abs(p.Seconds.Value))+" "+parts[p.Key].cause)
	}
	return cmp.Or(strings.Join(list, ", "), "none is significant by itself")
}

// counter says the largest part on the other side; empty where there is none.
func counter(a *explain.Account) string {
	most := a.Offset()
	if most == nil {
		return ""
	}
	how := "less "
	if a.Overhead.Value < 0 {
		how = "more "
	}
	q := most.Share
	q.Value, q.Low, q.High = -q.Value, -q.High, -q.Low
	if most.Key == explain.Unexplained {
		return Share(q) + " in the other direction is unexplained"
	}
	return how + parts[most.Key].cause + " reduces it by " + Share(q)
}

// evident is what a metric says about a part; empty where none that is significant does.
func evident(a *explain.Account, p *explain.Part) string {
	switch p.Key {
	case explain.Throttled:
		spent, of := totalOf(a, "throttled_periods"), totalOf(a, "periods")
		if of > 0 && spent > 0 && p.Seconds.Value > 0 {
			return fmt.Sprintf("the CPU quota was exhausted in %.0f of %.0f periods", spent, of)
		}
	case explain.Core:
		if at, ok := slowest(a.Spread, notebook.RunQueue, ""); ok && p.Seconds.Value > 0 {
			return "one wait for a core in 100 took " + Duration(at) + " or more"
		}
	}
	for _, e := range evidence {
		if e.part != p.Key {
			continue
		}
		for i := range a.Figures {
			if f := &a.Figures[i]; f.Of == e.of && f.Before.N > 0 && f.Significant() && f.More.Value > 0 == (p.Seconds.Value > 0) {
				return fmt.Sprintf(e.say, quantity(f.Mean.Value), quantity(f.Before.Value))
			}
		}
	}
	if p.Key == explain.Hypervisor && p.Seconds.Value > 0 {
		if n := totalOf(a, "exits"); n > 0 {
			return "virtual CPUs exited " + quantity(n/float64(max(a.Traced-a.Failed, 1))) + " times per trial"
		}
	}
	return ""
}

// totalOf is a metric's sum over all traced trials; 0 where there is none. By reason or by device there may be more of it.
func totalOf(a *explain.Account, of string) float64 {
	for i := range a.Figures {
		if f := &a.Figures[i]; f.Name == of {
			return float64(f.Total)
		}
	}
	return 0
}

// slowest is what one value in a hundred of a distribution of the work is at least; seconds. Of a bucket its lower end is
// known to be reached.
func slowest(all []notebook.Distribution, what, of string) (float64, bool) {
	var counts [data.Buckets]int64
	n := int64(0)
	for _, d := range all {
		if d.What != what || d.Of != of || d.Unit != "s" || d.Role != notebook.RoleWork && d.Role != notebook.RoleVCPU {
			continue
		}
		for i, c := range d.Counts[:min(len(d.Counts), data.Buckets)] {
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
func trust(a *explain.Account) string {
	if a.Doubtful {
		return " Do not trust this: the difference is within the A/A noise."
	}
	return ""
}

// sourceOf names the source of an account; "" for a coarse account, which needs a longer explanation.
func sourceOf(a *explain.Account) string {
	switch a.Tier {
	case notebook.TierCounters:
		return "from the kernel's counters"
	case notebook.TierEvents:
		return "from every switch"
	}
	return ""
}

// Traced says what the tracers cost, and in how many trials and rounds they observed a treatment.
func Traced(a *explain.Account) string {
	if a.Traced == a.Failed {
		return Count(a.Traced, "traced trial") + ", all failed"
	}
	s := fmt.Sprintf("%s, %s", Count(a.Traced-a.Failed, "traced trial"), Count(a.Rounds, "round"))
	if source := sourceOf(a); source != "" {
		s += ", " + source
	}
	if a.Lost > 0 {
		s += ", " + Count(a.Lost, "event") + " lost"
	}
	if d := a.DiskPerRequest; d.N > 0 {
		s += "; " + Measured(d.Value, d.Low, d.High, "") + " disk operations a request"
	}
	if !a.TracerCost.HasInterval() {
		return s + "; the tracers' cost is unknown"
	}
	if a.Of == explain.OfElapsed {
		s += "; tracing took "
	} else {
		s += "; with tracing, it was "
	}
	s += Times(a.TracerCost, "as long")
	if a.TracerCost.High < 1 {
		s += " (noise: tracing cannot speed a program up)"
	}
	return s
}

// Tracing says what a reader must know of the tracers: their own cost, what they did not observe, and what failed.
func Tracing(a *explain.Account) []string {
	var list []string
	if n := a.Traced; n > 0 {
		list = append(list, fmt.Sprintf("%s; %s with traced and untraced runs of both this configuration and its reference.", Count(n, "traced trial"), Count(a.Rounds, "round")))
	}
	if source := sourceOf(a); source != "" {
		list = append(list, "The breakdown comes "+source+".")
	}
	if s := Slow(a); s != "" {
		list = append(list, Sentence(s))
	}
	if c := a.TracerCost; !math.IsNaN(c.Value) {
		what := "traced runs took "
		if a.Of != explain.OfElapsed {
			what = "in traced runs, it was "
		}
		w := "The tracers’ cost: " + what + Measured(c.Value, c.Low, c.High, "") + " times as long as the others"
		if c.HasInterval() && c.Contains(1) {
			w += ", not distinguishable from none"
		}
		list = append(list, w+".")
	} else {
		list = append(list, "The tracers’ cost is not known.")
	}
	if a.Lost == 0 && a.Traced > 0 {
		list = append(list, "The tracers lost no event.")
	}
	// The account's doubts say what was lost, failed or missing.
	for _, n := range Doubts(a.Doubts) {
		if n = Sentence(n); !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

// Share writes a share with its interval, "92 % (88 to 96)"; where one end is not known, "60 % (above 45)".
func Share(q stats.Quotient) string {
	if !bounded(q) {
		return Percent(q.Value, 0)
	}
	return Percent(q.Value, 0) + " (" + ShareBounds(q) + ")"
}

// bounded says whether an end of the interval is known.
func bounded(q stats.Quotient) bool { return stats.Finite(q.Low) || stats.Finite(q.High) }

// ShareBounds writes only the interval of a share; empty where neither end is known.
func ShareBounds(q stats.Quotient) string {
	if !bounded(q) {
		return ""
	}
	return Bounds(100*q.Low, 100*q.High, 0)
}

// Times writes "1.50 times bare metal (1.45–1.55)", with as many decimals as the interval deserves.
func Times(q stats.Quotient, of string) string {
	d := Decimals(q.High - q.Low)
	return fmt.Sprintf("%.*f times %s (%.*f–%.*f)", d, q.Value, of, d, q.Low, d, q.High)
}

// between writes an interval of time, "−3 to 12 ms".
func between(e stats.Estimate) string {
	name, by := Scale(max(math.Abs(e.Low), math.Abs(e.High)))
	return Digits(e.Low*by, 3) + " to " + Digits(e.High*by, 3) + " " + name
}

func cores(n float64) string {
	if n == 1 {
		return "1 core"
	}
	return strconv.FormatFloat(n, 'g', -1, 64) + " cores"
}

// Missing says why a tracer observed nothing.
func Missing(m data.Missing) string {
	why := data.Printable(Message(m.Why))
	if m.Inside {
		return "in the guest: " + why
	}
	return why
}
