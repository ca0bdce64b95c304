//go:build linux

// Package conformance is the test suite that every driver of a platform must pass (design, section 7).
//
// A driver's test package calls Main from its TestMain and Run from a test:
//
//	func TestMain(m *testing.M) { conformance.Main(m, subject) }
//	func TestConformance(t *testing.T) { conformance.Run(t, subject, conformance.Expectations{…}) }
//
// The suite checks what can be measured, not what a driver says: CPU time of busy threads, processes killed for memory, the guest's
// own view of its files and CPUs, and the host's processes, cgroups, mounts, links and files before and after. It checks many
// things in one guest, because a guest under software emulation takes seconds to start.
package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/internal/require"
	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/lab/image"
	"tare/lab/journal"
	"tare/lab/network"
	"tare/lab/proc"
	"tare/lab/programs"
	"tare/lab/programs/programstest"
	"tare/lab/ruler"
	"tare/notebook"
)

// Subject is a driver under test.
type Subject struct {
	Name string // of the driver and its engine: unique in a test package
	// New makes the driver. It is also called in another process, which is then killed, so what it needs in addition to l must come
	// from the environment or the host.
	New func(l engine.Env) (engine.Driver, error)
	// Limitations are the parts of the contract that the driver declares not to keep.
	Limitations []engine.Limitation
	// Undo are the driver's functions that undo its journal entries.
	Undo map[string]journal.Undo
	// Networks are those that a guest can have. Any other of notebook.Networks must be refused by an *engine.UnsupportedError.
	Networks []string
	// Copies: each of its guests can have a copy of the root. If not, that must be refused by an *engine.UnsupportedError.
	Copies bool
	// NoDevices says why its guests can have no device of the host, which must be refused by an *engine.UnsupportedError; "" if
	// they can.
	NoDevices string
	// Shares: several of its guests can have a folder in common. If not, that must be refused by an *engine.UnsupportedError.
	Shares bool
	// Pulls: the start of its guests can pull their image from a registry. If not, that must be refused by an *engine.UnsupportedError.
	Pulls bool
	// RunsHooks: programs that come with a device run while its guests are made. If not, they must be refused in the same way.
	RunsHooks bool
	// Descriptions is the folder in which the engine looks for descriptions of devices; "": any folder.
	Descriptions string
	// Saves: its guests are saved and restored before they are killed.
	Saves bool
	// Disk is the folder, from [Disk], that the engine keeps its guests' files in; empty: below the state folder.
	Disk string
	// Ahead: its guests can be made first and started later (engine.Creator).
	Ahead bool
	// Objects lists the engine's objects that belong to the guest ID; nil without an engine.
	Objects func(ctx context.Context, id string) ([]string, error)
	// Unnamed: the engine makes links, namespaces and cgroups without the guest ID in their names, so the suite compares all such on
	// the host with those before. No other test may use this engine, or the host's Docker Engine, at the same time.
	Unnamed bool
}

// Of is the registered kind as a Subject.
func Of(k engine.Kind) Subject {
	return Subject{
		Name: k.String(), Limitations: k.Limitations, Undo: engine.Registry{k}.Undo(), Networks: k.NetworkModes(), Copies: k.Copies, NoDevices: k.NoDevices, Shares: k.Shares() == nil, Pulls: k.Pulls, RunsHooks: k.RunsHooks, Saves: k.Saving != "", Ahead: k.Ahead,
		New: func(env engine.Env) (engine.Driver, error) { return k.New(env), nil },
	}
}

// Containers are the expectations of every container on the host's kernel.
var Containers = Expectations{
	Provisionings: notebook.Provisionings,
	Fraction:      true,
	MemoryLimit:   true,
	WritableRoot:  true,
	SharesKernel:  true,
	FewProcesses:  true,
}

// Expectations are what a platform must keep.
type Expectations struct {
	// Provisionings to check; "" for a platform that has none (bm).
	Provisionings []string
	// Fraction: half a core is possible (vanilla). If not, it must be refused by an *engine.UnsupportedError.
	Fraction bool
	// QuotaToo: in addition to its CPUs a guest has a quota of as many cores.
	QuotaToo bool
	// MemoryLimit: a program that uses more than the instance's memory is killed.
	MemoryLimit bool
	// WritableRoot: the guest may write to its own copy of the root. If not, writing fails.
	WritableRoot bool
	// SharesKernel: the guest runs on the host's kernel, or on one that gets its devices and network from it. It sees the host's
	// CPUs under the host's numbers, and its processes are the host's (engine.NoHostProcesses).
	SharesKernel bool
	// Publishes: a service on a bridge is reached at a port of the host, which may differ from its own.
	Publishes bool
	// HostRoot: programs in the guest are root on the host and reach the host's own files. They can leave their CPUs, which cannot
	// be prevented but is detected.
	HostRoot bool
	// FewProcesses: the guest may have half of the host's greatest number of processes.
	FewProcesses bool
	// Memory of the guests in bytes; 0: 256 MiB.
	Memory int64
	// MemorySlack: Limits may report this many bytes less than requested.
	MemorySlack int64
	// Slow: a guest under emulation; all time limits are multiplied and fewer guests are made.
	Slow bool
}

// memory is the default memory of a guest, in bytes.
const memory = 256 << 20

// rounds is how often each way of interrupting a driver is tried.
func (e Expectations) rounds() int {
	if e.Slow {
		return 2
	}
	return 8
}

// patience is d, longer for a slow platform.
func (e Expectations) patience(d time.Duration) time.Duration {
	if e.Slow {
		return 10 * d
	}
	return d
}

// keeps skips the test if the driver declares that it does not keep that part of the contract.
func (r *suite) keeps(t *testing.T, part string) {
	t.Helper()
	if l := r.limitation(part); l != nil {
		t.Skipf("declared limitation: %s: %s", l.Name, l.Why)
	}
}

// limitation is the declared limitation of that part of the contract; nil if the driver keeps it.
func (r *suite) limitation(part string) *engine.Limitation {
	for _, l := range r.s.Limitations {
		if l.Name == part {
			return &l
		}
	}
	return nil
}

// Run is the suite. It needs root.
func Run(t *testing.T, s Subject, e Expectations) {
	l := newSuite(t, s, e)
	for _, p := range e.Provisionings {
		name := p
		if name == "" {
			name = "unprovisioned"
		}
		part := l.guest
		if p == notebook.Whole {
			part = l.whole
		}
		t.Run(name, func(t *testing.T) { part(t, p) })
	}
	for mode := l.mode(); mode != ""; mode = l.mode() {
		t.Run("network "+mode, func(t *testing.T) { l.onNetwork(t, mode) })
	}
	for _, mode := range notebook.Networks {
		if !slices.Contains(s.Networks, mode) {
			t.Run("no network "+mode, func(t *testing.T) {
				l.cannot(t, "the network "+mode, l.connected(t, l.spec(t, e.Provisionings[0], 1), mode))
			})
		}
	}
	if !s.Copies {
		t.Run("no copied root", func(t *testing.T) {
			spec := l.spec(t, e.Provisionings[0], 1)
			spec.Copied = true
			l.cannot(t, "a copy of the root", spec)
		})
	}
	if !slices.Contains(e.Provisionings, notebook.Vanilla) || !e.Fraction {
		t.Run("no half core", func(t *testing.T) { l.cannot(t, "half a core", l.spec(t, e.Provisionings[0], 0.5)) })
	}
	if s.Ahead {
		t.Run("made ahead", l.ahead)
	}
	if e.HostRoot {
		t.Run("leaving its CPUs", l.leaves)
	}
	t.Run("devices", l.devices)
	t.Run("shared folder", l.shares)
	t.Run("pulled", l.pulled)
	t.Run("durable", l.durable)
	t.Run("cancelled", l.cancelled)
	t.Run("killed", l.killed)
}

// suite is the state that all parts of one Run share.
type suite struct {
	s      Subject
	e      Expectations
	env    engine.Env
	driver engine.Driver
	image  *image.Image
	work   *image.Tree
	bridge *network.Bridge
	client engine.Guest // sends requests to others' services from the bridge
	modes  []string     // of networks that no guest has had yet; the first guest has the engine's default
}

// mode is the next network mode; "" is the engine's default, also when there are no more.
func (r *suite) mode() (m string) {
	if len(r.modes) > 0 {
		m, r.modes = r.modes[0], r.modes[1:]
	}
	return m
}

func newSuite(t *testing.T, s Subject, e Expectations) *suite {
	t.Helper()
	require.Root(t)
	if e.Memory == 0 {
		e.Memory = memory
	}
	r := prepare(t, s, e, NewLab(t))
	r.modes = append([]string{""}, s.Networks...)
	r.openNetwork(t)
	return r
}

// prepare makes the driver and its images.
func prepare(t *testing.T, s Subject, e Expectations, env engine.Env) *suite {
	t.Helper()
	r := &suite{s: s, e: e, env: env}
	r.image, r.work = images(t, r.dir())
	var err error
	if r.driver, err = s.New(env); err != nil {
		t.Fatalf("making the driver: %v", err)
	}
	return r
}

// dir is the suite's folder.
func (r *suite) dir() string { return filepath.Dir(r.env.State) }

// NewLab makes the environment of a driver, for the length of the test.
func NewLab(t *testing.T) engine.Env {
	t.Helper()
	return newLab(t, filepath.Join(t.TempDir(), "state"))
}

func newLab(t *testing.T, state string) engine.Env {
	t.Helper()
	l := engine.Env{State: state, Ruler: programstest.Build(t, programs.Ruler), Init: programstest.Build(t, programs.Init)}
	var err error
	if l.Journal, err = journal.Open(l.State); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Journal.Close(); err != nil {
			t.Errorf("closing the journal: %v", err)
		}
	})
	return l
}

// NoHello checks a driver whose guest's first process prints why it fails and ends at once: the error has the text, comes soon, and
// nothing remains.
func NoHello(t *testing.T, s Subject, provisioning string) {
	require.Root(t)
	l := NewLab(t)
	l.Ruler = busybox(t) // as a ruler, it prints that it has no such applet
	r := prepare(t, s, Expectations{Memory: memory}, l)
	if err := r.attempt(t, r.spec(t, provisioning, 1), 10*time.Second); err == nil || !strings.Contains(err.Error(), "applet not found") {
		t.Errorf("a guest whose first process ends at once: %v; want an error with what it said", err)
	}
}

// Pulled checks guests whose starts pull their image in this form, with an engine that supports it.
func Pulled(t *testing.T, s Subject, e Expectations, of notebook.Pull) {
	newSuite(t, s, e).pulls(t, of)
}

// spec is a guest of this many cores under a new name.
func (r *suite) spec(t *testing.T, provisioning string, cores float64) engine.Spec {
	t.Helper()
	s := engine.Spec{
		ID:           fmt.Sprintf("conformance-%d-%08x", os.Getpid(), rand.Uint32()),
		Instance:     notebook.Instance{Name: "conformance", Cores: cores, Memory: r.e.Memory},
		Provisioning: provisioning,
		Image:        r.image,
		Work:         r.work,
	}
	if provisioning == notebook.Pinned || provisioning == "" {
		var err error
		if s.CPUs, err = lastCPU(); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// lastCPU is the highest-numbered CPU that this process may use.
func lastCPU() ([]int, error) {
	cpus, err := proc.Host.AllowedCPUs("self")
	return cpus[max(0, len(cpus)-1):], err
}

// provision makes a guest, which is destroyed with the test in any case.
func (r *suite) provision(t *testing.T, s engine.Spec) engine.Guest {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), r.e.patience(20*time.Second))
	defer cancel()
	start := time.Now()
	g, err := r.driver.Provision(ctx, s)
	if err != nil {
		t.Fatalf("provisioning: %v", err)
	}
	t.Logf("provisioned in %v", time.Since(start).Round(time.Millisecond))
	t.Cleanup(func() { r.destroy(t, g) })
	return g
}

func (r *suite) destroy(t *testing.T, g engine.Guest) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), r.e.patience(20*time.Second))
	defer cancel()
	start := time.Now()
	if err := g.Destroy(ctx); err != nil {
		t.Errorf("destroying: %v", err)
	}
	t.Logf("destroyed in %v", time.Since(start).Round(time.Millisecond))
}

// end ends a guest and checks that nothing of it remains.
func (r *suite) end(t *testing.T, before snapshot, g engine.Guest, s engine.Spec) {
	t.Helper()
	address := g.Address()
	r.destroy(t, g)
	r.destroy(t, g) // a second time: nothing to do, no error
	r.nothingRemains(t, before, s.ID)
	r.portInUse(t, s, address)
}

// attempt requests a guest that may fail, within the given time, and returns the error. It ends a guest that succeeds. Nothing
// remains.
func (r *suite) attempt(t *testing.T, s engine.Spec, within time.Duration) error {
	t.Helper()
	before := r.snapshot(t)
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	g, err := r.driver.Provision(ctx, s)
	if err == nil {
		r.destroy(t, g)
	}
	r.nothingRemains(t, before, s.ID)
	return err
}

// cannot requests something that the platform cannot give.
func (r *suite) cannot(t *testing.T, what string, s engine.Spec) {
	err := r.attempt(t, s, r.e.patience(20*time.Second))
	if !unsupported(err) {
		t.Errorf("%s: %v, want an *engine.UnsupportedError", what, err)
	}
}

func unsupported(err error) bool {
	_, is := errors.AsType[*engine.UnsupportedError](err)
	return is
}

// order runs argv in the guest and fails the test if it could not be run at all.
func (r *suite) order(t *testing.T, g engine.Guest, o ruler.Order) ruler.Result {
	t.Helper()
	res, err := r.try(t, g, o)
	if err != nil {
		t.Fatalf("%q: %v\ndiagnosis: %s", o.Argv, err, g.Diagnose())
	}
	return res
}

// try runs argv in the guest. It fails if the guest's ruler did not answer.
func (r *suite) try(t *testing.T, g engine.Guest, o ruler.Order) (ruler.Result, error) {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = r.e.patience(10 * time.Second)
	}
	if o.OutputLimit == 0 {
		o.OutputLimit = 64 << 10
	}
	if o.Env == nil {
		o.Env = []string{"PATH=/bin"}
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.Timeout+r.e.patience(5*time.Second))
	defer cancel()
	res, took, err := g.Ruler().Run(ctx, o)
	if err != nil {
		return res, err
	}
	if res.Error != "" {
		t.Fatalf("%q: the ruler could not start it: %s", o.Argv, res.Error)
	}
	if res.Elapsed <= 0 || took <= 0 {
		t.Errorf("%q: %v by the guest's clock, %v by the host's; want both above 0", o.Argv, res.Elapsed, took)
	}
	return res, nil
}

// sh runs a line of shell in the guest and returns its output; it must succeed.
func (r *suite) sh(t *testing.T, g engine.Guest, line string) string {
	t.Helper()
	res := r.order(t, g, ruler.Order{Argv: []string{"/bin/sh", "-c", line}, KeepScratch: true})
	if res.Exit != 0 || res.Signal != "" {
		t.Errorf("%q: exit %d %s: %s%s", line, res.Exit, res.Signal, res.Stdout, res.Stderr)
	}
	return strings.TrimSpace(string(res.Stdout))
}

// guest checks one guest in all respects, ends it, and checks that a second one finds nothing of it.
func (r *suite) guest(t *testing.T, provisioning string) {
	before := r.snapshot(t)
	s := r.connected(t, r.spec(t, provisioning, 1), r.mode())
	g := r.provision(t, s)
	t.Run("ruler", func(t *testing.T) { r.answers(t, g) })
	t.Run("limits", func(t *testing.T) { r.limits(t, g, s) })
	t.Run("cores", func(t *testing.T) { r.cores(t, g, s.Instance.Cores) })
	if len(s.CPUs) > 0 {
		t.Run("only its CPUs", func(t *testing.T) { r.stays(t, g, s.CPUs) })
	}
	t.Run("results", func(t *testing.T) { r.results(t, g) })
	t.Run("files", func(t *testing.T) { r.files(t, g) })
	t.Run("timeout", func(t *testing.T) { r.timeout(t, g) })
	t.Run("memory", func(t *testing.T) { r.memory(t, g) })
	t.Run("daemons", func(t *testing.T) { r.daemons(t, g, s.ID) })
	t.Run("network", func(t *testing.T) { r.network(t, g, s) })
	if r.e.MemoryLimit {
		t.Run("too much memory", func(t *testing.T) { r.tooMuch(t, g) })
	}
	r.end(t, before, g, s)
	if r.e.Slow && provisioning != r.e.Provisionings[0] {
		return // what a second guest finds does not depend on its CPUs
	}

	cores := 1.0
	if r.e.Fraction && provisioning == notebook.Vanilla {
		cores = 0.5
	}
	s = r.connected(t, r.spec(t, provisioning, cores), r.mode())
	s.Copied = r.s.Copies
	g = r.provision(t, s)
	t.Run("second guest", func(t *testing.T) {
		if s.Copied {
			r.copied(t, s)
		}
		r.limits(t, g, s)
		if cores < 1 {
			r.cores(t, g, cores)
		}
		r.untouched(t, g)
		r.network(t, g, s)
	})
	t.Run("killed from the host", func(t *testing.T) { r.killedFromHost(t, g, s.ID) })
	r.end(t, before, g, s)
}

// whole checks a guest of the host's size without limits: it can use all CPUs at once.
func (r *suite) whole(t *testing.T, provisioning string) {
	before := r.snapshot(t)
	online, err := proc.Host.OnlineCPUs()
	if err != nil {
		t.Fatal(err)
	}
	s := r.connected(t, r.spec(t, provisioning, float64(len(online))), r.mode())
	g := r.provision(t, s)
	r.limits(t, g, s)
	if l, err := g.Limits(); err != nil || l.CPUs != notebook.FormatCPUList(online) {
		t.Errorf("limits %+v, %v: want all CPUs, %s", l, err, notebook.FormatCPUList(online))
	}
	if seen := g.Ruler().Hello().CPUs; len(seen) != len(online) {
		t.Errorf("the guest sees CPUs %v, want as many as the host has online, %d", seen, len(online))
	}
	r.cores(t, g, s.Instance.Cores)
	r.end(t, before, g, s)
}

// onNetwork checks the network of a guest of its own.
func (r *suite) onNetwork(t *testing.T, mode string) {
	before := r.snapshot(t)
	s := r.connected(t, r.spec(t, r.e.Provisionings[0], 1), mode)
	g := r.provision(t, s)
	r.network(t, g, s)
	r.end(t, before, g, s)
}

func (r *suite) answers(t *testing.T, g engine.Guest) {
	ctx, cancel := context.WithTimeout(context.Background(), r.e.patience(10*time.Second))
	defer cancel()
	h := g.Ruler().Hello()
	if h.Version != ruler.ProtocolVersion || h.Kernel == "" || h.PID < 1 || len(h.CPUs) == 0 || h.Memory <= 0 {
		t.Errorf("hello %+v: want version %d, a kernel, a pid, CPUs and memory", h, ruler.ProtocolVersion)
	}
	if f := g.Facts(); f.Kernel != h.Kernel {
		t.Errorf("Facts().Kernel is %q, the ruler says %q", f.Kernel, h.Kernel)
	}
	if d, err := g.Ruler().Ping(ctx); err != nil || d <= 0 {
		t.Errorf("ping: %v, %v", d, err)
	}
	costs, err := g.Ruler().Cost(ctx, 5)
	if err != nil || len(costs) != 5 {
		t.Fatalf("cost: %v, %v; want 5 figures", costs, err)
	}
	if slices.Min(costs) <= 0 {
		t.Errorf("costs %v: want all above 0", costs)
	}
	pids, err := g.Processes()
	if err != nil || len(pids) == 0 {
		t.Fatalf("Processes: %v, %v; want one at least", pids, err)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); err != nil {
			t.Errorf("Processes names %d: %v", pid, err)
		}
	}
}

// processes checks how many processes the guest may have: a guest that forks forever must leave the host some.
func (r *suite) processes(t *testing.T, g engine.Guest) {
	t.Helper()
	pids, err := g.Processes()
	if err != nil || len(pids) == 0 {
		t.Fatalf("its processes: %v, %v", pids, err)
	}
	dir, err := cgroup.Of(pids[0], "pids")
	if err != nil {
		t.Fatal(err)
	}
	want, err := engine.MaxProcesses()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "pids.max"))
	if err != nil || strings.TrimSpace(string(got)) != strconv.FormatInt(want, 10) {
		t.Errorf("it may have %q processes, %v; want %d", got, err, want)
	}
}

func (r *suite) limits(t *testing.T, g engine.Guest, s engine.Spec) {
	l, err := g.Limits()
	if err != nil {
		t.Fatal(err)
	}
	if l.Source == "" {
		t.Errorf("limits %+v: want their source", l)
	}
	if s.CPUs != nil && l.CPUs != notebook.FormatCPUList(s.CPUs) {
		t.Errorf("limits %+v: want CPUs %s", l, notebook.FormatCPUList(s.CPUs))
	}
	if r.e.Fraction && s.Provisioning == notebook.Vanilla && math.Abs(l.Quota-s.Instance.Cores) > 0.01 {
		t.Errorf("limits %+v: want a quota of %g cores", l, s.Instance.Cores)
	}
	switch {
	case r.e.QuotaToo && math.Abs(l.Quota-s.Instance.Cores) > 0.01:
		t.Errorf("limits %+v: want a quota of %g cores in addition to CPUs", l, s.Instance.Cores)
	case !r.e.QuotaToo && s.CPUs != nil && l.Quota != 0:
		t.Errorf("limits %+v: want CPUs without a quota", l)
	}
	if s.Provisioning == notebook.Whole && l.Quota != 0 {
		t.Errorf("limits %+v: want no quota", l)
	}
	// A machine has its own memory; a container without limits has the host's.
	limited := r.e.MemoryLimit && !(s.Provisioning == notebook.Whole && r.e.SharesKernel)
	switch {
	case limited && (l.Memory > s.Instance.Memory || l.Memory < s.Instance.Memory-r.e.MemorySlack):
		t.Errorf("limits %+v: want %d bytes of memory", l, s.Instance.Memory)
	case !limited && l.Memory != 0:
		t.Errorf("limits %+v: want no limit on memory", l)
	}
	if r.e.FewProcesses {
		r.processes(t, g)
	}
	if r.e.SharesKernel && s.CPUs != nil {
		t.Run("CPUs seen", func(t *testing.T) {
			r.keeps(t, engine.NoHostProcesses)
			seen := r.sh(t, g, "grep Cpus_allowed_list /proc/self/status")
			if _, list, _ := strings.Cut(seen, "\t"); list != notebook.FormatCPUList(s.CPUs) {
				t.Errorf("in the guest: %q, want CPUs %s", seen, notebook.FormatCPUList(s.CPUs))
			}
		})
	}
}

// cores spins more threads than the guest has cores and checks their CPU time.
func (r *suite) cores(t *testing.T, g engine.Guest, cores float64) {
	threads := int(math.Ceil(cores)) + 2
	used := r.cpuTime(t, g)
	start := time.Now()
	res := r.order(t, g, ruler.Order{Argv: []string{"/bin/probe", fmt.Sprintf("burn-%d", threads), "1000"}})
	if res.Exit != 0 || res.Signal != "" {
		t.Fatalf("burn: exit %d %s: %s", res.Exit, res.Signal, res.Stderr)
	}
	got := (res.UserS + res.SystemS) / res.Elapsed.Seconds()
	if l := r.limitation(engine.NoCPUTime); l != nil {
		t.Logf("declared limitation: %s: %s; by its own count it got %.3f cores", l.Name, l.Why, got)
		got = (r.cpuTime(t, g) - used).Seconds() / time.Since(start).Seconds()
	}
	t.Logf("%d busy threads got %.3f cores of %g", threads, got, cores)
	// A quota may give one period (0.1 s) more in a second than in the long run.
	if got > cores*1.1+0.02 {
		t.Errorf("%d busy threads got %.3f cores' worth of CPU time, want at most %g", threads, got, cores)
	}
	// A lower bound cannot be checked, because others may be busy on the host.
}

// cpuTime is what the host's kernel has counted for a guest whose own count differs; otherwise 0.
func (r *suite) cpuTime(t *testing.T, g engine.Guest) time.Duration {
	t.Helper()
	if r.limitation(engine.NoCPUTime) == nil {
		return 0
	}
	pids, err := g.Processes()
	if err != nil || len(pids) == 0 {
		t.Fatalf("Processes: %v, %v", pids, err)
	}
	for _, f := range []struct {
		controller, file, format string
		unit                     time.Duration
	}{
		{"cpuacct", "cpuacct.usage", "%d", time.Nanosecond},
		{"cpu", "cpu.stat", "usage_usec %d", time.Microsecond},
	} {
		dir, err := cgroup.Of(pids[0], f.controller)
		if err != nil {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, f.file))
		var n int64
		if err == nil {
			_, err = fmt.Sscanf(string(b), f.format, &n)
		}
		if err == nil {
			return time.Duration(n) * f.unit
		}
	}
	t.Fatalf("the CPU time of the cgroup of process %d is in none of the kernel's files", pids[0])
	return 0
}

func (r *suite) results(t *testing.T, g engine.Guest) {
	res := r.order(t, g, ruler.Order{
		Argv: []string{"/bin/sh", "-c", "echo out; echo err >&2; id -u; id -g; pwd; echo $COLOUR; exit 3"},
		Env:  []string{"PATH=/bin", "COLOUR=green"}, Dir: "/tmp", UID: 1234, GID: 2345,
	})
	if want := "out\n1234\n2345\n/tmp\ngreen\n"; string(res.Stdout) != want {
		t.Errorf("stdout %q, want %q", res.Stdout, want)
	}
	if string(res.Stderr) != "err\n" {
		t.Errorf("stderr %q, want %q", res.Stderr, "err\n")
	}
	if res.Exit != 3 || res.Signal != "" {
		t.Errorf("exit %d %q, want 3", res.Exit, res.Signal)
	}
	r.identity(t, g)
	res = r.order(t, g, ruler.Order{Argv: []string{"sh", "-c", "kill -TERM $$"}})
	if res.Signal != "SIGTERM" {
		t.Errorf("exit %d, signal %q; want SIGTERM", res.Exit, res.Signal)
	}
}

// identity checks that a command has only the environment and the groups of its order, whatever the engine gives the ruler, and
// that the guest's root is the image's.
func (r *suite) identity(t *testing.T, g engine.Guest) {
	env := []string{"PATH=/bin", "EMPTY=", "A=b=c"}
	res := r.order(t, g, ruler.Order{Argv: []string{"cat", "/proc/self/environ"}, Env: env})
	if got, want := string(res.Stdout), strings.Join(env, "\x00")+"\x00"; got != want {
		t.Errorf("the environment is %q, want %q; %s", got, want, res.Stderr)
	}
	// The image's group file has root in a group, which an engine may give to the ruler.
	if want := []uint32{wheel}; !slices.Equal(r.image.Config.Groups, want) {
		t.Errorf("the image's user has the groups %d, want %d", r.image.Config.Groups, want)
	}
	for _, c := range []struct {
		uid, gid uint32
		groups   []uint32
		want     []string
	}{
		{0, 0, nil, []string{"0"}}, {0, 0, []uint32{wheel}, []string{"0", fmt.Sprint(wheel)}},
		{1234, 2345, nil, []string{"2345"}}, {1234, 2345, []uint32{3000, 2345, 4000}, []string{"2345", "3000", "4000"}},
	} {
		res := r.order(t, g, ruler.Order{Argv: []string{"id", "-G"}, Env: env, UID: c.uid, GID: c.gid, Groups: c.groups})
		got := strings.Fields(string(res.Stdout))
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, c.want) {
			t.Errorf("user %d:%d with %d has the groups %v, want %v; %s%s", c.uid, c.gid, c.groups, got, c.want, res.Stderr, res.Error)
		}
	}
	if got := r.sh(t, g, "stat -c '%a %u %g' /"); got != rootFolder {
		t.Errorf("the root has the mode and the owner %s, want the image's %s", got, rootFolder)
	}
}

// shares checks two guests that have a folder of the host in common, as any user in them.
func (r *suite) shares(t *testing.T) {
	before := r.snapshot(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	var specs [2]engine.Spec
	for i := range specs {
		specs[i] = r.spec(t, r.e.Provisionings[0], 1)
		specs[i].Shared = dir
	}
	if !r.s.Shares {
		r.cannot(t, "a folder that several guests share", specs[0])
		return
	}
	var guests [2]engine.Guest
	for i, s := range specs {
		guests[i] = r.provision(t, s)
	}
	file := ruler.SharedDir + "/greeting"
	res := r.order(t, guests[0], ruler.Order{Argv: []string{"sh", "-c", "echo hello > " + file}, UID: 1234, GID: 1234})
	if res.Exit != 0 {
		t.Errorf("writing to the shared folder: %s%s", res.Stderr, res.Error)
	}
	if got := r.sh(t, guests[1], "cat "+file); got != "hello" {
		t.Errorf("the second guest reads %q of what the first has written", got)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "greeting")); err != nil || string(text) != "hello\n" {
		t.Errorf("the host reads %q, %v", text, err)
	}
	for _, g := range guests {
		r.destroy(t, g)
	}
	for _, s := range specs {
		r.nothingRemains(t, before, s.ID)
	}
	if _, err := os.Stat(filepath.Join(dir, "greeting")); err != nil {
		t.Errorf("after the guests: %v", err)
	}
}

// marks are files that a guest leaves so that another might find them.
const (
	rootMark    = "/etc/was-here"
	scratchMark = ruler.ScratchDir + "/was-here"
	tmpMark     = "/tmp/was-here"
	shmMark     = "/dev/shm/was-here"
)

func (r *suite) files(t *testing.T, g engine.Guest) {
	if got := r.sh(t, g, "cat "+markerPath); got != marker {
		t.Errorf("%s is %q, want the image's %q", markerPath, got, marker)
	}
	if got := r.sh(t, g, "cat "+ruler.WorkDir+"/input/greeting"); got != greeting {
		t.Errorf("the work tree's file is %q, want %q", got, greeting)
	}
	if got := r.sh(t, g, ruler.WorkDir+"/script"); got != "ran" {
		t.Errorf("the work tree's script printed %q, want ran", got)
	}
	if got := r.sh(t, g, "touch "+ruler.WorkDir+"/x 2>/dev/null && echo written || echo refused"); got != "refused" {
		t.Errorf("writing to the work tree: %s, want refused", got)
	}
	want := "refused"
	if r.e.WritableRoot {
		want = "written"
	}
	if got := r.sh(t, g, "touch "+rootMark+" 2>/dev/null && echo written || echo refused"); got != want {
		t.Errorf("writing to the root: %s, want %s", got, want)
	}
	if _, err := os.Lstat(filepath.Join(r.image.Dir, rootMark)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what the guest wrote is in the store: %v", err)
	}
	for _, m := range []string{scratchMark, tmpMark, shmMark} {
		r.sh(t, g, "echo here > "+m)
	}
	res := r.order(t, g, ruler.Order{Argv: []string{"sh", "-c", "pwd; ls -A"}, UID: 1234, GID: 1234})
	if string(res.Stdout) != ruler.ScratchDir+"\n" {
		t.Errorf("a trial's folder and its content: %q; want %s, empty", res.Stdout, ruler.ScratchDir)
	}
	// Every guest has the devices that programs rely on.
	r.sh(t, g, "head -c 10 /dev/zero > /dev/null && head -c 4 /dev/urandom > /dev/null && test -d /proc/self && test -d /sys/class")
	// And none has the host's own: a workload must not be able to reach its disks or its memory.
	if got := r.sh(t, g, "ls -d /dev/mem /dev/kmsg /dev/kvm /dev/sd* /dev/vd* /dev/nvme* /dev/loop* 2>/dev/null || :"); got != "" && r.e.SharesKernel {
		t.Errorf("the guest has devices of the host: %s", got)
	}
}

// untouched checks that a new guest finds nothing of an earlier one.
func (r *suite) untouched(t *testing.T, g engine.Guest) {
	for _, m := range []string{rootMark, scratchMark, tmpMark, shmMark} {
		if got := r.sh(t, g, "test -e "+m+" && echo there || echo new"); got != "new" {
			t.Errorf("%s of an earlier guest is %s", m, got)
		}
	}
	if got := r.sh(t, g, "cat "+markerPath); got != marker {
		t.Errorf("%s is %q, want %q", markerPath, got, marker)
	}
}

// copied checks that the guest has its own root: none of its mounts is over the image.
func (r *suite) copied(t *testing.T, s engine.Spec) {
	mounts, err := proc.Host.Mounts()
	if err != nil {
		t.Fatal(err)
	}
	roots := 0
	for _, m := range mounts {
		if m.FSType != "overlay" || !strings.Contains(m.Mountpoint, s.ID) {
			continue
		}
		roots++
		if strings.Contains(m.VFSOptions, "lowerdir="+s.Image.Dir) || !strings.Contains(m.VFSOptions, s.ID+"/copy") {
			t.Errorf("%s lies over no copy of the image: %s", m.Mountpoint, m.VFSOptions)
		}
	}
	if roots == 0 {
		t.Errorf("no root of %s is mounted", s.ID)
	}
}

func (r *suite) timeout(t *testing.T, g engine.Guest) {
	start := time.Now()
	res := r.order(t, g, ruler.Order{Argv: []string{"sh", "-c", "sleep 1000 & sleep 1000"}, Timeout: r.e.patience(200 * time.Millisecond)})
	if !res.TimedOut {
		t.Errorf("result %+v, want timed out", res)
	}
	if took := time.Since(start); took > r.e.patience(5*time.Second) {
		t.Errorf("a trial's end by its timeout took %v", took)
	}
}

func (r *suite) memory(t *testing.T, g engine.Guest) {
	res := r.order(t, g, r.eat(r.e.Memory/3))
	if res.Exit != 0 || res.Signal != "" || !bytes.Contains(res.Stdout, []byte("ate")) {
		t.Errorf("eating a third of the memory: exit %d %s %s, want success", res.Exit, res.Signal, res.Stderr)
	}
}

// eat is an order to use memory.
func (r *suite) eat(bytes int64) ruler.Order {
	return ruler.Order{Argv: []string{"/bin/probe", "eat", strconv.FormatInt(bytes, 10)}, Timeout: r.e.patience(20 * time.Second)}
}

// tooMuch checks that a trial that needs more than the guest's memory is killed, and the guest is not.
func (r *suite) tooMuch(t *testing.T, g engine.Guest) {
	res, err := r.try(t, g, r.eat(r.e.Memory*3/2))
	if errors.Is(err, ruler.ErrGone) {
		r.keeps(t, engine.EndsOutOfMemory)
	}
	if err != nil {
		t.Fatalf("eating more than the memory: %v\ndiagnosis: %s", err, g.Diagnose())
	}
	if res.Signal != "SIGKILL" || res.TimedOut {
		t.Errorf("eating more than the memory: exit %d, signal %q, timed out %t; want SIGKILL (stderr %s)", res.Exit, res.Signal, res.TimedOut, res.Stderr)
	}
	t.Run("counted", func(t *testing.T) {
		r.keeps(t, engine.NoOOMCount)
		if res.OOMKills < 1 {
			t.Errorf("eating more than the memory: OOM kills %d, want one at least", res.OOMKills)
		}
	})
	if got := r.sh(t, g, "echo alive"); got != "alive" {
		t.Errorf("after the kernel killed a trial for memory the guest says %q", got)
	}
}

// daemons leaves processes behind and then checks that they ended with their trial.
func (r *suite) daemons(t *testing.T, g engine.Guest, id string) {
	r.order(t, g, ruler.Order{Argv: []string{"/bin/probe", "rabbits-2", id}})
	res := r.order(t, g, ruler.Order{Argv: []string{"/bin/probe", "daemons-20", id}})
	if !strings.Contains(string(res.Stdout), "left 20") {
		t.Fatalf("daemons: exit %d %s%s", res.Exit, res.Stdout, res.Stderr)
	}
	// The bracket keeps the command from finding itself.
	if got := r.sh(t, g, "grep -lE '[l]inger.'"+id+"'|[h]op.'"+id+" /proc/[0-9]*/cmdline 2>/dev/null | wc -l"); got != "0" {
		t.Errorf("%s processes of an ended trial still exist during the next", got)
	}
}

// killedFromHost kills the guest's first process while work runs there.
func (r *suite) killedFromHost(t *testing.T, g engine.Guest, id string) {
	ctx, cancel := context.WithTimeout(context.Background(), r.e.patience(20*time.Second))
	defer cancel()
	pids, err := g.Processes()
	if err != nil || len(pids) == 0 {
		t.Fatalf("Processes: %v, %v", pids, err)
	}
	type end struct {
		err error
		at  time.Time
	}
	done := make(chan end, 1)
	go func() {
		_, _, err := g.Ruler().Run(ctx, ruler.Order{
			Argv: []string{"/bin/sh", "-c", "/bin/probe daemons-5 " + id + "; /bin/probe rabbits-2 " + id + "; sleep 1000"}, Env: []string{"PATH=/bin"},
			Timeout: time.Hour, OutputLimit: 1024,
		})
		done <- end{err, time.Now()}
	}()
	if r.e.SharesKernel {
		t.Run("processes seen", func(t *testing.T) {
			r.keeps(t, engine.NoHostProcesses)
			r.underWay(t, g, len(pids))
		})
	}
	killed := time.Now()
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		t.Fatalf("killing %d: %v", pids[0], err)
	}
	e := <-done
	if !errors.Is(e.err, ruler.ErrGone) {
		t.Errorf("a trial in a guest that was killed: %v, want ruler.ErrGone", e.err)
	}
	if took := e.at.Sub(killed); took > 5*time.Second {
		t.Errorf("the guest's death was noticed after %v", took)
	}
	if a := g.Diagnose(); a == "" {
		t.Error("no diagnosis")
	} else {
		t.Logf("diagnosis: %s", a)
	}
}

// underWay waits until the work runs in addition to this many processes: a guest killed earlier has nothing to lose.
func (r *suite) underWay(t *testing.T, g engine.Guest, beside int) {
	deadline := time.Now().Add(r.e.patience(5 * time.Second))
	for {
		now, err := g.Processes()
		if err == nil && len(now) > beside+5 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("Processes lists %v, %v; want more than 5 beyond %d", now, err, beside)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// cancelled interrupts provisioning at random moments.
func (r *suite) cancelled(t *testing.T) {
	before := r.snapshot(t)
	s := r.spec(t, r.e.Provisionings[0], 1)
	start := time.Now()
	g := r.provision(t, s)
	whole := time.Since(start)
	r.destroy(t, g)
	r.nothingRemains(t, before, s.ID)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for i := range r.e.rounds() {
		mode := ""
		if i%2 == 0 {
			mode = r.s.Networks[0]
		}
		s := r.connected(t, r.spec(t, r.e.Provisionings[0], 1), mode)
		after := time.Duration(rnd.Float64() * 1.1 * float64(whole))
		if err := r.attempt(t, s, after); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cancelled after %v: %v, want the context's error in it", after, err)
		}
	}
}
