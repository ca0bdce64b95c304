package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"tare/desk/data"
	"tare/desk/fleet"
	"tare/desk/words"
	"tare/stats"
)

const (
	fleetPictures = 12  // configurations whose hosts are drawn
	fleetPoints   = 600 // hosts in such a picture
)

// OfFleet draws what many hosts say together: all configurations with the means over hosts and what to expect on the next one, and for each of the
// first configurations the hosts, sorted.
func OfFleet(f *fleet.Fleet) (all []Figure) {
	shown := slices.DeleteFunc(f.Primary(), func(c *fleet.Configuration) bool { return c.Across.N == 0 })
	if len(shown) == 0 {
		return nil
	}
	scale := fleetScale{share: !slices.ContainsFunc(shown, func(c *fleet.Configuration) bool { return c.Ratio.Value >= 2 })}
	said := map[string]bool{}
	overview := scale.overview(f, shown)
	all = append(all, overview.finish(said))
	for i, c := range shown[:min(len(shown), fleetPictures)] {
		if c.Across.N > 1 {
			hosts := scale.hosts(f, shown, c, i+1)
			all = append(all, hosts.finish(said))
		}
	}
	if n := len(shown) - fleetPictures; n > 0 {
		all[0].Note = words.FleetNotDrawn(n)
	}
	return all
}

// fleetScale draws costs as changes in per cent (share), or as ratios.
type fleetScale struct{ share bool }

func (s fleetScale) of(v float64) float64 {
	if s.share {
		return 100 * (v - 1)
	}
	return v
}

func (s fleetScale) axis(f *fleet.Fleet) string {
	if s.share {
		return words.FleetAxis(f)
	}
	return words.FleetRatioAxis(f)
}

// overview draws a line for each configuration.
func (s fleetScale) overview(f *fleet.Fleet, shown []*fleet.Configuration) Figure {
	looks := newStyles(f.Sum.Rows, true)
	var marks []Mark
	low, high := s.of(1), s.of(1)
	for _, c := range shown {
		t := c.Row.Treatment
		name := words.FleetName(f, shown, c)
		m := Mark{Names: []string{name, name}, under: words.Brief(t), style: looks.of(t, true), Value: s.of(c.Ratio.Value), Low: s.of(c.Ratio.Low), High: s.of(c.Ratio.High),
			Words: words.FleetMark(c)}
		for _, v := range []float64{m.Value, m.Low, m.High, s.of(c.Next.Low), s.of(c.Next.High)} {
			if stats.Finite(v) {
				low, high = min(low, v), max(high, v)
			}
		}
		marks = append(marks, m)
	}
	pad := max(0.05*(high-low), 1e-9)
	l := &list{axis: s.axis(f), pitch: 24, marks: marks, signed: s.share, low: low - pad, high: high + pad}
	d := l.draw()
	d.rule(ink, 1, d.x(s.of(1)))
	for i, c := range shown {
		if c.Next.HasInterval() {
			d.area(marks[i].style.platform+light, rect(d.x(s.of(c.Next.Low)), d.middle[i]-7, d.x(s.of(c.Next.High)), d.middle[i]+7)...)
		}
	}
	d.intervals(marks)
	return Figure{File: "fleet", Title: words.FleetTitle, How: words.FleetHow, Alt: words.FleetAlt(f, shown), Picture: d.Picture}
}

// hosts draws the hosts of a configuration, sorted by what it costs there.
func (s fleetScale) hosts(f *fleet.Fleet, shown []*fleet.Configuration, c *fleet.Configuration, n int) Figure {
	const left, right, tall = 44, 10, 190
	unlike := map[*fleet.Host]bool{}
	for _, o := range f.Outliers {
		for _, in := range o.In {
			unlike[o.Host] = unlike[o.Host] || in.Of == c
		}
	}
	sorted := make([]int, len(c.Results))
	for i := range sorted {
		sorted[i] = i
	}
	cost := func(i int) float64 { return math.Exp(c.Results[i].Effect.Value) }
	slices.SortStableFunc(sorted, func(a, b int) int { return cmp.Compare(cost(a), cost(b)) })
	sorted = sampled(sorted, func(i int) bool { return unlike[c.Hosts[i]] })

	p := &Picture{w: pageWidth, h: 20 + tall + 20}
	p.text(2, 13, start, smallSize, muted, fit(s.axis(f), smallSize, pageWidth-4))
	base := 22.0 + tall
	low, high := s.of(1), s.of(1)
	for _, i := range sorted {
		low, high = min(low, s.of(cost(i))), max(high, s.of(cost(i)))
	}
	least, most := low-(high-low)/2, high+(high-low)/2 // intervals are shown as far as they do not squash the dots
	for _, i := range sorted {
		if q := c.Results[i].Cost; q.HasInterval() {
			low, high = min(low, max(s.of(q.Low), least)), max(high, min(s.of(q.High), most))
		}
	}
	if c.Next.HasInterval() {
		low, high = min(low, s.of(c.Next.Low)), max(high, s.of(c.Next.High))
	}
	pad := max(0.05*(high-low), 1e-9)
	low, high = low-pad, high+pad
	y := func(v float64) float64 { return base - tall*within((v-low)/(high-low), 0, 1) }
	x := func(k int) float64 { return left + (pageWidth-right-left)*(float64(k)+0.5)/float64(len(sorted)) }
	look := newStyles([]*data.Row{c.Row}, true).of(c.Row.Treatment, true)
	if c.Next.HasInterval() {
		p.area(look.platform+light, rect(left, y(s.of(c.Next.High)), pageWidth-right, y(s.of(c.Next.Low)))...)
	}
	for _, t := range ticks(low, high, 5) {
		p.line(grid, 0.7, left, y(t.value), pageWidth-right, y(t.value))
		p.text(left-5, y(t.value)+3.5, end, smallSize, muted, signedTick(t, s.share))
	}
	p.line(ink, 1, left, y(s.of(1)), pageWidth-right, y(s.of(1)))
	p.lines(look.platform, 1.2, []float64{4, 3}, point{left, y(s.of(c.Ratio.Value))}, point{pageWidth - right, y(s.of(c.Ratio.Value))})
	var spans shape
	spans.stroke, spans.width = look.platform, within(250/float64(len(sorted)), 0.4, 1.4)
	var usual, odd []point
	for k, i := range sorted {
		if q := c.Results[i].Cost; q.HasInterval() {
			spans.lines = append(spans.lines, []point{{x(k), y(s.of(q.Low))}, {x(k), y(s.of(q.High))}})
		}
		at := point{x(k), y(s.of(cost(i)))}
		if unlike[c.Hosts[i]] {
			odd = append(odd, at)
		} else {
			usual = append(usual, at)
		}
	}
	if spans.lines != nil {
		p.list = append(p.list, spans)
	}
	radius := within(400/float64(len(sorted)), 1, 2.6)
	if usual != nil {
		p.dots(look.platform, radius, usual...)
	}
	for _, at := range odd { // a cross: some readers cannot tell colours apart
		p.line(ink, 1.4, at.x-4, at.y-4, at.x+4, at.y+4)
		p.line(ink, 1.4, at.x-4, at.y+4, at.x+4, at.y-4)
	}
	p.text(left, base+14, start, smallSize, muted, words.FleetSorted(len(sorted), c.Across.N))
	name := words.FleetName(f, shown, c)
	return Figure{File: fmt.Sprintf("fleet-%d-%s", n, Slug(name)), Title: words.FleetHostsTitle + ": " + name, How: words.FleetHostsHow, Alt: words.FleetHostsAlt(name, c, len(odd)),
		Picture: p, Spread: true}
}

// signedTick is a tick's label; of changes, what is above 0 has a plus.
func signedTick(t tick, signed bool) string {
	if signed && t.value > 0 {
		return "+" + t.label
	}
	return t.label
}

// sampled takes evenly from a long sorted list, and keeps what must be shown.
func sampled(sorted []int, keep func(i int) bool) []int {
	if len(sorted) <= fleetPoints {
		return sorted
	}
	var all []int
	step := float64(len(sorted)) / fleetPoints
	next := 0.0
	for k, i := range sorted {
		if float64(k) >= next || k == len(sorted)-1 || keep(i) {
			all = append(all, i)
		}
		if float64(k) >= next {
			next += step
		}
	}
	return all
}
