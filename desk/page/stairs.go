package page

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tare/desk/data"
	"tare/desk/ladder"
	"tare/notebook"
)

// byIsolation is the axis of a figure that is a staircase of the isolation ladder.
const byIsolation = "isolation"

// staircases are the panels of a figure by isolation: one for each staircase, and of the folders whose studies declare it.
func staircases(s *data.Summary, f notebook.Figure) []*panel {
	var list []*panel
	for _, c := range ladder.Of(s) {
		if c.Workload != f.Workload || !within(f.Params, c.Params) {
			continue
		}
		p := stairPanel(s, c)
		if f.Name != "" && !slices.ContainsFunc(p.rows, func(r *data.Row) bool { return ofStudy(s, r, f) }) {
			continue
		}
		p.name, p.heading = plain(f.Name), plain(f.Title)
		list = append(list, p)
	}
	return list
}

// within says whether all of some parameters are among others.
func within(some, all map[string]string) bool {
	for k, v := range some {
		if all[k] != v {
			return false
		}
	}
	return true
}

func stairPanel(s *data.Summary, c *ladder.Staircase) *panel {
	where := plain(c.Workload)
	if w := paramWords(c.Params); w != "" {
		where += " (" + w + ")"
	}
	where += " at " + plain(c.Instance.Name)
	if len(s.Hosts) > 1 {
		where += " on " + plain(c.Host)
	}
	if on := s.Online(c.HostID, c.Workload, c.HostCores); on != "" {
		where += " " + on
	}
	if c.Made != "" {
		where += ", " + plain(c.Made)
	}
	p := &panel{where: where, workload: plain(c.Workload), axis: byIsolation, stairs: c}
	for _, r := range c.Rungs {
		if r.Row != nil {
			p.rows, p.places = append(p.rows, r.Row), append(p.places, plain(r.Name))
		}
	}
	return p
}

// stairFigure makes the figure of a staircase.
func (p *panel) stairFigure(stem string) figure {
	c := p.stairs
	f := figure{kind: stairs, file: stem + "-ladder", title: p.title("Overhead by isolation level"), axis: "times bare metal", stairs: c, lead: tight(plain(c.Sentence))}
	f.how = "From the top down, each line has one layer of isolation more, and all of those above it. The edge of the stairs is the mean over bare metal’s in the same rounds, with its 95 % interval; the line at 1 is bare metal. " +
		"On the right is each rung’s own cost: its mean over that of the rung below. A thick step is one that can be told from none, though it was picked from so many."
	f.caption = "Below the stairs: "
	var below []string
	has := map[ladder.Kind]bool{}
	emul := false
	for i := range c.Rungs {
		r := &c.Rungs[i]
		has[r.Kind] = true
		emul = emul || r.Emulated && r.Measured()
	}
	if has[ladder.Engine] {
		below = append(below, "whole containers, each compared with the topmost layer (dotted)")
	}
	if has[ladder.VM] {
		below = append(below, "the VM, compared with bare metal")
	}
	if has[ladder.ContainerInVM] {
		below = append(below, "a container in it, compared with the VM")
	}
	if below == nil {
		f.caption = ""
	} else {
		f.caption += strings.Join(below, "; ") + "."
	}
	if emul {
		f.caption += " Hatched: emulated, which says nothing of a VM’s cost; never ranked."
	}
	if _, high := stairSpan(c); slices.ContainsFunc(c.Rungs, func(r ladder.Rung) bool { return r.Measured() && r.Ratio.Value > high }) {
		f.caption += " An arrow: beyond the axis, with its value."
	}
	return f
}

// stairAlternative says a staircase in words.
func stairAlternative(c *ladder.Staircase) string {
	var b strings.Builder
	b.WriteString("A staircase, from bare metal up. ")
	for i := range c.Rungs {
		r := &c.Rungs[i]
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(plain(r.Label) + ": ")
		switch {
		case !r.Measured():
			b.WriteString("not measured")
		case r.Kind == ladder.BareMetal:
			b.WriteString("1")
		default:
			b.WriteString(stairWords(c, r.Ratio.Value, r.Ratio.Low, r.Ratio.High) + " times bare metal")
			if r.Below > 0 {
				b.WriteString(", " + stairWords(c, r.Own.Value, r.Own.Low, r.Own.High) + " times " + plain(c.Rungs[r.Below].Label))
			}
		}
		if r.Emulated {
			b.WriteString(", emulated")
		}
	}
	return b.String() + "."
}

func stairWords(c *ladder.Staircase, v, low, high float64) string {
	return valueWords(v, data.Floor(c.Metric, low), high, "")
}

// stairData is the figure's data as CSV.
func stairData(f *figure) ([]byte, error) {
	var b bytes.Buffer
	if err := f.stairs.CSV(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// stairSpan is the range of the axis: the layers' ratios with their intervals, and of the others those that do not squash
// the layers.
func stairSpan(c *ladder.Staircase) (low, high float64) {
	var marks []mark
	for i := range c.Rungs {
		if r := &c.Rungs[i]; r.Kind <= ladder.Layer && r.Measured() {
			marks = append(marks, mark{value: r.Ratio.Value, low: r.Ratio.Low, high: r.Ratio.High, isReference: r.Kind == ladder.BareMetal})
		}
	}
	low, high = ratioSpan(marks)
	most := 1 + math.Max(3*(high-1), 0.2)
	least := 1 - math.Max(3*(1-low), 0.2)
	for i := range c.Rungs {
		r := &c.Rungs[i]
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

// steps is a staircase as it is drawn: a line for each rung.
type steps struct {
	c      *ladder.Staircase
	narrow bool
	width  vg.Length
	row    vg.Length   // height
	top    []vg.Length // of each rung's line, from the top of the data
	heads  []stairHead
}

type stairHead struct {
	at   vg.Length // baseline
	text string
}

const (
	stairLabel, stairRight             = 158, 140
	stairLabelNarrow, stairRightNarrow = 76, 82
)

func stairScene(f *figure, narrow bool) scene {
	c := f.stairs
	s := steps{c: c, narrow: narrow, width: wideWidth, row: 21}
	left, right := vg.Length(stairLabel), vg.Length(stairRight)
	if narrow {
		s.width, left, right = narrowWidth, stairLabelNarrow, stairRightNarrow
	}
	at := vg.Length(4)
	var last string
	for i := range c.Rungs {
		r := &c.Rungs[i]
		head := ""
		switch r.Kind {
		case ladder.Engine:
			head = "whole containers"
		case ladder.VM, ladder.ContainerInVM:
			head = "virtual machines"
			if r.Emulated {
				head = "emulated: not a VM’s cost"
			}
		}
		if head != last && head != "" {
			at += 24
			s.heads = append(s.heads, stairHead{at - 7, head})
		}
		last = head
		s.top = append(s.top, at)
		at += s.row
	}
	const top, axis = 26, 20
	h := top + at + 4 + axis
	return scene{s.width, h, func(cv draw.Canvas) {
		own := "own cost, times the rung below"
		if narrow {
			own = "times the rung below"
		}
		said := fit(own, smallSize, s.width/2)
		say(cv, s.width-2, h-14, 1, smallSize, muted, said)
		say(cv, left, h-14, 0, smallSize, muted, fit(f.axis, smallSize, s.width-left-textWidth(said, smallSize)-6))
		p := newPlot()
		p.Y.Min, p.Y.Max = 0, 1
		p.X.Min, p.X.Max = stairSpan(c)
		quiet(&p.X)
		if narrow {
			p.X.Tick.Marker = round(3)
		}
		p.Add(s)
		p.Draw(draw.Crop(cv, left, -right, 4, -top))
	}}
}

func stairPlatform(r *ladder.Rung) string {
	switch r.Kind {
	case ladder.BareMetal, ladder.Again:
		return notebook.BM
	case ladder.VM:
		return notebook.VM
	case ladder.ContainerInVM:
		return notebook.VMCN
	}
	return notebook.CN
}

// Plot draws the stairs, from bare metal down.
func (s steps) Plot(c draw.Canvas, p *plot.Plot) {
	lo, hi := c.Min.X, c.Max.X
	x := func(v float64) vg.Length { return c.X(math.Max(-0.5, math.Min(1.5, p.X.Norm(v)))) }
	in := func(v float64) vg.Length { return max(lo, min(hi, x(v))) }
	for _, t := range major(p.X) {
		line(c, grid, 0.7, x(t.Value), c.Min.Y, x(t.Value), c.Max.Y)
	}
	for _, h := range s.heads {
		y := c.Max.Y - h.at
		c.SetColor(paper)
		c.Fill(rect(lo-4, y-5, hi+4, y+15))
		say(c, 2, y, 0, smallSize, muted, fit(h.text, smallSize, s.width-4))
		line(c, grid, 0.7, 2, y-5, s.width-2, y-5)
	}
	one := in(1)
	y0 := func(i int) vg.Length { return c.Max.Y - s.top[i] }
	rungs := s.c.Rungs
	// The stairs' faces first, so that lines and names lie on them.
	for i := range rungs {
		r := &rungs[i]
		if !r.Measured() || r.Kind <= ladder.Again || math.IsNaN(r.Ratio.Value) {
			continue
		}
		a, b := min(one, in(r.Ratio.Value)), max(one, in(r.Ratio.Value))
		if b-a < 0.1 {
			continue
		}
		k := stairPlatform(r)
		if r.Emulated {
			hatch(c, strong[k], a, y0(i)-s.row, b, y0(i), 8)
			continue
		}
		c.SetColor(light[k])
		c.Fill(rect(a, y0(i)-s.row-0.2, b, y0(i)))
	}
	line(c, ink, 1, one, c.Min.Y, one, c.Max.Y)
	if t := s.c.Top(); t >= 0 {
		last := t
		for i := range rungs {
			if rungs[i].Kind == ladder.Engine {
				last = i
			}
		}
		if v := rungs[t].Ratio.Value; last > t && !math.IsNaN(v) {
			c.StrokeLine2(draw.LineStyle{Color: strong[notebook.CN], Width: 1, Dashes: []vg.Length{1.5, 2.5}}, in(v), y0(t)-s.row, in(v), y0(last)-s.row)
		}
	}
	for i := range rungs {
		s.rung(c, i, x, in, y0)
	}
	for i := range rungs {
		s.words(c, i, in, y0(i)-s.row/2)
	}
}

// rung draws one rung's edge, the step to it, and its interval.
func (s steps) rung(c draw.Canvas, i int, x, in func(float64) vg.Length, y0 func(int) vg.Length) {
	r := &s.c.Rungs[i]
	top, mid, bottom := y0(i), y0(i)-s.row/2, y0(i)-s.row
	if !r.Measured() {
		if below := s.carried(i); below >= 0 {
			v := in(s.c.Rungs[below].Ratio.Value)
			c.StrokeLine2(draw.LineStyle{Color: strong[notebook.CN], Width: 1.2, Dashes: []vg.Length{3, 3}}, v, top, v, bottom)
		}
		return
	}
	v := r.Ratio.Value
	if math.IsNaN(v) {
		return
	}
	k := look{platform: stairPlatform(r), solid: true}
	col := strong[k.platform]
	if r.Kind > ladder.Again {
		c.StrokeLine2(draw.LineStyle{Color: col, Width: 1.6}, in(v), top, in(v), bottom)
	}
	if r.Below >= 0 && r.Kind != ladder.Again {
		if b := s.c.Rungs[r.Below].Ratio.Value; !math.IsNaN(b) {
			w := vg.Length(1)
			if r.Told {
				w = 4
			}
			line(c, col, w, in(b), top, in(v), top)
		}
	}
	if !math.IsNaN(r.Ratio.Low) && !math.IsNaN(r.Ratio.High) && r.Kind != ladder.BareMetal && in(v) == x(v) {
		whisker(c, ink, 1.2, true, mid, x(math.Max(r.Ratio.Low, 0)), x(r.Ratio.High), c.Min.X, c.Max.X)
	}
	if r.Kind == ladder.BareMetal || in(v) != x(v) {
		return
	}
	var dot vg.Path
	circle(&dot, x(v), mid, 2.7)
	c.SetColor(paper)
	if !r.Emulated && r.Kind != ladder.Again {
		c.SetColor(col)
	}
	c.Fill(dot)
	c.SetLineStyle(draw.LineStyle{Color: col, Width: 1.3})
	c.Stroke(dot)
}

// carried is the layer whose height goes on through a gap between layers; −1: none does.
func (s steps) carried(i int) int {
	if s.c.Rungs[i].Kind != ladder.Layer || s.c.Top() < i {
		return -1
	}
	for j := i - 1; j >= 0; j-- {
		if r := &s.c.Rungs[j]; r.Measured() && r.Kind != ladder.Again && !math.IsNaN(r.Ratio.Value) {
			return j
		}
	}
	return -1
}

// words writes a rung's name, and its own cost.
func (s steps) words(c draw.Canvas, i int, in func(float64) vg.Length, mid vg.Length) {
	r := &s.c.Rungs[i]
	label, room, right := r.Label, vg.Length(stairLabel-14), vg.Length(stairRight-10)
	size := vg.Length(textSize)
	if s.narrow {
		label, room, right, size = r.Name, stairLabelNarrow-8, stairRightNarrow-6, smallSize
	}
	col := ink
	if !r.Measured() {
		col = muted
	}
	if r.Doubtful {
		label += " ?"
	}
	say(c, 2, mid-4, 0, size, col, fit(plain(label), size, room))
	if !r.Measured() {
		why := plain(r.Missing)
		if !strings.HasPrefix(why, "not measured") {
			why = "not measured: " + why
		}
		if i > 0 && !s.c.Rungs[i-1].Measured() && s.c.Rungs[i-1].Missing == r.Missing {
			why = "not measured, likewise"
		}
		at := in(1) + 6
		if s.narrow {
			why = "not measured"
		}
		// Beside the edge that goes on through the gap.
		if b := s.carried(i); b >= 0 {
			if v := in(s.c.Rungs[b].Ratio.Value); v-at < 30 {
				at = v + 6
			} else if v < c.Min.X+(c.Max.X-c.Min.X)/2 {
				at = v + 6
			} else {
				why = fit(why, 9, v-at-6)
			}
		}
		why = fit(why, 9, s.width-2-at)
		c.SetColor(paper)
		c.Fill(rect(at-2, mid-5, at+textWidth(why, 9)+2, mid+7))
		say(c, at, mid-3, 0, 9, muted, why)
		return
	}
	value := func(v, low, high float64) string {
		if s.narrow {
			return halfWords(v, low, high)
		}
		return stairWords(s.c, v, low, high)
	}
	if v := r.Ratio.Value; v > 1 && in(v) == c.Max.X {
		// Beyond the axis: an arrow, and the value beside it.
		w := fit(value(v, r.Ratio.Low, r.Ratio.High), smallSize, c.Max.X-c.Min.X-26)
		col := strong[stairPlatform(r)]
		at := c.Max.X - 3
		c.SetColor(paper)
		c.Fill(rect(at-14-textWidth(w, smallSize), mid-6, at+3, mid+8))
		c.StrokeLines(draw.LineStyle{Color: col, Width: 1.6}, []vg.Point{{X: at - 5, Y: mid + 4}, {X: at, Y: mid}, {X: at - 5, Y: mid - 4}})
		line(c, col, 1.6, at-9, mid, at, mid)
		say(c, at-12, mid-4, 1, smallSize, ink, w)
	}
	if r.Kind == ladder.BareMetal {
		return
	}
	if math.IsNaN(r.Own.Value) {
		say(c, s.width-2, mid-4, 1, smallSize, muted, "no value")
		return
	}
	col = muted
	if r.Told {
		col = ink
	}
	say(c, s.width-2, mid-4, 1, smallSize, col, fit(value(r.Own.Value, r.Own.Low, r.Own.High), smallSize, right))
}

// halfWords says a value with half of its interval: "1.20 ± 0.03".
func halfWords(v, low, high float64) string { return halfOf(v, low, high, decimals(v, low, high)) }

// halfOf is halfWords with so many decimals.
func halfOf(v, low, high float64, d int) string {
	half := (high - low) / 2
	if math.IsNaN(half) || math.IsInf(half, 0) {
		return number(v, d) + " ± ?"
	}
	return number(v, d) + " ± " + number(half, d)
}

// rungTable is the table under a staircase.
type rungTable struct {
	ID, Title, Metric string
	Rows              []rungRow
	Gaps              []rungGap
	Unlike            []rungGap // what whole containers have otherwise than the layers
}

type rungRow struct {
	Name, Sub         string
	Own, OwnWords     string
	Below             string
	Ratio, RatioWords string
	Mean, Interval    string
	Rounds            string
	Muted, Told       bool
}

// rungGap is what was not measured for one reason, or what one thing is to be known of.
type rungGap struct{ What, Why string }

func rungs(id string, c *ladder.Staircase) *rungTable {
	t := &rungTable{ID: id, Title: plain(c.Workload) + " at " + plain(c.Instance.Name), Metric: plain(c.Metric.Name)}
	if u := plain(c.Metric.Unit); u != "" {
		t.Metric += ", " + u
	}
	for i := range c.Rungs {
		r := &c.Rungs[i]
		name := plain(r.Label)
		if !r.Measured() {
			why := stop(r.Missing)
			if j := slices.IndexFunc(t.Gaps, func(g rungGap) bool { return g.Why == why }); j >= 0 {
				t.Gaps[j].What += ", " + name
			} else {
				t.Gaps = append(t.Gaps, rungGap{name, why})
			}
			continue
		}
		if r.Kind == ladder.Engine {
			for _, n := range r.Row.Notes {
				why := stop(n)
				if j := slices.IndexFunc(t.Unlike, func(g rungGap) bool { return g.Why == why }); j >= 0 {
					t.Unlike[j].What += ", " + name
				} else {
					t.Unlike = append(t.Unlike, rungGap{name, why})
				}
			}
		}
		row := rungRow{Name: name, Own: "–", OwnWords: "–", Below: "–", Ratio: "–", RatioWords: "–", Rounds: thousands(r.Own.N), Told: r.Told, Muted: r.Emulated || r.Doubtful || r.Failing}
		var subs []string
		for _, s := range []struct {
			is   bool
			text string
		}{{r.Emulated, "emulated: not a VM’s cost"}, {r.Doubtful, "doubtful"}, {r.Failing, "too many trials failed"}, {r.Told, "told from none"}} {
			if s.is {
				subs = append(subs, s.text)
			}
		}
		if len(r.With) > 0 {
			subs = append(subs, "with "+plain(strings.Join(r.With, ", ")))
		}
		row.Sub = strings.Join(subs, "; ")
		d := decimals(r.Row.Mean, r.Row.MeanLow, r.Row.MeanHigh)
		row.Mean, row.Interval = number(r.Row.Mean, d), intervalWords(data.Floor(c.Metric, r.Row.MeanLow), r.Row.MeanHigh, d)
		set := func(value, words *string, v, low, high float64) {
			if !math.IsNaN(v) {
				d := decimals(v, low, high)
				*value, *words = number(v, d), intervalWords(data.Floor(c.Metric, low), high, d)
			}
		}
		set(&row.Ratio, &row.RatioWords, r.Ratio.Value, r.Ratio.Low, r.Ratio.High)
		if r.Kind == ladder.BareMetal {
			row.Ratio, row.RatioWords, row.Rounds = "1", "by definition", thousands(r.Row.Rounds)
		} else {
			set(&row.Own, &row.OwnWords, r.Own.Value, r.Own.Low, r.Own.High)
		}
		if r.Below >= 0 {
			row.Below = plain(c.Rungs[r.Below].Label)
		}
		t.Rows = append(t.Rows, row)
	}
	var own, ratio, mean []*string
	for i := range t.Rows {
		own, ratio, mean = append(own, &t.Rows[i].Own), append(ratio, &t.Rows[i].Ratio), append(mean, &t.Rows[i].Mean)
	}
	alignPoints(own)
	alignPoints(ratio)
	alignPoints(mean)
	return t
}

// isolationWords say how far a treatment of the isolation ladder is isolated; empty where it is none.
func isolationWords(t notebook.Treatment) string {
	switch {
	case t.Isolation == "":
		return ""
	case t.Isolation == notebook.IsolationFull:
		return "isolation in full"
	}
	return "up to " + plain(t.Isolation)
}

// textWidth is how wide a text may be, whichever font the reader has.
func textWidth(s string, size vg.Length) vg.Length {
	f := face(size)
	return f.Width(s) * widerFont
}
