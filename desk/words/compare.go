package words

import (
	"fmt"
	"math"
	"strings"

	"tare/desk/compare"
	"tare/stats"
)

// Compared says in a sentence what came of a comparison: "1 of 9 treatments 1 costs more, 7 make no difference of 1 % or more and 1 is open."
func Compared(c *compare.Comparison) string {
	var parts []string
	for _, a := range []compare.Answer{compare.More, compare.Less, compare.Same, compare.Open} {
		if n := len(c.Found(a)); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, outcome(c, a, n)))
		}
	}
	if len(parts) == 1 {
		a := c.Changes[0].Answer
		return fmt.Sprintf("From %s to %s: %s %s.", folder(c, false), folder(c, true), all(len(c.Changes)), outcome(c, a, len(c.Changes)))
	}
	return fmt.Sprintf("From %s to %s: of %s %s.", folder(c, false), folder(c, true), Count(len(c.Changes), "treatment"), list(parts))
}

func all(n int) string {
	switch n {
	case 1:
		return "the one treatment"
	case 2:
		return "both treatments"
	}
	return "all " + Count(n, "treatment")
}

// outcome says an answer of so many treatments.
func outcome(c *compare.Comparison, a compare.Answer, n int) string {
	verb, what := map[compare.Answer][2]string{
		compare.More: {"costs more", "cost more"}, compare.Less: {"costs less", "cost less"},
		compare.Same: {"makes no difference", "make no difference"}, compare.Open: {"is open", "are open"},
	}[a], ""
	if c.Margin > 0 && a == compare.Same {
		what = " of " + Percent(c.Margin, 1) + " or more"
	}
	if n == 1 {
		return verb[0] + what
	}
	return verb[1] + what
}

// folder is the name of the first or the second of the folders.
func folder(c *compare.Comparison, second bool) string {
	if second {
		return Plain(c.New.Folders[0].Dir)
	}
	return Plain(c.Old.Folders[0].Dir)
}

// Changed says what changed for a treatment: "ffmpeg (segments=1), cn docker pinned 1/1GB: 5.1 % more (4.2 to 6.0)".
func Changed(c *compare.Comparison, x compare.Change) string {
	return ChangedWhere(c, x) + ": " + ChangedBy(x)
}

// ChangedWhere names the treatment of a change.
func ChangedWhere(c *compare.Comparison, x compare.Change) string {
	return Work(x.Old.Treatment.Workload, x.Old.Treatment.Params) + ", " + Label(c.Old, x.Old)
}

// ChangedBy says a change in percent, with its interval, and of an open one what would settle it.
func ChangedBy(x compare.Change) string {
	q := x.Ratio
	if math.IsNaN(q.Value) {
		return "no value in one of the folders"
	}
	sign, what := 1.0, "more"
	if q.Value < 1 {
		sign, what = -1, "less"
	}
	v, low, high := sign*100*(q.Value-1), sign*100*(q.Low-1), sign*100*(q.High-1)
	if sign < 0 {
		low, high = high, low
	}
	d := min(Places(v, low, high), 3)
	s := fmt.Sprintf("%s %% %s", Number(v, d), what)
	if !q.HasInterval() {
		return s + ", too few rounds for an interval"
	}
	s += " (" + Bounds(low, high, d) + ")"
	if x.Answer == compare.Open {
		var why []string
		if x.Doubtful {
			why = append(why, "bare metal differed from itself by as much")
		}
		if x.Rounds > 0 {
			why = append(why, "about "+Count(x.Rounds, "round")+" of each would settle it")
		}
		if why != nil {
			s += "; " + strings.Join(why, "; ")
		}
	}
	return s
}

// ChangedLevel says how the intervals of a comparison are made.
func ChangedLevel(c *compare.Comparison) string {
	return fmt.Sprintf("Means over rounds are compared, the second over the first, with intervals that are corrected for %s: in at most %.0f %% of such comparisons is any answer wrong, "+
		"if the host was the same both times.", Count(len(c.Changes), "treatment"), 100*stats.Alpha)
}
