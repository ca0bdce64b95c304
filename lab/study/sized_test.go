package study

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"tare/lab/studyfile"
	"tare/stats"
	"tare/studies"
	"tare/workloads"
)

// The first look is sized for the margin that its answer is judged by. On a host whose speed wanders as one did that was fitted (1.8 % in 4.5 s, and 0.93 % of each
// run's own in 0.45 s), a container that costs nothing gets "no difference" in four of five first looks. With 20 rounds of 0.45 s it got that in one of four.
func TestTheFirstLookIsSizedForItsAnswer(t *testing.T) {
	s, err := studyfile.Load(studies.FS, "quick", known)
	if err != nil {
		t.Fatal(err)
	}
	asked, err := s.Ask(workloads.FS, studyfile.Choices{})
	if err != nil {
		t.Fatal(err)
	}
	design := asked.Design
	millions, err := strconv.Atoi(s.Workloads[0].Params["millions"][0])
	if err != nil {
		t.Fatal(err)
	}
	seconds := 0.45 * float64(millions) / 400
	const looks, guests, making = 400, 4, 0.16 // bare metal twice, two containers
	if wall := float64(design.Cap*guests) * (making + 2*seconds); wall > 180 {
		t.Errorf("its rounds take %.0f s", wall)
	}
	g := rand.New(rand.NewPCG(20, 26))
	same := 0
	for range looks {
		level := g.NormFloat64()
		pass := func(s float64) {
			keep := math.Exp(-s / 4.5)
			level = keep*level + math.Sqrt(1-keep*keep)*g.NormFloat64()
		}
		var x, y []float64
		for range design.Cap {
			var took [guests]float64
			for _, guest := range g.Perm(guests) {
				pass(making + seconds) // it warms up
				const steps = 4
				took[guest] = 1 + 0.0093*math.Sqrt(0.45/seconds)*g.NormFloat64()
				for range steps {
					took[guest] += 0.018 * level / steps
					pass(seconds / steps)
				}
			}
			x, y = append(x, took[0]), append(y, took[1])
		}
		if stats.Ratio(x, y, stats.Sure(design.Looks())).Verdict(stats.Margin) == stats.Equivalent {
			same++
		}
	}
	if share := float64(same) / looks; share < 0.8 {
		t.Errorf("a container that costs nothing gets \"no difference\" in %.3f of the first looks", share)
	}
}
