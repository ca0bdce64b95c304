package terminal

import (
	"io"

	"tare/desk/history"
	"tare/desk/words"
)

// History writes what a study gave over time: a line for each configuration, and then what changed, since when.
func History(w io.Writer, h *history.History, on Screen) error {
	t := &text{Screen: on}
	t.wrap("", words.History(h))
	t.line("")
	var cols []column
	for i, head := range words.HistoryColumns {
		cols = append(cols, column{head: head, right: i == 1, gap: min(2*i, 2)})
	}
	for _, track := range h.Tracks {
		for i, cell := range words.HistoryRow(h, track) {
			cols[i].cells = append(cols[i].cells, cell)
		}
	}
	t.grid(t.whole(cols), func(int) bool { return false })
	changed, host := words.HistoryChanges(h)
	t.list("Changed", changed)
	t.list(words.HistoryHost, host)
	t.line("")
	for _, n := range words.HistoryNotes(h) {
		t.wrap("", n)
	}
	return t.flush(w)
}
