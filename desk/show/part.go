package show

import (
	"html/template"
	"math"
	"strings"

	"tare/desk/words"
	"tare/stats"
)

// Part is something below a table of a report: exactly one of these. What is HTML is a kind's own sentence; all that comes from a folder is
// text, which the page escapes.
type Part struct {
	Table *Table
	Note  *Note
	List  *List
	Fold  *Fold
}

// Table is a table of a kind.
type Table struct {
	ID      string // of its caption; empty: Label names it
	Label   string
	Caption string // empty: it has none
	Heads   []Head
	Rows    []Row
}

// Head is a column's, or that of several.
type Head struct {
	Text  string
	Small template.HTML // the unit
	Span  int           // columns; 0: one
}

// Row is a row of a table.
type Row struct {
	Group  bool // it is a heading over those that follow it
	Muted  bool // it is of what is never ranked
	Strong bool
	Name   string
	Cells  []Cell
}

// Cell is a row's text in a column, or in several.
type Cell struct {
	Class  string // "n": a number; "i": its interval
	Span   int    // columns; 0: one
	Strong bool
	Text   string
}

// Columns is how many columns the table has.
func (t *Table) Columns() (n int) {
	for _, h := range t.Heads {
		n += max(h.Span, 1)
	}
	return n
}

// Note is a sentence under a table, and what follows it from a folder.
type Note struct {
	HTML template.HTML
	Text string
}

// List is what stands under a table about some of its rows; nothing of it: an empty list.
type List struct{ Items []string }

// Fold is parts that are folded away under a heading.
type Fold struct {
	Heading string
	Parts   []Part
}

// Value is a number of a table, with its interval.
type Value struct{ Value, Interval string }

// Valued writes a number with its interval, in the digits that are known.
func Valued(v, low, high float64) Value {
	if math.IsNaN(v) {
		return Value{"–", "–"}
	}
	d := words.Places(v, low, high)
	return Value{words.Number(v, d), words.Bounds(low, high, d)}
}

// Halved writes a size with half of its interval.
func Halved(e stats.Estimate) (v Value) {
	var half string
	if v.Value, half = words.Half(e.Value, e.Low, e.High, 3); half != "" {
		v.Interval = "± " + half
	} else if !math.IsNaN(e.Value) {
		v.Interval = "no interval"
	}
	return v
}

// Cells are the cells of numbers, each with its interval.
func Cells(values ...Value) (all []Cell) {
	for _, v := range values {
		all = append(all, Cell{Class: "n", Text: v.Value}, Cell{Class: "i", Text: v.Interval})
	}
	return all
}

// Align fills a column's numbers, which are set flush right, up with spaces as wide as a digit or a point, so that their
// points stand below each other although each has only the digits that are known.
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
