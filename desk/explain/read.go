package explain

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/notebook"
)

// From makes the accounts of a summary's folders. It reads the trials of those that have explained ones again; where none
// has, the error has ErrNone in it.
func From(s *data.Summary) (*Accounts, error) {
	b := &book{sum: s, rows: map[*data.Row]*tally{}}
	var dirs []string
	for i := range s.Folders {
		dirs = append(dirs, s.Folders[i].Dir)
		if len(s.Folders[i].Study.Explain) > 0 {
			if err := b.folder(i); err != nil {
				return nil, err
			}
		}
	}
	a := b.accounts()
	if len(a.Accounts) == 0 {
		return nil, fmt.Errorf("%s: %w: run the study with --explain, `tare run STUDY --explain --out DIR`, and name that folder", strings.Join(dirs, ", "), ErrNone)
	}
	return a, nil
}

// book is the accounts in the making.
type book struct {
	sum  *data.Summary
	rows map[*data.Row]*tally
}

// block is a round of a folder.
type block struct{ folder, round int }

// sum is of so many values.
type sum struct {
	of float64
	n  int
}

func (s *sum) add(v float64) { s.of, s.n = s.of+v, s.n+1 }
func (s sum) mean() float64  { return s.of / float64(s.n) }

// seconds are by category: one of notebook.Walls.
type seconds map[string]sum

func (s seconds) add(wall map[string]float64) {
	for _, k := range notebook.Walls {
		v := s[k]
		v.add(wall[k])
		s[k] = v
	}
}

// cell is what one treatment gave in one block: of trials that succeeded.
type cell struct {
	plain   sum     // seconds elapsed, of trials that no probe looked at
	looked  sum     // the same of explained ones
	wall    seconds // of those that were followed through the scheduler
	coarse  seconds // of all explained ones, from what is known without that
	figures map[string]sum
}

// tally is what one treatment gave.
type tally struct {
	cells             map[block]*cell
	explained, failed int
	bare              int // explained, succeeded, and without anything from a probe
	cause             string
	missing           map[string]string
	looked            map[string]bool // probes that looked on, if only in part
	lost              int64
	wild              int  // figures that no trial can have
	otherMetric       bool // the workload's metric is not the elapsed time
	asked             map[string]bool
	walls, elapsed    sum // of trials that were followed: what the walls add up to, and the time by the ruler
	totals            map[string]float64
	spread, inside    spreads
	stacks            map[string]*notebook.Stack
}

func newTally() *tally {
	return &tally{
		cells: map[block]*cell{}, missing: map[string]string{}, looked: map[string]bool{}, totals: map[string]float64{}, asked: map[string]bool{},
		spread: spreads{}, inside: spreads{}, stacks: map[string]*notebook.Stack{},
	}
}

// Bounds of what is kept of a treatment: a folder is not trusted to be small.
const (
	maxNames  = 1000 // of figures, distributions, missing probes
	maxText   = 500  // bytes of a text
	maxStacks = 20   // that are shown; so many thousand are kept meanwhile

	most      = 1e18    // of a figure or of seconds: what is beyond it would make sums of it infinite
	mostCount = 1 << 50 // of a count: a hundred times the sum of a distribution's is still a number
)

// more adds a count to another; what cannot be is nothing, or all that there can be.
func more(to, n int64) int64 { return min(to+min(max(n, 0), mostCount), mostCount) }

func (b *book) folder(at int) error {
	f, err := notebook.Read(b.sum.Folders[at].Dir)
	if err != nil {
		return err
	}
	tallies := map[string]*tally{}
	for _, t := range f.Study.Treatments {
		r := b.sum.Row(at, t.ID)
		if r == nil {
			return fmt.Errorf("%s: the treatment %q was not there a moment ago: the folder was changed", f.Dir, t.ID)
		}
		if b.rows[r] == nil {
			b.rows[r] = newTally()
		}
		tallies[t.ID] = b.rows[r]
		for _, p := range f.Study.Explain {
			b.rows[r].asked[p] = true
		}
	}
	return f.Trials(func(t *notebook.Trial) error {
		tallies[t.Treatment].trial(at, t)
		return nil
	})
}

func (t *tally) trial(folder int, n *notebook.Trial) {
	if n.Warmup {
		return
	}
	if n.Explained {
		t.explained++
	}
	if n.Failure != "" {
		if n.Explained {
			t.failed++
			t.cause = cmp.Or(t.cause, bounded(n.Failure))
		}
		return
	}
	at := block{folder, n.Round}
	c := t.cells[at]
	if c == nil {
		c = &cell{wall: seconds{}, coarse: seconds{}, figures: map[string]sum{}}
		t.cells[at] = c
	}
	// Another figure of a run that was timed says so by more than rounding.
	if math.Abs(n.Value-n.ElapsedS) > 1e-6*math.Abs(n.ElapsedS) {
		t.otherMetric = true
	}
	if !n.Explained {
		c.plain.add(n.ElapsedS)
		return
	}
	c.looked.add(n.ElapsedS)
	c.coarse.add(coarse(n))
	p := n.Probes
	if p == nil {
		t.bare++
		return
	}
	wall := p.Wall
	if len(wall) == 0 && p.Inside != nil {
		wall = p.Inside.Wall // what the host did to the guest meanwhile is then unexplained
	}
	if len(wall) > 0 && t.tame(slices.Collect(maps.Values(wall))...) {
		c.wall.add(wall)
		all := 0.0
		for _, k := range notebook.Walls {
			all += wall[k]
		}
		t.walls.add(all)
		t.elapsed.add(n.ElapsedS)
	}
	t.figure(c, "", p.Figures)
	t.look(p, "")
	t.spread.add(p.Spread)
	if p.Inside != nil {
		t.figure(c, "inside.", p.Inside.Figures)
		t.look(p.Inside, "in the guest: ")
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

// tame says whether all of some figures can be added up, and counts them where they cannot.
func (t *tally) tame(values ...float64) bool {
	for _, v := range values {
		if math.Abs(v) > most {
			t.wild += len(values)
			return false
		}
	}
	return true
}

// figure takes a trial's figures, with what goes before their names.
func (t *tally) figure(c *cell, before string, figures map[string]float64) {
	for name, v := range figures {
		name = before + name
		if _, known := t.totals[name]; !known && len(t.totals) >= maxNames || !t.tame(v) {
			continue
		}
		t.totals[name] += v
		s := c.figures[name]
		s.add(v)
		c.figures[name] = s
	}
}

// look takes what the probes say of themselves.
func (t *tally) look(p *notebook.Probes, where string) {
	for probe, why := range p.Missing {
		if _, known := t.missing[probe]; !known && len(t.missing) < maxNames {
			t.missing[probe] = where + bounded(why)
		}
	}
	for _, probe := range p.Looked[:min(len(p.Looked), maxNames)] {
		t.looked[probe] = true
	}
	t.lost = more(t.lost, p.Lost)
}

func bounded(s string) string {
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return data.Printable(s)
}

// coarse is what a trial's elapsed time went on as far as that can be said without following the scheduler: the CPU
// time that it used and that its quota kept from it. Both are added over cores; where they are more than the time that
// passed, several cores had a part in it at a time, and each gets its share of it. The rest is not known.
func coarse(n *notebook.Trial) map[string]float64 {
	user, system := n.Usage.UserS, n.Usage.SystemS
	var throttled float64
	if p := n.Probes; p != nil {
		throttled = p.Figures["throttled_s"]
		if user+system == 0 { // a service's is not known by trial, but the probe has its guest's
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

// buckets is how many a distribution can have: of 2^i nanoseconds each, far beyond any trial.
const buckets = 64

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
		if math.Abs(d.Sum) <= most {
			to.Sum += d.Sum
		}
		if n := min(len(d.Counts), buckets); n > len(to.Counts) {
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
	place := func(order []string, k string) int {
		if i := slices.Index(order, k); i >= 0 {
			return i
		}
		return len(order)
	}
	whats := []string{notebook.OnCPU, notebook.RunQueue, notebook.OffCPU, notebook.BlockIO}
	roles := []string{notebook.RoleWork, notebook.RoleVCPU, notebook.RoleIO, notebook.RoleEmulator, notebook.RoleRuler}
	var all []notebook.Distribution
	for _, d := range s {
		all = append(all, *d)
	}
	slices.SortFunc(all, func(a, b notebook.Distribution) int {
		return cmp.Or(
			cmp.Compare(place(whats, a.What), place(whats, b.What)), cmp.Compare(place(roles, a.Role), place(roles, b.Role)),
			cmp.Compare(place(notebook.Walls, a.Of), place(notebook.Walls, b.Of)),
			cmp.Compare(a.What, b.What), cmp.Compare(a.Role, b.Role), cmp.Compare(a.Of, b.Of), cmp.Compare(a.Unit, b.Unit))
	})
	return all
}

// longest gives the stacks in which most time was waited.
func (t *tally) longest() []notebook.Stack {
	var all []notebook.Stack
	for _, s := range t.stacks {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b notebook.Stack) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), slices.Compare(a.Frames, b.Frames))
	})
	return all[:min(len(all), maxStacks)]
}

// blocks are those of a tally that fit, in order.
func (t *tally) blocks(fits func(*cell) bool) []block {
	bs := slices.Collect(maps.Keys(t.cells))
	bs = slices.DeleteFunc(bs, func(b block) bool { return !fits(t.cells[b]) })
	slices.SortFunc(bs, func(a, b block) int {
		return cmp.Or(cmp.Compare(a.folder, b.folder), cmp.Compare(a.round, b.round))
	})
	return bs
}
