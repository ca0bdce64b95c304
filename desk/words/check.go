package words

import (
	"fmt"

	"tare/desk/data"
	"tare/stats"
)

// Check says an A/A check and its verdict.
func Check(s *data.Summary, a data.AACheck) string {
	where := Work(a.Workload, a.Params) + " at " + a.Instance.Name + " on " + a.Host
	if on := CheckOnline(s, a); on != "" {
		where += " " + on
	}
	switch a.Verdict {
	case data.Holds:
		return where + ": " + Interval(a.Ratio, a.Low, a.High) + ", contains 1" + Unseen(a)
	case data.Misses:
		return where + ": " + Interval(a.Ratio, a.Low, a.High) + ", excludes 1: the host was too unsteady, or this is the one run in 20 in which it happens by chance; " + Count(len(a.Untrusted), "treatment") + " not to be trusted"
	}
	return where + ": not known: too few rounds, or too unsteady ones, for an interval"
}

// CheckOnline is Online for an A/A check.
func CheckOnline(s *data.Summary, a data.AACheck) string {
	return online(s, s.HostID(a.Host), a.Workload, a.HostCores)
}

// Unseen says of a check that holds which differences are too small for it to detect, to follow what is said of it: those
// of less than half of its interval's width. A wide interval contains 1 easily.
func Unseen(a data.AACheck) string {
	half := 100 * (a.High - a.Low) / 2
	if a.Verdict != data.Holds || !stats.Finite(half) || half == 0 {
		return ""
	}
	decimals := 0
	if half < 10 {
		decimals = Decimals(half/10, 1)
	}
	return fmt.Sprintf("; it could not have detected less than ± %.*f %%", decimals, half)
}
