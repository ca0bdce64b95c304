// Package terminal writes what the desk found as text for a terminal: tables and sentences that keep to its width. Colour
// only repeats what the text says.
package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"tare/desk/data"
	"tare/desk/words"
)

// Screen is what is written on: its width in columns (0: as many as it takes), and whether it shows colours.
type Screen struct {
	Width  int
	Colour bool
}

// Colours of a terminal.
const (
	bold  = "\x1b[1m"
	dim   = "\x1b[2m"
	reset = "\x1b[0m"
)

// text is a text for a screen in the making.
type text struct {
	Screen
	b     strings.Builder
	notes []string // footnotes, each once
	cut   []string // what there was no room for, each once
}

func (t *text) flush(w io.Writer) error {
	if len(t.cut) > 0 {
		t.line("")
		t.wrap("", words.TooNarrow(t.cut))
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

func (t *text) line(s string) { t.b.WriteString(strings.TrimRight(s, " ") + "\n") }

func (t *text) head(s string) { t.wrapAs(bold, "", s) }

func (t *text) paint(how, s string) string {
	if !t.Colour || how == "" || s == "" {
		return s
	}
	return how + s + reset
}

// wrap writes text in the width, its lines after the first under the end of head.
func (t *text) wrap(head, text string) { t.wrapAs("", head, text) }

// wrapAs is wrap in a colour.
func (t *text) wrapAs(how, head, text string) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(head))
	line, n := head, 0
	for word := range strings.FieldsSeq(text) {
		word = data.Printable(word)
		if n > 0 && t.Width > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > t.Width {
			t.line(t.paint(how, line))
			line, n = indent, 0
		}
		if n > 0 {
			line += " "
		}
		line += word
		n++
	}
	t.line(t.paint(how, strings.TrimRight(line, " ")))
}

// list writes lines under a heading; nothing where there are none.
func (t *text) list(head string, lines []string) {
	if len(lines) == 0 {
		return
	}
	t.line("")
	t.head(head)
	for _, l := range lines {
		t.wrap("  ", l)
	}
}

// mark gives the numbers of footnotes: "[1,3]", and of several in a row "[1,3–6]".
func (t *text) mark(notes []string) string {
	var marks []int
	for _, n := range notes {
		i := slices.Index(t.notes, n)
		if i < 0 {
			i = len(t.notes)
			t.notes = append(t.notes, n)
		}
		if !slices.Contains(marks, i+1) {
			marks = append(marks, i+1)
		}
	}
	if marks == nil {
		return ""
	}
	slices.Sort(marks)
	var parts []string
	for i := 0; i < len(marks); {
		last := i
		for last+1 < len(marks) && marks[last+1] == marks[last]+1 {
			last++
		}
		if last < i+2 { // a range is no shorter
			last = i
		}
		part := fmt.Sprint(marks[i])
		if last > i {
			part += "–" + fmt.Sprint(marks[last])
		}
		parts = append(parts, part)
		i = last + 1
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func (t *text) footnotes() {
	if len(t.notes) > 0 {
		t.line("")
	}
	for i, n := range t.notes {
		t.wrap(fmt.Sprintf("[%d] ", i+1), n)
	}
}

// column is one of a table of rows.
type column struct {
	head  string
	right bool
	gap   int // before it
	cells []string
}

func (c column) width() int {
	n := utf8.RuneCountInString(c.head)
	for _, cell := range c.cells {
		n = max(n, utf8.RuneCountInString(cell))
	}
	return n
}

func total(cols []column) int {
	sum := 0
	for _, c := range cols {
		sum += c.gap + c.width()
	}
	return sum
}

// fits says whether the columns fit in one table.
func (t *text) fits(cols []column) bool { return t.Width == 0 || total(cols) <= t.Width }

// without notes that there was no room for something.
func (t *text) without(what string) {
	if !slices.Contains(t.cut, what) {
		t.cut = append(t.cut, what)
	}
}

// line is a line of the columns, without spaces at its end.
func line(cols []column, cell func(column) string) string {
	var b strings.Builder
	for _, c := range cols {
		b.WriteString(strings.Repeat(" ", c.gap))
		pad := strings.Repeat(" ", c.width()-utf8.RuneCountInString(cell(c)))
		if c.right {
			b.WriteString(pad + cell(c))
		} else {
			b.WriteString(cell(c) + pad)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// grid writes the columns' heads, and a line for each row, dim where faint says so.
func (t *text) grid(cols []column, faint func(row int) bool) {
	t.line(t.paint(bold, line(cols, func(c column) string { return c.head })))
	for i := range cols[0].cells {
		l := line(cols, func(c column) string { return c.cells[i] })
		if faint(i) {
			l = t.paint(dim, l)
		}
		t.line(l)
	}
}
