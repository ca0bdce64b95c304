package starting

import (
	"slices"
	"strconv"
	"strings"

	"tare/desk/data"
	"tare/desk/show"
	"tare/desk/words"
	"tare/notebook"
	"tare/stats"
)

// line is a moment of a row.
type line struct {
	show.Row
	values []show.Value
}

// parts are the table of a group's starts by moment, with those of the paper (Table 5.1 of "virtualization-overheads"), and the
// notes on saving; none if no start was timed.
func parts(id, title string, rows []*data.Row, s *data.Summary) []show.Part {
	var lines []line
	var papers []show.Row
	var sentences strings.Builder
	for _, r := range rows {
		if r.Treatment.AA {
			continue
		}
		for i, m := range starts(r) {
			l := line{Row: show.Row{Muted: !r.Representative || r.Doubtful, Cells: []show.Cell{{Text: words.Caption(m.Moment)}, {Class: "n", Text: strconv.Itoa(m.Starts)}}}}
			if i == 0 {
				l.Name = words.Sized(s, r.Treatment)
			}
			for _, e := range []stats.Estimate{m.Median, m.Mean, m.P95, m.P99} {
				l.values = append(l.values, show.Valued(e.Value, max(e.Low, 0), e.High))
			}
			lines = append(lines, l)
		}
		c, is := r.Config.(config)
		if !is {
			continue
		}
		for _, n := range said(r) {
			if n = words.Sentence(n) + " "; !strings.Contains(sentences.String(), n) {
				sentences.WriteString(n)
			}
		}
		if papers == nil {
			papers = publishedOf(c)
		}
	}
	if lines == nil {
		return nil
	}
	t := &show.Table{ID: id + "-starts-name", Caption: caption + title, Heads: heads}
	for i := range lines[0].values {
		show.Align(lines, func(l *line) *show.Value { return &l.values[i] })
	}
	for _, l := range lines {
		l.Cells = append(l.Cells, show.Cells(l.values...)...)
		t.Rows = append(t.Rows, l.Row)
	}
	t.Rows = append(t.Rows, papers...)
	return []show.Part{{Table: t}, {Note: &show.Note{HTML: under, Text: sentences.String()}}}
}

// publishedOf are the rows of the papers' values, for each start and each restore.
func publishedOf(c config) (all []show.Row) {
	row := func(name, moment string, seconds float64) {
		all = append(all, show.Row{Muted: true, Name: published + name, Cells: slices.Concat(
			[]show.Cell{{Text: words.Caption(moment)}}, make([]show.Cell, 3), []show.Cell{{Class: "n", Text: words.Printed(seconds)}, {Span: 5}})})
	}
	for _, p := range c.Published {
		row(p.Name, p.Moment, p.StartS)
		if p.RestoreS > 0 {
			row(p.Name, notebook.MomentRestored, p.RestoreS)
		}
	}
	return all
}
