//go:build linux

// Package trace looks at a guest from the host while a trial runs: what the scheduler, the memory system, the devices and the
// hypervisor did meanwhile. It attaches to the guest's threads, by role, and follows what they create; it costs little,
// which is measured, and nothing while it does not look.
//
// Where the kernel allows it, programs of bpf/look.c do the looking; what the kernel counts by itself is read before and after
// (counters.go). The trial is from the creation of its process by the ruler until the ruler is told of its end.
package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"tare/lab/engine"
	"tare/lab/proc"
	"tare/notebook"
)

// Target is what a Watch looks at.
type Target struct {
	Threads []engine.Thread // the guest's. What a ruler creates is work, and begins a trial
	Clock   []int           // threads of a ruler elsewhere (a load's), whose child's life is the trial; the guest's own threads are a service's
	PID     int             // a process of the guest, for its cgroups and its network; 0: none
	Cores   float64         // that the guest has
	CPUs    []int           // that it may use; nil: all

	// Launchers: rulers start work through launchers, as package ruler's do: what a ruler creates is a launcher, and what that
	// creates begins a trial. Else it is what the ruler creates.
	Launchers bool
}

// The values are bpf/look.c's.
const (
	roleWork = iota
	roleVCPU
	roleIO
	roleEmulator
	roles
	roleRuler = roles
	roleClock = roles + 1

	launchers = 2 // from a ruler's role to its launchers'
)

var roleNames = [roles]string{notebook.RoleWork, notebook.RoleVCPU, notebook.RoleIO, notebook.RoleEmulator}

// role is a role's number.
func role(name string) uint32 {
	if name == notebook.RoleRuler {
		return roleRuler
	}
	return uint32(max(0, slices.Index(roleNames[:], name)))
}

// seed is the role that a thread of that role begins with: a ruler without launchers is its own.
func (t Target) seed(role uint32) uint32 {
	if role >= roles && !t.Launchers {
		role += launchers
	}
	return role
}

// look mirrors bpf/look.c's struct of that name.
type look struct {
	Zero                                                    uint64
	Cores, Follow, Stacks, Seeded, Open, Spans, Main, Dying uint32
	Begin, End, Died, Offset, Synced                        uint64
}

// seats are so many, of so many bytes.
const (
	seats    = 16384
	seatSize = 64
)

// Offsets in it of what is changed while programs run.
const (
	openAt  = 24
	spansAt = 28
	beginAt = 40
	endAt   = 48
)

// Watch is a look at one trial.
type Watch struct {
	kit     *Kit
	target  Target
	missing map[string]string
	counted counted
	before  counters
	links   []io.Closer
	word    bool   // the trial's bounds are the host's word
	state   uint64 // of the guest's threads when End was called
	looking bool
}

// Watch begins to look. What cannot be looked at is Missing in what Stop gives; an error is what could not be taken back.
func (k *Kit) Watch(t Target) (*Watch, error) {
	w := &Watch{kit: k, target: t, missing: maps.Clone(k.missing)}
	w.word = len(t.Clock) == 0 && !slices.ContainsFunc(t.Threads, func(t engine.Thread) bool { return t.Role == notebook.RoleRuler })
	if k.coll != nil {
		if err := w.attach(); err != nil {
			if cerr := w.detach(); cerr != nil {
				return nil, errors.Join(err, cerr)
			}
			w.fails(err)
		} else {
			w.looking = true
		}
	}
	w.counted = counted{PID: t.PID, Threads: t.Threads, CPUs: t.CPUs, Probes: k.names}
	w.before = readCounters(w.counted)
	return w, nil
}

// clock is the one that the programs use, in nanoseconds.
func clock() uint64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil { // there is no such kernel
		panic(err)
	}
	return uint64(ts.Nano())
}

func (k *Kit) put(name string, at uint64, v any) error {
	b, err := binary.Append(nil, binary.NativeEndian, v)
	if err != nil {
		panic(err)
	}
	if _, err := k.memory.WriteAt(b, int64(k.at[name]+at)); err != nil {
		return fmt.Errorf("the probes' variable %s: %w", name, err)
	}
	return nil
}

func (k *Kit) get(name string, v any) error {
	b := make([]byte, binary.Size(v))
	if _, err := k.memory.ReadAt(b, int64(k.at[name])); err != nil {
		return fmt.Errorf("the probes' variable %s: %w", name, err)
	}
	_, err := binary.Decode(b, binary.NativeEndian, v)
	return err
}

// followed are the roles that the account is made of: the work's; a VM's virtual CPUs; and with the work a sandbox's kernel, which
// does for it what the host's does for others.
func followed(threads []engine.Thread) uint32 {
	has := map[string]bool{}
	for _, th := range threads {
		has[th.Role] = true
	}
	switch {
	case has[notebook.RoleVCPU]:
		return 1 << roleVCPU
	case has[notebook.RoleEmulator]:
		return 1<<roleWork | 1<<roleEmulator
	}
	return 1 << roleWork
}

// attach empties what the programs fill, gives the guest's threads their roles, and lets the programs look.
func (w *Watch) attach() error {
	k, t := w.kit, w.target
	l := look{Zero: clock(), Cores: uint32(min(1023, math.Ceil(t.Cores))), Follow: followed(t.Threads)}
	if l.Cores == 0 {
		l.Cores = 1
	}
	if k.wants(notebook.ProbeStacks) {
		l.Stacks = 1
	}
	for _, v := range []struct {
		name  string
		value any
	}{{"look", l}, {"state", [8]uint64{}}, {"faults", [3]uint64{}}} {
		if err := k.put(v.name, 0, v.value); err != nil {
			return err
		}
	}
	if _, err := k.memory.WriteAt(make([]byte, seats*seatSize), int64(k.at["seats"])); err != nil {
		return fmt.Errorf("emptying the programs' seats: %w", err)
	}
	for _, name := range []string{"seeds", "waits", "inflight", "devices", "places", "left", "exits", "stacks"} {
		if err := empty(k.coll.Maps[name]); err != nil {
			return fmt.Errorf("emptying the probes' %s: %w", name, err)
		}
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return err
	}
	if err := k.coll.Maps["all"].Put(uint32(0), make([]sums, cpus)); err != nil {
		return fmt.Errorf("emptying the probes' sums: %w", err)
	}
	for _, th := range t.Threads {
		if err := k.coll.Maps["seeds"].Put(uint32(th.ID), t.seed(role(th.Role))); err != nil {
			return fmt.Errorf("the guest has too many threads: %w", err)
		}
	}
	for _, id := range t.Clock {
		if err := k.coll.Maps["seeds"].Put(uint32(id), t.seed(roleClock)); err != nil {
			return fmt.Errorf("the load has too many threads: %w", err)
		}
	}
	k.misses = k.missed()
	// First what follows new threads, then the ones that are there, then the rest: so none is missed.
	if err := w.attachAll("forked", "executed", "exited"); err != nil {
		return err
	}
	if err := k.seed(); err != nil {
		return err
	}
	if err := k.get("look", &l); err != nil {
		return err
	}
	if l.Seeded == 0 {
		return errors.New("none of the guest's threads is known to the kernel by its number: tare is in a PID namespace of its own; run it on the host itself")
	}
	if k.wants(notebook.ProbeScheduler) || k.wants(notebook.ProbeStacks) {
		if err := w.attachAll("switched"); err != nil {
			return err
		}
	}
	w.attachOthers()
	return nil
}

func (w *Watch) attachAll(names ...string) error {
	for _, name := range names {
		l, err := w.kit.attachTracing(name)
		if err != nil {
			return err
		}
		w.links = append(w.links, l)
	}
	return nil
}

// attachOthers attaches the probes that stand beside the scheduler's; one that cannot be is missing.
func (w *Watch) attachOthers() {
	k := w.kit
	try := func(name string, attach func() error) {
		if !k.loaded[name] || name == notebook.ProbeScheduler {
			return
		}
		if err := attach(); err != nil {
			w.missing[name] = "it cannot attach to " + attachment[name] + ": " + err.Error()
		}
	}
	try(notebook.ProbeIO, func() error { return w.attachAll(k.chosen[notebook.ProbeIO]...) })
	try(notebook.ProbeMemory, func() error {
		return w.attachPerf("faulted", unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_PAGE_FAULTS, Sample: faultPeriod, Sample_type: unix.PERF_SAMPLE_ADDR})
	})
	try(notebook.ProbeAccounting, func() error {
		return w.attachPerf("sampled", unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Sample: sampleRate, Bits: unix.PerfBitFreq})
	})
	vcpus := slices.ContainsFunc(w.target.Threads, func(t engine.Thread) bool { return t.Role == notebook.RoleVCPU })
	if k.kvm != nil && vcpus {
		try(notebook.ProbeHypervisor, func() error {
			for program, id := range map[string]uint64{"vcpu_exit": k.kvm.exit, "vcpu_entry": k.kvm.entry} {
				if err := w.attachPerf(program, unix.PerfEventAttr{Type: unix.PERF_TYPE_TRACEPOINT, Config: id, Sample: 1}); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// One page fault in so many is looked at, a prime so that it does not beat with what the work does; and so many times a second what runs.
const (
	faultPeriod = 61
	sampleRate  = 499
)

// perfEvent is an open event with a program on it.
type perfEvent int

func (e perfEvent) Close() error { return unix.Close(int(e)) }

// attachPerf opens the event on each CPU, for all that runs there, and puts the program on it. A tracepoint's is the same on
// each, so one is enough.
func (w *Watch) attachPerf(program string, attr unix.PerfEventAttr) error {
	online, err := proc.OnlineCPUs()
	if err != nil {
		return err
	}
	attr.Size = unix.PERF_ATTR_SIZE_VER1 // all that is used here, on any kernel
	if attr.Type == unix.PERF_TYPE_TRACEPOINT {
		online = online[:1]
	}
	for _, cpu := range online {
		fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			return fmt.Errorf("perf_event_open on CPU %d: %w", cpu, err)
		}
		w.links = append(w.links, perfEvent(fd))
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, w.kit.coll.Programs[program].FD()); err != nil {
			return fmt.Errorf("its program on CPU %d: %w", cpu, err)
		}
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
			return fmt.Errorf("enabling it on CPU %d: %w", cpu, err)
		}
	}
	return nil
}

// cpuDomains numbers each CPU's last-level cache and NUMA node; what is not known is 0, so that no migration is taken for one
// between domains.
func cpuDomains() (cache, node [1024]uint8) {
	number := map[string]uint8{} // by CPUs that share one: there may be more CPUs than an uint8 has numbers
	domain := func(pattern string) uint8 {
		names, err := filepath.Glob(pattern) // the pattern is good
		if err != nil || len(names) == 0 {
			return 0
		}
		b, err := os.ReadFile(names[len(names)-1])
		if err != nil {
			return 0
		}
		if _, known := number[string(b)]; !known {
			number[string(b)] = uint8(min(len(number)+1, math.MaxUint8))
		}
		return number[string(b)]
	}
	for cpu := range cache {
		dir := fmt.Sprintf("/sys/devices/system/cpu/cpu%d", cpu)
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		cache[cpu] = domain(dir + "/cache/index*/shared_cpu_list")
		if nodes, err := filepath.Glob(dir + "/node[0-9]*"); err == nil && len(nodes) > 0 {
			n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(nodes[0]), "node"))
			if err == nil {
				node[cpu] = uint8(n)
			}
		}
	}
	return cache, node
}

// seed runs the program that gives each thread of the seeds its seat.
func (k *Kit) seed() error {
	it, err := link.AttachIter(link.IterOptions{Program: k.coll.Programs["seed"]})
	if err != nil {
		return fmt.Errorf("finding the guest's threads: %w", err)
	}
	defer it.Close()
	r, err := it.Open()
	if err != nil {
		return fmt.Errorf("finding the guest's threads: %w", err)
	}
	defer r.Close()
	if _, err := io.Copy(io.Discard, r); err != nil {
		return fmt.Errorf("finding the guest's threads: %w", err)
	}
	return nil
}

// empty takes all out of a map.
func empty(m *ebpf.Map) error {
	var key []byte
	for {
		next, err := m.NextKeyBytes(nil)
		if err != nil {
			return err
		}
		if next == nil {
			return nil
		}
		if slices.Equal(key, next) {
			return errors.New("a key cannot be removed")
		}
		key = next
		if err := m.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return err
		}
	}
}

// missed is how often the kernel has left out a program because another one ran on that CPU.
func (k *Kit) missed() (n uint64) {
	for _, p := range k.coll.Programs {
		if s, err := p.Stats(); err == nil { // a kernel that does not say has not counted
			n += s.RecursionMisses
		}
	}
	return n
}

// Begin says that the trial begins now, where no ruler of the host's does so.
func (w *Watch) Begin() {
	if !w.word || !w.looking {
		return
	}
	k := w.kit
	if err := errors.Join(k.put("look", beginAt, clock()), k.put("look", spansAt, uint32(1)), k.put("look", openAt, uint32(1))); err != nil {
		w.fails(err)
	}
}

// End says that it has ended.
func (w *Watch) End() {
	if !w.word || !w.looking {
		return
	}
	k := w.kit
	var state [8]uint64
	if err := errors.Join(k.put("look", endAt, clock()), k.put("look", openAt, uint32(0)), k.get("state", &state)); err != nil {
		w.fails(err)
	}
	w.state = state[0] // what comes after it is not of the trial, and goes on changing it
}

// fails says of all that the programs would have seen that it was not, and why.
func (w *Watch) fails(err error) {
	w.looking = false
	for _, n := range w.kit.names {
		if w.kit.loaded[n] || n == notebook.ProbeStacks {
			w.missing[n] = err.Error()
		}
	}
}

func (w *Watch) detach() error {
	var errs []error
	for _, l := range slices.Backward(w.links) {
		errs = append(errs, l.Close())
	}
	w.links = nil
	return errors.Join(errs...)
}

// withCounters are the probes that read the kernel's own counters, which is a part of what they say that needs no program.
var withCounters = []string{notebook.ProbeBandwidth, notebook.ProbeCPU, notebook.ProbeMemory, notebook.ProbeIO}

// Stop looks no more, and says what was seen. An error is a program that could not be taken off.
func (w *Watch) Stop() (*notebook.Probes, error) {
	after := readCounters(w.counted)
	if err := w.detach(); err != nil {
		return nil, fmt.Errorf("taking the probes off: %w", err)
	}
	p := &notebook.Probes{Missing: w.missing, Figures: map[string]float64{}}
	figures, fallback, missing := after.since(w.before)
	maps.Copy(p.Figures, figures)
	if w.looking {
		if err := w.seen(p); err != nil {
			w.fails(err)
		}
	}
	if !w.looking || !w.kit.loaded[notebook.ProbeIO] {
		maps.Copy(p.Figures, fallback)
	}
	for _, n := range w.kit.names {
		if w.missing[n] == "" || slices.Contains(withCounters, n) {
			p.Looked = append(p.Looked, n)
		}
	}
	for n, why := range missing {
		p.Missing[n] = strings.TrimPrefix(p.Missing[n]+"; "+why, "; ")
	}
	return p, nil
}
