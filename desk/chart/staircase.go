package chart

import (
	"math"
	"slices"

	"tare/desk/data"
	"tare/desk/ladder"
	"tare/desk/words"
	"tare/notebook"
)

// byIsolation is the axis of a figure that is a staircase of the isolation ladder.
var byIsolation = notebook.FactorIsolation.Name

// staircases are the panels of a figure by isolation: one for each staircase, and of the folders whose studies declare it.
func staircases(s *data.Summary, f notebook.Figure) []*Panel {
	var list []*Panel
	for _, c := range ladder.Of(s) {
		if c.Workload != f.Workload || !contains(c.Work().Assigned(), f.Params) {
			continue
		}
		p := stairPanel(s, c)
		if f.Name != "" && !slices.ContainsFunc(p.Rows, func(r *data.Row) bool { return ofStudy(s, r, f) }) {
			continue
		}
		p.name, p.heading = words.Plain(f.Name), words.Plain(f.Title)
		list = append(list, p)
	}
	return list
}

// contains says whether some parameters are all among others.
func contains(all, some map[string]string) bool {
	for k, v := range some {
		if all[k] != v {
			return false
		}
	}
	return true
}

func stairPanel(s *data.Summary, c *ladder.Staircase) *Panel {
	where := words.Where(s, &data.Row{Host: c.Host, HostID: c.HostID, HostCores: c.HostCores, Treatment: c.Work()})
	if c.OtherImages {
		where += ", " + words.Plain(words.Digests(c.Image))
	}
	p := &Panel{where: where, workload: words.Plain(c.Workload), axis: byIsolation, Staircase: c}
	for _, r := range c.Rungs {
		if r.Row != nil {
			p.Rows, p.Places = append(p.Rows, r.Row), append(p.Places, words.Plain(r.Name))
		}
	}
	return p
}

// staircase draws a ladder of isolation from bare metal down, a line for each rung: the edge of the stairs is its ratio to
// bare metal.
func staircase(p *Panel, stem string) *Figure {
	c := p.Staircase
	if c == nil {
		return nil
	}
	f := &Figure{File: stem + "-ladder", Title: p.title("Overhead by isolation level"), Lead: words.Tight(words.Plain(words.Staircase(c))), How: words.Stairs, Staircase: c}
	_, high := stairSpan(c)
	f.Caption, f.Alt, f.Picture = words.StairMarks(c, high), words.StairRungs(c), drawStairs(c)
	return f
}

// stairSpan is the range of the axis: the layers' ratios with their intervals, and of the others those that do not squash
// the layers.
func stairSpan(c *ladder.Staircase) (low, high float64) {
	var marks []Mark
	for _, r := range c.Rungs {
		if r.Kind <= ladder.Layer && r.Measured() {
			marks = append(marks, Mark{Value: r.Ratio.Value, Low: r.Ratio.Low, High: r.Ratio.High, IsReference: r.Kind == ladder.BareMetal})
		}
	}
	low, high = ratioSpan(marks)
	most := 1 + math.Max(3*(high-1), 0.2)
	least := 1 - math.Max(3*(1-low), 0.2)
	for _, r := range c.Rungs {
		if v := r.Ratio.Value; !r.Measured() || v > most || v < least {
			continue
		}
		for _, v := range []float64{r.Ratio.Low, r.Ratio.Value, r.Ratio.High} {
			if !math.IsNaN(v) {
				low, high = math.Min(low, math.Max(v, least)), math.Max(high, math.Min(v, most))
			}
		}
	}
	return low, high
}

// stairs is a staircase as it is drawn.
type stairs struct {
	*frame
	c *ladder.Staircase
}

func drawStairs(c *ladder.Staircase) *Picture {
	l := &list{axis: "times bare metal", right: "times the rung below", pitch: 20}
	l.low, l.high = stairSpan(c)
	for _, r := range c.Rungs {
		m := Mark{Names: []string{words.Plain(words.LadderRung(r)), words.Plain(r.Name)}, Faint: !r.Measured()}
		if r.Doubtful {
			m.Names[0], m.Names[1] = m.Names[0]+" ?", m.Names[1]+" ?"
		}
		switch r.Kind {
		case ladder.Engine:
			m.Group = "whole containers"
		case ladder.VM, ladder.ContainerInVM:
			m.Group = "virtual machines"
			if r.Emulated {
				m.Group = words.NotVMsCost
			}
		}
		switch {
		case !r.Measured() || r.Kind == ladder.BareMetal:
		case math.IsNaN(r.Own.Value):
			m.Missing = "no value"
		default:
			m.Words, m.Plain = words.PlusMinus(r.Own.Value, r.Own.Low, r.Own.High, 9), r.Significant
		}
		l.marks = append(l.marks, m)
	}
	s := stairs{l.draw(), c}
	// The stairs' faces first, so that lines and values lie on them.
	for i := range c.Rungs {
		s.face(i)
	}
	s.rule(ink, 1, s.in(1))
	s.standing()
	for i := range c.Rungs {
		s.rung(i)
	}
	return s.Picture
}

// top and foot are the upper and the lower end of a rung's line.
func (s *stairs) top(i int) float64  { return s.middle[i] - s.pitch/2 }
func (s *stairs) foot(i int) float64 { return s.middle[i] + s.pitch/2 }

// face fills a rung's line from bare metal to its ratio.
func (s *stairs) face(i int) {
	r := s.c.Rungs[i]
	if !r.Measured() || r.Kind <= ladder.Again || math.IsNaN(r.Ratio.Value) {
		return
	}
	v := s.in(r.Ratio.Value)
	a, b := min(s.in(1), v), max(s.in(1), v)
	if b-a < 0.1 {
		return
	}
	if r.Emulated {
		s.hatch(hue(r.Treatment), a, s.top(i), b, s.foot(i), 8)
		return
	}
	s.area(hue(r.Treatment)+light, rect(a, s.top(i), b, s.foot(i))...)
}

// standing draws the dotted line from the topmost layer down past the engines that are compared with it.
func (s *stairs) standing() {
	t := s.c.Top()
	if t < 0 {
		return
	}
	last := t
	for i := range s.c.Rungs {
		if s.c.Rungs[i].Kind == ladder.Engine {
			last = i
		}
	}
	if v := s.c.Rungs[t].Ratio.Value; last > t && !math.IsNaN(v) {
		s.lines(notebook.CN, 1, []float64{1.5, 2.5}, point{s.in(v), s.foot(t)}, point{s.in(v), s.foot(last)})
	}
}

// rung draws one rung's edge, the step to it, and its interval.
func (s *stairs) rung(i int) {
	r := s.c.Rungs[i]
	top, mid, foot := s.top(i), s.middle[i], s.foot(i)
	if !r.Measured() {
		s.absent(i)
		return
	}
	v := r.Ratio.Value
	if math.IsNaN(v) {
		return
	}
	col, at := hue(r.Treatment), s.in(v)
	if r.Kind > ladder.Again {
		s.line(col, 1.6, at, top, at, foot)
		if r.Below != nil {
			if b := r.Below.Ratio.Value; !math.IsNaN(b) {
				step := 1.0
				if r.Significant {
					step = 4
				}
				s.line(col, step, s.in(b), top, at, top)
			}
		}
	}
	switch {
	case at != s.x(v):
		s.beyond(col, mid, words.PlusMinus(v, r.Ratio.Low, r.Ratio.High, 9), v > 1)
	case r.Kind != ladder.BareMetal:
		if !math.IsNaN(r.Ratio.Low) && !math.IsNaN(r.Ratio.High) {
			s.whisker(ink, 1.2, true, mid, s.x(math.Max(r.Ratio.Low, 0)), s.x(r.Ratio.High), s.x0, s.x1)
		}
		s.dots(col, 2.4, point{at, mid})
		if r.Emulated || r.Kind == ladder.Again {
			s.dots(paper, 0.8, point{at, mid})
		}
	}
}

// beyond draws an arrow at the end of the axis, with the value that lies beyond it.
func (s *stairs) beyond(col colour, mid float64, value string, right bool) {
	end0, sign, at := s.x1-3, -1.0, end
	if !right {
		end0, sign, at = s.x0+3, 1, start
	}
	value = fit(value, smallSize, s.x1-s.x0-26)
	w := width(value, smallSize)
	from, to := end0, end0+sign*(w+16)
	s.area(paper, rect(min(from, to), mid-6, max(from, to), mid+6)...)
	s.lines(col, 1.6, nil, point{end0 + 5*sign, mid - 4}, point{end0, mid}, point{end0 + 5*sign, mid + 4})
	s.line(col, 1.6, end0+9*sign, mid, end0, mid)
	s.text(end0+12*sign, mid+3.5, at, smallSize, ink, value)
}

// absent says that a rung was not measured, next to the edge that goes on through the gap.
func (s *stairs) absent(i int) {
	at := s.in(1) + 6
	if s.c.Rungs[i].Kind == ladder.Layer && s.c.Top() > i {
		for j := i - 1; j >= 0; j-- {
			r := s.c.Rungs[j]
			if !r.Measured() || r.Kind == ladder.Again || math.IsNaN(r.Ratio.Value) {
				continue
			}
			v := s.in(r.Ratio.Value)
			s.lines(notebook.CN, 1.2, []float64{3, 3}, point{v, s.top(i)}, point{v, s.foot(i)})
			at = v + 6
			break
		}
	}
	const said = "not measured"
	w := width(said, 9)
	at = min(at, s.x1-w)
	s.area(paper, rect(at-2, s.middle[i]-5, at+w+2, s.middle[i]+5)...)
	s.text(at, s.middle[i]+3, start, 9, muted, said)
}
