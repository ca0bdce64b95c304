package study

import (
	"slices"
	"testing"

	"tare/lab/crowd"
	"tare/notebook"
)

// Guests follow each other if idle guests are known to cost too much, unless the study asks for turns.
func TestCostlyIdleGuests(t *testing.T) {
	for _, c := range []struct {
		order string
		cost  *notebook.IdleCost
		most  int
	}{
		{"", nil, 3},
		{"", &notebook.IdleCost{Ratio: 1.02, Low: 0.99, High: 1.05}, 3}, // the interval includes 1
		{"", &notebook.IdleCost{Ratio: 1.02, Low: 1.01, High: 1.03}, 0},
		{notebook.OrderInterleaved, &notebook.IdleCost{Ratio: 1.02, Low: 1.01, High: 1.03}, 3},
	} {
		p := fakePlan(notebook.Design{Floor: 1, Cap: 1, Trials: 1, Order: c.order}, bmT, aaT, cnT, vmT)
		if p.Separate(c.cost); len(p.Together()) != c.most {
			t.Errorf("%+v: %d guests at the same time, want %d", c, len(p.Together()), c.most)
		}
	}
}

// The cost is measured with the guests that will live at the same time, and all of them are removed.
func TestIdleGuestsAreRemoved(t *testing.T) {
	p := fakePlan(plain, bmT, aaT, cnT, vmT)
	of := p.Together()
	if want := []string{"bm", "cn crun"}; !slices.Equal(Engines(of), want) {
		t.Errorf("engines: %q, want %q", Engines(of), want)
	}
	l := &fakeLab{elapsed: steady}
	met := 0
	if err := p.Idle(t.Context(), l, of, func(guests []crowd.Guest) { met = len(guests) }); err != nil || met != 3 || l.Live != 0 {
		t.Errorf("%v: %d guests, %d left; want 3 and 0", err, met, l.Live)
	}
}
