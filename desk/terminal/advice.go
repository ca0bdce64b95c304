package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"tare/desk/advise"
	"tare/desk/apply"
	"tare/desk/data"
	"tare/desk/words"
	"tare/notebook"
	"tare/stats"
)

// Advice writes the rankings.
func Advice(w io.Writer, a *advise.Advice, on Screen) error {
	t := &text{Screen: on}
	notes := common(a)
	for i := range a.Rankings {
		if i > 0 {
			t.line("")
		}
		t.ranking(&a.Rankings[i], notes)
	}
	t.notes = notes
	t.footnotes()
	if len(a.Rankings) > 1 {
		t.line("")
		t.wrap("", words.SeveralRankings)
	}
	return t.flush(w)
}

// Cautions writes what limits the results that advice is based on.
func Cautions(w io.Writer, s *data.Summary, on Screen) error {
	t := &text{Screen: on}
	t.list(words.ReasonsToDoubt, words.Cautions(s))
	return t.flush(w)
}

// common are the reasons not to rank that several rankings share. The text gives them once and refers to them by number.
func common(a *advise.Advice) (notes []string) {
	first := map[string]int{}
	for i := range a.Rankings {
		for _, p := range a.Rankings[i].Apart {
			why := words.Doubt(p.Reason)
			if at, known := first[why]; !known {
				first[why] = i
			} else if at != i && !slices.Contains(notes, why) {
				notes = append(notes, why)
			}
		}
	}
	return notes
}

func (t *text) ranking(r *advise.Ranking, common []string) {
	t.head(r.Workload + " on " + r.Host)
	t.line("")
	if r.Offers != nil {
		t.offers(r)
	} else {
		t.wrap("", words.Ranking(r))
	}
	if len(r.Choices) > 0 {
		if r.Offers == nil {
			t.line("")
			t.choices(r)
		}
		for _, c := range r.Choices {
			for _, d := range c.Doubts {
				t.wrap("- ", fmt.Sprintf("number %d: %s", c.Rank, words.Plain(words.Doubt(d))))
			}
		}
	}
	for _, n := range words.Doubts(r.Doubts) {
		t.wrap("- ", words.Plain(n))
	}
	if len(r.Apart) > 0 {
		t.line("")
		t.line("Not ranked:")
		for _, l := range apart(r, common) {
			t.wrap("- ", l)
		}
	}
	if len(r.Choices) > 0 {
		t.line("")
		t.wrap("", words.ToApply(apply.Fitting(r.Choices[0].Treatment)))
	}
}

// offers writes what the choices cost, the cheapest first.
func (t *text) offers(r *advise.Ranking) {
	o := r.Offers
	t.wrap("", words.Offered(r))
	if len(o.List) > 0 {
		t.line("")
		cols := []column{{right: true}, {gap: 2}, {head: words.OfferAnswers, right: true, gap: 2}, {head: words.OfferInstances, right: true, gap: 2}, {head: words.OfferHourly(o), right: true, gap: 2}, {head: words.OfferPerMillion(o), right: true, gap: 2}, {head: words.OfferKeeps, right: true, gap: 2}}
		for i := range o.List {
			cols[0].cells = append(cols[0].cells, fmt.Sprint(i+1))
			for j, cell := range words.Offer(r, &o.List[i]) {
				cols[j+1].cells = append(cols[j+1].cells, cell)
			}
		}
		t.grid(t.whole(cols), func(int) bool { return false })
		t.line("")
		t.wrap("", words.OfferedHow(o))
	}
	for _, d := range words.Doubts(o.Doubts) {
		t.wrap("- ", words.Plain(d))
	}
}

// choices writes the table of the choices, and how to read it.
func (t *text) choices(r *advise.Ranking) {
	what := words.Plain(words.RankedName(r))
	if u := words.RankedUnit(r); u != "" {
		what += " [" + words.Plain(u) + "]"
	}
	cols := []column{{}, {gap: 2}, {head: what, gap: 2}, {head: "of bare metal", gap: 2}}
	tied := 0
	for _, c := range r.Choices {
		if c.Tied {
			tied++
		}
	}
	for _, c := range r.Choices {
		mark := ""
		if c.Tied && tied > 1 {
			mark = "="
		}
		value := words.Value(r, c)
		if c.Predicted && !r.Defined(c) {
			value += " predicted"
		}
		ratio := ""
		switch {
		case c.Treatment.Platform == notebook.BM && c.Ratio == 1:
			ratio = "1"
		case stats.Finite(c.Ratio):
			ratio = words.Measured(c.Ratio, c.RatioLow, c.RatioHigh, "")
		}
		for i, cell := range []string{fmt.Sprintf("%2s %2d", mark, c.Rank), words.Choice(c.Treatment, r.Networks), value, ratio} {
			cols[i].cells = append(cols[i].cells, cell)
		}
	}
	if !t.fits(cols) {
		cols = cols[:3] // what is ranked is what is asked for
		t.without(words.RatiosToBareMetal)
	}
	t.grid(cols, func(int) bool { return false })
	t.line("")
	t.wrap("", words.RankedHow(r))
}

// apart gives each reason once, with the treatments that it applies to. For a reason among the notes it gives only the number.
func apart(r *advise.Ranking, notes []string) (lines []string) {
	const most = 3
	alike := func(a, b advise.Apart) bool { return words.Doubt(a.Reason) == words.Doubt(b.Reason) }
	for _, of := range data.Together(r.Apart, alike) {
		reason := words.Doubt(of[0].Reason)
		var n []string
		for _, p := range of {
			n = append(n, words.Choice(p.Treatment, r.Networks))
		}
		if more := len(n) - most; more > 0 {
			n = append(n[:most:most], fmt.Sprintf("and %d more", more))
		}
		why := words.Plain(reason)
		if i := slices.Index(notes, reason); i >= 0 {
			why = fmt.Sprintf("see [%d]", i+1)
		}
		lines = append(lines, strings.Join(n, ", ")+": "+why)
	}
	return lines
}
