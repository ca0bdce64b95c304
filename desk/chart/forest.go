package chart

import (
	"math"
	"slices"

	"tare/desk/data"
	"tare/desk/model"
	"tare/desk/words"
	"tare/notebook"
)

// changes is a dot and a whisker for each treatment: its change against the baseline. It is in per cent, or where some of it is large a ratio.
func changes(p *Panel, stem string) *Figure {
	if p.Staircase != nil {
		return nil
	}
	share := p.inPerCent()
	marks, has, doubts := p.changes(share)
	if !has {
		return nil
	}
	baseline := words.Baseline(p.Rows)
	what, axis := words.ChangeTitle+baseline, words.Against100(baseline)
	if !share {
		what, axis = "Ratio to "+baseline, "times "+baseline
	}
	if m := p.Rows[0].Metric; m.Better != "" || words.HasRate(p.Rows[0]) {
		what += ", " + p.metric()
	}
	f := &Figure{File: stem + "-change", Title: p.Beside(what), How: words.RatioMarks(p.Rows, share, p.margin())}
	if doubts {
		f.Caption = words.DoubtfulIsMarked
	}
	f.say(p.about)
	if p.axis == notebook.FactorHostCores.Name {
		f.say(words.Separated(model.AcrossHosts(p.summary, p.Rows), p.named))
	}
	f.Alt = InWords("Marks with intervals. ", marks)
	if d := words.Direction(p.Rows[0].Metric); d != "" {
		axis += ", " + d
	}
	l := &list{axis: axis, pitch: 22, marks: marks, signed: share}
	no, ends := 1.0, []float64{1 / (1 + p.margin()), 1 + p.margin()}
	if share {
		no, ends = 0, []float64{100 * (ends[0] - 1), 100 * p.margin()}
	}
	l.low, l.high = changeSpan(marks, no)
	c := l.draw()
	for _, end := range ends {
		if p.margin() > 0 && end > l.low && end < l.high {
			c.rule(muted, 0.5, c.x(end))
		}
	}
	c.rule(ink, 1, c.x(no))
	c.intervals(marks)
	f.Picture = c.Picture
	return f
}

// margin is the smallest difference that matters; 0: not known.
func (p *Panel) margin() float64 {
	if p.summary == nil {
		return 0
	}
	return p.summary.Margin()
}

// inPerCent says whether all of a panel's changes are small enough for per cent.
func (p *Panel) inPerCent() bool {
	return !slices.ContainsFunc(p.Rows, func(r *data.Row) bool { return r.Representative && r.Ratio >= 2 })
}

// changes are the marks of a panel's changes. has: there is one; doubts: one of them is doubtful.
func (p *Panel) changes(share bool) (marks []Mark, has, doubts bool) {
	for i, row := range p.Rows {
		if !row.Representative {
			continue
		}
		m := p.Mark(i)
		m.Dots, m.titles, m.IsReference = nil, nil, row.IsBaseline()
		q := row.Quotient()
		q.Low = data.Floor(row.Metric, q.Low)
		m.Value, m.Low, m.High = q.Value, q.Low, q.High
		m.Words = words.Measured(m.Value, m.Low, m.High, "")
		if share {
			m.Value, m.Low, m.High = 100*(q.Value-1), 100*(q.Low-1), 100*(q.High-1)
			m.Words = words.PerCent(q)
		}
		switch {
		case m.IsReference && share:
			m.Words = "reference"
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
	return marks, has, doubts
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
