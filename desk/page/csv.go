package page

import (
	"encoding/csv"
	"html"
	"html/template"
	"net/url"
	"strconv"
	"strings"

	"tare/desk/chart"
	"tare/desk/data"
	"tare/desk/show"
	"tare/desk/words"
	"tare/stats"
)

// sheet is a table as a CSV file inside the page.
type sheet struct {
	Name string
	URL  template.URL
}

// csvType is what the address of every sheet begins with.
const csvType = "data:text/csv;charset=utf-8,"

// sheetOf makes the sheet of a table. Its first line is the heads.
func sheetOf(name string, lines [][]string) *sheet {
	var b strings.Builder
	w := csv.NewWriter(&b)
	for _, line := range lines {
		for i := range line {
			line[i] = cellText(line[i])
		}
		if err := w.Write(line); err != nil {
			panic("page: a table cannot be written as CSV: " + err.Error()) // a strings.Builder takes all
		}
	}
	w.Flush()
	return &sheet{Name: name + ".csv", URL: template.URL(csvType + url.PathEscape(b.String()))}
}

// cellText makes a text fit for a cell: a spreadsheet takes none for a formula, and padding of columns is gone.
func cellText(s string) string {
	s = strings.Trim(words.Plain(s), " \u2007\u2008")
	if s == "" || !strings.ContainsAny(s[:1], "=+-@") {
		return s
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return s
	}
	return "'" + s
}

// exact writes a number as a program reads it; empty where it is not known, or has no bounds.
func exact(v float64) string {
	if !stats.Finite(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', 7, 64)
}

// resultSheet is the sheet of a table of rows.
func resultSheet(name string, s *data.Summary, rows []*data.Row) *sheet {
	lines := [][]string{{"workload", "instance", "platform", "engine", "provisioning", "environment", "metric", "unit", "verdict", "ratio", "ratio_low", "ratio_high",
		"mean", "mean_low", "mean_high", "rounds", "guests", "trials", "failed", "emulated"}}
	for _, r := range rows {
		t := r.Treatment
		lines = append(lines, []string{words.Work(t), t.Instance.Name, t.Platform, t.Engine, t.Provisioning, words.Unmarked(t, true), r.Metric.Name, r.Metric.Unit, string(s.Finding(r)),
			exact(r.Ratio), exact(r.RatioLow), exact(r.RatioHigh), exact(r.Mean), exact(r.MeanLow), exact(r.MeanHigh),
			strconv.Itoa(r.Rounds), strconv.Itoa(r.Guests), strconv.Itoa(r.Trials), strconv.Itoa(r.Failed), strconv.FormatBool(!r.Representative)})
	}
	return sheetOf(name, lines)
}

// CSV is the table as a sheet.
func (t *secondaryTable) CSV() *sheet {
	head := []string{"instance", "platform", "configuration"}
	for _, h := range t.Heads {
		head = append(head, strings.TrimSpace(h.Name+" "+h.Unit), "interval")
	}
	lines := [][]string{head}
	for _, r := range t.Rows {
		line := []string{r.Instance, r.Platform, r.Sub}
		for _, c := range r.Cells {
			line = append(line, c.Value, c.Interval)
		}
		lines = append(lines, line)
	}
	return sheetOf(t.ID, lines)
}

// CSV is the table as a sheet.
func (t severalPart) CSV() *sheet {
	head := []string{"metric", "unit", "better", t.Reference}
	for _, h := range t.Heads {
		head = append(head, h, "interval", "published")
	}
	lines := [][]string{head}
	for _, r := range t.Rows {
		line := []string{r.Name, r.Unit, r.Better, r.Base}
		for _, c := range r.Cells {
			line = append(line, c.Change.Value, c.Change.Interval, c.Published)
		}
		lines = append(lines, line)
	}
	return sheetOf(t.ID, lines)
}

// CSV is the table of an account's parts as a sheet.
func (a whyAccount) CSV() *sheet {
	lines := [][]string{{"part", "time", "interval", "share"}}
	for _, r := range a.Parts {
		lines = append(lines, []string{r.Name, r.Value, r.Interval, r.Share})
	}
	return sheetOf(a.ID, lines)
}

// partSheet is a kind's table as a sheet. A group's name stands in a line of its own.
func partSheet(t *show.Table) *sheet {
	var head []string
	for _, h := range t.Heads {
		head = append(head, strings.TrimSpace(h.Text+" "+html.UnescapeString(string(h.Small))))
		for range max(h.Span, 1) - 1 {
			head = append(head, "")
		}
	}
	lines := [][]string{head}
	for _, r := range t.Rows {
		line := []string{r.Name}
		for _, c := range r.Cells {
			line = append(line, c.Text)
			for range max(c.Span, 1) - 1 {
				line = append(line, "")
			}
		}
		lines = append(lines, line)
	}
	return sheetOf(chart.Slug(t.Caption+" "+t.Label), lines)
}

// CSV is the cost of the ruler as a sheet.
func (p page) RulerCSV() *sheet {
	lines := [][]string{{"host", "platform", "engine", "accelerator", "guests", "median_s", "low_s", "high_s", "round_trip_s"}}
	for _, r := range p.Summary.Ruler {
		lines = append(lines, []string{r.Host, r.Platform, r.Engine, r.Accelerator, strconv.Itoa(r.Guests), exact(r.Median), exact(r.Low), exact(r.High), exact(r.RoundTrip)})
	}
	return sheetOf("measurement-overhead", lines)
}

// CSV is the fits as a sheet.
func (w sizeWork) CSV() *sheet {
	lines := [][]string{{"platform", "pto", "pto_low", "pto_high", "kappa", "kappa_low", "kappa_high", "pso", "pso_low", "pso_high", "at"}}
	for _, f := range w.Fits {
		lines = append(lines, []string{f.Name, exact(f.PTO.Value), exact(f.PTO.Low), exact(f.PTO.High), exact(f.PerCPU.Value), exact(f.PerCPU.Low), exact(f.PerCPU.High),
			exact(f.PSO.Value), exact(f.PSO.Low), exact(f.PSO.High), f.At})
	}
	return sheetOf(w.ID, lines)
}
