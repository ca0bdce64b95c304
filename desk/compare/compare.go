// Package compare says what changed between two folders of one study, before and after ([From]): a new kernel, another version of an engine,
// another host. It also compares the two kernels that VMs of one folder had ([Kernels]), which ran in the same rounds.
//
// A host's speed drifts within a folder and between two folders, and the scatter within a folder does not show by how much two folders
// differ. So the ratio to bare metal decides: pairs of one round within a folder, and Welch's interval between the two ratios. Bare metal's
// own change is the host's, and decides nothing. Where a folder has no bare metal at a place, means are compared, and Comparison.Changes
// say so (Change.Relative).
package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// Change is the change of a treatment from the first folder to the second.
type Change struct {
	Old, New *data.Row
	Figure   bool           // the metric is a secondary metric of the treatment, with a direction (better)
	Relative bool           // Ratio compares ratios to bare metal; otherwise means, of the same rounds if InTurns
	Ratio    stats.Quotient // the second over the first
	Means    stats.Quotient // the second mean over the first, if the host is equally fast in both folders and rounds are independent
	Level    float64        // of its interval, corrected for the number of comparisons
	Answer   stats.Verdict  // by the margin; where higher is better, a lower value is slower
	Why      Why            // for an inconclusive change: why more rounds would not decide it
	Rounds   int            // for an inconclusive change: about how many rounds in each folder would decide it; 0: not foreseeable
}

// Cost is the change's ratio as a cost: above 1 is worse than before.
func (x *Change) Cost() stats.Quotient { return data.Cost(x.Old.Metric, x.Ratio) }

// Why is a reason that keeps a change inconclusive, whatever its interval.
type Why string

const (
	Doubtful Why = "doubtful" // bare metal differed from itself by as much in one of the folders
	Failing  Why = "failing"  // too many trials failed in one of them
	Missing  Why = "missing"  // one of them has no value
)

// Comparison is what two folders say together, or one about two kernels.
type Comparison struct {
	Old, New    *data.Summary // the same for two kernels in one folder
	Margin      float64
	Differences []data.Doubt // between the folders, apart from what was measured
	Changes     []Change     // in the order of the first folder
	Host        []Change     // of the bare metal that others are relative to: they decide nothing, and have no answer
	Gone, Added []*data.Row  // treatments of only one folder
}

// InTurns says whether both sides ran in the rounds of one folder, so that Ratio pairs the values of a round.
func (c *Comparison) InTurns() bool { return c.Old == c.New }

// Differs is a doubt: something of the folders is not the same in both.
type Differs struct {
	What     Thing
	Of       string // which, where there are several of its kind
	Old, New string
}

// Thing is what may differ.
type Thing string

// Things that may differ between two folders.
const (
	Host   Thing = "host"
	CPU    Thing = "CPU"
	Kernel Thing = "kernel"
	Quiet  Thing = "quiet"
	Tare   Thing = "tare"
	Image  Thing = "image"

	GuestKernel Thing = "VMs' kernel"

	Setting    Thing = "setting"
	Mitigation Thing = "mitigation"
	Version    Thing = "version"
)

// DesignDiffers is a doubt: the guests of the two folders ran different numbers of trials. The number of rounds does not matter.
type DesignDiffers struct{ Old, New notebook.Design }

// Doubt marks it as one.
func (Differs) Doubt()       {}
func (DesignDiffers) Doubt() {}

// From compares two summaries, each of one folder. A change within the margin, a share such as 0.01, does not matter.
func From(old, new *data.Summary, margin float64) (*Comparison, error) {
	a, b := old.Folders[0].Study, new.Folders[0].Study
	if a.Name != b.Name {
		return nil, fmt.Errorf("%s holds the study %s, but %s the study %s: compare needs two folders of one study", old.Folders[0].Dir, a.Name, new.Folders[0].Dir, b.Name)
	}
	c := &Comparison{Old: old, New: new, Margin: margin, Differences: DifferencesOf(old, new)}
	taken := map[*data.Row]bool{}
	for _, r := range old.Rows {
		if r.Treatment.AA { // it checks the host, and is bare metal once more
			continue
		}
		i := counterpart(r, old.Rows, new.Rows)
		if i < 0 {
			c.Gone = append(c.Gone, r)
			continue
		}
		taken[new.Rows[i]] = true
		if d, differ := KernelsDiffer(r, new.Rows[i]); differ && !slices.Contains(c.Differences, data.Doubt(d)) {
			c.Differences = append(c.Differences, d)
		}
		c.add(r, new.Rows[i])
	}
	for _, r := range new.Rows {
		if !taken[r] && !r.Treatment.AA {
			c.Added = append(c.Added, r)
		}
	}
	if len(c.Changes) == 0 {
		return nil, fmt.Errorf("%s and %s have no configuration in common: the first has %s, the second %s", old.Folders[0].Dir, new.Folders[0].Dir, first(old), first(new))
	}
	c.split()
	c.judge()
	return c, nil
}

// Kernels compares the two kernels that the VMs of one folder had, of which the study names the first first. A change within the margin
// does not matter. An error says that the VMs had another number of kernels, or that no configuration had both.
func Kernels(s *data.Summary, margin float64) (*Comparison, error) {
	dir := s.Folders[0].Dir
	kernels := KernelsOf(s)
	if len(kernels) != 2 {
		return nil, fmt.Errorf("%s has VMs with %d kernels, and comparing needs two: name a second folder, or two kernels when you measure (tare run --vm-kernel FILE --vm-kernel FILE)", dir, len(kernels))
	}
	c := &Comparison{Old: s, New: s, Margin: margin}
	for _, r := range s.Rows {
		if r.Treatment.AA || r.Treatment.Kernel != kernels[0] {
			continue
		}
		if i := slices.IndexFunc(s.Rows, func(n *data.Row) bool {
			return n.Treatment.Kernel == kernels[1] && n.HostID == r.HostID && sameButKernel(r, n)
		}); i >= 0 {
			c.add(r, s.Rows[i])
		}
	}
	if len(c.Changes) == 0 {
		return nil, fmt.Errorf("%s has no configuration with both kernels", dir)
	}
	c.judge()
	return c, nil
}

// KernelsOf are the kernels of the VMs in a folder, by Treatment.Kernel, in the study's order.
func KernelsOf(s *data.Summary) (kernels []string) {
	for _, t := range s.Folders[0].Study.Treatments {
		if notebook.HasMachine(t.Platform) && !slices.Contains(kernels, t.Kernel) {
			kernels = append(kernels, t.Kernel)
		}
	}
	return kernels
}

// add adds the change from one row to the other, in their metric and in their secondary ones.
func (c *Comparison) add(old, new *data.Row) {
	c.Changes = append(c.Changes, Change{Old: old, New: new, Answer: stats.Inconclusive})
	for _, f := range old.Figures {
		if n := slices.IndexFunc(new.Figures, func(n *data.Row) bool { return n.Metric == f.Metric }); n >= 0 {
			c.Changes = append(c.Changes, Change{Old: f, New: new.Figures[n], Figure: true, Answer: stats.Inconclusive})
		}
	}
}

// split finds what is relative to bare metal in both folders, and takes that bare metal from the changes.
func (c *Comparison) split() {
	host := map[*data.Row]bool{}
	for i := range c.Changes {
		x := &c.Changes[i]
		if x.Relative = stats.Finite(x.relative(c, stats.Sure(0)).Low); x.Relative {
			host[c.Old.Base(x.Old)] = true
		}
	}
	all := c.Changes
	c.Changes = nil
	for _, x := range all {
		if host[x.Old] {
			x.Answer = ""
			c.Host = append(c.Host, x)
		} else {
			c.Changes = append(c.Changes, x)
		}
	}
	sure := c.sure().Share(max(len(c.Host), 1))
	for i := range c.Host {
		x := &c.Host[i]
		x.Ratio, x.Level = x.means(sure), 1-sure.Alpha
		x.Means = x.Ratio
	}
}

// first names a folder's first treatment.
func first(s *data.Summary) string {
	if len(s.Rows) == 0 {
		return "none"
	}
	return s.Rows[0].Treatment.ID
}

// usual is the kernel of VMs for which none was named.
const usual = "usual"

// counterpart is the place of the row's treatment among those of the second folder; -1: it is not there. A VM's kernel may be what changed
// between the folders. So VMs that differ only by their kernel belong together, where each folder has one of them.
func counterpart(r *data.Row, old, new []*data.Row) int {
	if i := slices.IndexFunc(new, func(n *data.Row) bool { return same(r, n) }); i >= 0 {
		return i
	}
	found, before, after := -1, 0, 0
	for _, o := range old {
		if sameButKernel(r, o) {
			before++
		}
	}
	for i, n := range new {
		if sameButKernel(r, n) {
			found = i
			after++
		}
	}
	if before != 1 || after != 1 {
		return -1
	}
	return found
}

// same says whether two rows are of the same treatment, on whatever host and of whatever image.
func same(a, b *data.Row) bool {
	return a.Treatment.Kernel == b.Treatment.Kernel && sameButKernel(a, b)
}

func sameButKernel(a, b *data.Row) bool {
	return a.Treatment.SameButKernel(b.Treatment) && a.Metric == b.Metric && data.SameMeasure(a, b)
}

// KernelsDiffer says whether the VMs of two rows had different kernels.
func KernelsDiffer(old, new *data.Row) (d Differs, differ bool) {
	x, y := old.Treatment.Kernel, new.Treatment.Kernel
	return Differs{GuestKernel, "", cmp.Or(x, usual), cmp.Or(y, usual)}, x != y
}

// DifferencesOf are those between two folders, apart from what was measured.
func DifferencesOf(old, new *data.Summary) (all []data.Doubt) {
	differ := func(what Thing, of, before, after string) {
		if before != after {
			all = append(all, Differs{what, of, before, after})
		}
	}
	a, b := old.Folders[0].Study, new.Folders[0].Study
	h, g := old.HostOf(old.Folders[0].Host), new.HostOf(new.Folders[0].Host)
	name := func(h data.Host) string { return fmt.Sprintf("%s (%.8s)", h.Hostname, h.ID) }
	differ(Host, "", name(h), name(g))
	differ(CPU, "", fmt.Sprintf("%d × %s", len(h.CPUs), h.CPUModel), fmt.Sprintf("%d × %s", len(g.CPUs), g.CPUModel))
	differ(Kernel, "", h.Kernel, g.Kernel)
	settings := g.SettingList()
	for i, s := range h.SettingList() {
		if s.Value != "" && settings[i].Value != "" { // both folders have it
			differ(Setting, s.Name, s.Value, settings[i].Value)
		}
	}
	if h.Settings != nil && g.Settings != nil {
		both(h.Settings.Mitigations, g.Settings.Mitigations, func(of, before, after string) { differ(Mitigation, of, before, after) })
	}
	both(h.Versions(), g.Versions(), func(of, before, after string) { differ(Version, of, before, after) })
	set := func(f data.Folder) string { return cmp.Or(strings.Join(f.Quiet, ", or "), "nothing") }
	differ(Quiet, "", set(old.Folders[0]), set(new.Folders[0]))
	differ(Tare, "", a.Tare, b.Tare)
	for _, label := range slices.Sorted(maps.Keys(a.Images)) {
		if after, ok := b.Images[label]; ok {
			differ(Image, label, a.Images[label].Digest, after.Digest)
		}
	}
	if x, y := a.Design, b.Design; x.Trials != y.Trials || x.Warmups != y.Warmups {
		all = append(all, DesignDiffers{x, y})
	}
	return all
}

// both calls differ for each key that two maps have in common, in order.
func both(old, new map[string]string, differ func(of, before, after string)) {
	for _, of := range slices.Sorted(maps.Keys(old)) {
		if after, ok := new[of]; ok {
			differ(of, old[of], after)
		}
	}
}

// judge answers for each treatment. Holm's procedure finds changes: each one makes the next easier to find, and the chance of any false change
// is at most stats.Alpha. For equivalence the level is Bonferroni's, because there each treatment that changed can be called equivalent by mistake.
// That chance is as small, and a separate one.
func (c *Comparison) judge() {
	cautious := c.sure().Share(len(c.Changes))
	for left, found := len(c.Changes), true; found && left > 0; {
		found = false
		sure := c.sure().Share(left)
		for i := range c.Changes {
			x := &c.Changes[i]
			if x.Answer != stats.Inconclusive {
				continue
			}
			x.Ratio, x.Means, x.Level = x.ratio(c, sure), x.means(sure), 1-sure.Alpha
			if x.Answer = c.answer(x); x.Answer != stats.Inconclusive {
				found = true
				left--
			}
		}
	}
	for i := range c.Changes {
		x := &c.Changes[i]
		if x.Answer != stats.Inconclusive {
			continue
		}
		x.Ratio, x.Means, x.Level = x.ratio(c, cautious), x.means(cautious), 1-cautious.Alpha
		if x.Why != "" {
			continue
		}
		if x.Cost().Verdict(c.Margin) == stats.Equivalent {
			x.Answer = stats.Equivalent
		} else {
			x.Rounds = x.Ratio.Rounds(c.Margin, cautious, cautious)
		}
	}
}

// sure is the confidence of a single change.
func (c *Comparison) sure() stats.Confidence {
	return stats.Sure(notebook.Looks(c.Old.Folders[0].Study.Design, c.New.Folders[0].Study.Design))
}

// ratio is what decides: within one folder that of the same rounds, else the change relative to bare metal's where there is one, else the means'.
func (x *Change) ratio(c *Comparison, sure stats.Confidence) stats.Quotient {
	switch {
	case c.InTurns():
		return c.Old.Ratio(x.New, x.Old, sure.Alpha)
	case x.Relative:
		return x.relative(c, sure)
	}
	return x.means(sure)
}

// means is the change of the mean.
func (x *Change) means(sure stats.Confidence) stats.Quotient {
	return stats.Change(data.Means(x.New.Values), data.Means(x.Old.Values), sure)
}

// relative is the change of the ratio to bare metal; none of bare metal itself, and where a folder lacks it.
func (x *Change) relative(c *Comparison, sure stats.Confidence) stats.Quotient {
	before, after := c.Old.Base(x.Old), c.New.Base(x.New)
	if before == nil || after == nil || before == x.Old || after == x.New {
		return stats.NoRatio
	}
	pairs := func(x, y *data.Row) (p stats.Pairs) {
		p.X, p.Y, _ = data.Paired(x, y)
		return p
	}
	return stats.Relative(pairs(x.New, after), pairs(x.Old, before), sure)
}

// answer is what is found: a change, or nothing yet.
func (c *Comparison) answer(x *Change) stats.Verdict {
	q := x.Ratio
	switch {
	case math.IsNaN(q.Value):
		x.Why = Missing
	case x.Old.Unreliable() || x.New.Unreliable():
		x.Why = Failing
	case !q.Contains(1) && (c.Old.Within(x.Old, q) || c.New.Within(x.New, q)):
		x.Why = Doubtful
	default:
		if a := x.Cost().Verdict(c.Margin); a != stats.Equivalent {
			return a
		}
	}
	return stats.Inconclusive
}

// Found are the changes with one of these answers, the largest first.
func (c *Comparison) Found(answers ...stats.Verdict) (all []Change) {
	for _, x := range c.Changes {
		if slices.Contains(answers, x.Answer) {
			all = append(all, x)
		}
	}
	size := func(x Change) float64 { return math.Abs(math.Log(x.Ratio.Value)) }
	slices.SortStableFunc(all, func(a, b Change) int { return cmp.Compare(size(b), size(a)) })
	return all
}
