package chart

import (
	"fmt"
	"math"
	"slices"

	"tare/desk/data"
	"tare/desk/words"
	"tare/stats"
)

// manyWorkloads is from how many rows on a heat map is worth a look.
const manyWorkloads = 4

// heat is a cell for each workload and environment of a summary.
type heat struct {
	rows    []string
	columns []heatColumn
	cells   map[[2]int]*data.Row
}

type heatColumn struct {
	name  string
	brief [2]string
}

// Heat draws a summary's changes by workload and environment; nil where there are few of either.
func Heat(s *data.Summary) *Figure {
	h := heatOf(s)
	if len(h.rows) < manyWorkloads || len(h.columns) == 0 {
		return nil
	}
	f := &Figure{File: "heat", Title: words.HeatTitle, How: words.HeatMarks(s)}
	const mostName, tall, head = 170, 22, 34
	wide := 0.0
	for _, r := range h.rows {
		wide = max(wide, width(r, textSize))
	}
	left := 2 + min(wide, mostName) + 8
	step := min((pageWidth-left-2)/float64(len(h.columns)), 84)
	c := &Picture{w: pageWidth, h: head + tall*float64(len(h.rows)) + 4}
	for j, k := range h.columns {
		mid := left + step*(float64(j)+0.5)
		c.text(mid, 13, middle, smallSize, ink, fit(k.brief[0], smallSize, step-2))
		c.text(mid, 26, middle, smallSize, muted, fit(k.brief[1], smallSize, step-2))
	}
	var said []Mark
	for i, name := range h.rows {
		y := head + tall*float64(i)
		c.text(2, y+15, start, textSize, ink, fit(name, textSize, mostName))
		for j, k := range h.columns {
			r := h.cells[[2]int{i, j}]
			if r == nil || math.IsNaN(r.Ratio) {
				continue
			}
			c.cell(s, r, left+step*float64(j), y, step, tall)
			said = append(said, Mark{Group: name, Names: []string{k.name}, Words: words.PerCent(r.Quotient())})
		}
	}
	f.Alt, f.Picture = InWords("Cells. ", said), c
	finished := f.finish(map[string]bool{})
	return &finished
}

// cell draws one change.
func (c *Picture) cell(s *data.Summary, r *data.Row, x, y, wide, tall float64) {
	fill := paper
	verdict := s.Verdict(r)
	switch verdict {
	case stats.Slower:
		fill = slow
	case stats.Faster:
		fill = fast
	}
	box := rect(x+1, y+1, x+wide-1, y+tall-1)
	edge, thick := grid, 0.7
	if math.Abs(r.Ratio-1) >= seen && fill != paper {
		edge, thick = ink, 1.4
	}
	c.list = append(c.list, shape{lines: [][]point{box}, closed: true, fill: fill, stroke: edge, width: thick})
	text := words.Signed(words.Number(100*(r.Ratio-1), 1)) + " %"
	if r.Ratio >= 2 {
		text = fmt.Sprintf("%.3g×", r.Ratio)
	}
	if verdict == stats.Inconclusive {
		text += " ?"
	}
	c.text(x+wide/2, y+15, middle, smallSize, ink, fit(text, smallSize, wide-6))
}

// heatOf collects what can be ranked.
func heatOf(s *data.Summary) heat {
	h := heat{cells: map[[2]int]*data.Row{}}
	for _, rows := range s.Places() {
		line := -1
		for _, r := range rows {
			if !r.Representative || r.Treatment.AA || r.IsBaseline() || math.IsNaN(r.Ratio) || r.Treatment.Isolation != "" {
				continue
			}
			if line < 0 {
				h.rows = append(h.rows, words.Where(s, rows[0]))
				line = len(h.rows) - 1
			}
			name := words.EnvironmentOf(s, r)
			column := slices.IndexFunc(h.columns, func(k heatColumn) bool { return k.name == name })
			if column < 0 {
				h.columns = append(h.columns, heatColumn{name, words.Brief(r.Treatment)})
				column = len(h.columns) - 1
			}
			h.cells[[2]int{line, column}] = r
		}
	}
	return h
}
