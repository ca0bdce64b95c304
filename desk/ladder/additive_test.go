package ladder

import (
	"math"
	"math/rand/v2"
	"testing"

	"tare/notebook"
)

// sums is a study of the control group, single layers and nested rungs in which layers cost shares of the time with only a control group.
// together is what a rung costs beyond the sum.
func sums(seed uint64, rounds int, noise float64, cost map[string]float64, together func(layers []string) float64) *study {
	s := newStudy(rounds, noise)
	s.rand = rand.New(rand.NewPCG(seed, 7))
	s.add(rung("bm", "", ""), 0.48)
	for _, isolation := range append(append([]string{}, notebook.Rungs...), notebook.SingleLayers...) {
		share := 1.0
		layers := notebook.LayersOf(isolation)
		for _, l := range layers {
			share += cost[l]
		}
		if together != nil {
			share += together(layers)
		}
		s.add(rung("cn", "layers", isolation), 0.5*share)
	}
	for i := range rounds { // the host is slower in one round and faster in another
		drift := math.Exp(0.05 * s.rand.NormFloat64())
		for _, r := range s.sum.Rows {
			r.Values[i].Mean *= drift
		}
	}
	return s
}

// Where costs add up, at least nine of ten nested rungs lie in their intervals, which are not much wider than what is measured. Costs that are as
// small as the noise are taken to be nothing more often than they are, so there it may be fewer.
func TestSumsOfLayers(t *testing.T) {
	for name, cost := range map[string]map[string]float64{
		"none":  {},
		"few":   {"seccomp": 0.2, "overlay": 0.03, "network": -0.01},
		"small": {"quota": 0.004, "memory": 0.006, "seccomp": 0.005, "mount": 0.008},
		"large": {"pid": 0.5, "seccomp": 2, "overlay": 0.3, "bridge": 0.4},
	} {
		inside, all, wide, interact, covered, costs := 0, 0, 0, 0, 0, 0
		for seed := range uint64(8) {
			m := one(t, sums(seed, 6, 0.01, cost, nil)).Model
			if m == nil || m.Rounds != 6 || len(m.Sums) != len(notebook.Rungs)-1 || len(m.Costs) != len(notebook.Rungs)-1 {
				t.Fatalf("%s: %+v", name, m)
			}
			for _, s := range m.Sums {
				all++
				if s.Inside() {
					inside++
				}
				if s.Wider() > 2 {
					wide++
				}
				if s.Interacts {
					interact++
				}
			}
			for _, c := range m.Costs {
				costs++
				if c.Low <= cost[c.Layer] && c.High >= cost[c.Layer] {
					covered++
				}
			}
		}
		t.Logf("%s: %d of %d inside, %d wider than twice, %d said to interact; %d of %d costs covered", name, inside, all, wide, interact, covered, costs)
		least := 0.9
		if name == "small" {
			least = 0.75
		}
		if float64(inside) < least*float64(all) || wide > all/5 || interact > all/40 || float64(covered) < 0.9*float64(costs) {
			t.Errorf("%s: %d of %d inside, %d wider than twice, %d said to interact; %d of %d costs covered", name, inside, all, wide, interact, covered, costs)
		}
	}
}

// Two layers that cost more together than each alone are found, at the rung where they meet, and not below.
func TestLayersThatInteract(t *testing.T) {
	m := one(t, sums(3, 6, 0.01, map[string]float64{"pid": 0.02}, func(layers []string) float64 {
		has := map[string]bool{}
		for _, l := range layers {
			has[l] = true
		}
		if has["pid"] && has["seccomp"] {
			return 0.15
		}
		return 0
	})).Model
	for _, s := range m.Sums {
		meet := false
		for _, l := range notebook.LayersOf(s.Rung.Treatment.Isolation) {
			meet = meet || l == "seccomp"
		}
		if s.Interacts != meet || meet && math.Abs(s.Excess-0.15) > 0.03 {
			t.Errorf("%s: %+v", s.Rung.Name, s)
		}
	}
}

// Without guests of one layer, with two rounds, and for a rate there is no model, none, and the same one.
func TestWhatTheModelNeeds(t *testing.T) {
	if m := one(t, whole(0.01)).Model; m != nil {
		t.Errorf("without single layers: %+v", m)
	}
	if m := one(t, sums(1, 2, 0.01, nil, nil)).Model; m != nil {
		t.Errorf("with two rounds: %+v", m)
	}
	cost := map[string]float64{"seccomp": 0.3}
	times := one(t, sums(1, 6, 0.001, cost, nil)).Model
	s := sums(1, 6, 0.001, cost, nil)
	for _, r := range s.sum.Rows {
		r.Metric = notebook.Metric{Name: "operations", Unit: "1/s", Better: notebook.Higher}
		for i := range r.Values {
			r.Values[i].Mean = 1 / r.Values[i].Mean
		}
	}
	rates := one(t, s).Model
	for i, c := range times.Costs {
		if r := rates.Costs[i]; math.Abs(c.Value-r.Value) > 1e-9 || (c.Layer == "seccomp") != (c.Probability > 0.99) {
			t.Errorf("%s: %+v of times, %+v of rates", c.Layer, c, r)
		}
	}
}
