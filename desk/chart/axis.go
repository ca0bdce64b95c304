package chart

import (
	"math"
	"slices"

	"tare/desk/words"
	"tare/stats"
)

// tick is a named value of an axis.
type tick struct {
	value float64
	label string
}

// ticks are about so many round values of a range, the multiples of 1, 2 or 5 times a power of ten, written with as few
// digits as tell them apart.
func ticks(low, high float64, n int) []tick {
	if !(high > low) || math.IsInf(high-low, 0) {
		return nil
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/float64(n))))
	for _, k := range []float64{1, 2, 5, 10} {
		if (high-low)/(k*step) <= float64(n) {
			step *= k
			break
		}
	}
	digits := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	var list []tick
	for i := math.Ceil(low/step - 1e-9); i*step <= high*(1+1e-12); i++ {
		label := "0"
		if i != 0 {
			label = words.Number(i*step, digits)
		}
		list = append(list, tick{i * step, label})
	}
	return list
}

// Mark is a value with its interval, in a figure.
type Mark struct {
	Group       string   // its place on the figure's axis, as the instance type: the heading over it and those that follow
	Names       []string // "Docker, CPU set (--cpuset-cpus)", and where there is little room "Docker, CPU set"
	under       [2]string
	style       style
	Value       float64
	From        float64 // where the bar of a part begins
	Low, High   float64
	Dots        []float64
	titles      []string // of the dots
	Words       string   // the value with its interval
	Missing     string   // why there is no value
	IsReference bool
	Faint       bool // the name is muted
	Plain       bool // what is said is in ink, not muted
}

// Part is a part of what the mark stands for, as a solid or a pale bar.
func (m Mark) Part(name string, solid bool) Mark {
	part := Mark{Group: m.Group, Names: []string{name}, style: m.style, Low: math.NaN(), High: math.NaN()}
	part.style.solid, part.style.pattern = solid, 0
	return part
}

// said is the text next to a mark.
func (m *Mark) said() string {
	if m.Missing != "" {
		return m.Missing
	}
	return m.Words
}

func (m *Mark) hasInterval() bool { return !math.IsNaN(m.Low) && !math.IsNaN(m.High) }

// span is the range of an axis: it holds the values given and those of the marks, and of their intervals as much as does not
// squash the rest: as far beyond the values as these reach, or so much room.
func span(marks []Mark, low, high, room float64) (from, to float64) {
	for _, m := range marks {
		for _, v := range append([]float64{m.Value}, m.Dots...) {
			if stats.Finite(v) {
				low, high = math.Min(low, v), math.Max(high, v)
			}
		}
	}
	room = math.Max(room, high-low)
	from, to = low, high
	for _, m := range marks {
		if !math.IsNaN(m.Low) {
			from = math.Min(from, math.Max(m.Low, low-room))
		}
		if !math.IsNaN(m.High) {
			to = math.Max(to, math.Min(m.High, high+room))
		}
	}
	return from, to
}

// ratioSpan is the range of an axis of ratios, with 1 in it.
func ratioSpan(marks []Mark) (low, high float64) { return changeSpan(marks, 1) }

// changeSpan is the range of an axis of changes, with no change in it: 1 of ratios, 0 of per cent.
func changeSpan(marks []Mark, no float64) (low, high float64) {
	room := 0.1
	if no == 0 {
		room = 1
	}
	var lengths []float64 // of intervals, each from the change to its farther end
	for _, m := range marks {
		if l := math.Max(m.Value-m.Low, m.High-m.Value); !m.IsReference && stats.Finite(l) {
			lengths = append(lengths, l)
		}
	}
	if len(lengths) > 0 {
		// What is about as long as the others is shown whole.
		room = math.Max(room, 3*stats.Median(lengths))
	}
	low, high = span(marks, no, no, room)
	pad := (high - low) * 0.04
	if pad == 0 {
		pad = room / 2
	}
	return low - pad, high + pad
}

// list is the layout of figures that have a line for each mark: names on the left, on the right the words for each, and
// between them a plot with one axis.
type list struct {
	axis      string // what the values are, with their unit
	right     string // what stands on the right, where that must be said
	low, high float64
	pitch     float64 // height of a line
	signed    bool    // the axis has changes: what is above 0 has a plus
	marks     []Mark
}

// frame is a list's plot: where its marks are to be drawn.
type frame struct {
	*Picture
	x0, x1    float64
	low, high float64
	pitch     float64
	middle    []float64    // of each line
	blocks    [][2]float64 // upper and lower end of what stands under one heading
}

// rule draws a line at a place from the first line to the last, and none through the headings.
func (f *frame) rule(col colour, width, x float64) {
	for _, b := range f.blocks {
		f.line(col, width, x, b[0], x, b[1])
	}
}

// x is a value's place; beyond the axis a little outside the plot.
func (f *frame) x(v float64) float64 {
	return f.x0 + (f.x1-f.x0)*within((v-f.low)/(f.high-f.low), -0.05, 1.05)
}

// in is a value's place within the plot.
func (f *frame) in(v float64) float64 { return within(f.x(v), f.x0, f.x1) }

// draw draws a list's texts and grid.
func (l *list) draw() *frame {
	const gap, mostName, mostSaid = 8, 172, 150
	// Columns are as wide as what stands in them; where a name is too long, all take their briefer form.
	form, names, said := 0, 0.0, 0.0
	for i := range l.marks {
		it := &l.marks[i]
		for form < len(it.Names)-1 && width(it.Names[form], textSize) > mostName {
			form++
		}
		said = max(said, width(it.said(), smallSize))
	}
	called := make([]string, len(l.marks))
	for i := range l.marks {
		called[i] = l.marks[i].Name(form)
		names = max(names, width(called[i], textSize))
	}
	names, said = min(names, mostName), min(said, mostSaid)
	called = distinct(called, textSize, names)
	at := 8.0
	if l.axis != "" {
		at += 16
	}
	long := len(l.marks) > 15 // its end is not seen with its beginning: the axis is named at both
	if long {
		at += 14
	}
	f := &frame{Picture: &Picture{w: pageWidth}, x0: 2 + names + gap + 4, x1: pageWidth - 2 - said - gap, low: l.low, high: l.high, pitch: l.pitch}
	right := fit(l.right, smallSize, pageWidth/2)
	f.text(pageWidth-2, 13, end, smallSize, muted, right)
	axis := fit(l.axis, smallSize, pageWidth-8-width(right, smallSize)-gap)
	f.text(min(f.x0, pageWidth-2-width(right, smallSize)-gap-width(axis, smallSize)), 13, start, smallSize, muted, axis)
	scale := ticks(l.low, l.high, max(2, int((f.x1-f.x0)/40)))
	for i := range scale {
		if l.signed {
			scale[i].label = words.Signed(scale[i].label)
		}
	}
	block := at // where the lines under one heading begin
	for i := range l.marks {
		it := &l.marks[i]
		if it.Group != "" && (i == 0 || l.marks[i-1].Group != it.Group) {
			if i > 0 {
				f.blocks = append(f.blocks, [2]float64{block, at})
			}
			at += 21
			f.text(2, at-6, start, smallSize, muted, fit(it.Group, smallSize, pageWidth-4))
			f.line(grid, 0.7, 2, at-1, pageWidth-2, at-1)
			block = at
		}
		mid := at + l.pitch/2
		f.middle = append(f.middle, mid)
		col, tone := ink, muted
		if it.Faint {
			col = muted
		}
		if it.Plain {
			tone = ink
		}
		f.text(2, mid+4, start, textSize, col, called[i])
		f.text(pageWidth-2, mid+4, end, smallSize, tone, fit(it.said(), smallSize, said))
		at += l.pitch
	}
	f.blocks = append(f.blocks, [2]float64{block, at})
	f.h = at + 18
	for _, t := range scale {
		f.rule(grid, 0.7, f.x(t.value))
	}
	for _, t := range apart(scale, f.x, smallSize, 0, pageWidth) {
		f.text(f.x(t.value), at+12, middle, smallSize, muted, t.label)
		if long {
			f.text(f.x(t.value), 27, middle, smallSize, muted, t.label)
		}
	}
	return f
}

// Name is in one of its forms, from the longest to the briefest.
func (m *Mark) Name(form int) string { return m.Names[min(form, len(m.Names)-1)] }

// apart are the ticks whose labels do not touch each other and stay within bounds.
func apart(list []tick, x func(float64) float64, size, low, high float64) []tick {
	last := low
	return slices.DeleteFunc(slices.Clone(list), func(t tick) bool {
		half := width(t.label, size) / 2
		if x(t.value)-half < last || x(t.value)+half > high {
			return true
		}
		last = x(t.value) + half + 4
		return false
	})
}
