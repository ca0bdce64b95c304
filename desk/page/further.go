package page

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/notebook"
)

// furtherTable is the table of a group's further figures: percentiles, rates.
type furtherTable struct {
	ID       string
	Heads    []furtherHead
	Rows     []furtherRow
	Constant string // what is the same in every row; empty: nothing
}

// Columns is how many the table has.
func (t *furtherTable) Columns() int { return 1 + 2*len(t.Heads) }

type furtherHead struct{ Name, Unit string }

type furtherRow struct {
	First              bool // of its instance type
	Instance, Platform string
	Sub                string
	Cells              []furtherCell
	Muted              bool
}

type furtherCell struct{ Value, Half string }

// further makes the table of a group's further figures; nil where its workload has none.
func further(id string, g *group, s *data.Summary) *furtherTable {
	var metrics []notebook.Metric
	for _, r := range g.rows {
		for _, a := range r.Also {
			if !slices.Contains(metrics, a.Metric) {
				metrics = append(metrics, a.Metric)
			}
		}
	}
	if metrics == nil {
		return nil
	}
	t := &furtherTable{ID: id}
	last := ""
	for _, r := range g.rows {
		row := furtherRow{Instance: plain(r.Treatment.Instance.Name), Platform: platformName(r.Treatment.Platform), Sub: subName(r.Treatment, s), Muted: !r.Representative || r.Doubtful}
		row.First, last = row.Instance != last, row.Instance
		t.Rows = append(t.Rows, row)
	}
	var constant []string
	for _, m := range metrics {
		head := furtherHead{Name: strings.ReplaceAll(plain(m.Name), "_", " "), Unit: plain(m.Unit)}
		if head.Unit == "1" {
			head.Unit = ""
		}
		cells := make([]furtherCell, len(g.rows))
		values := make([]*string, len(g.rows))
		same := len(g.rows) > 1
		first := math.NaN()
		for i, r := range g.rows {
			cells[i].Value = "–"
			values[i] = &cells[i].Value
			at := slices.IndexFunc(r.Also, func(a data.Also) bool { return a.Metric == m })
			if at < 0 {
				continue
			}
			a := r.Also[at]
			if math.IsNaN(first) {
				first = a.Mean
			}
			same = same && a.Mean == first && !(a.Low < a.High)
			d := decimals(a.Mean, a.Low, a.High)
			cells[i].Value = number(a.Mean, d)
			if half := (a.High - a.Low) / 2; !math.IsNaN(half) && !math.IsInf(half, 0) {
				cells[i].Half = "± " + number(half, d)
			} else if !math.IsNaN(a.Mean) {
				cells[i].Half = "no interval"
			}
		}
		if same {
			constant = append(constant, strings.TrimSpace(fmt.Sprintf("%s %s %s", head.Name, number(first, decimals(first, first, first)), head.Unit)))
			continue
		}
		alignPoints(values)
		t.Heads = append(t.Heads, head)
		for i := range t.Rows {
			t.Rows[i].Cells = append(t.Rows[i].Cells, cells[i])
		}
	}
	if constant != nil {
		t.Constant = "The same in every row: " + strings.Join(constant, ", ") + "."
	}
	return t
}

// subName is what a treatment's name has beside its platform.
func subName(t notebook.Treatment, s *data.Summary) string {
	n := strings.TrimPrefix(treatmentName(t, s.Networks(t.Workload)), platformName(t.Platform))
	return strings.Trim(n, ", ")
}
