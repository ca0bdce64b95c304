package page

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/desk/chart"
	"tare/desk/data"
	"tare/desk/explain"
	"tare/desk/words"
	"tare/notebook"
	"tare/stats"
)

// whyPart is the section that says where the extra time went.
type whyPart struct {
	Accounts []whyAccount
	Notes    []string
	Words    []string // of the tracers, the same for every account
	Open     bool     // so few accounts that their distributions are shown unasked
}

// whyAccount is one account: the sentence, its figures, and what the tracers observed under it.
type whyAccount struct {
	ID, Title, Sentence string
	Emulated            bool
	Drawn               []pageFigure
	Parts               []whyRow
	Against             string
	Figures             []explain.Figure // the tracers' metrics
	Stacks              []string
	Words               []string // lost events, missing tracers, the tracers' own cost
}

type whyRow struct {
	Name, Value, Interval, Share string
	Muted                        bool
}

// explained makes the accounts of a summary's folders; nil where they have no traced trials.
func explained(s *data.Summary) (*explain.Accounts, error) {
	if !slices.ContainsFunc(s.Folders, func(f data.Folder) bool { return len(f.Study.Explain) > 0 }) {
		return nil, nil
	}
	acc, err := explain.From(s)
	if errors.Is(err, explain.ErrNone) {
		return nil, nil
	}
	return acc, err
}

// accountsOf takes the accounts that say something: those against a baseline, and those that should have one.
func accountsOf(acc *explain.Accounts) []*chart.Account {
	if acc == nil {
		return nil
	}
	s := acc.Summary
	var list []*chart.Account
	for _, a := range slices.Concat(acc.Accounts, acc.Versus) {
		if a.Baseline == nil && (a.Row.Treatment.Platform == notebook.BM || len(a.Spent) == 0 && len(a.Doubts) == 0) {
			continue // the baseline itself: it is in the others' accounts
		}
		x := &chart.Account{Account: a, Title: fullName(s, a.Row.Treatment, a.Row.Host)}
		x.Before = acc.Before(a)
		if a.Of != explain.OfElapsed {
			x.Title += ", " + words.Subject(a)
		}
		if a.Against.Provisioning != "" {
			x.Title += ", against " + words.Plain(words.Against(a))
		}
		list = append(list, x)
	}
	return list
}

// why makes the section.
func why(acc *explain.Accounts, accounts []*chart.Account, figs [][]chart.Figure) *whyPart {
	if len(accounts) == 0 {
		return nil
	}
	const few = 6
	w := &whyPart{Open: len(accounts) <= few}
	for _, n := range words.Doubts(acc.Doubts) {
		w.Notes = append(w.Notes, words.Sentence(n))
	}
	for i, a := range accounts {
		v := whyAccount{ID: fmt.Sprintf("why-%d", i+1), Title: a.Title, Sentence: words.Stop(words.Account(acc.Summary, a.Account)), Emulated: a.Emulated, Against: words.Plain(cmp.Or(words.Against(a.Account), "bare metal")), Words: words.Tracing(a.Account)}
		for j := range figs[i] {
			v.Drawn = append(v.Drawn, inPage(&figs[i][j], fmt.Sprintf("%s-%d", v.ID, j+1)))
		}
		if len(a.Parts) > 0 {
			v.Parts = partRows(a.Account)
		}
		v.Figures = slices.DeleteFunc(slices.Clone(a.Figures), func(f explain.Figure) bool { return math.IsNaN(f.Mean.Value) })
		v.Stacks = stackRows(a.Account)
		w.Accounts = append(w.Accounts, v)
	}
	w.once()
	return w
}

// once moves what all accounts say of their tracers out of them, so that the page says it once.
func (w *whyPart) once() {
	if len(w.Accounts) < 2 {
		return
	}
	for _, word := range slices.Clone(w.Accounts[0].Words) {
		if slices.ContainsFunc(w.Accounts, func(a whyAccount) bool { return !slices.Contains(a.Words, word) }) {
			continue
		}
		w.Words = append(w.Words, word)
		for i := range w.Accounts {
			a := &w.Accounts[i]
			a.Words = slices.DeleteFunc(a.Words, func(o string) bool { return o == word })
		}
	}
}

// stackRows are the longest waits by kernel stack, the innermost function first.
func stackRows(a *explain.Account) []string {
	const most, deep = 8, 12
	var list []string
	for _, s := range a.Stacks[:min(most, len(a.Stacks))] {
		frames := s.Frames[:min(deep, len(s.Frames))]
		list = append(list, words.Duration(s.Seconds)+" in "+words.Count(s.Count, "wait")+": "+words.Plain(strings.Join(frames, " ← ")))
	}
	return list
}

// partRows are the account as a table.
func partRows(a *explain.Account) []whyRow {
	unit, k := words.Scale(chart.Largest(a))
	var rows []whyRow
	row := func(name string, e stats.Estimate, share string, muted bool) {
		d := words.Places(k*e.Value, k*e.Low, k*e.High)
		rows = append(rows, whyRow{name, words.Number(k*e.Value, d) + " " + unit, words.Bounds(k*e.Low, k*e.High, d), share, muted})
	}
	for i := range a.Parts {
		p := &a.Parts[i]
		share := "–"
		if q := p.Share; stats.Finite(q.Value) && p.Seconds != (stats.Estimate{N: p.Seconds.N}) {
			share = words.Tight(words.Share(q))
		}
		row(words.Plain(words.Part(p.Key)), p.Seconds, share, !p.Significant())
	}
	row("the overhead", a.Overhead, "", false)
	return rows
}

// metricWords writes one of the tracers' metrics.
func metricWords(e stats.Estimate, unit string) string {
	switch unit {
	case "1":
		unit = ""
	case "B":
		if e.Value >= 1<<20 {
			const m = 1 << 20
			return words.Measured(e.Value/m, e.Low/m, e.High/m, "MiB")
		}
	}
	return words.Measured(e.Value, e.Low, e.High, unit)
}
