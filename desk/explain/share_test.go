package explain_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tare/desk/data"
	"tare/desk/explain"
	"tare/notebook"
	"tare/stats"
)

// Of small overheads only those are shown that came out too large, and a share of one is too small. The interval of a share that is shown holds the truth
// in 93 % and more of accounts nevertheless, whatever the overhead is: throttling is 60 % of it, and a round's elapsed time varies by 2 %.
func TestSharesOfSmallOverheadsHold(t *testing.T) {
	l := newLab().add("bm", one, wall{notebook.WallUser: 1}).add("cn docker vanilla", one, wall{notebook.WallUser: 1})
	l.rounds, l.study.Design.Trials = 10, 1
	s, err := data.Read([]string{l.write(t)}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	bm, cn := s.Rows[0], s.Rows[1]
	spent := func(user, throttled float64) (all data.Seconds) {
		for _, k := range notebook.Walls {
			all = append(all, stats.Sum{Of: map[string]float64{notebook.WallUser: user, notebook.WallThrottled: throttled}[k], N: 1})
		}
		return all
	}
	sum := func(v float64) stats.Sum { return stats.Sum{Of: v, N: 1} }
	for _, c := range []struct {
		overhead float64
		accounts int
	}{{0.005, 6000}, {0.01, 3000}, {0.02, 1500}, {0.04, 1000}} {
		g := rand.New(rand.NewPCG(8, uint64(1000*c.overhead)))
		shown, held, sized, flattered := 0, 0, 0, 0.0
		for range c.accounts {
			for i := range cn.Cells {
				x, y := &cn.Cells[i], &bm.Cells[i]
				x.Elapsed, y.Elapsed = sum(1+c.overhead+0.02*g.NormFloat64()), sum(1)
				throttled := 0.6*c.overhead + 0.002*g.NormFloat64()
				x.Traced.Wall, y.Traced.Wall = spent(1+0.4*c.overhead, throttled), spent(1, 0)
			}
			all, err := explain.From(s)
			if err != nil {
				t.Fatal(err)
			}
			a := all.Accounts[1]
			if !a.Significant() || a.NearZero() {
				continue
			}
			shown, flattered = shown+1, flattered+a.Overhead.Value
			share := a.Parts[2].Share
			if a.Parts[2].Key != explain.Throttled {
				t.Fatal(a.Parts[2].Key)
			}
			if share.Low <= 0.6 && 0.6 <= share.High {
				held++
			}
			if a.Sized() {
				sized++
			} else if !slices.ContainsFunc(a.Doubts, func(d data.Doubt) bool { return d == data.Doubt(explain.JustSignificant{}) }) {
				t.Fatalf("no doubt about the share of %+v", a.Overhead)
			}
		}
		if holds := float64(held) / float64(shown); shown < 200 || holds < 0.93 {
			t.Errorf("overhead of %g: %d accounts show it, and the share holds in %.3f", c.overhead, shown, holds)
		}
		if most := flattered / float64(shown) / c.overhead; c.overhead < 0.01 && most < 2 {
			t.Errorf("an overhead of %g that is shown is %.2f times as large on average: the test says nothing", c.overhead, most)
		}
		if c.overhead == 0.04 && float64(sized) < 0.8*float64(shown) {
			t.Errorf("overhead of %g: %d of %d shares have both ends", c.overhead, sized, shown)
		}
	}
}

// The sentences about the share of an overhead that is just significant.
func TestASentenceOfASmallOverhead(t *testing.T) {
	l := newLab().add("bm", one, wall{notebook.WallUser: 1}).add("cn docker vanilla", one, wall{notebook.WallUser: 1, notebook.WallThrottled: 0.02})
	l.noise = 0.01
	for seed := range 40 {
		l.rounds = 4 + seed%6
		a := read(t, l.write(t)).Accounts[1]
		if !a.Significant() || a.Sized() || len(a.Causes()) == 0 {
			continue
		}
		if text := sentence(a); !strings.Contains(text, "% (above ") {
			t.Error(text)
		}
		return
	}
	t.Error("no such account")
}
