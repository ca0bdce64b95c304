package chart

import (
	"math"
	"slices"
	"time"

	"tare/desk/data"
	"tare/desk/words"
	"tare/stats"
)

// plane is a plot of values over rounds or time, all against their treatment's mean: what moves them alike is the host.
type plane struct {
	*Picture
	x0, x1, y0, y1 float64 // of the plot; y0 is its upper end
	from, to       float64 // of x
	low, high      float64 // of y, in per cent
}

func (a *plane) x(v float64) float64 {
	return a.x0 + (a.x1-a.x0)*within((v-a.from)/(a.to-a.from), 0, 1)
}
func (a *plane) y(v float64) float64 {
	return a.y1 - (a.y1-a.y0)*within((v-a.low)/(a.high-a.low), 0, 1)
}

// trail is what one treatment gave, one after the other.
type trail struct {
	mark   Mark
	at, of []float64 // places, and values in per cent of the mean
	titles []string
}

// fewestRounds is how many rounds are worth a plot.
const fewestRounds = 3

// rounds is a line for each treatment: the mean of each round.
func rounds(p *Panel, stem string) *Figure {
	blocks := p.blocks()
	if p.Staircase != nil || len(blocks) < fewestRounds {
		return nil
	}
	trails := p.trails(func(i int, t *trail) {
		row := p.Rows[i]
		for _, v := range row.Values {
			t.at = append(t.at, float64(slices.Index(blocks, v.Block)+1))
			t.of = append(t.of, 100*(v.Mean/row.Mean-1))
			t.titles = append(t.titles, words.ARound(t.mark.Names[0], v, row.Metric.Unit))
		}
	})
	if trails == nil {
		return nil
	}
	bad := p.disturbed()
	f := &Figure{File: stem + "-rounds", Title: p.Beside(words.RoundsTitle), How: words.RoundMarks, Spread: true, Caption: words.Shaded(len(bad))}
	a := newPlane("round", 0.5, float64(len(blocks))+0.5, trails)
	for i, b := range blocks {
		if slices.Contains(bad, b) {
			a.shade(float64(i)+0.5, float64(i)+1.5)
		}
	}
	a.axes(len(blocks))
	for _, t := range trails {
		a.join(t)
	}
	f.Alt, f.Picture = InWords("Lines over rounds. ", marksOf(trails)), a.Picture
	return f
}

// course is a dot for each trial, at the time when it began. Sessions of several folders follow each other without the time between.
func course(p *Panel, stem string) *Figure {
	if p.Staircase != nil || len(p.blocks()) < fewestRounds {
		return nil
	}
	clock, length := p.clock()
	if length <= 0 {
		return nil
	}
	unit, by := "minutes", 60.0
	if length > 2*3600 {
		unit, by = "hours", 3600
	}
	began, ended := map[data.Block]float64{}, map[data.Block]float64{}
	trails := p.trails(func(i int, t *trail) {
		row := p.Rows[i]
		for _, d := range row.Dots {
			at, known := clock(d)
			if !known || !stats.Finite(d.Value) {
				continue
			}
			b := data.Block{Folder: d.Folder, Round: d.Round}
			if _, has := began[b]; !has {
				began[b] = at / by
			}
			began[b], ended[b] = min(began[b], at/by), max(ended[b], at/by)
			t.at = append(t.at, at/by)
			t.of = append(t.of, 100*(d.Value/row.Mean-1))
			t.titles = append(t.titles, t.mark.Names[0]+", "+words.ARun(d, row.Metric.Unit))
		}
	})
	if trails == nil {
		return nil
	}
	bad := p.disturbed()
	f := &Figure{File: stem + "-time", Title: p.Beside(words.TimeTitle), How: words.TimeMarks, Spread: true, Caption: words.Shaded(len(bad))}
	a := newPlane(unit+" since the first run", 0, length/by, trails)
	for _, b := range bad {
		end := ended[b] // or where the next round begins
		for other, at := range began {
			if other.Compare(b) > 0 && at > began[b] && (at < end || end == ended[b]) {
				end = at
			}
		}
		a.shade(began[b], end)
	}
	a.axes(0)
	for _, t := range trails {
		a.dotted(t)
	}
	f.Alt, f.Picture = InWords("Dots over time. ", marksOf(trails)), a.Picture
	return f
}

// blocks are the rounds in which something of a panel was measured, in order.
func (p *Panel) blocks() (all []data.Block) {
	for _, row := range p.Rows {
		for _, v := range row.Values {
			if row.Representative && !slices.Contains(all, v.Block) {
				all = append(all, v.Block)
			}
		}
	}
	slices.SortFunc(all, data.Block.Compare)
	return all
}

// clock says when a trial began, in seconds since the first of all, and how long it all took; false where the trial's start is not known.
func (p *Panel) clock() (at func(data.Dot) (float64, bool), length float64) {
	first, last := map[int]time.Time{}, map[int]time.Time{}
	for _, row := range p.Rows {
		for _, d := range row.Dots {
			if d.Start.IsZero() || !row.Representative {
				continue
			}
			if t, has := first[d.Folder]; !has || d.Start.Before(t) {
				first[d.Folder] = d.Start
			}
			if d.Start.After(last[d.Folder]) {
				last[d.Folder] = d.Start
			}
		}
	}
	before := map[int]float64{}
	for f := range len(first) {
		before[f] = length
		length += last[f].Sub(first[f]).Seconds()
	}
	return func(d data.Dot) (float64, bool) {
		return before[d.Folder] + d.Start.Sub(first[d.Folder]).Seconds(), !d.Start.IsZero()
	}, length
}

// trails has each representative row of the panel fill its trail; nil where none has three points.
func (p *Panel) trails(fill func(i int, t *trail)) (all []trail) {
	for i, row := range p.Rows {
		if !row.Representative || !(row.Mean > 0) {
			continue
		}
		t := trail{mark: p.Mark(i)}
		if p.Places[0] != p.Places[len(p.Places)-1] {
			t.mark.Names = []string{t.mark.Names[0] + ", " + p.Places[i], t.mark.Names[len(t.mark.Names)-1] + " " + p.Places[i]}
		}
		if fill(i, &t); len(t.at) >= fewestRounds {
			all = append(all, t)
		}
	}
	return all
}

func marksOf(trails []trail) (marks []Mark) {
	for _, t := range trails {
		marks = append(marks, t.mark)
	}
	return marks
}

// newPlane lays a plot out below its legend. The key of a treatment is its line with its symbol.
func newPlane(axis string, from, to float64, trails []trail) *plane {
	const tall, left, right = 170, 44, 6
	a := &plane{Picture: &Picture{w: pageWidth}, x0: left, x1: pageWidth - right, from: from, to: to}
	a.text(2, 13, start, smallSize, muted, words.Against100(words.OwnMean))
	top := a.keys(marksOf(trails), 20, 18, func(i int, x, y float64) {
		a.lines(trails[i].mark.style.platform, 1.4, dash(trails[i].mark.style), point{x, y - 4}, point{x + 18, y - 4})
		a.symbol(trails[i].mark.style, x+9, y-4)
	}) + 8
	a.y0, a.y1 = top, top+tall
	a.h = a.y1 + 34
	a.text(a.x1, a.h-6, end, smallSize, muted, axis)
	for _, t := range trails {
		for _, v := range t.of {
			a.low, a.high = min(a.low, v), max(a.high, v)
		}
	}
	pad := max(0.05*(a.high-a.low), 0.05)
	a.low, a.high = a.low-pad, a.high+pad
	return a
}

// dash tells the treatments of one platform apart, in addition to their symbols.
func dash(k style) []float64 {
	own := [][]float64{nil, {6, 2}, {2, 2}, {8, 2, 2, 2}}[k.pattern%4]
	if k.solid {
		return own
	}
	return append([]float64{4, 3}, own...)[:2]
}

// shade marks what lies between two places of x as disturbed.
func (a *plane) shade(from, to float64) {
	x0, x1 := a.x(from), max(a.x(to), a.x(from)+2)
	a.area(grid, rect(x0, a.y0, x1, a.y1)...)
}

// axes draws the grid. whole: x counts up to this number; 0: it does not count.
func (a *plane) axes(whole int) {
	for _, t := range ticks(a.low, a.high, 6) {
		a.lines(muted, 0.4, []float64{1, 3}, point{a.x0, a.y(t.value)}, point{a.x1, a.y(t.value)})
		a.text(a.x0-5, a.y(t.value)+3.5, end, smallSize, muted, words.Signed(t.label))
	}
	marks := ticks(max(a.from, 0), a.to, 8)
	if whole > 0 {
		marks = slices.DeleteFunc(marks, func(t tick) bool { return t.value < 1 || t.value != math.Round(t.value) })
		for i := range marks {
			marks[i].label = words.Number(marks[i].value, 0)
		}
	}
	for _, t := range apart(marks, a.x, smallSize, 2, pageWidth) {
		a.line(muted, 0.7, a.x(t.value), a.y1, a.x(t.value), a.y1+4)
		a.text(a.x(t.value), a.y1+15, middle, smallSize, muted, t.label)
	}
	a.line(ink, 1, a.x0, a.y(0), a.x1, a.y(0))
	a.line(muted, 0.7, a.x0, a.y1, a.x1, a.y1)
}

// join joins the points of a trail by lines.
func (a *plane) join(t trail) {
	pts := make([]point, len(t.at))
	for i := range t.at {
		pts[i] = point{a.x(t.at[i]), a.y(t.of[i])}
	}
	a.lines(t.mark.style.platform, 1.3, dash(t.mark.style), pts...) // a row's values are in the order of rounds
	a.spots(t.mark.style.platform, 1.8, pts, t.titles)
}

// dotted draws the points of a trail.
func (a *plane) dotted(t trail) {
	pts := make([]point, len(t.at))
	for i := range t.at {
		pts[i] = point{a.x(t.at[i]), a.y(t.of[i])}
	}
	a.spots(t.mark.style.platform, 1.6, pts, t.titles)
}
