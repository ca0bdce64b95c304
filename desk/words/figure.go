package words

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/desk/compare"
	"tare/desk/data"
	"tare/desk/explain"
	"tare/desk/ladder"
	"tare/notebook"
)

// The texts in and below the figures of every report. Package chart draws these figures. A kind of study has the texts of its own figures.

// NotVMsCost marks a result that was measured under emulation.
const NotVMsCost = "emulated: not a VM’s cost"

// Short texts of figures.
const (
	ComparisonTitle     = "Change from before to after"
	EmulatedTitle       = "Emulated, not a VM’s cost"
	EmulatedCaption     = "Never compare them with the figure above."
	EmulatedIsElsewhere = "What ran under emulation is in a figure of its own."
	EmulatedIsHatched   = "Hatched: emulated, which says nothing of a VM’s cost."
	DotsAreSampled      = "Where a configuration has more runs than dots, the dots are an even sample."
	DoubtfulIsMarked    = "A question mark: doubtful, because the difference is within the A/A noise."
	AxisIsCut           = "The axis does not begin at 0."
	Durations           = "Lengths of its running and waiting periods"
	TrialsTime          = "elapsed time of a trial"
)

// Redrawn is the title of a figure of a paper.
func Redrawn(name, heading, where string) string {
	return name + " of the paper, redrawn from these runs: " + heading + " – " + where
}

// Baseline says what the ratios of these rows are relative to.
func Baseline(rows []*data.Row) string {
	i := slices.IndexFunc(rows, (*data.Row).IsBaseline)
	if i < 0 {
		return "the reference"
	}
	t := rows[i].Treatment
	if t.Platform == notebook.BM {
		return Platform(t.Platform)
	}
	name := Environment(t, false)
	if slices.ContainsFunc(rows, func(r *data.Row) bool { return r.Baseline == t.ID && !r.Treatment.Instance.SameSize(t.Instance) }) {
		name += " at " + Plain(t.Instance.Name)
	}
	return name
}

// Provisionings says how marks tell ways of provisioning apart: which are pale, and which are solid.
func Provisionings(rows []*data.Row, pale, solid string) string {
	said := pale + " have a CPU quota, " + solid + " a CPU set"
	if slices.ContainsFunc(rows, func(r *data.Row) bool { return r.Treatment.Provisioning == notebook.Whole }) {
		said += " or no limit"
	}
	return said + "."
}

// meanBars says how to read bars of means.
const meanBars = "Each bar is the mean over rounds, the vertical line through its top the 95 % interval, and each small dot one run. "

// MeanBars says how to read the bars of these rows.
func MeanBars(rows []*data.Row) string {
	return meanBars + Provisionings(rows, "Pale bars", "solid ones")
}

// EmulatedBars says how to read bars of emulated treatments.
const EmulatedBars = meanBars + "Hatched: emulated VMs, which show what emulation costs on this host, not what a VM costs."

// Stripes says what the stripes of bars distinguish.
func Stripes(networks bool) string {
	if networks {
		return "Stripes tell the engines and networks of one platform apart."
	}
	return "Stripes tell the engines of one platform apart."
}

// RatioMarks says how to read marks of changes, in per cent or as ratios.
func RatioMarks(rows []*data.Row, perCent bool, matters float64) string {
	baseline, no := Baseline(rows), "1"
	said := "Each mark is the ratio of a configuration’s mean to that of " + baseline + " in the same rounds, with its 95 % interval. The line at 1 is " + baseline + "."
	if perCent {
		no = "0"
		said = "Each mark is a configuration’s change against " + baseline + " in the same rounds, with its 95 % interval. The line at 0 is " + baseline + "."
	}
	if matters > 0 {
		said += " The thin lines are the margin of " + margin(matters) + "."
	}
	said += " " + Provisionings(rows, "Hollow marks", "filled ones") + " Where an interval contains " + no + ", the measurement shows no difference."
	if slices.ContainsFunc(rows, func(r *data.Row) bool { return r.Treatment.AA && r.Representative }) {
		said += " “Again (A/A)” is bare metal measured a second time: it should lie at " + no + "."
	}
	return said
}

// ChangeMarks says how to read marks of changes between two folders, in per cent or as ratios.
func ChangeMarks(c *compare.Comparison, perCent bool) string {
	no := "1"
	if perCent {
		no = "0"
	}
	said := "Each mark is the change of a configuration’s mean from before to after. "
	to := reference(c)
	if len(c.Host) > 0 {
		said = "Each mark is the change of a configuration’s ratio to " + to + ", or of its mean where a folder has no such ratio. The mark of " + to + " itself is " + whose(c) + ". "
	}
	said += "Intervals are corrected for the number of comparisons. The line at " + no + " marks no change; the thin lines are the margin of " + margin(c.Margin) + ". Grey names: inconclusive, or " + to + "."
	if slices.ContainsFunc(c.Changes, func(x compare.Change) bool { return x.Old.Metric.MoreIsBetter() }) {
		said += " Where higher is better, values below " + no + " is worse."
	}
	return said
}

// ChangeMark returns the verdict on a change, which the change's mark does not show.
func ChangeMark(c *compare.Comparison, x compare.Change) string {
	if x.Answer == "" {
		return "which is " + whose(c)
	}
	return VerdictOf(x.Old, x.Answer)
}

// RadarAxes says how to read a radar chart.
const RadarAxes = "Each axis is one metric, from 0 in the middle to 1, the best of all treatments; the farther out, the better. For a metric where lower is better, the axis has the inverse: the best value divided by the treatment’s own. " +
	"Intervals are in the table below; emulated treatments are only in the table."

// NotMeasured says which treatments were not measured, and why; empty if all were measured.
func NotMeasured(s *data.Summary, gaps []data.LeftOut) string {
	reason := func(l data.LeftOut) string { return strings.TrimSuffix(Plain(Message(l.Reason)), ".") }
	var parts []string
	for _, of := range data.Together(gaps, func(a, b data.LeftOut) bool { return reason(a) == reason(b) }) {
		const most = 3 // names; more are counted
		names := data.Distinct(of, func(l data.LeftOut) string {
			if len(s.Hosts) > 1 {
				return Sized(s, l.Treatment) + ", on " + Plain(l.Host)
			}
			return Sized(s, l.Treatment)
		})
		what, why := strings.Join(names, "; "), reason(of[0])
		if len(names) > most {
			instances := data.Distinct(of, func(l data.LeftOut) string { return Plain(l.Treatment.Instance.Name) })
			what = Count(len(names), "treatment") + " at " + strings.Join(instances, ", ")
		}
		const long = 100 // bytes that fit below a figure
		if len(why) > long {
			why = "the reason is under “What was left out”"
		}
		parts = append(parts, what+" ("+why+")")
	}
	if parts == nil {
		return ""
	}
	return "Not measured: " + strings.Join(parts, "; ") + "."
}

// Stairs says how to read a staircase.
const Stairs = "From the top down, each line adds one layer of isolation to those above it. The edge of the stairs is the ratio to bare metal in the same rounds, with its 95 % interval; the line at 1 is bare metal. " +
	"On the right is each rung’s own overhead: the ratio of its mean to that of the rung below. A thick step has an overhead that is distinguishable from none, corrected for the number of rungs."

// StairMarks says what stands below the stairs, and which marks are used. The axis ends at high.
func StairMarks(c *ladder.Staircase, high float64) string {
	has := func(is func(*ladder.Rung) bool) bool {
		return slices.ContainsFunc(c.Rungs, is)
	}
	var below []string
	for _, it := range []struct {
		kind ladder.Kind
		text string
	}{
		{ladder.Engine, "whole containers, each compared with the topmost layer (dotted)"},
		{ladder.VM, "the VM, compared with bare metal"},
		{ladder.ContainerInVM, "a container in it, compared with the VM"},
	} {
		if has(func(r *ladder.Rung) bool { return r.Kind == it.kind }) {
			below = append(below, it.text)
		}
	}
	caption := ""
	if below != nil {
		caption = "Below the stairs: " + strings.Join(below, "; ") + "."
	}
	if has(func(r *ladder.Rung) bool { return r.Emulated && r.Measured() }) {
		caption += " Hatched: emulated, which says nothing of a VM’s cost; never ranked."
	}
	if has(func(r *ladder.Rung) bool { return r.Measured() && r.Ratio.Value > high }) {
		caption += " An arrow: beyond the axis, with its value."
	}
	return caption
}

// StairRungs describes a staircase rung by rung.
func StairRungs(c *ladder.Staircase) string {
	times := func(v, low, high float64) string { return Measured(v, data.Floor(c.Metric, low), high, "") }
	var list []string
	for _, r := range c.Rungs {
		s := Plain(LadderRung(r)) + ": "
		switch {
		case !r.Measured():
			s += "not measured"
		case r.Kind == ladder.BareMetal:
			s += "1"
		default:
			s += times(r.Ratio.Value, r.Ratio.Low, r.Ratio.High) + " times bare metal"
			if r.Below != nil && r.Below != c.Rungs[0] {
				s += ", " + times(r.Own.Value, r.Own.Low, r.Own.High) + " times " + Plain(LadderRung(r.Below))
			}
		}
		if r.Emulated {
			s += ", emulated"
		}
		list = append(list, s)
	}
	return "A staircase, from bare metal up. " + strings.Join(list, "; ") + "."
}

// Waterfall says how to read a waterfall.
const Waterfall = "From the top down, from the reference’s time to this configuration’s: each part of the overhead begins where the part above it ends. " +
	"The thin lines are the parts’ 95 % intervals, on the last bar that of the overhead."

// WaterfallBars says what solid and pale bars mean; empty if no bar is pale.
func WaterfallBars(solid, pale int) string {
	switch {
	case pale == 0:
		return ""
	case solid == 0:
		return "Pale: the 95 % intervals contain 0, so no part is shown to be a cause."
	}
	return "Solid: the 95 % interval excludes 0. Pale: it contains 0, so the part is not shown to be a cause."
}

// WaterfallParts describes an account part by part. k is the number of units in a second.
func WaterfallParts(a *explain.Account, unit string, k float64) string {
	list := []string{fmt.Sprintf("the overhead against %s: %s", Plain(Against(a)), Measured(k*a.Overhead.Value, k*a.Overhead.Low, k*a.Overhead.High, unit))}
	for _, p := range a.Parts {
		list = append(list, Plain(Part(p.Key))+": "+Measured(k*p.Seconds.Value, k*p.Seconds.Low, k*p.Seconds.High, unit))
	}
	return "A waterfall. " + strings.Join(list, "; ") + "."
}

// Histograms says how to read a distribution that is drawn above the one that it is compared with.
func Histograms(against string) string {
	return "How often each length of time occurred in a traced run; each bar covers times twice as long as the bar before it. Upwards: this configuration. Downwards: " + against + ". Both share a scale; each picture has its own."
}

// MoreHistograms says how many distributions are not shown.
func MoreHistograms(shown, more int) string {
	return fmt.Sprintf("The %d that took the most time; %s took less.", shown, Thousands(more))
}

// Distribution says what a distribution on a platform shows. inside: it was observed in the VM.
func Distribution(d *notebook.Distribution, inside bool, platform string) string {
	var n string
	switch d.What {
	case notebook.OnCPU:
		n = "on a core"
	case notebook.RunQueue:
		n = "in the run queue"
	case notebook.OffCPU:
		n = Plain(Part(d.Of))
	case notebook.BlockIO:
		n = Plain("block I/O, " + d.Of)
	default:
		n = Plain(strings.TrimSpace(d.What + " " + d.Of))
	}
	switch {
	case inside:
		n = "in the VM: " + n
	case d.Role == notebook.RoleVCPU:
		n = "vCPUs: " + n
	case d.Role == notebook.RoleIO:
		n = "VM’s I/O: " + n
	case d.Role == notebook.RoleEmulator && platform == notebook.CN:
		n = "sandbox: " + n
	case d.Role == notebook.RoleEmulator:
		n = "emulator: " + n
	}
	return n
}

// TimesInTrial says how often something happened in a trial, and how long it took in all if the unit is seconds.
func TimesInTrial(n, sum float64, unit string) string {
	times := Digits(n, 2)
	if n >= 10 {
		times = Thousands(int(math.Round(n)))
	}
	w := times + "×"
	if unit == "s" {
		w += ", " + Duration(sum)
	}
	return w
}
