package terminal

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/desk/show"
	"tare/desk/words"
	"tare/notebook"
	"tare/stats"
)

// Summary writes the first answer, and then all that is known: tables of every row with every metric, and every doubt in brief. The report has
// them in full. Headings are bold and what is not ranked is dim.
func Summary(w io.Writer, s *data.Summary, on Screen) error {
	t := &text{Screen: on}
	t.answer(s, true)
	t.details(s)
	return t.flush(w)
}

// details writes the tables of every row, and every doubt.
func (t *text) details(s *data.Summary) {
	for _, rows := range s.Tables() {
		t.line("")
		t.secondary(rows, s, t.rows(rows, s))
		for _, of := range data.InFigures(rows) {
			t.line("")
			t.secondary(of, s, t.rows(of, s))
		}
	}
	t.footnotes()
	t.list(words.AgainstUsual, words.Machines(s))
	var lines []string
	for _, a := range s.AA {
		lines = append(lines, words.CheckWhere(s, a)+": "+words.Check(a))
	}
	for _, c := range s.Calibrations {
		if of, says := words.Calibrated(s, c); says != "" {
			lines = append(lines, of+": "+says)
		}
	}
	t.list(words.AgainstItself, lines)
	lines = nil
	for _, r := range s.Ruler {
		lines = append(lines, words.RulerCost(s, r))
	}
	t.list("Measurement overhead", lines)
	lines = nil
	for _, of := range words.Omissions(s) {
		what := words.LeftOut(s, of[0])
		if more := len(of) - 1; more > 0 {
			what += fmt.Sprintf(" and %d more", more)
		}
		lines = append(lines, what+": "+words.Message(of[0].Reason))
	}
	t.list("Left out", lines)
	lines = nil
	for _, x := range s.Warnings {
		lines = append(lines, fmt.Sprintf("%s (%s of %s)", words.Text(x.Text), words.Count(x.Count, "trial"), words.Count(len(x.Treatments), "treatment")))
	}
	t.list("Warnings", lines)
	t.list("Notes", words.Doubts(s.Doubts))
}

// rows writes the table of the metric, and returns those of its columns that there is no room for.
func (t *text) rows(rows []*data.Row, s *data.Summary) (over []column) {
	cols := names(rows, s)
	n := len(cols)
	cols = append(cols, column{head: "mean", gap: 2, right: true}, column{head: "95 %", gap: 1},
		column{head: "ratio", gap: 2, right: true}, column{head: "95 %", gap: 1}, column{head: "trials", gap: 2, right: true}, column{gap: 2})
	for _, r := range rows {
		mean, meanOf := meanFigure(r.Mean, r.MeanLow, r.MeanHigh)
		ratio, ratioOf := ratioFigure(r)
		trials := fmt.Sprint(r.Trials)
		if r.Failed > 0 {
			trials = fmt.Sprintf("%d, %d failed", r.Trials, r.Failed)
		}
		for c, cell := range []string{mean, meanOf, ratio, ratioOf, trials, t.mark(footnotes(r.Doubts))} {
			cols[n+c].cells = append(cols[n+c].cells, data.Printable(cell))
		}
	}
	r := rows[0]
	head, unit := words.Place(r), ""
	if on := words.Online(s, r); on != "" {
		head += " " + on
	}
	head += ": " + words.Caption(r.Metric.Name)
	if r.Metric.Unit != "" && r.Metric.Unit != "1" {
		unit = " in " + r.Metric.Unit
	}
	// Too narrow: the mean goes first, with its interval (the ratio is what is asked for), then the count of trials.
	if !t.fits(cols) {
		over = append(over, figures(metric(r.Metric), cols[n], cols[n+1]))
		cols, unit = slices.Delete(cols, n, n+2), ""
	}
	if d := words.Direction(r.Metric); d != "" {
		unit += ", " + d
	}
	if !t.fits(cols) {
		over = append(over, cols[n+2])
		cols = slices.Delete(cols, n+2, n+3)
	}
	t.wrap("", head+unit+words.Head(s, r)+words.Image(s, r))
	t.grid(cols, faint(rows))
	return over
}

// figures is one column of values and their intervals: its head stands over both.
func figures(head string, value, of column) column {
	value.head, of.head, value.gap = "", "", 0
	c := column{head: head, gap: 2}
	for i := range value.cells {
		c.cells = append(c.cells, line([]column{value, of}, func(c column) string { return c.cells[i] }))
	}
	return c
}

func metric(m notebook.Metric) string {
	name := data.Printable(words.Caption(m.Name))
	if u := m.Unit; u != "" && u != "1" {
		name += ", " + data.Printable(u)
	}
	return name
}

// secondary writes the columns that did not fit in the table above, and the secondary metrics that the rows' workload has. It puts as
// many columns in a table as fit, and the others below. It writes a value that all rows share only once.
func (t *text) secondary(rows []*data.Row, s *data.Summary, cols []column) {
	first, kind := names(rows, s), show.Of(s, rows[0])
	var constant []string
	elsewhere := 0
	for _, m := range data.SecondaryColumns(rows) {
		if kind != nil && kind.Short != nil && !slices.Contains(kind.Short, m.Metric) {
			elsewhere++
			continue
		}
		head := metric(m.Metric)
		if m.Constant {
			constant = append(constant, fmt.Sprintf("%s %.4g", head, m.First.Mean))
			continue
		}
		mean, half := column{right: true}, column{gap: 1}
		for _, a := range m.Of {
			v, of := "-", ""
			if a != nil {
				v, of = meanFigure(a.Mean, a.Low, a.High)
			}
			mean.cells, half.cells = append(mean.cells, v), append(half.cells, of)
		}
		cols = append(cols, figures(head, mean, half))
	}
	for len(cols) > 0 {
		n := 1
		for n < len(cols) && t.fits(append(slices.Clone(first), cols[:n+1]...)) {
			n++
		}
		t.line("")
		t.grid(append(slices.Clone(first), cols[:n]...), faint(rows))
		cols = cols[n:]
	}
	if elsewhere > 0 {
		t.wrap("", words.MoreMetrics(elsewhere))
	}
	if len(constant) > 0 {
		t.wrap("", "The same for all: "+strings.Join(constant, "; ")+".")
	}
	if said := words.Percentiles(rows); said != "" {
		t.wrap("", said)
	}
}

// names are the columns that say which row it is.
func names(rows []*data.Row, s *data.Summary) []column {
	instance, platform, network := column{head: "instance"}, column{head: "environment", gap: 2}, column{head: "network", gap: 2}
	for i := range rows {
		name := rows[i].Treatment.Instance.Name
		if i > 0 && rows[i-1].Treatment.Instance.Name == name {
			name = ""
		}
		instance.cells = append(instance.cells, data.Printable(name))
		platform.cells = append(platform.cells, words.Environment(rows[i].Treatment, false))
		network.cells = append(network.cells, data.Printable(rows[i].Treatment.Network))
	}
	if s.Networks(rows[0].Treatment.Workload) {
		return []column{instance, platform, network}
	}
	return []column{instance, platform}
}

// meanFigure writes a mean and the half width of its interval, which lies evenly about it.
func meanFigure(mean, low, high float64) (value, half string) {
	switch {
	case math.IsNaN(mean):
		return "-", ""
	case !stats.Finite(low) || !stats.Finite(high):
		return fmt.Sprintf("%.4g", mean), "none"
	case high == low:
		return fmt.Sprintf("%.4g", mean), "±0"
	}
	// Two digits of the half width.
	h := (high - low) / 2
	d := min(max(1-int(math.Floor(math.Log10(h))), 0), 9)
	return fmt.Sprintf("%.*f", d, mean), fmt.Sprintf("±%.*f", d, h)
}

// ratioFigure writes a row's ratio and its interval.
func ratioFigure(r *data.Row) (ratio, of string) {
	switch {
	case math.IsNaN(r.Ratio):
		return "-", ""
	case r.IsBaseline():
		return "1", "baseline"
	case !stats.Finite(r.RatioLow) || !stats.Finite(r.RatioHigh):
		return fmt.Sprintf("%.2f", r.Ratio), "none"
	}
	d, to := words.Decimals(r.RatioHigh-r.RatioLow), "–"
	if r.RatioLow < 0 {
		to = " to "
	}
	return fmt.Sprintf("%.*f", d, r.Ratio), fmt.Sprintf("%.*f%s%.*f", d, r.RatioLow, to, d, r.RatioHigh)
}

// faint says which rows are not ranked.
func faint(rows []*data.Row) func(int) bool {
	return func(i int) bool { return !rows[i].Representative || rows[i].Doubtful }
}

func footnotes(doubts []data.Doubt) (notes []string) {
	for _, d := range doubts {
		notes = append(notes, words.Footnote(d))
	}
	return notes
}
