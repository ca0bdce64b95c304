package terminal

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/desk/explain"
	"tare/desk/words"
	"tare/notebook"
	"tare/stats"
)

// Accounts writes for each treatment its sentence, the table of its parts, which sums to the overhead, what the tracers
// cost, and every doubt. Headings are bold and parts that are not significant are dim; their intervals say the same.
func Accounts(w io.Writer, as *explain.Accounts, on Screen) error {
	t := &text{Screen: on}
	var partly []data.Doubt // what is to be known of the tracers' metrics, which this text does not have
	place := ""
	for i, a := range as.Accounts {
		if i > 0 {
			t.line("")
		}
		if p := words.AccountPlace(a); p != place {
			place = p
			t.head(place)
			t.line("")
		}
		partly = append(partly, t.account(as.Summary, a)...)
	}
	if len(as.Versus) > 0 {
		t.line("")
		t.head(words.LimitsCompared)
		for _, a := range as.Versus {
			t.line("")
			t.wrap("", words.Account(as.Summary, a))
			t.parts(a)
		}
	}
	t.footnotes()
	t.list(words.TracersMetrics, words.Doubts(partly))
	t.list("Notes", words.Doubts(as.Doubts))
	return t.flush(w)
}

// account writes an account, and gives the doubts that are about metrics which it does not show.
func (t *text) account(s *data.Summary, a *explain.Account) (partly []data.Doubt) {
	t.wrap("", words.Account(s, a))
	if a.Baseline != nil && len(a.Parts) > 0 {
		t.parts(a)
	} else {
		t.spent(a)
	}
	var notes []string
	for _, d := range a.Doubts {
		switch d := d.(type) {
		case explain.EventsLost: // the line below says so
		case explain.TracerMissing:
			if d.Partly && d.Tracer != notebook.TracerScheduler {
				partly = append(partly, d)
			} else {
				notes = append(notes, words.Footnote(d))
			}
		default:
			notes = append(notes, words.Footnote(d))
		}
	}
	if a.Of == explain.OfP99 { // the account of the mean says the rest
		if s := words.Slow(a); s != "" {
			t.wrap("  ", s)
		}
		return partly
	}
	line := words.Traced(a)
	if m := t.mark(notes); m != "" {
		line += " " + m
	}
	t.wrap("  ", line)
	return partly
}

// part is a line of a table of parts.
type part struct {
	label, seconds, half, share, of string
	size                            float64 // seconds, of its bar
	dim                             bool
}

// parts writes the account's table: each part with its interval, and the overhead that they sum to.
func (t *text) parts(a *explain.Account) {
	decimals, by, name := digits(a)
	var parts []part
	for _, x := range a.Parts {
		p := part{label: words.Part(x.Key), size: x.Seconds.Value, dim: !x.Significant()}
		p.seconds, p.half = amount(x.Seconds, decimals, by)
		if stats.Finite(x.Share.Value) {
			p.share, p.of = words.Percent(x.Share.Value, 0), words.ShareBounds(x.Share)
		}
		parts = append(parts, p)
	}
	all := part{label: "overhead over " + words.Against(a), size: a.Overhead.Value}
	if a.Of != explain.OfElapsed {
		parts = slices.DeleteFunc(parts, func(p part) bool { return p.size == 0 && p.label != words.Part(explain.Unexplained) }) // requests spent no time on it
	}
	all.seconds, all.half = amount(a.Overhead, decimals, by)
	if a.Divisible() {
		all.share = words.Percent(1, 0)
	}
	t.bars([]string{name, "95 %", "of it", "95 %"}, append(parts, all))
}

// spent writes what a treatment's own time went on, where there is nothing to compare with.
func (t *text) spent(a *explain.Account) {
	all := 0.0
	for _, s := range a.Spent {
		all += s.Seconds.Value
	}
	if !(all > 0) {
		return
	}
	decimals, by, name := digits(a)
	var parts []part
	for _, s := range a.Spent {
		if s.Seconds.Value == 0 {
			continue
		}
		p := part{label: words.Part(s.Key), share: words.Percent(s.Seconds.Value/all, 0), size: s.Seconds.Value}
		p.seconds, p.half = amount(s.Seconds, decimals, by)
		parts = append(parts, p)
	}
	t.bars([]string{name, "95 %", "of the time", ""}, parts)
}

// digits is how an account's seconds are written: with so many decimals, in that unit, which has so many in a second. The
// widest interval deserves two digits, so that all lines have as many and their sum can be checked.
func digits(a *explain.Account) (decimals int, by float64, name string) {
	all := []stats.Estimate{a.Overhead}
	for _, p := range a.Parts {
		all = append(all, p.Seconds)
	}
	if len(a.Parts) == 0 {
		for _, s := range a.Spent {
			all = append(all, s.Seconds)
		}
	}
	size, half := 0.0, 0.0
	for _, e := range all {
		if stats.Finite(e.Value) {
			size = max(size, math.Abs(e.Value))
		}
		if e.HasInterval() {
			half = max(half, (e.High-e.Low)/2)
		}
	}
	name, by = words.Scale(max(size, half))
	least := half * by
	if !(least > 0) {
		least = max(size*by/100, 1e-9)
	}
	return min(max(1-int(math.Floor(math.Log10(least))), 0), 6), by, name
}

// amount writes a time and the half width of its interval.
func amount(e stats.Estimate, decimals int, by float64) (value, half string) {
	if !stats.Finite(e.Value) {
		return "-", ""
	}
	value = words.Number(e.Value*by, decimals)
	if !e.HasInterval() {
		return value, "none"
	}
	return value, fmt.Sprintf("±%.*f", decimals, (e.High-e.Low)/2*by)
}

// Widths of the bars next to the parts where the terminal is wide enough.
const (
	leastBar = 10
	mostBar  = 30
)

// bars writes the parts: a column for each heading, and bars in what is left of the width.
func (t *text) bars(heads []string, parts []part) {
	cols := []column{{gap: 2}, {head: heads[0], gap: 2, right: true}, {head: heads[1], gap: 1}, {head: heads[2], gap: 2, right: true}, {head: heads[3], gap: 1}}
	for _, p := range parts {
		for i, cell := range []string{p.label, p.seconds, p.half, p.share, p.of} {
			cols[i].cells = append(cols[i].cells, cell)
		}
	}
	if !t.fits(cols) {
		cols = cols[:len(cols)-1] // the shares' intervals go first
		t.without(words.SharesIntervals)
	}
	width := mostBar
	if t.Width > 0 {
		width = min(t.Width-total(cols)-2, mostBar)
	}
	if width >= leastBar {
		bars := column{gap: 2}
		for _, p := range parts {
			bars.cells = append(bars.cells, p.bar(parts, width))
		}
		cols = append(cols, bars)
	}
	t.grid(cols, func(i int) bool { return parts[i].dim })
}

// bar draws a part's size in so many columns, from a zero that all parts share: = to the right of it, - to the left.
func (r part) bar(parts []part, width int) string {
	low, high := 0.0, 0.0
	for _, o := range parts {
		if stats.Finite(o.size) {
			low, high = min(low, o.size), max(high, o.size)
		}
	}
	if !(high-low > 0) || !stats.Finite(r.size) {
		return ""
	}
	at := func(v float64) int { return int(math.Round((v - low) / (high - low) * float64(width-1))) }
	zero := at(0)
	if r.size < 0 {
		return strings.Repeat(" ", at(r.size)) + strings.Repeat("-", zero-at(r.size)) + "|"
	}
	return strings.Repeat(" ", zero) + "|" + strings.Repeat("=", at(r.size)-zero)
}
