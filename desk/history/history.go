// Package history follows a study that runs again and again: what each configuration cost in each run, how much it varies from run to run, and
// since when it costs something else. It is a pure function of summaries, one for each run.
//
// The intervals of one run do not say how much two runs differ: between them the host boots again, and memory lies elsewhere. That is learned
// from the history itself (stats.Shifts).
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
	Runs   []*data.Summary // that measured something, in the order of time
	Empty  []string        // folders of runs that measured nothing
	Tracks []*Track        // in the order of the latest run; then those that it does not have
	Latest []Result        // of each host's latest run: every configuration but the A/A control, in the order of the run
}

// Result is one configuration in the latest run of its host.
type Result struct {
	Run   *data.Summary
	Row   *data.Row
	Track *Track // nil: the configuration has no value in any run
}

// Track is one configuration on one host.
type Track struct {
	Points    []Point  // in the order of time
	Relative  bool     // points are ratios to the baseline; otherwise means, which change with the host's own speed
	Reference bool     // it is what others are relative to: its changes are the host's
	Without   int      // runs that have a mean of it but no ratio, which are no points
	Spread    float64  // standard deviation of the runs around their level, as a share; NaN: of fewer than two
	Changes   []Change // in the order of time
}

// Point is what one run gave.
type Point struct {
	Run   *data.Summary
	Row   *data.Row
	Value float64 // ratio, as a cost, or mean
}

// Change is a change of the level.
type Change struct {
	First         Point   // of the new level; it may be off by two runs
	Before, After float64 // levels
	// Differences are those between the third run before the change and the third run after it, apart from what was measured.
	Differences []data.Doubt
}

// around is how many runs before and after a change certainly belong to the two levels.
const around = 3

// By is the new level over the old one.
func (c Change) By() float64 { return c.After / c.Before }

// Latest is the last point.
func (t *Track) Latest() Point { return t.Points[len(t.Points)-1] }

// Examined says whether the track is long enough to look for changes.
func (t *Track) Examined() bool { return len(t.Points) >= stats.LeastHistory }

// At is when a run ended; zero: it measured nothing.
func At(run *data.Summary) time.Time { return run.Folders[0].Last }

// From puts runs of one study into the order of time. Each summary is of one folder, and all have the same baseline. A configuration without a
// value in a run, or with too many failures, has no point there. It fails where runs are of several studies, where one is a copy of another, or
// where none has a value.
func From(runs []*data.Summary) (*History, error) {
	h := &History{}
	for _, run := range runs {
		first, f := runs[0].Folders[0], run.Folders[0]
		if f.Study.Name != first.Study.Name {
			return nil, fmt.Errorf("%s holds the study %s, but %s the study %s: a history is of one study; name only its folders", first.Dir, first.Study.Name, f.Dir, f.Study.Name)
		}
		if At(run).IsZero() {
			h.Empty = append(h.Empty, f.Dir)
			continue
		}
		h.Runs = append(h.Runs, run)
	}
	slices.SortStableFunc(h.Runs, func(a, b *data.Summary) int { return At(a).Compare(At(b)) })
	for i := 1; i < len(h.Runs); i++ {
		if a, b := h.Runs[i-1].Folders[0], h.Runs[i].Folders[0]; a.Last.Equal(b.Last) && a.Host == b.Host {
			return nil, fmt.Errorf("%s and %s ended at the same moment on the same host: one is a copy of the other; name each run once", a.Dir, b.Dir)
		}
	}
	h.follow()
	if len(h.Tracks) == 0 {
		return nil, errors.New("these folders hold no value of any configuration; name folders in which something was measured")
	}
	examined := 0
	for _, t := range h.Tracks {
		if t.Examined() && !t.Reference {
			examined++
		}
	}
	for _, t := range h.Tracks {
		t.judge(max(examined, 1))
	}
	return h, nil
}

// follow makes the tracks.
func (h *History) follow() {
	tracks := map[data.Identity]*Track{}
	var latest []data.Identity // of h.Latest
	seen := map[string]bool{}  // hosts
	for _, run := range slices.Backward(h.Runs) {
		host := run.Folders[0].Host
		for id, r := range identified(run) {
			if !seen[host] && !r.Treatment.AA {
				h.Latest, latest = append(h.Latest, Result{Run: run, Row: r}), append(latest, id)
			}
			value := r.Mean
			if relative(r) {
				value = r.Cost().Value
			}
			if r.Treatment.AA || r.Unreliable() || !stats.Finite(value) || !(value > 0) {
				continue
			}
			t := tracks[id]
			if t == nil {
				t = &Track{Reference: r.IsBaseline()}
				tracks[id] = t
				h.Tracks = append(h.Tracks, t)
			}
			t.Relative = t.Relative || relative(r)
			t.Points = append(t.Points, Point{run, r, value})
		}
		seen[host] = true
	}
	for i, id := range latest {
		h.Latest[i].Track = tracks[id]
	}
	for _, t := range h.Tracks {
		slices.Reverse(t.Points)
		all := len(t.Points)
		t.Points = slices.DeleteFunc(t.Points, func(p Point) bool { return relative(p.Row) != t.Relative })
		t.Without = all - len(t.Points)
	}
}

// identified are the rows of a run, with what a configuration is the same by. Another image or another kernel of VMs may be what changed it. If a
// run has it with several kernels, each is a configuration.
func identified(run *data.Summary) func(yield func(data.Identity, *data.Row) bool) {
	same := func(r *data.Row, kernel string) data.Identity {
		id := r.Identity()
		id.Digest, id.Input, id.Variant.Kernel = "", "", kernel
		return id
	}
	times := map[data.Identity]int{}
	for _, r := range run.Rows {
		times[same(r, "")]++
	}
	return func(yield func(data.Identity, *data.Row) bool) {
		for _, r := range run.Rows {
			id := same(r, "")
			if times[id] > 1 {
				id = same(r, r.Treatment.Kernel)
			}
			if !yield(id, r) {
				return
			}
		}
	}
}

// relative says whether a row has a ratio to something else.
func relative(r *data.Row) bool { return r.Baseline != "" && !r.IsBaseline() && stats.Finite(r.Ratio) }

// judge finds the changes of one of so many tracks.
func (t *Track) judge(among int) {
	logs := make([]float64, len(t.Points))
	for i, p := range t.Points {
		logs[i] = math.Log(p.Value)
	}
	shifts, spread := stats.Shifts(logs, among)
	t.Spread = spread
	for _, s := range shifts {
		c := Change{First: t.Points[s.At], Before: math.Exp(s.Before), After: math.Exp(s.After)}
		old, new := t.Points[s.At-around], t.Points[s.At+around-1]
		c.Differences = compare.DifferencesOf(old.Run, new.Run)
		if d, is := compare.KernelsDiffer(old.Row, new.Row); is {
			c.Differences = append(c.Differences, d)
		}
		t.Changes = append(t.Changes, c)
	}
}
