package page

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"time"

	"tare/desk/chart"
	"tare/desk/fleet"
	"tare/desk/words"
)

//go:embed fleet.gohtml
var fleetSource string

// fleetPage is what the template of a fleet shows.
type fleetPage struct {
	Title   string
	Style   template.CSS
	Answer  words.FleetAnswer
	Figures []pageFigure
	Hosts   []pageFigure // of single hosts
	CSV     *sheet
	// HostsCSV has each host's own results; nil: they are too many for a page.
	HostsCSV *sheet
	Claims   []fleetClaims
	NoClaims string // which claims no host can test
}

// fleetClaims are claims under a head.
type fleetClaims struct {
	Head   string
	Claims []pair // on how many hosts a claim holds, and what it says
}

// mostSheetLines is how many lines a table in a page may have.
const mostSheetLines = 50_000

// WriteFleet writes the report of many hosts into out, with verdicts on claims. The paths of the files are as WriteSummary has them.
func WriteFleet(f *fleet.Fleet, out string, judged []fleet.Claimed) ([]string, error) {
	figures := chart.OfFleet(f)
	p := fleetPage{Title: words.FleetPageTitle(f), Style: template.CSS(style), Answer: words.FleetAnswerOf(f, true)}
	p.claims(f, judged)
	for i := range figures {
		shown := inPage(&figures[i], fmt.Sprintf("figure-%d", i+1))
		shown.Heading = figures[i].Title
		if figures[i].Spread {
			p.Hosts = append(p.Hosts, shown)
		} else {
			p.Figures = append(p.Figures, shown)
		}
	}
	lines := [][]string{p.Answer.Columns}
	for _, line := range p.Answer.Lines {
		lines = append(lines, append([]string(nil), line...))
	}
	p.CSV = sheetOf("fleet", lines)
	if lines := fleetHostLines(f); len(lines) <= mostSheetLines {
		p.HostsCSV = sheetOf("hosts", lines)
	}
	var b bytes.Buffer
	if err := pageTemplate().ExecuteTemplate(&b, "fleet", p); err != nil {
		return nil, fmt.Errorf("making the page: %w", err)
	}
	return publish(out, b.Bytes(), figures, time.Time{})
}

// fleetHostLines are the results of each host.
func fleetHostLines(f *fleet.Fleet) [][]string {
	lines := [][]string{{"host", "host_id", "configuration", "cost", "cost_low", "cost_high", "rounds", "verdict"}}
	shown := f.Primary()
	for _, c := range shown {
		name := words.FleetName(f, shown, c)
		for i, r := range c.Results {
			lines = append(lines, []string{c.Hosts[i].Name, c.Hosts[i].ID, name, exact(r.Cost.Value), exact(r.Cost.Low), exact(r.Cost.High), fmt.Sprint(r.Rounds), string(r.Finding(f.Margin))})
		}
	}
	return lines
}

// claims puts verdicts on claims into words.
func (p *fleetPage) claims(f *fleet.Fleet, judged []fleet.Claimed) {
	if len(judged) == 0 {
		return
	}
	groups, last := words.FleetClaimGroups(f, judged)
	p.NoClaims = last
	for _, g := range groups {
		group := fleetClaims{Head: g.Head}
		for _, c := range g.Claims {
			counts, said := words.FleetClaim(f, c)
			group.Claims = append(group.Claims, pair{words.Capital(counts), said})
		}
		p.Claims = append(p.Claims, group)
	}
}
