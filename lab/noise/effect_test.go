//go:build linux

package noise

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The interval of a setting's effect contains the truth as often as promised, also with heavy-tailed noise, and where the first run
// of each pair is slower, which is not noise. Distances from zero would count that as noise, and miss nearly always.
func TestEffectsAreCovered(t *testing.T) {
	const studies, pairs, truth, settings = 2000, 20, 0.6, 12
	normal := func(g *rand.Rand) float64 { return g.NormFloat64() }
	heavy := func(g *rand.Rand) float64 { // Student's t with three degrees
		var v float64
		for range 3 {
			z := g.NormFloat64()
			v += z * z
		}
		return g.NormFloat64() / math.Sqrt(v/3)
	}
	for _, x := range []struct {
		name     string
		noise    func(*rand.Rand) float64
		first    float64 // so many times the noise is the first run slower
		settings int
		most     float64
	}{
		{"normal", normal, 0, 1, 0.07}, {"normal", normal, 0, settings, 0.015}, {"heavy tails", heavy, 0, 1, 0.07}, {"heavy tails", heavy, 0, settings, 0.015},
		{"the first is slower", normal, 2, 1, 0.07}, {"the first is slower", normal, 2, settings, 0.015},
	} {
		g := rand.New(rand.NewPCG(7, 31))
		missed := 0
		for range studies {
			all := []*condition{{}}
			for range x.settings {
				all = append(all, &condition{of: &Setting{}})
			}
			for range pairs {
				all[0].differ = append(all[0].differ, 0.01*(x.first+x.noise(g)))
				all[1].differ = append(all[1].differ, 0.01*(x.first+truth*x.noise(g)))
			}
			r := Report{}
			r.conclude(all, []float64{1, 1}, false)
			if e := all[1].of.Effect; e != nil && !(e.Low <= truth && truth <= e.High) { // nil: a few pairs are so far apart that it says nothing
				missed++
			}
		}
		got := float64(missed) / studies
		t.Logf("%s, %d settings: misses in %.1f %%, promised %.1f %%", x.name, x.settings, 100*got, 100*0.05/float64(x.settings))
		if got > x.most {
			t.Errorf("%s, %d settings: misses in %.1f %%, more than %.1f", x.name, x.settings, 100*got, 100*x.most)
		}
	}
}
