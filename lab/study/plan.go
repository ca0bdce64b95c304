package study

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"tare/lab/engine"
	"tare/lab/image"
	"tare/lab/proc"
	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
	arrivalskind "tare/notebook/kinds/arrivals"
	capacitykind "tare/notebook/kinds/capacity"
	fitkind "tare/notebook/kinds/fit"
	memorykind "tare/notebook/kinds/memory"
	pagingkind "tare/notebook/kinds/paging"
	startingkind "tare/notebook/kinds/starting"
	"tare/stats"
)

// Lab is what a study needs of the machine.
type Lab interface {
	// Host is the machine as found.
	Host() notebook.Host
	// UseKernels makes files with guests' kernels known by their names, which treatments have.
	UseKernels(files map[string]string)
	// Accelerator says which accelerator the guests of an engine get that has several, with the kernel of that name: want is
	// "auto" or one of them, and emulate allows software emulation. An error says why there is none.
	Accelerator(ctx context.Context, k engine.Kind, kernel, want string, emulate bool) (string, error)
	// Supports says why the host cannot do the treatment; nil: it can.
	Supports(ctx context.Context, t notebook.Treatment) error
	// Prepare makes what all guests of the treatment need, so that none of them pays for it.
	Prepare(ctx context.Context, t notebook.Treatment, root *image.Image) error
	// Provision makes a guest for the treatment, from what its workload was made ready as.
	Provision(ctx context.Context, t notebook.Treatment, id string, w *workload.Ready) (Guest, error)
	// Beside makes a guest beside the treatment's own, for another work: on the CPUs of that seat, where guests are bound to any. The treatment's own has seat 0.
	Beside(ctx context.Context, t notebook.Treatment, id string, w *workload.Ready, seat int) (Guest, error)
	// Seats is how many guests of the treatment's size have CPUs of their own at once; 1 at least.
	Seats(t notebook.Treatment) (int, error)
	// Start is Provision, and notes the moments of the guest's start.
	Start(ctx context.Context, t notebook.Treatment, id string, w *workload.Ready) (Guest, *engine.Moments, error)
	// Cache has what a start of the treatment's guest reads in the host's page cache, or not there, as one of notebook.Caches says.
	Cache(ctx context.Context, t notebook.Treatment, w *workload.Ready, cache string, saved ...string) (notebook.Cached, error)
	// Load makes the place from which a load asks the service in the treatment's guest; which CPUs it has is in the
	// record.
	Load(ctx context.Context, t notebook.Treatment, id string, w *workload.Ready) (Guest, notebook.Load, error)
	// Weigh reads what guests take of the host's memory, all together. Those of which the host sees the ruler are weighed without it. Those that are
	// virtual machines are asked what their memory is to them.
	Weigh(ctx context.Context, guests []Guest, asked Inside) (memorykind.Weight, error)
	// Tables reads the page tables of guests' work, all together.
	Tables(ctx context.Context, guests []Guest) (notebook.PageTables, error)
	// Faults begins to see the page faults of guests' work, from its beginning on. An error says why the host does not; of no guests it says whether.
	Faults(guests []Guest) (Faulting, error)
	// Create makes a guest of the treatment without starting it.
	Create(ctx context.Context, t notebook.Treatment, id string, w *workload.Ready) (Ahead, error)
	// Ask asks a service in a guest of this host, at an address in its network namespace, again and again until the right answer has begun to come, or
	// ctx ends.
	Ask(ctx context.Context, g Guest, at netip.AddrPort, q workload.Question) error
	// Profile begins to sample what the host's CPUs do while containers of the treatment are started.
	Profile(t notebook.Treatment) (Profiling, error)
	// Merge has the kernel merge pages that are alike, as one of memorykind.KSMSettings says. An error says why the host does not.
	Merge(ctx context.Context, setting string) (Merging, error)
}

// Inside is what guests that are virtual machines are asked of their memory when they are weighed.
type Inside uint8

// What they are asked.
const (
	Outside        Inside = iota // nothing
	Frames                       // what each frame is to them
	FramesAndFiles               // of the last of them also which files are in its page cache, which takes memory there
)

// Merging is the kernel at work on pages that are alike.
type Merging interface {
	// Settle waits until what is merged changes no more, and says how it went.
	Settle(ctx context.Context) (*notebook.KSM, error)
	// End takes all merged pages apart again and puts the host's settings back.
	End(ctx context.Context) error
}

// Guest is what a study needs of a guest; package engine says more about each.
type Guest interface {
	Ruler() Ruler
	Limits() (notebook.Limits, error)
	Facts() engine.Facts
	Address() engine.Address
	// Trace attaches the study's tracers to the guest, until it is stopped. clock is the guest whose ruler runs the
	// trial, where that is not this one's own: the trial's load is there. An error means that nothing is attached, and the trial
	// is run without.
	Trace(clock Guest) (Tracing, error)
	// Used is the CPU time that its processes have used so far, those of a guest on another machine not counted.
	Used() (time.Duration, error)
	// Throttled is for how long a CPU quota has held it back so far; 0 where none limits it.
	Throttled() (time.Duration, error)
	// Demanded is what its processes have demanded so far.
	Demanded() (proc.Demand, error)
	// Resident is the sum of its processes' resident sets (RSS), in bytes.
	Resident() (int64, error)
	Diagnose() string
	engine.Saver // an *engine.UnsupportedError where it is none
	Destroy(ctx context.Context) error
}

// Tracing is a trace of one trial that has begun. Stop ends it, once, and says what was seen; its error means that something is still
// attached.
type Tracing interface {
	ruler.Bounds
	Stop() (*notebook.Trace, error)
}

// Ruler measures in a guest: a *ruler.Client, or in tests something whose figures are known.
type Ruler interface {
	Run(ctx context.Context, o ruler.Order) (r ruler.Result, host time.Duration, err error)
	Cost(ctx context.Context, n int, program ...string) ([]time.Duration, error)
	Ping(ctx context.Context) (time.Duration, error)
	// Clock says how far its guest's calendar clock is ahead of this host's, and how wrong that may be.
	Clock(ctx context.Context) (ahead, bound time.Duration, err error)
	RoundTrip() time.Duration // the smallest that a Ping has taken so far
}

// Choices are what the caller of a study decides beside its file.
type Choices struct {
	Seed   uint64
	Rounds int // so many, no fewer and no more; 0: as the file says
	Until  Until
	Only   Only
	Accel  string // "auto", notebook.KVM, notebook.KVMEmulated, notebook.TCG
	Kernel string // a file with virtual machines' kernel in place of what the study names
	Input  string // a file in place of the workloads' own input
	Tare   string // the program's version

	LoadFrom string // the machine that loads run on, in place of what the study names

	NoHostCode bool // a study of which something would run as root on this host is refused

	Begun      *notebook.Study // what the results folder holds already; nil: nothing
	SeedChosen bool            // the seed, and not any

	Explain []string // the tracers of as many trials again; none: no trial is traced
}

// From is the machine that the study's loads run on, ssh://…; "": this host.
func (c Choices) From(s *Spec) string { return cmp.Or(c.LoadFrom, s.LoadFrom) }

// Plan is a study that is ready to be run: what is done, with what, and what is left out.
type Plan struct {
	Study notebook.Study
	ready map[string]*workload.Ready // by Label
	open  map[string]bool            // by Label: its length may be chosen
	work  map[string]*workload.Ready // what neighbours do, by one of notebook.Busy

	engines engine.Registry
}

// timeout is how long a trial may take.
func (p *Plan) timeout() time.Duration {
	return time.Duration(p.Study.Design.TimeoutS * float64(time.Second))
}

// treatments is the cross product of a study, bare metal first and its A/A twin after it.
func (s *Spec) treatments(u use, h notebook.Host, accel func(kernel string) string, can func(notebook.Treatment) bool) []notebook.Treatment {
	var out []notebook.Treatment
	hostCores := 0
	add := func(t notebook.Treatment) {
		t.Workload, t.Params, t.HostCores, t.Rounds = u.Workload.Name, u.params, hostCores, u.Use.Rounds
		t.ID = identify(t)
		for _, o := range out { // a study file may say the same twice
			if o.ID == t.ID {
				return
			}
		}
		out = append(out, t)
	}
	sizes := s.HostCores
	if len(sizes) == 0 {
		sizes = []string{"all"}
	}
	for _, size := range sizes {
		hostCores, _ = parseHostCores(size) // validated when the file was read
		for _, text := range s.instances(u) {
			inst, err := notebook.OfHost(h), error(nil)
			if text != notebook.HostSize {
				inst, err = notebook.ParseInstance(text)
			}
			if err != nil {
				continue // so was this
			}
			for _, p := range s.Platforms {
				s.at(u, p, inst, accel, can, add)
			}
		}
	}
	return out
}

// at adds the treatments of one platform at one instance type.
func (s *Spec) at(u use, p Place, inst notebook.Instance, accel func(kernel string) string, can func(notebook.Treatment) bool, add func(notebook.Treatment)) {
	if p.Platform == notebook.BM {
		for _, aa := range []bool{false, true} {
			add(notebook.Treatment{Platform: notebook.BM, Instance: inst, AA: aa, OthersOffline: p.OtherCPUs == offline, MemoryWithheld: p.OtherMemory == withheld})
		}
		return
	}
	es, vs, ns, is := p.Engines, p.Provisioning, p.Networks, p.isolation()
	if len(es) == 0 {
		es = s.engines.Names(p.Platform)[:1]
	}
	switch {
	case s.kind(p.Platform, es[0]).Provisionings == nil:
		vs = []string{""}
	case len(p.Isolation) > 0:
		vs = []string{notebook.Pinned}
	case len(vs) == 0:
		vs = []string{notebook.Vanilla, notebook.Pinned}
	}
	if len(ns) == 0 {
		ns = []string{""}
	}
	one := func(choice, v, n, kernel string) {
		with := func(engine string) notebook.Treatment {
			t := notebook.Treatment{Platform: p.Platform, Engine: engine, Provisioning: v, Instance: inst, Network: n, Kernel: kernel}
			if len(s.kind(p.Platform, engine).Accelerators) > 0 {
				t.Accelerator = accel(kernel)
			}
			return t
		}
		// Of several engines the first that the host can do; where it can do none, the first.
		of := strings.Split(choice, "|")
		i := slices.IndexFunc(of, func(engine string) bool { return can(with(engine)) })
		t := with(of[max(i, 0)])
		for _, t.Isolation = range is {
			if t.Network = n; n == "" && u.Service != nil && s.Arrivals == nil {
				t.Network = s.kind(t.Platform, t.Engine).Connected(t.Isolation, true)
			}
			for _, t.Machine = range p.machines() {
				add(t)
			}
		}
	}
	for _, choice := range es {
		for _, v := range vs {
			if v == notebook.Whole && inst.Name != notebook.HostSize {
				continue // what has no limits has one size
			}
			for _, n := range ns {
				for _, kernel := range s.kernelsOf(p) {
					one(choice, v, n, kernel)
				}
			}
		}
	}
}

// kind is an engine that the study names; it was found when the file was read.
func (s *Spec) kind(platform, choice string) engine.Kind {
	name, _, _ := strings.Cut(choice, "|")
	k, err := s.engines.Find(platform, name)
	if err != nil {
		panic(err)
	}
	return k
}

// spareMemory is what is left of the host's memory for itself when a guest is sized, in bytes.
const spareMemory = 512 << 20

// fits says why the host is too small for a treatment; nil: it is not.
func fits(h notebook.Host, t notebook.Treatment) error {
	cores, n := t.Instance.Cores, len(h.CPUs)
	switch {
	case t.HostCores > n:
		return fmt.Errorf("it is about a host with %d CPUs and this one has %d", t.HostCores, n)
	case cores > float64(n):
		return fmt.Errorf("it needs %g cores and the host has %d", cores, n)
	case t.HostCores > 0 && cores > float64(t.HostCores):
		return fmt.Errorf("it needs %g cores and the host is made one of %d", cores, t.HostCores)
	case t.Instance.Memory > h.Memory-spareMemory:
		return fmt.Errorf("it needs %g GB of memory and the host has %.1f GB, of which half a GB stays the host's own",
			float64(t.Instance.Memory)/(1<<30), float64(h.Memory)/(1<<30))
	}
	return nil
}

// fitting is the study with what of it the host is large enough for.
func (s *Spec) fitting(us []use, h notebook.Host, only Only) notebook.Study {
	study := notebook.Study{Name: s.Name}
	for _, u := range us {
		for _, t := range s.treatments(u, h, func(string) string { return "" }, func(notebook.Treatment) bool { return true }) {
			if !only.keeps(t) {
				continue
			}
			if err := fits(h, t); err != nil {
				study.LeftOut = append(study.LeftOut, notebook.LeftOut{Treatment: t, Reason: err.Error()})
			} else {
				study.Treatments = append(study.Treatments, t)
			}
		}
	}
	return study
}

// Check says what is wrong in a study and in what was chosen for it, as far as that is known without a host.
func (s *Spec) Check(shipped fs.FS, ch Choices) error {
	_, err := s.check(shipped, ch)
	return err
}

func (s *Spec) check(shipped fs.FS, ch Choices) ([]use, error) {
	us, err := s.uses(shipped)
	if err != nil {
		return nil, err
	}
	if err := ch.Only.known(s, us); err != nil {
		return nil, err
	}
	if err := s.drawable(us); err != nil {
		return nil, err
	}
	if err := s.readKernels(ch.Kernel); err != nil {
		return nil, err
	}
	if err := s.withoutHostCode(us, ch); err != nil {
		return nil, err
	}
	if err := checkFrom(ch.From(s)); err != nil {
		return nil, err
	}
	if ch.Until.Claims && len(s.Claims) == 0 {
		return nil, fmt.Errorf("study %s: --until claims: the study names no claims; published ones were expected in its file, as in claims: [pinning]", s.Name)
	}
	takesInput, serves := false, false
	for _, u := range us {
		if s.Capacity != nil && (u.Workload.Load == nil || len(u.Workload.Load.Open) == 0) {
			return nil, fmt.Errorf("study %s: capacity: workload %s has no load at a rate (load: open) by which a capacity can be sought", s.Name, u.Workload.Name)
		}
		if s.Arrivals != nil && (u.Workload.System || u.Workload.Stays || u.Workload.Service != nil && u.Workload.Load.First == nil) {
			return nil, fmt.Errorf("study %s: arrivals: workload %s gives no first answer: a command that ends, or a service with load: first:, was expected", s.Name, u.Workload.Name)
		}
		if u.Workload.System && s.Memory == nil && s.Starting == nil {
			return nil, fmt.Errorf("study %s: workload %s is a whole system, of which no time is taken: memory: {guests: [1, 2]}, by which guests are weighed, or starting: {cache: [warm]}, by which their start is timed, was expected in the study", s.Name, u.Workload.Name)
		}
		if fit := ch.Until.Fit; fit != (fitkind.Config{}) {
			m := u.Workload.Primary()
			for _, o := range u.Workload.Secondary() {
				if o.Name == fit.Metric {
					m = o
				}
			}
			if !m.Directed() {
				return nil, fmt.Errorf("study %s: --until '%s': %s of workload %s has no direction; name a time, or another metric where lower is better", s.Name, fit.Objective(), m.Name, u.Workload.Name)
			}
			if m.MoreIsBetter() {
				return nil, fmt.Errorf("study %s: --until '%s': of %s of workload %s more is better, and how many guests fit is sought by what must stay low: a time, or another metric of which less is better, was expected", s.Name, fit.Objective(), m.Name, u.Workload.Name)
			}
		}
		if u.Workload.Stays && s.Memory == nil && s.Paging == nil {
			return nil, fmt.Errorf("study %s: workload %s never ends, so it has no time: memory: {guests: [1, 2]}, by which guests are weighed, was expected in the study", s.Name, u.Workload.Name)
		}
		takesInput, serves = takesInput || u.Workload.Input != nil, serves || u.Workload.Service != nil
		if ref := u.Workload.Image.Reference; ref != "" {
			if err := image.Check(ref); err != nil {
				return nil, err
			}
		}
	}
	if fit := ch.Until.Fit != (fitkind.Config{}); fit && (s.Memory != nil || s.Paging != nil || s.Capacity != nil || s.Arrivals != nil || len(ch.Explain) > 0) {
		return nil, fmt.Errorf("study %s: --until '%s': it is sought how many guests fit whose work is timed: a study without memory:, paging:, capacity: and arrivals:, and without --explain, was expected", s.Name, ch.Until.Fit.Objective())
	}
	if s.Arrivals != nil && len(ch.Explain)+len(ch.LoadFrom) > 0 {
		return nil, fmt.Errorf("study %s: --explain, --load-from: containers are started under load from this host, and nothing that runs in them is timed: leave them out", s.Name)
	}
	if s.Paging != nil && len(ch.Explain) > 0 {
		return nil, fmt.Errorf("study %s: --explain: page tables and faults are no time, and no tracer says where it went: leave it out", s.Name)
	}
	if s.Starting != nil && (len(ch.Explain) > 0 || ch.LoadFrom != "") {
		return nil, fmt.Errorf("study %s: --explain, --load-from: starts are timed from this host, and no tracer sees them: leave it out", s.Name)
	}
	if s.Paging != nil && ch.LoadFrom != "" {
		return nil, fmt.Errorf("study %s: --load-from: four services at once are asked from this host: leave it out", s.Name)
	}
	if s.Memory != nil && len(ch.Explain) > 0 {
		return nil, fmt.Errorf("study %s: --explain: what is weighed is no time, and no tracer says where it went: leave it out", s.Name)
	}
	if s.Capacity != nil && len(ch.Explain) > 0 {
		return nil, fmt.Errorf("study %s: --explain: a trial that seeks a capacity is many loads, and cannot be traced: leave it out", s.Name)
	}
	if from := ch.From(s); from != "" && !serves {
		return nil, fmt.Errorf("load from %s: no workload of the study %s has a service that a load asks: leave it out", from, s.Name)
	}
	if ch.Input == "" {
		return us, nil
	}
	if !takesInput {
		return nil, fmt.Errorf("--input %s: no workload of the study %s takes an input: leave it out", ch.Input, s.Name)
	}
	return us, workload.CheckInput(ch.Input)
}

// recordSyncs records of a treatment's workload whether its results rest on synced writes, where that is known.
func (p *Plan) recordSyncs(w *workload.Workload, t notebook.Treatment) {
	synced, known := w.Syncs.With(t.Params)
	if !known {
		return
	}
	if p.Study.Syncs == nil {
		p.Study.Syncs = map[string]bool{}
	}
	p.Study.Syncs[notebook.Label(t.Workload, t.Params)] = synced
}

// Plan decides what is run, and makes the workloads ready: roots are built, programs compiled, inputs prepared.
func (s *Spec) Plan(ctx context.Context, lab Lab, shipped fs.FS, ch Choices, o workload.Options) (*Plan, error) {
	design, err := s.Design.parse()
	if err != nil {
		return nil, err
	}
	if ch.Rounds > 0 {
		design.Floor, design.Cap, design.Precision = ch.Rounds, ch.Rounds, 0
		design.Emulated = min(design.Emulated, ch.Rounds)
	}
	fit := ch.Until.Fit != fitkind.Config{}
	if fit {
		// Each trial is a whole search. Bare metal has no guests, and searches are compared with each other.
		design.Floor, design.Cap, design.Precision, design.Trials, design.Warmups = fitRounds, fitRounds, 0, 1, 0
		design.Emulated = 1
	} else if ch.Until != (Until{}) {
		design.Cap, design.Precision, design.Decide, design.Claims = max(design.Cap, UntilRounds), ch.Until.Precision, ch.Until.Margin, ch.Until.Claims
	}
	if fit {
		alone := *s // its neighbours are what is sought
		alone.Neighbours, alone.Workloads, alone.Figures = nil, slices.Clone(s.Workloads), nil
		for i := range alone.Workloads {
			alone.Workloads[i].Neighbours = nil
		}
		s = &alone
	}
	us, err := s.check(shipped, ch)
	if err != nil {
		return nil, err
	}
	host := lab.Host()
	fitting := s.fitting(us, host, ch.Only)
	if err := worthwhile(fitting, ch.Only); err != nil {
		return nil, err // before a VM is booted to find its accelerator
	}
	lab.UseKernels(s.kernels.files)
	accels, noAccel := map[string]string{}, map[string]error{} // by kernel
	for _, t := range fitting.Treatments {
		k := s.kind(t.Platform, t.Engine)
		if _, asked := accels[t.Kernel]; !asked && len(k.Accelerators) > 0 {
			accels[t.Kernel], noAccel[t.Kernel] = lab.Accelerator(ctx, k, t.Kernel, ch.Accel, s.AllowEmulation)
			if err := ctx.Err(); err != nil {
				return nil, err // an interrupt, and nothing that the host lacks
			}
		}
	}
	capacity, err := s.Capacity.parse()
	if err != nil {
		return nil, err
	}
	weighing, err := s.Memory.parse()
	if err != nil {
		return nil, err
	}
	paging, err := s.Paging.parse()
	if err != nil {
		return nil, err
	}
	arrivals, err := s.Arrivals.parse()
	if err != nil {
		return nil, err
	}
	starting, err := s.Starting.parse()
	if err != nil {
		return nil, err
	}
	blind := error(nil)
	if paging != nil && paging.FaultsS > 0 {
		if f, err := lab.Faults(nil); err != nil {
			blind = fmt.Errorf("its page faults cannot be seen here: %w", err)
		} else if _, err := f.Stop(); err != nil {
			return nil, err
		}
	}
	p := &Plan{ready: map[string]*workload.Ready{}, open: map[string]bool{}, engines: s.engines}
	p.Study = notebook.Study{
		Version: notebook.Version, Tare: ch.Tare, Name: s.Name, Title: s.Title, Source: s.Source, Seed: ch.Seed,
		Created: time.Now().UTC(), Design: design, Metrics: map[string]notebook.Metric{}, Images: map[string]notebook.Image{},
		Figures: s.Figures, Claims: s.Claims, Explain: ch.Explain, LoadFrom: ch.From(s), Lengths: s.Lengths,
	}
	switch {
	case fit:
		p.Study.Kind, p.Study.Config = fitkind.Name, &ch.Until.Fit
	case capacity != nil:
		p.Study.Kind, p.Study.Config = capacitykind.Name, capacity
	case weighing != nil:
		p.Study.Kind, p.Study.Config = memorykind.Name, weighing
	case paging != nil:
		p.Study.Kind, p.Study.Config = pagingkind.Name, paging
	case arrivals != nil:
		p.Study.Kind, p.Study.Config = arrivalskind.Name, arrivals
	case starting != nil:
		p.Study.Kind, p.Study.Config = startingkind.Name, starting
	}
	for _, u := range us {
		w := u.Workload
		can := func(t notebook.Treatment) bool { return fits(host, t) == nil && lab.Supports(ctx, t) == nil }
		for _, t := range s.treatments(u, host, func(kernel string) string { return accels[kernel] }, can) {
			if !ch.Only.keeps(t) || fit && t.Platform == notebook.BM {
				continue
			}
			if ch.Rounds > 0 || ch.Until != (Until{}) {
				t.Rounds = 0
			}
			if t.HostCores > 0 && t.HostCores == len(host.CPUs) {
				t.HostCores = 0 // that is all of them, which the study may ask for as well
				t.ID = identify(t)
			}
			if slices.ContainsFunc(p.Study.Treatments, func(o notebook.Treatment) bool { return o.ID == t.ID }) {
				continue
			}
			reason := ""
			switch small := fits(host, t); {
			case small != nil:
				reason = small.Error()
			case neighboursFit(host, t) != nil:
				reason = neighboursFit(host, t).Error()
			case w.Service != nil && t.Network == notebook.NetNone:
				reason = "its service has to be asked, and without a network nobody can"
				if k := s.kind(t.Platform, t.Engine); len(k.Provisionings) == 0 {
					reason = "its service has to be asked, and from the layer network up to the one below bridge a guest has the loopback alone"
				}
			case w.System && s.kind(t.Platform, t.Engine).Boots() != nil:
				reason = s.kind(t.Platform, t.Engine).Boots().Error()
			case noAccel[t.Kernel] != nil && len(s.kind(t.Platform, t.Engine).Accelerators) > 0:
				reason = noAccel[t.Kernel].Error()
			case paging != nil && paging.Guests > 1 && w.Service != nil && (t.Platform == notebook.BM || t.Network == notebook.NetHost || s.kind(t.Platform, t.Engine).Publishes):
				reason = fmt.Sprintf("%d services at once need an address each, and here all are reached at the host's", paging.Guests)
			case arrivals != nil && !s.kind(t.Platform, t.Engine).Ahead:
				reason = "its containers are made and started in one: none can be there before it is asked to start"
			case blind != nil:
				reason = blind.Error()
			case t.Params[notebook.ParamAddresses] == notebook.AddressesFixed && s.kind(t.Platform, t.Engine).RandomAddresses != "":
				reason = "its addresses are always random: " + s.kind(t.Platform, t.Engine).RandomAddresses
			default:
				if err := lab.Supports(ctx, t); err != nil {
					reason = err.Error()
				}
			}
			if err := ctx.Err(); err != nil {
				return nil, err // an interrupt, and nothing that the host lacks
			}
			if reason != "" {
				p.Study.LeftOut = append(p.Study.LeftOut, notebook.LeftOut{Treatment: t, Reason: reason})
				continue
			}
			if p.Study.Treatments = append(p.Study.Treatments, t); len(p.Study.Treatments) > notebook.MaxTreatments {
				return nil, fmt.Errorf("study %s has more than %d configurations, which is the most that a study may have; split it into several", s.Name, notebook.MaxTreatments)
			}
			if t.Kernel != "" {
				if p.Study.Kernels == nil {
					p.Study.Kernels = map[string]notebook.Kernel{}
				}
				p.Study.Kernels[t.Kernel] = s.kernels.read[s.kernels.files[t.Kernel]]
			}
			p.Study.Metrics[w.Name] = w.Primary()
			also := w.Secondary()
			if capacity != nil {
				p.Study.Metrics[w.Name], also = capacity.Figure(), []notebook.Metric{capacitykind.PerSecond}
			}
			if weighing != nil {
				p.Study.Metrics[w.Name], also = memorykind.PSS, s.weighs(weighing)
			}
			if paging != nil {
				p.Study.Metrics[w.Name], also = paging.Metrics(ends(w))
			}
			if fit {
				p.Study.Metrics[w.Name], also = ch.Until.Fit.Figure(), []notebook.Metric{fitkind.Guests}
			}
			if len(s.neighbours(u.Use)) > 0 {
				also = slices.Concat(also, []notebook.Metric{notebook.OwnShare, notebook.Fairness})
			}
			if arrivals != nil {
				p.Study.Metrics[w.Name], also = arrivalskind.StartMean, arrivals.Also()
			}
			if starting != nil {
				p.Study.Metrics[w.Name], also = starting.Metrics()
			}
			p.recordSyncs(w, t)
			if w.Service != nil {
				if p.Study.Ports == nil {
					p.Study.Ports = map[string]int{}
				}
				p.Study.Ports[w.Name] = w.Service.Port
			}
			if len(also) > 0 {
				if p.Study.Also == nil {
					p.Study.Also = map[string][]notebook.Metric{}
				}
				p.Study.Also[w.Name] = also
			}
		}
	}
	if err := errors.Join(worthwhile(p.Study, ch.Only), ch.Until.decidable(p.Study)); err != nil {
		return nil, err
	}
	if ch.Begun != nil {
		if err := p.goesOn(*ch.Begun, ch.SeedChosen); err != nil {
			return nil, err
		}
	}
	var used []use
	var all []*workload.Workload
	for _, u := range us {
		if _, measured := p.Study.Metrics[u.Workload.Name]; measured {
			used = append(used, u)
			all = append(all, u.Workload)
		}
	}
	o.Input = ch.Input
	if err := workload.Gather(ctx, all, o); err != nil {
		return nil, err
	}
	for _, u := range used {
		w, label := u.Workload, u.label()
		if p.ready[label] != nil {
			continue
		}
		o.Input = ch.Input
		if w.Input == nil && len(us) > 1 {
			o.Input = "" // it is for the other workloads
		}
		r, err := workload.Make(ctx, w, u.params, o)
		if err != nil {
			return nil, err
		}
		p.ready[label], p.open[label] = r, u.open
		p.Study.Images[label] = notebook.Image{Reference: r.Image.Reference, Digest: r.Image.Digest, Input: r.Work.Digest}
	}
	if err := p.busy(ctx, shipped, o); err != nil {
		return nil, err
	}
	if err := p.prepare(ctx, lab); err != nil {
		return nil, err
	}
	if err := worthwhile(p.Study, ch.Only); err != nil {
		return nil, err
	}
	work := map[string]any{} // what a workload does is not in its name
	for label, r := range p.ready {
		w := r.Workload
		work[label] = w.Identity()
	}
	parts := []any{work, s.Name, s.Workloads, s.Platforms, s.Instances, s.HostCores, s.AllowEmulation, design, ch.Only, ch.Accel, ch.Rounds, ch.Until, p.Study.Images}
	if slices.ContainsFunc(p.Study.Treatments, func(t notebook.Treatment) bool { return t.Platform == notebook.BM || t.Engine == notebook.LayersEngine }) {
		parts = append(parts, heldByASet)
	}
	if len(ch.Explain) > 0 {
		parts = append(parts, ch.Explain)
	}
	if capacity != nil {
		parts = append(parts, capacity)
	}
	if weighing != nil {
		parts = append(parts, weighing)
	}
	if paging != nil {
		parts = append(parts, paging)
	}
	if len(s.Neighbours) > 0 {
		parts = append(parts, s.Neighbours)
	}
	if arrivals != nil {
		asked := map[string]*workload.Question{}
		for _, r := range p.ready {
			if r.Workload.Load != nil {
				asked[r.Workload.Name] = r.Workload.Load.First
			}
		}
		parts = append(parts, arrivals, asked)
	}
	if p.Study.LoadFrom != "" {
		parts = append(parts, p.Study.LoadFrom)
	}
	if len(s.kernels.files) > 0 {
		parts = append(parts, slices.Sorted(maps.Keys(s.kernels.files)))
	}
	p.Study.Hash = hash(parts...)
	if p.Study.Design.Looks() > 0 { // not in the hash: a folder from before it was counted goes on without
		p.Study.Design.Seen = stats.LeastTrials
	}
	return p, nil
}

// readyOf is the treatment's work.
func (p *Plan) readyOf(t notebook.Treatment) *workload.Ready {
	return p.ready[notebook.Label(t.Workload, t.Params)]
}

// prepare makes ready what the treatments' guests need. A platform for which that fails is left out, with the reason:
// the others can be measured all the same.
func (p *Plan) prepare(ctx context.Context, lab Lab) error {
	answers := map[string]error{}
	var kept []notebook.Treatment
	for _, t := range p.Study.Treatments {
		roots := []*image.Image{p.readyOf(t).Image}
		for _, kind := range p.kinds(t) {
			roots = append(roots, p.workOf(t, kind).Image)
		}
		var err error
		for _, root := range roots {
			key := t.Platform + t.Engine + t.Accelerator + t.Kernel + root.Digest
			answer, asked := answers[key]
			if !asked {
				answer = lab.Prepare(ctx, t, root)
				answers[key] = answer
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			err = cmp.Or(err, answer)
		}
		if err != nil {
			p.Study.LeftOut = append(p.Study.LeftOut, notebook.LeftOut{Treatment: t, Reason: "it cannot be made ready: " + err.Error()})
			continue
		}
		kept = append(kept, t)
	}
	p.Study.Treatments = kept
	return nil
}

// worthwhile refuses a plan that is left with nothing of what was asked for: with no treatment, or with bare metal alone where
// something was to be compared with it. To measure that takes time and answers nothing.
func worthwhile(s notebook.Study, only Only) error {
	bare := func(t notebook.Treatment) bool { return t.Platform == notebook.BM }
	asked := slices.DeleteFunc(slices.Clone(s.LeftOut), func(l notebook.LeftOut) bool { return bare(l.Treatment) })
	switch measured := s.Treatments; {
	case len(measured) == 0 && len(asked) == 0:
		asked = s.LeftOut
	case slices.ContainsFunc(measured, func(t notebook.Treatment) bool { return !bare(t) }), len(asked) == 0:
		return nil
	}
	const most = 3
	var why []string
	for _, l := range asked {
		if !slices.Contains(why, l.Reason) {
			why = append(why, l.Reason)
		}
	}
	if n := len(why) - most; n > 0 {
		why = append(why[:most], fmt.Sprintf("and %d more reasons", n))
	}
	what := "nothing"
	switch {
	case len(only) > 0 && len(why) == 0:
		return fmt.Errorf("study %s: nothing in it has all of --only %s: name values that occur together", s.Name, only)
	case len(only) > 0:
		what += " that --only " + only.String() + " selects"
	case len(s.Treatments) > 0:
		what += " but bare metal"
	}
	return fmt.Errorf("study %s: %s can be measured here: %s; `sudo tare doctor` says what this host supports and how to get the rest", s.Name, what, strings.Join(why, "; "))
}

// Resume fits the plan to a folder that was begun earlier: the same seed, the same treatments. It is an error if the
// folder is of another study, or if the host can no longer do a part of it.
func (p *Plan) Resume(begun notebook.Study, seedChosen bool) error {
	if err := p.goesOn(begun, seedChosen); err != nil {
		return err
	}
	if begun.Hash != p.Study.Hash {
		return p.another(differs(begun, p.Study))
	}
	p.Study = begun
	return nil
}

// goesOn says why the study cannot go on in a folder, as far as that is known before its workloads are ready.
func (p *Plan) goesOn(begun notebook.Study, seedChosen bool) error {
	if begun.Name != p.Study.Name {
		return fmt.Errorf("the folder holds the study %s, not %s: name another folder with --out", begun.Name, p.Study.Name)
	}
	if what := redesigned(begun.Design, p.Study.Design); what != "" {
		return p.another(what)
	}
	if was := begun.Explain; !slices.Equal(was, p.Study.Explain) {
		what := "it was begun without --explain"
		if len(was) > 0 {
			what = "it was begun with --explain=" + strings.Join(was, ",")
		}
		return p.another(what)
	}
	if was := begun.LoadFrom; was != p.Study.LoadFrom {
		return p.another("its load ran " + cmp.Or(strings.Replace(was, "ssh:", "on ssh:", 1), "on this host"))
	}
	if seedChosen && begun.Seed != p.Study.Seed {
		return fmt.Errorf("the folder was begun with --seed %d, not %d: leave --seed out, or name another folder with --out", begun.Seed, p.Study.Seed)
	}
	for _, t := range begun.Treatments {
		if slices.ContainsFunc(p.Study.Treatments, func(now notebook.Treatment) bool { return now.ID == t.ID }) {
			continue
		}
		i := slices.IndexFunc(p.Study.LeftOut, func(l notebook.LeftOut) bool { return l.Treatment.ID == t.ID })
		if i < 0 {
			return p.another(fmt.Sprintf("it was begun with %q, which this command does not ask for", t.ID))
		}
		return fmt.Errorf("the folder was begun with %q, which cannot go on: %s; name another folder with --out", t.ID, p.Study.LeftOut[i].Reason)
	}
	return nil
}

func (p *Plan) another(what string) error {
	return fmt.Errorf("the folder holds another run of %s: %s; name another folder with --out", p.Study.Name, what)
}

// percent writes a share; 0 is none.
func percent(share float64) string {
	if share == 0 {
		return "none"
	}
	return fmt.Sprintf("%.4g%%", 100*share)
}

// redesigned says in what one design differs from another; "" where it does not.
func redesigned(was, is notebook.Design) string {
	is.Seen = was.Seen // nobody asks for it, and a folder goes on as it was begun
	rounds := func(d notebook.Design) string {
		if d.Floor == d.Cap {
			return fmt.Sprint(d.Cap)
		}
		return fmt.Sprintf("%d to %d", d.Floor, d.Cap)
	}
	for _, d := range []struct {
		what    string
		was, is any
	}{
		{"rounds", rounds(was), rounds(is)},
		{"rounds of emulated treatments", was.Emulated, is.Emulated},
		{"as precision", percent(was.Precision), percent(is.Precision)},
		{"as the margin to decide at", percent(was.Decide), percent(is.Decide)},
		{"trials in a guest", was.Trials, is.Trials},
		{"warm-ups in a guest", was.Warmups, is.Warmups},
		{"s as the timeout of a trial", was.TimeoutS, is.TimeoutS},
	} {
		if d.was != d.is {
			return fmt.Sprintf("it was begun with %v %s, and this command asks for %v", d.was, d.what, d.is)
		}
	}
	if was != is {
		return "it was begun with another design"
	}
	return ""
}

// heldByASet is in the hash of studies with guests that were once bound by affinity alone: rounds of both kinds are not one study's.
const heldByASet = "a CPU set holds bare metal and the rungs of the ladder"

// differs says in what one study of a name and design differs from another.
func differs(was, is notebook.Study) string {
	for label, image := range was.Images {
		if now, ok := is.Images[label]; ok && now != image {
			return "the image or the input of " + label + " had other bytes"
		}
	}
	before, now := strings.Split(was.Source, "\n"), strings.Split(is.Source, "\n")
	for i := range min(len(before), len(now)) {
		if before[i] != now[i] {
			return fmt.Sprintf("line %d of its study file was %q, and is %q", i+1, strings.TrimSpace(before[i]), strings.TrimSpace(now[i]))
		}
	}
	if len(before) != len(now) {
		return fmt.Sprintf("its study file had %d lines, and has %d", len(before), len(now))
	}
	for _, t := range is.Treatments {
		planned := func(o notebook.Treatment) bool { return o.ID == t.ID }
		if !slices.ContainsFunc(was.Treatments, planned) && !slices.ContainsFunc(was.LeftOut, func(l notebook.LeftOut) bool { return planned(l.Treatment) }) {
			return fmt.Sprintf("it was begun without %q, which this command asks for", t.ID)
		}
	}
	if was.Tare != is.Tare {
		return fmt.Sprintf("it was begun by tare %s, and this is tare %s", was.Tare, is.Tare)
	}
	return "--only, --accel, --vm-kernel, --rounds, or what a workload runs were others"
}

// Rehearse does each workload's work on bare metal, unrecorded: a command that is missing, or that fails everywhere, is known before the
// study begins. Only where the study has bare metal. It says whose work is too short for what the design asks for here.
func (p *Plan) Rehearse(ctx context.Context, lab Lab, say image.Progress) (short []Short, err error) {
	rehearsed := map[string]bool{}
	for _, t := range p.Study.Treatments {
		label := notebook.Label(t.Workload, t.Params)
		ready := p.ready[label]
		alone := maps.Clone(t.Params) // without neighbours it is the same work
		delete(alone, notebook.ParamNeighbours)
		once := notebook.Label(t.Workload, alone)
		if t.Platform != notebook.BM || ready == nil || rehearsed[once] {
			continue
		}
		rehearsed[once] = true
		say("rehearsing " + label + " on bare metal")
		values, cause, err := p.rehearse(ctx, lab, t, ready)
		if err != nil {
			return nil, fmt.Errorf("workload %s: rehearsing it: %w", t.Workload, err)
		}
		if cause != "" {
			hint := ""
			if strings.Contains(cause, "ead-only file system") {
				hint = " (on bare metal all but {scratch} and /tmp is read-only)"
			}
			return nil, fmt.Errorf("workload %s failed when it was tried once on bare metal, before the study: %s%s", t.Workload, cause, hint)
		}
		if s, ok := p.short(t, label, values); ok {
			short = append(short, s)
		}
	}
	return short, nil
}

// rehearse makes one trial of the treatment, and more where the work's length can be another.
func (p *Plan) rehearse(ctx context.Context, lab Lab, t notebook.Treatment, ready *workload.Ready) (values []float64, cause string, err error) {
	r := &Run{Plan: p, Lab: lab}
	id := fmt.Sprintf("rehearsal-%d", os.Getpid()) // a cgroup is the host's, whatever state folder its guest is in
	g, err := lab.Provision(ctx, t, id, ready)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, destroy(ctx, g)) }()
	service, cause, err := r.setUp(ctx, g, t, id, ready)
	if err == nil && ctx.Err() != nil { // what was cut short by us says nothing about the workload
		cause, err = "", errors.Join(ctx.Err(), service.takeDown(ctx))
	}
	if cause != "" || err != nil {
		return nil, cause, err
	}
	defer func() { err = errors.Join(err, service.takeDown(ctx)) }()
	began := time.Now()
	for i := 0; i == 0 || i < rehearsals && ready.Workload.Length != "" && time.Since(began) < rehearsing; i++ {
		tr, _, err := r.trial(ctx, g, service, ready, t, step{warmup: true})
		if err := cmp.Or(err, ctx.Err()); err != nil || tr.Failure != "" {
			return nil, tr.Failure, err
		}
		if i > 0 { // the first warms what the others find
			values = append(values, tr.Value)
		}
	}
	return values, "", nil
}
