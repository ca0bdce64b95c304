package data

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"tare/notebook"
	"tare/stats"
)

// Seconds are by category, in the order of categories; nil: of no trial.
type Seconds []stats.Sum

// categories are notebook.Walls, and those that only requests have.
var categories = slices.Concat(notebook.Walls, []string{notebook.WallMemory, notebook.RequestQueued, notebook.RequestLoad})

// Of are the seconds of a category.
func (s Seconds) Of(category string) stats.Sum { return s[slices.Index(categories, category)] }

func (s *Seconds) add(wall map[string]float64) {
	if *s == nil {
		*s = make(Seconds, len(categories))
	}
	for i, k := range categories {
		(*s)[i].Add(wall[k])
	}
}

// TracedCell is what tracers saw of one treatment in one block, in the traced trials that succeeded.
type TracedCell struct {
	Work
	Wall   Seconds // of those that were followed through the scheduler
	Coarse Seconds // of all, from what is known without that: user, system and throttled time

	Value     stats.Sum // the metric
	Mean, P99 Seconds   // of a request, on average, and of the requests around the 99th percentile
	P50       Seconds   // of the requests around the median

	figures []stats.Sum // the tracers' metrics, in the order of Trace.Names as far as there are any
}

// Figure is the metric whose place in Trace.Names is given.
func (c *TracedCell) Figure(i int) stats.Sum {
	if i >= len(c.figures) {
		return stats.Sum{}
	}
	return c.figures[i]
}

// Trace is what tracers saw of one treatment, over all its traced trials.
type Trace struct {
	Trials, Failed int
	Cause          *notebook.Message       // of the first that failed
	Silent         int                     // succeeded, and without anything from a tracer
	Asked          map[string]bool         // tracers that were to observe them
	Saw            map[string]bool         // tracers that observed them, if only in part
	Missing        map[string]Missing      // by tracer: why it, or a part of it, observed nothing
	Lost           int64                   // events that the tracers lost
	Tier           int                     // notebook.Tier…: the lowest of their accounts'; 0: none has one
	Wild           int                     // numbers that no trial can have, and that were not used
	OtherMetric    bool                    // the workload's metric is not the elapsed time
	Requests       Requests                // of trials whose requests were divided
	Walls, Elapsed stats.Sum               // of trials that were followed: what the categories add up to, and the time by the ruler; seconds
	Names          []string                // of the tracers' metrics; "inside." before those that a VM's guest saw
	Totals         []float64               // of each of them
	Spread, Inside []notebook.Distribution // of all trials together; Inside: as seen in a VM's guest
	Stacks         []notebook.Stack        // the longest waits by kernel stack, longest first
}

// Requests describes the requests whose time the traced trials divided.
type Requests struct {
	Of    string // notebook.Requests…, of the first trial; others than that do not count; empty: there are none
	N     int64  // how many, of all trials
	ByAll int    // trials in which Tare does not know which thread served a request
}

// Missing is why a tracer observed nothing.
type Missing struct {
	Why    *notebook.Message
	Inside bool // in the VM's guest
}

// tracing is a Trace in the making.
type tracing struct {
	Trace
	outer, inner   map[string]int // places in Names, by a metric's name on the host and in a VM's guest
	spread, inside spreads
	stacks         map[string]*notebook.Stack
}

// trace makes room for what these tracers see of a folder's trials; none: nothing.
func (t *tally) trace(tracers []string) {
	if len(tracers) == 0 {
		return
	}
	if t.traced == nil {
		t.traced = &tracing{
			Trace: Trace{Asked: map[string]bool{}, Saw: map[string]bool{}, Missing: map[string]Missing{}},
			outer: map[string]int{}, inner: map[string]int{}, spread: spreads{}, inside: spreads{}, stacks: map[string]*notebook.Stack{},
		}
	}
	for _, name := range tracers {
		t.traced.Asked[name] = true
	}
}

// finish gives the trace as a whole.
func (t *tracing) finish() *Trace {
	out := t.Trace
	out.Spread, out.Inside, out.Stacks = t.spread.list(), t.inside.list(), t.longest()
	return &out
}

// Bounds of what is kept of a treatment: a folder is not trusted to be small.
const (
	maxNames  = 1000 // metrics, distributions, missing tracers
	maxStacks = 20   // that are shown; the reader keeps 1,000 times as many

	mostValue = 1e18    // of a metric or of seconds: what is beyond it would make sums of it infinite
	mostCount = 1 << 50 // of a count: a hundred times the sum of a distribution's is still a number
)

// more adds a count to another; what cannot be is nothing, or all that there can be.
func more(to, n int64) int64 { return min(to+min(max(n, 0), mostCount), mostCount) }

// trial takes a traced trial.
func (t *tracing) trial(cell *Cell, n *notebook.Trial) {
	t.Trials++
	if n.Failure != nil {
		t.Failed++
		t.Cause = cmp.Or(t.Cause, Bounded(n.Failure))
		return
	}
	if cell.Traced == nil {
		cell.Traced = &TracedCell{}
	}
	c := cell.Traced
	if math.Abs(n.Value-n.ElapsedS) > 1e-6*math.Abs(n.ElapsedS) {
		t.OtherMetric = true
	}
	c.add(n)
	c.Coarse.add(coarse(n))
	c.Value.Add(n.Value)
	p := n.Trace
	if p == nil {
		t.Silent++
		return
	}
	wall := p.Wall
	if len(wall) == 0 && p.Inside != nil {
		wall = p.Inside.Wall // what the host did to the guest meanwhile is then unexplained
	}
	if len(wall) > 0 && t.tame(slices.Collect(maps.Values(wall))...) {
		c.Wall.add(wall)
		if tier := cmp.Or(p.Tier, notebook.TierEvents); t.Tier == 0 || tier < t.Tier {
			t.Tier = tier
		}
		all := 0.0
		for _, k := range notebook.Walls {
			all += wall[k]
		}
		t.Walls.Add(all)
		t.Elapsed.Add(n.ElapsedS)
	}
	t.requests(c, p.Requests)
	t.figure(c, t.outer, "", p.Figures)
	t.saw(p, false)
	t.spread.add(p.Spread)
	if p.Inside != nil {
		t.figure(c, t.inner, "inside.", p.Inside.Figures)
		t.saw(p.Inside, true)
		t.inside.add(p.Inside.Spread)
	}
	for _, s := range p.Stacks {
		if !t.tame(s.Seconds) {
			continue
		}
		key := strings.Join(s.Frames, "\n")
		if known := t.stacks[key]; known != nil {
			known.Seconds += s.Seconds
			known.Count = more(known.Count, s.Count)
		} else if len(t.stacks) < 1000*maxStacks {
			s.Count = more(0, s.Count)
			t.stacks[key] = &s
		}
	}
}

// requests adds a trial's account of its requests; nil: it has none.
func (t *tracing) requests(c *TracedCell, r *notebook.Requests) {
	if r == nil || r.N <= 0 {
		return
	}
	of := cmp.Or(r.Of, notebook.RequestsServed)
	if t.Requests.Of != "" && t.Requests.Of != of {
		return
	}
	for _, account := range []map[string]float64{r.Mean, r.P50, r.P99} {
		if !t.tame(slices.Collect(maps.Values(account))...) {
			return
		}
	}
	c.Mean.add(r.Mean)
	c.P50.add(r.P50)
	if len(r.P99) > 0 {
		c.P99.add(r.P99)
	}
	t.Requests.Of = of
	t.Requests.N = more(t.Requests.N, int64(r.N))
	if r.ByAll {
		t.Requests.ByAll++
	}
}

// tame says whether all of some figures can be added up, and counts them where they cannot.
func (t *tracing) tame(values ...float64) bool {
	for _, v := range values {
		if math.Abs(v) > mostValue {
			t.Wild += len(values)
			return false
		}
	}
	return true
}

// figure takes a trial's metrics: their places in Trace.Names, and what goes before those that are new there.
func (t *tracing) figure(c *TracedCell, places map[string]int, before string, figures map[string]float64) {
	for name, v := range figures {
		i, known := places[name]
		if !known && len(t.Names) >= maxNames || !t.tame(v) {
			continue
		}
		if !known {
			i = len(t.Names)
			places[name] = i
			t.Names, t.Totals = append(t.Names, before+name), append(t.Totals, 0)
		}
		t.Totals[i] += v
		if more := i + 1 - len(c.figures); more > 0 {
			c.figures = append(c.figures, make([]stats.Sum, more)...)
		}
		c.figures[i].Add(v)
	}
}

// saw takes what the tracers say of themselves.
func (t *tracing) saw(p *notebook.Trace, inside bool) {
	for tracer, why := range p.Missing {
		if _, known := t.Missing[tracer]; !known && len(t.Missing) < maxNames {
			t.Missing[tracer] = Missing{Bounded(why), inside}
		}
	}
	for _, tracer := range p.Looked[:min(len(p.Looked), maxNames)] {
		t.Saw[tracer] = true
	}
	t.Lost = more(t.Lost, p.Lost)
}

// coarse is what a trial's elapsed time went on as far as that can be said without following the scheduler: the CPU
// time that it used and that its quota kept from it. Both are added over cores; where they are more than the time that
// passed, several cores had a part in it at a time, and each gets its share of it. The rest is not known.
func coarse(n *notebook.Trial) map[string]float64 {
	user, system := n.Usage.UserS, n.Usage.SystemS
	var throttled float64
	if p := n.Trace; p != nil {
		throttled = p.Figures["throttled_s"]
		if user+system == 0 { // a service's is not known by trial, but the tracer has its guest's
			user, system = p.Figures["user_s"], p.Figures["system_s"]
		}
	}
	scale := 1.0
	if all := user + system + throttled; all > n.ElapsedS {
		scale = n.ElapsedS / all
	}
	return map[string]float64{notebook.WallUser: user * scale, notebook.WallSystem: system * scale, notebook.WallThrottled: throttled * scale}
}

// spreads are distributions that are added up.
type spreads map[notebookKey]*notebook.Distribution

type notebookKey struct{ role, what, of, unit string }

// Buckets is how many a distribution can have: of 2^i nanoseconds each, far beyond any trial.
const Buckets = 64

func (s spreads) add(all []notebook.Distribution) {
	for _, d := range all {
		k := notebookKey{d.Role, d.What, d.Of, d.Unit}
		to := s[k]
		if to == nil {
			if len(s) >= maxNames {
				continue
			}
			to = &notebook.Distribution{Role: d.Role, What: d.What, Of: d.Of, Unit: d.Unit}
			s[k] = to
		}
		if math.Abs(d.Sum) <= mostValue {
			to.Sum += d.Sum
		}
		if n := min(len(d.Counts), Buckets); n > len(to.Counts) {
			to.Counts = append(to.Counts, make([]int64, n-len(to.Counts))...)
		}
		for i, c := range d.Counts {
			at := min(i, len(to.Counts)-1)
			to.Counts[at] = more(to.Counts[at], c)
		}
	}
}

// list gives them in the order in which they are shown.
func (s spreads) list() []notebook.Distribution {
	whats := []string{notebook.OnCPU, notebook.RunQueue, notebook.OffCPU, notebook.BlockIO}
	roles := []string{notebook.RoleWork, notebook.RoleVCPU, notebook.RoleIO, notebook.RoleEmulator, notebook.RoleRuler}
	var all []notebook.Distribution
	for _, d := range s {
		all = append(all, *d)
	}
	slices.SortFunc(all, func(a, b notebook.Distribution) int {
		return cmp.Or(
			cmp.Compare(Place(whats, a.What), Place(whats, b.What)), cmp.Compare(Place(roles, a.Role), Place(roles, b.Role)),
			cmp.Compare(Place(notebook.Walls, a.Of), Place(notebook.Walls, b.Of)),
			cmp.Compare(a.What, b.What), cmp.Compare(a.Role, b.Role), cmp.Compare(a.Of, b.Of), cmp.Compare(a.Unit, b.Unit))
	})
	return all
}

// longest gives the stacks in which most time was waited.
func (t *tracing) longest() []notebook.Stack {
	var all []notebook.Stack
	for _, s := range t.stacks {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b notebook.Stack) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), slices.Compare(a.Frames, b.Frames))
	})
	return all[:min(len(all), maxStacks)]
}
