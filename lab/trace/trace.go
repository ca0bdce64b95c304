//go:build linux

// Package trace observes a guest during a trial, from the host or from inside the guest. It reports what the scheduler, the memory system,
// the devices and the hypervisor did. It attaches to the guest's threads, by role, and follows the threads that they create. Its overhead
// is measured, and it has none while no trial is traced.
//
// Each tracer is one file, which adds a value of type tracer, and its entry in notebook.Tracers. There are two tiers. Tracers of the first
// tier read what the kernel counts anyway: before the trial, after it, and when a thread ends. They are the default. Tracers of the second
// tier load BPF programs into the kernel, which run at each event. They say more, and cost more. `make generate` compiles the programs of
// all tracers, which are in bpf, into one object.
//
// A trial begins when the ruler creates its process, and ends when the kernel tells the ruler that the process has ended.
package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"

	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/lab/symbols"
	"tare/notebook"
)

// Target is what a Trace observes.
type Target struct {
	Threads []engine.Thread // the guest's threads; what one of its rulers creates is work, and begins a trial
	Clock   []int           // threads of a ruler outside the guest (a load's): the trial is the life of its child, and the guest runs a service
	Word    bool            // the ruler of Clock cannot be seen: the trial is from Begin to End
	PID     int             // a process of the guest, for its cgroups and its network; 0: none
	Cores   float64         // cores that the guest has
	CPUs    []int           // CPUs that the guest may use; nil: all
	Each    bool            // look at each thread, and behind whom it waits for a core (see Watched); needs the tracer of the scheduler

	// Launchers says that rulers start work through launchers, as those of package ruler do. A ruler creates a launcher, and what the
	// launcher creates begins a trial. Otherwise what the ruler creates begins a trial.
	Launchers bool
}

// seed returns the role with which a thread of the given role begins. A ruler without launchers is treated as a launcher.
func (t Target) seed(role uint32) uint32 {
	if role >= roles && !t.Launchers {
		role += launchers
	}
	return role
}

// tracer is one way to observe a trial. notebook.Tracers has its metrics.
type tracer struct {
	name     string
	on       string // what its programs attach to, for people
	hostOnly bool   // inside a guest it has nothing to observe
	each     bool   // it observes only targets that say Each

	programs []string // loaded in addition to those that follow the guest's threads
	older    []string // loaded instead on a kernel that lacks their tracepoints
	lacks    string   // what the older programs do not observe

	open   func(tr *tracer) error                      // asks the host, when a kit is opened, what the other functions need; it may set them
	attach func(t *Trace) error                        // nil: each program attaches to the tracepoint that it names
	read   func(t *Trace, p *notebook.Trace) error     // reads what the programs have gathered
	count  func(f files, c *counters, t counted) error // reads the kernel's counters, before the trial and after it
	begin  func(t *Trace) (reading, error)             // begins what must be open during the trial
}

// reading is what a tracer without programs has open during a trial. end adds what it counted to the record; why says what it could not
// count.
type reading interface {
	io.Closer
	end(p *notebook.Trace) (why *notebook.Message, err error)
}

// tracers are all tracers by name.
var tracers = map[string]tracer{}

// add makes a tracer known.
func add(t tracer) bool {
	tracers[t.name] = t
	return true
}

// named returns the tracers with these names, in the order of the notebook.
func named(names []string) (all []*tracer) {
	for _, name := range notebook.TracerNames {
		if slices.Contains(names, name) {
			t := tracers[name]
			all = append(all, &t)
		}
	}
	return all
}

// Inside returns those of the named tracers that have something to observe inside a guest.
func Inside(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return tracers[name].hostOnly })
}

// watching are the programs that look at each thread and behind whom it waits.
var watching = []string{"watched", "found", "waking", "begins"}

// refaulting are those that tell a wait for a page which had been taken from the cache from other waits for disks.
var refaulting = []string{"uncached", "cached"}

// Keys in Kit.Missing for what OpenToWatch adds.
const (
	Watching   = "watching"
	Refaulting = "refaulting"
)

// following are the programs that follow the guest's threads. All other programs need them.
var following = []string{"forked", "executed", "exited", "seed", "gather"}

// onThreads is what they attach to, for people.
const onThreads = "the scheduler's tracepoints (Linux 5.18 or later with BTF)"

// Kit is a set of tracers that are ready to attach. It traces one trial at a time.
type Kit struct {
	tracers []*tracer
	missing map[string]string // by tracer: what this host does not support of it, and why

	coll    *ebpf.Collection    // nil: the host has no BPF, or no tracer needs it
	loaded  map[string][]string // by tracer: the programs that the kernel accepted
	memory  *ebpf.Memory        // the programs' variables
	at      map[string]uint64
	misses  uint64         // see missed, before the trial
	symbols *symbols.Table // read when first needed
	watch   bool           // the programs of watching are loaded
	refault bool           // and those of refaulting
	serve   bool           // and those of answering
}

// Open makes the named tracers ready. Missing says what this host does not support, and so does the record of each trial. Open fails if a
// name is unknown.
func Open(names []string) (*Kit, error) {
	requests := slices.Contains(names, notebook.TracerRequests)
	k := &Kit{watch: requests, serve: requests}
	if err := k.open(names); err != nil {
		return nil, err
	}
	if requests {
		k.settle()
	}
	return k, nil
}

// OpenToWatch does the same for targets that say Each. Kit.Missing[Watching] says why the host does not support it.
func OpenToWatch(names []string) (*Kit, error) {
	k := &Kit{watch: true, serve: true, refault: true}
	if err := k.open(names); err != nil {
		return nil, err
	}
	return k, nil
}

func (k *Kit) open(names []string) error {
	for _, n := range names {
		if !slices.Contains(notebook.TracerNames, n) {
			return fmt.Errorf("unknown tracer %q; must be one of %s", n, strings.Join(notebook.TracerNames, ", "))
		}
	}
	k.tracers, k.missing, k.loaded = named(names), map[string]string{}, map[string][]string{}
	for _, t := range k.tracers {
		if t.open != nil {
			if err := t.open(t); err != nil {
				k.missing[t.name] = err.Error()
			}
		}
	}
	if slices.ContainsFunc(k.tracers, func(t *tracer) bool { return t.programs != nil }) {
		k.load()
	}
	return nil
}

// Missing says, by tracer, what this host does not support of it, and why.
func (k *Kit) Missing() map[string]string { return maps.Clone(k.missing) }

// events reports whether a program runs at each switch of the guest's threads.
func (k *Kit) events() bool {
	for _, programs := range k.loaded {
		if slices.Contains(programs, "switched") {
			return true
		}
	}
	return false
}

// load loads the programs of those tracers whose programs the kernel accepts.
func (k *Kit) load() {
	if why := k.loadAll(); why != "" {
		k.Close()
		clear(k.loaded)
		k.watch, k.refault, k.serve = false, false, false
		for _, t := range k.tracers {
			if t.programs != nil {
				k.missing[t.name] = why
			}
		}
	}
}

// loadAll does so; why says why there is none.
func (k *Kit) loadAll() (why string) {
	if len(object) == 0 {
		return "no BPF programs are built for this kind of machine"
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil { // the object is part of this program
		panic(err)
	}
	for _, t := range k.tracers {
		if t.programs != nil && k.missing[t.name] == "" {
			k.loaded[t.name] = t.programs
		}
	}
	if k.coll, err = loadPrograms(spec, k.wanted()); err != nil {
		// Each tracer's programs are tried separately, to find out which ones the kernel refuses.
		if err := loads(spec, nil); err != nil {
			return refusal(onThreads, err)
		}
		for _, t := range k.tracers {
			k.loadOne(spec, t)
		}
		k.loadWatching(spec)
		if k.coll, err = loadPrograms(spec, k.wanted()); err != nil {
			return refusal(onThreads, err)
		}
	}
	if k.memory, err = k.coll.Maps[".bss"].Memory(); err != nil {
		return "the programs' variables cannot be mapped: " + err.Error()
	}
	k.at = map[string]uint64{}
	for name, v := range spec.Variables {
		k.at[name] = uint64(v.Offset)
	}
	if err := k.tables(); err != nil {
		return err.Error()
	}
	return ""
}

// wanted names the programs of those tracers that have some to load.
func (k *Kit) wanted() (all []string) {
	for _, t := range k.tracers {
		all = append(all, k.loaded[t.name]...)
	}
	if k.watch && k.events() {
		all = append(all, watching...)
		if k.serve {
			all = append(all, answering...)
		}
		if k.refault {
			all = append(all, refaulting...)
		}
	}
	return all
}

// loadWatching leaves out what the kernel refuses of the programs that watch.
func (k *Kit) loadWatching(spec *ebpf.CollectionSpec) {
	if !k.watch {
		return
	}
	err := loads(spec, k.wanted())
	if err == nil {
		return
	}
	unserved, uncached := refusal("the tracepoints of sockets (Linux 6.3 or later)", err), refusal("the page cache's tracepoints", err)
	wanted := k.refault
	for _, without := range []struct{ serve, refault bool }{{serve: true}, {refault: true}, {serve: true, refault: true}} {
		if without.refault && !wanted {
			continue
		}
		k.serve, k.refault = !without.serve, wanted && !without.refault
		if err = loads(spec, k.wanted()); err == nil {
			break
		}
	}
	if !k.serve {
		k.missing[Answering] = unserved
	}
	if wanted && !k.refault {
		k.missing[Refaulting] = uncached
	}
	if err != nil {
		k.watch, k.missing[Watching] = false, refusal(onThreads, err)
	}
}

// loadOne tries a tracer's programs, and the older ones if the kernel refuses them.
func (k *Kit) loadOne(spec *ebpf.CollectionSpec, t *tracer) {
	programs := k.loaded[t.name]
	if programs == nil {
		return
	}
	err := loads(spec, programs)
	if err != nil && t.older != nil {
		if older := loads(spec, t.older); older == nil {
			k.loaded[t.name], k.missing[t.name], err = t.older, t.lacks, nil
		}
	}
	if err != nil {
		delete(k.loaded, t.name)
		k.missing[t.name] = refusal(t.on, err)
	}
}

// loadPrograms loads the named programs and those of following.
func loadPrograms(spec *ebpf.CollectionSpec, names []string) (*ebpf.Collection, error) {
	spec = spec.Copy()
	maps.DeleteFunc(spec.Programs, func(name string, _ *ebpf.ProgramSpec) bool {
		return !slices.Contains(names, name) && !slices.Contains(following, name)
	})
	if m := spec.Maps["timeline"]; m != nil {
		m.MaxEntries = timelineBytes
	}
	maps.DeleteFunc(spec.Maps, func(name string, _ *ebpf.MapSpec) bool { // those of programs that are not loaded
		return slices.Contains([]string{"stints", "ahead", "ended", "timeline"}, name) && !slices.Contains(names, "watched") || name == "taken" && !slices.Contains(names, "cached")
	})
	return ebpf.NewCollection(spec)
}

// loads returns an error if the kernel refuses the named programs.
func loads(spec *ebpf.CollectionSpec, names []string) error {
	c, err := loadPrograms(spec, names)
	if err == nil {
		c.Close()
	}
	return err
}

// refusal says in one line why the kernel refuses a tracer's programs, and what they attach to.
func refusal(on string, err error) string {
	why, _, _ := strings.Cut(err.Error(), "\n")
	if _, verified := errors.AsType[*ebpf.VerifierError](err); !verified && errors.Is(err, os.ErrPermission) {
		why += "; it needs root with CAP_BPF and CAP_PERFMON, outside of a container that forbids bpf(2)"
	}
	return "the kernel does not load its programs, which need " + on + ": " + why
}

// Close unloads the programs.
func (k *Kit) Close() {
	if k.coll != nil {
		k.coll.Close()
		k.coll = nil
	}
}

// Trace is the observation of one trial.
type Trace struct {
	kit     *Kit
	target  Target
	missing map[string]*notebook.Message
	counted counted
	before  counters
	reads   map[string]reading // by tracer
	links   []io.Closer
	notes   *ringbuf.Reader // nil: there is no timeline
	word    bool            // the trial is from Begin to End
	state   uint64          // state of the guest's threads when End was called
	running bool            // the programs are attached
	stuck   error           // why programs could neither be attached nor detached again
	look    look            // what the programs recorded of the trial, after its end
	span    span
	ranOn   [roles]int // CPUs on which threads of each role ran
}

// Attach begins to trace. What Stop returns says in Missing what could not be traced.
func (k *Kit) Attach(target Target) *Trace {
	t := &Trace{kit: k, target: target, missing: map[string]*notebook.Message{}}
	for name, why := range k.missing {
		t.missing[name] = notebook.TextMessage(why)
	}
	t.word = target.Word || len(target.Clock) == 0 && !slices.ContainsFunc(target.Threads, func(t engine.Thread) bool { return t.Role == notebook.RoleRuler })
	if k.coll != nil {
		if err := t.attach(); err != nil {
			t.fails(err)
			if cerr := t.detach(); cerr != nil {
				t.stuck = errors.Join(err, cerr)
			}
		} else {
			t.running = true
		}
	}
	t.counted = counted{PID: target.PID, Threads: target.Threads, CPUs: target.CPUs, Tracers: k.tracers}
	t.before = readCounters(t.counted)
	t.reads = map[string]reading{}
	for _, tr := range k.tracers {
		if tr.begin == nil || t.stuck != nil || k.missing[tr.name] != "" {
			continue
		}
		r, err := tr.begin(t)
		if err != nil {
			t.missing[tr.name] = notebook.ErrorMessage(err)
			continue
		}
		t.reads[tr.name], t.links = r, append(t.links, r)
	}
	return t
}

// endReads ends what tracers without programs had open, and says of each what it could not count.
func (t *Trace) endReads(p *notebook.Trace) {
	for name, r := range t.reads {
		why, err := r.end(p)
		if err != nil {
			delete(t.reads, name)
			why = notebook.ErrorMessage(err)
		}
		if why != nil {
			t.missing[name] = why
		}
	}
}

// attach prepares the programs and attaches them.
func (t *Trace) attach() error {
	k := t.kit
	if err := t.prepare(); err != nil {
		return err
	}
	k.misses = k.missed()
	// In this order no thread is missed: first the programs that follow new threads, then the existing threads, then all others.
	if err := t.attachAll("forked", "executed", "exited"); err != nil {
		return err
	}
	if err := k.iterate("seed"); err != nil {
		return err
	}
	var l look
	if err := k.get("look", &l); err != nil {
		return err
	}
	if l.Seeded == 0 {
		return errors.New("the kernel does not know the guest's threads by their numbers: tare is in its own PID namespace; run it on the host itself")
	}
	if k.events() {
		switching := []string{"switched"}
		if t.each() {
			if err := t.openTimeline(); err != nil {
				return err
			}
			switching = []string{"waking", "begins", "watched", "switched"} // those of a switch run in this order
			if k.serve {
				switching = append(switching, answering...)
			}
			if k.refault {
				switching = append(switching, refaulting...)
			}
		}
		if err := t.attachAll(switching...); err != nil {
			return err
		}
	}
	for _, tr := range k.tracers {
		programs := slices.DeleteFunc(slices.Clone(k.loaded[tr.name]), func(name string) bool { // attached above
			return name == "switched" || slices.Contains(following, name)
		})
		if len(programs) == 0 {
			continue
		}
		attach := tr.attach
		if attach == nil {
			attach = func(t *Trace) error { return t.attachAll(programs...) }
		}
		if err := attach(t); err != nil {
			t.missing[tr.name] = notebook.Say("tracer-not-attached", "on", tr.on, "cause", err)
		}
	}
	return nil
}

// prepare empties the programs' variables and maps, tells the programs what to observe, and gives the guest's threads their roles.
func (t *Trace) prepare() error {
	k := t.kit
	l := look{Zero: clock(), Cores: uint32(min(1023, math.Ceil(t.target.Cores))), Follow: followed(t.target.Threads)}
	if l.Cores == 0 {
		l.Cores = 1
	}
	if k.loaded[notebook.TracerStacks] != nil {
		l.Stacks = 1
	}
	if k.events() {
		l.Events = 1
	}
	if t.each() {
		l.Each = 1
		h, err := cgroup.Scheduled()
		if err != nil {
			return err
		}
		if h.V2 {
			l.Unified = 1
		}
	}
	for _, v := range []struct {
		name  string
		value any
	}{{"look", l}, {"state", [8]uint64{}}} {
		if err := k.put(v.name, 0, v.value); err != nil {
			return err
		}
	}
	if _, err := k.memory.WriteAt(make([]byte, seats*seatSize), int64(k.at["seats"])); err != nil {
		return fmt.Errorf("emptying the programs' seats: %w", err)
	}
	for name, m := range k.coll.Maps {
		if err := empty(m); err != nil {
			return fmt.Errorf("emptying the programs' %s: %w", name, err)
		}
	}
	for _, th := range t.target.Threads {
		if err := k.coll.Maps["seeds"].Put(uint32(th.ID), t.target.seed(role(th.Role))); err != nil {
			return fmt.Errorf("the guest has too many threads: %w", err)
		}
	}
	for _, id := range t.target.Clock {
		if err := k.coll.Maps["seeds"].Put(uint32(id), t.target.seed(roleClock)); err != nil {
			return fmt.Errorf("the load has too many threads: %w", err)
		}
	}
	return nil
}

// attachAll attaches each program to the tracepoint that it names.
func (t *Trace) attachAll(names ...string) error {
	for _, name := range names {
		l, err := link.AttachTracing(link.TracingOptions{Program: t.kit.coll.Programs[name]})
		if err != nil {
			return fmt.Errorf("attaching %s: %w", name, err)
		}
		t.links = append(t.links, l)
	}
	return nil
}

// Begin marks the beginning of the trial, if no ruler on the host does.
func (t *Trace) Begin() {
	if !t.word || !t.running {
		return
	}
	k := t.kit
	if err := errors.Join(k.put("look", beginAt, clock()), k.put("look", spansAt, uint32(1)), t.gather(0), t.room(), t.find(), k.put("look", openAt, uint32(1))); err != nil {
		t.fails(err)
	}
}

// End marks its end.
func (t *Trace) End() {
	if !t.word || !t.running {
		return
	}
	k := t.kit
	if t.each() {
		if err := t.release(); err != nil {
			t.fails(err)
			return
		}
	}
	var state [8]uint64
	if err := errors.Join(k.put("look", endAt, clock()), k.put("look", openAt, uint32(0)), k.get("state", &state), t.gather(1)); err != nil {
		t.fails(err)
	}
	t.state = state[0] // it goes on changing after the trial
}

// gather resets the counters of the guest's threads (0), or adds up what they have counted (1), if no program does so at each switch.
func (t *Trace) gather(what uint32) error {
	if t.kit.events() {
		return nil
	}
	return errors.Join(t.kit.put("look", gatherAt, what), t.kit.iterate("gather"))
}

// fails records why none of the tracers with programs observed anything.
func (t *Trace) fails(err error) {
	t.running = false
	for name := range t.kit.loaded {
		t.missing[name] = notebook.ErrorMessage(err)
	}
}

func (t *Trace) detach() error {
	var errs []error
	for _, l := range slices.Backward(t.links) {
		errs = append(errs, l.Close())
	}
	t.links = nil
	return errors.Join(errs...)
}

// Stop detaches the tracers and returns what they observed. It fails if a program could not be detached.
func (t *Trace) Stop() (*notebook.Trace, error) {
	if t.stuck != nil {
		return nil, t.stuck
	}
	after := readCounters(t.counted)
	p := &notebook.Trace{Missing: t.missing, Figures: map[string]float64{}}
	t.endReads(p)
	if t.running && !t.word {
		if err := t.gather(1); err != nil {
			t.fails(err)
		}
	}
	if err := t.detach(); err != nil {
		return nil, fmt.Errorf("detaching the tracers: %w", err)
	}
	figures, fallback, missing := after.since(t.before)
	maps.Copy(p.Figures, figures)
	if t.running {
		if err := t.seen(p); err != nil {
			t.fails(err)
		}
	}
	if !t.running || t.kit.loaded[notebook.TracerBlock] == nil {
		maps.Copy(p.Figures, fallback)
	}
	for n, why := range missing {
		if whole := p.Missing[n]; whole != nil {
			why = slices.Insert(why, 0, whole)
		}
		p.Missing[n] = notebook.Several(why)
	}
	for _, tr := range t.kit.tracers {
		if tr.each && !t.each() {
			continue
		}
		// A tracer that reads counters has read them, or Missing says which ones it could not read.
		if t.missing[tr.name] == nil || tr.count != nil || t.reads[tr.name] != nil || t.running && t.kit.loaded[tr.name] != nil {
			p.Looked = append(p.Looked, tr.name)
		}
	}
	return p, nil
}

// seen reads what the programs gathered.
func (t *Trace) seen(p *notebook.Trace) error {
	k, l := t.kit, &t.look
	if err := k.get("look", l); err != nil {
		return err
	}
	var all []sums
	if err := k.coll.Maps["all"].Lookup(uint32(0), &all); err != nil {
		return fmt.Errorf("reading the programs' sums: %w", err)
	}
	if l.Spans == 0 {
		return &notebook.Error{Says: notebook.Say("no-trial-seen")}
	}
	for i := range all {
		p.Lost += int64(all[i].Lost)
		of := &all[i].Span[(l.Spans-1)%spans]
		for r := range roles {
			if of.Sums[r][kindOn] > 0 {
				t.ranOn[r]++
			}
		}
		t.span.add(of)
	}
	p.Lost += int64(k.missed() - k.misses)
	if l.Spans > spans {
		return fmt.Errorf("saw %d trials; must be one", l.Spans-1)
	}
	if l.Open != 0 { // the process has outlived the trial, or the trial was cut short
		l.End = clock()
	}
	if took := time.Duration(l.End - l.Zero); k.events() && took >= longest {
		return fmt.Errorf("the trial ended %v after tracing began; must be at most %v; make its work shorter", took.Round(time.Second), longest.Round(time.Second))
	}
	for _, tr := range k.tracers {
		if tr.read == nil || k.loaded[tr.name] == nil || t.missing[tr.name] != nil && t.missing[tr.name].Text() != tr.lacks {
			continue
		}
		if err := tr.read(t, p); err != nil {
			t.missing[tr.name] = notebook.ErrorMessage(err)
		}
	}
	return nil
}
