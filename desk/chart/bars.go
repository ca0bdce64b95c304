package chart

// Bars is a figure with one bar for each mark, side by side on one axis that starts at 0.
type Bars struct {
	Axis      string
	Low, High float64
	Pitch     float64 // height of a line
	Bars      []Bar
}

// Bar is the bar of a mark. A reference has a line at its value instead.
type Bar struct {
	Mark
	Look  Look
	Solid float64 // up to where it is solid, of one in parts; the rest is pale
	End   float64 // where it ends
}

// Look is how a bar is filled.
type Look int

// Looks.
const (
	InParts Look = iota // solid, then pale
	Whole               // as the mark's treatment is
	White               // of nothing that has a colour
	Grey
)

// Reach has the axis hold what the bars reach, so far at least; false where that is nothing.
func (b *Bars) Reach(high float64) bool {
	low, high := span(b.marks(), 0, high, 0.1*high)
	b.Low, b.High = min(low, 0), 1.04*high
	return b.High > 0
}

func (b *Bars) marks() (all []Mark) {
	for _, bar := range b.Bars {
		all = append(all, bar.Mark)
	}
	return all
}

// Draw draws it.
func (b *Bars) Draw() *Picture {
	l := &list{axis: b.Axis, low: b.Low, high: b.High, pitch: b.Pitch, marks: b.marks()}
	f := l.draw()
	for i, bar := range b.Bars {
		top, foot := f.middle[i]-7, f.middle[i]+7
		if bar.IsReference {
			f.line(muted, 2, f.in(bar.Value), top, f.in(bar.Value), foot)
			continue
		}
		switch bar.Look {
		case InParts:
			solid, pale := bar.style, bar.style
			solid.solid, pale.solid, solid.pattern, pale.pattern = true, false, 0, 0
			if bar.Solid > 0 {
				f.box(solid, f.in(0), top, f.in(bar.Solid), foot)
			}
			if bar.End > bar.Solid {
				f.box(pale, f.in(bar.Solid), top, f.in(bar.End), foot)
			}
		case Whole:
			f.box(bar.style, f.in(0), top, f.in(bar.End), foot)
		case White, Grey:
			fill := paper
			if bar.Look == Grey {
				fill = grid
			}
			box := rect(f.in(0), f.middle[i]-6, f.in(bar.End), f.middle[i]+6)
			f.area(fill, box...)
			f.lines(ink, 0.8, nil, append(box, box[0])...)
		}
		if bar.hasInterval() {
			f.whisker(ink, 1.2, true, f.middle[i], f.x(bar.Low), f.x(bar.High), f.x0, f.x1)
		}
	}
	f.rule(ink, 1, f.in(0))
	return f.Picture
}
