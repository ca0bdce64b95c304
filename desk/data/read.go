package data

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"tare/notebook"
	"tare/stats"
)

// mostDots is how many trials a row keeps for plots.
const mostDots = 100

// Read reads the folders and summarises them together. Treatments that are alike, of the same host and with the same
// image, share a row; their rounds are the blocks of its intervals. Errors are notebook's, with file and line, and
// those of a baseline that does not choose one treatment.
func Read(dirs []string, opt Options) (*Summary, error) {
	if len(dirs) == 0 {
		return nil, errors.New("no results folder was named")
	}
	r := &reader{sum: &Summary{Kinds: opt.Kinds, margin: opt.Margin}, opt: opt, rows: map[Identity]*tally{}, quiet: map[string]string{}}
	for _, dir := range dirs {
		if err := r.folder(dir); err != nil {
			return nil, err
		}
	}
	var err error
	if r.opt.Baseline, err = r.reference(); err != nil {
		return nil, err
	}
	return r.summary()
}

// reference is what the ratios are relative to: what Options say, or what all the folders' studies say. Empty: bare metal of the same size.
func (r *reader) reference() (notebook.Reference, error) {
	keys := r.opt.Baseline
	if len(keys) == 0 {
		said := Distinct(r.sum.Folders, func(f Folder) string { return f.Study.Design.Against })
		if len(said) != 1 {
			return nil, nil
		}
		var err error
		if keys, err = notebook.ParseReference(said[0]); err != nil {
			return nil, fmt.Errorf("%s: study.json: design.against: %w", r.sum.Folders[0].Dir, err)
		}
	}
	if notebook.IsBareMetal(keys) {
		return nil, nil
	}
	return keys, nil
}

// reader is a summary in the making.
type reader struct {
	seen     map[string]string // folder, by a guest of it
	quiet    map[string]string // by host: what was set for its first session
	sum      *Summary
	opt      Options
	rows     map[Identity]*tally
	order    []*tally
	warnings texts
	ruler    []rulerTally
}

// tally is one row in the making.
type tally struct {
	row      Row
	group    Identity // Identity.Group: rows with the same may be compared
	first    int      // in the order of appearance
	cells    map[Block]*Cell
	last     *Cell             // the previous trial's cell
	beside   bool              // quota: a load ran on the host of a guest with a quota
	bound    bool              // quota: a guest had no more CPUs than its quota has
	held     map[Holder]int    // successful measured trials in which it was held back
	guests   map[guestKey]bool // success: whether any measured trial of the guest succeeded
	causes   texts             // causes of failures
	said     texts             // notes of guests, and failures of trials that are not measured
	dots     sample
	others   []other  // metrics that have rows of their own
	of       Tally    // the tally of its kind; nil: the kind collects nothing
	kindSays []Doubt  // doubts from its kind
	traced   *tracing // nil: none of its folders was traced

	otherMetric bool // its values are not its trials' elapsed times

	found         FoundState // what trials found of earlier trials
	synced, known bool       // whether its results depend on synced writes, and whether the folder says so
	noFlush       bool       // its guests ignore flushes
}

// other is a secondary metric whose better direction is known, with its values from trials.
type other struct {
	notebook.Metric
	dots sample
}

// guestKey is a guest of a folder, by its id.
type guestKey struct {
	folder int
	id     string
}

type rulerTally struct {
	of           RulerCost // as far as it is known
	costs, trips []float64
}

func (r *reader) folder(dir string) error {
	f, err := notebook.Read(dir)
	if err != nil {
		return err
	}
	if err := r.unique(f); err != nil {
		return err
	}
	at := len(r.sum.Folders)
	r.host(f.Host, dir)
	quiet := r.quieted(f)

	byID, err := r.treatments(f)
	if err != nil {
		return err
	}
	folder := Folder{Dir: dir, Study: f.Study, Host: f.Host.ID, Ends: ends(f.Sessions), Args: began(f.Sessions), Torn: f.Torn, Quiet: quiet}
	rounds := map[int]bool{}
	lastRound := -1
	done := map[cellKey]cellDone{}
	spans := clock{}
	err = f.Trials(func(t *notebook.Trial) error {
		spans.trial(t)
		folder.Trials++
		if t.Failure != nil {
			folder.Failed++
		}
		if t.Round != lastRound {
			rounds[t.Round], lastRound = true, t.Round
		}
		if !t.Warmup {
			c := done[cellKey{t.Treatment, t.Round}]
			c.add(t)
			done[cellKey{t.Treatment, t.Round}] = c
		}
		for _, w := range t.Warnings {
			r.warnings.add(ofTrial, w, t.Treatment)
		}
		if err := byID[t.Treatment].trial(at, t, f.Study.Design.TimeoutS); err != nil {
			return fmt.Errorf("%s:%d: not a trial: %w", filepath.Join(dir, "trials.jsonl"), folder.Trials, err)
		}
		return nil
	})
	for _, g := range f.Guests {
		folder.Together = folder.Together || g.Together > 1
		if rounds[g.Round] {
			spans.add(g.Round, g.Start, g.Start)
		}
		if c, begun := done[cellKey{g.Treatment, g.Round}]; begun {
			c.planned = g.Trials
			done[cellKey{g.Treatment, g.Round}] = c
		}
		if t := byID[g.Treatment]; g.Limits.CPUs != "" && t.guests[guestKey{at, g.ID}] {
			t.row.CPUs[g.Limits.CPUs]++
			t.bound = t.bound || withoutChoice(g.Limits)
		}
	}
	folder.Rounds = len(rounds)
	folder.RoundS, folder.Last = spans.read()
	folder.Begun = begun(f.Study, rounds, done)
	if f.Study.Design.Against != "" {
		folder.baselines = map[string]string{}
		for id, b := range f.Study.Baselines() {
			folder.baselines[id] = b.ID
		}
	}
	r.sum.Folders = append(r.sum.Folders, folder)
	return err
}

// unique holds that guests are: a folder named twice, or a copy of one, would count its rounds twice.
func (r *reader) unique(f *notebook.Folder) error {
	if r.seen == nil {
		r.seen = map[string]string{}
	}
	for _, g := range f.Guests {
		key := g.ID + g.Start.String()
		if other, ok := r.seen[key]; ok && other != f.Dir {
			return fmt.Errorf("%s and %s hold the same guest %s: one is a copy of the other; name each folder once", other, f.Dir, g.ID)
		} else if ok && g.ID == f.Guests[0].ID {
			return fmt.Errorf("%s is named twice; name each folder once", f.Dir)
		}
		r.seen[key] = f.Dir
	}
	return nil
}

// treatments finds or makes the rows of a folder's treatments, by their ids, and has what its guests say.
func (r *reader) treatments(f *notebook.Folder) (byID map[string]*tally, err error) {
	config, err := r.config(f)
	if err != nil {
		return nil, err
	}
	byID = map[string]*tally{}
	for _, t := range f.Study.Treatments {
		n := r.tally(t, f, config)
		n.trace(f.Study.Explain)
		byID[t.ID] = n
	}
	for _, l := range f.Study.LeftOut {
		r.sum.LeftOut = append(r.sum.LeftOut, LeftOut{Host: f.Host.ID, Treatment: l.Treatment, Reason: l.Reason})
	}
	for _, g := range f.Guests {
		t := byID[g.Treatment]
		if t == nil {
			return nil, fmt.Errorf("%s: the guest %s is of the treatment %q, which the study does not have", f.Dir, g.ID, g.Treatment)
		}
		t.guest(g)
		r.rulerCost(f.Host.ID, t.row.Treatment, g)
	}
	return byID, nil
}

// cellKey is a treatment's part of a round of one folder.
type cellKey struct {
	treatment string
	round     int
}

// cellDone is how many measured trials it has, how many of them succeeded, how many traced trials it has, and how many its guest was made
// for; 0: the design's.
type cellDone struct{ trials, good, traced, planned int }

// add counts a trial that is not a warm-up.
func (c *cellDone) add(t *notebook.Trial) {
	switch {
	case t.Traced:
		c.traced++
	case t.Failure == nil:
		c.good++
		fallthrough
	default:
		c.trials++
	}
}

// begun says whether the last of the rounds is not whole: a treatment has trials of it to do. One that none of its own
// trials says anything of is expected in it if its design goes so far, and if it was not given up: it succeeded in the
// round before.
func begun(s notebook.Study, rounds map[int]bool, done map[cellKey]cellDone) bool {
	if len(rounds) == 0 {
		return false
	}
	last, d := slices.Max(slices.Collect(maps.Keys(rounds))), s.Design
	// Once the study is precise enough, only those with a number of rounds of their own go on.
	together := last < d.Floor || slices.ContainsFunc(s.Treatments, func(t notebook.Treatment) bool {
		return t.Rounds == 0 && t.Representative() && done[cellKey{t.ID, last}].trials > 0
	})
	return slices.ContainsFunc(s.Treatments, func(t notebook.Treatment) bool {
		c := done[cellKey{t.ID, last}]
		if n := cmp.Or(c.planned, d.Trials); c.trials > 0 {
			return c.trials < n || len(s.Explain) > 0 && c.traced < n
		}
		if last >= d.Most(t) || t.Rounds == 0 && !together {
			return false
		}
		return last == 0 || done[cellKey{t.ID, last - 1}].good > 0
	})
}

// began gives the arguments of the first command that is recorded with them.
func began(sessions []notebook.Session) []string {
	for _, s := range sessions {
		if s.Event == "start" && len(s.Args) > 0 {
			return s.Args
		}
	}
	return nil
}

// ends says how a folder's sessions ended.
func ends(sessions []notebook.Session) []End {
	var all []End
	running := false
	for _, s := range sessions {
		if s.Event == "start" {
			if running {
				all = append(all, End{Recorded: true, Open: true})
			}
			running = true
			continue
		}
		running = false
		all = append(all, End{Recorded: true, Reason: s.Reason})
	}
	if running {
		all = append(all, End{Recorded: true, Open: true})
	}
	return all
}

func (r *reader) host(h notebook.Host, dir string) {
	for _, known := range r.sum.Hosts {
		if known.ID != h.ID {
			continue
		}
		if known.Kernel != h.Kernel {
			r.sum.Doubts = append(r.sum.Doubts, KernelChanged{dir, h.Hostname, h.Kernel, known.Kernel})
		}
		return
	}
	r.sum.Hosts = append(r.sum.Hosts, Host{Host: h, Name: h.Hostname})
}

// quieted notes what was set for the folder's sessions, and gives it as a text for each that differs.
func (r *reader) quieted(f *notebook.Folder) (all []string) {
	starts := slices.DeleteFunc(slices.Clone(f.Sessions), func(s notebook.Session) bool { return s.Event != "start" })
	all = Distinct(starts, func(s notebook.Session) string { return strings.Join(notebook.Said(s.Quiet), "; ") })
	name := f.Host.Hostname
	for i, set := range all {
		first, known := r.quiet[f.Host.ID]
		switch {
		case !known:
			r.quiet[f.Host.ID] = set
			if set != "" {
				r.sum.Doubts = append(r.sum.Doubts, Quieted{name, set})
			}
		case set != first:
			r.sum.Doubts = append(r.sum.Doubts, QuietDiffers{f.Dir, name, set, first})
		}
		all[i] = cmp.Or(set, "nothing")
	}
	return all
}

// tally finds or makes the row of a treatment.
func (r *reader) tally(t notebook.Treatment, f *notebook.Folder, config Config) *tally {
	metric, image := f.Study.Metrics[t.Workload], f.Study.Image(t)
	n := &tally{first: len(r.order), cells: map[Block]*Cell{}, held: map[Holder]int{}, guests: map[guestKey]bool{}, row: Row{
		// As many cores as there are is all of them, however a study says it.
		Treatment: t, HostID: f.Host.ID, HostCores: f.Host.Cores(t), CHR: f.Host.CHR(t), Metric: metric, Image: image, Representative: t.Representative(), LoadFrom: f.Study.LoadFrom, CPUs: map[string]int{},
		Mean: math.NaN(), MeanLow: math.NaN(), MeanHigh: math.NaN(), Ratio: math.NaN(), RatioLow: math.NaN(), RatioHigh: math.NaN(), RatioAtLeast: math.NaN(), RatioAtMost: math.NaN(), Robust: math.NaN(),
	}}
	if config != nil {
		n.row.Kind, n.row.Config, n.row.identity, n.of = f.Study.Kind, config, config.Identity(), config.Tally()
	}
	id := n.row.Identity()
	if known := r.rows[id]; known != nil {
		return known
	}
	n.group = id.Group()
	for _, m := range f.Study.Also[t.Workload] {
		if m.Better != "" {
			n.others = append(n.others, other{Metric: m})
		}
	}
	n.synced, n.known = syncs(f.Study, t, n.row.Traits())
	r.rows[id] = n
	r.order = append(r.order, n)
	return n
}

func (t *tally) guest(g notebook.Guest) {
	t.noFlush = t.noFlush || flushless(t.row.Treatment, g)
	for _, n := range g.Notes {
		t.said.add(ofGuest, n, "")
	}
	kernel := g.Kernel
	if kernel != "" && g.KernelSource != "" {
		kernel += " (" + g.KernelSource + ")"
	}
	if kernel != "" && !slices.Contains(t.row.Kernels, kernel) {
		t.row.Kernels = append(t.row.Kernels, kernel)
	}
	if notebook.HasMachine(t.row.Treatment.Platform) && !slices.Contains(t.row.Machines, g.Machine) {
		t.row.Machines = append(t.row.Machines, g.Machine)
	}
}

func (r *reader) rulerCost(host string, t notebook.Treatment, g notebook.Guest) {
	if g.RulerCostN == 0 {
		return // its ruler never got so far
	}
	of := RulerCost{Host: host, Platform: t.Platform, Engine: t.Engine, Accelerator: t.Accelerator, Kernel: t.Kernel}
	i := slices.IndexFunc(r.ruler, func(k rulerTally) bool { return k.of == of })
	if i < 0 {
		i = len(r.ruler)
		r.ruler = append(r.ruler, rulerTally{of: of})
	}
	r.ruler[i].costs = append(r.ruler[i].costs, g.RulerCostS)
	r.ruler[i].trips = append(r.ruler[i].trips, g.RoundTripS)
}

func (t *tally) trial(folder int, n *notebook.Trial, limitS float64) error {
	if t.of != nil {
		if err := t.of.Trial(Block{folder, n.Round}, n); err != nil {
			return err
		}
	}
	if n.Traced && !n.Warmup && t.traced != nil {
		t.traced.trial(t.cell(Block{folder, n.Round}), n)
	}
	if !n.Measured() {
		if n.Failure != nil {
			who := ofWarmup
			if n.Traced {
				who = ofTraced
			}
			t.said.add(who, n.Failure, "")
		}
		return nil
	}
	t.row.Trials++
	if l := n.Load; l != nil && l.From == "" && t.row.Treatment.Provisioning == notebook.Vanilla {
		t.row.LoadShared, t.beside = t.row.LoadShared || l.Shared, true
	}
	c := t.cell(Block{folder, n.Round})
	c.Tried++
	c.Beside.Add(n.Beside)
	if n.Guest != "" {
		k := guestKey{folder, n.Guest}
		t.guests[k] = t.guests[k] || n.Failure == nil
	}
	if n.Failure != nil {
		t.row.Failed++
		t.causes.add(ofTrial, n.Failure, "")
		if timedOut(n, limitS) {
			c.Stopped.Add(n.ElapsedS)
		}
		return nil
	}
	c.Value.Add(n.Value)
	c.Order.add(c.Value.N, n.Index, n.Value)
	c.add(n)
	if n.ThrottledS > muchShare*n.ElapsedS {
		t.held[Quota]++
	}
	if b := n.Beside; b != nil && Disturbed(notebook.Beside{StolenS: b.StolenS, OfS: b.OfS}) {
		t.held[Steal]++
	}
	t.foundBy(n.Found)
	// A metric that was timed differs from the elapsed time only by rounding.
	if math.Abs(n.Value-n.ElapsedS) > 1e-6*math.Abs(n.ElapsedS) {
		t.otherMetric = true
		if t.traced != nil {
			t.traced.OtherMetric = true
		}
	}
	dot := Dot{Folder: folder, Round: n.Round, Guest: n.Guest, Trial: n.Index, Start: n.Start, Value: n.Value}
	t.dots.add(dot, mostDots)
	for i := range t.others {
		if v, ok := n.Figures[t.others[i].Name]; ok {
			dot.Value = v
			t.others[i].dots.add(dot, mostDots)
		}
	}
	return nil
}

// cell finds or makes the cell of a round.
func (t *tally) cell(b Block) *Cell {
	if t.last == nil || t.last.Block != b {
		if t.last = t.cells[b]; t.last == nil {
			t.last = &Cell{Block: b}
			t.cells[b] = t.last
		}
	}
	return t.last
}

// doubts are what was said, in the order in which it was said first.
func (t *tally) doubts() (all []Doubt) {
	all = slices.Clone(t.kindSays)
	for _, e := range t.said.all {
		switch e.of {
		case ofGuest:
			all = append(all, GuestSaid{e.Text})
		case ofWarmup:
			all = append(all, WarmupFailed{e.Text})
		default:
			all = append(all, TracedFailed{e.Text})
		}
	}
	return all
}

func (r *reader) summary() (*Summary, error) {
	s := r.sum
	r.nameHosts()
	for _, t := range r.order {
		r.finish(t)
	}
	r.leaveOut()
	for _, t := range r.order {
		r.order = append(r.order, r.figures(t)...)
	}
	r.pool()
	r.checkAA()
	if err := r.compare(); err != nil {
		return nil, err
	}
	r.distrust()
	r.trends()
	r.sort()
	for _, t := range r.order {
		if t.row.IsFigure {
			continue
		}
		t.row.Doubts = append(t.row.Doubts, t.doubts()...)
		s.Rows = append(s.Rows, &t.row)
	}
	for _, t := range r.ruler {
		c := t.of
		c.Host, c.Guests, c.RoundTrip = s.HostOf(c.Host).Name, len(t.costs), stats.Median(t.trips)
		c.Median, c.Low, c.High = stats.Median(t.costs), slices.Min(t.costs), slices.Max(t.costs)
		s.Ruler = append(s.Ruler, c)
	}
	for _, e := range r.warnings.all {
		s.Warnings = append(s.Warnings, Warning{Text: e.Text, Count: e.count, Treatments: slices.Sorted(maps.Keys(e.who))})
	}
	for i := range s.LeftOut {
		s.LeftOut[i].Host = s.HostOf(s.LeftOut[i].Host).Name
	}
	s.Doubts = append(append(s.Doubts, s.wide()...), r.doubts()...)
	s.Baseline = r.opt.Baseline
	return s, nil
}

// stalls says in how many of a folder's rounds other programs used much of the host.
func (r *reader) stalls(folder int) Stalled {
	rounds := map[int]notebook.Beside{}
	for _, t := range r.order {
		for _, c := range t.row.Cells {
			if c.Folder == folder && c.Beside.OfS > 0 {
				sum := rounds[c.Round]
				sum.Add(&c.Beside)
				rounds[c.Round] = sum
			}
		}
	}
	d := Stalled{Dir: r.sum.Folders[folder].Dir, Of: len(rounds)}
	for _, b := range rounds {
		if Disturbed(b) {
			d.Rounds++
			d.Stolen, d.Others = max(d.Stolen, b.StolenS/b.OfS), max(d.Others, b.OthersS/b.OfS)
		}
	}
	return d
}

// The share of the host's CPU time, and the seconds of it, from which on what goes to others is much: less seconds than that the
// kernel does not count well.
const (
	muchShare   = 0.05
	muchSeconds = 0.1
)

// Disturbed says whether other programs used much of the host.
func Disturbed(b notebook.Beside) bool {
	most := max(b.StolenS, b.OthersS)
	return most >= muchSeconds && most >= muchShare*b.OfS
}

// fewest is the number of runs on which the ratio rests that rests on the fewest; 0 where none has an interval.
func (r *reader) fewest() (runs int) {
	for _, t := range r.order {
		row := &t.row
		if row.IsFigure || row.Treatment.AA || row.IsBaseline() || !row.Representative || row.Traits().Constant || !row.Quotient().HasInterval() {
			continue // a size does not stall
		}
		if n := row.Trials - row.Failed; runs == 0 || n < runs {
			runs = n
		}
	}
	return runs
}

// ratios is how many rows have an interval of a ratio that says something of a platform.
func (r *reader) ratios() (n int) {
	for _, t := range r.order {
		if row := &t.row; row.Representative && !row.Treatment.AA && !row.IsBaseline() && row.Quotient().HasInterval() {
			n++
		}
	}
	return n
}

func (r *reader) nameHosts() {
	for i, h := range r.sum.Hosts {
		for j, other := range r.sum.Hosts {
			if i != j && other.Hostname == h.Hostname {
				r.sum.Hosts[i].Name = h.Hostname + " " + h.ID[:min(len(h.ID), 8)]
			}
		}
	}
}

// withoutChoice reports whether a guest with a CPU quota has no more CPUs than that, so that its scheduler chooses as from a CPU set.
func withoutChoice(l notebook.Limits) bool {
	cpus, err := notebook.ParseCPUList(l.CPUs)
	return err == nil && len(cpus) > 0 && l.Quota > 0 && float64(len(cpus)) <= math.Ceil(l.Quota)
}

// finish works out what a row says by itself.
func (r *reader) finish(t *tally) {
	row := &t.row
	row.LoadShared = row.LoadShared || t.beside && t.bound
	row.Host = r.sum.HostOf(row.HostID).Name
	row.Guests = len(t.guests)
	row.Dots, row.DotsOf = t.dots.pick(mostDots), t.dots.of
	for _, c := range t.cells {
		row.Cells = append(row.Cells, *c)
		if c.Tried > 0 && c.Value.N == 0 {
			row.Lost++
		}
		if Disturbed(c.Beside) {
			row.Disturbed++
		}
	}
	slices.SortFunc(row.Cells, func(a, b Cell) int { return a.Compare(b.Block) })
	for i := range row.Cells {
		if c := &row.Cells[i]; c.Value.N > 0 {
			row.Values = append(row.Values, Value{Block: c.Block, Mean: c.Value.Mean(), Trials: c.Value.N})
		}
	}
	row.Rounds = len(row.Values)
	row.Secondary = r.secondary(row)
	if t.of != nil {
		row.Of, t.kindSays = t.of.Finish(r.sum)
	}
	e := r.sum.Mean(row, stats.Alpha)
	row.Mean, row.MeanLow, row.MeanHigh = e.Value, e.Low, e.High
	if t.traced != nil {
		row.Trace = t.traced.finish()
	}
	if !row.Representative {
		row.doubt(Emulated{})
	}
	switch {
	case row.Trials == 0:
		row.doubt(NotMeasured{})
	case row.Failed > 0:
		row.doubt(TrialsFailed{Failed: row.Failed, Trials: row.Trials, Cause: t.causes.commonest()})
	}
	if row.Rounds == 1 {
		row.doubt(OneRound{})
	}
	for _, by := range []Holder{Quota, Steal} {
		if n, of := t.held[by], row.Trials-row.Failed; n > 0 && n < enoughHeld && 2*n < of {
			row.doubt(SeldomHeld{by, n, of})
		}
	}
	t.caveats()
}

// enoughHeld is in how many runs a treatment must have been held back for intervals to hold what that costs (stats TestRareStalls).
const enoughHeld = 6

// leaveOut takes from the rows those secondary metrics with rows of their own that their work has not: of all its trials that succeeded none had it.
func (r *reader) leaveOut() {
	type figure struct {
		group Identity
		name  string
	}
	has, done := map[figure]bool{}, map[Identity]bool{}
	for _, t := range r.order {
		if len(t.row.Values) > 0 {
			done[t.group] = true
		}
		for _, m := range t.row.Secondary {
			if m.Rounds > 0 {
				has[figure{t.group, m.Metric.Name}] = true
			}
		}
	}
	for _, t := range r.order {
		lacks := func(m notebook.Metric) bool { return m.Better != "" && done[t.group] && !has[figure{t.group, m.Name}] }
		t.row.Secondary = slices.DeleteFunc(t.row.Secondary, func(m Secondary) bool { return lacks(m.Metric) })
		t.others = slices.DeleteFunc(t.others, func(o other) bool { return lacks(o.Metric) })
	}
}

// figures makes a row for each secondary metric whose better direction is known. Tare compares and checks these rows like the others.
func (r *reader) figures(t *tally) (all []*tally) {
	for i := range t.others {
		o := &t.others[i]
		f := &tally{first: t.first, row: t.row}
		row := &f.row
		row.Doubts = slices.Clone(row.Doubts)
		row.IsFigure, row.Metric, row.Values, row.Secondary, row.Figures = true, o.Metric, t.row.SecondaryValues(o.Name), nil, nil
		row.Cells, row.Of, row.Trace = nil, nil, nil
		f.group = row.Identity().Group()
		row.Dots, row.DotsOf, row.Rounds = o.dots.pick(mostDots), o.dots.of, len(row.Values)
		e := r.sum.Mean(row, stats.Alpha)
		row.Mean, row.MeanLow, row.MeanHigh = e.Value, e.Low, e.High
		t.row.Figures = append(t.row.Figures, row)
		all = append(all, f)
	}
	return all
}

// secondary works out the row's secondary metrics.
func (r *reader) secondary(row *Row) (all []Secondary) {
	if len(row.Values) == 0 {
		return nil
	}
	study := r.sum.Folders[row.Values[0].Folder].Study
	for _, m := range study.Also[row.Treatment.Workload] {
		values := row.SecondaryValues(m.Name)
		e := r.sum.Mean(&Row{Values: values}, stats.Alpha)
		all = append(all, Secondary{Metric: m, Mean: e.Value, Low: e.Low, High: e.High, Rounds: e.N})
	}
	return all
}

func (row *Row) doubt(d Doubt) { row.Doubts = append(row.Doubts, d) }

// bareMetal is the row that a row's overhead is measured from; nil where there is none.
func (r *reader) bareMetal(t *tally) *tally {
	for _, o := range r.order {
		if o.group == t.group && o.row.Treatment.Platform == notebook.BM && !o.row.Treatment.AA &&
			o.row.Treatment.Instance.SameSize(t.row.Treatment.Instance) && o.row.HostCores == t.row.HostCores {
			return o
		}
	}
	return nil
}

// pool gives bare metal its A/A control as a second arm, whatever the check says: a baseline that depended on it would be a choice by the data.
// Another environment that is the reference has its own rounds only; bare metal keeps its second arm where it is compared with that.
func (r *reader) pool() {
	for _, t := range r.order {
		if t.row.Treatment.AA && t.row.Treatment.Platform == notebook.BM {
			if bm := r.bareMetal(t); bm != nil {
				bm.row.again = &t.row
			}
		}
	}
}

// compare gives every row its ratio.
func (r *reader) compare() error {
	for _, t := range r.order {
		base, err := r.baseline(t)
		if err != nil {
			return err
		}
		row := &t.row
		if base == nil && len(r.opt.Baseline) > 0 {
			row.doubt(NoReference{notebook.ReferenceText(r.opt.Baseline)})
			continue
		}
		if base == nil {
			row.doubt(NoBareMetal{row.Treatment.Instance.Name})
			continue
		}
		row.Baseline = base.row.Treatment.ID
		q := r.sum.Ratio(row, &base.row, stats.Alpha)
		missing := len(row.Values) - q.N // the baseline goes on for others
		row.Ratio, row.RatioLow, row.RatioHigh, row.RatioRounds = q.Value, q.Low, q.High, q.N
		row.RatioAtLeast, row.RatioAtMost = q.AtLeast, q.AtMost
		xs, ys, _ := Paired(row, &base.row)
		row.Robust = stats.Robust(xs, ys)
		if base == t && q.N > 0 {
			row.Ratio, row.RatioLow, row.RatioHigh, row.RatioAtLeast, row.RatioAtMost = 1, 1, 1, 1, 1 // by definition, whatever its noise
		} else if off := math.Abs(row.Robust/q.Value - 1); q.HasInterval() && !q.Contains(row.Robust) && off > 1e-9 { // beyond rounding
			row.doubt(RobustDiffers{row.Robust})
		}
		of := NameOf(base.row.Treatment)
		switch {
		case base == t || row.Rounds == 0:
		case base.row.Rounds == 0:
			row.doubt(BaselineFailed{of})
		case q.N == 0:
			row.doubt(NoCommonRound{of})
		case row.Rounds == 1: // OneRound says it
		case q.N == 1:
			row.doubt(OneCommonRound{of})
		case math.IsNaN(q.Value):
			row.doubt(BaselineZero{of})
		case math.IsInf(q.High, 0):
			row.doubt(Unbounded{of})
		}
		if missing > 0 && q.N > 1 {
			row.doubt(UnpairedRounds{q.N, missing, of})
		}
		if q.HasInterval() && base.row.Rounds > q.N && !q.Contains(row.Mean/base.row.Mean) {
			there := stats.Mean(ys, r.sum.sure(folders(row.Values), stats.Alpha))
			row.doubt(BaselineElsewhere{there.Value, there.Low, there.High, row.Metric, q.N, of})
		}
		r.stopped(t, base)
		if !stats.Finite(row.Mean) && row.Rounds > 0 {
			row.doubt(Overflow{})
		}
		r.short(t, base)
	}
	return r.known()
}

// sort brings together what is compared: host and workload, instance type, then the reference, bare metal, its A/A row and the rest
// as the study has them.
func (r *reader) sort() {
	rank := func(t *tally) int {
		switch {
		case t.row.IsBaseline():
			return 0
		case t.row.Treatment.AA:
			return 2
		case t.row.Treatment.Platform == notebook.BM:
			return 1
		}
		return 3
	}
	groups := map[Identity]int{} // in the order in which they appear
	for _, t := range r.order {
		if _, known := groups[t.group]; !known {
			groups[t.group] = len(groups)
		}
	}
	slices.SortStableFunc(r.order, func(a, b *tally) int {
		x, y := a.row.Treatment.Instance, b.row.Treatment.Instance
		return cmp.Or(
			cmp.Compare(groups[a.group], groups[b.group]),
			cmp.Compare(x.Cores, y.Cores), cmp.Compare(x.Memory, y.Memory),
			cmp.Compare(rank(a), rank(b)), cmp.Compare(a.first, b.first))
	})
}

// LooksAt says how often a design's intervals are looked at, and at which levels they are made for that; Rounds is 0 where it is once.
func LooksAt(d notebook.Design) Looks {
	c := stats.Sure(d.Looks())
	l := Looks{Rounds: d.Looks(), Level: c.Level()}
	if c.Precision, c.Floor = d.Precision, d.Floor; c.Precision > 0 {
		l.Until, l.Last = c.Level(), c.Last().Level()
	}
	return l
}

// doubts are those about all of it.
func (r *reader) doubts() (all []Doubt) {
	for _, h := range r.sum.Hosts {
		if h.Virtualization != "" {
			all = append(all, HostIsGuest{h.Name, h.Virtualization})
		}
	}
	for i, f := range r.sum.Folders {
		d := f.Study.Design
		if l := LooksAt(d); l.Rounds > 0 && !slices.Contains(all, Doubt(l)) {
			all = append(all, l)
		}
		if least := f.Study.Least(); f.Rounds < least {
			all = append(all, FewRounds{Dir: f.Dir, Rounds: f.Rounds, Floor: least, Cap: d.Cap, Begun: f.Begun, Ended: f.Ended(), Sessions: len(f.Ends)})
		}
		if f.Torn {
			all = append(all, Torn{f.Dir})
		}
		stalls := r.stalls(i)
		if r.sum.Folders[i].Watched = stalls.Of; stalls.Rounds > 0 {
			all = append(all, stalls)
		}
	}
	if runs := r.fewest(); stats.Rarest(runs) > 0 {
		all = append(all, Unseen{runs, stats.Rarest(runs)})
	}
	if n := r.ratios(); n > 2 {
		all = append(all, Uncorrected{n})
	}
	for _, c := range r.sum.Calibrations {
		if c.Narrow() {
			all = append(all, NarrowHost{c.Host, c.Figure.Name, c.Places, c.Factor, c.Low})
		}
	}
	most := Extended{}
	for _, t := range r.order {
		of := folders(t.row.Values)
		if c := r.sum.sure(of, stats.Alpha); c.Extensions > 0 && len(of) > most.Folders {
			most = Extended{len(of), c.Level()}
		}
	}
	if most.Folders > 0 {
		all = append(all, most)
	}
	if r.warnings.dropped > 0 {
		all = append(all, MoreWarnings{r.warnings.dropped})
	}
	return all
}
