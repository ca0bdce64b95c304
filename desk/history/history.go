// Package history follows a study that runs regularly: the cost of each configuration in each run, how much it varies from run to run, and
// when it changed. It is a pure function of summaries, one for each run.
//
// The interval of one run does not say how much two runs differ: between them the host may boot again, and data lies elsewhere in memory.
// stats.Shifts estimates this variation from the history itself.
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

// History holds the runs of one study, and what they show for each configuration.
type History struct {
	Runs   []*data.Summary // in the order of time
	Tracks []*Track        // in the order of the latest run; then the configurations that it lacks
}

// Track is one configuration on one host.
type Track struct {
	Points   []Point  // in the order of time
	Relative bool     // values are costs relative to the baseline; otherwise means, which change with the host's own speed
	Spread   float64  // standard deviation of the runs around their level, as a share; NaN: fewer than two runs
	Changes  []Change // in the order of time
}

// Point is the result of one run.
type Point struct {
	Run   *data.Summary
	Row   *data.Row
	Value float64 // cost relative to the baseline, or mean
}

// Change is a change of the level, which is the mean of consecutive runs.
type Change struct {
	Last, First   Point // the last run of the old level, and the first run of the new one
	Before, After float64
	Differences   []data.Doubt // between these two runs, in everything but their results
}

// By is the new level divided by the old one.
func (c Change) By() float64 { return c.After / c.Before }

// Latest is the last point.
func (t *Track) Latest() Point { return t.Points[len(t.Points)-1] }

// At is when a run ended.
func At(run *data.Summary) time.Time { return run.Folders[0].Last }

// From sorts the runs of one study by time, and finds the changes. Each summary holds one folder. A configuration without a value in a run, or
// with too many failed trials, has no point for this run. From fails if the runs belong to several studies, if two runs are the same, or if
// no run has a value.
func From(runs []*data.Summary) (*History, error) {
	h := &History{Runs: slices.Clone(runs)}
	for _, run := range h.Runs {
		first, f := h.Runs[0].Folders[0], run.Folders[0]
		if f.Study.Name != first.Study.Name {
			return nil, fmt.Errorf("%s holds the study %s, but %s holds the study %s: name only folders of one study", first.Dir, first.Study.Name, f.Dir, f.Study.Name)
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
			id.Digest, id.Input = "", "" // a new image continues the history: it may be the cause of a change
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
		return nil, errors.New("these folders hold no usable result of any configuration: name folders of completed runs")
	}
	for _, t := range h.Tracks {
		slices.Reverse(t.Points)
		t.judge(len(h.Tracks))
	}
	return h, nil
}

// relative reports whether a row has a ratio to a baseline other than itself.
func relative(r *data.Row) bool { return r.Baseline != "" && !r.IsBaseline() && stats.Finite(r.Ratio) }

func pointOf(run *data.Summary, r *data.Row) (p Point, ok bool) {
	p = Point{run, r, r.Mean}
	if relative(r) {
		p.Value = r.Cost().Value
	}
	return p, !r.Treatment.AA && !r.Unreliable() && stats.Finite(p.Value) && p.Value > 0
}

// judge finds the changes of a track. among is the number of tracks in the history: more tracks need stronger evidence.
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
