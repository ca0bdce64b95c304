package page

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tare/desk/explain"
	"tare/notebook"
)

// fall is a waterfall: from the baseline's time over each part of the gap to the treatment's.
type fall struct {
	bars      []fallBar
	low, high float64 // range of the axis
	cut       bool    // the axis does not begin at 0
}

// fallBar is a bar of a waterfall: a part floats between where the parts before it end and where it ends itself.
type fallBar struct {
	label     string
	from, to  float64
	low, high float64 // of to; NaN where there is no interval
	words     string  // "+0.42 ± 0.03"
	look      look
	total     bool // it stands on the axis
}

// fallFigure makes an account's waterfall.
func fallFigure(a *account, stem string) *figure {
	unit, k := secondsUnit(largest(a.Account))
	platform := func(t notebook.Treatment) string {
		if _, known := strong[t.Platform]; known {
			return t.Platform
		}
		return ""
	}
	w := &fall{}
	at := a.Elapsed.Value - a.Gap.Value
	base := fallBar{label: plain(a.Against), to: k * at, low: math.NaN(), high: math.NaN(), total: true, look: look{platform: notebook.BM, solid: true}}
	if a.Baseline != nil {
		base.look = look{platform: platform(a.Baseline.Treatment), solid: a.Baseline.Treatment.Provisioning != notebook.Vanilla, emulated: !a.Baseline.Representative}
	}
	d := decimals(k*a.Gap.Value, k*a.Gap.Low, k*a.Gap.High)
	base.words = number(base.to, d)
	// Parts of one gap are read beside each other: none with many more decimals than it.
	finest := d + 1
	w.bars = append(w.bars, base)
	p := platform(a.Row.Treatment)
	var told, untold bool
	for i := range a.Parts {
		part := &a.Parts[i]
		e := part.Seconds
		if !finite(e.Value) || e.Value == 0 && !part.Told() && e.Low == 0 && e.High == 0 {
			continue // nothing of it, in every round
		}
		b := fallBar{label: plain(part.Label), from: k * at, to: k * (at + e.Value), low: k * (at + e.Low), high: k * (at + e.High), look: look{platform: p, solid: part.Told(), emulated: a.Emulated}}
		if part.Key == explain.Unexplained {
			b.look.platform = ""
		}
		told, untold = told || part.Told(), untold || !part.Told()
		b.words = signed(halfOf(k*e.Value, k*e.Low, k*e.High, min(finest, decimals(k*e.Value, k*e.Low, k*e.High))))
		at += e.Value
		w.bars = append(w.bars, b)
	}
	end := fallBar{label: briefName(a.Row.Treatment, false), to: k * a.Elapsed.Value, total: true,
		low: k * (a.Elapsed.Value - a.Gap.Value + a.Gap.Low), high: k * (a.Elapsed.Value - a.Gap.Value + a.Gap.High),
		look: look{platform: p, solid: a.Row.Treatment.Provisioning != notebook.Vanilla, emulated: !a.Row.Representative}, words: number(k*a.Elapsed.Value, d)}
	w.bars = append(w.bars, end)
	w.span()
	f := &figure{kind: waterfall, file: stem, title: "Where the time went: " + a.title, axis: "elapsed time of a trial, " + unit, fall: w}
	f.caption = "From " + plain(a.Against) + " on the left to this treatment on the right: each bar between starts where the one before it ends. "
	switch {
	case told && untold:
		f.caption += "Solid: the 95 % interval excludes 0. Tinted: it does not, and this is no cause of anything. "
	case untold:
		f.caption += "Tinted: the 95 % intervals contain 0, so no part is a cause of anything. "
	}
	f.caption += "The vertical lines are the parts’ 95 % intervals, on the last bar that of the gap."
	if w.cut {
		f.caption += " The axis does not begin at 0."
	}
	if a.Emulated {
		f.caption += " Hatched: emulated, which says nothing of a VM’s cost."
	}
	f.caption = tight(f.caption)
	f.alt = fallWords(a, unit)
	return f
}

// fallWords says a waterfall in words.
func fallWords(a *account, unit string) string {
	_, k := secondsUnit(largest(a.Account))
	list := []string{fmt.Sprintf("the gap to %s: %s", plain(a.Against), valueWords(k*a.Gap.Value, k*a.Gap.Low, k*a.Gap.High, unit))}
	for _, p := range a.Parts {
		list = append(list, plain(p.Label)+": "+valueWords(k*p.Seconds.Value, k*p.Seconds.Low, k*p.Seconds.High, unit))
	}
	return "A waterfall. " + strings.Join(list, "; ") + "."
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// signed puts a plus before what is neither negative nor nothing.
func signed(s string) string {
	first, _, _ := strings.Cut(s, " ")
	if strings.HasPrefix(s, "−") || strings.Trim(first, "0.–") == "" {
		return s
	}
	return "+" + s
}

// span is the range of the axis: from 0 where the gap can be seen so, else from a little below the lowest part.
func (w *fall) span() {
	low, high := math.Inf(1), math.Inf(-1)
	var whiskers []float64
	for _, b := range w.bars {
		low, high = math.Min(low, b.to), math.Max(high, b.to)
		if b.high > b.low && !math.IsInf(b.high-b.low, 0) {
			whiskers = append(whiskers, b.low, b.high)
		}
	}
	// A wild interval of few rounds must not squash the parts.
	room := math.Max(high-low, 0.05*math.Abs(high))
	l, h := low, high
	for _, v := range whiskers {
		l, h = math.Min(l, math.Max(v, low-room)), math.Max(h, math.Min(v, high+room))
	}
	w.low, w.high = math.Min(0, l), h
	if room := h - l; l > 0 && room < 0.3*h {
		w.low, w.cut = l-0.4*room, true
	}
	pad := 0.1 * (w.high - w.low)
	if pad <= 0 || math.IsNaN(pad) {
		pad = 1
	}
	w.high += pad
	if w.low < 0 {
		w.low -= pad
	}
}

// upright is the waterfall's form for pages.
type upright struct{ *fall }

func fallScene(f *figure, narrow bool) scene {
	if narrow {
		return fallRows(f)
	}
	const top, bottom, left, right = 24, 36, 46, 8
	h := vg.Length(top + 230 + bottom)
	return scene{wideWidth, h, func(c draw.Canvas) {
		say(c, 2, h-14, 0, textSize, muted, fit(f.axis, textSize, wideWidth-10))
		p := newPlot()
		p.X.Min, p.X.Max = 0, 1
		p.Y.Min, p.Y.Max = f.fall.low, f.fall.high
		quiet(&p.Y)
		p.Add(upright{f.fall})
		p.Draw(draw.Crop(c, 0, -right, bottom, -top))
	}}
}

// inTwo breaks a label into two lines of a width.
func inTwo(s string, size, width vg.Length) [2]string {
	words := strings.Fields(s)
	for n := len(words); n > 0; n-- {
		first := strings.Join(words[:n], " ")
		if textWidth(first, size) <= width || n == 1 {
			return [2]string{fit(first, size, width), fit(strings.Join(words[n:], " "), size, width)}
		}
	}
	return [2]string{}
}

// Plot draws the bars from left to right.
func (w upright) Plot(c draw.Canvas, p *plot.Plot) {
	y := func(v float64) vg.Length { return c.Y(p.Y.Norm(v)) }
	for _, t := range major(p.Y) {
		line(c, grid, 0.7, c.Min.X, y(t.Value), c.Max.X, y(t.Value))
	}
	base := y(math.Max(0, w.low))
	slot := (c.Max.X - c.Min.X) / vg.Length(len(w.bars))
	width := min(slot*0.66, 62)
	for i, b := range w.bars {
		mid := c.Min.X + slot*(vg.Length(i)+0.5)
		from := y(b.from)
		if b.total {
			from = base
		}
		to := y(b.to)
		lo, hi := min(from, to), max(from, to)
		if hi-lo < 1 {
			line(c, strong[b.look.platform], 1.6, mid-width/2, to, mid+width/2, to)
		} else {
			box(c, b.look, mid-width/2, lo, mid+width/2, hi)
		}
		if b.total && w.cut {
			torn(c, mid-width/2, mid+width/2, base)
		}
		if i+1 < len(w.bars) {
			line(c, muted, 0.7, mid+width/2, to, mid+slot-width/2, to)
		}
		if b.high > b.low {
			whisker(c, ink, 1.2, false, mid, clampY(c, p, b.low), clampY(c, p, b.high), c.Min.Y, c.Max.Y)
		}
		s := fit(b.words, 9, slot-2)
		if !b.total && b.to < b.from {
			bottom := lo
			if b.high > b.low {
				bottom = min(bottom, max(c.Min.Y, clampY(c, p, b.low)))
			}
			at := max(bottom-12, c.Min.Y+2)
			backed(c, mid, at, s)
		} else {
			top := hi
			if b.high > b.low {
				top = max(top, min(c.Max.Y, clampY(c, p, b.high)))
			}
			backed(c, mid, min(top+5, c.Max.Y-8), s)
		}
		label := inTwo(b.label, smallSize, slot-3)
		say(c, mid, c.Min.Y-13, 0.5, smallSize, ink, label[0])
		say(c, mid, c.Min.Y-25, 0.5, smallSize, ink, label[1])
	}
	if !w.cut {
		line(c, ink, 1, c.Min.X, base, c.Max.X, base)
	}
}

// clampY is the place of a value that may lie far beyond the axis.
func clampY(c draw.Canvas, p *plot.Plot, v float64) vg.Length {
	return max(c.Min.Y-10, min(c.Max.Y+10, c.Y(math.Max(-1, math.Min(2, p.Y.Norm(v))))))
}

// backed writes a value in the middle of x, on paper where lines run under it.
func backed(c draw.Canvas, x, y vg.Length, s string) {
	if s == "" {
		return
	}
	w := textWidth(s, 9) / 2
	c.SetColor(paper)
	c.Fill(rect(x-w, y-2, x+w, y+8))
	say(c, x, y, 0.5, 9, ink, s)
}

// torn marks the foot of a bar that does not begin at 0.
func torn(c draw.Canvas, x0, x1, y vg.Length) {
	const step, height = 5, 3
	var pts []vg.Point
	up := false
	for x := x0 - 2; x <= x1+2+step; x += step {
		h := y + 6
		if up {
			h += height
		}
		pts = append(pts, vg.Point{X: min(x, x1+2), Y: h})
		up = !up
	}
	c.StrokeLines(draw.LineStyle{Color: paper, Width: 4}, pts)
}

// fallRows is the waterfall's form for phones: a line for each part, from the top down.
func fallRows(f *figure) scene {
	const row, top, axis = 36, 24, 20
	h := vg.Length(top + row*len(f.fall.bars) + 6 + axis)
	return scene{narrowWidth, h, func(c draw.Canvas) {
		say(c, 2, h-14, 0, textSize, muted, fit(f.axis, textSize, narrowWidth-4))
		p := newPlot()
		p.Y.Min, p.Y.Max = 0, 1
		p.X.Min, p.X.Max = f.fall.low, f.fall.high
		quiet(&p.X)
		p.X.Tick.Marker = round(4)
		p.Add(lying{f.fall, row})
		p.Draw(draw.Crop(c, 6, -10, 4, -top))
	}}
}

type lying struct {
	*fall
	row vg.Length
}

// Plot draws the bars from the top down, each under its name and value.
func (w lying) Plot(c draw.Canvas, p *plot.Plot) {
	x := func(v float64) vg.Length { return c.X(math.Max(-0.1, math.Min(1.1, p.X.Norm(v)))) }
	for _, t := range major(p.X) {
		line(c, grid, 0.7, x(t.Value), c.Min.Y, x(t.Value), c.Max.Y)
	}
	base := x(math.Max(0, w.low))
	for i, b := range w.bars {
		top := c.Max.Y - w.row*vg.Length(i)
		c.SetColor(paper)
		c.Fill(rect(c.Min.X-4, top-15, c.Max.X+8, top-1))
		words := fit(b.words, smallSize, 120)
		say(c, 2, top-12, 0, textSize, ink, fit(b.label, textSize, narrowWidth-textWidth(words, smallSize)-12))
		say(c, narrowWidth-4, top-12, 1, smallSize, muted, words)
		lower, upper := top-w.row+4, top-18
		from, to := x(b.from), x(b.to)
		if b.total {
			from = base
		}
		if lo, hi := min(from, to), max(from, to); hi-lo < 1 {
			line(c, strong[b.look.platform], 1.6, to, lower, to, upper)
		} else {
			box(c, b.look, lo, lower, hi, upper)
		}
		if b.total && w.cut {
			c.SetColor(paper)
			c.Fill(rect(base+5, lower-1, base+8, upper+1))
		}
		if i+1 < len(w.bars) {
			line(c, muted, 0.7, to, lower, to, lower-4)
		}
		if b.high > b.low {
			whisker(c, ink, 1.2, true, (lower+upper)/2, x(b.low), x(b.high), c.Min.X, c.Max.X)
		}
	}
	if !w.cut {
		line(c, ink, 1, base, c.Min.Y, base, c.Max.Y-1)
	}
}
