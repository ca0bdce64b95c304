package words

import (
	"fmt"
	"strings"

	"tare/desk/history"
	"tare/stats"
)

// HistoryColumns are the column heads of the table of a history.
var HistoryColumns = [4]string{"configuration", "runs", "latest", "from run to run"}

// History is the headline: "41 runs of quick, from 1 October 2026, 07:00 UTC to 10 November 2026, 07:00 UTC: 1 of 6 configurations changed."
func History(h *history.History) string {
	changed, examined, short := 0, 0, 0
	for _, t := range h.Tracks {
		switch {
		case t.Reference:
		case !t.Examined():
			short++
		default:
			examined++
			if len(t.Changes) > 0 {
				changed++
			}
		}
	}
	first, last := h.Runs[0], h.Runs[len(h.Runs)-1]
	said := Count(len(h.Runs), "run") + " of " + Plain(first.Folders[0].Study.Name)
	if len(h.Runs) > 1 {
		said += ", from " + Date(history.At(first)) + " to " + Date(history.At(last))
	}
	switch {
	case examined == 0:
		return said + fmt.Sprintf(": too few to look for changes; a configuration needs at least %d.", stats.LeastHistory)
	case changed == 0:
		said += fmt.Sprintf(": Tare finds no change in %s.", Count(examined, "configuration"))
	default:
		said += fmt.Sprintf(": %d of %s changed.", changed, Count(examined, "configuration"))
	}
	if short > 0 {
		said += fmt.Sprintf(" %s with fewer than %d runs cannot be examined.", Count(short, "other configuration"), stats.LeastHistory)
	}
	return said
}

// HistoryRow is a row of the table of a history.
func HistoryRow(h *history.History, t *history.Track) [4]string {
	last := t.Latest()
	value := Mean(last.Row)
	if q := last.Row.Cost(); t.Relative {
		value = Interval(q.Value, q.Low, q.High)
	}
	if last.Run != h.Runs[len(h.Runs)-1] {
		value += ", " + Date(history.At(last.Run))
	}
	spread := "–"
	if stats.Finite(t.Spread) {
		spread = "± " + percentOf(t.Spread)
	}
	return [4]string{trackOf(h, t), fmt.Sprint(len(t.Points)), value, spread}
}

// trackOf names a track: its metric unless that is the execution time, and its host if the history has several hosts.
func trackOf(h *history.History, t *history.Track) string {
	last := t.Latest()
	name := Work(last.Row.Treatment) + ", " + Label(last.Run, last.Row)
	if m := last.Row.Metric; m.Name != "execution time" {
		name += ", " + Called(m)
	}
	several, same := false, false
	for _, o := range h.Tracks {
		if r := o.Latest().Row; r.HostID != last.Row.HostID {
			several, same = true, same || r.Host == last.Row.Host
		}
	}
	switch {
	case same:
		return name + fmt.Sprintf(" on %s (%.8s)", Plain(last.Row.Host), Plain(last.Row.HostID))
	case several:
		return name + " on " + Plain(last.Row.Host)
	}
	return name
}

// HistoryChanges lists the changes: the configuration, since when, by how much, and what else differs since then. The last are those of the host.
func HistoryChanges(h *history.History) (lines, host []string) {
	for _, t := range h.Tracks {
		for _, c := range t.Changes {
			by, what := c.By()-1, "more"
			if by < 0 {
				by, what = -by, "less"
			}
			verb, of := "the mean is", Plain(c.First.Row.Metric.Unit)
			if t.Relative {
				verb, of = "costs", "times "+referenceOf(c.First.Run, " or ", InSentence)
			}
			line := fmt.Sprintf("%s: %s %s %s since %s (%s): %s instead of %s %s", trackOf(h, t), verb, percentOf(by), what,
				Date(history.At(c.First.Run)), Plain(c.First.Run.Folders[0].Dir), Digits(c.After, 4), Digits(c.Before, 4), of)
			if len(c.Differences) > 0 {
				line += ". Also different since then: " + strings.Join(Doubts(c.Differences), "; ")
			}
			if line += "."; t.Reference {
				host = append(host, line)
			} else {
				lines = append(lines, line)
			}
		}
	}
	return lines, host
}

// HistoryHost is the head of the changes of what others are relative to.
const HistoryHost = "Changed as well: the reference itself, which is the host's change"

// HistoryNotes explain the numbers of a history, and say what is not in it.
func HistoryNotes(h *history.History) []string {
	notes := []string{"A ratio is a cost: above 1 is worse than " + referenceOf(h.Runs[len(h.Runs)-1], " or ", InSentence) + ". “From run to run” is the standard deviation of the runs around their level, which is their mean between two changes."}
	means, without := false, 0
	for _, t := range h.Tracks {
		means, without = means || !t.Relative && !t.Reference, without+t.Without
	}
	if means {
		notes = append(notes, "A configuration that was never compared with another is shown with its mean, which changes with the speed of the host.")
	}
	if without > 0 {
		notes = append(notes, fmt.Sprintf("%s of configurations have no ratio, because the reference failed in that run. They do not count.", Count(without, "result")))
	}
	if len(h.Empty) > 0 {
		notes = append(notes, "Nothing was measured in "+Plain(List(h.Empty))+".")
	}
	return append(notes, "Tare looks for changes again after each run. In 40 runs without a change, all these looks together report one in at most 5 of 100 histories. "+
		"Tare finds a new level after 3 runs at the earliest, and its begin may be off by two runs.")
}
