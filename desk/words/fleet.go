package words

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/desk/fleet"
	"tare/notebook"
	"tare/stats"
)

// FleetAnswer is the combined answer of many hosts, in words.
type FleetAnswer struct {
	Headline []string // the finding, a sentence each; never empty
	Of       string   // what the table is of
	Columns  []string // heads
	Lines    [][]string
	Made     string // what the numbers mean
	Blocks   []ResultBlock
}

// Bounds of what an answer lists: it stays readable with thousands of hosts.
const (
	fleetHeadlines = 3
	fleetLines     = 6  // of a list
	fleetClasses   = 4  // of a factor
	fleetFacts     = 3  // of an outlier
	fewFleetHosts  = 10 // fewer show little about the next host
)

// FleetAnswerOf is the answer of a fleet. With all, secondary metrics and emulated environments have lines too.
func FleetAnswerOf(f *fleet.Fleet, all bool) FleetAnswer {
	shown := f.Primary()
	if all {
		shown = f.Configurations
	}
	a := FleetAnswer{Headline: FleetHeadline(f)}
	a.Of = fmt.Sprintf("%s, %s. Changes are of costs relative to %s; higher is worse.", Plain(f.Study), Count(len(f.Hosts), "host"), fleetReference(f))
	if len(shown) > 0 {
		a.Of += " " + sharedBy(f, shown)
	}
	a.Columns = []string{"configuration", "hosts", "mean over hosts", "next host", "host to host", "at ±" + margin(f.Margin), "host verdicts"}
	for _, c := range shown {
		a.Lines = append(a.Lines, fleetLine(f, shown, c))
	}
	a.Made = fleetMade(f)
	for _, b := range []ResultBlock{fleetHosts(f), fleetClassesOf(f), fleetOutliers(f), fleetShared(f), fleetUnread(f), fleetOmitted(f), fleetDoubts(f, all)} {
		if len(b.Lines) > 0 {
			a.Blocks = append(a.Blocks, b)
		}
	}
	return a
}

// fleetReference names in a sentence what the costs are relative to.
func fleetReference(f *fleet.Fleet) string { return referenceOf(f.Sum, " or ", InSentence) }

// FleetHeadline is the finding of a fleet, a sentence each: the most important ones first.
func FleetHeadline(f *fleet.Fleet) (all []string) {
	shown := f.Primary()
	for _, c := range shown {
		if c.Across.N > 0 {
			all = append(all, fleetFinding(f, shown, c))
		}
	}
	if len(all) == 0 {
		return []string{"No host has a cost relative to " + fleetReference(f) + "."}
	}
	if n := len(all) - fleetHeadlines; n > 0 {
		all = append(all[:fleetHeadlines], "The table has "+Count(n, "more configuration")+".")
	}
	if n := len(f.Outliers); n > 0 {
		var names []string
		for _, o := range f.Outliers[:min(n, 3)] {
			names = append(names, Plain(o.Host.Name))
		}
		if n > 3 {
			names = append(names, Count(n-3, "more host"))
		}
		verb := "is"
		if n > 1 {
			verb = "are"
		}
		all = append(all, List(names)+" "+verb+" unlike the other hosts.")
	}
	return all
}

// fleetFinding says what a configuration costs over hosts.
func fleetFinding(f *fleet.Fleet, shown []*fleet.Configuration, c *fleet.Configuration) string {
	over, name := "Over "+Count(c.Across.N, "host")+", ", inFleet(f, shown, c, true)
	if c.Across.N == 1 {
		over = "On " + Plain(c.Hosts[0].Name) + ", the only host, "
	}
	to := fleetReference(f)
	said := ""
	switch c.Verdict {
	case stats.Slower, stats.Faster:
		how := map[bool]string{true: "costs more than ", false: "costs less than "}[c.Verdict == stats.Slower]
		if timed(c.Row.Metric) {
			how = "is " + string(c.Verdict) + " than "
		}
		said = how + to
	case stats.Equivalent:
		said = "is equivalent to " + to
	default:
		said = "may cost more or less than " + to
		if q := c.Ratio; q.Low > 1 {
			said = "costs more than " + to + ", possibly by less than the margin"
		} else if q.High < 1 {
			said = "costs less than " + to + ", possibly by less than the margin"
		}
	}
	said = over + name + " " + said + ": " + fleetChange(c.Ratio) + "."
	if c.Next.HasInterval() {
		said += " Expect " + fleetSpan(c.Next) + " on the next host."
	}
	return said
}

// fleetChange writes a cost as a change; one without an interval says so.
func fleetChange(q stats.Quotient) string {
	if !q.HasInterval() {
		return change(q.Value) + " (no interval)"
	}
	return changeOf(q)
}

// fleetSpan writes an interval of costs as changes: "+0.1 to +3.8 %", of large ones "2.1 to 3.4 times".
func fleetSpan(q stats.Quotient) string {
	span, unit := "", " times"
	if q.High >= 2 {
		span = timesSpan(q.Low, q.High, min(max(Places(q.Value, q.Low, q.High), 1), 3))
	} else {
		low, high := 100*(q.Low-1), 100*(q.High-1)
		d := sidedPlaces((low+high)/2, low, high, 2)
		span, unit = Signed(Number(low, d))+" to "+Signed(Number(high, d)), " %"
	}
	if low, high, _ := strings.Cut(span, " to "); low == high { // no host differs
		span = low
	}
	return span + unit
}

// inFleet names a configuration among those that are shown: by its environment, and by its size, work and metric where these differ.
func inFleet(f *fleet.Fleet, shown []*fleet.Configuration, c *fleet.Configuration, sentence bool) string {
	t := c.Row.Treatment
	named := Environment
	if sentence {
		named = InSentence
	}
	name := named(t, f.Sum.Networks(t.Workload))
	if differ(shown, sizeOf) {
		name += map[bool]string{true: " at ", false: ", "}[sentence] + sizeOf(c)
	}
	if differ(shown, workOf) {
		rows := make([]*data.Row, len(shown))
		for i, o := range shown {
			rows[i] = o.Row
		}
		name += map[bool]string{true: " for ", false: ", "}[sentence] + Among(c.Row, rows)
	}
	if differ(shown, metricOf) {
		name += ", " + metricOf(c)
	}
	if t.HostCores > 0 {
		name += ", host with " + Count(t.HostCores, "CPU")
	}
	return name
}

func sizeOf(c *fleet.Configuration) string {
	if i := c.Row.Treatment.Instance; i.Name != notebook.HostSize {
		return Size(i)
	}
	return "the whole host"
}
func workOf(c *fleet.Configuration) string   { return Work(c.Row.Treatment) }
func metricOf(c *fleet.Configuration) string { return Called(c.Row.Metric) }

func differ(shown []*fleet.Configuration, of func(*fleet.Configuration) string) bool {
	return slices.ContainsFunc(shown, func(c *fleet.Configuration) bool { return of(c) != of(shown[0]) })
}

// sharedBy says what all configurations that are shown have in common: "All lines are of ffmpeg, 2 CPUs, 4 GB, execution time."
func sharedBy(f *fleet.Fleet, shown []*fleet.Configuration) string {
	var common []string
	for _, of := range []func(*fleet.Configuration) string{workOf, sizeOf, metricOf} {
		if !differ(shown, of) {
			common = append(common, of(shown[0]))
		}
	}
	if len(common) == 0 {
		return ""
	}
	return "All lines are of " + strings.Join(common, ", ") + "."
}

// fleetLine is the line of a configuration.
func fleetLine(f *fleet.Fleet, shown []*fleet.Configuration, c *fleet.Configuration) []string {
	line := []string{inFleet(f, shown, c, false), Thousands(c.Across.N), "–", "–", "–", string(c.Verdict), fleetVerdicts(c)}
	if c.Across.N < len(f.Hosts) {
		line[1] += " of " + Thousands(len(f.Hosts))
	}
	if c.Across.N > 0 {
		line[2] = fleetChange(c.Ratio)
	}
	if c.Next.HasInterval() {
		line[3] = fleetSpan(c.Next)
	}
	if c.Across.N > 1 {
		line[4] = "± " + percentOf(c.Across.Between)
		if c.Across.Between < 5e-5 { // smaller than the last digit shown
			line[4] = "none seen"
		}
	}
	if q := c.Ratio; c.Verdict == stats.Equivalent && (q.Low > 1 || q.High < 1) {
		line[5] += ", but not zero"
	}
	return line
}

// fleetVerdicts counts the hosts' own verdicts: "80 slower, 15 equivalent, 5 inconclusive".
func fleetVerdicts(c *fleet.Configuration) string {
	var parts []string
	for _, v := range []stats.Verdict{stats.Slower, stats.Equivalent, stats.Faster, stats.Inconclusive} {
		if n := c.Verdicts[v]; n > 0 {
			parts = append(parts, Thousands(n)+" "+string(v))
		}
	}
	silent := len(c.Results)
	for _, n := range c.Verdicts {
		silent -= n
	}
	if silent > 0 {
		parts = append(parts, Thousands(silent)+" without a verdict")
	}
	if c.Unreliable > 0 {
		parts = append(parts, Thousands(c.Unreliable)+" failed")
	}
	return strings.Join(parts, ", ")
}

// fleetMade says what the numbers mean.
func fleetMade(f *fleet.Fleet) string {
	made := "Intervals are of 95 %. Each host counts once; hosts with less noise have more weight."
	if slices.ContainsFunc(f.Configurations, func(c *fleet.Configuration) bool { return c.Next.HasInterval() }) {
		made += " “Next host” is the interval for the true cost on one more host like these."
	}
	if slices.ContainsFunc(f.Configurations, func(c *fleet.Configuration) bool { return c.Across.N > 1 }) {
		made += " “Host to host” is the standard deviation of the hosts' true costs."
	}
	return made
}

// firstOf cuts a list, and says how much is missing.
func firstOf(lines []ResultItem, more string) []ResultItem {
	if n := len(lines) - fleetLines; n > 0 {
		lines = append(lines[:fleetLines], ResultItem{Text: Count(n, more) + ": see --format json."})
	}
	return lines
}

// fleetHosts counts the hosts by CPU model, CPUs and kernel.
func fleetHosts(f *fleet.Fleet) ResultBlock {
	b := ResultBlock{Head: "Hosts"}
	for _, kind := range []fleet.FactorKind{fleet.CPUModel, fleet.Cores, fleet.Kernel} {
		factor := fleet.Factor{Kind: kind}
		values := f.Values(factor)
		var said []string
		for _, v := range values[:min(len(values), fleetClasses)] {
			said = append(said, fmt.Sprintf("%s (%s)", FactValue(fleet.Fact{Factor: factor, Value: v.Value}), Thousands(v.Hosts)))
		}
		if n := len(values) - fleetClasses; n > 0 {
			said = append(said, Thousands(n)+" more")
		}
		if len(said) > 0 {
			b.Lines = append(b.Lines, ResultItem{Label: Capital(FleetFactor(factor)), Text: strings.Join(said, ", ")})
		}
	}
	return b
}

// fleetClassesOf says which classes of hosts differ.
func fleetClassesOf(f *fleet.Fleet) ResultBlock {
	b := ResultBlock{Head: "Classes of hosts that differ"}
	for _, c := range f.Classes {
		var means []string
		for _, m := range slices.SortedStableFunc(slices.Values(c.Means), func(a, b fleet.ClassMean) int { return cmp.Compare(a.Cost.Value, b.Cost.Value) }) {
			means = append(means, fmt.Sprintf("%s: %s, %s", classOf(c, m), fleetChange(m.Cost), Count(m.Cost.N, "host")))
		}
		if n := len(means) - fleetClasses; n > 0 { // the cheapest and the dearest classes are the most informative
			means = slices.Replace(means, fleetClasses/2, fleetClasses/2+n, Count(n, "class")+" between these")
		}
		var by []string
		for _, factor := range c.Factors {
			by = append(by, FleetFactor(factor))
		}
		said := fmt.Sprintf("%s, by %s: %s (%s; explains %s of the variance between hosts).", inFleet(f, f.Primary(), c.Of, false), List(by), strings.Join(means, "; "),
			P(c.P), Percent(c.Explained, 0))
		if len(by) > 1 {
			said += " These factors coincide on these hosts, so their effects cannot be separated."
		}
		b.Lines = append(b.Lines, ResultItem{Text: said})
	}
	b.Lines = firstOf(b.Lines, "more difference")
	if f.Compared > 0 && len(f.Classes) == 0 {
		b.Head = "Classes of hosts"
		b.Lines = []ResultItem{{Mark: Passed, Text: fmt.Sprintf("No classes differ beyond chance in %s by %s.", Count(f.Compared, "comparison"), formed(f))}}
	}
	return b
}

// classOf names a class: "AMD EPYC 9354, 64".
func classOf(c fleet.Class, m fleet.ClassMean) string {
	var values []string
	for i, v := range m.Values {
		values = append(values, FactValue(fleet.Fact{Factor: c.Factors[i], Value: v}))
	}
	return strings.Join(values, ", ")
}

// formed names the factors by which classes can be formed.
func formed(f *fleet.Fleet) string {
	var names []string
	for _, kind := range []fleet.FactorKind{fleet.CPUModel, fleet.Cores, fleet.Kernel, fleet.Engine, fleet.GuestKernel, fleet.Image, fleet.Length} {
		for _, factor := range f.Factors(kind) {
			if v := f.Values(factor); len(v) > 1 && v[1].Hosts >= 3 {
				names = append(names, FleetFactor(factor))
			}
		}
	}
	if n := len(names) - fleetClasses; n > 0 {
		names = append(names[:fleetClasses], Count(n, "more factor"))
	}
	return List(names)
}

// fleetOutliers names hosts that are unlike the others.
func fleetOutliers(f *fleet.Fleet) ResultBlock {
	b := ResultBlock{Head: "Hosts unlike the others"}
	for _, o := range f.Outliers {
		u := o.In[0]
		name := inFleet(f, f.Primary(), u.Of, false)
		said := fmt.Sprintf("%s: %s %s; the other hosts %s.", Plain(o.Host.Name), name, fleetChange(u.Cost), change(u.Expected))
		if n := len(o.In) - 1; n > 0 {
			said += " Also unlike the others in " + Count(n, "more configuration") + "."
		}
		var rare []string
		for _, r := range o.Differs[:min(len(o.Differs), fleetFacts)] {
			rare = append(rare, fmt.Sprintf("%s %s (%d of %s)", FleetFactor(r.Factor), FactValue(r.Fact), r.Hosts, Count(r.Of, "host")))
		}
		switch {
		case rare == nil:
			said += " Tare recorded nothing that distinguishes it from most other hosts."
		default:
			said += " Unusual there: " + strings.Join(rare, "; ") + "."
		}
		b.Lines = append(b.Lines, ResultItem{Mark: Caution, Text: said})
	}
	b.Lines = firstOf(b.Lines, "more host")
	return b
}

// fleetShared names the hosts with several folders.
func fleetShared(f *fleet.Fleet) ResultBlock {
	b := ResultBlock{Head: "Machines with several folders (each counts once)"}
	for _, h := range f.Shared() {
		said := Plain(h.Nodes[0]) + ": " + Count(len(h.Folders), "folder") + "."
		if n := len(h.Nodes); n > 1 {
			nodes := h.Nodes[:min(n, fleetClasses)]
			if n > fleetClasses {
				nodes = append(slices.Clone(nodes), Count(n-fleetClasses, "more node"))
			}
			said = Plain(List(nodes)) + " are one machine."
		}
		b.Lines = append(b.Lines, ResultItem{Text: said})
	}
	b.Lines = firstOf(b.Lines, "more machine")
	return b
}

// fleetUnread names the folders that do not count.
func fleetUnread(f *fleet.Fleet) ResultBlock {
	b := ResultBlock{Head: "Folders left out"}
	for _, u := range f.Unread {
		b.Lines = append(b.Lines, ResultItem{Mark: Caution, Text: FleetUnread(u)})
	}
	b.Lines = firstOf(b.Lines, "more folder")
	return b
}

// fleetOmitted names the configurations that hosts left out.
func fleetOmitted(f *fleet.Fleet) ResultBlock {
	b := ResultBlock{Head: "Not measured"}
	for _, l := range f.Omitted {
		of := Environment(l.Treatment, f.Sum.Networks(l.Treatment.Workload)) + ", " + Size(l.Treatment.Instance)
		said := fmt.Sprintf("%s: missing on %s. On %s: %s", of, Count(l.Hosts, "host"), Plain(l.First.Name), Stop(Message(l.Reason)))
		b.Lines = append(b.Lines, ResultItem{Text: said})
	}
	b.Lines = firstOf(b.Lines, "more configuration")
	return b
}

// FleetUnread says why a folder does not count.
func FleetUnread(u fleet.Unread) string {
	switch {
	case u.Study != "":
		return Plain(u.Dir) + ": it holds the study " + Plain(u.Study) + "; most folders hold another study."
	case u.Against != "":
		return Plain(u.Dir) + ": its study compares with " + Plain(u.Against) + "; most compare with something else: choose one reference with --against."
	}
	text := Plain(u.Err.Error())
	if !strings.Contains(text, u.Dir) {
		text = Plain(u.Dir) + ": " + text
	}
	return Stop(text)
}

// fleetDoubts lists what limits the answer.
func fleetDoubts(f *fleet.Fleet, all bool) ResultBlock {
	b := ResultBlock{Head: ReasonsToDoubt}
	add := func(is bool, format string, args ...any) {
		if is {
			b.Lines = append(b.Lines, ResultItem{Mark: Caution, Text: fmt.Sprintf(format, args...)})
		}
	}
	doubtful, unreliable, without, emulated := 0, 0, 0, 0
	for _, c := range f.Configurations {
		if !c.Row.IsFigure && c.Emulated() {
			emulated++
		}
	}
	for _, c := range f.Primary() {
		doubtful, unreliable, without = doubtful+c.Doubtful, unreliable+c.Unreliable, without+c.Without
	}
	virtual, unfinished, twice := 0, 0, 0
	for _, h := range f.Hosts {
		virtual, unfinished, twice = virtual+btoi(h.Virtual), unfinished+btoi(h.Unfinished), twice+btoi(h.Twice)
	}
	add(len(f.Hosts) == 1, "One host does not show how much hosts differ.")
	add(len(f.Hosts) == 2, "Two hosts show little about how much hosts differ, and nothing about the next host.")
	add(len(f.Hosts) > 2 && len(f.Hosts) < fewFleetHosts, "Only %d hosts: the interval of the next host is wide and uncertain.", len(f.Hosts))
	few := 0 // results whose own noise is known from three rounds or fewer
	results := 0
	for _, c := range f.Primary() {
		for _, r := range c.Results {
			results++
			few += btoi(r.Effect.Free < 3)
		}
	}
	add(2*few > results, "Most hosts have three rounds or fewer. This shows little about their noise, and intervals miss a little more often than in 5 %% of cases.")
	add(doubtful > 0, "%s: bare metal differed from itself by as much as the result. Such results count in the means; their verdict is inconclusive.", Count(doubtful, "result"))
	add(unreliable > 0, "%s left out: more than a tenth of the runs failed, or a whole round failed.", was(unreliable, "result"))
	add(without > 0, "%s no interval, because of too few rounds or a missing reference.", has(without, "result"))
	add(unfinished > 0, "%s fewer rounds than the study asks for.", has(unfinished, "host"))
	add(twice > 0, "%s measured with several images, lengths or kernels: only the one with the most rounds counts.", on(twice, "configurations were"))
	add(virtual > 0, "%s: other work on the physical machines may be in the results.", virtualOf(virtual, len(f.Hosts)))
	for _, factor := range slices.Concat(f.Factors(fleet.Image), f.Factors(fleet.Length), f.Factors(fleet.GuestKernel)) {
		v := f.Values(factor)
		add(len(v) > 1, "The %s differs between hosts (%s; the most frequent one is on %s).", FleetFactor(factor), Count(len(v), "value"), Count(v[0].Hosts, "host"))
	}
	shown := len(f.Primary())
	add(shown > 2, "%s are compared, each with a 95 %% interval: expect about one interval in twenty to miss the true value.", Count(shown, "configuration"))
	add(emulated > 0 && !all, "%s not compared: VMs without KVM. --all shows them.", was(emulated, "emulated environment"))
	return b
}

// btoi is 1 for true.
func btoi(is bool) int {
	if is {
		return 1
	}
	return 0
}

// has writes a count with its verb: "1 host has", "3 hosts have".
func has(n int, what string) string {
	if n == 1 {
		return "1 " + what + " has"
	}
	return Count(n, what) + " have"
}

// on says on how many hosts something was.
func on(n int, what string) string { return "On " + Count(n, "host") + " " + what }

// virtualOf says how many of the hosts are virtual machines.
func virtualOf(n, of int) string {
	switch {
	case of == 1:
		return "The host is a virtual machine"
	case n == of:
		return "All hosts are virtual machines"
	case n == 1:
		return "1 of the hosts is a virtual machine"
	}
	return Thousands(n) + " of the hosts are virtual machines"
}

// FleetFactor names a factor: "CPU model", "docker version".
func FleetFactor(f fleet.Factor) string {
	of := Plain(f.Of)
	switch f.Kind {
	case fleet.CPUModel:
		return "CPU model"
	case fleet.Cores:
		return "CPUs"
	case fleet.Engine:
		return of + " version"
	case fleet.GuestKernel:
		return "VMs' kernel"
	case fleet.Image:
		return "image of " + of
	case fleet.Length:
		return "length of " + of
	case fleet.OS:
		return "operating system"
	case fleet.Virtualization:
		return "hypervisor below the host"
	case fleet.Cgroup:
		return "cgroup version"
	case fleet.Mitigation:
		return "mitigation of " + of
	case fleet.Setting:
		name := cmp.Or(settingNames[f.Of], of, "setting")
		if name == "SMT" {
			return name
		}
		return strings.ToLower(name[:1]) + name[1:]
	}
	return Plain(string(f.Kind))
}

// FactValue writes a value of a factor.
func FactValue(f fleet.Fact) string {
	value := Plain(f.Value)
	if f.Kind == fleet.Memory {
		value += " GiB"
	}
	const most = 60 // a kernel's command line may be long
	if runes := []rune(value); len(runes) > most {
		value = string(runes[:most]) + "…"
	}
	return value
}
