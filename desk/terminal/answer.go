package terminal

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"tare/desk/data"
	"tare/desk/words"
)

// marks begin a line of a list: they show what a check found without colour.
var marks = map[words.ResultMark]string{words.Passed: "✓ ", words.Caution: "! "}

// Answer writes the first answer: the finding, a table with a line for each environment, what the result does not say, how far to trust
// it, and what to do next. With all, emulated environments have their figures. A kind of study that does more than time work has its own
// tables.
func Answer(w io.Writer, s *data.Summary, all bool, on Screen) error {
	t := &text{Screen: on}
	t.answer(s, all)
	if words.WantsDetails(s) {
		t.details(s)
	}
	return t.flush(w)
}

func (t *text) answer(s *data.Summary, all bool) {
	r := words.ResultOf(s, all)
	for _, h := range r.Headline {
		t.wrapAs(bold, "", h)
	}
	if words.HasTables(s) {
		for _, table := range r.Tables {
			t.line("")
			t.environments(table)
		}
		if len(r.Absent) > 0 {
			t.line("")
			t.absent(r.Absent)
		}
	}
	if r.Made != "" {
		t.line("")
		t.wrap("", r.Made)
	}
	for _, b := range r.Blocks {
		t.block(b)
	}
}

// environments writes a table with a line for each environment.
func (t *text) environments(table words.ResultTable) {
	t.wrap("", table.Of)
	t.line("")
	cols := []column{{head: "environment", gap: 2}, {head: table.Value, gap: 2}, {head: table.Change, gap: 2}, {head: table.Verdict, gap: 2}}
	var missing []words.ResultLine
	for _, l := range table.Lines {
		if l.Missing != "" {
			missing = append(missing, l)
			continue
		}
		for c, cell := range []string{l.Name, l.Value, l.Change, l.Said} {
			cols[c].cells = append(cols[c].cells, data.Printable(cell))
		}
	}
	switch {
	case len(cols[0].cells) == 0:
	case t.fits(cols):
		t.grid(cols, func(int) bool { return false })
	default: // too narrow for a table
		t.wrap("  ", strings.Join([]string{cols[0].head, cols[1].head, cols[2].head, cols[3].head}, " · "))
		for i, name := range cols[0].cells {
			said := []string{name, cols[1].cells[i], cols[2].cells[i], cols[3].cells[i]}
			t.wrap("  ", strings.Join(slices.DeleteFunc(said, func(s string) bool { return s == "" }), " · "))
		}
	}
	t.absent(missing)
}

// absent writes environments without a figure, and why.
func (t *text) absent(lines []words.ResultLine) {
	width := 0
	for _, l := range lines {
		width = max(width, utf8.RuneCountInString(data.Printable(l.Name)))
	}
	for _, l := range lines {
		name := data.Printable(l.Name)
		t.wrap("  "+name+strings.Repeat(" ", width-utf8.RuneCountInString(name)+2), l.Missing)
	}
}

// block writes a list under its heading. A command is never broken: somebody copies it.
func (t *text) block(b words.ResultBlock) {
	t.line("")
	t.head(b.Head)
	width := 0
	for _, l := range b.Lines {
		width = max(width, utf8.RuneCountInString(l.Label))
	}
	for _, l := range b.Lines {
		head := "  " + marks[l.Mark]
		if l.Label != "" {
			head += l.Label + strings.Repeat(" ", width-utf8.RuneCountInString(l.Label)+2)
		}
		switch {
		case l.Command == "":
			t.wrap(head, l.Text)
		case l.Text == "":
			t.line(strings.TrimRight(head+data.Printable(l.Command)+" "+l.After, " "))
		default:
			t.wrap(head, l.Text)
			t.line("    " + data.Printable(l.Command))
		}
	}
}
