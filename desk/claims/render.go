package claims

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"tare/desk/data"
	"tare/stats"
)

// Sentence counts the verdicts in words, and says how they were corrected.
func Sentence(vs []Verdict) string {
	if len(vs) == 0 {
		return "There are no claims."
	}
	count := map[Answer]int{}
	tested := 0
	for _, v := range vs {
		count[v.Answer]++
		if v.tested {
			tested++
		}
	}
	var parts []string
	for _, a := range Answers {
		parts = append(parts, fmt.Sprintf("%d %s", count[a], a.plural(count[a])))
	}
	s := fmt.Sprintf("Of %d %s, %s and %s.", len(vs), map[bool]string{true: "claim", false: "claims"}[len(vs) == 1], strings.Join(parts[:len(parts)-1], ", "), parts[len(parts)-1])
	if tested > 0 {
		s += fmt.Sprintf(" Corrected for the %d of them that have something to compare here: in at most %.0f %% of runs is any \"holds\" or \"does not hold\" wrong, as far as means of rounds scatter as Student's t assumes (normally).", tested, 100*stats.Alpha)
	}
	return s
}

// Answers are all there are, in the order in which they are counted.
var Answers = []Answer{Holds, DoesNotHold, NotDecided, NotTestable}

// plural is the answer behind a count: "3 hold here".
func (a Answer) plural(n int) string {
	if n == 1 {
		return map[Answer]string{NotDecided: "is not decided", NotTestable: "is not testable here"}[a] + map[Answer]string{Holds: string(Holds), DoesNotHold: string(DoesNotHold)}[a]
	}
	return map[Answer]string{Holds: "hold here", DoesNotHold: "do not hold here", NotDecided: "are not decided", NotTestable: "are not testable here"}[a]
}

// PublishedFigure writes the paper's own number, "2.4, ratio to a vanilla VM"; empty where it prints none.
func (c Claim) PublishedFigure() string {
	p := c.Published
	if p == nil {
		return ""
	}
	if p.Low == p.High {
		return fmt.Sprintf("%g, %s", p.Low, p.What)
	}
	return fmt.Sprintf("%g to %g, %s", p.Low, p.High, p.What)
}

// Colours of a terminal. Nothing is said by colour alone.
const (
	bold  = "\x1b[1m"
	dim   = "\x1b[2m"
	reset = "\x1b[0m"
)

// Table writes the verdicts for a terminal of so many columns (0: as many as it takes), in the claims' groups, with
// the evidence in brief. With colour, headings are bold and what was not testable is dim.
func Table(w io.Writer, vs []Verdict, width int, colour bool) error {
	t := &table{width: width}
	paint := func(how, s string) string {
		if !colour || s == "" {
			return s
		}
		return how + s + reset
	}
	t.wrap(0, Sentence(vs))
	id := 0
	for _, v := range vs {
		id = max(id, utf8.RuneCountInString(v.Claim.ID))
	}
	const word = len(DoesNotHold)
	// On a narrow terminal the text stands under its verdict.
	indent, beneath := 2+id+2+word+2, false
	if width > 0 && width-indent < 30 {
		indent, beneath = 4, true
	}
	paper, group := "", ""
	whys, notes := Reasons(vs)
	for i, v := range vs {
		if v.Claim.Paper != paper || v.Claim.Group != group {
			t.b.WriteByte('\n')
			if v.Claim.Paper != paper {
				t.wrap(0, v.Claim.Paper)
				t.b.WriteByte('\n')
			}
			paper, group = v.Claim.Paper, v.Claim.Group
			t.b.WriteString(paint(bold, data.Printable(group)) + "\n")
		}
		text := v.Claim.Finding
		if p := v.Claim.PublishedFigure(); p != "" {
			text += " Published: " + p + "."
		}
		var why []string
		for _, p := range whys[i].Why {
			if p.Note > 0 {
				p.Text = fmt.Sprintf("%s [%d]", p.Text, p.Note)
			}
			why = append(why, p.Text)
		}
		text += " — " + strings.Join(why, "; ")
		head := fmt.Sprintf("  %-*s  %-*s  ", id, v.Claim.ID, word, v.Answer)
		if beneath {
			head = strings.TrimRight(head, " ") + "\n" + strings.Repeat(" ", indent)
		}
		if v.Answer == NotTestable {
			head = paint(dim, head)
		}
		t.b.WriteString(head)
		t.wrap(indent, text)
	}
	if notes != nil {
		t.b.WriteByte('\n')
	}
	for i, n := range notes {
		mark := fmt.Sprintf("[%d] ", i+1)
		t.b.WriteString(mark)
		t.wrap(len(mark), n)
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

type table struct {
	b     strings.Builder
	width int
}

// wrap writes text in the width; the first line begins at indent, where the cursor is, the others are put there.
func (t *table) wrap(indent int, text string) {
	at := indent
	for i, word := range strings.Fields(text) {
		word = data.Printable(word)
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case t.width > 0 && at+1+n > t.width:
			t.b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			t.b.WriteByte(' ')
			at++
		}
		t.b.WriteString(word)
		at += n
	}
	t.b.WriteByte('\n')
}

// MarshalJSON writes the verdict as `tare claims --format json` promises it. What is not known is null.
func (v Verdict) MarshalJSON() ([]byte, error) {
	type number struct {
		What string  `json:"what"`
		Low  float64 `json:"low"`
		High float64 `json:"high"`
	}
	var p *number
	if q := v.Claim.Published; q != nil {
		p = &number{q.What, q.Low, q.High}
	}
	var chr *float64
	if v.Claim.PaperCHR > 0 {
		chr = &v.Claim.PaperCHR
	}
	list := func(s []string) []string { return append([]string{}, s...) }
	return json.Marshal(struct {
		Study     string     `json:"study"`
		Paper     string     `json:"paper"`
		Group     string     `json:"group"`
		ID        string     `json:"id"`
		Place     string     `json:"place"`
		Finding   string     `json:"finding"`
		Published *number    `json:"published"`
		Tolerance string     `json:"tolerance"`
		PaperCHR  *float64   `json:"paper_chr"`
		Needs     []string   `json:"needs"`
		Verdict   Answer     `json:"verdict"`
		Why       string     `json:"why"`
		Evidence  []Evidence `json:"evidence"`
		Missing   []string   `json:"missing"`
	}{
		v.Claim.Study, v.Claim.Paper, v.Claim.Group, v.Claim.ID, v.Claim.Place, v.Claim.Finding, p, v.Claim.Tolerance, chr, list(v.Needs),
		v.Answer, v.Why, append([]Evidence{}, v.Evidence...), list(v.Missing),
	})
}

// MarshalJSON writes the comparison. What is not known is null.
func (e Evidence) MarshalJSON() ([]byte, error) {
	number := func(f float64) *float64 {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil
		}
		return &f
	}
	return json.Marshal(struct {
		What       string     `json:"what"`
		Treatments [][]string `json:"treatments"`
		Ratio      *float64   `json:"ratio"`
		Low        *float64   `json:"low"`
		High       *float64   `json:"high"`
		Level      float64    `json:"level"`
		Rounds     int        `json:"rounds"`
		Wanted     string     `json:"wanted"`
		Met        Met        `json:"met"`
	}{e.What, slices.Clone(e.Treatments), number(e.Ratio), number(e.Low), number(e.High), e.Level, e.Rounds, e.Wanted, e.Met})
}

// JSON writes the verdicts as a JSON array.
func JSON(w io.Writer, vs []Verdict) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(append([]Verdict{}, vs...))
}
