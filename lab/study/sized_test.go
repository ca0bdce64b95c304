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

// The study for a first look is long enough for its answer. The host's speed drifts as on a measured host: by 1.8 % in 4.5 s, plus 0.93 % in
// 0.45 s for each run. Trials take turns. If a container costs computation nothing, four of five first looks know that within ± 1 %. Three
// kinds of work end in three minutes.
func TestFirstLookIsLongEnough(t *testing.T) {
	s, err := studyfile.Load(studies.FS, "quick", known)
	if err != nil {
		t.Fatal(err)
	}
	asked, err := s.Ask(workloads.FS, studyfile.Choices{})
	if err != nil {
		t.Fatal(err)
	}
	d := asked.Design
	millions, err := strconv.Atoi(s.Workloads[0].Params["millions"][0])
	if err != nil {
		t.Fatal(err)
	}
	seconds := 0.45 * float64(millions) / 400
	const looks, guests, making = 400, 4, 0.16 // bare metal twice, two containers
	rounds := float64(d.Cap*guests*len(s.Workloads)) * (making + float64(d.Warmups+d.Trials)*seconds)
	if rounds > 150 {
		t.Errorf("its rounds take %.0f s; 150 s leave half a minute for VMs", rounds)
	}
	w := &drifting{rng: rand.New(rand.NewPCG(20, 26))}
	precise := 0
	for range looks {
		var x, y []float64
		for range d.Cap {
			took := w.round(guests, d.Warmups, d.Trials, seconds, making)
			x, y = append(x, took[0]), append(y, (took[1]+took[2])/2)
		}
		if q := stats.Ratio(x, y, stats.Sure(d.Looks())); max(q.High/q.Value-1, 1-q.Low/q.Value) <= 0.01 {
			precise++
		}
	}
	if share := float64(precise) / looks; share < 0.8 {
		t.Errorf("the ratio of a container's computation is known within ± 1 %% in %.3f of the first looks", share)
	}
}

// drifting is a host whose speed drifts.
type drifting struct {
	rng   *rand.Rand
	level float64
}

// pass lets s seconds pass.
func (w *drifting) pass(s float64) {
	keep := math.Exp(-s / 4.5)
	w.level = keep*w.level + math.Sqrt(1-keep*keep)*w.rng.NormFloat64()
}

// round returns the mean of each guest's trials, relative to their time at the mean speed. Guests live at the same time, and each pass
// gives one trial to each of them.
func (w *drifting) round(guests, warmups, trials int, seconds, making float64) []float64 {
	took := make([]float64, guests)
	w.pass(float64(guests) * (making + float64(warmups)*seconds))
	for range trials {
		for _, guest := range w.rng.Perm(guests) {
			const steps = 2
			one := 1 + 0.0093*math.Sqrt(0.45/seconds)*w.rng.NormFloat64()
			for range steps {
				one += 0.018 * w.level / steps
				w.pass(seconds / steps)
			}
			took[guest] += one / float64(trials)
		}
	}
	return took
}
