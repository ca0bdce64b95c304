package page

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"tare/desk/claims"
	"tare/desk/data"
	"tare/desk/words"
)

// claimsPart is the table of published findings and what was found of them here.
type claimsPart struct {
	Counts string
	Groups []claimGroup
	Notes  []string // what several verdicts have in common, by number
}

type claimGroup struct {
	Title  string
	Claims []claimRow
}

type claimRow struct {
	ID, Place, Finding string
	Published          string // the paper's own number; empty where it has none
	Tolerance          string
	Answer, Class      string
	Why, Missing       []words.Piece
	Evidence           []evidenceRow
	Needs              []string
}

// More says whether there is more to be shown than the answer and its reason.
func (r claimRow) More() bool { return len(r.Evidence)+len(r.Missing)+len(r.Needs) > 0 }

type evidenceRow struct{ What, Value, Wanted, Met string }

// answers are the verdicts in the order in which they are counted, with their style.
var answers = []struct {
	answer claims.Answer
	class  string
}{
	{claims.Holds, "holds"}, {claims.DoesNotHold, "not"}, {claims.NotDecided, "open"}, {claims.NotTestable, "none"},
}

// judged gives the claims their verdicts; nil where there are none.
func judged(s *data.Summary, list []claims.Claim) *claimsPart {
	if len(list) == 0 {
		return nil
	}
	p := &claimsPart{}
	counts := map[claims.Answer]int{}
	papers := map[string]bool{}
	for _, c := range list {
		papers[c.Paper] = true
	}
	verdicts := claims.Judge(s, list)
	reasons, notes := words.Reasons(verdicts)
	for _, n := range notes {
		p.Notes = append(p.Notes, words.Stop(n))
	}
	for i, v := range verdicts {
		counts[v.Answer]++
		title := words.Plain(v.Claim.Group)
		if paper := words.Plain(v.Claim.Paper); len(papers) > 1 && paper != "" {
			title = strings.Trim(paper+": "+title, ": ")
		}
		if n := len(p.Groups); n == 0 || p.Groups[n-1].Title != title {
			p.Groups = append(p.Groups, claimGroup{Title: title})
		}
		g := &p.Groups[len(p.Groups)-1]
		g.Claims = append(g.Claims, claim(v, reasons[i]))
	}
	var said []string
	for _, a := range answers {
		said = append(said, fmt.Sprintf("%s: %d", a.answer, counts[a.answer]))
	}
	p.Counts = fmt.Sprintf("Of %s: %s.", words.Counted(len(list), "claim", "claims"), strings.Join(said, "; "))
	return p
}

func claim(v claims.Verdict, why words.Reason) claimRow {
	r := claimRow{
		ID: words.Plain(v.Claim.ID), Place: words.Plain(v.Claim.Place), Finding: words.Sentence(v.Claim.Finding), Tolerance: words.Sentence(v.Claim.Tolerance),
		Answer: words.Plain(string(v.Answer)), Class: "none", Why: pieces(why.Why), Missing: pieces(why.Missing),
	}
	for _, a := range answers {
		if a.answer == v.Answer {
			r.Class = a.class
		}
	}
	if p := v.Claim.Published; p != nil {
		r.Published = strings.TrimSpace(words.Plain(p.What)+" ") + " " + words.Short(p.Low)
		if p.High != p.Low {
			r.Published += " to " + words.Short(p.High)
		}
	}
	for _, e := range v.Evidence {
		row := evidenceRow{What: words.Plain(words.Comparison(e.Comparison)), Wanted: words.Plain(words.Region(e.Wanted)), Met: words.Plain(string(e.Met))}
		d := words.Places(e.Ratio, e.Low, e.High)
		row.Value = words.Number(e.Ratio, d)
		switch {
		case math.IsNaN(e.Ratio):
			row.Value = "no value"
		case math.IsNaN(e.Low) || math.IsNaN(e.High):
			row.Value += " (no interval)"
		default:
			row.Value += " (" + words.Bounds(e.Low, e.High, d)
			if e.Level > 0 && e.Level < 1 {
				row.Value += fmt.Sprintf(" at %s %%", strconv.FormatFloat(100*e.Level, 'g', 5, 64))
			}
			row.Value += ")"
		}
		row.Value = words.Tight(row.Value + ", " + words.Counted(e.Rounds, "round", "rounds"))
		r.Evidence = append(r.Evidence, row)
	}
	for _, n := range words.Selectors(v.Needs) {
		r.Needs = append(r.Needs, words.Plain(n))
	}
	return r
}

// pieces makes the parts of a reason fit to be shown.
func pieces(ps []words.Piece) (all []words.Piece) {
	for _, p := range ps {
		all = append(all, words.Piece{Text: words.Tight(words.Plain(p.Text)), Note: p.Note})
	}
	return all
}
