package terminal

import (
	"cmp"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"tare/desk/claims"
	"tare/desk/data"
	"tare/desk/words"
)

// Verdicts writes the claims by their verdict: a line each with the number that it rests on, what was wanted, and the finding. What is not
// testable is below, by its reason, and what is to be known about all that was measured (nil: said elsewhere).
func Verdicts(w io.Writer, vs []claims.Verdict, about []data.Doubt, on Screen) error {
	t := &text{Screen: on}
	t.wrap("", words.Verdicts(vs))
	for _, answer := range claims.Answers[:3] {
		of := slices.DeleteFunc(slices.Clone(vs), func(v claims.Verdict) bool { return v.Answer != answer })
		if len(of) == 0 {
			continue
		}
		slices.SortStableFunc(of, func(a, b claims.Verdict) int { // what is decided soonest first
			return cmp.Compare(cmp.Or(a.More, math.MaxInt), cmp.Or(b.More, math.MaxInt))
		})
		t.line("")
		t.head(strings.ToUpper(string(answer[:1])) + string(answer[1:]))
		t.verdicts(of)
	}
	if of := words.Untestables(vs); len(of) > 0 {
		t.line("")
		t.head(words.NotTestableHere)
		for _, u := range of {
			t.untestable(u)
		}
	}
	t.footnotes()
	t.list("Notes", words.Doubts(slices.DeleteFunc(slices.Clone(about), func(d data.Doubt) bool {
		_, is := d.(data.Uncorrected) // verdicts are corrected
		return is
	})))
	return t.flush(w)
}

// NoClaims writes which studies have claims, where none is about what was measured.
func NoClaims(w io.Writer, studies []string, on Screen) error {
	t := &text{Screen: on}
	for _, line := range words.NoClaims(studies) {
		t.wrap("", line)
	}
	return t.flush(w)
}

// verdicts writes a line for each.
func (t *text) verdicts(of []claims.Verdict) {
	number, wanted, more := column{gap: 2}, column{gap: 2}, column{gap: 2}
	for i := range of {
		v := &of[i]
		number.cells = append(number.cells, words.Found(v))
		wanted.cells = append(wanted.cells, words.Wanted(v.Evidence[v.Deciding].Wanted))
		left := ""
		if v.More > 0 {
			left = "+" + words.Count(v.More, "round")
		}
		more.cells = append(more.cells, left)
	}
	cols := []column{number, wanted}
	if more.width() > 0 {
		cols = append(cols, more)
	}
	for i, v := range of {
		said := v.Claim.Finding
		if p := words.Published(v.Claim); p != "" {
			said += " Published: " + p + "."
		}
		said += " " + v.Claim.ID
		if m := t.mark(words.Beside(&v)); m != "" {
			said += " " + m
		}
		head := line(cols, func(c column) string { return c.cells[i] })
		// On a narrow terminal the finding stands under its number.
		const least = 30
		if indent := total(cols) + 2; t.Width == 0 || t.Width-indent >= least {
			t.wrap(head+strings.Repeat(" ", indent-utf8.RuneCountInString(head)), said)
			continue
		}
		t.wrap("", head)
		t.wrap("    ", said)
	}
}

func (t *text) untestable(u words.Untestable) {
	if len(u.Claims) == 1 {
		t.wrap("  ", u.Claims[0]+": "+u.Reason)
		return
	}
	t.wrap("  ", words.UntestableClaims(u))
	t.wrapAs(dim, "    ", strings.Join(u.Claims, " "))
}
