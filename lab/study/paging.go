package study

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
	pagingkind "tare/notebook/kinds/paging"
)

// Paging is how a study file says that page tables or page faults are read: so many guests of a treatment are made, one beside the other on the same
// cores, each at its work (paper "characterization", section 5.2).
type Paging struct {
	Guests    int      `yaml:"guests,omitempty"`     // default 4
	Initial   string   `yaml:"initial,omitempty"`    // a time: how long the last has worked when the initial state is read; default 1s
	Steady    string   `yaml:"steady,omitempty"`     // page tables are read: at the initial state, and after so long under load; 0s: at the initial one alone
	Faults    string   `yaml:"faults,omitempty"`     // page faults are counted: so long under load, or of what ends by itself from its beginning to its end
	Addresses []string `yaml:"addresses,omitempty"`  // of notebook.Addresses; each makes a treatment
	HugePages []string `yaml:"huge_pages,omitempty"` // of notebook.HugePages; each makes a treatment
}

const (
	usualGuests  = 4           // as in the paper
	usualInitial = time.Second // an engine's hello, and a program's start, are over
	longestState = 24 * time.Hour
	mostPaging   = 64 // guests, as many as the counting of repeated faults tells apart
)

// parse reads it; a nil one is none.
func (p *Paging) parse() (*pagingkind.Config, error) {
	if p == nil {
		return nil, nil
	}
	out := &pagingkind.Config{Guests: p.Guests, Tables: p.Steady != "", InitialS: usualInitial.Seconds()}
	if out.Guests == 0 {
		out.Guests = usualGuests
	}
	if out.Guests < 1 || out.Guests > mostPaging {
		return nil, fmt.Errorf("guests: %d: a number from 1 to %d was expected", p.Guests, mostPaging)
	}
	if p.Steady == "" && p.Faults == "" {
		return nil, errors.New("steady: and faults: are missing: steady: 2m, by which page tables are read, or faults: 10s, by which page faults are counted, was expected")
	}
	for _, f := range []struct {
		name, text string
		least      time.Duration
		to         *float64
	}{{"initial", p.Initial, 0, &out.InitialS}, {"steady", p.Steady, 0, &out.SteadyS}, {"faults", p.Faults, time.Second / 10, &out.FaultsS}} {
		if f.text == "" {
			continue
		}
		d, err := time.ParseDuration(f.text)
		if err != nil || d < f.least || d > longestState {
			return nil, fmt.Errorf("%s: %q: a time from %v to %v, like 10s or 2m, was expected", f.name, f.text, f.least, longestState)
		}
		*f.to = d.Seconds()
	}
	for _, l := range []struct {
		name       string
		has, known []string
	}{{"addresses", p.Addresses, notebook.Addresses}, {"huge_pages", p.HugePages, notebook.HugePages}} {
		for _, v := range l.has {
			if !slices.Contains(l.known, v) {
				return nil, fmt.Errorf("%s: %q: %s was expected", l.name, v, oneOf(l.known))
			}
		}
	}
	return out, nil
}

// each gives a workload's parameters with each of the treatments' addresses, pages, roots and page caches among them. These stand there as parameters do, so that whatever
// tells treatments apart by their parameters tells these apart, and a guest is compared with bare metal that has the same.
func (s *Spec) each(full map[string]string) (all []map[string]string, err error) {
	all = []map[string]string{full}
	type values struct {
		param  string
		values []string
	}
	var params []values
	if p := s.Paging; p != nil {
		params = append(params, values{notebook.ParamAddresses, p.Addresses}, values{notebook.ParamHugePages, p.HugePages})
	}
	if s.Memory != nil {
		params = append(params, values{notebook.ParamRoot, s.Memory.Roots})
	}
	if s.Starting != nil {
		starting, err := s.Starting.parse()
		if err != nil {
			return nil, err
		}
		params = append(params, values{notebook.ParamCache, starting.Caches})
	}
	for _, of := range params {
		if len(of.values) == 0 {
			continue
		}
		if _, taken := full[of.param]; taken {
			return nil, fmt.Errorf("the workload has a parameter %q of its own: one without it was expected", of.param)
		}
		var more []map[string]string
		for _, params := range all {
			for _, v := range of.values {
				n := maps.Clone(params)
				n[of.param] = v
				more = append(more, n)
			}
		}
		all = more
	}
	return all, nil
}

// ends says whether the work ends by itself, as a function does: it has no steady state.
func ends(w *workload.Workload) bool { return !w.Stays && w.Service == nil }

// Faulting is the observation of guests' page faults.
type Faulting interface {
	// Stop ends it and says what was seen.
	Stop() (notebook.PageFaults, error)
}

// page makes as many guests of the treatment as the study reads at once, the first of which there is already, has each do its work, and reads
// their page tables, or counts their page faults. A rehearsal is of the first alone: its
// tables at the initial state, if the study reads any, and the end of a function. The error is of a guest that cannot be removed.
func (r *Run) page(ctx context.Context, first Guest, ready *workload.Ready, t notebook.Treatment, rehearsal bool) (tr notebook.Trial, err error) {
	p := *pagingkind.Of(r.Plan.Study)
	if rehearsal {
		p.Guests, p.SteadyS, p.FaultsS = 1, 0, 0
	}
	tr.Start = time.Now().UTC()
	tr.Command = ready.Workload.Command
	var guests []Guest
	var works []*service
	defer func() {
		tr.HostS = time.Since(tr.Start).Seconds()
		err = errors.Join(err, r.leave(ctx, guests, works))
	}()
	for len(guests) < p.Guests {
		g, cause := r.another(ctx, first, ready, t, guests, nil)
		if g == nil {
			tr.Failure = fmt.Sprintf("guest %d of %d: %s", len(guests)+1, p.Guests, cause)
			return tr, nil
		}
		guests = append(guests, g)
	}
	of := &paging{Run: r, Config: p, ready: ready, guests: guests, trial: &tr}
	defer func() {
		tr.Seen = of.kept
		err = errors.Join(err, of.stop())
	}()
	if ends(ready.Workload) && p.FaultsS > 0 {
		if tr.Failure = of.watch(); tr.Failure != "" {
			return tr, nil
		}
	}
	// What ends by itself must not have ended in the first guest when it begins in the last: all are begun together.
	var causes []string
	works, causes, err = r.beginAll(ctx, guests, ready, t)
	if of.works = works; err != nil || len(causes) > 0 {
		if len(causes) > 0 {
			tr.Failure = causes[0]
		}
		return tr, err
	}
	of.began = time.Now()
	if tr.Failure = of.read(ctx); tr.Failure != "" || ctx.Err() != nil {
		return tr, nil
	}
	metric, _ := p.Metrics(ends(ready.Workload))
	tr.Figures = p.Figures(of.kept.PageTables, of.kept.PageFaults)
	value, known := tr.Figures[metric.Name]
	if !known && !rehearsal {
		tr.Failure = "nothing was read of what the study is about: " + metric.Name
	}
	tr.Value = value
	return tr, nil
}

// paging is a trial of page under way.
type paging struct {
	*Run
	pagingkind.Config
	ready    *workload.Ready
	guests   []Guest
	works    []*service
	trial    *notebook.Trial
	kept     pagingkind.Seen
	began    time.Time
	faulting Faulting
	used     time.Duration // CPU time of the guests when watching began
	watched  time.Time
}

// read does what the study wants, from when all guests are at work. It says why it cannot.
func (p *paging) read(ctx context.Context) (cause string) {
	function := ends(p.ready.Workload)
	if p.Tables {
		if cause := p.wait(ctx, p.InitialS, "before the initial state was read"); cause != "" {
			return cause
		}
		if cause := p.tables(ctx, pagingkind.Initial); cause != "" {
			return cause
		}
	}
	if function {
		return p.toTheEnd(ctx)
	}
	if p.SteadyS == 0 && p.FaultsS == 0 {
		return ""
	}
	settled := p.Tables && p.SteadyS > 0
	if !settled { // what a load touches first is most of what it faults on
		if cause := p.watch(); cause != "" {
			return cause
		}
	}
	lctx, enough := context.WithCancel(ctx)
	loads := p.load(lctx)
	defer func() {
		enough()
		if failed := loads(); cause == "" {
			cause = failed
		}
	}()
	if settled {
		if cause := p.wait(ctx, p.SteadyS, "before the steady state was read"); cause != "" {
			return cause
		}
		if cause := p.tables(ctx, pagingkind.Steady); cause != "" {
			return cause
		}
	}
	if p.FaultsS > 0 {
		if settled {
			if cause := p.watch(); cause != "" {
				return cause
			}
		}
		if cause := p.wait(ctx, p.FaultsS, "while faults were counted"); cause != "" {
			return cause
		}
		return p.seen(nil)
	}
	return ""
}

// wait lets the guests work for a time, and says if one ends in it.
func (p *paging) wait(ctx context.Context, seconds float64, what string) string {
	over, stop := context.WithCancel(ctx)
	defer stop()
	for _, w := range p.works {
		defer context.AfterFunc(w.alive, stop)()
	}
	select {
	case <-over.Done():
	case <-time.After(time.Duration(seconds * float64(time.Second))): // it is what is measured: so long at work
	}
	return p.ended(what)
}

// ended says that a work has ended.
func (p *paging) ended(what string) string {
	i := slices.IndexFunc(p.works, (*service).over)
	if i < 0 {
		return ""
	}
	how := p.works[i].how()
	if ends(p.ready.Workload) {
		if how = workload.Failure(p.works[i].res); how == "" && p.works[i].err == nil {
			how = "more data, or a shorter paging: initial:, was expected"
		} else if p.works[i].err != nil {
			how = p.works[i].err.Error()
		}
	}
	return fmt.Sprintf("the work in guest %d ended %s, %.3g s after all had begun: %s", i+1, what, time.Since(p.began).Seconds(), how)
}

// tables reads page tables.
func (p *paging) tables(ctx context.Context, state string) string {
	at := time.Since(p.began)
	t, err := p.Lab.Tables(ctx, p.guests)
	if err != nil {
		return "page tables: " + err.Error()
	}
	t.State, t.AtS, t.ScanS = state, at.Seconds(), (time.Since(p.began) - at).Seconds()
	if cause := p.ended("while its page tables were read"); cause != "" {
		return cause
	}
	p.kept.PageTables = append(p.kept.PageTables, t)
	return ""
}

// watch begins to count faults.
func (p *paging) watch() (cause string) {
	used, err := used(p.guests)
	if err == nil {
		p.faulting, err = p.Lab.Faults(p.guests)
	}
	if err != nil {
		return "page faults: " + err.Error()
	}
	p.used, p.watched = used, time.Now()
	return ""
}

// used is the guests' CPU time.
func used(guests []Guest) (sum time.Duration, err error) {
	for _, g := range guests {
		u, err := g.Used()
		if err != nil {
			return 0, err
		}
		sum += u
	}
	return sum, nil
}

// seen ends the counting. cpu is what the work used where it has ended; nil: what the guests used since counting began.
func (p *paging) seen(cpu *time.Duration) (cause string) {
	took := time.Since(p.watched)
	if cpu == nil {
		now, err := used(p.guests)
		if err != nil {
			return "page faults: " + err.Error()
		}
		now -= p.used
		cpu = &now
	}
	f, err := p.faulting.Stop()
	p.faulting = nil
	if err != nil {
		return "page faults: " + err.Error()
	}
	f.OfS, f.CPUS = took.Seconds(), cpu.Seconds()
	p.kept.PageFaults = &f
	if f.Lost > 0 {
		p.trial.Warnings = append(p.trial.Warnings, fmt.Sprintf("%d page faults were not counted: they came faster than they can be passed on", f.Lost))
	}
	return ""
}

// toTheEnd waits until every function has ended, and has their faults.
func (p *paging) toTheEnd(ctx context.Context) (cause string) {
	limit := time.NewTimer(p.Plan.timeout())
	defer limit.Stop()
	var cpu time.Duration
	for i, w := range p.works {
		select {
		case <-ctx.Done():
			return ""
		case <-limit.C:
			return fmt.Sprintf("the work in guest %d had not ended after %v", i+1, p.Plan.timeout())
		case <-w.alive.Done():
		}
		if w.err != nil {
			return fmt.Sprintf("guest %d: %v", i+1, w.err)
		}
		if cause := workload.Failure(w.res); cause != "" {
			return fmt.Sprintf("guest %d: %s", i+1, cause)
		}
		cpu += time.Duration((w.res.UserS + w.res.SystemS) * float64(time.Second))
	}
	if p.faulting == nil {
		return ""
	}
	return p.seen(&cpu)
}

// load asks the guests' services, again and again, until ctx ends; then the function that it gives says which load failed before.
func (p *paging) load(ctx context.Context) (failed func() string) {
	ended := make(chan string, len(p.works))
	n := 0
	for i, w := range p.works {
		if w.place == nil {
			continue
		}
		n++
		go func() { ended <- w.again(ctx, i, p.Plan.timeout()) }()
	}
	return func() (cause string) {
		for range n {
			if c := <-ended; cause == "" {
				cause = c
			}
		}
		return cause
	}
}

// again runs the load of a service until ctx ends; it says how it failed before.
func (s *service) again(ctx context.Context, i int, timeout time.Duration) string {
	for ctx.Err() == nil {
		asking, enough := s.during(ctx)
		res, _, err := s.place.Ruler().Run(asking, s.ask(s.ready.Workload.Load.Command, timeout))
		enough()
		switch {
		case ctx.Err() != nil:
			return ""
		case s.over():
			return fmt.Sprintf("the service of guest %d ended under its load: %s", i+1, s.how())
		case err != nil:
			return fmt.Sprintf("the load of guest %d: %v", i+1, err)
		case workload.Failure(res) != "":
			return fmt.Sprintf("the load of guest %d: %s", i+1, workload.Failure(res))
		}
	}
	return ""
}

// stop ends what was not ended in order.
func (p *paging) stop() error {
	if p.faulting == nil {
		return nil
	}
	_, err := p.faulting.Stop()
	return err
}

// beginAll begins the work of all guests. causes say why one did not begin.
func (r *Run) beginAll(ctx context.Context, guests []Guest, ready *workload.Ready, t notebook.Treatment) (works []*service, causes []string, err error) {
	if ready.Workload.Service != nil {
		for i, g := range guests {
			s, cause, err := r.serve(ctx, g, t, anID(), ready)
			if s != nil {
				works = append(works, s)
			}
			if cause != "" || err != nil {
				return works, []string{fmt.Sprintf("guest %d: %s", i+1, cause)}, err
			}
		}
		return works, nil, nil
	}
	var started []ruler.Begun
	for _, g := range guests {
		s, b := r.start(ctx, g, ready, t)
		works, started = append(works, s), append(started, b)
	}
	for i, b := range started {
		if cause := works[i].hasBegun(b); cause != "" {
			causes = append(causes, fmt.Sprintf("guest %d: %s", i+1, cause))
		}
	}
	return works, causes, nil
}
