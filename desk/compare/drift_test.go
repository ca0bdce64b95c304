package compare_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
	"tare/stats"
)

// drifting is the noise of a host as it was fitted to 160 trials of study quick on a virtual machine with two CPUs: an Ornstein-Uhlenbeck
// process of the core's speed with a standard deviation of 1.8 %, and 0.93 % of each trial's own.
type drifting struct {
	name    string
	tau     float64 // seconds after which the speed has forgotten itself
	session float64 // standard deviation of a level that all of one folder has and another has not
}

var drifts = []drifting{
	{"as fitted", 4.5, 0}, {"tau 30 s", 30, 0}, {"tau 200 s", 200, 0}, {"session level of 1 %", 4.5, 0.01}, {"session level of 2 %", 4.5, 0.02},
}

// places are the treatments of study quick, in the order of its rows.
var places = []string{"bm large", "bm aa large", "cn docker vanilla large", "cn docker pinned large"}

// folder is what a run of so many rounds gives in which one treatment costs so many times as much as the others: each treatment has a guest
// of one trial in each round, in random order, every 1.06 s.
func (w drifting) folder(g *rand.Rand, rounds int, slow string, by float64) *data.Summary {
	const every, sd, own = 1.06, 0.018, 0.0093
	s := &data.Summary{
		Folders: []data.Folder{{Dir: "R", Host: "h", Rounds: rounds, Study: notebook.Study{Name: "quick", Design: notebook.Design{Floor: rounds, Cap: rounds, Trials: 1}}}},
		Hosts:   []data.Host{{Host: notebook.Host{ID: "h", Hostname: "h"}, Name: "h"}},
	}
	for _, words := range places {
		s.Rows = append(s.Rows, &data.Row{Treatment: notebooktest.Treatment(words), Host: "h", HostID: "h", HostCores: 2, Baseline: places[0],
			Metric: notebook.Metric{Name: "execution time", Unit: "s"}, Representative: true})
	}
	level, speed, keep := w.session*g.NormFloat64(), sd*g.NormFloat64(), math.Exp(-every/w.tau)
	for round := range rounds {
		for _, i := range g.Perm(len(places)) {
			speed = keep*speed + math.Sqrt(1-keep*keep)*sd*g.NormFloat64()
			v := math.Exp(level + speed + own*g.NormFloat64())
			if places[i] == slow {
				v *= by
			}
			r := s.Rows[i]
			r.Values = append(r.Values, data.Value{Block: data.Block{Round: round}, Mean: v, Trials: 1})
			r.Rounds, r.Trials = r.Rounds+1, r.Trials+1
		}
	}
	return s
}

// TestADriftingHostChangesNothing compares pairs of runs between which nothing changed, at a margin of 1 %. At most 5 % of the comparisons name a
// change of any treatment, however the host's speed drifts within a run and between runs. At least seven of ten comparisons find a slowdown
// of 3 %, more than a comparison of means does.
func TestADriftingHostChangesNothing(t *testing.T) {
	const pairs, rounds, margin, slow = 1000, 20, 0.01, "cn docker pinned large"
	for i, w := range drifts {
		g := rand.New(rand.NewPCG(uint64(i), 31))
		alarms, found, wrong := 0, 0, 0
		for range pairs {
			before := w.folder(g, rounds, "", 1)
			if len(from(t, before, w.folder(g, rounds, "", 1), margin).Found(stats.Slower, stats.Faster)) > 0 {
				alarms++
			}
			named := from(t, before, w.folder(g, rounds, slow, 1.03), margin).Found(stats.Slower, stats.Faster)
			for _, x := range named {
				if x.Old.Treatment.ID == slow && x.Answer == stats.Slower {
					found++
				}
			}
			if len(named) > 1 || len(named) == 1 && named[0].Old.Treatment.ID != slow {
				wrong++
			}
		}
		share := func(n int) float64 { return float64(n) / pairs }
		t.Logf("%s: a change is named in %.1f %% where there is none; 3 %% more is found in %.1f %%, and another in %.1f %%", w.name, 100*share(alarms), 100*share(found), 100*share(wrong))
		if share(found) < 0.7 {
			t.Errorf("%s: 3 %% more is found in %.1f %%, want 70 %% at least", w.name, 100*share(found))
		}
		if share(alarms) > stats.Alpha || share(wrong) > stats.Alpha {
			t.Errorf("%s: a change that is none is named in %.1f %% and %.1f %%, want at most 5 %%", w.name, 100*share(alarms), 100*share(wrong))
		}
	}
}
