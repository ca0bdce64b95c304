package chart

import (
	"math"
	"slices"

	"tare/desk/data"
	"tare/desk/words"
)

// strips is a line of dots for each treatment: every trial, on an axis that is as long as the trials need.
func strips(p *Panel, stem string) *Figure {
	if p.Staircase != nil {
		return nil
	}
	share := len(slices.Compact(slices.Clone(p.Places))) > 1
	var marks []Mark
	dots, sampled := 0, false
	for i, row := range p.Rows {
		if !row.Representative {
			continue
		}
		m := p.Mark(i)
		if share {
			m.against(p.base(i))
		}
		dots = max(dots, len(m.Dots))
		sampled = sampled || row.DotsOf > len(row.Dots)
		marks = append(marks, m)
	}
	if dots < 2 {
		return nil
	}
	f := &Figure{File: stem + "-runs", Title: p.Beside(words.SpreadTitle), How: words.SpreadMarks, Spread: true}
	axis := p.unit()
	if share {
		axis = words.Against100(words.Baseline(p.Rows))
	} else {
		f.say(words.AxisIsCut)
	}
	if sampled {
		f.say(words.DotsAreSampled)
	}
	f.Alt = InWords("Dots. ", marks)
	l := &list{axis: axis, pitch: 26, marks: marks, signed: share}
	l.low, l.high = math.Inf(1), math.Inf(-1)
	for _, m := range marks {
		for _, v := range m.Dots {
			l.low, l.high = min(l.low, v), max(l.high, v)
		}
	}
	room, low, high := l.high-l.low, l.low, l.high
	for _, m := range marks { // intervals are shown as far as they do not squash the dots
		if m.hasInterval() {
			l.low, l.high = min(l.low, max(m.Low, low-room/2)), max(l.high, min(m.High, high+room/2))
		}
	}
	pad := 0.05 * (l.high - l.low)
	if pad == 0 {
		pad = max(0.05*math.Abs(l.high), 1e-9)
	}
	l.low, l.high = l.low-pad, l.high+pad
	c := l.draw()
	for i, m := range marks {
		c.strip(m, c.middle[i])
	}
	f.Picture = c.Picture
	return f
}

// base is the mean that a row's runs are shown against: of the baseline at its place, or its own.
func (p *Panel) base(i int) float64 {
	for j, row := range p.Rows {
		if p.Places[j] == p.Places[i] && row.HostID == p.Rows[i].HostID && row.IsBaseline() && row.Mean > 0 {
			return row.Mean
		}
	}
	return p.Rows[i].Mean
}

// against makes a mark's values changes against a base, in per cent. Its words stay as they are.
func (m *Mark) against(base float64) {
	change := func(v float64) float64 { return 100 * (v/base - 1) }
	m.Value, m.Low, m.High = change(m.Value), change(m.Low), change(m.High)
	m.Dots = slices.Clone(m.Dots)
	for i, v := range m.Dots {
		m.Dots[i] = change(v)
	}
}

// strip draws a mark's trials along a line, with its mean and interval.
func (f *frame) strip(m Mark, y float64) {
	r := 2.0
	if len(m.Dots) > 40 {
		r = 1.5
	}
	var pts []point
	for i, v := range m.Dots {
		pts = append(pts, point{f.in(v), y + 13*(spread(i)-0.5)})
	}
	f.spots(m.style.platform, r, pts, m.titles)
	if math.IsNaN(m.Value) {
		return
	}
	if m.hasInterval() {
		f.whisker(ink, 1.2, true, y, f.x(m.Low), f.x(m.High), f.x0, f.x1)
	}
	f.line(ink, 1.6, f.in(m.Value), y-9, f.in(m.Value), y+9)
}

// spread spreads the i-th of many evenly between 0 and 1, always the same way.
func spread(i int) float64 {
	_, f := math.Modf(float64(i+1) * 0.6180339887498949)
	return f
}

// disturbed are the rounds of a panel in which other programs used much of the host.
func (p *Panel) disturbed() (blocks []data.Block) {
	for _, row := range p.Rows {
		for i := range row.Cells {
			if c := &row.Cells[i]; data.Disturbed(c.Beside) && !slices.Contains(blocks, c.Block) {
				blocks = append(blocks, c.Block)
			}
		}
	}
	return blocks
}
