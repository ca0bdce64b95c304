package chart

import (
	"math"

	"tare/desk/data"
	"tare/desk/words"
)

// ratios is a dot and a whisker for each treatment: its ratio to the baseline.
func ratios(p *Panel, stem string) *Figure {
	if p.Staircase != nil {
		return nil
	}
	var marks []Mark
	has, doubts := false, false
	for i, row := range p.Rows {
		if !row.Representative {
			continue
		}
		m := p.Mark(i)
		m.Dots, m.IsReference = nil, row.IsBaseline()
		m.Value, m.Low, m.High = row.Ratio, data.Floor(row.Metric, row.RatioLow), row.RatioHigh
		m.Words = words.Measured(m.Value, m.Low, m.High, "")
		switch {
		case m.IsReference:
			m.Words = "1"
		case !math.IsNaN(row.Ratio):
			has = true
		case m.Missing == "":
			m.Missing = "no ratio"
		}
		if row.Doubtful {
			doubts = true
			for j := range m.Names {
				m.Names[j] += " ?"
			}
		}
		marks = append(marks, m)
	}
	if !has {
		return nil
	}
	baseline := words.Baseline(p.Rows)
	what := "Ratio to " + baseline
	if m := p.Rows[0].Metric; m.Better != "" {
		what = "Ratio of " + p.metric() + " to " + baseline
	}
	f := &Figure{File: stem + "-ratio", Title: p.Beside(what), How: words.RatioMarks(p.Rows)}
	if doubts {
		f.Caption = words.DoubtfulIsMarked
	}
	f.Alt = InWords("Marks with intervals. ", marks)
	axis := "times " + baseline
	if d := words.Direction(p.Rows[0].Metric); d != "" {
		axis += ", " + d
	}
	l := &list{axis: axis, pitch: 22, marks: marks}
	l.low, l.high = ratioSpan(marks)
	c := l.draw()
	c.rule(ink, 1, c.x(1))
	c.intervals(marks)
	f.Picture = c.Picture
	return f
}

// intervals draws each mark on its line, with its interval.
func (f *frame) intervals(marks []Mark) {
	for i, m := range marks {
		if m.Missing != "" {
			continue
		}
		if m.hasInterval() && !m.IsReference {
			f.whisker(m.style.platform, 1.6, true, f.middle[i], f.x(m.Low), f.x(m.High), f.x0, f.x1)
		}
		f.symbol(m.style, f.in(m.Value), f.middle[i])
	}
}
