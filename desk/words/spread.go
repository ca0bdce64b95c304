package words

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/desk/compare"
	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// Texts of the figures that show single runs.
const (
	ChangeTitle = "Change against "
	SpreadTitle = "Every run"
	RoundsTitle = "Round by round"
	TimeTitle   = "Over time"
	HeatTitle   = "Every workload"

	SpreadMarks = "Each dot is one run. The vertical line is the mean over rounds, the horizontal line its 95 % interval. Point at a dot to see which run it is."
	RoundMarks  = "Each point is one round’s mean, relative to the same configuration’s mean over all rounds. A change common to all lines is the host's."
	TimeMarks   = "Each dot is one run, at the time when it began, relative to its configuration’s mean."
	OwnMean     = "its own mean"
	Undisturbed = "No round was disturbed."
)

// HeatMarks says how to read the cells of a heat map.
func HeatMarks(s *data.Summary) string {
	return "Each cell is a change against " + ReferenceOf(s) + ". Orange: slower by more than the margin. Blue: faster by more than the margin. A frame: by 10 % or more. A question mark: inconclusive."
}

// Shaded says what the shaded rounds of a figure are; n of them.
func Shaded(n int) string {
	if n == 0 {
		return Undisturbed
	}
	return "Shaded: " + Count(n, "round") + " in which other programs used more than 5 % of the CPU time."
}

// PerCent says a change with its interval, in per cent: "+0.8 % (−0.3 to +2.0)". Ends that are not known are left out.
func PerCent(q stats.Quotient) string { return perCent(q, 3) }

// perCent is PerCent with at most so many decimals.
func perCent(q stats.Quotient, most int) string {
	v, low, high := 100*(q.Value-1), 100*(q.Low-1), 100*(q.High-1)
	if math.IsNaN(v) {
		return Number(v, 0)
	}
	d := min(Places(v, low, high), most)
	said := Signed(Number(v, d)) + " %"
	switch {
	case stats.Finite(low) && stats.Finite(high):
		said += " (" + Signed(Number(low, d)) + " to " + Signed(Number(high, d)) + ")"
	case stats.Finite(low):
		said += " (at least " + Signed(Number(low, d)) + ")"
	case stats.Finite(high):
		said += " (at most " + Signed(Number(high, d)) + ")"
	}
	return said
}

// Against100 says what an axis of per cent is against.
func Against100(what string) string { return "per cent more than " + what }

// ARun names a run in the record: "round 3, guest g12, run 2: 445.5 ms".
func ARun(d data.Dot, unit string) string {
	return Plain(fmt.Sprintf("round %d, guest %s, run %d: %s %s", d.Round+1, d.Guest, d.Trial+1, Digits(d.Value, 4), unit))
}

// ARound names what a configuration gave in a round.
func ARound(name string, v data.Value, unit string) string {
	return Plain(fmt.Sprintf("%s, round %d: %s %s, mean of %s", name, v.Round+1, Digits(v.Mean, 4), unit, Count(v.Trials, "run")))
}

// InPerCent says a change and its interval separately: "+0.8 %", "−0.3 to +2.0".
func InPerCent(q stats.Quotient) (change, interval string) {
	change, interval, _ = strings.Cut(strings.TrimSuffix(PerCent(q), ")"), " (")
	return change, interval
}

// HostsChange is what the change of the reference, to which others are relative, is.
func HostsChange(c *compare.Comparison) string {
	if len(c.Old.Baseline) == 0 {
		return "the host’s change"
	}
	return Reference
}

// Reference is what the verdict on a baseline is.
const Reference = "reference"

// VerdictOf says a verdict on a row. For a size, which is neither slow nor fast, it says "more" or "less".
func VerdictOf(r *data.Row, v stats.Verdict) string {
	sized := phrases(r).Verb != "" || !r.Metric.Directed()
	switch {
	case sized && v == stats.Slower:
		return "more"
	case sized && v == stats.Faster:
		return "less"
	}
	return string(v)
}

// MarginText writes a margin: "5 %".
func MarginText(share float64) string { return margin(share) }

// Emulators names what emulated VMs: "software emulation (TCG)".
func Emulators(s *data.Summary) string {
	names := map[string]string{notebook.TCG: "software emulation (TCG)", notebook.KVMEmulated: "their kernel mode emulated by KVM"}
	used := data.Distinct(s.Rows, func(r *data.Row) string { return names[r.Treatment.Accelerator] })
	return List(slices.DeleteFunc(used, func(name string) bool { return name == "" }))
}
