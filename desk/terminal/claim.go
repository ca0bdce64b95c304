package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"tare/desk/claims"
	"tare/desk/data"
	"tare/desk/words"
)

// Verdicts writes the verdicts in the claims' groups, with the evidence in brief. Headings are bold and what was not
// testable is dim.
func Verdicts(w io.Writer, vs []claims.Verdict, on Screen) error {
	t := &text{Screen: on}
	t.wrap("", words.Verdicts(vs))
	id := 0
	for _, v := range vs {
		id = max(id, utf8.RuneCountInString(v.Claim.ID))
	}
	const answer = len(claims.DoesNotHold)
	// On a narrow terminal the text stands under its verdict.
	const least = 30
	indent := 2 + id + 2 + answer + 2
	beneath := on.Width > 0 && on.Width-indent < least
	paper, group := "", ""
	whys, notes := words.Reasons(vs)
	for i, v := range vs {
		if v.Claim.Paper != paper || v.Claim.Group != group {
			t.line("")
			if v.Claim.Paper != paper {
				t.wrap("", v.Claim.Paper)
				t.line("")
			}
			paper, group = v.Claim.Paper, v.Claim.Group
			t.head(group)
		}
		said := v.Claim.Finding
		if p := words.Published(v.Claim); p != "" {
			said += " Published: " + p + "."
		}
		var why []string
		for _, p := range whys[i].Why {
			if p.Note > 0 {
				p.Text = fmt.Sprintf("%s [%d]", p.Text, p.Note)
			}
			why = append(why, p.Text)
		}
		said += " — " + strings.Join(why, "; ")
		head := data.Printable(fmt.Sprintf("  %-*s  %-*s  ", id, v.Claim.ID, answer, v.Answer))
		how := ""
		if v.Answer == claims.NotTestable {
			how = dim
		}
		if beneath {
			t.wrapAs(how, "  ", v.Claim.ID+"  "+string(v.Answer))
			t.wrap("    ", said)
			continue
		}
		t.wrapUnder(how, head, said)
	}
	t.notes = notes
	t.footnotes()
	return t.flush(w)
}
