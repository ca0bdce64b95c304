package words

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/desk/compare"
	"tare/desk/data"
	"tare/stats"
)

// mostNamed is how many changes the headline of a comparison names.
const mostNamed = 3

// Compared is the headline of a comparison: "From before to after: of 9 configurations 1 is slower, 7 are equivalent within 1 % and 1 is
// inconclusive."
func Compared(c *compare.Comparison) string {
	said := verdicts(c)
	if !c.InTurns() && slices.ContainsFunc(c.Found(stats.Slower, stats.Faster), func(x compare.Change) bool { return !x.Relative && timed(x.Old.Metric) }) {
		said += " Tare compared means here, so a change in the host's own speed would look the same."
	}
	return said
}

// verdicts says what changed from one folder to the other, and what did not.
func verdicts(c *compare.Comparison) string {
	before, after := folders(c)
	if len(c.Changes) == 1 && c.Changes[0].Why == "" {
		return fmt.Sprintf("From %s to %s: %s.", before, after, one(c, c.Changes[0]))
	}
	parts := counted(c, stats.Slower, stats.Faster, stats.Equivalent, stats.Inconclusive)
	if changed := c.Found(stats.Slower, stats.Faster); len(changed) > 0 && len(changed) <= mostNamed && len(parts) > 1 {
		var said []string
		for _, x := range changed {
			said = append(said, one(c, x))
		}
		if n := len(c.Found(stats.Equivalent, stats.Inconclusive)); n > 0 {
			said = append(said, others(c, n))
		}
		return fmt.Sprintf("From %s to %s: %s.", before, after, strings.Join(said, "; "))
	}
	if len(parts) == 1 {
		a := c.Changes[0].Answer
		return fmt.Sprintf("From %s to %s: %s %s.", before, after, all(len(c.Changes), compared(c)), outcome(c, a, len(c.Changes)))
	}
	return fmt.Sprintf("From %s to %s: of %s %s.", before, after, Count(len(c.Changes), compared(c)), List(parts))
}

// others counts the n changes that are neither slower nor faster, to follow those that are.
func others(c *compare.Comparison, n int) string {
	what := "the other " + compared(c)
	if n > 1 {
		what = "the other " + Count(n, compared(c))
	}
	for _, a := range []stats.Verdict{stats.Equivalent, stats.Inconclusive} {
		if len(c.Found(a)) == n {
			return what + " " + outcome(c, a, n)
		}
	}
	return "of " + what + " " + List(counted(c, stats.Equivalent, stats.Inconclusive))
}

// counted counts the changes with each of these verdicts: "7 are equivalent within 1 %".
func counted(c *compare.Comparison, verdicts ...stats.Verdict) (all []string) {
	for _, a := range verdicts {
		if n := len(c.Found(a)); n > 0 {
			all = append(all, fmt.Sprintf("%d %s", n, outcome(c, a, n)))
		}
	}
	return all
}

// one says what changed, and by how much.
func one(c *compare.Comparison, x compare.Change) string {
	said, by := outcome(c, x.Answer, 1), ChangedBy(c, x)
	if verb, what, _ := strings.Cut(said, " "); strings.Contains(by, what) { // takes more memory
		return ChangedWhere(c, x) + " " + verb + " " + by
	}
	return ChangedWhere(c, x) + " " + said + ", " + by
}

func all(n int, what string) string {
	switch n {
	case 1:
		return "the one " + what
	case 2:
		return "both " + what + "s"
	}
	return "all " + Count(n, what)
}

// compared is what is compared: each configuration in one metric, or in several.
func compared(c *compare.Comparison) string {
	if slices.ContainsFunc(c.Changes, func(x compare.Change) bool { return x.Figure }) {
		return "figure"
	}
	return "configuration"
}

// outcome says the verdict on so many configurations.
func outcome(c *compare.Comparison, v stats.Verdict, n int) string {
	verb := [2]string{"is " + string(v), "are " + string(v)}
	undirected := slices.ContainsFunc(c.Changes, func(x compare.Change) bool { return !x.Old.Metric.Directed() })
	of := phrases(c.Changes[0].Old) // of one study, and so of all
	switch {
	case v == stats.Slower && of.More[0] != "":
		verb = of.More
	case v == stats.Faster && of.Less[0] != "":
		verb = of.Less
	case v == stats.Slower && undirected:
		verb = [2]string{"is higher", "are higher"}
	case v == stats.Faster && undirected:
		verb = [2]string{"is lower", "are lower"}
	}
	what := ""
	if v == stats.Equivalent && c.Margin > 0 {
		what = " within " + margin(c.Margin)
	}
	if n == 1 {
		return verb[0] + what
	}
	return verb[1] + what
}

// folders are the names of both folders, or of both kernels in one folder. The names of folders include the VMs' kernels if the folders
// differ in them.
func folders(c *compare.Comparison) (before, after string) {
	if c.InTurns() {
		return kernels(c.Changes[0])
	}
	before, after = Plain(c.Old.Folders[0].Dir), Plain(c.New.Folders[0].Dir)
	was := kernelOf(c.Changes, func(x compare.Change) *data.Row { return x.Old })
	is := kernelOf(c.Changes, func(x compare.Change) *data.Row { return x.New })
	if was == "" || is == "" || was == is {
		return before, after
	}
	with := func(dir, kernel string) string { return dir + " (kernel " + Plain(release(kernel)) + ")" }
	return with(before, was), with(after, is)
}

// kernels are the names of both kernels of a change: their releases, with their hashes if the releases are the same.
func kernels(x compare.Change) (before, after string) {
	name := func(kernel string) string {
		if kernel == "" {
			return "the usual kernel"
		}
		return "kernel " + Plain(kernel)
	}
	old, new := x.Old.Treatment.Kernel, x.New.Treatment.Kernel
	if release(old) != release(new) {
		old, new = release(old), release(new)
	}
	return name(old), name(new)
}

// release is the release in the name of a kernel.
func release(kernel string) string {
	before, _, _ := strings.Cut(kernel, "@")
	return before
}

// kernelOf is the kernel that was named for the VMs of all these rows; empty: none was, or several were.
func kernelOf(changes []compare.Change, row func(compare.Change) *data.Row) string {
	all := data.Distinct(changes, func(x compare.Change) string { return row(x).Treatment.Kernel })
	all = slices.DeleteFunc(all, func(kernel string) bool { return kernel == "" }) // the kernels of rows without a VM
	if len(all) != 1 {
		return ""
	}
	return all[0]
}

// Changed says what changed for a treatment: "ffmpeg (segments=1), Docker, CPU set (--cpuset-cpus), 1/1GB: 5.1 % more (4.2 to 6.0)".
func Changed(c *compare.Comparison, x compare.Change) string {
	said := ChangedBy(c, x)
	switch mixed := slices.ContainsFunc(c.Changes, func(o compare.Change) bool { return o.Relative }); {
	case x.Answer == "" || math.IsNaN(x.Means.Value):
	case x.Relative:
		said += "; the mean " + Signed(Number(100*(x.Means.Value-1), 1)) + " %"
	case mixed:
		said += "; of the means, because a folder has no ratio to " + reference(c) + " with an interval"
	default:
		said += "; " + Amount(x.Old) + " before, " + Amount(x.New) + " after"
	}
	return ChangedWhere(c, x) + ": " + said
}

// ChangedWhere names the treatment of a change, with its parameters where its workload also exists with others.
func ChangedWhere(c *compare.Comparison, x compare.Change) string {
	of := x.Old.Treatment
	if !slices.ContainsFunc(c.Changes, func(o compare.Change) bool {
		return o.Old.Treatment.Workload == of.Workload && !o.Old.Treatment.SameWork(of)
	}) {
		of.Params, of.Factors = nil, nil
	}
	row := *x.Old
	if row.Treatment.Kernel != x.New.Treatment.Kernel { // Differences between the runs names both
		row.Treatment.Kernel = ""
	}
	where := Work(of) + ", " + Label(c.Old, &row)
	if compared(c) == "figure" {
		where += ", " + Plain(Caption(x.Old.Metric.Name))
	}
	return where
}

// ChangedBy says a change in per cent, with its interval, and what would settle an inconclusive one. Where higher is better, it says whether the
// change is: "5.1 % less (4.2 to 6.0), which is worse".
func ChangedBy(c *compare.Comparison, x compare.Change) string {
	return changedBy(c, x) + Caveat(x.New)
}

func changedBy(c *compare.Comparison, x compare.Change) string {
	s := beyond(x.Ratio, x.Old)
	switch {
	case x.Answer == stats.Slower && x.Old.Metric.MoreIsBetter():
		return s + ", which is worse"
	case x.Answer == stats.Faster && x.Old.Metric.MoreIsBetter():
		return s + ", which is better"
	case x.Answer != stats.Inconclusive:
		return s
	}
	switch x.Why {
	case compare.Missing:
		return Valueless(c)
	case compare.Failing:
		return s + "; too many trials failed"
	case compare.Doubtful:
		return s + "; within the A/A noise"
	}
	s += decided(x.Ratio)
	if x.Rounds > 0 {
		return s + "; " + settled(c, x)
	}
	if x.Ratio.HasInterval() {
		s += "; " + unforeseen
	}
	return s
}

// widest is the largest margin, as a share, that is worth naming.
const widest = 0.5

// decided names the smallest margin at which an inconclusive change is equivalent: ", but equivalent within 6.4 %".
func decided(q stats.Quotient) string {
	at := equivalentFrom(q)
	if !(at <= widest) {
		return ""
	}
	return ", but equivalent within " + upwards(at)
}

// equivalentFrom is the smallest margin, as a share, at which a change is equivalent; NaN: no margin is known.
func equivalentFrom(q stats.Quotient) float64 {
	if !q.HasInterval() {
		return math.NaN()
	}
	least, most := q.Bounds()
	return max(most-1, 1/least-1)
}

// hopeless is how many times the existing rounds an answer may need: where it needs more, Tare does not suggest more rounds.
const hopeless = 20

// settled says how many rounds would settle an inconclusive change, and how that compares with what the folders have.
func settled(c *compare.Comparison, x compare.Change) string {
	where, has := " in each folder", "which have at most"
	if c.InTurns() {
		where, has = " in total", "and there are"
	}
	if had := max(x.Old.Rounds, x.New.Rounds); x.Rounds > hopeless*had {
		return fmt.Sprintf("too small for this noise: even odds of a verdict take about %s%s, %s %d", Count(x.Rounds, "round"), where, has, had)
	}
	return fmt.Sprintf("about %s%s may settle it (even odds); %d are likely to", Count(x.Rounds, "round"), where, stats.Likely(x.Rounds))
}

// Valueless says that a change has no ratio.
func Valueless(c *compare.Comparison) string {
	if c.InTurns() {
		return "no value with one of the kernels"
	}
	return "no value in one of the folders"
}

// beyond says by how much a ratio is beyond 1, with its interval: "5.1 % more (4.2 to 6.0)", of a large one "3.07 times as much (1.59 to
// 10.0)", and where it may be on either side of 1 "−1 % (−17 to +23)". A row's kind of study may name what
// there is more of: "5.1 % more memory".
func beyond(q stats.Quotient, r *data.Row) string {
	times, what := " times as much", ""
	switch of := phrases(r); {
	case of.Of != nil:
		times, what = of.Times(r), of.Of(r)
	case r.Metric.Name == "execution time":
		times, what = " times as much time", " time"
	}
	text := func(v, low, high float64, d int, mark func(string) string, after string) string {
		s := mark(Number(v, d)) + after
		switch {
		case math.IsNaN(low):
			return s + ", too few rounds for an interval"
		case !q.HasInterval():
			return s + ", too much noise for an interval"
		}
		return s + " (" + mark(Number(low, d)) + " to " + mark(Number(high, d)) + ")"
	}
	plain := func(s string) string { return s }
	v, low, high := 100*(q.Value-1), 100*(q.Low-1), 100*(q.High-1)
	switch d := sidedPlaces(v, low, high, 3); {
	case q.Value >= 2:
		return text(q.Value, q.Low, q.High, Places(q.Value, q.Low, q.High), plain, times)
	case q.Low > 1:
		return text(v, low, high, d, plain, " % more"+what)
	case q.High < 1:
		return text(-v, -high, -low, d, plain, " % less"+what)
	default:
		return text(v, low, high, d, Signed, " %")
	}
}

// ChangedLevel says how the intervals of a comparison are made, and what they assume.
func ChangedLevel(c *compare.Comparison) string {
	relative := 0
	for _, x := range c.Changes {
		if x.Relative {
			relative++
		}
	}
	means := len(c.Changes) - relative
	var b strings.Builder
	switch {
	case c.InTurns():
		b.WriteString("VMs with both kernels ran in each round, and Tare compares the means of the same rounds. ")
	case relative > 0:
		b.WriteString("Tare compares each folder's ratio to " + reference(c) + ", so a faster or slower host does not change the result. ")
		if means > 0 {
			fmt.Fprintf(&b, "For %s a folder has no such ratio with an interval, so Tare compares the means there. ", Count(means, compared(c)))
		}
		b.WriteString("The change of " + reference(c) + " itself is " + whose(c) + ". ")
	default:
		b.WriteString("Not both folders have ratios to " + reference(c) + " with intervals, so Tare compares means. ")
	}
	fmt.Fprintf(&b, "Intervals are corrected for %s. At most %[2]s of such comparisons report a false change, and at most %[2]s call a change of %[3]s equivalent",
		Count(len(c.Changes), compared(c)), Percent(stats.Alpha, 0), margin(c.Margin))
	switch {
	case c.InTurns():
		b.WriteString(".")
	case relative == 0:
		b.WriteString(", if the host was equally fast both times and rounds are independent. On a host whose speed drifts the share is higher.")
	case means > 0:
		b.WriteString(". For means this holds only if the host was equally fast both times and rounds are independent.")
	default:
		b.WriteString(".")
	}
	if len(c.Host) > 0 {
		b.WriteString(" The interval of that change assumes independent rounds.")
	}
	if slices.ContainsFunc(c.Changes, func(x compare.Change) bool { return !x.New.Representative }) {
		b.WriteString(" Emulated VMs do not represent VMs under KVM, so this change need not occur there.")
	}
	return b.String()
}

// Section is a heading with what stands below it.
type Section struct {
	Head  string
	Lines []string
}

// Changes says a comparison change by change: what changed, what did not, and what only one folder has. A section may have no lines.
func Changes(c *compare.Comparison) (all []Section) {
	for _, p := range []struct {
		head    string
		answers []stats.Verdict
	}{
		{"Changed", []stats.Verdict{stats.Slower, stats.Faster}},
		{"Equivalent within " + margin(c.Margin), []stats.Verdict{stats.Equivalent}},
		{"Inconclusive", []stats.Verdict{stats.Inconclusive}},
	} {
		all = append(all, Section{p.head, changed(c, c.Found(p.answers...))})
	}
	only := func(s *data.Summary, rows []*data.Row) (lines []string) {
		for _, r := range rows {
			lines = append(lines, Work(r.Treatment)+", "+Label(s, r))
		}
		return lines
	}
	if c.InTurns() {
		return append(all, Section{ReasonsToDoubt, troubles(c.Old)})
	}
	return append(all, Section{Capital(reference(c)) + " itself, which is " + whose(c), changed(c, c.Host)},
		Section{"Only in the first folder", only(c.Old, c.Gone)}, Section{"Only in the second folder", only(c.New, c.Added)},
		Section{ReasonsToDoubt, append(troubles(c.Old), troubles(c.New)...)})
}

// troubles are the cautions about a folder that also hold for what it is compared with.
func troubles(s *data.Summary) (lines []string) {
	for _, text := range cautions(slices.Concat(checked(s), disturbances(s))) {
		lines = append(lines, Plain(s.Folders[0].Dir)+": "+text)
	}
	return lines
}

// ComparedNext are the commands that somebody may want after a comparison.
func ComparedNext(c *compare.Comparison) ResultBlock {
	b := ResultBlock{Head: "Next"}
	new := c.New.Folders[0].Dir
	dirs := slices.Compact([]string{c.Old.Folders[0].Dir, new}) // two kernels are in one
	if command := Continue(c.New); command != "" {
		b.Lines = append(b.Lines, ResultItem{Label: "Continue", Command: command})
	}
	if margin := wider(c); margin != "" {
		b.Lines = append(b.Lines, ResultItem{Label: "A wider margin", Command: "tare compare " + Shell(append(dirs, "--margin", margin)...)})
	}
	b.Lines = append(b.Lines, ResultItem{Label: "All results", Command: "tare summary " + Shell(new) + " --all"})
	if !c.InTurns() {
		b.Lines = append(b.Lines, ResultItem{Label: "As a page", Command: "tare report " + Shell(dirs...)})
	}
	return b
}

// wider is the next usual margin at which every inconclusive change is equivalent, as --margin takes it; empty: there is none.
func wider(c *compare.Comparison) string {
	open := c.Found(stats.Inconclusive)
	for _, margin := range []float64{0.05, 0.1, 0.2, widest} {
		if margin > c.Margin && len(open) > 0 && !slices.ContainsFunc(open, func(x compare.Change) bool { return !(equivalentFrom(x.Ratio) <= margin) }) {
			return fmt.Sprintf("%g%%", 100*margin)
		}
	}
	return ""
}

// reference names what the ratios of both folders are relative to: "bare metal", "Docker with --cpus".
func reference(c *compare.Comparison) string { return referenceOf(c.Old, " or ", InSentence) }

// whose says whose change that of the reference is.
func whose(c *compare.Comparison) string {
	if len(c.Old.Baseline) == 0 {
		return "the host's change"
	}
	return "the change of the host and of that environment"
}

func changed(c *compare.Comparison, changes []compare.Change) (lines []string) {
	for _, x := range changes {
		lines = append(lines, Changed(c, x))
	}
	return lines
}
