package terminal

import (
	"io"

	"tare/desk/observed"
	"tare/desk/words"
	"tare/notebook"
)

// leastShown is the least share of the time that has a line; a smaller one would read 0.0 %.
const leastShown = 0.0005

// mostThreads is how many groups of threads are listed.
const mostThreads = 8

// Observation writes what held something back that runs, what its time went on, its threads and the facts of its platform.
func Observation(w io.Writer, a *observed.Answer, on Screen) error {
	t := &text{Screen: on}
	t.head(words.Observed(a))
	t.line("")
	for _, f := range words.ObservedFindings(a) {
		t.wrap("", f)
	}
	t.line("")
	var parts []part
	for _, s := range a.Account {
		if s.Share.Value < leastShown {
			continue
		}
		p := part{label: words.ObservedPart(s.Key), size: s.Share.Value, dim: !s.Sure}
		p.seconds = words.Number(s.Seconds, secondsDecimals(a.Seconds))
		p.share, p.of = words.ObservedPercent(s.Share), words.ObservedBounds(s.Share)
		parts = append(parts, p)
	}
	parts = append(parts, part{label: words.InAll, seconds: words.Number(a.Seconds, secondsDecimals(a.Seconds)), share: words.Percent(1, 0)})
	t.bars([]string{"s", "", words.OfTheTime, "95 %"}, parts)
	t.threads(a)
	t.list(words.ItsPlatform, words.ObservedFacts(a))
	t.list("Notes", append([]string{words.ObservedCost(a)}, words.ObservedNotes(a)...))
	return t.flush(w)
}

// secondsDecimals is how many decimals suit the seconds of an observation of that length.
func secondsDecimals(all float64) int {
	if all < 30 {
		return 2
	}
	return 1
}

// threads lists the groups of threads that wanted a core for the longest time.
func (t *text) threads(a *observed.Answer) {
	if len(a.Threads) == 0 {
		return
	}
	t.line("")
	cols := []column{{head: "  " + words.ThreadsOf}, {head: words.HowMany, right: true, gap: 2}}
	keys := []string{notebook.WallUser, notebook.WallThrottled, notebook.WallCore, notebook.WallMemory, notebook.WallBlock}
	var shown []string
	for _, key := range keys {
		for _, th := range a.Threads {
			if th.Wall[key] > 0 {
				cols = append(cols, column{head: words.ObservedColumn(key), right: true, gap: 2})
				shown = append(shown, key)
				break
			}
		}
	}
	for i, th := range a.Threads {
		if i == mostThreads {
			break
		}
		cells := []string{"  " + words.ObservedThreads(th), words.Thousands(th.Threads)}
		for _, key := range shown {
			cells = append(cells, words.Number(th.Wall[key], secondsDecimals(a.Seconds)))
		}
		for c := range cells {
			cols[c].cells = append(cols[c].cells, cells[c])
		}
	}
	t.grid(cols, func(int) bool { return false })
	if more := len(a.Threads) - mostThreads; more > 0 {
		t.wrap("  ", words.MoreThreads(more))
	}
}
