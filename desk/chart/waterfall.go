package chart

import (
	"cmp"
	"math"
	"strings"

	"tare/desk/explain"
	"tare/desk/words"
	"tare/notebook"
	"tare/stats"
)

// Fall is a waterfall: from the baseline's time over each part of the overhead to the treatment's. A part's bar floats
// between where the parts before it end and where it ends itself; those of the two times are plain and stand on the axis.
type Fall struct {
	Bars      []Mark
	Low, High float64 // range of the axis
	cut       bool    // the axis does not begin at 0
}

// waterfall draws what the overhead of a treatment is attributed to, from the baseline's time down to its own. There is
// none where there is no baseline.
func waterfall(a *Account, stem string) *Figure {
	if len(a.Parts) == 0 || !stats.Finite(a.Overhead.Value) || !stats.Finite(a.Elapsed.Value) {
		return nil
	}
	unit, k := words.Scale(Largest(a.Account))
	w := fallOf(a, k)
	solid, pale := 0, 0
	for _, b := range w.Bars {
		switch {
		case b.Plain:
		case b.style.solid:
			solid++
		default:
			pale++
		}
	}
	f := &Figure{File: stem, Title: "Where the time went: " + a.Title, Emulated: a.Emulated, How: words.Waterfall, Caption: words.WaterfallBars(solid, pale)}
	if w.cut {
		f.say(words.AxisIsCut)
	}
	if a.Emulated {
		f.say(words.EmulatedIsHatched)
	}
	f.Alt = words.WaterfallParts(a.Account, unit, k)
	f.Picture = w.Draw(words.TimeOf(a.Account) + ", " + unit)
	return f
}

// fallOf makes an account's bars, in units of 1/k of a second.
func fallOf(a *Account, k float64) *Fall {
	w := &Fall{}
	at := a.Elapsed.Value - a.Overhead.Value
	d := words.Places(k*a.Overhead.Value, k*a.Overhead.Low, k*a.Overhead.High)
	nan := math.NaN()
	from := style{platform: notebook.BM, solid: true}
	if a.Baseline != nil {
		from = style{platform: hue(a.Baseline.Treatment), solid: a.Baseline.Treatment.Provisioning != notebook.Vanilla, emulated: !a.Baseline.Representative}
	}
	w.Bars = append(w.Bars, Mark{Names: []string{words.Plain(cmp.Or(words.Against(a.Account), "bare metal"))}, Value: k * at, Low: nan, High: nan, Plain: true, Words: noZero(k*at, d), style: from})
	for i := range a.Parts {
		part := &a.Parts[i]
		e := part.Seconds
		if !stats.Finite(e.Value) || e.Value == 0 && !part.Significant() && e.Low == 0 && e.High == 0 {
			continue // nothing of it, in every round
		}
		b := Mark{Names: []string{words.Plain(words.Part(part.Key))}, From: k * at, Value: k * (at + e.Value), Low: k * (at + e.Low), High: k * (at + e.High),
			style: style{platform: hue(a.Row.Treatment), solid: part.Significant(), emulated: a.Emulated}}
		if part.Key == explain.Unexplained {
			b.style.platform = other
		}
		// Readers compare the parts of one overhead: none gets many more decimals than the overhead.
		b.Words = words.Signed(words.PlusMinus(k*e.Value, k*e.Low, k*e.High, d+1))
		at += e.Value
		w.Bars = append(w.Bars, b)
	}
	w.Bars = append(w.Bars, Mark{Names: []string{words.Short(a.Row.Treatment, false)}, Value: k * a.Elapsed.Value, Plain: true, Words: noZero(k*a.Elapsed.Value, d),
		Low: k * (a.Elapsed.Value - a.Overhead.Value + a.Overhead.Low), High: k * (a.Elapsed.Value - a.Overhead.Value + a.Overhead.High),
		style: style{platform: hue(a.Row.Treatment), solid: a.Row.Treatment.Provisioning != notebook.Vanilla, emulated: !a.Row.Representative}})
	w.span()
	return w
}

// noZero writes a time with so many decimals, or with as many as it takes to be seen.
func noZero(v float64, decimals int) string {
	if s := words.Number(v, decimals); strings.Trim(s, "0.−") != "" {
		return s
	}
	return words.Digits(v, 2)
}

// span is the range of the axis: from 0 where the overhead can be seen so, else from a little below the lowest part.
func (w *Fall) span() {
	first, top := w.Bars[0].Value, 0.0
	for _, b := range w.Bars {
		top = math.Max(top, math.Abs(b.Value))
	}
	l, h := span(w.Bars, first, first, 0.05*top)
	w.Low, w.High = math.Min(0, l), h
	if room := h - l; l > 0 && room < 0.3*h {
		w.Low, w.cut = l-0.4*room, true
	}
	pad := 0.04 * (w.High - w.Low)
	if !(pad > 0) || math.IsInf(pad, 0) {
		pad = 1
	}
	w.High += pad
	if w.Low < 0 {
		w.Low -= pad
	}
}

// Draw draws it, with what its values are.
func (w *Fall) Draw(axis string) *Picture {
	l := &list{axis: axis, low: w.Low, high: w.High, pitch: 24, marks: w.Bars}
	f := l.draw()
	base := f.in(math.Max(0, w.Low))
	for i, b := range w.Bars {
		top, foot := f.middle[i]-7, f.middle[i]+7
		from, to := f.in(b.From), f.in(b.Value)
		if b.Plain {
			from = base
		}
		if lo, hi := min(from, to), max(from, to); hi-lo < 1 {
			f.line(b.style.platform, 1.6, to, top, to, foot)
		} else {
			f.box(b.style, lo, top, hi, foot)
		}
		if b.Plain && w.cut { // torn off: the bar does not begin here
			f.lines(paper, 3, nil, point{base + 5, foot + 1}, point{base + 9, f.middle[i] + 2}, point{base + 5, f.middle[i] - 2}, point{base + 9, top - 1})
		}
		if i+1 < len(w.Bars) && w.Bars[i+1].Group == b.Group {
			f.line(muted, 0.7, to, foot, to, f.middle[i+1]-7)
		}
		if b.High > b.Low {
			f.whisker(ink, 1.2, true, f.middle[i], f.x(b.Low), f.x(b.High), f.x0, f.x1)
		}
	}
	if !w.cut {
		f.rule(ink, 1, base)
	}
	return f.Picture
}

// Largest is the largest number of seconds in an account.
func Largest(a *explain.Account) float64 {
	top := math.Max(math.Abs(a.Elapsed.Value), math.Abs(a.Elapsed.Value-a.Overhead.Value))
	for _, p := range a.Parts {
		top = max(top, math.Abs(p.Seconds.Value))
	}
	return top
}
