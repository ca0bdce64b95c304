package advise

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"tare/notebook"
)

// Text writes the rankings for people.
func (a *Advice) Text(w io.Writer) error {
	var b strings.Builder
	notes := a.common()
	for i := range a.Rankings {
		if i > 0 {
			b.WriteByte('\n')
		}
		a.Rankings[i].text(&b, notes)
	}
	if len(notes) > 0 {
		b.WriteByte('\n')
	}
	for i, n := range notes {
		fmt.Fprintf(&b, "[%d] %s\n", i+1, clean(n))
	}
	if len(a.Rankings) > 1 {
		b.WriteString("\nThere are several rankings; --workload chooses one, and --format docker then prints what to apply.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// common are the reasons not to rank that several rankings have: they are said once, and referred to by number.
func (a *Advice) common() (notes []string) {
	first := map[string]int{}
	for i := range a.Rankings {
		for _, p := range a.Rankings[i].Apart {
			if at, known := first[p.Reason]; !known {
				first[p.Reason] = i
			} else if at != i && !slices.Contains(notes, p.Reason) {
				notes = append(notes, p.Reason)
			}
		}
	}
	return notes
}

func (r *Ranking) text(b *strings.Builder, notes []string) {
	fmt.Fprintf(b, "%s on %s\n\n%s\n", clean(r.Workload), clean(r.Host), r.Why)
	if len(r.Choices) > 0 {
		in := ""
		if u := r.unit(); u != "" {
			in = " [" + clean(u) + "]"
		}
		rows := [][]string{{"", "", clean(r.what()) + in, "of bare metal"}}
		tied, near, leader, predicted := 0, 0, 0, false
		for _, c := range r.Choices {
			mark := ""
			if c.Tied {
				tied++
				mark = "="
			}
			if c.Near {
				near++
			}
			if c.leads {
				leader = c.Rank
			}
			figure := r.figure(c)
			if c.Predicted && !r.defined(c) {
				predicted = true
				figure += " predicted"
			}
			ratio := ""
			switch {
			case c.Treatment.Platform == notebook.BM && c.Ratio == 1:
				ratio = "1"
			case finite(c.Ratio):
				ratio = interval(c.Ratio, c.RatioLow, c.RatioHigh)
			}
			rows = append(rows, []string{fmt.Sprintf("%2s %2d", mark, c.Rank), c.Name, figure, ratio})
		}
		if tied == 1 {
			for i := range rows {
				rows[i][0] = strings.Replace(rows[i][0], "=", " ", 1)
			}
		}
		b.WriteByte('\n')
		columns(b, rows)
		b.WriteString("\nRanked by the upper end of the 95 % interval.")
		if n := len(r.Choices) - 1; n > 1 {
			fmt.Fprintf(b, " What is compared with another is corrected for %d comparisons.", n)
		}
		if tied > 1 {
			fmt.Fprintf(b, "\nWhat is marked (=) cannot be told from number %d, whose upper end is the lowest.", leader)
		}
		if near > 1 {
			fmt.Fprintf(b, " Of these the first %d, estimated at no more than that upper end, stand in this order: %s.", near, tieRule)
		}
		if predicted {
			b.WriteString("\nWhat is marked as predicted was not measured: docs/model.md has the model. A prediction cannot be told apart where the two intervals overlap.")
		}
		b.WriteByte('\n')
		for _, c := range r.Choices {
			for _, n := range c.Notes {
				fmt.Fprintf(b, "- number %d: %s\n", c.Rank, clean(n))
			}
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(b, "- %s\n", clean(n))
	}
	if len(r.Apart) > 0 {
		b.WriteString("\nNot ranked:\n")
		for _, l := range r.apart(notes) {
			fmt.Fprintf(b, "- %s\n", l)
		}
	}
	if len(r.Choices) > 0 {
		fmt.Fprintf(b, "\nWhat to apply, with --format: for number 1 %s. Another number: --pick N.\n", fitting(r.Choices[0].Treatment))
	}
}

// apart says each reason once, with the treatments that it is of; of those among the notes the number.
func (r *Ranking) apart(notes []string) []string {
	const most = 3
	var order []string
	names := map[string][]string{}
	for _, p := range r.Apart {
		if names[p.Reason] == nil {
			order = append(order, p.Reason)
		}
		names[p.Reason] = append(names[p.Reason], p.Name)
	}
	var lines []string
	for _, reason := range order {
		n := names[reason]
		if more := len(n) - most; more > 0 {
			n = append(n[:most:most], fmt.Sprintf("and %d more", more))
		}
		why := clean(reason)
		if i := slices.Index(notes, reason); i >= 0 {
			why = fmt.Sprintf("see [%d]", i+1)
		}
		lines = append(lines, strings.Join(n, ", ")+": "+why)
	}
	return lines
}

// columns writes rows with their cells under each other.
func columns(b *strings.Builder, rows [][]string) {
	width := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, c := range r {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	for _, r := range rows {
		var line strings.Builder
		for i, c := range r {
			line.WriteString(c + strings.Repeat(" ", width[i]-utf8.RuneCountInString(c)+2))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// JSON writes the rankings as an array. What is not known is null.
func (a *Advice) JSON(w io.Writer) error {
	type choice struct {
		Rank         int      `json:"rank"`
		Name         string   `json:"name"`
		Treatment    *string  `json:"treatment"` // null where predicted
		Platform     string   `json:"platform"`
		Engine       *string  `json:"engine"`
		Provisioning *string  `json:"provisioning"`
		Network      *string  `json:"network"`
		Instance     string   `json:"instance"`
		Cores        float64  `json:"cores"`
		Memory       int64    `json:"memory"`
		CPUs         *string  `json:"cpus"`
		Predicted    bool     `json:"predicted"`
		Tied         bool     `json:"tied"`
		Near         bool     `json:"near"`
		Value        *float64 `json:"value"`
		Low          *float64 `json:"low"`
		High         *float64 `json:"high"`
		Ratio        *float64 `json:"ratio"`
		RatioLow     *float64 `json:"ratio_low"`
		RatioHigh    *float64 `json:"ratio_high"`
		Against      *float64 `json:"against"`
		AgainstLow   *float64 `json:"against_low"`
		AgainstHigh  *float64 `json:"against_high"`
		Formats      []string `json:"formats"`
		Notes        []string `json:"notes"`
	}
	type apart struct {
		Name   string `json:"name"`
		Reason string `json:"reason"`
	}
	type ranking struct {
		Host     string     `json:"host"`
		Workload string     `json:"workload"`
		Metric   string     `json:"metric"`
		Unit     string     `json:"unit"`
		Prefer   Preference `json:"prefer"`
		ByRatio  bool       `json:"by_ratio"`
		Why      string     `json:"why"`
		TieRule  string     `json:"tie_rule"`
		Choices  []choice   `json:"choices"`
		Apart    []apart    `json:"not_ranked"`
		Notes    []string   `json:"notes"`
	}
	number := func(f float64) *float64 {
		if !finite(f) {
			return nil
		}
		return &f
	}
	word := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	list := func(s []string) []string { return append([]string{}, s...) }
	out := []ranking{}
	for _, r := range a.Rankings {
		j := ranking{Host: r.Host, Workload: r.Workload, Metric: r.Metric.Name, Unit: r.Metric.Unit, Prefer: r.Prefer, ByRatio: r.ByRatio, Why: r.Why, TieRule: tieRule, Choices: []choice{}, Apart: []apart{}, Notes: list(r.Notes)}
		for _, c := range r.Choices {
			t := c.Treatment
			formats := []string{}
			for _, f := range Formats {
				if expresses(f, t) {
					formats = append(formats, f)
				}
			}
			j.Choices = append(j.Choices, choice{
				c.Rank, c.Name, word(t.ID), t.Platform, word(t.Engine), word(t.Provisioning), word(t.Network), t.Instance.Name, t.Instance.Cores, t.Instance.Memory,
				word(formatCPUs(c.CPUs)), c.Predicted, c.Tied, c.Near, number(c.Value), number(c.Low), number(c.High), number(c.Ratio), number(c.RatioLow), number(c.RatioHigh),
				number(c.Against.Value), number(c.Against.Low), number(c.Against.High), formats, list(c.Notes),
			})
		}
		for _, p := range r.Apart {
			j.Apart = append(j.Apart, apart(p))
		}
		out = append(out, j)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(out)
}
