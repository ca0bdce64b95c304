// Package history follows a study that runs again and again: what each configuration cost in each run, how much it varies from run to run, and
// since when it costs something else. It is a pure function of summaries, one for each run.
//
// Intervals within one run do not say how much two runs differ: the host boots again, memory lies elsewhere. That is learned from the
// history itself (stats.Shifts).
package history

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"tare/desk/compare"
	"tare/desk/data"
	"tare/stats"
)

// History is what the runs of one study say.
type History struct {
	Runs   []*data.Summary // in the order of time
	Tracks []*Track        // in the order of the latest run; then those that it does not have
}

// Track is one configuration on one host.
type Track struct {
	Points   []Point  // in the order of time
	Relative bool     // points are ratios to the baseline; otherwise means, which change with the host's own speed
	Spread   float64  // standard deviation of a run around its level, as a share; NaN: of fewer than two
	Changes  []Change // in the order of time
}

// Point is what one run gave.
type Point struct {
	Run   *data.Summary
	Row   *data.Row
	Value float64 // ratio, as a cost, or mean
}

// Change is a change of the level.
type Change struct {
	Last, First   Point // of the old level, and of the new one
	Before, After float64
	Differences   []data.Doubt // between these two runs, apart from what was measured
}

// By is the new level over the old one.
func (c Change) By() float64 { return c.After / c.Before }

// Latest is the last point.
func (t *Track) Latest() Point { return t.Points[len(t.Points)-1] }

// At is when a run ended.
func At(run *data.Summary) time.Time { return run.Folders[0].Last }

// From puts runs of one study into the order of time. Each summary is of one folder. What has no value, or failed too often, has no point there. It
// fails where runs are of several studies, or where none has a value.
func From(runs []*data.Summary) (*History, error) {
	h := &History{Runs: slices.Clone(runs)}
	for _, run := range h.Runs {
		first, f := h.Runs[0].Folders[0], run.Folders[0]
		if f.Study.Name != first.Study.Name {
			return nil, fmt.Errorf("%s holds the study %s, but %s the study %s: a history is of one study", first.Dir, first.Study.Name, f.Dir, f.Study.Name)
		}
	}
	slices.SortStableFunc(h.Runs, func(a, b *data.Summary) int { return At(a).Compare(At(b)) })
	for i, run := range h.Runs[1:] {
		if a, b := h.Runs[i].Folders[0], run.Folders[0]; a.Last.Equal(b.Last) && a.Host == b.Host {
			return nil, fmt.Errorf("%s and %s ended at the same moment on the same host: one is a copy of the other; name each run once", a.Dir, b.Dir)
		}
	}
	tracks := map[data.Identity]*Track{}
	for _, run := range slices.Backward(h.Runs) {
		for _, r := range run.Rows {
			p, ok := pointOf(run, r)
			if !ok {
				continue
			}
			id := r.Identity()
			id.Digest, id.Input = "", "" // another image is what may have changed it
			t := tracks[id]
			if t == nil {
				t = &Track{Relative: relative(r)}
				tracks[id] = t
				h.Tracks = append(h.Tracks, t)
			}
			if t.Relative == relative(r) {
				t.Points = append(t.Points, p)
			}
		}
	}
	if len(h.Tracks) == 0 {
		return nil, errors.New("these folders hold no value of any configuration")
	}
	for _, t := range h.Tracks {
		slices.Reverse(t.Points)
		t.judge(len(h.Tracks))
	}
	return h, nil
}

// relative says whether a row has a ratio to something else.
func relative(r *data.Row) bool { return r.Baseline != "" && !r.IsBaseline() && stats.Finite(r.Ratio) }

func pointOf(run *data.Summary, r *data.Row) (p Point, ok bool) {
	p = Point{run, r, r.Mean}
	if relative(r) {
		p.Value = r.Cost().Value
	}
	return p, !r.Treatment.AA && !r.Unreliable() && stats.Finite(p.Value) && p.Value > 0
}

// judge finds the changes of one of so many tracks.
func (t *Track) judge(among int) {
	logs := make([]float64, len(t.Points))
	for i, p := range t.Points {
		logs[i] = math.Log(p.Value)
	}
	shifts, spread := stats.Shifts(logs, among)
	t.Spread = spread
	for _, s := range shifts {
		c := Change{t.Points[s.At-1], t.Points[s.At], math.Exp(s.Before), math.Exp(s.After), nil}
		c.Differences = compare.DifferencesOf(c.Last.Run, c.First.Run)
		t.Changes = append(t.Changes, c)
	}
}
