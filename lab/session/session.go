//go:build linux

// Package session is the laboratory put together: the state that Tare keeps on a host, the drivers of its platforms, and
// what the host can do. The packages below it each know one thing; this one knows which driver makes which
// treatment.
package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/engine"
	"tare/lab/engine/bare"
	"tare/lab/engine/cn"
	"tare/lab/engine/layers"
	"tare/lab/engine/qemu"
	"tare/lab/engine/vmcn"
	"tare/lab/host"
	"tare/lab/image"
	"tare/lab/journal"
	"tare/lab/network"
	"tare/lab/programs"
	"tare/lab/ruler"
	"tare/lab/study"
	"tare/lab/trace"
	"tare/lab/workload"
	"tare/notebook"
)

// StateDir is where Tare keeps its images, its journal and its guests' folders. The environment's TARE_STATE, an
// absolute path, takes its place.
const StateDir = "/var/lib/tare"

// inputsDir is where fetched inputs are kept, below the state folder.
const inputsDir = "inputs"

func stateDir() (string, error) {
	dir := StateDir
	if d := os.Getenv("TARE_STATE"); d != "" {
		dir = d
	}
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("TARE_STATE=%s: an absolute path was expected", dir)
	}
	return dir, nil
}

// Lab is a host that Tare may measure on, as long as it is open. Only one is open on a host at a time: two would
// measure each other.
type Lab struct {
	state   string
	tare    string // path of this program, and of those that guests get
	ruler   string
	init    string
	lock    *os.File
	journal *journal.Journal
	store   *image.Store
	host    notebook.Host
	say     image.Progress

	bridge  *network.Bridge             // made when it is first needed
	sized   int                         // how many CPUs are online; 0: all; halfway: not known
	regrow  func(context.Context) error // brings those back that are not
	shrinks map[int]string              // by number of CPUs: why the host cannot be made so small; "" if it can

	mu      sync.Mutex
	vms     map[string]engine.Driver // by platform and accelerator
	accel   map[string]notebook.Capability
	refused map[string]string // by engine: why not

	kit *trace.Kit // of a study that is explained; else nil
}

// Open takes the host for measuring, undoes what a run that died has left, and looks at what the host is. Progress
// is told of what takes long.
func Open(ctx context.Context, say image.Progress) (_ *Lab, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("root is needed to measure: for chroot, mounts, cgroups, CPU sets and containers; run it with sudo (what reads results needs none)")
	}
	l := &Lab{say: say, vms: map[string]engine.Driver{}, accel: map[string]notebook.Capability{}, refused: map[string]string{}, shrinks: map[int]string{}}
	if l.state, err = stateDir(); err != nil {
		return nil, err
	}
	if l.tare, err = os.Executable(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	if l.lock, err = takeHost(l.state); err != nil {
		return nil, err
	}
	undone, err := recoverHost(ctx, l.state)
	if err == nil {
		var half []string
		half, err = workload.Sweep(l.Cache())
		undone = append(undone, half...)
	}
	for _, u := range undone {
		say("undone, left by a run that died: " + u)
	}
	if err != nil {
		return nil, err
	}
	if l.ruler, err = programs.File(l.state, programs.Ruler); err != nil {
		return nil, err
	}
	if l.init, err = programs.File(l.state, programs.Init); err != nil {
		return nil, err
	}
	if l.store, err = image.OpenStore(filepath.Join(l.state, "images")); err != nil {
		return nil, err
	}
	if l.journal, err = journal.Open(l.state); err != nil {
		return nil, err
	}
	if l.host, err = host.Inspect(ctx); err != nil {
		return nil, err
	}
	l.host.Capabilities = host.Capabilities(ctx)
	return l, l.tryRuntimes(ctx, l.host.Capabilities)
}

// tryRuntimes replaces what is known of the OCI runtimes that are installed by what they do: each runs a container.
func (l *Lab) tryRuntimes(ctx context.Context, all []notebook.Capability) error {
	for i, c := range all {
		if (c.Name == host.CapCrun || c.Name == host.CapRunc) && c.Answer == notebook.Supported {
			all[i] = l.runtime(c.Name).Probe(ctx)
		}
	}
	return ctx.Err()
}

// takeHost holds a lock until the file is closed.
func takeHost(state string) (*os.File, error) {
	if err := os.MkdirAll(state, 0o755); err != nil {
		return nil, err
	}
	path := filepath.Join(state, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		who := make([]byte, 20)
		n, _ := f.ReadAt(who, 0) // only for the message
		f.Close()
		return nil, fmt.Errorf("another tare (process %s) measures on this host, and two would measure each other: wait for it, or end it", strings.TrimSpace(string(who[:n])))
	}
	if err := f.Truncate(0); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := fmt.Fprintln(f, os.Getpid()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// undoers are the ways to undo what the drivers journal.
func undoers() map[string]journal.Undo {
	all := map[string]journal.Undo{}
	for _, some := range []map[string]journal.Undo{bare.Undo(), cn.Undo(), layers.Undo(), qemu.Undo(), network.Undo(), host.Undo()} {
		for kind, u := range some {
			all[kind] = u
		}
	}
	return all
}

func recoverHost(ctx context.Context, state string) (done []string, err error) {
	entries, err := journal.Recover(ctx, state, undoers())
	for _, e := range entries {
		done = append(done, e.Kind+" "+e.Target)
	}
	if err != nil {
		return done, fmt.Errorf("what an earlier run left cannot be undone: %w", err)
	}
	return done, nil
}

// Clean undoes and removes whatever runs that died have left, and says what.
func Clean(ctx context.Context) (done []string, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("root is needed to undo what a run left: run it with sudo")
	}
	state, err := stateDir()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(state); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	lock, err := takeHost(state)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if done, err = recoverHost(ctx, state); err != nil {
		return done, err
	}
	store, err := image.OpenStore(filepath.Join(state, "images"))
	if err != nil {
		return done, err
	}
	half, err := store.Sweep()
	done = append(done, half...)
	if err != nil {
		return done, err
	}
	if half, err = programs.Sweep(state); err != nil {
		return append(done, half...), err
	}
	done = append(done, half...)
	half, err = workload.Sweep(filepath.Join(state, inputsDir))
	return append(done, half...), err
}

// Close gives the host back. Its error names what could not be undone.
func (l *Lab) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	errs := []error{l.size(ctx, 0)}
	if l.kit != nil {
		errs = append(errs, l.kit.Close())
	}
	if l.bridge != nil {
		errs = append(errs, l.bridge.Close(ctx))
	}
	if l.journal != nil {
		errs = append(errs, l.journal.Close())
	}
	if l.lock != nil {
		errs = append(errs, l.lock.Close())
	}
	return errors.Join(errs...)
}

// closeTimeout bounds the giving back of what the lab itself changed.
const closeTimeout = 30 * time.Second

// Host is the machine as found.
func (l *Lab) Host() notebook.Host { return l.host }

// Store is where images are kept.
func (l *Lab) Store() *image.Store { return l.store }

// Cache is a folder for inputs that were fetched.
func (l *Lab) Cache() string { return filepath.Join(l.state, inputsDir) }

// config is what drivers of VMs are made with.
func (l *Lab) config(accel string) (c qemu.Config, err error) {
	c = qemu.Config{StateDir: l.state, Journal: l.journal, Init: l.init, Ruler: l.ruler, Accelerator: accel}
	if l.kit != nil {
		c.Tracer, err = programs.File(l.state, programs.Tracer)
	}
	return c, err
}

// boots says of each accelerator whether a VM really boots with it; asked once, and all at the same time.
func (l *Lab) boots(ctx context.Context, accels ...string) []notebook.Capability {
	l.mu.Lock()
	defer l.mu.Unlock()
	answers := make([]notebook.Capability, len(accels))
	var wg sync.WaitGroup
	for i, accel := range accels {
		if c, ok := l.accel[accel]; ok {
			answers[i] = c
			continue
		}
		l.say("booting a small guest with " + accel)
		wg.Go(func() { answers[i] = qemu.Accelerator(ctx, l.state, l.init, accel) })
	}
	wg.Wait()
	for i, accel := range accels {
		if _, ok := l.accel[accel]; !ok {
			l.accel[accel] = answers[i]
			l.host.Capabilities = append(l.host.Capabilities, answers[i])
		}
	}
	return answers
}

// Accelerator says which accelerator a VM gets.
func (l *Lab) Accelerator(ctx context.Context, want string, emulate bool) (string, error) {
	ask := []string{want}
	switch {
	case want == "auto" && emulate:
		ask = []string{notebook.KVM, notebook.TCG}
	case want == "auto":
		ask = []string{notebook.KVM}
	}
	var why []string
	for i, c := range l.boots(ctx, ask...) {
		if c.Answer == notebook.Supported {
			return ask[i], nil
		}
		why = append(why, "no VM with "+ask[i]+": "+c.Why) // what to do about it, the doctor says
	}
	if want == "auto" && !emulate {
		why = append(why, "emulation is not allowed (--accel tcg allows it)")
	}
	return "", errors.New(strings.Join(why, "; "))
}

// spareMemory is what is left of the host's memory for itself when a guest is sized, in bytes.
const spareMemory = 512 << 20

// Refuses says why the host cannot do the treatment; "" if it can.
func (l *Lab) Refuses(ctx context.Context, t notebook.Treatment) string {
	cores, inst := t.Instance.Cores, t.Instance
	n := len(l.host.CPUs)
	switch {
	case t.HostCores > n:
		return fmt.Sprintf("it is about a host with %d CPUs and this one has %d", t.HostCores, n)
	case cores > float64(n):
		return fmt.Sprintf("it needs %g cores and the host has %d", cores, n)
	case t.HostCores > 0 && cores > float64(t.HostCores):
		return fmt.Sprintf("it needs %g cores and the host is made one of %d", cores, t.HostCores)
	}
	if inst.Memory > l.host.Memory-spareMemory {
		return fmt.Sprintf("it needs %.3g GB of memory and the host has %.3g GB, of which half a GB stays the host's own",
			float64(inst.Memory)/(1<<30), float64(l.host.Memory)/(1<<30))
	}
	whole := cores == math.Trunc(cores)
	switch {
	case t.Platform == notebook.BM && !whole:
		return "bare metal has no part of a core: that needs a quota"
	case t.Engine == notebook.LayersEngine && !whole:
		return "a rung of the isolation ladder has bare metal's cores, and that has no part of one"
	case t.Platform == notebook.CN && t.Provisioning == notebook.Pinned && !whole:
		return "a CPU set has no part of a core: that needs a quota (vanilla)"
	case (t.Platform == notebook.VM || t.Platform == notebook.VMCN) && !whole:
		return "a VM has no part of a vCPU"
	case t.Platform == notebook.VM && t.Network == notebook.NetHost:
		return "a VM has no part in the host's network"
	}
	if t.HostCores > 0 {
		if why := l.cannotShrink(ctx, t.HostCores); why != "" {
			return why
		}
	}
	if t.Platform == notebook.CN {
		l.tryEngine(ctx, t.Engine)
		for _, c := range l.host.Capabilities {
			if c.Name == t.Engine && c.Answer != notebook.Supported {
				return strings.TrimSuffix(c.Why+"; "+c.Do, "; ")
			}
		}
	}
	return ""
}

// triedLate are the engines that are tried when something is to be run with them, and by the doctor: most hosts have not got them.
var triedLate = []string{"lxc", "gvisor"}

// tryEngine has an engine run a container, once, that is not among those which are tried when the lab is opened.
func (l *Lab) tryEngine(ctx context.Context, name string) {
	known := slices.ContainsFunc(l.host.Capabilities, func(c notebook.Capability) bool { return c.Name == name })
	if !known && slices.Contains(triedLate, name) {
		l.host.Capabilities = append(l.host.Capabilities, l.runtime(name).Probe(ctx))
	}
}

// Provision makes a guest for the treatment, on a host of the treatment's size.
func (l *Lab) Provision(ctx context.Context, t notebook.Treatment, id string, w *workload.Ready) (study.Guest, error) {
	if err := l.size(ctx, t.HostCores); err != nil {
		return nil, err
	}
	s := engine.Spec{ID: "tare-" + id, Instance: t.Instance, Provisioning: t.Provisioning, Isolation: t.Isolation, Image: w.Image, Work: w.Work}
	var err error
	if t.Platform == notebook.BM || t.Engine == notebook.LayersEngine || t.Provisioning == notebook.Pinned {
		if s.CPUs, err = l.cpus(t); err != nil {
			return nil, err
		}
	}
	if s.Network, err = l.network(ctx, t, w); err != nil {
		return nil, err
	}
	d, err := l.driver(t)
	if err != nil {
		return nil, err
	}
	g, err := d.Provision(ctx, s)
	if err != nil {
		return nil, err
	}
	return l.guest(g, t.Instance.Cores, s.CPUs), nil
}

// network is how the treatment's guest is connected; nil where that is left to its engine.
func (l *Lab) network(ctx context.Context, t notebook.Treatment, w *workload.Ready) (*engine.Network, error) {
	n := &engine.Network{Mode: t.Network}
	if w.Workload.Service != nil {
		n.Port = w.Workload.Service.Port
	}
	if t.Platform == notebook.BM && n.Port != 0 {
		n.Mode = notebook.NetHost
	}
	// The ladder's highest rungs are on the bridge also where nobody asks them.
	if n.Mode == "" && (layers.Has(t.Isolation, "bridge") || t.Isolation == notebook.IsolationFull) {
		n.Mode = notebook.NetBridge
	}
	switch n.Mode {
	case "":
		return nil, nil
	case notebook.NetNone:
		return n, nil
	}
	b, err := l.bridged(ctx)
	n.Bridge = b
	return n, err
}

func (l *Lab) bridged(ctx context.Context) (*network.Bridge, error) {
	if l.bridge == nil {
		b, err := network.Open(ctx, l.journal)
		if err != nil {
			return nil, err
		}
		l.bridge = b
	}
	return l.bridge, nil
}

// Load makes the place from which the service in the treatment's guest is asked: bare metal in a network namespace of
// its own, with the same root and files, on CPUs that the guest was not given, of other cores where the host has such.
func (l *Lab) Load(ctx context.Context, t notebook.Treatment, id string, w *workload.Ready) (study.Guest, notebook.Load, error) {
	b, err := l.bridged(ctx)
	if err != nil {
		return nil, notebook.Load{}, err
	}
	h := l.now()
	all, err := host.ChooseCPUs(h, len(h.CPUs))
	if err != nil {
		return nil, notebook.Load{}, err
	}
	its, err := l.cpus(t)
	if err != nil {
		return nil, notebook.Load{}, err
	}
	load := notebook.Load{CPUs: apart(h.CPUs, all, its)}
	load.Shared = t.Provisioning == notebook.Vanilla // its cores are any of the host's
	if len(load.CPUs) == 0 {
		load.CPUs, load.Shared = all, true
	}
	g, err := l.bareMetal().Provision(ctx, engine.Spec{
		ID: "tare-" + id + "-load", Instance: notebook.Instance{Cores: float64(len(load.CPUs))}, CPUs: load.CPUs, Image: w.Image, Work: w.Work,
		Network: &engine.Network{Mode: notebook.NetBridge, Bridge: b},
	})
	if err != nil {
		return nil, notebook.Load{}, err
	}
	return l.guest(g, float64(len(load.CPUs)), load.CPUs), load, nil
}

// apart are those of all that a load has which is to disturb a guest on its CPUs the least: on none of the guest's
// cores, whose other threads would take from it; on those only where the host has no more.
func apart(cpus []notebook.CPU, all, its []int) []int {
	cores := map[int]bool{}
	for _, c := range cpus {
		if slices.Contains(its, c.ID) {
			cores[c.Core] = true
		}
	}
	var other, beside []int
	for _, c := range cpus {
		switch {
		case !slices.Contains(all, c.ID) || slices.Contains(its, c.ID):
		case cores[c.Core]:
			beside = append(beside, c.ID)
		default:
			other = append(other, c.ID)
		}
	}
	if len(other) == 0 {
		other = beside
	}
	slices.Sort(other)
	return other
}

// cpus are the CPUs that a guest of the treatment gets which is bound to any.
func (l *Lab) cpus(t notebook.Treatment) ([]int, error) {
	return host.ChooseCPUs(l.now(), int(math.Ceil(t.Instance.Cores)))
}

// now is the host with the CPUs that are online now.
func (l *Lab) now() notebook.Host {
	h := l.host
	if l.sized > 0 {
		stay, _, err := host.Smaller(h, l.sized)
		if err != nil { // it was made so small
			panic(err)
		}
		h.CPUs = slices.DeleteFunc(slices.Clone(h.CPUs), func(c notebook.CPU) bool { return !slices.Contains(stay, c.ID) })
	}
	return h
}

// size makes the host one of so many CPUs; 0: of all that it has.
func (l *Lab) size(ctx context.Context, n int) error {
	if n == len(l.host.CPUs) {
		n = 0
	}
	if n == l.sized {
		return nil
	}
	if l.regrow != nil {
		l.sized = halfway
		if err := l.regrow(ctx); err != nil {
			return err
		}
		l.regrow, l.sized = nil, 0
	}
	if n == 0 {
		return nil
	}
	_, leave, err := host.Smaller(l.host, n)
	if err != nil {
		return err
	}
	if l.regrow, err = host.TakeOffline(ctx, l.journal, leave); err != nil {
		if l.regrow != nil {
			l.sized = halfway
		}
		return err
	}
	l.sized = n
	return nil
}

// halfway is the size of a host whose CPUs could not be brought back: it is no treatment's, so nothing is measured
// before another try to bring them back has worked.
const halfway = -1

// cannotShrink says why the host cannot be made one of n CPUs; it is tried once.
func (l *Lab) cannotShrink(ctx context.Context, n int) string {
	why, known := l.shrinks[n]
	if !known {
		if err := errors.Join(l.size(ctx, n), l.size(ctx, 0)); err != nil {
			why = fmt.Sprintf("the host cannot be made one of %d CPUs: %v", n, err)
		}
		l.shrinks[n] = why
	}
	return why
}

// guest is a driver's guest as a study sees it.
type guest struct {
	engine.Guest
	kit   *trace.Kit
	cores float64
	cpus  []int // that it may use
}

// guest is one of so many cores, bound to the CPUs; none: to any of those that the host has now.
func (l *Lab) guest(g engine.Guest, cores float64, cpus []int) guest {
	if len(cpus) == 0 {
		for _, c := range l.now().CPUs {
			cpus = append(cpus, c.ID)
		}
	}
	return guest{g, l.kit, cores, cpus}
}

func (g guest) Ruler() study.Ruler { return g.Guest.Ruler() }

func (l *Lab) driver(t notebook.Treatment) (engine.Driver, error) {
	switch t.Platform {
	case notebook.BM:
		return l.bareMetal(), nil
	case notebook.CN:
		if t.Engine == notebook.LayersEngine {
			return &layers.Driver{Journal: l.journal, State: l.state, Entry: l.tare, Ruler: l.ruler}, nil
		}
		if t.Engine == "docker" {
			return &cn.Docker{Journal: l.journal, State: l.state, Ruler: l.ruler}, nil
		}
		return l.runtime(t.Engine), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := t.Platform + t.Accelerator
	if d, ok := l.vms[key]; ok {
		return d, nil
	}
	config, err := l.config(t.Accelerator)
	if err != nil {
		return nil, err
	}
	var d engine.Driver
	if t.Platform == notebook.VMCN {
		d, err = vmcn.New(vmcn.Config{VM: config})
	} else {
		d, err = qemu.New(config)
	}
	if err != nil {
		return nil, err
	}
	l.vms[key] = d
	return d, nil
}

func (l *Lab) runtime(name string) cn.Engine { return cn.New(name, l.journal, l.state, l.ruler) }

// Stock makes what all guests of the treatment need, so that none of them pays for it: an engine's image, a disk.
func (l *Lab) Stock(ctx context.Context, t notebook.Treatment, root *image.Image) error {
	d, err := l.driver(t)
	if err != nil {
		return err
	}
	if p, ok := d.(interface {
		Prepare(context.Context, *image.Image) error
	}); ok {
		return p.Prepare(ctx, root)
	}
	return nil
}

func (l *Lab) bareMetal() *bare.Driver {
	return &bare.Driver{Journal: l.journal, State: l.state, Ruler: l.ruler}
}

// Prepare implements workload.Bench: one order on bare metal with all of the host's CPUs.
func (l *Lab) Prepare(ctx context.Context, root *image.Image, work *image.Tree, o ruler.Order) (r ruler.Result, scratch string, release func() error, err error) {
	if err := l.size(ctx, 0); err != nil {
		return r, "", nil, err
	}
	n := len(l.host.CPUs)
	cpus, err := host.ChooseCPUs(l.host, n)
	if err != nil {
		return r, "", nil, err
	}
	g, err := l.bareMetal().Provision(ctx, engine.Spec{
		ID: "tare-bench", Instance: notebook.Instance{Cores: float64(n)}, CPUs: cpus, Image: root, Work: work,
		Network: &engine.Network{Mode: notebook.NetNone}, // what it starts there meets nothing of the host's
	})
	if err != nil {
		return r, "", nil, err
	}
	release = func() error { return g.Destroy(context.WithoutCancel(ctx)) }
	if r, _, err = g.Ruler().Run(ctx, o); err != nil {
		return r, "", nil, errors.Join(err, release())
	}
	return r, g.(interface{ Scratch() string }).Scratch(), release, nil
}

// Doctor says what the host is and can do, found by trying it. Without root the answers are of what can be tried
// without it. A tare that measures meanwhile would be disturbed, so there must be none.
func Doctor(ctx context.Context, say image.Progress) (_ notebook.Host, err error) {
	if os.Geteuid() != 0 {
		h, err := host.Inspect(ctx)
		if err != nil {
			return h, err
		}
		h.Capabilities = host.Capabilities(ctx)
		for i, c := range h.Capabilities {
			if (c.Name == host.CapCrun || c.Name == host.CapRunc) && c.Answer == notebook.Supported {
				h.Capabilities[i] = notebook.Capability{Name: c.Name, Answer: notebook.Inconclusive,
					Why: "installed (" + c.Why + "); only root runs a container to find out", Do: "sudo tare doctor"}
			}
		}
		for _, name := range triedLate {
			h.Capabilities = append(h.Capabilities, notebook.Capability{Name: name, Answer: notebook.Inconclusive,
				Why: "only root runs a container to find out", Do: "sudo tare doctor"})
		}
		h.Capabilities = append(h.Capabilities, probes()...)
		for _, accel := range []string{notebook.KVM, notebook.TCG} {
			h.Capabilities = append(h.Capabilities, notebook.Capability{Name: accel, Answer: notebook.Inconclusive,
				Why: "only root boots a guest to find out", Do: "sudo tare doctor"})
		}
		return h, nil
	}
	l, err := Open(ctx, say)
	if err != nil {
		return notebook.Host{}, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for _, name := range triedLate {
		l.tryEngine(ctx, name)
	}
	l.host.Capabilities = append(l.host.Capabilities, probes()...)
	l.boots(ctx, notebook.KVM, notebook.TCG)
	return l.Host(), ctx.Err()
}
