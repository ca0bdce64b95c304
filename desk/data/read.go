package data

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"tare/notebook"
	"tare/stats"
)

// defaultDots is how many trials a row keeps for plots where Options.Dots does not say.
const defaultDots = 400

// Read reads the folders and summarises them together. Treatments that are alike, of the same host and with the same
// image, share a row; their rounds are the blocks of its intervals. Errors are notebook's, with file and line, and
// those of a baseline that does not choose one treatment.
func Read(dirs []string, opt Options) (*Summary, error) {
	if len(dirs) == 0 {
		return nil, errors.New("no results folder was named")
	}
	if err := checkBaseline(opt.Baseline); err != nil {
		return nil, err
	}
	if opt.Dots <= 0 {
		opt.Dots = defaultDots
	}
	r := &reader{sum: &Summary{}, opt: opt, rows: map[string]*tally{}}
	for _, dir := range dirs {
		if err := r.folder(dir); err != nil {
			return nil, err
		}
	}
	return r.summary()
}

// reader is a summary in the making.
type reader struct {
	seen     map[string]string // folder, by a guest of it
	sum      *Summary
	opt      Options
	rows     map[string]*tally // by identity
	order    []*tally
	groups   []string // identities of what may be compared, in order of appearance
	warnings texts
	ruler    []rulerTally
	widened  bool // an interval is of rounds of several folders, and wider for their looks
}

// block is a round of a folder: what was measured in it was measured at nearly the same time.
type block struct{ folder, round int }

// cell is what one treatment gave in one block.
type cell struct {
	sum  float64
	n    int
	also map[string]cell // by the name of a further figure
}

// tally is one row in the making.
type tally struct {
	row     Row
	group   string // host, workload, parameters, image and metric: what may be compared
	first   int    // in the order of appearance
	from    []treatmentKey
	cells   map[block]*cell
	last    block // of the trial before, and its cell
	lastTo  *cell
	guests  map[guestKey]bool
	causes  texts // of failures
	notes   texts
	kernels []string
	dots    sample
}

type guestKey struct {
	folder int
	id     string
}

// treatmentKey is a treatment of a folder.
type treatmentKey struct {
	folder int
	id     string
}

type rulerTally struct {
	host, platform, engine, accelerator string
	costs, trips                        []float64
}

func (r *reader) folder(dir string) error {
	f, err := notebook.Read(dir)
	if err != nil {
		return err
	}
	// Guests are unique: a folder named twice, or a copy of one, would count its rounds twice.
	if r.seen == nil {
		r.seen = map[string]string{}
	}
	for _, g := range f.Guests {
		key := g.ID + g.Start.String()
		if other, ok := r.seen[key]; ok && other != dir {
			return fmt.Errorf("%s and %s hold the same guest %s: one is a copy of the other; name each folder once", other, dir, g.ID)
		} else if ok && g.ID == f.Guests[0].ID {
			return fmt.Errorf("%s is named twice; name each folder once", dir)
		}
		r.seen[key] = dir
	}
	at := len(r.sum.Folders)
	r.host(f.Host, dir)

	byID := map[string]*tally{}
	for _, t := range f.Study.Treatments {
		byID[t.ID] = r.tally(t, f)
		byID[t.ID].from = append(byID[t.ID].from, treatmentKey{at, t.ID})
	}
	for _, l := range f.Study.LeftOut {
		r.sum.LeftOut = append(r.sum.LeftOut, LeftOut{Host: f.Host.ID, Treatment: l.Treatment, Reason: l.Reason})
	}
	for _, g := range f.Guests {
		t := byID[g.Treatment]
		if t == nil {
			return fmt.Errorf("%s: the guest %s is of the treatment %q, which the study does not have", dir, g.ID, g.Treatment)
		}
		t.guest(g)
		r.rulerCost(f.Host.ID, t.row.Treatment, g)
	}

	folder := Folder{Dir: dir, Study: f.Study, Host: f.Host.ID, Ends: ends(f.Sessions), Args: began(f.Sessions), Torn: f.Torn}
	rounds := map[int]bool{}
	lastRound := -1
	done := map[cellKey]cellDone{}
	err = f.TrialsLean(func(t *notebook.Trial) error {
		folder.Trials++
		if t.Failure != "" {
			folder.Failed++
		}
		if t.Round != lastRound {
			rounds[t.Round], lastRound = true, t.Round
		}
		if !t.Warmup {
			c := done[cellKey{t.Treatment, t.Round}]
			switch {
			case t.Explained:
				c.explained++
			case t.Failure == "":
				c.good++
				fallthrough
			default:
				c.trials++
			}
			done[cellKey{t.Treatment, t.Round}] = c
		}
		for _, w := range t.Warnings {
			r.warnings.add(w, t.Treatment)
		}
		byID[t.Treatment].trial(at, t, r.opt.Dots)
		return nil
	})
	folder.Rounds = len(rounds)
	folder.Begun = begun(f.Study, rounds, done)
	r.sum.Folders = append(r.sum.Folders, folder)
	return err
}

// cellKey is a treatment's part of a round of one folder.
type cellKey struct {
	treatment string
	round     int
}

// cellDone is how many measured trials it has, how many of them succeeded, and how many explained trials it has.
type cellDone struct{ trials, good, explained int }

// begun says whether the last of the rounds is not whole: a treatment has trials of it to do. One that none of its own
// trials says anything of is expected in it if its design goes so far, and if it was not given up: it succeeded in the
// round before.
func begun(s notebook.Study, rounds map[int]bool, done map[cellKey]cellDone) bool {
	if len(rounds) == 0 {
		return false
	}
	last, d := slices.Max(slices.Collect(maps.Keys(rounds))), s.Design
	// Once the study is precise enough, those with a number of rounds of their own go on alone.
	together := last < d.Floor || slices.ContainsFunc(s.Treatments, func(t notebook.Treatment) bool {
		return t.Rounds == 0 && t.Representative() && done[cellKey{t.ID, last}].trials > 0
	})
	return slices.ContainsFunc(s.Treatments, func(t notebook.Treatment) bool {
		n := done[cellKey{t.ID, last}].trials
		if n > 0 {
			return n < d.Trials || len(s.Explain) > 0 && done[cellKey{t.ID, last}].explained < d.Trials
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

// ends gives the reasons why a folder's sessions ended.
func ends(sessions []notebook.Session) []string {
	var reasons []string
	running := false
	const none = "still running or killed"
	for _, s := range sessions {
		if s.Event == "start" {
			if running {
				reasons = append(reasons, none)
			}
			running = true
			continue
		}
		running = false
		reasons = append(reasons, s.Reason)
	}
	if running {
		reasons = append(reasons, none)
	}
	return reasons
}

func (r *reader) host(h notebook.Host, dir string) {
	for _, known := range r.sum.Hosts {
		if known.ID != h.ID {
			continue
		}
		if known.Kernel != h.Kernel {
			r.sum.Notes = append(r.sum.Notes, fmt.Sprintf("%s was measured on the host %s under the kernel %s, an earlier folder under %s: rows that they share mix the two", dir, h.Hostname, h.Kernel, known.Kernel))
		}
		return
	}
	r.sum.Hosts = append(r.sum.Hosts, Host{Host: h, Name: h.Hostname})
}

// tally finds or makes the row of a treatment.
func (r *reader) tally(t notebook.Treatment, f *notebook.Folder) *tally {
	metric, image := f.Study.Metrics[t.Workload], f.Study.Image(t)
	group := fmt.Sprintf("%q %q %q %q %q %q %q", f.Host.ID, t.Workload, sortedParams(t.Params), image.Digest, image.Input, metric.Name, metric.Unit)
	// As many cores as there are is all of them, however a study says it.
	cores := f.Host.Cores(t)
	id := fmt.Sprintf("%s %q %q %q %q %v %d %q %q %d %v", group, t.Platform, t.Engine, t.Accelerator, t.Provisioning, t.Instance.Cores, t.Instance.Memory, t.Network, t.Isolation, cores, t.AA)
	if known := r.rows[id]; known != nil {
		return known
	}
	n := &tally{group: group, first: len(r.order), cells: map[block]*cell{}, guests: map[guestKey]bool{}, row: Row{
		Treatment: t, HostID: f.Host.ID, HostCores: cores, CHR: f.Host.CHR(t), Metric: metric, Image: image, Representative: t.Representative(),
		Mean: math.NaN(), MeanLow: math.NaN(), MeanHigh: math.NaN(), Ratio: math.NaN(), RatioLow: math.NaN(), RatioHigh: math.NaN(),
	}}
	r.rows[id] = n
	r.order = append(r.order, n)
	if !slices.Contains(r.groups, group) {
		r.groups = append(r.groups, group)
	}
	return n
}

func sortedParams(params map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(params)) {
		parts = append(parts, k+"="+params[k])
	}
	return strings.Join(parts, ", ")
}

func (t *tally) guest(g notebook.Guest) {
	for _, n := range g.Notes {
		t.notes.add(n, "")
	}
	kernel := g.Kernel
	if kernel != "" && g.KernelSource != "" {
		kernel += " (" + g.KernelSource + ")"
	}
	if kernel != "" && !slices.Contains(t.kernels, kernel) {
		t.kernels = append(t.kernels, kernel)
	}
}

func (r *reader) rulerCost(host string, t notebook.Treatment, g notebook.Guest) {
	if g.RulerCostN == 0 {
		return // its ruler never got so far
	}
	key := rulerTally{host: host, platform: t.Platform, engine: t.Engine, accelerator: t.Accelerator}
	i := slices.IndexFunc(r.ruler, func(k rulerTally) bool {
		return k.host == key.host && k.platform == key.platform && k.engine == key.engine && k.accelerator == key.accelerator
	})
	if i < 0 {
		i = len(r.ruler)
		r.ruler = append(r.ruler, key)
	}
	r.ruler[i].costs = append(r.ruler[i].costs, g.RulerCostS)
	r.ruler[i].trips = append(r.ruler[i].trips, g.RoundTripS)
}

func (t *tally) trial(folder int, n *notebook.Trial, dots int) {
	if !n.Measured() {
		if n.Failure != "" {
			what := "a warm-up"
			if n.Explained {
				what = "an explained trial"
			}
			t.notes.add(what+" failed: "+n.Failure, "")
		}
		return
	}
	t.row.Trials++
	b := block{folder, n.Round}
	if t.lastTo == nil || t.last != b {
		c := t.cells[b]
		if c == nil {
			c = &cell{}
			t.cells[b] = c
		}
		t.last, t.lastTo = b, c
	}
	if n.Guest != "" {
		t.guests[guestKey{folder, n.Guest}] = true
	}
	if n.Failure != "" {
		t.row.Failed++
		t.causes.add(n.Failure, "")
		return
	}
	t.lastTo.sum += n.Value
	t.lastTo.n++
	for name, v := range n.Figures {
		if t.lastTo.also == nil {
			t.lastTo.also = map[string]cell{}
		}
		a := t.lastTo.also[name]
		t.lastTo.also[name] = cell{sum: a.sum + v, n: a.n + 1}
	}
	t.dots.add(Dot{Folder: folder, Round: n.Round, Guest: n.Guest, Trial: n.Index, Value: n.Value}, dots)
}

// level is that of an interval made from rounds of these folders.
func (r *reader) level(blocks []block) float64 {
	var folders []int
	ruled := 0
	for _, b := range blocks {
		if slices.Contains(folders, b.folder) {
			continue
		}
		folders = append(folders, b.folder)
		if looked(r.sum.Folders[b.folder].Study.Design) < 1 {
			ruled++
		}
	}
	r.widened = r.widened || ruled > 1
	return 1 - stats.Alpha*r.sum.share(folders)
}

// blocks of a tally that have a value, in order.
func (t *tally) blocks() []block {
	var bs []block
	for b, c := range t.cells {
		if c.n > 0 {
			bs = append(bs, b)
		}
	}
	slices.SortFunc(bs, func(a, b block) int {
		return cmp.Or(cmp.Compare(a.folder, b.folder), cmp.Compare(a.round, b.round))
	})
	return bs
}

func (t *tally) value(b block) float64 {
	c := t.cells[b]
	return c.sum / float64(c.n)
}

// ratio compares a row with another over the rounds that both have; missing says in how many rounds only one has.
func (r *reader) ratio(x, y *tally) (q stats.Quotient, missing int) {
	var both []block
	var xs, ys []float64
	xb, yb := x.blocks(), y.blocks()
	for _, b := range xb {
		if c := y.cells[b]; c != nil && c.n > 0 {
			both = append(both, b)
			xs, ys = append(xs, x.value(b)), append(ys, y.value(b))
		}
	}
	return stats.Ratio(xs, ys, r.level(both)), len(xb) + len(yb) - 2*len(both)
}

func (r *reader) summary() (*Summary, error) {
	s := r.sum
	r.nameHosts()
	for _, t := range r.order {
		r.finish(t)
	}
	r.checkAA()
	if err := r.compare(); err != nil {
		return nil, err
	}
	r.distrust()
	r.sort()
	s.at = map[treatmentKey]int{}
	for _, t := range r.order {
		t.row.Notes = append(t.row.Notes, t.notes.list()...)
		for _, k := range t.from {
			s.at[k] = len(s.Rows)
		}
		s.Rows = append(s.Rows, t.row)
	}
	for _, t := range r.ruler {
		s.Ruler = append(s.Ruler, RulerCost{
			Host: t.host, Platform: t.platform, Engine: t.engine, Accelerator: t.accelerator, Guests: len(t.costs),
			Median: stats.Median(t.costs), Low: slices.Min(t.costs), High: slices.Max(t.costs), RoundTrip: stats.Median(t.trips),
		})
	}
	for _, e := range r.warnings.all {
		s.Warnings = append(s.Warnings, Warning{Text: e.String(), Count: e.count, Treatments: slices.Sorted(maps.Keys(e.who))})
	}
	for i := range s.Ruler {
		s.Ruler[i].Host = r.hostName(s.Ruler[i].Host)
	}
	for i := range s.LeftOut {
		s.LeftOut[i].Host = r.hostName(s.LeftOut[i].Host)
	}
	s.Notes = append(s.Notes, r.notes()...)
	s.Sentence = sentence(s, r.opt.Baseline)
	return s, nil
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

func (r *reader) hostName(id string) string {
	for _, h := range r.sum.Hosts {
		if h.ID == id {
			return h.Name
		}
	}
	return id
}

// finish works out what a row says by itself.
func (r *reader) finish(t *tally) {
	row := &t.row
	row.Host = r.hostName(row.HostID)
	row.Guests = len(t.guests)
	row.Dots, row.DotsOf = t.dots.pick(r.opt.Dots), t.dots.of
	row.Kernels = t.kernels
	blocks := t.blocks()
	row.Rounds, row.Lost = len(blocks), len(t.cells)-len(blocks)
	var values []float64
	for _, b := range blocks {
		values = append(values, t.value(b))
		row.Values = append(row.Values, Value{Folder: b.folder, Round: b.round, Mean: t.value(b), Trials: t.cells[b].n})
	}
	row.Also = r.also(t, blocks)
	e := stats.Mean(values, r.level(blocks))
	row.Mean, row.MeanLow, row.MeanHigh = e.Value, e.Low, e.High
	if !row.Representative {
		row.note("under software emulation (tcg): says nothing about a VM's cost")
	}
	switch {
	case row.Trials == 0:
		row.note("not measured yet")
	case row.Rounds == 0:
		row.Failures = "every trial failed: " + t.causes.commonest()
		row.note(row.Failures)
	case row.Failed > 0:
		row.Failures = fmt.Sprintf("%d of %d trials failed: %s", row.Failed, row.Trials, t.causes.commonest())
		row.note(row.Failures)
	}
	if row.Rounds == 1 {
		row.note("no interval: one round only, two at least are needed")
	}
}

// also works out the row's further figures.
func (r *reader) also(t *tally, blocks []block) (all []Also) {
	if len(blocks) == 0 {
		return nil
	}
	study := r.sum.Folders[blocks[0].folder].Study
	for _, m := range study.Also[t.row.Treatment.Workload] {
		var values []float64
		var of []block
		for _, b := range blocks {
			if c := t.cells[b].also[m.Name]; c.n > 0 {
				values, of = append(values, c.sum/float64(c.n)), append(of, b)
			}
		}
		e := stats.Mean(values, r.level(of))
		all = append(all, Also{Metric: m, Mean: e.Value, Low: e.Low, High: e.High, Rounds: e.N})
	}
	return all
}

func (row *Row) note(n string) { row.Notes = append(row.Notes, n) }

func sameSize(a, b notebook.Instance) bool { return a.Cores == b.Cores && a.Memory == b.Memory }

// bareMetal is the row that a row's overhead is measured from; nil where there is none.
func (r *reader) bareMetal(t *tally) *tally {
	for _, o := range r.order {
		if o.group == t.group && o.row.Treatment.Platform == notebook.BM && !o.row.Treatment.AA &&
			sameSize(o.row.Treatment.Instance, t.row.Treatment.Instance) && o.row.HostCores == t.row.HostCores {
			return o
		}
	}
	return nil
}

func (r *reader) checkAA() {
	for _, t := range r.order {
		if !t.row.Treatment.AA {
			continue
		}
		a := AACheck{
			Host: t.row.Host, Workload: t.row.Treatment.Workload, Params: t.row.Treatment.Params, Instance: t.row.Treatment.Instance, HostCores: t.row.HostCores,
			Ratio: math.NaN(), Low: math.NaN(), High: math.NaN(), Verdict: NotKnown,
		}
		if bm := r.bareMetal(t); bm != nil {
			q, _ := r.ratio(t, bm)
			a.Ratio, a.Low, a.High = q.Value, q.Low, q.High
			switch {
			case !q.HasInterval():
			case q.Contains(1):
				a.Verdict = Holds
			default:
				a.Verdict = Misses
				t.row.note("the A/A check misses 1: the host was too unsteady, or this is the one run in 20 that misses by chance")
			}
		}
		r.sum.AA = append(r.sum.AA, a)
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
		if base == nil {
			row.note("no ratio: bare metal was not measured at " + row.Treatment.Instance.Name)
			continue
		}
		row.Baseline = base.row.Treatment.ID
		q, missing := r.ratio(t, base)
		row.Ratio, row.RatioLow, row.RatioHigh, row.RatioRounds = q.Value, q.Low, q.High, q.N
		if base == t && q.N > 0 {
			row.Ratio, row.RatioLow, row.RatioHigh = 1, 1, 1 // by definition, whatever its noise
		}
		name := base.row.name()
		switch {
		case base == t || row.Rounds == 0:
		case base.row.Rounds == 0:
			row.note("no ratio: no trial of " + name + " succeeded")
		case q.N == 0:
			row.note("no ratio: no round has both this and " + name)
		case q.N == 1:
			row.note("the ratio has no interval: one round only has both this and " + name)
		case math.IsNaN(q.Value):
			row.note("no ratio: the mean of " + name + " is zero")
		case math.IsInf(q.High, 0):
			row.note("the ratio's interval has no bounds: " + name + " varied too much")
		}
		if missing > 0 && q.N > 0 {
			row.note(fmt.Sprintf("%s count in the ratio: in %d more only this or only %s has a successful trial", Count(q.N, "round"), missing, name))
		}
		if !finite(row.Mean) && row.Rounds > 0 {
			row.note("the mean is too large for a number")
		}
	}
	return nil
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// Count is so many of something in words: "1 round", "3 rounds".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// distrust marks the rows whose difference from bare metal is no larger than what bare metal showed against itself
// where the A/A check misses.
func (r *reader) distrust() {
	for i := range r.sum.AA {
		a := &r.sum.AA[i]
		if a.Verdict != Misses {
			continue
		}
		m := a.factor() // what this host can make of nothing
		for _, t := range r.order {
			row := &t.row
			if row.Host != a.Host || row.Treatment.Workload != a.Workload || !maps.Equal(row.Treatment.Params, a.Params) || !sameSize(row.Treatment.Instance, a.Instance) || row.HostCores != a.HostCores ||
				row.Treatment.AA || row.IsBaseline() || !finite(row.Ratio) {
				continue
			}
			if !finite(row.RatioLow) || !finite(row.RatioHigh) || row.RatioLow <= m && row.RatioHigh >= 1/m {
				row.Doubtful = true
				a.Untrusted = append(a.Untrusted, row.Treatment.ID)
				row.note(fmt.Sprintf("not to be trusted: bare metal differed from itself by as much, %s", interval(a.Ratio, a.Low, a.High)))
			}
		}
	}
}

// sort brings together what is compared: host and workload, instance type, then bare metal, its A/A row and the rest
// as the study has them.
func (r *reader) sort() {
	rank := func(t *tally) int {
		switch {
		case t.row.Treatment.AA:
			return 1
		case t.row.Treatment.Platform == notebook.BM:
			return 0
		}
		return 2
	}
	slices.SortStableFunc(r.order, func(a, b *tally) int {
		x, y := a.row.Treatment.Instance, b.row.Treatment.Instance
		return cmp.Or(
			cmp.Compare(slices.Index(r.groups, a.group), slices.Index(r.groups, b.group)),
			cmp.Compare(x.Cores, y.Cores), cmp.Compare(x.Memory, y.Memory),
			cmp.Compare(rank(a), rank(b)), cmp.Compare(a.first, b.first))
	})
}

// notes are those about the summary as a whole.
func (r *reader) notes() []string {
	var notes []string
	for _, h := range r.sum.Hosts {
		if h.Virtualization != "" {
			notes = append(notes, fmt.Sprintf("the host %s is itself a virtual machine (%s): bare metal here means this machine without a further layer", h.Name, h.Virtualization))
		}
	}
	for _, f := range r.sum.Folders {
		d := f.Study.Design
		if looks := math.Round(1 / looked(d)); looks > 1 {
			n := fmt.Sprintf("intervals hold in 95 %% of studies in spite of the stopping rule: each of %.0f looks is made at %.4g %%", looks, 100*(1-stats.Alpha/looks))
			if !slices.Contains(notes, n) {
				notes = append(notes, n)
			}
		}
		if f.Rounds < d.Floor {
			run := "run"
			if f.Begun {
				run = "begun, the last of them not whole"
			}
			notes = append(notes, fmt.Sprintf("%s: %d of at least %s were %s; its last session ended: %s", f.Dir, f.Rounds, Count(d.Floor, "round"), run, last(f.Ends)))
		}
		if f.Torn {
			notes = append(notes, f.Dir+": its last record was cut off and does not count; the same `tare run` does it again")
		}
	}
	if r.widened {
		notes = append(notes, "where rounds of several folders share a row, its intervals are made wider: each of all their looks together may have been the last")
	}
	if r.warnings.dropped > 0 {
		notes = append(notes, fmt.Sprintf("%d further warnings, of more kinds than are listed", r.warnings.dropped))
	}
	return notes
}

func last(reasons []string) string {
	if len(reasons) == 0 {
		return "no session is recorded"
	}
	return reasons[len(reasons)-1]
}
