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
	if advice := words.ObservedAdvice(a); advice != "" {
		t.wrap("", advice)
	}
	if command := words.ObservedCommand(a); command != "" {
		t.wrap("", words.ToApplyIt)
		t.line("  " + command)
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
	t.requests(a)
	t.changes(a)
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

// requests says what the time of requests went on: of all, of those near the median, and of those near the 99th percentile.
func (t *text) requests(a *observed.Answer) {
	r := a.Requests
	if r == nil {
		return
	}
	t.line("")
	t.wrap("", words.RequestsOf(r))
	cols := []column{{head: words.PartOf}, {head: words.MeanTime, right: true, gap: 2}, {head: words.MedianTime, right: true, gap: 2}}
	of := []map[string]float64{r.Mean, r.P50}
	if r.P99 != nil {
		cols, of = append(cols, column{head: words.TailTime, right: true, gap: 2}), append(of, r.P99)
	}
	sums := make([]float64, len(of))
	for _, key := range words.RequestKeys {
		shown := false
		for i, account := range of {
			sums[i] += account[key]
			shown = shown || account[key] > 0
		}
		if !shown {
			continue
		}
		cols[0].cells = append(cols[0].cells, "  "+words.RequestPart(key))
		for i, account := range of {
			cols[i+1].cells = append(cols[i+1].cells, words.RequestTime(account[key]))
		}
	}
	cols[0].cells = append(cols[0].cells, "  "+words.InAll)
	for i, sum := range sums {
		cols[i+1].cells = append(cols[i+1].cells, words.Duration(sum))
	}
	t.grid(cols, func(int) bool { return false })
}

// wideEnough is the width of a screen for all columns of the table of changes.
const wideEnough = 120

// changes lists what was replayed, and what is predicted.
func (t *text) changes(a *observed.Answer) {
	r := a.Replay
	if r == nil || len(r.Changes) == 0 {
		return
	}
	t.line("")
	t.wrap("", words.Replayed(r))
	cols := []column{{head: words.ChangeTo}}
	heads := []string{words.MeanTime, words.Interval95, words.TailTime, words.Interval95, words.WouldThrottle, words.WouldQueue}
	shown := []int{0, 1, 2, 3, 4, 5}
	if t.Width > 0 && t.Width < wideEnough {
		shown = []int{0, 2, 3} // --format json has the others
	}
	for _, i := range shown {
		cols = append(cols, column{head: heads[i], right: true, gap: 2})
	}
	row := func(name string, of notebook.ObservedTimes, waits bool) {
		cells := []string{words.ObservedTime(of.Mean), words.ObservedTimeBounds(of.Mean), words.ObservedTime(of.P99), words.ObservedTimeBounds(of.P99), "", ""}
		if waits {
			cells[4], cells[5] = words.Number(of.ThrottledS, secondsDecimals(a.Seconds))+" s", words.Number(of.QueuedS, secondsDecimals(a.Seconds))+" s"
		}
		cols[0].cells = append(cols[0].cells, "  "+name)
		for at, i := range shown {
			cols[at+1].cells = append(cols[at+1].cells, cells[i])
		}
	}
	row(words.AsMeasured, r.Seen, false)
	row(words.AsReplayed, r.Checked, true)
	for _, c := range r.Changes {
		row(words.ObservedChange(a, c), c.Times, true)
	}
	t.grid(cols, func(int) bool { return false })
}
