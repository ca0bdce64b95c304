package data_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
	"tare/stats"
)

// Folders without a rule that are read together are looks: the results of earlier ones may be the reason for later ones. If a rule can end a folder's study, the
// study counts the looks itself.
func TestFoldersReadTogetherAreLooks(t *testing.T) {
	folder := func(seed uint64, precision float64) string {
		f := notebooktest.New(2)
		f.Seed, f.Rounds = seed, 10
		f.Study.Design = notebook.Design{Floor: 10, Cap: 10, Precision: precision, Trials: 1, TimeoutS: 60}
		f.Start = f.Start.Add(time.Duration(seed) * time.Hour)
		return f.Add("bm large", 4).Add("cn crun pinned large", 4.2).Write(t)
	}
	a, b, c, ruled := folder(1, 0), folder(2, 0), folder(3, 0), folder(4, 0.05)
	for _, x := range []struct {
		dirs    []string
		level   float64
		folders int
	}{{[]string{a}, 0.95, 0}, {[]string{a, b}, 1 - 0.05/4, 2}, {[]string{a, b, c}, 1 - 0.05/9, 3}, {[]string{a, ruled}, stats.Sure(20).Level(), 0}} {
		s, err := data.Read(x.dirs, data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := s.Rows[1]
		xs, ys, _ := data.Paired(r, s.Rows[0])
		want := stats.Ratio(xs, ys, stats.Confidence{Alpha: 1 - x.level})
		if got := s.Sure(r, stats.Alpha).Level(); math.Abs(got-x.level) > 1e-12 || math.Abs(r.RatioLow-want.Low) > 1e-12 || math.Abs(r.RatioHigh-want.High) > 1e-12 {
			t.Errorf("%d folders: at %.4f, %v to %v; want %.4f, %v to %v", len(x.dirs), got, r.RatioLow, r.RatioHigh, x.level, want.Low, want.High)
		}
		said := 0
		for _, d := range s.Doubts {
			if e, is := d.(data.Extended); is {
				said = e.Folders
			}
		}
		if said != x.folders {
			t.Errorf("%d folders: the doubt counts %d, want %d", len(x.dirs), said, x.folders)
		}
	}
}

// A reader's interval is the last one only where the study could end with it: after as many trials as its design asks for.
func TestALastLookTakesTrials(t *testing.T) {
	read := func(rounds, seen int) *data.Row {
		f := notebooktest.New(2)
		f.Rounds, f.Noise = rounds, 0.001
		f.Study.Design = notebook.Design{Floor: 3, Cap: 40, Precision: 0.02, Trials: 1, Seen: seen, TimeoutS: 60}
		s, err := data.Read([]string{f.Add("bm large", 4).Add("cn crun pinned large", 4.2).Write(t)}, data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if want := (data.Unseen{Runs: rounds, Rarest: rounds / 3}); !slices.Contains(s.Doubts, data.Doubt(want)) {
			t.Errorf("of %d runs: %+v, want %+v among them", rounds, s.Doubts, want)
		}
		return s.Rows[1]
	}
	width := func(r *data.Row) float64 { return r.RatioHigh - r.RatioLow }
	if few, all := width(read(6, 20)), width(read(6, 0)); !(few > 1.2*all) {
		t.Errorf("an interval of %v after 6 trials of 20, and %v where 3 rounds do; want it wider", few, all)
	}
	// Trials of 4 s: twenty of them are sooner than two minutes.
	// The last look may then have more of what may miss than one that may come after three rounds.
	if enough, all := width(read(20, 20)), width(read(20, 0)); !(enough <= all && enough > 0.85*all) {
		t.Errorf("an interval of %v after 20 trials, want a little less than %v", enough, all)
	}
}

// A quota or a hypervisor that held a treatment back in a few of its runs is a warning: no interval of so few holds what that costs.
func TestWhatHeldARunBackSeldom(t *testing.T) {
	for held, want := range map[int]bool{0: false, 1: true, 5: true, 6: false, 15: false} {
		f := notebooktest.New(2)
		f.Rounds = 15
		f.Study.Design = notebook.Design{Floor: 15, Cap: 15, Trials: 1, TimeoutS: 60}
		f.Trial = func(x *notebook.Trial) {
			if x.Round >= held {
				return
			}
			if notebooktest.Treatment(x.Treatment).Platform == notebook.CN {
				x.ThrottledS = 0.1 * x.ElapsedS
			} else {
				x.Beside = &notebook.Beside{StolenS: 2, OfS: 8}
			}
		}
		s, err := data.Read([]string{f.Add("bm large", 4).Add("cn crun vanilla large", 4.2).Write(t)}, data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, by := range []data.Holder{data.Steal, data.Quota} {
			if got := slices.Contains(s.Rows[i].Doubts, data.Doubt(data.SeldomHeld{By: by, Runs: held, Of: 15})); got != want {
				t.Errorf("held back in %d of 15 runs (%s): %v, want a warning: %v", held, by, s.Rows[i].Doubts, want)
			}
		}
	}
}
