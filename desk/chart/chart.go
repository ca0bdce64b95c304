// Package chart draws values: figures as SVG for a page or for files, and as PDF with its font embedded.
//
// What is compared along one axis is a [Panel]; what a treatment's time went on is an account of package explain. Each kind of figure
// is one file of this package, which makes its figures from one of the two, says how they are read, and draws them; and
// one line in the lists below. A figure of a kind of study is made by the kind's package, of values and texts in one of the shapes here: [Plot], [Paths],
// [Bars], [Fall] or [Flames]. A figure has one layout, which scales: on a phone it is as wide as the screen.
//
// Figures are pure functions of what they show: the same values give the same bytes.
package chart

import (
	"fmt"
	"slices"
	"strings"

	"tare/desk/explain"
	"tare/desk/ladder"
	"tare/desk/words"
)

// Drawing draws a panel; nil where there is nothing of what it shows. The figure's file begins with the stem.
type Drawing = func(p *Panel, stem string) *Figure

// ofPanels are the kinds of figures that are drawn of a panel, in the order in which they stand in a report.
var ofPanels = []Drawing{means, ratios, emulated, staircase}

// ofAccounts are the kinds that are drawn of an account.
var ofAccounts = []func(*Account, string) *Figure{waterfall, times}

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

	// Emulated says that all of it ran under software emulation.
	Emulated bool

	// Staircase is the ladder that it shows; nil: none. Its rungs are also a table.
	Staircase *ladder.Staircase

	Picture *Picture // what is drawn
}

// OfPanels draws what panels show, and after that more of each.
func OfPanels(panels []*Panel, more ...Drawing) (list []Figure) {
	said := map[string]bool{}
	for i, p := range panels {
		note := p.Note // with the first of its figures
		for _, draw := range slices.Concat(ofPanels, more) {
			if f := draw(p, p.stem(i+1)); f != nil {
				f.Note = note
				note = ""
				list = append(list, f.finish(said))
			}
		}
	}
	return list
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

// OfAccounts draws what accounts say: of each its figures.
func OfAccounts(accounts []Account) [][]Figure {
	each := make([][]Figure, len(accounts))
	said := map[string]bool{}
	for i := range accounts {
		a := &accounts[i]
		stem := fmt.Sprintf("why-%d-%s", i+1, slug(words.Treatment(a.Row.Treatment, false)+" "+a.Row.Treatment.Instance.Name))
		for _, draw := range ofAccounts {
			if f := draw(a, stem); f != nil {
				each[i] = append(each[i], f.finish(said))
			}
		}
	}
	return each
}

// slug makes a word that is safe in a file's name on every system.
func slug(s string) string {
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
