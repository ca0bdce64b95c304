package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tare/desk/explain"
	"tare/notebook"
)

// spread is a small histogram: how often a time was how long, in a trial of the treatment (upwards) and in one of its baseline
// (downwards), over powers of two of nanoseconds.
type spread struct {
	name         string
	up, down     []float64 // by power of two, for each trial; down nil: the baseline has none
	words, other string    // how many, and their sum
	look, before look
}

// mostSpreads bounds how many an account shows; the largest sums of time go first.
const mostSpreads = 12

// spreadFigure draws an account's distributions; nil where there are none.
func spreadFigure(a *account, stem string) *figure {
	platform := func(t notebook.Treatment) look {
		l := look{platform: t.Platform, solid: true, emulated: !t.Representative()}
		if _, known := strong[t.Platform]; !known {
			l.platform = ""
		}
		return l
	}
	var list []spread
	var sums []float64
	add := func(d *notebook.Distribution, inside bool) {
		if d.Role == notebook.RoleRuler || total(d.Counts) == 0 {
			return
		}
		s := spread{name: spreadName(d, inside, a.Row.Treatment.Platform), up: perTrial(d.Counts, used(a.Account)), look: platform(a.Row.Treatment), words: spreadWords(d, used(a.Account))}
		if b := a.before; b != nil {
			s.before = platform(b.Row.Treatment)
			// What a VM's own threads did compares with what bare metal's did.
			if i := slices.IndexFunc(b.Spread, func(o notebook.Distribution) bool {
				return o.Role == d.Role && o.What == d.What && (o.Of == d.Of || d.What == notebook.BlockIO && direction(o.Of) == direction(d.Of))
			}); i >= 0 && total(b.Spread[i].Counts) > 0 {
				s.down, s.other = perTrial(b.Spread[i].Counts, used(b)), spreadWords(&b.Spread[i], used(b))
			}
		}
		list, sums = append(list, s), append(sums, d.Sum)
	}
	for i := range a.Spread {
		add(&a.Spread[i], false)
	}
	for i := range a.Inside {
		add(&a.Inside[i], true)
	}
	if list == nil {
		return nil
	}
	var note string
	if more := len(list) - mostSpreads; more > 0 {
		by := slices.Clone(sums)
		slices.Sort(by)
		least := by[more]
		kept := list[:0]
		for i, s := range list {
			if sums[i] >= least && len(kept) < mostSpreads {
				kept = append(kept, s)
			}
		}
		list = kept
		note = fmt.Sprintf("The %d of most time; %s more with less.", mostSpreads, thousands(more))
	}
	f := &figure{kind: spreads, file: stem + "-times", title: "How long it ran and waited at a time: " + a.title, spread: list, note: note}
	f.caption = "How often a time was how long, in an explained trial; each bar is twice as long a time as the one before. Upwards: this treatment. Downwards: " + plain(cmp.Or(a.Against, "bare metal")) + ". The two share their scale, which differs from picture to picture."
	var b strings.Builder
	b.WriteString("Histograms. ")
	for i, s := range list {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s: %s", s.name, s.words)
		if s.other != "" {
			fmt.Fprintf(&b, ", %s: %s", plain(a.Against), s.other)
		}
	}
	f.alt = b.String() + "."
	return f
}

// used is how many explained trials an account's distributions are of: failed ones are not in them.
func used(a *explain.Account) int { return a.Explained - a.Failed }

// direction is the last word of a block device's distribution: "read" of "vda read".
func direction(of string) string {
	return of[strings.LastIndexByte(of, ' ')+1:]
}

// reasons are those of the off-CPU time in words.
var reasons = map[string]string{
	notebook.WallThrottled: "throttled", notebook.WallCore: "waiting for a core", notebook.WallBlock: "waiting for a block device", notebook.WallNetwork: "waiting for a socket",
	notebook.WallFutex: "waiting for each other", notebook.WallSleep: "asleep", notebook.WallOther: "waiting, other",
}

func spreadName(d *notebook.Distribution, inside bool, platform string) string {
	var n string
	switch d.What {
	case notebook.OnCPU:
		n = "on a core"
	case notebook.RunQueue:
		n = "in the run queue"
	case notebook.OffCPU:
		n = cmp.Or(reasons[d.Of], plain("off: "+d.Of))
	case notebook.BlockIO:
		n = plain("block I/O, " + d.Of)
	default:
		n = plain(strings.TrimSpace(d.What + " " + d.Of))
	}
	switch {
	case inside:
		n = "in the VM: " + n
	case d.Role == notebook.RoleVCPU:
		n = "vCPUs: " + n
	case d.Role == notebook.RoleIO:
		n = "VM’s I/O: " + n
	case d.Role == notebook.RoleEmulator && platform == notebook.CN:
		n = "sandbox: " + n
	case d.Role == notebook.RoleEmulator:
		n = "emulator: " + n
	}
	return n
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

// spreadWords says how many of a distribution a trial had, and how long they were together.
func spreadWords(d *notebook.Distribution, trials int) string {
	n := float64(total(d.Counts)) / float64(max(1, trials))
	times := digits(n, 2)
	if n >= 10 {
		times = thousands(int(math.Round(n)))
	}
	w := times + "×"
	if d.Unit == "s" {
		w += ", " + seconds(d.Sum/float64(max(1, trials)))
	}
	return w
}

// buckets is the range of powers of two that histograms of one figure share.
func buckets(list []spread) (first, last int) {
	first, last = 64, 0
	for _, s := range list {
		for _, v := range [][]float64{s.up, s.down} {
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

// spreadScene lays the histograms out: three in a line on a page, one on a phone.
func spreadScene(f *figure, narrow bool) scene {
	const height, axis = 96, 18
	w, across := vg.Length(wideWidth), 3
	if narrow {
		w, across = narrowWidth, 1
	}
	lines := (len(f.spread) + across - 1) / across
	h := vg.Length(lines) * (height + axis)
	first, last := buckets(f.spread)
	return scene{w, h, func(c draw.Canvas) {
		slot := w / vg.Length(across)
		for i := range f.spread {
			x := slot * vg.Length(i%across)
			top := h - vg.Length(i/across)*(height+axis)
			f.spread[i].draw(c, x+2, x+slot-14, top-height, top, first, last)
		}
	}}
}

// draw draws one histogram with its name and figures over it.
func (s *spread) draw(c draw.Canvas, x0, x1, y0, y1 vg.Length, first, last int) {
	say(c, x0, y1-11, 0, smallSize, ink, fit(s.name, smallSize, x1-x0))
	words := s.words
	if s.other != "" {
		words += " · below " + s.other
	}
	say(c, x0, y1-23, 0, 9, muted, fit(words, 9, x1-x0))
	y1 -= 29
	up, down := 0.0, 0.0
	for _, v := range s.up {
		up = math.Max(up, v)
	}
	for _, v := range s.down {
		down = math.Max(down, v)
	}
	scale := (y1 - y0) / vg.Length(math.Max(up+down, 1e-9))
	mid := y0 + scale*vg.Length(down)
	step := (x1 - x0) / vg.Length(last-first+1)
	// The powers of a thousand are named first, the other powers of ten where there is room.
	type span struct{ from, to vg.Length }
	var named []span
	for _, thousands := range []bool{true, false} {
		for e, unit := range []string{"ns", "µs", "ms", "s", "000 s"} {
			for k, n := range []string{"1", "10", "100"} {
				at := math.Log2(math.Pow(10, float64(3*e+k))) - float64(first)
				if at < 0 || at > float64(last-first+1) || (k == 0) != thousands {
					continue
				}
				x := x0 + step*vg.Length(at)
				line(c, grid, 0.7, x, y0, x, y1)
				label := strings.Replace(n+" "+unit, " 000", ",000", 1)
				w := textWidth(label, 9) / 2
				if x-w < x0 || x+w > x1 || slices.ContainsFunc(named, func(o span) bool { return x-w < o.to+3 && x+w > o.from-3 }) {
					continue
				}
				named = append(named, span{x - w, x + w})
				say(c, x, y0-11, 0.5, 9, muted, label)
			}
		}
	}
	bars := func(v []float64, l look, sign vg.Length) {
		var faces, lines vg.Path // all of them in one path each: a page has hundreds of bars
		for i, n := range v {
			if i < first || i > last || n <= 0 {
				continue
			}
			x := x0 + step*vg.Length(i-first)
			// What is there at all is seen.
			height := max(vg.Length(n)*scale, 0.8)
			a, b := mid, mid+sign*height
			faces = append(faces, rect(x+0.5, min(a, b), x+step-0.5, max(a, b))...)
			if l.emulated && height >= 2 {
				diagonals(&lines, x+0.5, min(a, b), x+step-0.5, max(a, b), 4)
			}
		}
		if faces == nil {
			return
		}
		c.SetColor(strong[l.platform])
		c.Fill(faces)
		if lines != nil {
			c.SetLineStyle(draw.LineStyle{Color: paper, Width: 0.6})
			c.Stroke(lines)
		}
	}
	bars(s.up, s.look, 1)
	bars(s.down, s.before, -1)
	line(c, muted, 0.7, x0, mid, x1, mid)
}
