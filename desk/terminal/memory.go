package terminal

import (
	"fmt"
	"io"

	"tare/desk/data"
	"tare/desk/words"
	"tare/notebook"
)

// mostFiles is how many files of a guest are listed.
const mostFiles = 10

// Memory writes what guests take: a table, and of each in detail.
func Memory(w io.Writer, a *notebook.MemoryAccount, detailed bool, on Screen) error {
	t := &text{Screen: on}
	t.head(words.MemoryHead(a))
	t.line("")
	cols := t.weights("guest", len(a.Guests), func(i int) (string, notebook.MemoryWeight) {
		return data.Printable(a.Guests[i].Name), a.Guests[i].MemoryWeight
	})
	add := func(head string, cell func(g *notebook.MemoryGuest) string) {
		c := column{head: head, right: true, gap: 2}
		for i := range a.Guests {
			c.cells = append(c.cells, cell(&a.Guests[i]))
		}
		if !t.fits(append(cols, c)) {
			t.without("the column " + head)
			return
		}
		cols = append(cols, c)
	}
	if a.Withheld == "" {
		add("own", func(g *notebook.MemoryGuest) string { return words.Bytes(g.Own) })
	}
	if a.Contents {
		add("duplicates", func(g *notebook.MemoryGuest) string {
			if g.Duplicates == nil {
				return "–"
			}
			return words.Bytes(g.Duplicates.Within.Sum() + g.Duplicates.Host.Sum() + g.Duplicates.Guests.Sum())
		})
	}
	add("processes", func(g *notebook.MemoryGuest) string { return fmt.Sprint(len(g.Processes)) })
	add("is", func(g *notebook.MemoryGuest) string { return g.Kind })
	t.grid(cols, func(int) bool { return false })
	if detailed {
		for i := range a.Guests {
			t.memory(&a.Guests[i], a.Withheld == "")
		}
	}
	if caveats := words.MemoryCaveats(a); len(caveats) > 0 {
		t.line("")
		for _, c := range caveats {
			t.wrap("", c)
		}
	}
	return t.flush(w)
}

// memory writes of one guest what its processes take, what its pages are, whose they are as well, and what could be otherwise.
func (t *text) memory(g *notebook.MemoryGuest, frames bool) {
	if !frames && len(g.Processes) == 1 {
		return
	}
	none := func(int) bool { return false }
	t.line("")
	t.head(g.Name)
	if len(g.Processes) > 1 {
		t.grid(t.weights("  process", len(g.Processes), func(i int) (string, notebook.MemoryWeight) {
			return fmt.Sprintf("  %s %d", data.Printable(g.Processes[i].Name), g.Processes[i].PID), g.Processes[i].MemoryWeight
		}), none)
	}
	if !frames {
		return
	}
	if len(g.Processes) > 1 {
		t.line("")
	}
	t.grid(parts("  pages", g.Kinds, "not in RSS"), none)
	if g.Huge+g.Large > 0 {
		t.wrap("  ", words.MemoryInHugePages(g))
	}
	files := g.Files[:min(mostFiles, len(g.Files))]
	if rest := g.Files[len(files):]; len(rest) > 0 {
		sum := notebook.MemoryPart{Name: words.Count(len(rest), "other file")}
		for _, f := range rest {
			sum.RSS, sum.PSS, sum.Copied = sum.RSS+f.RSS, sum.PSS+f.PSS, sum.Copied+f.Copied
		}
		files = append(files[:len(files):len(files)], sum)
	}
	if len(files) > 0 {
		t.line("")
		t.grid(parts("  mappings of files", files, "copied"), none)
	}
	var lines []string
	for _, s := range g.SharedWith {
		lines = append(lines, words.Bytes(s.Bytes)+" with "+s.With)
	}
	t.list("Shared", lines)
	if d := g.Duplicates; d != nil {
		t.line("")
		cols := []column{{head: "  Alike and not shared"}, {head: "anonymous", right: true, gap: 2}, {head: "files", right: true, gap: 2}, {head: "anonymous and file", right: true, gap: 2}}
		for _, r := range []struct {
			name string
			notebook.MemoryAlike
		}{{"  in the guest itself", d.Within}, {"  with the host", d.Host}, {"  with other guests", d.Guests}} {
			for i, cell := range []string{r.name, words.Bytes(r.AnonAnon), words.Bytes(r.FileFile), words.Bytes(r.AnonFile)} {
				cols[i].cells = append(cols[i].cells, cell)
			}
		}
		t.grid(cols, none)
		if d.Zero > 0 {
			t.wrap("  ", words.MemoryOfZeros(d.Zero))
		}
	}
	lines = nil
	for _, b := range g.GiveBack {
		lines = append(lines, words.Bytes(b.Bytes)+" by "+words.MemoryGivenBack(b.By))
	}
	t.list(words.MemoryToGiveBack, lines)
}

// weights are the columns of a table of footprints.
func (t *text) weights(head string, n int, row func(i int) (string, notebook.MemoryWeight)) []column {
	cols := []column{{head: head}, {head: "RSS", right: true, gap: 2}, {head: "PSS", right: true, gap: 2}, {head: "USS", right: true, gap: 2}}
	swap := column{head: "swap", right: true, gap: 2}
	any := false
	for i := range n {
		name, w := row(i)
		for c, cell := range []string{name, words.Bytes(w.RSS), words.Bytes(w.PSS), words.Bytes(w.USS)} {
			cols[c].cells = append(cols[c].cells, cell)
		}
		swap.cells = append(swap.cells, words.Bytes(w.Swap))
		any = any || w.Swap > 0
	}
	if any {
		cols = append(cols, swap)
	}
	return cols
}

// parts are the columns of a table of what a guest's memory consists of; the last, where anything is in it, is of what is besides.
func parts(head string, all []notebook.MemoryPart, besides string) []column {
	cols := []column{{head: head}, {head: "RSS", right: true, gap: 2}, {head: "PSS", right: true, gap: 2}, {head: besides, right: true, gap: 2}}
	most := int64(0)
	for _, p := range all {
		for i, cell := range []string{"  " + data.Printable(p.Name), words.Bytes(p.RSS), words.Bytes(p.PSS), words.Bytes(p.Copied + p.Other)} {
			cols[i].cells = append(cols[i].cells, cell)
		}
		most = max(most, p.Copied, p.Other)
	}
	if most == 0 {
		return cols[:3]
	}
	return cols
}
