package page

import (
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/desk/explain"
	"tare/notebook"
	"tare/stats"
)

// whyPart is the section that says where the extra time went.
type whyPart struct {
	Accounts []whyAccount
	Notes    []string
	Words    []string // of the probes, the same for every account
	Open     bool     // so few accounts that their distributions are shown unasked
}

// whyAccount is one account: a waterfall, the sentence over it, and what the probes saw under it.
type whyAccount struct {
	ID, Title, Sentence string
	Emulated            bool
	Figure              *pageFigure // nil: there is nothing that it could be drawn against
	Parts               []whyRow
	Against             string
	Spread              []pageFigure
	Figures             []whyFigure
	Stacks              []string
	Words               []string // lost events, missing probes, the probes' own cost
}

type whyRow struct {
	Name, Value, Interval, Share string
	Muted                        bool
}

type whyFigure struct{ Name, Help, Value, Before string }

// explained makes the accounts of a summary's folders; nil where they have no explained trials.
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

// account is an explain.Account on its way to the page.
type account struct {
	*explain.Account
	before *explain.Account // that of the baseline; nil where there is none
	title  string
	fall   *figure // nil: no waterfall
	spread *figure // nil: no distributions
}

// accountsOf takes the accounts that say something: those against a baseline, and those that should have one.
func accountsOf(acc *explain.Accounts) []account {
	if acc == nil {
		return nil
	}
	s := acc.Summary
	var list []account
	take := func(a *explain.Account, versus bool) {
		x := account{Account: a, title: fullName(a.Row.Treatment, s)}
		if len(s.Hosts) > 1 {
			x.title += ", on " + plain(a.Row.Host)
		}
		for i := range acc.Accounts {
			if b := &acc.Accounts[i]; a.Baseline != nil && b.Row == a.Baseline {
				x.before = b
			}
		}
		against := ""
		if a.Against != "" {
			against = "against " + plain(a.Against)
		}
		if versus {
			x.title = strings.TrimSpace(x.title + ", " + against)
		}
		n := len(list) + 1
		stem := fmt.Sprintf("why-%d-%s", n, slug(plain(a.Label)))
		if len(a.Parts) > 0 && finite(a.Gap.Value) && finite(a.Elapsed.Value) {
			x.fall = fallFigure(&x, stem)
		}
		if !versus {
			x.spread = spreadFigure(&x, stem)
		}
		list = append(list, x)
	}
	for i := range acc.Accounts {
		a := &acc.Accounts[i]
		if a.Baseline == nil && (a.Row.Treatment.Platform == notebook.BM || a.Sentence == "" && len(a.Notes) == 0) {
			continue // the baseline itself: it is in the others' accounts
		}
		take(a, false)
	}
	for i := range acc.Versus {
		take(&acc.Versus[i], true)
	}
	return list
}

// why makes the section.
func why(acc *explain.Accounts, accounts []account) (*whyPart, error) {
	if len(accounts) == 0 {
		return nil, nil
	}
	const few = 6
	w := &whyPart{Open: len(accounts) <= few}
	for _, n := range acc.Notes {
		w.Notes = append(w.Notes, sentence(n))
	}
	for i := range accounts {
		a := &accounts[i]
		v := whyAccount{ID: fmt.Sprintf("why-%d", i+1), Title: a.title, Sentence: stop(a.Sentence), Emulated: a.Emulated, Against: plain(cmp.Or(a.Against, "bare metal")), Words: probeWords(a.Account)}
		if f := a.fall; f != nil {
			p, err := inPage(f, v.ID+"-fall")
			if err != nil {
				return nil, err
			}
			v.Figure = p
			v.Parts = partRows(a.Account)
		}
		if f := a.spread; f != nil {
			p, err := inPage(f, v.ID+"-spread")
			if err != nil {
				return nil, err
			}
			v.Spread = []pageFigure{*p}
		}
		v.Figures = figureRows(a.Account)
		v.Stacks = stackRows(a.Account)
		w.Accounts = append(w.Accounts, v)
	}
	w.once()
	return w, nil
}

// once takes what all accounts say of their probes out of them: it is said once.
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
		list = append(list, seconds(s.Seconds)+" in "+count(int(min(s.Count, math.MaxInt32)), "wait", "waits")+": "+plain(strings.Join(frames, " ← ")))
	}
	return list
}

// inPage makes a figure's two forms.
func inPage(f *figure, id string) (*pageFigure, error) {
	w, err := svgInline(f, wide(f), id+"-wide", "wide")
	if err != nil {
		return nil, err
	}
	n, err := svgInline(f, narrow(f), id+"-narrow", "narrow")
	if err != nil {
		return nil, err
	}
	return &pageFigure{
		ID: id, Title: f.title, Caption: f.caption, Note: f.note,
		// Both are the SVG library's own elements with every text in them escaped by it or by svgInline.
		Wide: template.HTML(w), Narrow: template.HTML(n),
		SVG: FiguresDir + "/" + f.file + ".svg", PDF: FiguresDir + "/" + f.file + ".pdf",
		Emulated: f.kind == emulated, Lead: f.lead,
	}, nil
}

// probeWords say what a reader must know of the probes: their own cost, what they did not see, and what failed.
func probeWords(a *explain.Account) []string {
	var list []string
	if n := a.Explained; n > 0 {
		list = append(list, fmt.Sprintf("%s; %s with all that an account takes: explained and other trials, of this and of what it is compared with.", count(n, "explained trial", "explained trials"), count(a.Rounds, "round", "rounds")))
	}
	if c := a.ProbeCost; !math.IsNaN(c.Value) {
		w := "The probes’ own cost: explained trials took " + valueWords(c.Value, c.Low, c.High, "") + " times as long as the others"
		if c.HasInterval() && c.Contains(1) {
			w += ", which cannot be told from nothing"
		}
		list = append(list, w+".")
	} else {
		list = append(list, "The probes’ own cost is not known.")
	}
	if a.Lost == 0 && a.Explained > 0 {
		list = append(list, "The probes lost no event.")
	}
	// What was lost, failed or missing the account's own notes say.
	for _, n := range a.Notes {
		if n = sentence(n); !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

// partRows are the account as a table.
func partRows(a *explain.Account) []whyRow {
	unit, k := secondsUnit(largest(a))
	var rows []whyRow
	row := func(name string, e stats.Estimate, share string, muted bool) {
		d := decimals(k*e.Value, k*e.Low, k*e.High)
		rows = append(rows, whyRow{name, number(k*e.Value, d) + " " + unit, intervalWords(k*e.Low, k*e.High, d), share, muted})
	}
	for i := range a.Parts {
		p := &a.Parts[i]
		share := "–"
		if q := p.Share; finite(q.Value) && p.Seconds != (stats.Estimate{N: p.Seconds.N}) {
			share = percent(round2(q.Value))
			if q.HasInterval() {
				share += fmt.Sprintf(" (%s to %s)", percent(round2(q.Low)), percent(round2(q.High)))
			}
		}
		row(plain(p.Label), p.Seconds, share, !p.Told())
	}
	row("the gap", a.Gap, "", false)
	return rows
}

// round2 rounds a share to whole per cent: its interval is never known better.
func round2(share float64) float64 { return math.Round(100*share) / 100 }

// figureRows are the probes' figures that tell a treatment from its baseline, or that it alone has.
func figureRows(a *explain.Account) []whyFigure {
	var list []whyFigure
	for _, f := range a.Figures {
		if math.IsNaN(f.Mean.Value) {
			continue
		}
		w := whyFigure{Name: plain(f.Name), Help: plain(f.Help), Value: figureWords(f.Mean, f.Unit), Before: "–"}
		if f.Before.N > 0 && !math.IsNaN(f.Before.Value) {
			w.Before = figureWords(f.Before, f.Unit)
		}
		list = append(list, w)
	}
	return list
}

func figureWords(e stats.Estimate, unit string) string {
	switch unit {
	case "1":
		unit = ""
	case "B":
		if e.Value >= 1<<20 {
			const m = 1 << 20
			return valueWords(e.Value/m, e.Low/m, e.High/m, "MiB")
		}
	}
	return valueWords(e.Value, e.Low, e.High, unit)
}

// largest is the largest number of seconds in an account.
func largest(a *explain.Account) float64 {
	top := math.Max(math.Abs(a.Elapsed.Value), math.Abs(a.Elapsed.Value-a.Gap.Value))
	for _, p := range a.Parts {
		if v := math.Abs(p.Seconds.Value); v > top {
			top = v
		}
	}
	return top
}

// secondsUnit is the unit in which so many seconds are read best, and how many of it a second has.
func secondsUnit(s float64) (string, float64) {
	if s < 0.5 {
		return "ms", 1e3
	}
	return "s", 1
}
