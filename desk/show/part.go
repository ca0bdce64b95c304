package show

import (
	"html/template"
	"math"
	"strings"

	"tare/desk/words"
	"tare/stats"
)

// Part is something below a table of a report: exactly one of these fields. HTML holds only a kind's own sentences. Everything that
// comes from a folder is text, which the page escapes.
type Part struct {
	Table *Table
	Note  *Note
	List  *List
	Fold  *Fold
}

// Table is a table of a kind.
type Table struct {
	ID      string // of the caption; empty: Label names the table
	Label   string
	Caption string // empty: no caption
	Heads   []Head
	Rows    []Row
}

// Head is the heading of one or more columns.
type Head struct {
	Text  string
	Small template.HTML // the unit
	Span  int           // number of columns; 0: one
}

// Row is a row of a table.
type Row struct {
	Group  bool // a heading over the rows that follow
	Muted  bool // its subject is never ranked
	Strong bool
	Name   string
	Cells  []Cell
}

// Cell is a row's text in one or more columns.
type Cell struct {
	Class  string // "n": a number; "i": its interval
	Span   int    // number of columns; 0: one
	Strong bool
	Text   string
}

// Columns is the number of columns of the table.
func (t *Table) Columns() (n int) {
	for _, h := range t.Heads {
		n += max(h.Span, 1)
	}
	return n
}

// Note is a sentence under a table, followed by a text from a folder.
type Note struct {
	HTML template.HTML
	Text string
}

// List is a list under a table about some of its rows. If it is empty, an empty list is written.
type List struct{ Items []string }

// Fold is parts that are collapsed under a heading.
type Fold struct {
	Heading string
	Parts   []Part
}

// Value is a number in a table, with its interval.
type Value struct{ Value, Interval string }

// Valued formats a number and its interval to the digits that are known.
func Valued(v, low, high float64) Value {
	if math.IsNaN(v) {
		return Value{"–", "–"}
	}
	d := words.Places(v, low, high)
	return Value{words.Number(v, d), words.Bounds(low, high, d)}
}

// Halved formats a size and half of its interval.
func Halved(e stats.Estimate) (v Value) {
	var half string
	if v.Value, half = words.Half(e.Value, e.Low, e.High, 3); half != "" {
		v.Interval = "± " + half
	} else if !math.IsNaN(e.Value) {
		v.Interval = "no interval"
	}
	return v
}

// Cells returns the cells of numbers, each with its interval.
func Cells(values ...Value) (all []Cell) {
	for _, v := range values {
		all = append(all, Cell{Class: "n", Text: v.Value}, Cell{Class: "i", Text: v.Interval})
	}
	return all
}

// Align pads the numbers of a right-aligned column with spaces as wide as a digit or a point. Their decimal points then line up,
// although each number has only its known digits.
func Align[R any](rows []R, column func(*R) *Value) {
	most := 0
	places := func(s string) int {
		_, fraction, _ := strings.Cut(s, ".")
		return len(fraction)
	}
	for i := range rows {
		most = max(most, places(column(&rows[i]).Value))
	}
	for i := range rows {
		s := &column(&rows[i]).Value
		n := places(*s)
		if n == 0 && most > 0 {
			*s += "\u2008"
		}
		*s += strings.Repeat("\u2007", most-n)
	}
}
