// Package chart draws values: figures as SVG for a page or for files, and as PDF with its font embedded.
//
// A figure is drawn from one of these values: a [Panel], which compares treatments along one axis; an [Account], which says where a
// treatment's time went; several metrics at once ([data.Several]); or two folders compared ([OfComparison]). Each figure is one file of this
// package and its name in the list for its kind of value. Reports show the figures of each list, in its order. A kind of study draws figures
// of its own in its package, with one of the shapes here: [Plot], [Paths], [Bars], [Fall] or [Flames]. A figure has one layout, which scales:
// on a phone it is as wide as the screen.
//
// Figures are pure functions of what they show: the same values give the same bytes.
package chart

import (
	"fmt"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/desk/explain"
	"tare/desk/ladder"
	"tare/desk/words"
)

// Draw draws a figure of a value; it returns nil if the value has nothing of what the figure shows. The names of the figure's files begin
// with the stem.
type Draw[V any] = func(v V, stem string) *Figure

// Drawing draws a figure of a panel.
type Drawing = Draw[*Panel]

// The figures of each kind of value, in the order in which a report shows them.
var (
	ofPanels   = []Drawing{changes, means, strips, rounds, course, emulated, staircase}
	ofAccounts = []Draw[*Account]{waterfall, times}
	ofSeveral  = []Draw[*data.Several]{radar}
)

// Figure is a figure, ready to be written.
type Figure struct {
	File    string // stem of its files' names, unique in a report
	Title   string
	Lead    string // what it says, in a sentence; empty: it is left to the reader
	How     string // how this kind is read: it begins the caption of the first of them
	Caption string // what is seen
	Note    string // what is not in it and why; empty: nothing
	Alt     string // the figure in words, for those who do not see it
	Folded  string // under which heading it is folded away; empty: it is shown at once

	// Spread says that it shows single runs or rounds, and not a result.
	Spread bool

	// Emulated says that all of it ran under software emulation.
	Emulated bool

	// Staircase is the ladder that it shows; nil: none. Its rungs are also a table.
	Staircase *ladder.Staircase

	Picture *Picture // what is drawn
}

// OfPanels draws the figures of panels, and more figures of each. A panel's note stands below its first figure.
func OfPanels(panels []*Panel, more ...Drawing) (list []Figure) {
	for i, figures := range drawn(panels, slices.Concat(ofPanels, more), (*Panel).stem) {
		if len(figures) > 0 {
			figures[0].Note = words.Tight(panels[i].Note)
		}
		list = append(list, figures...)
	}
	return list
}

// OfAccounts draws the figures of each account.
func OfAccounts(accounts []*Account) [][]Figure {
	return drawn(accounts, ofAccounts, func(a *Account, i int) string {
		return fmt.Sprintf("why-%d-%s", i, Slug(words.Short(a.Row.Treatment, false)+" "+a.Row.Treatment.Instance.Name))
	})
}

// OfSeveral draws the figures of each comparison of several metrics.
func OfSeveral(all []*data.Several) [][]Figure {
	return drawn(all, ofSeveral, func(v *data.Several, i int) string { return fmt.Sprintf("several-%d-%s", i, Slug(v.Name)) })
}

// drawn draws the figures of each value. stem names the files of a value's figures; i is the value's number, from 1.
func drawn[V any](values []V, figures []Draw[V], stem func(v V, i int) string) [][]Figure {
	each := make([][]Figure, len(values))
	said := map[string]bool{}
	for i, v := range values {
		for _, draw := range figures {
			if f := draw(v, stem(v, i+1)); f != nil {
				each[i] = append(each[i], f.finish(said))
			}
		}
	}
	return each
}

// say adds a sentence to the caption, unless the sentence is empty.
func (f *Figure) say(sentence string) {
	f.Caption = strings.TrimSpace(f.Caption + " " + sentence)
}

// finish says how a kind of figure is read in the caption of the first that is made of it.
func (f *Figure) finish(said map[string]bool) Figure {
	if !said[f.How] {
		said[f.How] = true
		f.Caption = f.How + " " + strings.TrimSpace(f.Caption)
	}
	f.Caption, f.Note = words.Tight(strings.TrimSpace(f.Caption)), words.Tight(f.Note)
	return *f
}

// Account is what a treatment's time went on, with that of what it is compared with.
type Account struct {
	*explain.Account

	// Before is the baseline's own account; nil where there is none.
	Before *explain.Account

	// Title names the treatment, and what it is compared with where that is not its baseline.
	Title string
}

// Slug makes a word that is safe in a file's name on every system.
func Slug(s string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= 40 {
			break
		}
	}
	if t := strings.Trim(b.String(), "-"); t != "" {
		return t
	}
	return "workload"
}
