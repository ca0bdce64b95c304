package data_test

import (
	"math"
	"testing"
	"time"

	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
	"tare/stats"
)

// Folders without a rule that are read together are looks: each may have been run for what those before it said. One of which a rule can end the
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
			t.Errorf("%d folders: it is said of %d, want %d", len(x.dirs), said, x.folders)
		}
	}
}
