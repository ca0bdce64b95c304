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
	changed := 0
	for _, t := range h.Tracks {
		if len(t.Changes) > 0 {
			changed++
		}
	}
	first, last := h.Runs[0], h.Runs[len(h.Runs)-1]
	said := fmt.Sprintf("%s of %s, from %s to %s: ", Count(len(h.Runs), "run"), Plain(first.Folders[0].Study.Name), Date(history.At(first)), Date(history.At(last)))
	switch all := len(h.Tracks); {
	case enough(h) == 0:
		return said + fmt.Sprintf("too few to look for changes; a configuration needs at least %d.", stats.LeastHistory)
	case changed == 0:
		return said + fmt.Sprintf("Tare finds no change in %s.", Count(all, "configuration"))
	default:
		return said + fmt.Sprintf("%d of %s changed.", changed, Count(all, "configuration"))
	}
}

// enough counts the tracks that are long enough to look for changes.
func enough(h *history.History) (n int) {
	for _, t := range h.Tracks {
		if len(t.Points) >= stats.LeastHistory {
			n++
		}
	}
	return n
}

// HistoryRow is a row of the table of a history.
func HistoryRow(h *history.History, t *history.Track) [4]string {
	last := t.Latest()
	value := Mean(last.Row)
	if q := last.Row.Cost(); t.Relative {
		value = Interval(q.Value, q.Low, q.High)
	}
	spread := "–"
	if stats.Finite(t.Spread) {
		spread = "± " + percentOf(t.Spread)
	}
	return [4]string{trackOf(h, t), fmt.Sprint(len(t.Points)), value, spread}
}

// trackOf names a track, with its host if the history has several hosts.
func trackOf(h *history.History, t *history.Track) string {
	last := t.Latest()
	name := Work(last.Row.Treatment) + ", " + Label(last.Run, last.Row)
	for _, o := range h.Tracks {
		if o.Latest().Row.HostID != last.Row.HostID {
			return name + " on " + Plain(last.Row.Host)
		}
	}
	return name
}

// HistoryChanges lists the changes: the configuration, since when, by how much, and what else differs since then.
func HistoryChanges(h *history.History) (lines []string) {
	for _, t := range h.Tracks {
		for _, c := range t.Changes {
			by, what := c.By()-1, "higher"
			if by < 0 {
				by, what = -by, "lower"
			}
			levels := fmt.Sprintf("%s instead of %s times %s", Digits(c.After, 4), Digits(c.Before, 4), referenceOf(c.First.Run, " or ", InSentence))
			if !t.Relative {
				levels = fmt.Sprintf("%s instead of %s %s", Digits(c.After, 4), Digits(c.Before, 4), Plain(c.First.Row.Metric.Unit))
			}
			line := fmt.Sprintf("%s: %s %s since %s (%s): %s", trackOf(h, t), percentOf(by), what, Date(history.At(c.First.Run)), Plain(c.First.Run.Folders[0].Dir), levels)
			if len(c.Differences) > 0 {
				line += ". Also different since then: " + strings.Join(Doubts(c.Differences), "; ")
			}
			lines = append(lines, line+".")
		}
	}
	return lines
}

// HistoryMeans explains the numbers of a history.
func HistoryMeans(h *history.History) string {
	said := "“From run to run” is the standard deviation of the runs around their level, which is their mean between two changes. "
	for _, t := range h.Tracks {
		if !t.Relative {
			said += "For a configuration without a ratio the table shows the mean, which changes with the speed of the host. "
			break
		}
	}
	return said + "Tare looks for changes again after each run. In 40 runs without a change, all these looks together report one in at most 5 of 100 histories. " +
		"Tare finds a new level after 3 runs at the earliest."
}
