package chart

import "testing"

// Names of groups that do not fit under their bars leave out what they all begin with, and stand on two lines if that is not enough.
func TestNamesUnderBars(t *testing.T) {
	groups := func(names ...string) (marks []Mark) {
		for _, n := range names {
			marks = append(marks, Mark{Group: n}, Mark{Group: n})
		}
		return marks
	}
	long := groups("application lud", "application particle-filter")
	for _, c := range []struct {
		marks []Mark
		room  float64 // of a bar
		lines int
		short string
	}{
		{long, 100, 1, ""},
		{long, width("particle-filter", smallSize)/2 + 1, 1, "application"},
		{long, width("particle-filter", smallSize)/4 + 1, 2, "application"},
		{groups("network bridge", "host’s own network of the host"), 5, 2, ""}, // not all begin so
		{nil, 1, 1, ""},
	} {
		lines, short := under(c.marks, func(bars int) float64 { return c.room * float64(bars) })
		if lines != c.lines || short != c.short {
			t.Errorf("%v a bar: %d lines without %q, want %d without %q", c.room, lines, short, c.lines, c.short)
		}
	}
}
