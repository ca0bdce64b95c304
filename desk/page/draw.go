package page

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// The figures' colours by role. Those of the platforms are Okabe and Ito's, which people with any of the common
// kinds of colour blindness tell apart; and nothing is told by colour alone. In the page each of them becomes a
// style variable of the same name, so that they follow the reader's light or dark scheme (see themed).
var (
	paper  = color.NRGBA{0xff, 0xff, 0xff, 0xff}
	ink    = color.NRGBA{0x1b, 0x1f, 0x23, 0xff}
	muted  = color.NRGBA{0x57, 0x60, 0x6a, 0xff}
	grid   = color.NRGBA{0xdf, 0xe3, 0xe8, 0xff}
	strong = map[string]color.NRGBA{
		notebook.BM:   {0x6e, 0x6e, 0x6e, 0xff},
		notebook.CN:   {0x00, 0x72, 0xb2, 0xff},
		notebook.VM:   {0xd5, 0x5e, 0x00, 0xff},
		notebook.VMCN: {0x00, 0x9e, 0x73, 0xff},
		"":            {0xcc, 0x79, 0xa7, 0xff},
	}
	light = map[string]color.NRGBA{
		notebook.BM:   {0xdc, 0xdc, 0xdc, 0xff},
		notebook.CN:   {0xcc, 0xe3, 0xf1, 0xff},
		notebook.VM:   {0xf8, 0xdf, 0xcb, 0xff},
		notebook.VMCN: {0xcb, 0xeb, 0xe2, 0xff},
		"":            {0xf4, 0xe2, 0xec, 0xff},
	}
)

// look is how a treatment is told from the others without reading: hue by platform, solid or light by
// provisioning, stripes by engine and network, hatching where it was emulated.
type look struct {
	platform string
	solid    bool
	pattern  int // 0: none; the n-th engine, or engine and network, of a platform
	emulated bool
}

// looks knows which engines, and networks where those are to be told, each platform has in a figure.
type looks map[string][]string

func variant(t notebook.Treatment, network bool) string {
	if network {
		return fmt.Sprintf("%q %q %q", t.Engine, t.Isolation, t.Network)
	}
	return t.Engine + t.Isolation
}

func newLooks(rows []*data.Row, network bool) looks {
	l := looks{}
	for _, r := range rows {
		t := r.Treatment
		if v := variant(t, network); !slices.Contains(l[t.Platform], v) {
			l[t.Platform] = append(l[t.Platform], v)
		}
	}
	return l
}

func (l looks) of(t notebook.Treatment, network bool) look {
	k := look{platform: t.Platform, solid: t.Provisioning != notebook.Vanilla, emulated: !t.Representative()}
	if _, known := strong[t.Platform]; !known {
		k.platform = ""
	}
	k.pattern = max(0, slices.Index(l[t.Platform], variant(t, network)))
	return k
}

// scene is a drawing of known size.
type scene struct {
	w, h vg.Length
	draw func(draw.Canvas)
}

const (
	wideWidth   = 680 // points; CSS pixels in the page
	narrowWidth = 320
	textSize    = 11
	smallSize   = 10
)

func face(size vg.Length) font.Face {
	return plot.DefaultTextHandler.Cache().Lookup(font.Font{Typeface: "Liberation", Variant: "Sans"}, size)
}

// Readers' systems may have another sans-serif than the one measured here; the widest common one (DejaVu, Verdana)
// is a fifth wider.
const widerFont = 1.2

// fit shortens a text to a width, whichever font the reader has.
func fit(s string, size, width vg.Length) string {
	f := face(size)
	if f.Width(s)*widerFont <= width {
		return s
	}
	runes := []rune(s)
	for len(runes) > 1 {
		runes = runes[:len(runes)-1]
		if t := strings.TrimSpace(string(runes)) + "…"; f.Width(t)*widerFont <= width {
			return t
		}
	}
	return "…"
}

// anchorer is a canvas that aligns a text at a point itself, with the font that the reader really has.
type anchorer interface {
	fillAnchored(f font.Face, pt vg.Point, s string, align float64)
}

// say draws a text with its baseline at y. align is 0 for left, 0.5 for centred, 1 for right.
func say(c draw.Canvas, x, y vg.Length, align float64, size vg.Length, col color.Color, s string) {
	if s == "" {
		return
	}
	f := face(size)
	c.SetColor(col)
	// A cropped canvas holds the one that it was cropped from.
	under := c.Canvas
	for {
		inner, cropped := under.(draw.Canvas)
		if !cropped {
			break
		}
		under = inner.Canvas
	}
	if a, ok := under.(anchorer); ok {
		a.fillAnchored(f, vg.Point{X: x, Y: y}, s, align)
		return
	}
	c.FillString(f, vg.Point{X: x - vg.Length(align)*f.Width(s), Y: y}, s)
}

func rect(x0, y0, x1, y1 vg.Length) vg.Path {
	var p vg.Path
	p.Move(vg.Point{X: x0, Y: y0})
	p.Line(vg.Point{X: x1, Y: y0})
	p.Line(vg.Point{X: x1, Y: y1})
	p.Line(vg.Point{X: x0, Y: y1})
	p.Close()
	return p
}

func line(c draw.Canvas, col color.Color, width, x0, y0, x1, y1 vg.Length) {
	c.StrokeLine2(draw.LineStyle{Color: col, Width: width}, x0, y0, x1, y1)
}

// box draws a bar or a legend's swatch.
func box(c draw.Canvas, k look, x0, y0, x1, y1 vg.Length) {
	full, tint := strong[k.platform], light[k.platform]
	outline := draw.LineStyle{Color: full, Width: 1}
	stripes := full
	switch {
	case k.emulated:
		c.SetColor(paper)
		outline.Dashes = []vg.Length{3, 2}
	case k.solid:
		c.SetColor(full)
		stripes = paper
	default:
		c.SetColor(tint)
	}
	c.Fill(rect(x0, y0, x1, y1))
	if k.emulated {
		step := vg.Length(8)
		if k.solid {
			step = 4
		}
		hatch(c, full, x0, y0, x1, y1, step)
	}
	switch k.pattern {
	case 0:
	case 1:
		for y := y0 + 4; y < y1-1; y += 5 {
			line(c, stripes, 0.9, x0, y, x1, y)
		}
	default:
		for x := x0 + 4; x < x1-1; x += vg.Length(3 * k.pattern) {
			line(c, stripes, 0.9, x, y0, x, y1)
		}
	}
	c.SetLineStyle(outline)
	c.Stroke(rect(x0, y0, x1, y1))
	c.SetLineDash(nil, 0)
}

// hatch fills a rectangle with rising diagonals.
func hatch(c draw.Canvas, col color.Color, x0, y0, x1, y1, step vg.Length) {
	var lines vg.Path
	if diagonals(&lines, x0, y0, x1, y1, step); lines != nil {
		c.SetLineStyle(draw.LineStyle{Color: col, Width: 0.6})
		c.Stroke(lines)
	}
}

// diagonals adds a rectangle's rising diagonals to a path.
func diagonals(p *vg.Path, x0, y0, x1, y1, step vg.Length) {
	for d := step; d < (x1-x0)+(y1-y0); d += step {
		// The diagonal through (x0+d, y0), falling to the left: from the lower right end to the upper left one.
		ax, ay := x0+d, y0
		if ax > x1 {
			ax, ay = x1, y0+d-(x1-x0)
		}
		bx, by := x0, y0+d
		if by > y1 {
			bx, by = x0+d-(y1-y0), y1
		}
		p.Move(vg.Point{X: ax, Y: ay})
		p.Line(vg.Point{X: bx, Y: by})
	}
}

// circle adds a small circle to a path, as four curves: arcs are drawn apart by the PDF canvas.
func circle(p *vg.Path, x, y, r vg.Length) {
	const k = 0.5523
	p.Move(vg.Point{X: x + r, Y: y})
	p.CubeTo(vg.Point{X: x + r, Y: y + k*r}, vg.Point{X: x + k*r, Y: y + r}, vg.Point{X: x, Y: y + r})
	p.CubeTo(vg.Point{X: x - k*r, Y: y + r}, vg.Point{X: x - r, Y: y + k*r}, vg.Point{X: x - r, Y: y})
	p.CubeTo(vg.Point{X: x - r, Y: y - k*r}, vg.Point{X: x - k*r, Y: y - r}, vg.Point{X: x, Y: y - r})
	p.CubeTo(vg.Point{X: x + k*r, Y: y - r}, vg.Point{X: x + r, Y: y - k*r}, vg.Point{X: x + r, Y: y})
	p.Close()
}

// jitter spreads the i-th dot over (-0.5, 0.5): always the same way, and evenly however many there are.
func jitter(i int) float64 {
	_, f := math.Modf(float64(i+1) * 0.6180339887498949)
	return f - 0.5
}

// span is the end of a value axis that starts at 0 for these marks.
func span(marks []mark) float64 {
	top := 0.0
	for _, m := range marks {
		for _, v := range append([]float64{m.value}, m.dots...) {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				top = math.Max(top, v)
			}
		}
	}
	for _, m := range marks {
		// A wild interval of few rounds must not squash the bars; it is cut, and drawn as cut.
		if !math.IsNaN(m.high) && !math.IsInf(m.high, 0) {
			top = math.Max(top, math.Min(m.high, 2*m.value))
		}
	}
	if top <= 0 {
		return 1
	}
	return top * 1.05
}

// newPlot is a gonum plot with a quiet value axis and no other.
func newPlot() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	p.HideAxes()
	return p
}

// quiet styles a value axis: labels, no line, no ticks; the grid is drawn by the plotters.
func quiet(a *plot.Axis) {
	a.LineStyle.Width = 0
	a.Padding = 0
	a.Tick.Length = 0
	a.Tick.Label.Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: smallSize}
	a.Tick.Label.Color = muted
	a.Tick.Marker = round(6)
}

// major are the ticks that have a label.
func major(a plot.Axis) []plot.Tick {
	var list []plot.Tick
	for _, t := range a.Tick.Marker.Ticks(a.Min, a.Max) {
		if t.Label != "" && t.Value >= a.Min && t.Value <= a.Max {
			list = append(list, t)
		}
	}
	return list
}

// whisker draws an interval along a line from lo to hi at a fixed cross position, with caps; an end beyond the
// visible range becomes an arrow.
func whisker(c draw.Canvas, col color.NRGBA, width vg.Length, horizontal bool, at, lo, hi, first, last vg.Length) {
	pt := func(along, across vg.Length) vg.Point {
		if horizontal {
			return vg.Point{X: along, Y: at + across}
		}
		return vg.Point{X: at + across, Y: along}
	}
	if col == ink {
		// On a bar: a rim of paper, or it would drown in the bar's colour.
		whisker(c, paper, width+2, horizontal, at, lo, hi, first, last)
	}
	sty := draw.LineStyle{Color: col, Width: width}
	end := func(v, limit, inward vg.Length) vg.Length {
		if (inward > 0 && v < limit-0.01) || (inward < 0 && v > limit+0.01) {
			c.StrokeLines(sty, []vg.Point{pt(limit+4*inward, 3), pt(limit, 0), pt(limit+4*inward, -3)})
			return limit
		}
		c.StrokeLines(sty, []vg.Point{pt(v, 3), pt(v, -3)})
		return v
	}
	lo, hi = end(lo, first, 1), end(hi, last, -1)
	c.StrokeLines(sty, []vg.Point{pt(lo, 0), pt(hi, 0)})
}

// dots draws the trials of a mark, spread over breadth around a cross position.
func dots(c draw.Canvas, values []float64, horizontal bool, at, breadth vg.Length, along func(float64) vg.Length) {
	if len(values) == 0 {
		return
	}
	r := vg.Length(1.9)
	if len(values) > 40 {
		r = 1.4
	}
	if breadth < 12 {
		r = 1.2
	}
	var p vg.Path
	for i, v := range values {
		a, across := along(v), at+breadth*vg.Length(jitter(i))
		if horizontal {
			circle(&p, a, across, r)
		} else {
			circle(&p, across, a, r)
		}
	}
	c.SetColor(paper)
	c.Fill(p)
	c.SetLineStyle(draw.LineStyle{Color: ink, Width: 0.7})
	c.Stroke(p)
}

// columns is the paper's form: upright bars, grouped by instance type.
type columns struct {
	f      *figure
	x      []vg.Length // left edge of each bar, from the left of the data, if they are room wide
	width  vg.Length   // of a bar, likewise
	room   vg.Length
	gap    vg.Length // between groups, likewise
	direct bool      // names stand under the bars; else in a legend
}

// namesFit says whether each bar's name can stand under it.
func namesFit(f *figure, slot vg.Length) bool {
	for _, m := range f.marks {
		for _, s := range m.short {
			if f.network || fit(s, smallSize, slot+4) != s {
				return false
			}
		}
	}
	return true
}

// wideMeans lays a figure of means out for a page.
func wideMeans(f *figure) scene {
	const left, right, gap = 46, 8, 0.7
	n := vg.Length(len(f.marks))
	breaks := 0
	for i := 1; i < len(f.marks); i++ {
		if f.marks[i].group != f.marks[i-1].group {
			breaks++
		}
	}
	slot := min((wideWidth-left-right)/(n+gap*vg.Length(breaks)), 124)
	col := columns{f: f, direct: slot >= 50 && namesFit(f, slot), width: slot * 0.72, gap: gap * slot, room: wideWidth - left - right}
	// Few bars are not made wider than this; they stand in the middle.
	at := slot*0.14 + max(0, col.room-slot*(n+gap*vg.Length(breaks)))/2
	for i := range f.marks {
		if i > 0 && f.marks[i].group != f.marks[i-1].group {
			at += gap * slot
		}
		col.x = append(col.x, at)
		at += slot
	}
	top, bottom := vg.Length(30), vg.Length(26)
	var keys []mark
	if col.direct {
		bottom += 26
	} else {
		seen := map[string]bool{}
		for _, m := range f.marks {
			if !seen[m.label] {
				seen[m.label] = true
				keys = append(keys, m)
			}
		}
		top += legend(draw.Canvas{}, keys, 0, 0) + 10
	}
	h := top + 260 + bottom
	return scene{wideWidth, h, func(c draw.Canvas) {
		say(c, 2, h-14, 0, textSize, muted, fit(f.axis, textSize, wideWidth-10))
		if keys != nil {
			legend(c, keys, 2, h-36)
		}
		p := newPlot()
		p.X.Min, p.X.Max = 0, 1
		p.Y.Min, p.Y.Max = 0, span(f.marks)
		quiet(&p.Y)
		p.Add(col)
		p.Draw(draw.Crop(c, 0, -right, bottom, -top))
	}}
}

// Plot draws the grid, the bars, their intervals, trials and names.
func (b columns) Plot(c draw.Canvas, p *plot.Plot) {
	y := func(v float64) vg.Length { return c.Y(p.Y.Norm(v)) }
	for _, t := range major(p.Y) {
		line(c, grid, 0.7, c.Min.X, y(t.Value), c.Max.X, y(t.Value))
	}
	// The value axis' labels take what room they need; the bars share the rest.
	k := min(1, (c.Max.X-c.Min.X)/b.room)
	width := k * b.width
	start := 0
	for i, m := range b.f.marks {
		x0 := c.Min.X + k*b.x[i]
		x1 := x0 + width
		mid := (x0 + x1) / 2
		if m.missing != "" {
			say(c, mid, c.Min.Y+5, 0.5, 9, muted, fit(m.missing, 9, width*1.35))
		} else {
			box(c, m.look, x0, c.Min.Y, x1, y(m.value))
			dots(c, m.dots, false, mid, width*0.6, y)
			if !math.IsNaN(m.low) && !math.IsNaN(m.high) {
				whisker(c, ink, 1.5, false, mid, y(math.Max(m.low, 0)), clampedY(c, p, m.high), c.Min.Y, c.Max.Y)
			}
		}
		if b.direct {
			room := width / 0.72
			say(c, mid, c.Min.Y-14, 0.5, smallSize, ink, fit(m.short[0], smallSize, room+4))
			say(c, mid, c.Min.Y-26, 0.5, smallSize, muted, fit(m.short[1], smallSize, room+4))
		}
		if i+1 == len(b.f.marks) || b.f.marks[i+1].group != m.group {
			base := c.Min.Y - 8
			if b.direct {
				base -= 26
			}
			first := c.Min.X + k*b.x[start]
			line(c, muted, 0.7, first, base, x1, base)
			say(c, (first+x1)/2, base-13, 0.5, textSize, ink, fit(m.group, textSize, x1-first+max(12, k*b.gap*0.8)))
			start = i + 1
		}
	}
	line(c, ink, 1, c.Min.X, c.Min.Y, c.Max.X, c.Min.Y)
}

// clampedY is the place of a value that may lie far beyond the axis.
func clampedY(c draw.Canvas, p *plot.Plot, v float64) vg.Length {
	if n := p.Y.Norm(v); n <= 1 {
		return c.Y(n)
	}
	return c.Max.Y + 10
}

// legend draws the keys in lines from the upper left corner and returns its height; with an empty canvas it only
// measures.
func legend(c draw.Canvas, keys []mark, x0, y0 vg.Length) vg.Length {
	f := face(smallSize)
	x, y := x0, y0
	for _, k := range keys {
		label := k.named(smallSize, 260)
		w := 20 + f.Width(label)*widerFont + 10
		if x > x0 && x+w > wideWidth-4 {
			x, y = x0, y-16
		}
		if c.Canvas != nil {
			box(c, k.look, x, y-2, x+14, y+9)
			say(c, x+19, y, 0, smallSize, ink, label)
		}
		x += w
	}
	return y0 - y + 16
}

// rows is the form for narrow screens, and for ratios on all: a line for each mark, values to the right.
type rows struct {
	f      *figure
	narrow bool
	y      []vg.Length // of each mark's middle, from the top of the data
	heads  []vg.Length // baseline of the heading before a mark; 0: none
	label  vg.Length   // baseline of a narrow mark's label above its middle
}

// lines lays a figure out in rows.
func lines(f *figure, narrow bool) scene {
	r := rows{f: f, narrow: narrow}
	row, bar := vg.Length(27), vg.Length(0)
	w, left, right := vg.Length(wideWidth), vg.Length(232), vg.Length(136)
	if narrow {
		w, left, right, row, bar = narrowWidth, 6, 10, 38, 9
	}
	at := vg.Length(0)
	for i, m := range f.marks {
		head := vg.Length(0)
		if i == 0 || f.marks[i-1].group != m.group {
			at += 22
			head = at - 7
		}
		r.heads = append(r.heads, head)
		r.y = append(r.y, at+row/2+bar)
		at += row
	}
	r.label = 13
	const top, axis = 24, 20
	h := top + at + 6 + axis
	return scene{w, h, func(c draw.Canvas) {
		say(c, 2, h-14, 0, textSize, muted, fit(f.axis, textSize, w-4))
		p := newPlot()
		p.Y.Min, p.Y.Max = 0, 1
		if f.kind == ratios {
			p.X.Min, p.X.Max = ratioSpan(f.marks)
		} else {
			p.X.Min, p.X.Max = 0, span(f.marks)
		}
		quiet(&p.X)
		if narrow {
			p.X.Tick.Marker = round(4)
		}
		p.Add(r)
		p.Draw(draw.Crop(c, left, -right, 4, -top))
	}}
}

// round is a ticker: about so many ticks at round values, written with as few digits as tell them apart.
type round int

// Ticks are the multiples of 1, 2 or 5 times a power of ten in the range.
func (n round) Ticks(low, high float64) []plot.Tick {
	if !(high > low) {
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
	var ticks []plot.Tick
	for i := math.Ceil(low/step - 1e-9); i*step <= high*(1+1e-12); i++ {
		label := "0"
		if i != 0 {
			label = number(i*step, digits)
		}
		ticks = append(ticks, plot.Tick{Value: i * step, Label: label})
	}
	return ticks
}

// ratioSpan is the range of the axis of ratios: it holds 1 and every ratio, and of their intervals as much as does not
// squash the rest.
func ratioSpan(marks []mark) (low, high float64) {
	low, high = 1, 1
	for _, m := range marks {
		if !math.IsNaN(m.value) && !math.IsInf(m.value, 0) {
			low, high = math.Min(low, m.value), math.Max(high, m.value)
		}
	}
	var lengths []float64 // of intervals, each from the ratio to its farther end
	for _, m := range marks {
		if l := math.Max(m.value-m.low, m.high-m.value); !m.isReference && !math.IsNaN(l) && !math.IsInf(l, 0) {
			lengths = append(lengths, l)
		}
	}
	room := math.Max(high-low, 0.1)
	if len(lengths) > 0 {
		// What is about as long as the others is shown whole.
		room = math.Max(room, 3*stats.Median(lengths))
	}
	l, h := low, high
	for _, m := range marks {
		if !math.IsNaN(m.low) {
			l = math.Min(l, math.Max(m.low, low-room))
		}
		if !math.IsNaN(m.high) {
			h = math.Max(h, math.Min(m.high, high+room))
		}
	}
	pad := (h - l) * 0.04
	if pad == 0 {
		pad = 0.05
	}
	return l - pad, h + pad
}

// Plot draws the grid and the marks with their names and values.
func (r rows) Plot(c draw.Canvas, p *plot.Plot) {
	x := func(v float64) vg.Length {
		return c.X(math.Max(-0.05, math.Min(1.05, p.X.Norm(v))))
	}
	right := vg.Length(wideWidth)
	if r.narrow {
		right = narrowWidth
	}
	for _, t := range major(p.X) {
		line(c, grid, 0.7, x(t.Value), c.Min.Y, x(t.Value), c.Max.Y)
	}
	if r.f.kind == ratios {
		line(c, ink, 1, x(1), c.Min.Y, x(1), c.Max.Y)
	}
	for i, m := range r.f.marks {
		y := c.Max.Y - r.y[i]
		if r.heads[i] > 0 {
			hx, hy := vg.Length(2), c.Max.Y-r.heads[i]
			// The heading stands on paper, or the grid would run through it.
			c.SetColor(paper)
			c.Fill(rect(c.Min.X-4, hy-5, c.Max.X+4, hy+16))
			say(c, hx, hy, 0, textSize, muted, fit(m.group, textSize, right-4))
			line(c, grid, 0.7, hx, hy-5, right-2, hy-5)
		}
		words := m.words
		if m.missing != "" {
			words = m.missing
		}
		if r.narrow {
			c.SetColor(paper)
			c.Fill(rect(c.Min.X-4, y+r.label-4, c.Max.X+8, y+r.label+11))
			words = fit(words, smallSize, 150)
			f := face(smallSize)
			taken := f.Width(words) * widerFont
			say(c, 2, y+r.label, 0, textSize, ink, m.named(textSize, narrowWidth-taken-10))
			say(c, narrowWidth-4, y+r.label, 1, smallSize, muted, words)
		} else {
			say(c, 14, y-4, 0, textSize, ink, m.named(textSize, 218))
			say(c, wideWidth-2, y-4, 1, smallSize, muted, fit(words, smallSize, 132))
		}
		if m.missing != "" {
			continue
		}
		thick := vg.Length(9)
		if r.narrow {
			thick = 7
		}
		interval := !math.IsNaN(m.low) && !math.IsNaN(m.high)
		if r.f.kind == ratios {
			full := strong[m.look.platform]
			if interval && !m.isReference {
				whisker(c, full, 1.6, true, y, x(m.low), x(m.high), c.Min.X, c.Max.X)
			}
			shape(c, m.look, x(m.value), y)
			continue
		}
		line(c, ink, 1, x(0), y-thick-3, x(0), y+thick+3)
		box(c, m.look, x(0), y-thick, x(m.value), y+thick)
		dots(c, m.dots, true, y, thick*1.3, x)
		if interval {
			whisker(c, ink, 1.5, true, y, x(math.Max(m.low, 0)), x(m.high), c.Min.X, c.Max.X)
		}
	}
}

// shape draws a ratio's mark: circle, square, triangle or diamond by platform; hollow when vanilla.
func shape(c draw.Canvas, k look, x, y vg.Length) {
	const r = 4.6
	var p vg.Path
	switch k.platform {
	case notebook.CN:
		p = rect(x-r*0.86, y-r*0.86, x+r*0.86, y+r*0.86)
	case notebook.VM:
		p.Move(vg.Point{X: x, Y: y + r*1.1})
		p.Line(vg.Point{X: x - r, Y: y - r*0.8})
		p.Line(vg.Point{X: x + r, Y: y - r*0.8})
		p.Close()
	case notebook.VMCN:
		p.Move(vg.Point{X: x, Y: y + r*1.2})
		p.Line(vg.Point{X: x - r*1.2, Y: y})
		p.Line(vg.Point{X: x, Y: y - r*1.2})
		p.Line(vg.Point{X: x + r*1.2, Y: y})
		p.Close()
	default:
		circle(&p, x, y, r)
	}
	c.SetColor(paper)
	if k.solid {
		c.SetColor(strong[k.platform])
	}
	c.Fill(p)
	c.SetLineStyle(draw.LineStyle{Color: strong[k.platform], Width: 1.7})
	c.Stroke(p)
}

// wide and narrow are a figure's two forms: for pages and for phones.
func wide(f *figure) scene {
	switch f.kind {
	case ratios:
		return lines(f, false)
	case stairs:
		return stairScene(f, false)
	case waterfall:
		return fallScene(f, false)
	case spreads:
		return spreadScene(f, false)
	}
	return wideMeans(f)
}

func narrow(f *figure) scene {
	switch f.kind {
	case stairs:
		return stairScene(f, true)
	case waterfall:
		return fallScene(f, true)
	case spreads:
		return spreadScene(f, true)
	}
	return lines(f, true)
}
