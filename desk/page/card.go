package page

import (
	"math"

	"tare/desk/data"
	"tare/desk/words"
	"tare/stats"
)

// card is the verdict card: one row for each environment, by place.
type card struct {
	Margin   string
	Places   []cardPlace
	More     int // places that only the table has
	Emulated int // environments without a figure here
}

type cardPlace struct {
	Title string
	Rows  []cardRow
}

type cardRow struct {
	Name, Change, Interval string
	Verdict, Sign, Class   string // Class is the verdict's, for its colour; empty: a reference
}

// mostPlaces is how many places the card has; the table has them all.
const mostPlaces = 4

// verdictSigns tell verdicts apart without colour.
var verdictSigns = map[stats.Verdict]string{stats.Slower: "▲", stats.Faster: "▼", stats.Equivalent: "=", stats.Inconclusive: "?"}

// cardOf makes the card of a summary; nil where nothing is compared.
func cardOf(s *data.Summary) *card {
	c := &card{Margin: words.MarginText(s.Margin())}
	for _, rows := range s.Places() {
		p := cardPlace{Title: words.Where(s, rows[0])}
		compared := false
		for _, r := range rows {
			switch {
			case !r.Representative:
				c.Emulated++
				continue
			case r.Treatment.AA || r.Rounds == 0 || r.Treatment.Isolation != "":
				continue
			}
			row := cardRowOf(s, r)
			compared = compared || row.Class != ""
			p.Rows = append(p.Rows, row)
		}
		switch {
		case !compared:
		case len(c.Places) == mostPlaces:
			c.More++
		default:
			c.Places = append(c.Places, p)
		}
	}
	if len(c.Places) == 0 {
		return nil
	}
	return c
}

// cardRowOf says a row's change and verdict.
func cardRowOf(s *data.Summary, r *data.Row) cardRow {
	row := cardRow{Name: words.EnvironmentOf(s, r)}
	verdict := s.Verdict(r)
	if verdict == "" {
		row.Change, row.Verdict = words.Amount(r), words.Reference
		return row
	}
	row.Verdict, row.Sign, row.Class = words.VerdictOf(r, verdict), verdictSigns[verdict], string(verdict)
	q := words.AmountChange(r)
	row.Change = "–"
	if !math.IsNaN(q.Value) {
		row.Change, row.Interval = inChange(q)
	}
	return row
}

// inChange says a ratio as a change in per cent, or from 2 on as it is.
func inChange(q stats.Quotient) (change, interval string) {
	if q.Value < 2 {
		return words.InPerCent(q)
	}
	d := words.Places(q.Value, q.Low, q.High)
	return words.Number(q.Value, d) + " times", words.Bounds(q.Low, q.High, d)
}
