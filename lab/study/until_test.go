package study

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tare/notebook"
)

func TestParseUntil(t *testing.T) {
	for text, want := range map[string]Until{
		"±1%": {Precision: 0.01}, "2.5%": {Precision: 0.025}, " ± 3 % ": {Precision: 0.03}, "+-4%": {Precision: 0.04}, "+/-5%": {Precision: 0.05}, "Decided at 2 %": {Margin: 0.02}, "decided": {Margin: 0.01}, "decided at 2%": {Margin: 0.02},
	} {
		if u, err := ParseUntil(text); err != nil || u != want {
			t.Errorf("%q: %+v, %v; want %+v", text, u, err, want)
		}
	}
	for _, text := range []string{"", "1", "±%", "0%", "101%", "decided at", "decided at x%", "decided at 0%", "claims", "1%%"} {
		if u, err := ParseUntil(text); err == nil || !strings.Contains(err.Error(), "'decided at 2%' was expected") {
			t.Errorf("%q: %+v, %v", text, u, err)
		}
	}
}

// A run until all is decided ends when it is: what costs much more early, what costs the same when its interval lies within the margin.
func TestUntilDecided(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	pinned := cnT
	pinned.Provisioning = notebook.Pinned
	l := &fakeLab{elapsed: func(t notebook.Treatment) time.Duration {
		mean := 1.0
		if t.Platform == notebook.CN && t.Provisioning == notebook.Vanilla {
			mean = 1.3
		}
		return time.Duration(mean * (1 + 0.01*rng.NormFloat64()) * float64(time.Second))
	}}
	book := &fakeBook{}
	r := &Run{Plan: fakePlan(notebook.Design{Floor: 4, Cap: UntilRounds, Decide: 0.02, Trials: 1}, bmT, cnT, pinned), Lab: l, Book: book}
	if reason, err := r.Do(t.Context()); err != nil || reason != Precise {
		t.Fatalf("%q, %v", reason, err)
	}
	n := map[string]int{}
	for _, tr := range book.trials {
		n[tr.Treatment]++
	}
	of := r.Plan.Study.Treatments
	if bm, dear, same := n[of[0].ID], n[of[1].ID], n[of[2].ID]; dear > 6 || same <= dear || same > 60 || bm != same {
		t.Errorf("bare metal in %d rounds, what costs 30 %% more in %d, what costs the same in %d", bm, dear, same)
	}
}
