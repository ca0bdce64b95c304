package explain_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"tare/desk/data"
	"tare/desk/explain"
	"tare/desk/words"
	"tare/notebook"
)

// A load at a fixed rate takes as long under a CPU limit, except for a few milliseconds. What it is throttled for it sleeps less, and both
// are many times those milliseconds: no share of them is shown, and none is a cause.
func TestNoShareOfNearlyNothing(t *testing.T) {
	l := newLab().add("bm", one, wall{notebook.WallUser: 3, notebook.WallSleep: 2})
	l.noise = 0.0002
	l.add("cn docker vanilla", one, wall{notebook.WallUser: 3, notebook.WallThrottled: 1.02, notebook.WallSleep: 1})
	a := read(t, l.write(t))
	x := find(t, a.Accounts, "cn docker vanilla 1/1GB")
	if !x.Significant() || !x.NearZero() || len(x.Causes()) > 0 && strings.Contains(sentence(x), "%") {
		t.Fatalf("%+v: %s", x.Overhead, sentence(x))
	}
	for _, p := range append(x.Parts, x.Fine...) {
		if !math.IsNaN(p.Share.Value) {
			t.Errorf("%s has the share %+v", p.Key, p.Share)
		}
	}
	if s := sentence(x); !strings.Contains(s, "next to no overhead") || !strings.Contains(s, "+1.02 s throttling, −1.00 s waiting for something else") || strings.Contains(s, "of the overhead is") {
		t.Error(s)
	}
	if slices.ContainsFunc(x.Doubts, func(d data.Doubt) bool { _, is := d.(explain.JustSignificant); return is }) {
		t.Errorf("%q", words.Doubts(x.Doubts))
	}
	// The same share of the time, in one part: a small overhead has its cause.
	l = newLab().add("bm", one, wall{notebook.WallUser: 3, notebook.WallSleep: 2})
	l.noise = 0.0002
	l.add("cn docker vanilla", one, wall{notebook.WallUser: 3, notebook.WallThrottled: 0.02, notebook.WallSleep: 2})
	x = find(t, read(t, l.write(t)).Accounts, "cn docker vanilla 1/1GB")
	if x.NearZero() || len(x.Causes()) != 1 || x.Causes()[0].Key != explain.Throttled {
		t.Errorf("%s", sentence(x))
	}
}
