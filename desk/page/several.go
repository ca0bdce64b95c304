package page

import (
	"fmt"
	"math"

	"tare/desk/chart"
	"tare/desk/data"
	"tare/desk/show"
	"tare/desk/words"
	"tare/notebook"
)

// severalPart shows several metrics at once: their figures, and a table of how much each treatment changes each metric (paper
// "cloud-benchmarking", Tables I to III).
type severalPart struct {
	ID, Title string
	Reference string       // what the treatments are compared with
	Figures   []pageFigure // none: it is only a table
	Heads     []string     // treatments
	Rows      []severalRow
	Published bool
}

// Columns is how many the table has.
func (t *severalPart) Columns() int { return 2 + 3*len(t.Heads) }

type severalRow struct {
	Name, Unit, Better string
	Base               string // what the baseline has
	Cells              []severalCell
}

type severalCell struct {
	Change    show.Value
	Published string
	Zero      bool // the interval holds zero
	Muted     bool
}

// severals makes the parts.
func severals(s *data.Summary, all []*data.Several, figs [][]chart.Figure) (parts []severalPart) {
	for i, v := range all {
		p := severalPart{ID: fmt.Sprintf("several-%d", i+1), Reference: plain(words.ReferenceOf(s)), Title: plain(v.Name + ": " + v.Title + " – " + v.Rows[0].Treatment.Instance.Name)}
		for j := range figs[i] {
			id := p.ID + "-figure"
			if j > 0 {
				id += fmt.Sprintf("-%d", j+1)
			}
			f := inPage(&figs[i][j], id)
			f.Heading = f.Title
			p.Figures = append(p.Figures, f)
		}
		var columns []int
		for j, r := range v.Rows {
			if len(s.Baseline) == 0 && r.Treatment.Platform != notebook.BM || len(s.Baseline) > 0 && !r.IsBaseline() {
				columns = append(columns, j)
				p.Heads = append(p.Heads, words.Environment(r.Treatment, true))
			}
		}
		for j := range v.On {
			a := &v.On[j]
			row := severalRow{Name: words.Plain(a.Name), Unit: words.Plain(a.Of.Unit), Better: "less", Base: "–"}
			switch {
			case !a.Of.Directed():
				row.Better = "neither less nor more"
			case a.Of.MoreIsBetter():
				row.Better = "more"
			}
			for _, r := range a.Rows {
				if r != nil && r.IsBaseline() && !math.IsNaN(r.Mean) {
					row.Base = words.PlusMinus(r.Mean, r.MeanLow, r.MeanHigh, 4)
				}
			}
			for _, k := range columns {
				published := math.NaN()
				if len(s.Baseline) == 0 { // what was published is against bare metal
					published = v.Published(a, v.Rows[k].Treatment)
				}
				row.Cells = append(row.Cells, p.cell(a, a.Rows[k], published))
			}
			p.Rows = append(p.Rows, row)
		}
		parts = append(parts, p)
	}
	return parts
}

// cell is how much more than the reference a treatment has of a metric, and what was published of it; NaN: nothing.
func (t *severalPart) cell(a *data.OnAxis, r *data.Row, published float64) severalCell {
	c := severalCell{Change: show.Value{Value: "–", Interval: "–"}, Published: "–"}
	if r != nil {
		c.Muted = !r.Representative || r.Doubtful
		if q := r.Quotient(); q.N > 0 && !math.IsNaN(q.Value) {
			c.Change = show.Valued(100*(q.Value-1), 100*(q.Low-1), 100*(q.High-1))
			c.Change.Value = words.Signed(c.Change.Value)
			c.Zero = q.HasInterval() && q.Contains(1)
		}
	}
	if !math.IsNaN(published) {
		c.Published = words.Signed(words.Number(published, 2))
		t.Published = true
	}
	return c
}
