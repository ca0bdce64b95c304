package words

import (
	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// CheckWhere says what an A/A check is of.
func CheckWhere(s *data.Summary, a data.AACheck) string {
	if metric := a.Figure.Name; metric != "" {
		a.Figure = notebook.Metric{}
		return CheckWhere(s, a) + ", " + Plain(metric)
	}
	return Where(s, &data.Row{Host: a.Host, HostID: s.HostNamed(a.Host).ID, HostCores: a.HostCores, Treatment: notebook.Treatment{Workload: a.Workload, Params: a.Params, Instance: a.Instance}})
}

// Check says an A/A check's verdict, to follow what it is of.
func Check(a data.AACheck) string {
	switch a.Verdict {
	case data.Holds:
		return Interval(a.Ratio, a.Low, a.High) + ", which contains 1" + Unseen(a)
	case data.Misses:
		s := Interval(a.Ratio, a.Low, a.High) + ", which excludes 1: the host was too unsteady, or this is the one run in 20 in which it happens by chance"
		if n := len(a.Untrusted); n > 0 {
			s += "; " + was(n, "treatment") + " not to be trusted"
		}
		return s
	}
	return "not known: too few rounds, or too unsteady ones, for an interval"
}

// Unseen says of a check that holds which differences are too small for it to detect, to follow what is said of it: those
// of less than half of its interval's width. A wide interval contains 1 easily.
func Unseen(a data.AACheck) string {
	half := 100 * (a.High - a.Low) / 2
	if a.Verdict != data.Holds || !stats.Finite(half) || half == 0 {
		return ""
	}
	return "; it could not have detected less than ± " + Digits(half, 2) + " %"
}
