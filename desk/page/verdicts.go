package page

import (
	"fmt"
	"math"
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

// classes are the verdicts' styles.
var classes = map[claims.Answer]string{claims.Holds: "holds", claims.DoesNotHold: "not", claims.NotDecided: "open", claims.NotTestable: "none"}

// judged gives the claims their verdicts; nil where there are none.
func judged(s *data.Summary, list []claims.Claim) *claimsPart {
	if len(list) == 0 {
		return nil
	}
	papers := map[string]bool{}
	for _, c := range list {
		papers[c.Paper] = true
	}
	verdicts := claims.Judge(s, list)
	p := &claimsPart{Counts: words.Tight(words.Verdicts(verdicts))}
	reasons, notes := words.Reasons(verdicts)
	for _, n := range notes {
		p.Notes = append(p.Notes, words.Stop(n))
	}
	for i, v := range verdicts {
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
	return p
}

func claim(v claims.Verdict, why words.Reason) claimRow {
	r := claimRow{
		ID: words.Plain(v.Claim.ID), Place: words.Plain(v.Claim.Place), Finding: words.Sentence(v.Claim.Finding), Tolerance: words.Sentence(v.Claim.Tolerance),
		Published: words.Plain(words.Published(v.Claim)), Answer: words.Plain(string(v.Answer)), Class: classes[v.Answer], Why: pieces(why.Why), Missing: pieces(why.Missing),
	}
	for _, e := range v.Evidence {
		row := evidenceRow{What: words.Plain(words.Comparison(e.Comparison)), Wanted: words.Plain(words.Region(e.Wanted)), Met: words.Plain(string(e.Met))}
		row.Value = words.Measured(e.Ratio, e.Low, e.High, "")
		if e.Level > 0 && e.Level < 1 && !math.IsNaN(e.Ratio) {
			row.Value += fmt.Sprintf(" at %.5g %%", 100*e.Level)
		}
		row.Value = words.Tight(row.Value + ", " + words.Count(e.Rounds, "round"))
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
