package page

import (
	"fmt"
	"math"
	"strings"

	"tare/desk/data"
	"tare/desk/show"
	"tare/desk/words"
	"tare/notebook"
)

// secondaryTable is the table of a group's secondary metrics: percentiles, rates.
type secondaryTable struct {
	ID       string
	Heads    []secondaryHead
	Rows     []secondaryRow
	Constant string // what is the same in every row, and what percentiles are; empty: nothing
}

// Columns is how many the table has.
func (t *secondaryTable) Columns() int { return 1 + 2*len(t.Heads) }

type secondaryHead struct{ Name, Unit string }

type secondaryRow struct {
	First              bool // of its instance type
	Instance, Platform string
	Sub                string
	Cells              []show.Value
	Muted              bool
}

// secondary makes the table of a group's secondary metrics; nil where its workload has none.
func secondary(id string, rows []*data.Row, s *data.Summary) *secondaryTable {
	columns := data.SecondaryColumns(rows)
	if columns == nil {
		return nil
	}
	t := &secondaryTable{ID: id}
	last := ""
	for _, r := range rows {
		row := secondaryRow{Instance: words.Plain(r.Treatment.Instance.Name), Platform: words.Platform(r.Treatment.Platform), Sub: subName(r.Treatment, s), Muted: !r.Representative || r.Doubtful}
		row.First, last = row.Instance != last, row.Instance
		t.Rows = append(t.Rows, row)
	}
	var constant []string
	for _, m := range columns {
		head := secondaryHead{Name: words.Called(m.Metric), Unit: words.Plain(m.Metric.Unit)}
		if head.Unit == "1" {
			head.Unit = ""
		}
		if m.Constant {
			v := m.First.Mean
			constant = append(constant, strings.TrimSpace(fmt.Sprintf("%s %s %s", head.Name, words.Number(v, words.Places(v, v, v)), head.Unit)))
			continue
		}
		cells := make([]show.Value, len(rows))
		for i, a := range m.Of {
			cells[i].Value = "–"
			if a == nil {
				continue
			}
			var half string
			if cells[i].Value, half = words.Half(a.Mean, a.Low, a.High, 9); half != "" {
				cells[i].Interval = "± " + half
			} else if !math.IsNaN(a.Mean) {
				cells[i].Interval = "no interval"
			}
		}
		show.Align(cells, func(c *show.Value) *show.Value { return c })
		t.Heads = append(t.Heads, head)
		for i := range t.Rows {
			t.Rows[i].Cells = append(t.Rows[i].Cells, cells[i])
		}
	}
	t.Constant = strings.TrimSpace(words.InEveryRow(constant) + " " + words.Percentiles(rows))
	return t
}

// subName is a treatment's name without its platform.
func subName(t notebook.Treatment, s *data.Summary) string {
	return words.BesidePlatform(t, s.Networks(t.Workload))
}
