package page

import (
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
	claims.Verdict
	Reason words.Reason
}

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
		g.Claims = append(g.Claims, claimRow{v, reasons[i]})
	}
	return p
}
