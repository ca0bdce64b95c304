package memory

import (
	"tare/desk/chart"
	"tare/stats"
)

// drawWeights draws the memory of each guest over the number of guests (Figure 6.2 of "virtualization-overheads"): a line for each
// treatment, and a second one if pages were merged. Each place of the panel needs an axis of its own, so the figure shows the last
// place.
func drawWeights(p *chart.Panel, stem string) *chart.Figure {
	drawn := &chart.Paths{Axis: linesAxis}
	emulated, merged, long := false, false, false
	for i, r := range p.Rows {
		w := weightsOf(r)
		if w == nil || r.Treatment.AA || p.Places[i] != p.Places[len(p.Places)-1] {
			continue
		}
		for j, points := range [][]Weighing{w.Points, w.Merged} {
			line := chart.Path{Mark: p.Mark(i)}
			if j > 0 {
				line.After, line.Dash = withKSM, []float64{5, 3}
			}
			for _, at := range points {
				if at.PSS.Value > 0 && stats.Finite(at.PSS.Value) {
					line.Points = append(line.Points, chart.Point{X: float64(at.Guests), Y: at.PSS})
				}
			}
			if len(line.Points) > 0 {
				drawn.Lines = append(drawn.Lines, line)
				emulated, merged, long = emulated || !r.Representative, merged || j > 0, long || len(line.Points) > 1
			}
		}
	}
	if !long {
		return nil // bars show it
	}
	f := &chart.Figure{File: stem + "-guests", Title: p.Beside(linesTitle), How: linesHow(p.Rows, merged), Alt: linesAlt(p.Rows[0].Metric, drawn.Lines), Picture: drawn.Draw()}
	if emulated {
		f.Caption = linesEmulated
	}
	return f
}

// drawAdded draws what one more guest adds, divided into anonymous memory and files (Figures 6.3 and 6.4).
func drawAdded(p *chart.Panel, stem string) *chart.Figure {
	b := &chart.Bars{Axis: addedAxis, Pitch: 22}
	var from, to int
	var said []string
	high, emulated := 0.0, false
	for i, r := range p.Rows {
		w := weightsOf(r)
		if w == nil || w.Added == nil || r.Treatment.AA {
			continue
		}
		a := w.Added
		if !stats.Finite(a.PSS.Value) || !stats.Finite(a.Anonymous.Value) || !stats.Finite(a.File.Value) {
			continue
		}
		bar := chart.Bar{Mark: p.Mark(i), Solid: max(a.Anonymous.Value, 0)}
		bar.Dots, bar.Value, bar.Low, bar.High = nil, a.PSS.Value, a.PSS.Low, a.PSS.High
		files := max(a.File.Value, 0)
		bar.End = bar.Solid + files
		bar.Words = measured(a.PSS)
		b.Bars, said = append(b.Bars, bar), append(said, addedSaid(bar, files))
		high, emulated = max(high, bar.End), emulated || !r.Representative
		from, to = a.From, a.To
	}
	if len(b.Bars) == 0 || !b.Reach(high) {
		return nil
	}
	return &chart.Figure{
		File: stem + "-added", Title: p.Beside(addedTitle), How: addedHow, Caption: addedCaption(from, to, emulated), Alt: addedAlt(said), Picture: b.Draw(),
	}
}
