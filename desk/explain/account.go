package explain

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// category is a part as it is shown: which of notebook.Walls are in it.
type category struct {
	key string
	of  []string
}

// shown are the categories of Account.Parts.
var shown = []category{
	{User, []string{notebook.WallUser}}, {System, []string{notebook.WallSystem}}, {Throttled, []string{notebook.WallThrottled}}, {Core, []string{notebook.WallCore}},
	{IO, []string{notebook.WallBlock, notebook.WallNetwork}}, {Waiting, []string{notebook.WallFutex, notebook.WallSleep, notebook.WallOther}},
	{Hypervisor, []string{notebook.WallHypervisor}},
}

// fine are those of Account.Fine: each of notebook.Walls by itself.
var fine = func() (all []category) {
	for _, k := range notebook.Walls {
		all = append(all, category{k, []string{k}})
	}
	return all
}()

// roughly are the keys of what is known where nothing follows the scheduler.
var roughly = []string{notebook.WallUser, notebook.WallSystem, notebook.WallThrottled}

// known leaves of the categories those that can be told.
func known(all []category, coarse bool) []category {
	if !coarse {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(c category) bool { return !slices.Contains(roughly, c.key) })
}

// book is the accounts in the making.
type book struct{ sum *data.Summary }

// From makes the accounts of what was read. Where none of it was traced, the error has ErrNone in it.
func From(s *data.Summary) (*Accounts, error) {
	a := (&book{s}).accounts()
	if len(a.Accounts) == 0 {
		var dirs []string
		n := 0
		for _, f := range s.Folders {
			dirs = append(dirs, f.Dir)
			n += f.Trials
		}
		if n == 0 {
			return nil, fmt.Errorf("%s: %w, and no others either: the command that made the folder goes on if it is repeated", strings.Join(dirs, ", "), ErrNone)
		}
		return nil, fmt.Errorf("%s: %w: run the study with --explain, `tare run STUDY --explain --out DIR`, and name that folder", strings.Join(dirs, ", "), ErrNone)
	}
	return a, nil
}

// cells are those of a row that fit, in order, of folders that were traced.
func (b *book) cells(r *data.Row, fits func(*data.Cell) bool) (all []*data.Cell) {
	if r == nil || r.Trace == nil {
		return nil
	}
	for i := range r.Cells {
		if c := &r.Cells[i]; len(b.sum.Folders[c.Folder].Study.Explain) > 0 && fits(c) {
			all = append(all, c)
		}
	}
	return all
}

// shared leaves of two rows' cells, in order, those of blocks that both have.
func shared(x, y []*data.Cell) (xs, ys []*data.Cell) {
	for _, c := range x {
		for len(y) > 0 && y[0].Compare(c.Block) < 0 {
			y = y[1:]
		}
		if len(y) > 0 && y[0].Block == c.Block {
			xs, ys = append(xs, c), append(ys, y[0])
		}
	}
	return xs, ys
}

// each gives a number of each cell.
func each(cells []*data.Cell, number func(*data.Cell) float64) []float64 {
	all := make([]float64, len(cells))
	for i, c := range cells {
		all[i] = number(c)
	}
	return all
}

// mean is a number's mean over the cells.
func (b *book) mean(cells []*data.Cell, number func(*data.Cell) float64) stats.Estimate {
	return stats.Mean(each(cells, number), b.sum.Confidence(cells))
}

func plain(c *data.Cell) bool  { return c.Elapsed.N > 0 }
func traced(c *data.Cell) bool { return c.Traced != nil }

func (b *book) accounts() *Accounts {
	out := &Accounts{Summary: b.sum}
	for _, r := range b.sum.Rows {
		if r.Trace == nil || r.Trace.Trials == 0 {
			continue
		}
		base, against, doubt := b.baseline(r)
		for _, v := range b.views(r) {
			a := b.account(v, r, base, against)
			if doubt != nil {
				a.Doubts = slices.Insert(a.Doubts, 0, doubt)
			}
			out.Accounts = append(out.Accounts, a)
		}
	}
	out.Versus = b.versus()
	b.doubts(out)
	return out
}

// doubts says what holds for all of it.
func (b *book) doubts(out *Accounts) {
	untraced := 0
	for i := range b.sum.Folders {
		if len(b.sum.Folders[i].Study.Explain) == 0 {
			untraced++
		}
	}
	if untraced > 0 {
		out.Doubts = append(out.Doubts, Untraced{untraced})
	}
	for _, h := range b.sum.Hosts {
		if h.Virtualization != "" {
			out.Doubts = append(out.Doubts, data.HostIsGuest{Host: h.Name, Hypervisor: h.Virtualization})
		}
	}
}

// baseline is what a row is compared with, and what is to be known of that.
func (b *book) baseline(r *data.Row) (base *data.Row, against Against, doubt data.Doubt) {
	t := r.Treatment
	if t.Platform == notebook.BM && !t.AA {
		return nil, against, nil
	}
	i := t.Instance
	part := i.Cores != math.Trunc(i.Cores)
	any := false
	for _, o := range b.sum.Rows {
		size := o.Treatment.Instance
		if !sameWork(o, r) || o.Treatment.Platform != notebook.BM || o.Treatment.AA {
			continue
		}
		any = true
		switch {
		case size.Cores == i.Cores && size.Memory == i.Memory:
			return o, against, nil
		// Bare metal's memory is the host's at every size, so which of several is the nearest in memory hardly matters.
		case part && size.Cores >= i.Cores && (base == nil || size.Cores < base.Treatment.Instance.Cores):
			base = o
		}
	}
	switch {
	case base != nil:
		against.Cores = base.Treatment.Instance.Cores
		return base, against, LargerBaseline{i.Cores, against.Cores}
	case any:
		return nil, against, NoBareMetalSize{i.Name}
	}
	return nil, against, NoBareMetalWork{t.Workload}
}

func sameWork(a, b *data.Row) bool { return a.HostCores == b.HostCores && data.SameWork(a, b) }

// versus gives the accounts of the slower of vanilla and pinned against the faster, where the two differ significantly.
func (b *book) versus() (all []*Account) {
	for _, v := range b.sum.Rows {
		if v.Treatment.Provisioning != notebook.Vanilla || v.Trace == nil {
			continue
		}
		for _, p := range b.sum.Rows {
			x, y := v.Treatment, p.Treatment
			if y.Provisioning != notebook.Pinned || p.Trace == nil || !sameWork(v, p) || x.Variant() != y.Variant() || !x.Instance.SameSize(y.Instance) {
				continue
			}
			for _, of := range b.views(v) {
				a := b.account(of, v, p, Against{Provisioning: y.Provisioning})
				if a.Overhead.Value < 0 {
					a = b.account(of, p, v, Against{Provisioning: x.Provisioning})
				}
				if a.Divisible() {
					all = append(all, a)
				}
			}
		}
	}
	return all
}

// account makes the account of a row against another; base nil: against nothing.
func (b *book) account(v view, r, base *data.Row, against Against) *Account {
	x := r.Trace
	a := &Account{
		view: v, Of: v.of, Row: r, Baseline: base, Against: against, Emulated: !r.Representative || base != nil && !base.Representative,
		Traced: x.Trials, Failed: x.Failed, Elapsed: stats.NoMean, Times: stats.NoRatio, Overhead: stats.NoMean,
		Missing: x.Missing, Lost: x.Lost, Spread: x.Spread, Inside: x.Inside, Stacks: x.Stacks,
	}
	a.OtherImages = b.sum.OtherImages(r)
	// both are the cells that count, of the row and of what it is compared with.
	both := func(fits func(*data.Cell) bool) (xs, ys []*data.Cell) {
		all := func(c *data.Cell) bool { return plain(c) && v.took(c).N > 0 && fits(c) }
		if base == nil {
			return b.cells(r, all), nil
		}
		if v.of != OfElapsed && base.Trace != nil && base.Trace.Requests.Of != x.Requests.Of {
			return nil, nil // their parts are not of the same
		}
		return shared(b.cells(r, all), b.cells(base, all))
	}
	followed := func(c *data.Cell) bool { return c.Traced != nil && v.spent(c.Traced) != nil }
	xs, ys := both(followed)
	if len(xs) == 0 && a.Of == OfElapsed {
		xs, ys = both(traced)
		a.Coarse = len(xs) > 0 || len(b.cells(r, followed)) == 0
	}
	if !a.Coarse {
		a.Tier = x.Tier
	}
	a.Rounds = len(xs)
	b.own(a, xs)
	if base != nil && len(xs) > 0 {
		b.overhead(a, xs, ys)
		a.Doubtful = b.doubtful(a)
		if a.Divisible() && !a.Sized() {
			a.Doubts = append(a.Doubts, JustSignificant{})
		}
	}
	if a.Of == OfP99 { // the account of the mean has them
		a.Spread, a.Inside, a.Stacks = nil, nil, nil
	} else {
		b.figures(a)
		a.DiskPerRequest = b.perRequest(r)
	}
	b.incomplete(a)
	return a
}

// wall is what a cell's traced time went on; nil: that is not known.
func (a *Account) wall(c *data.Cell) data.Seconds {
	switch {
	case c.Traced == nil:
		return nil
	case a.Coarse:
		return c.Traced.Coarse
	}
	return a.view.spent(c.Traced)
}

// doubtful says whether bare metal differed from itself by as much as an account's two differ. Of two that are not bare metal
// both may differ much from it, and not from each other.
func (b *book) doubtful(a *Account) bool {
	if a.Baseline.Treatment.Platform == notebook.BM && a.Row.Doubtful {
		return true
	}
	m := max(b.sum.Doubt(a.Row), b.sum.Doubt(a.Baseline))
	return m > 1 && (!a.Times.HasInterval() || a.Times.Low <= m && a.Times.High >= 1/m)
}

// own fills in the part that needs no baseline.
func (b *book) own(a *Account, cells []*data.Cell) {
	took := func(c *data.Cell) float64 { return a.view.took(c).Mean() }
	tracedTook := func(c *data.Cell) float64 { return a.view.traced(c.Traced).Mean() }
	a.Elapsed = b.mean(cells, took)
	both := b.cells(a.Row, func(c *data.Cell) bool {
		return plain(c) && a.view.took(c).N > 0 && traced(c) && a.view.traced(c.Traced).N > 0
	})
	a.TracerCost = stats.Ratio(each(both, tracedTook), each(both, took), b.sum.Confidence(both))
	all := b.cells(a.Row, func(c *data.Cell) bool { return a.wall(c) != nil })
	for _, c := range known(a.view.fine, a.Coarse) {
		a.Spent = append(a.Spent, Spent{Key: c.key, Seconds: b.mean(all, func(cell *data.Cell) float64 { return c.seconds(a.wall(cell)) })})
	}
	if a.Of == OfP99 {
		b.slow(a, all)
	}
	if a.Of != OfElapsed {
		rest := func(c *data.Cell) float64 { return tracedTook(c) - sum(a.view.fine, a.wall(c)) }
		a.Spent = append(a.Spent, Spent{Key: Remainder, Seconds: b.mean(all, rest)})
	}
}

// overhead fills in the account itself, from the cells of the row and of what it is compared with.
func (b *book) overhead(a *Account, x, y []*data.Cell) {
	sure := b.sum.Confidence(x)
	took := func(c *data.Cell) float64 { return a.view.took(c).Mean() }
	xs, ys := each(x, took), each(y, took)
	overheads := make([]float64, len(xs))
	floats.SubTo(overheads, xs, ys)
	a.Times = stats.Ratio(xs, ys, sure)
	a.Overhead = stats.Mean(overheads, sure)
	share := func(values []float64) stats.Quotient {
		if !a.Significant() {
			return stats.NoRatio
		}
		return a.supported(stats.Ratio(values, overheads, sure))
	}
	parts := func(all []category) (ps []Part) {
		rest, attributed := slices.Clone(overheads), 0.0
		categories := known(all, a.Coarse)
		one := sure.Share(len(categories) + 1)
		for _, c := range categories {
			values := make([]float64, len(x))
			for i := range values {
				values[i] = c.seconds(a.wall(x[i])) - c.seconds(a.wall(y[i]))
				rest[i] -= values[i]
			}
			p := Part{Key: c.key, Seconds: stats.Mean(values, sure), Share: share(values), Cause: excludesZero(stats.Mean(values, one))}
			attributed += p.Seconds.Value
			ps = append(ps, p)
		}
		p := Part{Key: Unexplained, Seconds: stats.Mean(rest, sure), Share: share(rest), Cause: excludesZero(stats.Mean(rest, one))}
		p.Seconds.Value = a.Overhead.Value - attributed // the same except for rounding, so that the sum is the overhead
		return append(ps, p)
	}
	a.Parts, a.Fine = parts(a.view.shown), parts(a.view.fine)
	if a.NearZero() {
		for _, list := range [][]Part{a.Parts, a.Fine} {
			for i := range list {
				list[i].Share = stats.NoRatio
			}
		}
	}
}

// figures fills in the tracers' metrics, and how much they differ from the baseline's.
func (b *book) figures(a *Account) {
	place := func(of string) int {
		return slices.IndexFunc(notebook.TracerMetrics, func(f notebook.TracerMetric) bool { return f.Name == of })
	}
	x := a.Row.Trace
	for i, name := range x.Names {
		f := Figure{Name: name, Of: kind(name), Total: stats.Number(x.Totals[i]), Before: stats.NoMean, More: stats.NoMean}
		if i := place(f.Of); i >= 0 {
			f.Unit = notebook.TracerMetrics[i].Unit
		}
		has, figure := measured(i)
		cells := b.cells(a.Row, has)
		f.Mean = b.mean(cells, figure)
		if a.Baseline != nil && a.Baseline.Trace != nil {
			if j := slices.Index(a.Baseline.Trace.Names, name); j >= 0 {
				has, before := measured(j)
				others := b.cells(a.Baseline, has)
				f.Before = b.mean(others, before)
				xs, ys := shared(cells, others)
				more := each(xs, figure)
				floats.Sub(more, each(ys, before))
				f.More = stats.Mean(more, b.sum.Confidence(xs))
			}
		}
		a.Figures = append(a.Figures, f)
	}
	slices.SortFunc(a.Figures, func(f, g Figure) int {
		p, q := place(f.Of), place(g.Of)
		return cmp.Or(
			cmp.Compare(uint(p), uint(q)),                             // what is not known comes last
			cmp.Compare(len(f.Name)-len(f.Of), len(g.Name)-len(g.Of)), // the work's own, or the sum over reasons, comes first
			cmp.Compare(f.Name, g.Name))
	})
}

// diskPerRequest is the quantity of Account.DiskPerRequest.
var diskPerRequest = data.Quantity{Of: []string{"trace.reads", "trace.writes"}, Per: []string{"secondary.requests"}}

func (b *book) perRequest(r *data.Row) stats.Estimate {
	values, why := r.ValuesOf(diskPerRequest)
	if why != nil {
		return stats.NoMean
	}
	return stats.Mean(data.Means(values), b.sum.Confidence(b.cells(r, traced)))
}

// measured tells which cells have the metric of a place in Trace.Names, and what it is in each of them.
func measured(i int) (has func(*data.Cell) bool, mean func(*data.Cell) float64) {
	has = func(c *data.Cell) bool { return c.Traced != nil && c.Traced.Figure(i).N > 0 }
	return has, func(c *data.Cell) float64 { return c.Traced.Figure(i).Mean() }
}

// kind is a metric's name without the role, device or reason before it.
func kind(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// seenShare is how much of a trial's time the tracers may miss, in addition to seenFloor seconds, before a doubt says so.
const (
	seenShare = 0.01
	seenFloor = 0.005
)

// incomplete says what keeps the account from being the whole truth.
func (b *book) incomplete(a *Account) {
	say := func(d data.Doubt) { a.Doubts = append(a.Doubts, d) }
	x := a.Row.Trace
	if a.Emulated {
		say(data.Emulated{})
	}
	var y *data.Trace
	if a.Baseline != nil {
		y = a.Baseline.Trace
		switch {
		case y == nil || y.Trials == 0:
			say(BaselineUntraced{a.Against})
		case a.Rounds == 0 && (y.Failed == y.Trials || x.Failed == x.Trials):
			say(AllTracedFailed{a.Against, x.Failed == x.Trials})
		case a.Rounds == 0:
			say(NoCompleteRound{a.Against})
		case a.Rounds == 1:
			say(data.OneRound{})
		}
		if of := len(b.cells(a.Row, plain)); 0 < a.Rounds && a.Rounds < of {
			say(IncompleteRounds{a.Rounds, of, a.Against})
		}
	}
	if x.Wild > 0 {
		say(Unbelievable{x.Wild})
	}
	if x.Failed > 0 {
		say(SomeTracedFailed{x.Failed, x.Trials, x.Cause})
	}
	if x.Lost > 0 {
		say(EventsLost{x.Lost})
	}
	if x.Silent > 0 {
		say(Silent{x.Silent})
	}
	if a.Coarse && (a.Rounds > 0 || a.Baseline == nil) {
		tracer, whose := notebook.TracerThreads, x
		for _, name := range []string{notebook.TracerThreads, notebook.TracerScheduler} {
			for _, t := range []*data.Trace{y, x} {
				if t != nil && t.Missing[name].Why != nil {
					tracer, whose = name, t
				}
			}
		}
		say(Coarse{Why: whose.Missing[tracer], Asked: x.Asked[tracer]})
	}
	for _, tracer := range slices.Sorted(maps.Keys(x.Missing)) {
		m := x.Missing[tracer]
		switch {
		case (tracer == notebook.TracerScheduler || tracer == notebook.TracerThreads) && a.Coarse: // said above
		case x.Saw[tracer]:
			for _, why := range m.Why.Parts() {
				say(TracerMissing{Tracer: tracer, Why: data.Missing{Why: why, Inside: m.Inside}, Partly: true})
				m.Inside = false // one doubt says so
			}
		default:
			say(TracerMissing{Tracer: tracer, Why: m})
		}
	}
	if a.Of != OfElapsed {
		ofRequests(a)
		return
	}
	if !a.Coarse && x.Walls.N > 0 {
		if saw, took := x.Walls.Mean(), x.Elapsed.Mean(); math.Abs(saw-took) > seenFloor+seenShare*took {
			say(Unseen{saw, took})
		}
	}
	if x.OtherMetric {
		say(OtherMetric{a.Row.Metric.Name})
	}
}
