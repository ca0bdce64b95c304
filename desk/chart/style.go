package chart

import (
	"fmt"
	"slices"

	"tare/desk/data"
	"tare/notebook"
)

// style is how a treatment is distinguished from the others without reading: hue by platform, solid or pale by
// provisioning, stripes by engine and network, hatching where it was emulated.
type style struct {
	platform colour
	solid    bool
	pattern  int // 0: none; the n-th engine, or engine and network, of a platform
	emulated bool
}

// styles knows which engines, and networks where those differ, each platform has in a figure.
type styles map[string][]string

func variant(t notebook.Treatment, network bool) string {
	whole := t.Provisioning == notebook.Whole // it is as solid as what is pinned
	if network {
		return fmt.Sprintf("%q %q %q %q %t", t.Engine, t.Isolation, t.Network, t.Machine, whole)
	}
	return fmt.Sprintf("%q %q %q %t", t.Engine, t.Isolation, t.Machine, whole)
}

func newStyles(rows []*data.Row, network bool) styles {
	l := styles{}
	for _, r := range rows {
		t := r.Treatment
		if v := variant(t, network); !slices.Contains(l[t.Platform], v) {
			l[t.Platform] = append(l[t.Platform], v)
		}
	}
	return l
}

func (l styles) of(t notebook.Treatment, network bool) style {
	k := style{platform: hue(t), solid: t.Provisioning != notebook.Vanilla, emulated: !t.Representative()}
	k.pattern = max(0, slices.Index(l[t.Platform], variant(t, network)))
	return k
}

// hue is the colour of a treatment's platform.
func hue(t notebook.Treatment) colour {
	if c := colour(t.Platform); rgb[c] != "" && rgb[c+light] != "" {
		return c
	}
	return other
}

// stripes are the distances between a pattern's lines across a bar and along it; 0: it has no such lines. Close and wide lines, and
// grids of them, tell eight patterns apart.
func stripes(pattern int) (across, along float64) {
	all := [][2]float64{{}, {5, 0}, {0, 6}, {5, 6}, {0, 12}, {5, 12}, {10, 0}, {10, 12}}
	d := all[min(pattern, len(all)-1)]
	return d[0], d[1]
}

// box draws a bar or a legend's swatch.
func (c *Picture) box(k style, x0, y0, x1, y1 float64) {
	face, line := k.platform, paper
	var dash []float64
	switch {
	case k.emulated:
		face, line, dash = paper, k.platform, []float64{3, 2}
	case !k.solid:
		face, line = k.platform+light, k.platform
	}
	c.area(face, rect(x0, y0, x1, y1)...)
	if k.emulated {
		step := 8.0
		if k.solid {
			step = 4
		}
		c.hatch(k.platform, x0, y0, x1, y1, step)
	}
	lines := shape{stroke: line, width: 0.9}
	across, along := stripes(k.pattern)
	for y := y1 - 4; across > 0 && y > y0+1; y -= across {
		lines.lines = append(lines.lines, []point{{x0, y}, {x1, y}})
	}
	for x := x0 + 4; along > 0 && x < x1-1; x += along {
		lines.lines = append(lines.lines, []point{{x, y0}, {x, y1}})
	}
	if lines.lines != nil {
		c.list = append(c.list, lines)
	}
	c.list = append(c.list, shape{lines: [][]point{rect(x0, y0, x1, y1)}, closed: true, stroke: k.platform, width: 1, dash: dash})
}

// symbol draws a ratio's mark: circle, square, triangle or diamond by platform; hollow where vanilla.
func (c *Picture) symbol(k style, x, y float64) {
	const r = 4.4
	var pts []point
	switch k.platform {
	case notebook.CN:
		pts = rect(x-r*0.86, y-r*0.86, x+r*0.86, y+r*0.86)
	case notebook.VM:
		pts = []point{{x, y - r*1.1}, {x - r, y + r*0.8}, {x + r, y + r*0.8}}
	case notebook.VMCN:
		pts = []point{{x, y - r*1.2}, {x - r*1.2, y}, {x, y + r*1.2}, {x + r*1.2, y}}
	default:
		c.dots(k.platform, r, point{x, y})
		if !k.solid {
			c.list = append(c.list, shape{lines: [][]point{{{x, y}}}, stroke: paper, width: 2*r - 3.4, round: true})
		}
		return
	}
	face := paper
	if k.solid {
		face = k.platform
	}
	c.list = append(c.list, shape{lines: [][]point{pts}, closed: true, fill: face, stroke: k.platform, width: 1.7})
}

// whisker draws an interval with caps from lo to hi at a fixed place across: along x where it lies. An end beyond first or
// last becomes an arrow. On a bar it has a rim of paper, or it would drown in the bar's colour.
func (c *Picture) whisker(col colour, width float64, lies bool, at, lo, hi, first, last float64) {
	pt := func(along, across float64) point {
		if lies {
			return point{along, at + across}
		}
		return point{at + across, along}
	}
	if first > last { // upright: y grows downwards
		first, last = last, first
	}
	if lo > hi {
		lo, hi = hi, lo
	}
	s := shape{stroke: col, width: width}
	finish := func(v, limit, inward float64) float64 {
		if inward > 0 && v < limit-0.01 || inward < 0 && v > limit+0.01 {
			s.lines = append(s.lines, []point{pt(limit+4*inward, 3), pt(limit, 0), pt(limit+4*inward, -3)})
			return limit
		}
		s.lines = append(s.lines, []point{pt(v, 3), pt(v, -3)})
		return v
	}
	from, to := finish(lo, first, 1), finish(hi, last, -1)
	s.lines = append(s.lines, []point{pt(from, 0), pt(to, 0)})
	if col == ink {
		rim := s
		rim.stroke, rim.width = paper, width+2
		c.list = append(c.list, rim)
	}
	c.list = append(c.list, s)
}
