package words

import (
	"cmp"
	"fmt"
	"slices"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// CheckWhere says what an A/A check is of.
func CheckWhere(s *data.Summary, a data.AACheck) string {
	if metric := a.Figure.Name; metric != "" {
		a.Figure = notebook.Metric{}
		return CheckWhere(s, a) + ", " + Plain(Caption(metric))
	}
	return Where(s, &data.Row{Host: a.Host, HostID: s.HostNamed(a.Host).ID, HostCores: a.HostCores, Treatment: notebook.Treatment{Workload: a.Workload, Params: a.Params, Factors: a.Factors, Instance: a.Instance}})
}

// Check says an A/A check's verdict, to follow what it is of.
func Check(a data.AACheck) string {
	s, alone := Interval(a.Ratio, a.Low, a.High), ""
	if !(a.Low <= 1 && 1 <= a.High) {
		alone = ", which excludes 1; one such interval in 20 does by chance"
	}
	switch a.Verdict {
	case data.Holds:
		if alone != "" {
			return s + alone + fmt.Sprintf("; over %d places, chance explains that", a.Places) + Unseen(a)
		}
		return s + ", which contains 1" + Unseen(a)
	case data.Narrow:
		if alone == "" {
			s += ", which contains 1"
		}
		s += alone + fmt.Sprintf("; but over %d places bare metal differs from itself by %s times what such intervals allow", a.Places, Digits(a.Factor, 2))
	case data.Misses:
		s += ", which excludes 1"
		if a.Places > 1 {
			s += fmt.Sprintf(" by more than chance explains over %d places", a.Places)
		}
		s += ": the host was too noisy, or this is the one run in 20 in which chance alone does it"
	default:
		return "not known: too few or too noisy rounds for an interval"
	}
	if n := len(a.Untrusted); n > 0 {
		s += "; " + was(n, "treatment") + " not to be trusted"
	}
	return s
}

// Calibrated says what the A/A checks of a host show together, and of what; both empty where there are too few places.
func Calibrated(s *data.Summary, c data.Calibration) (of, says string) {
	const enough = 5
	if !stats.Finite(c.Factor) || c.Places < enough && !c.Narrow() {
		return "", ""
	}
	of = "all together"
	if len(s.Hosts) > 1 {
		of += " on " + c.Host
	}
	if c.Figure.Name != "" {
		of += ", " + Plain(Caption(c.Figure.Name))
	}
	is := "no sign that they are too narrow"
	if c.Narrow() {
		is = "they are too narrow, by " + Digits(c.Low, 2) + " times at least"
	}
	return of, fmt.Sprintf("over %d places, bare metal differs from itself by %s times what the intervals allow: %s", c.Places, Digits(c.Factor, 2), is)
}

// Unseen says of a check that holds which differences are too small for it to detect, to follow its sentence: those
// below half of its interval's width. A wide interval contains 1 easily.
func Unseen(a data.AACheck) string {
	half := 100 * (a.High - a.Low) / 2
	if a.Verdict != data.Holds || !stats.Finite(half) || half == 0 {
		return ""
	}
	return "; this run cannot resolve differences below " + Digits(half, 2) + " %"
}

// Checks gives the verdict that several A/A checks share, with the ratio of the least exact one. all is the number of all checks.
func Checks(verdict data.Verdict, of []data.AACheck, all int) string {
	said := "A/A check " + map[data.Verdict]string{
		data.Misses: "fails", data.Narrow: "finds intervals too narrow", data.NotKnown: "says nothing", data.Holds: "holds",
	}[verdict]
	if all > 1 {
		said += fmt.Sprintf(" in %d of %d, the least exact", len(of), all)
	}
	widest := slices.MaxFunc(of, func(a, b data.AACheck) int { return cmp.Compare(a.High-a.Low, b.High-b.Low) })
	return said + ": bare metal against itself is " + Check(widest) + "."
}
