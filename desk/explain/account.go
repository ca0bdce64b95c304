package explain

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// category is a part as it is shown: which of notebook.Walls are in it, and what it is called.
type category struct {
	key, label string
	of         []string
}

// shown are the categories of Account.Parts.
var shown = []category{
	{User, "running user", []string{notebook.WallUser}},
	{System, "running system", []string{notebook.WallSystem}},
	{Throttled, "throttled", []string{notebook.WallThrottled}},
	{Core, "waiting for a core", []string{notebook.WallCore}},
	{IO, "I/O", []string{notebook.WallBlock, notebook.WallNetwork}},
	{Waiting, "other waiting", []string{notebook.WallFutex, notebook.WallSleep, notebook.WallOther}},
	{Hypervisor, "hypervisor", []string{notebook.WallHypervisor}},
}

// fine are those of Account.Fine.
var fine = []category{
	{notebook.WallUser, "running user", []string{notebook.WallUser}},
	{notebook.WallSystem, "running system", []string{notebook.WallSystem}},
	{notebook.WallThrottled, "throttled", []string{notebook.WallThrottled}},
	{notebook.WallCore, "waiting for a core", []string{notebook.WallCore}},
	{notebook.WallBlock, "waiting for a block device", []string{notebook.WallBlock}},
	{notebook.WallNetwork, "waiting for a socket", []string{notebook.WallNetwork}},
	{notebook.WallFutex, "waiting for each other (futex)", []string{notebook.WallFutex}},
	{notebook.WallSleep, "sleeping", []string{notebook.WallSleep}},
	{notebook.WallOther, "waiting for anything else", []string{notebook.WallOther}},
	{notebook.WallHypervisor, "hypervisor", []string{notebook.WallHypervisor}},
}

// roughly are the keys of what is known where nothing follows the scheduler.
var roughly = []string{notebook.WallUser, notebook.WallSystem, notebook.WallThrottled}

// known leaves of the categories those that can be told.
func known(all []category, coarse bool) []category {
	if !coarse {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(c category) bool { return !slices.Contains(roughly, c.key) })
}

func (b *book) accounts() *Accounts {
	out := &Accounts{Summary: b.sum}
	for i := range b.sum.Rows {
		r := &b.sum.Rows[i]
		t := b.rows[r]
		if t == nil || t.explained == 0 {
			continue
		}
		base, against, note := b.baseline(r)
		a := b.account(r, base, against)
		if note != "" {
			a.Notes = append([]string{note}, a.Notes...)
		}
		a.Sentence = sentence(&a)
		out.Accounts = append(out.Accounts, a)
	}
	out.Versus = b.versus()
	b.notes(out)
	return out
}

// notes says what holds for all of it.
func (b *book) notes(out *Accounts) {
	explained := 0
	for i := range b.sum.Folders {
		if len(b.sum.Folders[i].Study.Explain) > 0 {
			explained++
		}
	}
	if rest := len(b.sum.Folders) - explained; rest > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%s without explained trials: not in any account", data.Count(rest, "folder")))
	}
	for _, h := range b.sum.Hosts {
		if h.Virtualization != "" {
			out.Notes = append(out.Notes, data.Printable(fmt.Sprintf("the host %s is itself a virtual machine (%s): bare metal here means this machine without a further layer", h.Name, h.Virtualization)))
		}
	}
}

// baseline is what a row is compared with, what that is called, and what is to be said of it.
func (b *book) baseline(r *data.Row) (base *data.Row, against, note string) {
	t := r.Treatment
	if t.Platform == notebook.BM && !t.AA {
		return nil, "", ""
	}
	i := t.Instance
	part := i.Cores != math.Trunc(i.Cores)
	any := false
	for j := range b.sum.Rows {
		o := &b.sum.Rows[j]
		size := o.Treatment.Instance
		if !sameWork(o, r) || o.Treatment.Platform != notebook.BM || o.Treatment.AA {
			continue
		}
		any = true
		switch {
		case size.Cores == i.Cores && size.Memory == i.Memory:
			return o, "bare metal", ""
		// Bare metal's memory is the host's at every size, so which of several is the nearest in memory hardly matters.
		case part && size.Cores >= i.Cores && (base == nil || size.Cores < base.Treatment.Instance.Cores):
			base = o
		}
	}
	if base != nil {
		against = "bare metal of " + cores(base.Treatment.Instance.Cores)
		no := "no " + cores(i.Cores)
		if i.Cores == 0.5 {
			no = "no half core"
		}
		return base, against, fmt.Sprintf("bare metal has %s: compared with %s", no, against)
	}
	if any {
		return nil, "", "bare metal was not measured at " + data.Printable(i.Name) + ": there is nothing to compare with; the study's bm needs that instance type"
	}
	return nil, "", "bare metal was not measured for " + data.Printable(t.Workload) + " here: there is nothing to compare with; the study needs the platform bm, at a size of whole cores: bare metal has no part of one"
}

// sameWork says whether two rows are of the same work on the same host.
func sameWork(a, b *data.Row) bool {
	return a.HostID == b.HostID && a.HostCores == b.HostCores && a.Treatment.Workload == b.Treatment.Workload &&
		maps.Equal(a.Treatment.Params, b.Treatment.Params) && a.Metric == b.Metric && a.Image == b.Image
}

// versus gives the accounts of the slower of vanilla and pinned against the faster, where the two can be told apart.
func (b *book) versus() (all []Account) {
	for i := range b.sum.Rows {
		v := &b.sum.Rows[i]
		if v.Treatment.Provisioning != notebook.Vanilla || b.rows[v] == nil {
			continue
		}
		for j := range b.sum.Rows {
			p := &b.sum.Rows[j]
			x, y := v.Treatment, p.Treatment
			if y.Provisioning != notebook.Pinned || b.rows[p] == nil || !sameWork(v, p) || x.Platform != y.Platform || x.Engine != y.Engine || x.Accelerator != y.Accelerator ||
				x.Instance.Cores != y.Instance.Cores || x.Instance.Memory != y.Instance.Memory || x.Network != y.Network || x.Isolation != y.Isolation {
				continue
			}
			a := b.account(v, p, y.Provisioning)
			if a.Gap.Value < 0 {
				a = b.account(p, v, x.Provisioning)
			}
			if a.HasGap() {
				a.Sentence = comparison(&a)
				all = append(all, a)
			}
		}
	}
	return all
}

// level is that of an interval over these blocks.
func (b *book) level(blocks []block) float64 {
	var folders []int
	for _, k := range blocks {
		if !slices.Contains(folders, k.folder) {
			folders = append(folders, k.folder)
		}
	}
	return b.sum.Level(folders)
}

func unknown() stats.Estimate { return stats.Mean(nil, 1-stats.Alpha) }

func unknownRatio() stats.Quotient { return stats.Ratio(nil, nil, 1-stats.Alpha) }

// account makes the account of a row against another; base nil: against nothing.
func (b *book) account(r, base *data.Row, against string) Account {
	x := b.rows[r]
	a := Account{
		Row: r, Label: b.sum.Label(r), Place: r.Place(), Baseline: base, Against: against, Emulated: !r.Representative || base != nil && !base.Representative,
		Explained: x.explained, Failed: x.failed, Elapsed: unknown(), Times: unknownRatio(), Gap: unknown(),
		Missing: x.missing, Lost: x.lost, Spread: x.spread.list(), Inside: x.inside.list(), Stacks: x.longest(),
	}
	if slices.ContainsFunc(b.sum.Rows, func(o data.Row) bool {
		return o.Place() == a.Place && (o.Image.Digest != r.Image.Digest || o.Image.Input != r.Image.Input)
	}) {
		a.Place += data.Printable(", " + r.Image.Words())
	}
	followed := func(c *cell) bool { return c.plain.n > 0 && c.wall[User].n > 0 }
	roughly := func(c *cell) bool { return c.plain.n > 0 && c.coarse[User].n > 0 }
	y := b.rows[base]
	of := func(fits func(*cell) bool) []block {
		bs := x.blocks(fits)
		if base != nil {
			bs = slices.DeleteFunc(bs, func(k block) bool { return y == nil || y.cells[k] == nil || !fits(y.cells[k]) })
		}
		return bs
	}
	blocks := of(followed)
	if len(blocks) == 0 {
		blocks = of(roughly)
		a.Coarse = len(blocks) > 0 || len(x.blocks(func(c *cell) bool { return c.wall[User].n > 0 })) == 0
	}
	wall := func(c *cell) seconds {
		if a.Coarse {
			return c.coarse
		}
		return c.wall
	}
	a.Rounds = len(blocks)
	b.own(&a, x, blocks, wall)
	if base != nil && len(blocks) > 0 {
		b.gap(&a, x, y, blocks, wall)
		a.Doubtful = b.doubtful(&a)
	}
	b.figures(&a, x, y)
	a.doubts(x, y)
	return a
}

// doubtful says whether bare metal differed from itself by as much as an account's two differ. Of two that are not bare metal
// both may be far from it, and not from each other.
func (b *book) doubtful(a *Account) bool {
	if a.Baseline.Treatment.Platform == notebook.BM && a.Row.Doubtful {
		return true
	}
	m := max(b.sum.Doubt(a.Row), b.sum.Doubt(a.Baseline))
	return m > 1 && (!a.Times.HasInterval() || a.Times.Low <= m && a.Times.High >= 1/m)
}

// own fills in what is said of the treatment by itself.
func (b *book) own(a *Account, x *tally, blocks []block, wall func(*cell) seconds) {
	var plain []float64
	for _, k := range blocks {
		plain = append(plain, x.cells[k].plain.mean())
	}
	a.Elapsed = stats.Mean(plain, b.level(blocks))

	both := x.blocks(func(c *cell) bool { return c.plain.n > 0 && c.looked.n > 0 })
	var with, without []float64
	for _, k := range both {
		with, without = append(with, x.cells[k].looked.mean()), append(without, x.cells[k].plain.mean())
	}
	a.ProbeCost = stats.Ratio(with, without, b.level(both))

	all := x.blocks(func(c *cell) bool { return wall(c)[User].n > 0 })
	for _, c := range known(fine, a.Coarse) {
		var values []float64
		for _, k := range all {
			values = append(values, wall(x.cells[k])[c.key].mean())
		}
		a.Spent = append(a.Spent, Spent{Key: c.key, Label: c.label, Seconds: stats.Mean(values, b.level(all))})
	}
}

// gap fills in the account itself.
func (b *book) gap(a *Account, x, y *tally, blocks []block, wall func(*cell) seconds) {
	level := b.level(blocks)
	var xs, ys, gaps []float64
	for _, k := range blocks {
		xs, ys = append(xs, x.cells[k].plain.mean()), append(ys, y.cells[k].plain.mean())
		gaps = append(gaps, xs[len(xs)-1]-ys[len(ys)-1])
	}
	a.Times = stats.Ratio(xs, ys, level)
	a.Gap = stats.Mean(gaps, level)
	share := func(values []float64) stats.Quotient {
		if !a.HasGap() {
			return unknownRatio()
		}
		return stats.Ratio(values, gaps, level)
	}
	parts := func(all []category) (ps []Part) {
		rest, booked := slices.Clone(gaps), 0.0
		categories := known(all, a.Coarse)
		sure := 1 - (1-level)/float64(len(categories)+1)
		for _, c := range categories {
			values := make([]float64, len(blocks))
			for i, k := range blocks {
				for _, key := range c.of {
					values[i] += wall(x.cells[k])[key].mean() - wall(y.cells[k])[key].mean()
				}
				rest[i] -= values[i]
			}
			p := Part{Key: c.key, Label: c.label, Seconds: stats.Mean(values, level), Share: share(values), Cause: excludesZero(stats.Mean(values, sure))}
			booked += p.Seconds.Value
			ps = append(ps, p)
		}
		p := Part{Key: Unexplained, Label: "unexplained", Seconds: stats.Mean(rest, level), Share: share(rest), Cause: excludesZero(stats.Mean(rest, sure))}
		p.Seconds.Value = a.Gap.Value - booked // the same but for rounding: so the sum is the gap
		return append(ps, p)
	}
	a.Parts, a.Fine = parts(shown), parts(fine)
}

// figures fills in the probes' figures, and how far they are from the baseline's.
func (b *book) figures(a *Account, x, y *tally) {
	place := func(of string) int {
		return slices.IndexFunc(notebook.ProbeFigures, func(f notebook.ProbeFigure) bool { return f.Name == of })
	}
	for _, name := range slices.Sorted(maps.Keys(x.totals)) {
		f := Figure{Name: name, Of: kind(name), Total: x.totals[name], Before: unknown(), More: unknown()}
		if i := place(f.Of); i >= 0 {
			f.Unit, f.Help = notebook.ProbeFigures[i].Unit, notebook.ProbeFigures[i].Help
		}
		has := func(c *cell) bool { return c.figures[name].n > 0 }
		mean := func(t *tally, bs []block) stats.Estimate {
			var values []float64
			for _, k := range bs {
				values = append(values, t.cells[k].figures[name].mean())
			}
			return stats.Mean(values, b.level(bs))
		}
		blocks := x.blocks(has)
		f.Mean = mean(x, blocks)
		if y != nil {
			f.Before = mean(y, y.blocks(has))
			var more []float64
			var of []block
			for _, k := range blocks {
				if c := y.cells[k]; c != nil && has(c) {
					more, of = append(more, x.cells[k].figures[name].mean()-c.figures[name].mean()), append(of, k)
				}
			}
			f.More = stats.Mean(more, b.level(of))
		}
		a.Figures = append(a.Figures, f)
	}
	slices.SortStableFunc(a.Figures, func(f, g Figure) int {
		p, q := place(f.Of), place(g.Of)
		return cmp.Or(
			cmp.Compare(uint(p), uint(q)),                             // what is not known comes last
			cmp.Compare(len(f.Name)-len(f.Of), len(g.Name)-len(g.Of)), // the work's own, or the sum over reasons, comes first
			cmp.Compare(f.Name, g.Name))
	})
}

// kind is a figure's name without the role, device or reason before it.
func kind(name string) string {
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '.' {
			return name[i+1:]
		}
	}
	return name
}

// seenShare is how much of a trial's time the probes may miss, beside seenFloor seconds, without a word about it.
const (
	seenShare = 0.01
	seenFloor = 0.005
)

// ofLost begins the note of events that were lost, and inPart stands behind a probe's name in that of what it did not see.
const (
	ofLost = "the probes lost "
	inPart = ", in part: "
)

// ofElapsed begins the note of a workload whose metric is something else.
const ofElapsed = "the account is of the trials' elapsed time"

// doubts says what keeps the account from being the whole truth.
func (a *Account) doubts(x, y *tally) {
	say := func(format string, args ...any) { a.Notes = append(a.Notes, fmt.Sprintf(format, args...)) }
	if a.Emulated {
		say("under software emulation (tcg): says nothing about a VM's cost")
	}
	if a.Baseline != nil {
		switch {
		case y == nil || y.explained == 0:
			say("%s has no explained trials: no account", a.Against)
		case a.Rounds == 0 && (y.failed == y.explained || x.failed == x.explained):
			who := a.Against
			if x.failed == x.explained {
				who = "it"
			}
			say("no account: every explained trial of %s failed", who)
		case a.Rounds == 0:
			say("no account: no round has explained and other trials that succeeded, of it and of %s", a.Against)
		case a.Rounds == 1:
			say("no interval: one round only, two at least are needed")
		}
		if of := len(x.blocks(func(c *cell) bool { return c.plain.n > 0 })); 0 < a.Rounds && a.Rounds < of {
			say("%d of %s count: the others lack an explained or another trial that succeeded, of it or of %s", a.Rounds, data.Count(of, "round"), a.Against)
		}
	}
	if x.wild > 0 {
		say("%s of the probes beyond all bounds, and not used", data.Count(x.wild, "figure"))
	}
	if x.failed > 0 {
		say("%d of %s failed and are not used: %s", x.failed, data.Count(x.explained, "explained trial"), x.cause)
	}
	if x.lost > 0 {
		say(ofLost+"%s: what they say is too little by those", data.Count(int(min(x.lost, math.MaxInt32)), "event"))
	}
	if x.bare > 0 {
		say("%s without a word from any probe", data.Count(x.bare, "explained trial"))
	}
	if a.Coarse && (a.Rounds > 0 || a.Baseline == nil) {
		why := "the probe " + notebook.ProbeScheduler + " was not asked for"
		whose := x
		if _, ok := x.missing[notebook.ProbeScheduler]; !ok && y != nil {
			whose = y
		}
		if m := whose.missing[notebook.ProbeScheduler]; m != "" {
			why = m
		} else if x.asked[notebook.ProbeScheduler] {
			why = "the probe " + notebook.ProbeScheduler + " does not say why"
		}
		say("coarse: nothing followed the scheduler (%s), so only user, system and throttled time are told, and waiting is unexplained", why)
	}
	for _, probe := range slices.Sorted(maps.Keys(x.missing)) {
		switch name := data.Printable(probe); {
		case probe == notebook.ProbeScheduler && a.Coarse: // said above
		case x.looked[probe]:
			for why := range strings.SplitSeq(x.missing[probe], "; ") {
				say("the probe %s"+inPart+"%s", name, why)
			}
		default:
			say("the probe %s did not look on: %s", name, x.missing[probe])
		}
	}
	if !a.Coarse && x.walls.n > 0 {
		if saw, took := x.walls.mean(), x.elapsed.mean(); math.Abs(saw-took) > seenFloor+seenShare*took {
			say("the probes saw %s of an explained trial's %s: the rest is among what is unexplained", unit(saw), unit(took))
		}
	}
	if x.otherMetric {
		say(ofElapsed+", and the %s is another figure", data.Printable(a.Row.Metric.Name))
	}
}

func cores(n float64) string {
	if n == 1 {
		return "1 core"
	}
	return strconv.FormatFloat(n, 'g', -1, 64) + " cores"
}
