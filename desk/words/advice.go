package words

import (
	"fmt"
	"strconv"
	"strings"

	"tare/desk/advise"
	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// TieRule says how near ties are broken.
const TieRule = "measured before predicted, fewer cores, less memory, fewer layers (bare metal, container, VM, container in a VM), a CPU quota before a CPU set"

// openTie is the share by which a choice that is not distinguishable from the first may be better where more rounds may change the advice.
const openTie = 0.1

// Ranking says why the first choice is first, or why there is none.
func Ranking(r *advise.Ranking) string {
	if len(r.Choices) == 0 {
		return "Nothing can be ranked: " + unranked(r) + "."
	}
	best := r.Choices[0]
	name := func(c advise.Choice) string { return Choice(c.Treatment, r.Networks) }
	var b strings.Builder
	open := false        // another choice may be much better
	best.Span = best.All // it was chosen by the same data
	fmt.Fprintf(&b, "%s: %s", Capital(name(best)), rankedValue(r, best))
	if best.Predicted && !r.Defined(best) {
		b.WriteString(", predicted and not measured")
	}
	if best.Treatment.Platform != notebook.BM && !r.ByRatio && stats.Finite(best.RatioHigh) && stats.Finite(best.RatioLow) {
		fmt.Fprintf(&b, ", %s of bare metal", Measured(best.Ratio, best.RatioLow, best.RatioHigh, ""))
	}
	for i, other := range r.Beside {
		b.WriteString([]string{"; ", ", and "}[i])
		q := other.Against
		faster := map[advise.Preference]string{advise.Latency: "faster", advise.Cost: "cheaper"}[r.Prefer]
		if r.Metric.Unit == "MiB" {
			faster = "lighter"
		}
		than := name(r.Choices[other.Choice])
		cost := data.Cost(r.Metric, q)
		switch {
		case !q.HasInterval():
			fmt.Fprintf(&b, "%s is not distinguishable from it", than)
		case q.Contains(1):
			fmt.Fprintf(&b, "%s is not distinguishable from it: %s of it", than, Measured(q.Value, q.Low, q.High, ""))
			open = open || cost.Low < 1-openTie
		case cost.Value < 1 && r.Metric.MoreIsBetter():
			fmt.Fprintf(&b, "%s gives %s of it, and is less simple", than, Measured(q.Value, q.Low, q.High, ""))
		case cost.Value < 1:
			fmt.Fprintf(&b, "%s takes %s of it, and is less simple", than, Measured(q.Value, q.Low, q.High, ""))
		case r.Metric.MoreIsBetter():
			fmt.Fprintf(&b, "%s times as much as %s", Measured(cost.Value, cost.Low, cost.High, ""), than)
		default:
			fmt.Fprintf(&b, "%s times %s than %s", Measured(q.Value, q.Low, q.High, ""), faster, than)
		}
	}
	if len(r.Choices) == 1 {
		b.WriteString("; nothing else can be ranked")
	}
	for _, d := range best.Doubts {
		b.WriteString("; " + Doubt(d))
	}
	b.WriteByte('.')
	if open {
		b.WriteString(" More rounds may name another: continue the run before you choose.")
	}
	return Plain(b.String())
}

// unranked says why a ranking has no choice.
func unranked(r *advise.Ranking) string {
	const most = 3
	reasons := data.Distinct(r.Apart, func(p advise.Apart) string { return strings.TrimSuffix(Plain(Doubt(p.Reason)), ".") })
	if more := len(reasons) - most; more > 0 {
		reasons = append(reasons[:most], "and "+Count(more, "more reason"))
	}
	size, exclude := Plain(r.Wanted.Instance), "--exclude "+strings.Join(r.Wanted.Exclude, ",")
	switch {
	case len(reasons) > 0:
		return strings.Join(reasons, "; ")
	case size != "" && r.AtSize && len(r.Wanted.Exclude) > 0:
		return exclude + " excludes everything that was measured at " + size
	case size != "":
		return size + " was not measured, only " + Plain(strings.Join(r.Sizes, ", ")) + ", and the model predicts nothing for it"
	case len(r.Wanted.Exclude) > 0:
		return exclude + " excludes everything that was measured"
	}
	return "only the A/A check was measured"
}

// Value writes what is ranked of a choice, with its interval.
func Value(r *advise.Ranking, c advise.Choice) string {
	if r.Defined(c) {
		return strconv.FormatFloat(c.Value, 'g', -1, 64) + " by definition"
	}
	return Measured(c.Value, c.Low, c.High, "")
}

// rankedValue writes what is ranked of a choice with its name and unit.
func rankedValue(r *advise.Ranking, c advise.Choice) string {
	return strings.TrimSpace(RankedName(r) + " " + Value(r, c) + " " + RankedUnit(r))
}

// RankedName says what is ranked.
func RankedName(r *advise.Ranking) string {
	what := Caption(r.Metric.Name)
	if r.ByRatio {
		what = "overhead ratio"
	}
	switch {
	case r.Prefer == advise.Cost && r.Metric.MoreIsBetter():
		return what + " per core"
	case r.Prefer == advise.Cost:
		return "cores × " + what
	}
	return what
}

// RankedUnit is the unit of what is ranked; empty where it has none.
func RankedUnit(r *advise.Ranking) string {
	switch {
	case r.ByRatio || r.Metric.Unit == "1":
		return ""
	case r.Prefer == advise.Cost && r.Metric.Unit == "s":
		return "core-seconds"
	}
	return r.Metric.Unit
}

// RankedHow says how a ranking was made, and how to read its table.
func RankedHow(r *advise.Ranking) string {
	tied, near, leader, predicted := 0, 0, 0, false
	for _, c := range r.Choices {
		if c.Tied {
			tied++
		}
		if c.Near {
			near++
		}
		if c.Leads {
			leader = c.Rank
		}
		predicted = predicted || c.Predicted && !r.Defined(c)
	}
	upper, lowest, noMore := "upper", "lowest", "no more"
	if r.Metric.MoreIsBetter() {
		upper, lowest, noMore = "lower", "highest", "no less"
	}
	how := "Ranked by the " + upper + " end of the 95 % interval."
	if d := Direction(r.Metric); d != "" {
		how = Capital(d) + ". " + how
	}
	if n := len(r.Choices); n > 2 {
		how += fmt.Sprintf(" The data choose the first, so comparisons are corrected for all %d pairs of choices, and the sentence's intervals hold for whichever of the %d comes first.", n*(n-1)/2, n)
	}
	if tied > 1 {
		how += fmt.Sprintf(" Choices marked (=) are not distinguishable from number %d, whose %s end is the %s.", leader, upper, lowest)
	}
	if near > 1 {
		how += fmt.Sprintf(" Of these the first %d, estimated at %s than that %s end, stand in this order: %s.", near, noMore, upper, TieRule)
	}
	if predicted {
		how += " Choices marked as predicted were not measured; docs/model.md describes the model. A prediction and another choice are indistinguishable where their corrected intervals overlap."
	}
	return how
}

// SeveralRankings follows the last of several rankings.
const SeveralRankings = "There are several rankings; --workload chooses one, and --format docker then prints what to apply."

// ToApply says how a choice is applied, with the format that fits the first.
func ToApply(format string) string {
	return fmt.Sprintf("What to apply, with --format: for number 1 %s. Another number: --pick N.", format)
}
