package data

import (
	"maps"
	"math"
	"slices"

	"tare/notebook"
	"tare/stats"
)

// Doubts about what a row's numbers are of.
type (
	// IgnoresFlushes: its guests do not pass on to the disk what is synced in them. Sure: its results rest on synced writes; else that is not known.
	IgnoresFlushes struct{ Sure bool }
	// FoundState: so many of its runs found files that earlier runs in the same guest had left; one of them, and how many there were at most.
	FoundState struct {
		File       string
		Files      int
		Trials, Of int
	}
	// ShortRuns: its runs are so short that what starts them matters. Below: they differ from the baseline's by less than the measurement
	// overhead, which is so many seconds; 0: by more, or it is not known.
	ShortRuns struct{ Below float64 }
)

// The same about all that was read.
type (
	// FlushesIgnored is IgnoresFlushes of a platform, and of a workload that syncs what it writes; empty: it is not known of some.
	FlushesIgnored struct {
		Of       Name
		Workload string
	}
	// StateFound is FoundState of a workload.
	StateFound struct {
		Workload string
		FoundState
	}
)

// Doubt makes it a [Doubt].
func (IgnoresFlushes) Doubt() {}

// Doubt makes it a [Doubt].
func (FoundState) Doubt() {}

// Doubt makes it a [Doubt].
func (ShortRuns) Doubt() {}

// Doubt makes it a [Doubt].
func (FlushesIgnored) Doubt() {}

// shortRun is how many seconds a run must take for what starts it not to matter.
const shortRun = 0.010

// syncedBefore are the shipped workloads whose results rest on synced writes, for folders from before it was recorded: with some values of a
// parameter, or with all.
var syncedBefore = map[string]struct {
	param  string
	values []string
}{
	"ladder-io": {}, "wordpress": {}, "ior": {"operation", []string{"write"}}, "cassandra": {"sync", []string{"batch", "group"}},
}

// syncs says whether a treatment's results rest on synced writes, and whether that is known.
func syncs(s notebook.Study, t notebook.Treatment, kind Traits) (synced, known bool) {
	if kind.NoWork {
		return false, true
	}
	if synced, known = s.Syncs[t.Label()]; known {
		return synced, true
	}
	of, is := syncedBefore[t.Workload]
	if !is {
		return false, false
	}
	return of.param == "" || slices.Contains(of.values, t.Params[of.param]), true
}

// flushless says whether what is synced in a guest does not reach the host's disk. Folders from before it was recorded have it of gVisor by its
// name, and of VMs by the lack of a record of their disk.
func flushless(t notebook.Treatment, g notebook.Guest) bool {
	return g.NoFlush || t.Engine == "gvisor" || notebook.HasMachine(t.Platform) && g.Machine == (notebook.Machine{}) && len(g.Kernel) > 0
}

// foundBy notes what a measured trial found of earlier ones.
func (t *tally) foundBy(f *notebook.Found) {
	if f == nil || len(f.Files) == 0 {
		return
	}
	t.found.Trials++
	t.found.Files = max(t.found.Files, f.N)
	if t.found.File == "" {
		t.found.File = Shortened(f.Files[0])
	}
}

// caveats are added to a row when all of its trials are known. If nobody knows whether the work syncs, only a container's row gets one: the report
// already says which old VMs ignored flushes.
func (t *tally) caveats() {
	if t.row.Rounds > 0 && t.noFlush && (t.synced || !t.known && t.row.Treatment.Platform == notebook.CN) {
		t.row.doubt(IgnoresFlushes{t.synced})
	}
	if t.found.Trials > 0 {
		t.found.Of = t.row.Trials - t.row.Failed
		t.row.doubt(t.found)
	}
}

// short says of a row whose metric is the time of its runs that they are short.
func (r *reader) short(t, base *tally) {
	row := &t.row
	if base == t || row.IsFigure || row.Rounds == 0 || base.row.Rounds == 0 || !(row.Mean > 0 && row.Mean < shortRun) || row.Metric.Unit != "s" || t.otherMetric {
		return
	}
	d := ShortRuns{}
	if overhead := max(r.overhead(t), r.overhead(base)); math.Abs(row.Mean-base.row.Mean) <= overhead {
		d.Below = overhead
	}
	row.doubt(d)
}

// overhead is the measurement overhead in the guests of a row's platform: the median; 0 where it is not known.
func (r *reader) overhead(t *tally) float64 {
	x := t.row.Treatment
	i := slices.IndexFunc(r.ruler, func(k rulerTally) bool {
		return k.of.Host == t.row.HostID && k.of.Platform == x.Platform && k.of.Engine == x.Engine && k.of.Accelerator == x.Accelerator && k.of.Kernel == x.Kernel
	})
	if i < 0 {
		return 0
	}
	return stats.Median(r.ruler[i].costs)
}

// wide are the caveats of rows that are to be known of all that was read: each once, for each workload.
func (s *Summary) wide() (all []Doubt) {
	found := map[string]FoundState{}
	for _, r := range s.Rows {
		if r.IsFigure {
			continue // it has its main row's trials
		}
		for _, d := range r.Doubts {
			switch d := d.(type) {
			case IgnoresFlushes:
				w := FlushesIgnored{Of: Name{Platform: r.Treatment.Platform, Engine: r.Treatment.Engine}}
				if d.Sure {
					w.Workload = r.Treatment.Workload
				}
				if !slices.Contains(all, Doubt(w)) {
					all = append(all, w)
				}
			case FoundState:
				f := found[r.Treatment.Workload]
				if f.File == "" {
					f.File = d.File
				}
				found[r.Treatment.Workload] = FoundState{f.File, max(f.Files, d.Files), f.Trials + d.Trials, f.Of + d.Of}
			}
		}
	}
	for _, w := range slices.Sorted(maps.Keys(found)) {
		all = append(all, StateFound{w, found[w]})
	}
	return all
}

// Has gives the row's doubt of a type.
func Has[D Doubt](r *Row) (d D, has bool) {
	for _, x := range r.Doubts {
		if d, has = x.(D); has {
			return d, true
		}
	}
	return d, false
}
