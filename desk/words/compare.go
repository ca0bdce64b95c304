package words

import (
	"fmt"
	"math"

	"tare/desk/compare"
	"tare/stats"
)

// Compared says in a sentence what came of a comparison: "1 of 9 treatments 1 costs more, 7 make no difference of 1 % or more and 1 is open."
func Compared(c *compare.Comparison) string {
	var parts []string
	for _, a := range []stats.Answer{stats.More, stats.Less, stats.Same, stats.Open} {
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
func outcome(c *compare.Comparison, a stats.Answer, n int) string {
	verb, what := map[stats.Answer][2]string{
		stats.More: {"costs more", "cost more"}, stats.Less: {"costs less", "cost less"},
		stats.Same: {"makes no difference", "make no difference"}, stats.Open: {"is open", "are open"},
	}[a], ""
	if c.Margin > 0 && a == stats.Same {
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
	if math.IsNaN(x.Ratio.Value) {
		return "no value in one of the folders"
	}
	s := beyond(x.Ratio)
	if x.Answer == stats.Open {
		why := settle(x.Rounds, "", " of each")
		if x.Doubtful {
			why = "bare metal differed from itself by as much"
		}
		s = join("; ", []string{s, why})
	}
	return s
}

// settle says how many rounds would answer what is open; empty where that is not foreseeable.
func settle(rounds int, more, of string) string {
	if rounds <= 0 {
		return ""
	}
	return "about " + Count(rounds, more+"round") + of + " would settle it"
}

// beyond says by how much a ratio is beyond 1, with its interval: "5.1 % more (4.2 to 6.0)", and of a large one "3.07 times as much (1.59 to
// 10.0)".
func beyond(q stats.Quotient) string {
	if q.Value >= 2 {
		d := Places(q.Value, q.Low, q.High)
		s := Number(q.Value, d) + " times as much"
		if !q.HasInterval() {
			return s + ", too few rounds for an interval"
		}
		return s + " (" + Bounds(q.Low, q.High, d) + ")"
	}
	v, low, high, what := 100*(q.Value-1), 100*(q.Low-1), 100*(q.High-1), "more"
	if v < 0 {
		v, low, high, what = -v, -high, -low, "less"
	}
	d := min(Places(v, low, high), 3)
	s := fmt.Sprintf("%s %% %s", Number(v, d), what)
	if !q.HasInterval() {
		return s + ", too few rounds for an interval"
	}
	return s + " (" + Bounds(low, high, d) + ")"
}

// ChangedLevel says how the intervals of a comparison are made.
func ChangedLevel(c *compare.Comparison) string {
	return fmt.Sprintf("Means over rounds are compared, the second over the first, with intervals that are corrected for %s: in at most %[2]s of such comparisons is any "+
		"change named that is none, and in at most %[2]s is anything that changed by %s called no difference, if the host was the same both times.",
		Count(len(c.Changes), "treatment"), Percent(stats.Alpha, 0), Percent(c.Margin, 1))
}
