package chart

import (
	"math"
	"slices"
	"strings"
	"sync"

	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"golang.org/x/image/font"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"

	"tare/desk/words"
	"tare/notebook"
)

// A colour is named by what it means. In the page it is a style variable of that name, so that a figure follows the
// reader's light or dark scheme; in files it is the light scheme's.
type colour string

const (
	none  colour = ""
	paper colour = "paper"
	ink   colour = "ink"
	muted colour = "muted"
	grid  colour = "grid"
	other colour = "other"
	slow  colour = notebook.VM + light
	fast  colour = notebook.CN + light
)

// light is the suffix of a platform's pale colour.
const light colour = "-light"

// rgb are the colours in files. Those of the platforms are Okabe and Ito's, which people with any of the common kinds of
// colour blindness tell apart; and colour is never the only sign of a difference.
var rgb = map[colour]string{
	paper: "#ffffff", ink: "#1b1f23", muted: "#57606a", grid: "#dfe3e8",
	notebook.BM: "#6e6e6e", notebook.CN: "#0072b2", notebook.VM: "#d55e00", notebook.VMCN: "#009e73", other: "#cc79a7",
	notebook.BM + light: "#dcdcdc", notebook.CN + light: "#cce3f1", notebook.VM + light: "#f8dfcb", notebook.VMCN + light: "#cbebe2", other + light: "#f4e2ec",
}

type point struct{ x, y float64 }

// shape is lines, an area or dots. A line of one point with round ends is a dot.
type shape struct {
	lines        [][]point
	closed       bool
	fill, stroke colour
	width        float64
	dash         []float64
	round        bool
	titles       []string // of the lines, as a browser shows them under the pointer; nil: none
}

// label is a text: x is where it begins, has its middle or ends, y its baseline.
type label struct {
	x, y, size, width float64
	anchor            anchor
	colour            colour
	text              string
}

type anchor int

const (
	start anchor = iota
	middle
	end
)

// Picture is a drawing as a list of shapes and labels, in points (CSS pixels), from the upper left corner. What is drawn
// first lies below.
type Picture struct {
	w, h float64
	list []any // of shape and label
}

func (c *Picture) line(col colour, width, x0, y0, x1, y1 float64) {
	c.lines(col, width, nil, point{x0, y0}, point{x1, y1})
}

// lines joins points.
func (c *Picture) lines(col colour, width float64, dash []float64, pts ...point) {
	c.list = append(c.list, shape{lines: [][]point{pts}, stroke: col, width: width, dash: dash})
}

func rect(x0, y0, x1, y1 float64) []point {
	return []point{{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}}
}

// area fills what its points surround.
func (c *Picture) area(fill colour, pts ...point) {
	c.list = append(c.list, shape{lines: [][]point{pts}, closed: true, fill: fill})
}

// dots are discs of one colour on a rim of paper, so that those on each other and on a bar are seen.
func (c *Picture) dots(col colour, radius float64, pts ...point) {
	s := shape{width: 2*radius + 1.4, stroke: paper, round: true}
	for _, p := range pts {
		s.lines = append(s.lines, []point{p})
	}
	on := s
	on.width, on.stroke = 2*radius, col
	c.list = append(c.list, s, on)
}

// spots are dots that each have a title.
func (c *Picture) spots(col colour, radius float64, pts []point, titles []string) {
	if len(pts) == 0 {
		return
	}
	c.dots(col, radius, pts...)
	last := c.list[len(c.list)-1].(shape)
	last.titles = titles
	c.list[len(c.list)-1] = last
}

// hatch fills a rectangle with rising diagonals.
func (c *Picture) hatch(col colour, x0, y0, x1, y1, step float64) {
	s := shape{stroke: col, width: 0.6}
	w, h := x1-x0, y1-y0
	for d := step; d < w+h; d += step {
		// From the left or lower edge to the upper or right one.
		a, b := point{x0, y0 + d}, point{x0 + d, y0}
		if d > h {
			a = point{x0 + d - h, y1}
		}
		if d > w {
			b = point{x1, y0 + d - w}
		}
		s.lines = append(s.lines, []point{a, b})
	}
	if s.lines != nil {
		c.list = append(c.list, s)
	}
}

// text writes one line.
func (c *Picture) text(x, y float64, a anchor, size float64, col colour, s string) {
	if s = words.Plain(s); s != "" {
		c.list = append(c.list, label{x, y, size, width(s, size), a, col, s})
	}
}

const (
	pageWidth = 440.0 // of every figure: on a phone's 360 pixels its texts are still read, and a page shows it larger
	textSize  = 11.5
	smallSize = 10.5
)

// typeface is the font whose widths the figures are laid out with, which PDFs embed. A browser may have another: each
// text of an SVG says how wide it is, and is fitted to that (see svg.go).
var typeface = sync.OnceValue(func() *sfnt.Font {
	f, err := sfnt.Parse(liberationsansregular.TTF)
	if err != nil {
		panic("chart: the font that is part of the program cannot be read: " + err.Error())
	}
	return f
})

var advances sync.Map // rune → its width in ems, or a negative number where the font lacks it

// advance is how wide a character is, in ems, and whether the font has it.
func advance(r rune) (float64, bool) {
	if v, known := advances.Load(r); known {
		w := v.(float64)
		return math.Abs(w), w >= 0
	}
	var b sfnt.Buffer
	f := typeface()
	i, err := f.GlyphIndex(&b, r)
	w := -1.0 // as wide as high: what the font lacks is mostly of scripts that are
	if err == nil && i != 0 {
		em := fixed.I(1000)
		if a, err := f.GlyphAdvance(&b, i, em, font.HintingNone); err == nil {
			w = float64(a) / float64(em)
		}
	}
	advances.Store(r, w)
	return math.Abs(w), w >= 0
}

// width is how wide a text is in a size.
func width(s string, size float64) float64 {
	w := 0.0
	for _, r := range s {
		a, _ := advance(r)
		w += a
	}
	return w * size
}

// fit shortens a text to a room.
func fit(s string, size, room float64) string {
	if width(s, size) <= room {
		return s
	}
	runes := []rune(s)
	for len(runes) > 1 {
		runes = runes[:len(runes)-1]
		if t := strings.TrimSpace(string(runes)) + "…"; width(t, size) <= room {
			return t
		}
	}
	return "…"
}

// mostShown is how many letters of a name can be shown; a folder's names may be of any length.
const mostShown = 200

// fitEnds shortens a text to a room in its middle: of names that begin alike the ends differ.
func fitEnds(s string, size, room float64) string {
	if width(s, size) <= room {
		return s
	}
	runes := []rune(s)
	for kept := min(len(runes)-1, mostShown); kept > 1; kept-- {
		head, tail := runes[:(kept+1)/2], runes[len(runes)-kept/2:]
		if t := strings.TrimSpace(string(head)) + "…" + strings.TrimSpace(string(tail)); width(t, size) <= room {
			return t
		}
	}
	return "…"
}

// distinct shortens names to a room such that what tells them apart stays as long as it can. Names that are too long lose parts that all of
// them have, one by one until they fit: first what names that fit have too, the last part first, and never what they begin with if no other
// name has it. Then words such as with devices=a and with devices=b keep only the values, and at last names lose their middle.
func distinct(names []string, size, room float64) []string {
	var long [][]string // parts of each name that is too long
	var common []string // those that all of them have
	others := map[string]bool{}
	for _, name := range names {
		parts := strings.Split(name, ", ")
		switch {
		case width(name, size) <= room:
			for _, part := range parts {
				others[part] = true
			}
			continue
		case long == nil:
			common = slices.Clone(parts)
		default:
			common = slices.DeleteFunc(common, func(part string) bool { return !slices.Contains(parts, part) })
		}
		long = append(long, parts)
	}
	said := make([]string, len(long))
	say := func(dropped []string) (fit bool) {
		fit = true
		for i, parts := range long {
			said[i] = shorter(parts, dropped)
			fit = fit && width(said[i], size) <= room
		}
		return fit
	}
	var dropped []string
	for _, ofOthers := range []bool{true, false} {
		for _, part := range slices.Backward(common) {
			if alone := !others[part] && part == long[0][0]; !alone && others[part] == ofOthers && !say(dropped) {
				dropped = append(dropped, part)
			}
		}
	}
	if !say(dropped) && !slices.ContainsFunc(said, func(s string) bool { return !strings.Contains(s, "=") }) {
		alike := len(beginning(said))
		for i := range said {
			said[i] = "…" + said[i][alike:]
		}
	}
	short := slices.Clone(names)
	for i, name := range names {
		if width(name, size) > room {
			short[i], said = fitEnds(said[0], size, room), said[1:]
		}
	}
	return short
}

// shorter is a name of these parts without what was dropped of it, with "…" in its place; whole if nothing would be left.
func shorter(parts, dropped []string) string {
	left := slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return slices.Contains(dropped, part) })
	switch {
	case len(left) == 0 || len(left) == len(parts):
		return strings.Join(parts, ", ")
	case left[0] == parts[0]:
		return strings.Join(left, ", ") + "…"
	}
	return "…" + strings.Join(left, ", ")
}

// beginning is what names begin with alike, in whole words: never a name's last word. Of words such as devices=a and devices=b it has
// the key.
func beginning(names []string) string {
	alike := names[0]
	for _, name := range names {
		for len(alike) > 0 && (!strings.HasPrefix(name, alike) || len(alike) == len(name)) {
			alike = alike[:len(alike)-1]
		}
	}
	words := alike[:strings.LastIndex(alike, " ")+1]
	key := strings.LastIndex(alike, "=") + 1
	value := func(name string) string { v, _, _ := strings.Cut(name[key:], " "); return strings.TrimSuffix(v, "…") }
	if key > len(words) && slices.ContainsFunc(names, func(name string) bool { return value(name) != value(names[0]) }) {
		return alike[:key]
	}
	return words
}

// within limits v to low and high; NaN becomes low.
func within(v, low, high float64) float64 {
	if math.IsNaN(v) {
		return low
	}
	return math.Max(low, math.Min(high, v))
}
