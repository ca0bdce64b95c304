package chart

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"tare/desk/explain"
	"tare/desk/words"
	"tare/notebook"
)

// histogram says how often a time was how long, in a trial of the treatment (upwards) and in one of its baseline
// (downwards), over powers of two of nanoseconds.
type histogram struct {
	name          string
	up, down      []float64 // by power of two, for each trial; down nil: the baseline has none
	words, other  string    // how many, and their sum
	style, before style
	sum           float64
}

// mostHistograms bounds how many an account shows; the largest sums of time go first.
const mostHistograms = 12

// times draws an account's distributions; nil where there are none, or where it compares two treatments that have their own.
func times(a *Account, stem string) *Figure {
	list := histograms(a)
	if list == nil || a.Against.Provisioning != "" {
		return nil
	}
	f := &Figure{File: stem + "-times", Title: words.Durations + ": " + a.Title, Folded: words.Durations}
	if more := len(list) - mostHistograms; more > 0 {
		bySum := slices.Clone(list)
		slices.SortStableFunc(bySum, func(a, b histogram) int { return cmp.Compare(b.sum, a.sum) })
		list = slices.DeleteFunc(list, func(h histogram) bool {
			return !slices.ContainsFunc(bySum[:mostHistograms], func(o histogram) bool { return o.name == h.name && o.words == h.words })
		})
		f.Note = words.MoreHistograms(mostHistograms, more)
	}
	against := words.Plain(cmp.Or(words.Against(a.Account), "bare metal"))
	f.Caption = words.Histograms(against)
	var said []string
	for _, h := range list {
		s := h.name + ": " + h.words
		if h.other != "" {
			s += ", " + against + ": " + h.other
		}
		said = append(said, s)
	}
	f.Alt, f.Picture = "Histograms. "+strings.Join(said, "; ")+".", drawHistograms(list)
	return f
}

// histograms are an account's distributions next to those of its baseline.
func histograms(a *Account) []histogram {
	plain := func(t notebook.Treatment) style {
		return style{platform: hue(t), solid: true, emulated: !t.Representative()}
	}
	var list []histogram
	add := func(d *notebook.Distribution, inside bool) {
		if d.Role == notebook.RoleRuler || total(d.Counts) == 0 {
			return
		}
		h := histogram{name: words.Distribution(d, inside, a.Row.Treatment.Platform), up: perTrial(d.Counts, used(a.Account)), style: plain(a.Row.Treatment), words: timesWords(d, used(a.Account)), sum: d.Sum}
		if b := a.Before; b != nil {
			h.before = plain(b.Row.Treatment)
			// What a VM's own threads did compares with what bare metal's did.
			if i := slices.IndexFunc(b.Spread, func(o notebook.Distribution) bool {
				return o.Role == d.Role && o.What == d.What && (o.Of == d.Of || d.What == notebook.BlockIO && direction(o.Of) == direction(d.Of))
			}); i >= 0 && total(b.Spread[i].Counts) > 0 {
				h.down, h.other = perTrial(b.Spread[i].Counts, used(b)), timesWords(&b.Spread[i], used(b))
			}
		}
		list = append(list, h)
	}
	for i := range a.Spread {
		add(&a.Spread[i], false)
	}
	for i := range a.Inside {
		add(&a.Inside[i], true)
	}
	return list
}

// used is how many traced trials an account's distributions are of: failed ones are not in them.
func used(a *explain.Account) int { return a.Traced - a.Failed }

// direction is the last word of a block device's distribution: "read" of "vda read".
func direction(of string) string {
	return of[strings.LastIndexByte(of, ' ')+1:]
}

func total(counts []int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}

func perTrial(counts []int64, trials int) []float64 {
	list := make([]float64, len(counts))
	for i, c := range counts {
		list[i] = float64(c) / float64(max(1, trials))
	}
	return list
}

// timesWords says how many of a distribution a trial had, and how long they were together.
func timesWords(d *notebook.Distribution, trials int) string {
	n := float64(max(1, trials))
	return words.TimesInTrial(float64(total(d.Counts))/n, d.Sum/n, d.Unit)
}

// buckets is the range of powers of two that histograms of one figure share.
func buckets(list []histogram) (first, last int) {
	first, last = 64, 0
	for _, h := range list {
		for _, v := range [][]float64{h.up, h.down} {
			for i, n := range v {
				if n > 0 {
					first, last = min(first, i), max(last, i)
				}
			}
		}
	}
	if first > last {
		return 0, 1
	}
	// Some room on both sides, so that one bar is not all there is.
	for last-first < 10 {
		if first > 0 {
			first--
		}
		last++
	}
	return first, last
}

// drawHistograms lays the histograms out two in a line.
func drawHistograms(list []histogram) *Picture {
	const height, across = 112.0, 2
	rows := (len(list) + across - 1) / across
	c := &Picture{w: pageWidth, h: float64(rows) * height}
	first, last := buckets(list)
	slot := c.w / across
	for i := range list {
		x, y := slot*float64(i%across), height*float64(i/across)
		list[i].draw(c, x+2, x+slot-12, y, y+height-18, first, last)
	}
	return c
}

// draw draws one histogram with its name and numbers over it.
func (h *histogram) draw(c *Picture, x0, x1, y0, y1 float64, first, last int) {
	c.text(x0, y0+11, start, smallSize, ink, fit(h.name, smallSize, x1-x0))
	said := h.words
	if h.other != "" {
		said += " · below " + h.other
	}
	c.text(x0, y0+23, start, 9, muted, fit(said, 9, x1-x0))
	y0 += 29
	up, down := 0.0, 0.0
	for _, v := range h.up {
		up = math.Max(up, v)
	}
	for _, v := range h.down {
		down = math.Max(down, v)
	}
	scale := (y1 - y0) / math.Max(up+down, 1e-9)
	mid := y1 - scale*down
	step := (x1 - x0) / float64(last-first+1)
	h.axis(c, x0, x1, y0, y1, first, last)
	bars := func(v []float64, l style, sign float64) {
		// All of them in one shape each: a page has hundreds of bars.
		faces, lines := shape{closed: true, fill: l.platform}, shape{stroke: paper, width: 0.6}
		for i, n := range v {
			if i < first || i > last || n <= 0 {
				continue
			}
			x, tall := x0+step*float64(i-first), max(n*scale, 0.8) // every count above 0 is visible
			faces.lines = append(faces.lines, rect(x+0.4, mid, x+step-0.4, mid-sign*tall))
			if l.emulated {
				for y := 3.0; y < tall; y += 3 {
					lines.lines = append(lines.lines, []point{{x + 0.4, mid - sign*y}, {x + step - 0.4, mid - sign*y}})
				}
			}
		}
		for _, s := range []shape{faces, lines} {
			if s.lines != nil {
				c.list = append(c.list, s)
			}
		}
	}
	bars(h.up, h.style, 1)
	bars(h.down, h.before, -1)
	c.line(muted, 0.7, x0, mid, x1, mid)
}

// axis names powers of ten below a histogram: those of a thousand first, the others where there is room.
func (h *histogram) axis(c *Picture, x0, x1, y0, y1 float64, first, last int) {
	place := func(value float64) float64 {
		return x0 + (x1-x0)*(math.Log2(value)-float64(first))/float64(last-first+1)
	}
	var named []tick
	for _, whole := range []bool{true, false} {
		for e, unit := range []string{"ns", "µs", "ms", "s", "000 s"} {
			for k, n := range []string{"1", "10", "100"} {
				t := tick{math.Pow(10, float64(3*e+k)), strings.Replace(n+" "+unit, " 000", ",000", 1)}
				x, half := place(t.value), width(t.label, 9)/2
				if x < x0 || x > x1 || (k == 0) != whole {
					continue
				}
				c.line(grid, 0.7, x, y0, x, y1)
				if x-half < x0 || x+half > x1 || slices.ContainsFunc(named, func(o tick) bool { return math.Abs(place(o.value)-x) < half+width(o.label, 9)/2+4 }) {
					continue
				}
				named = append(named, t)
				c.text(x, y1+11, middle, 9, muted, t.label)
			}
		}
	}
}
