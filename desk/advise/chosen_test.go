package advise

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// alike reads a folder with k treatments that differ only in their engine.
func alike(t *testing.T, k int) *data.Summary {
	t.Helper()
	l := newLab(8)
	for i := range k {
		l.treatment(notebook.Treatment{ID: "x" + string(rune('a'+i)), Workload: "ffmpeg", Platform: notebook.CN, Engine: "docker" + string(rune('a'+i)), Provisioning: notebook.Vanilla, Instance: one}, 4)
	}
	s, err := data.Read([]string{l.write(t)}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// drawn ranks the treatments with new values: each is 1 in the mean, and each round is slow or fast as a whole.
func drawn(t *testing.T, s *data.Summary, g *rand.Rand, own func(row int) float64) Ranking {
	t.Helper()
	rounds := make([]float64, 10)
	for i := range rounds {
		rounds[i] = 1 + 0.005*g.NormFloat64() // slows all alike
	}
	for i, r := range s.Rows {
		for j := range r.Values {
			r.Values[j].Mean = rounds[r.Values[j].Round] * (own(i) + 0.02*g.NormFloat64())
		}
	}
	a, err := Of(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a.Rankings[0]
}

// The data choose the leader, so a comparison with it may be of any pair of choices. Among equal choices, 95 % of rankings call none worse,
// however many there are. And the interval of the choice that comes first holds for whichever it is.
func TestEqualChoicesAreTies(t *testing.T) {
	for _, k := range []int{2, 4, 6, 10, 20} {
		const rankings = 1500
		s := alike(t, k)
		g := rand.New(rand.NewPCG(31, uint64(k)))
		told, missed := 0, 0
		for range rankings {
			r := drawn(t, s, g, func(int) float64 { return 1 })
			if slices.ContainsFunc(r.Choices, func(c Choice) bool { return !c.Tied }) {
				told++
			}
			if low, high := r.Choices[0].All.Low, r.Choices[0].All.High; low > 1 || high < 1 {
				missed++
			}
		}
		slack := 2 * math.Sqrt(stats.Alpha*(1-stats.Alpha)/rankings)
		if share := float64(told) / rankings; share > stats.Alpha+slack {
			t.Errorf("%d equal choices: one is worse than the first in %.3f of the rankings", k, share)
		}
		if share := float64(missed) / rankings; share > stats.Alpha+slack {
			t.Errorf("%d equal choices: the interval of the first misses in %.3f of the rankings", k, share)
		}
	}
}
