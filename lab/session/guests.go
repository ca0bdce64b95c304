//go:build linux

package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/cgroup"
	"tare/lab/crowd"
	"tare/lab/device"
	"tare/lab/engine"
	"tare/lab/engine/bare"
	"tare/lab/host"
	"tare/lab/image"
	"tare/lab/journal"
	"tare/lab/network"
	"tare/lab/proc"
	"tare/lab/registry"
	"tare/lab/remote"
	"tare/lab/ruler"
	"tare/lab/setting"
	"tare/lab/trace"
	"tare/lab/workload"
	"tare/notebook"
)

// Provision implements crowd.Host: it makes the guest on a host of the treatment's size.
func (l *Lab) Provision(ctx context.Context, w crowd.Want) (crowd.Guest, error) {
	shared, leave, err := l.share(w)
	if err != nil {
		return nil, err
	}
	g, err := l.provision(ctx, w, shared)
	if err != nil {
		if leave != nil {
			err = errors.Join(err, leave(context.WithoutCancel(ctx)))
		}
		return nil, err
	}
	g.leave = leave
	return g, nil
}

// Seats implements crowd.Host.
func (l *Lab) Seats(t notebook.Treatment) (int, error) {
	all, err := host.ChooseSeats(l.now(), int(math.Ceil(t.Instance.Cores)))
	return len(all), err
}

// Reads implements measure.Lab: the image's root and the work's files, or what the engine reads instead of them.
func (l *Lab) Reads(ctx context.Context, t notebook.Treatment, w *workload.Ready) (paths []string, err error) {
	_, e, err := l.engineOf(t)
	if err != nil {
		return nil, err
	}
	if !notebook.PullOf(t).None() {
		if _, paths, err = l.registry.Push(ctx, &w.Image.Tree, notebook.PullOf(t)); err != nil { // Prepare has pushed it
			return nil, err
		}
		if w.Work != nil {
			paths = append(slices.Clone(paths), w.Work.Dir)
		}
		return paths, nil
	}
	if r, ok := e.(engine.Reads); ok {
		return r.Reads(ctx, engine.Spec{Image: w.Image, Work: w.Work, System: w.Workload.System, Network: &engine.Network{Mode: t.Network}})
	}
	paths = append(paths, w.Image.Dir)
	if w.Work != nil {
		paths = append(paths, w.Work.Dir)
	}
	return paths, nil
}

// Journal implements measure.Lab.
func (l *Lab) Journal() *journal.Journal { return l.env.Journal }

// provision makes the wanted guest, with a folder that it shares; "" for none. Setting the host for the treatment is not a part of the guest's start.
func (l *Lab) provision(ctx context.Context, w crowd.Want, shared string) (g guest, err error) {
	t, work := w.Treatment, w.Work.Workload
	notes, err := l.sizeFor(ctx, t, work.Service != nil)
	if err != nil {
		return g, err
	}
	if err := l.set.to(ctx, l.env.Journal, setting.For(t)); err != nil {
		return g, err
	}
	k, e, s, err := l.spec(w)
	if err != nil {
		return g, err
	}
	if s.Network, err = l.network(ctx, k, t, w.Work); err != nil {
		return g, err
	}
	if s.Pull, err = l.pulls(ctx, e, t, w.Work.Image); err != nil {
		return g, err
	}
	s.Shared, s.Moments = shared, w.Moments
	s.Moments.Begin()
	driven, err := e.Provision(ctx, s)
	if errors.Is(err, unix.ENOMEM) {
		released, rerr := l.release(ctx)
		if rerr != nil {
			return g, errors.Join(err, rerr)
		}
		if released {
			return l.provision(ctx, w, shared) // release withholds no memory for this instance again
		}
	}
	if err != nil {
		return g, err
	}
	made := l.guest(driven, t.Instance.Cores, s.CPUs)
	made.name, made.unsaved = k.String(), cmp.Or(k.Unsaved, "its engine cannot save guests")
	made.env = s.Devices.Env
	made.notes, made.unseen = notes, notebook.HasMachine(t.Platform)
	return made, nil
}

// spec is the wanted guest, without its network, and the engine that makes it.
func (l *Lab) spec(w crowd.Want) (k engine.Kind, e engine.Driver, s engine.Spec, err error) {
	t, work := w.Treatment, w.Work
	if k, e, err = l.engineOf(t); err != nil {
		return k, nil, s, err
	}
	s = engine.Spec{
		ID: "tare-" + w.ID, Instance: t.Instance, Provisioning: t.Provisioning, Isolation: t.Isolation, Accelerator: t.Accelerator, Machine: t.Machine,
		Image: work.Image, Work: work.Work, System: work.Workload.System, Copied: notebook.FactorRoot.Of(t) == notebook.RootCopied,
	}
	if s.Devices, err = devicesOf(t); err != nil {
		return k, nil, s, err
	}
	if k.Binds(t.Provisioning) {
		all, err := host.ChooseSeats(l.now(), int(math.Ceil(t.Instance.Cores)))
		if err != nil {
			return k, nil, s, err
		}
		s.CPUs = all[w.Seat%len(all)]
	} else if work.Workload.Load != nil && l.away == nil && t.Provisioning == notebook.Vanilla {
		own, _, err := l.divide(t)
		if err != nil {
			return k, nil, s, err
		}
		s.CPUs = own
	}
	return k, e, s, nil
}

// devicesOf are the devices of the treatment's guests, as the host describes them now.
func devicesOf(t notebook.Treatment) (e device.Edits, err error) {
	if names := notebook.FactorDevices.Of(t); names != "" {
		return device.Find(device.Dirs, strings.Split(names, ","))
	}
	return e, nil
}

// network is how the treatment's guest is connected; nil leaves it to the engine.
func (l *Lab) network(ctx context.Context, k engine.Kind, t notebook.Treatment, w *workload.Ready) (*engine.Network, error) {
	n := &engine.Network{Mode: t.Network}
	if w.Workload.Service != nil {
		n.Port = w.Workload.Service.Port
		if l.away != nil {
			n.Here = l.away.Here()
		}
	}
	if n.Mode == "" {
		n.Mode = k.Connected(t.Isolation, n.Port != 0)
	}
	switch n.Mode {
	case "":
		return nil, nil
	case notebook.NetNone:
		return n, nil
	}
	b, err := l.bridged(ctx)
	if err != nil {
		return nil, err
	}
	if n.Bridge = b; k.Publishes && n.Mode == notebook.NetBridge && n.Port != 0 && l.away == nil {
		n.Published, err = network.FreePort(b.Host())
	}
	return n, err
}

func (l *Lab) bridged(ctx context.Context) (*network.Bridge, error) {
	if l.bridge == nil {
		b, err := network.Open(ctx, l.env.Journal)
		if err != nil {
			return nil, err
		}
		l.bridge = b
	}
	return l.bridge, nil
}

// LoadFrom makes all loads run on the machine of url, until the session is closed.
func (l *Lab) LoadFrom(ctx context.Context, url string) (err error) {
	l.away, err = remote.Open(ctx, url, filepath.Join(l.env.State, controlSocket), l.env.Ruler, l.say)
	return err
}

// Load makes the place of the load on the service in the treatment's guest: on the other machine if loads run there. Otherwise it
// is bare metal in its own network namespace, on the CPUs that divide gives it. It has the same root and files.
func (l *Lab) Load(ctx context.Context, t notebook.Treatment, id string, w *workload.Ready) (crowd.Guest, notebook.Load, error) {
	if l.away != nil {
		g, err := l.away.Place(ctx, w.Image, w.Work)
		if err != nil {
			return nil, notebook.Load{}, err
		}
		cpus := g.Ruler().Hello().CPUs
		return l.guest(g, float64(len(cpus)), cpus), notebook.Load{From: l.away.URL(), CPUs: cpus}, nil
	}
	b, err := l.bridged(ctx)
	if err != nil {
		return nil, notebook.Load{}, err
	}
	own, cpus, err := l.divide(t)
	if err != nil {
		return nil, notebook.Load{}, err
	}
	load := notebook.Load{CPUs: cpus, Shared: t.Provisioning == notebook.Whole || len(own) == 0}
	g, err := l.bareMetal().Provision(ctx, engine.Spec{
		ID: "tare-" + id + "-load", Instance: notebook.Instance{Cores: float64(len(load.CPUs))}, CPUs: load.CPUs, Image: w.Image, Work: w.Work,
		Network: &engine.Network{Mode: notebook.NetBridge, Bridge: b},
	})
	if err != nil {
		return nil, notebook.Load{}, err
	}
	return l.guest(g, float64(len(load.CPUs)), load.CPUs), load, nil
}

// divide divides the host's CPUs between a service's guest and its load. A bound guest has its own CPUs, and a guest with a quota has
// all that the load does not have. If it shared them, the scheduler could put it next to its load, and that by itself would make it faster or
// slower than bare metal. guest is nil if the host has no CPUs that only the load uses.
func (l *Lab) divide(t notebook.Treatment) (guest, load []int, err error) {
	h := l.now()
	all, err := host.ChooseCPUs(h, len(h.CPUs))
	if err != nil {
		return nil, nil, err
	}
	its, err := l.cpus(t)
	if err != nil {
		return nil, nil, err
	}
	if load = apart(h.CPUs, all, its); len(load) == 0 {
		return nil, all, nil
	}
	guest = slices.DeleteFunc(all, func(c int) bool { return slices.Contains(load, c) })
	slices.Sort(guest)
	return guest, load, nil
}

// apart chooses CPUs of all for a load, so that it disturbs a guest on the CPUs its as little as possible. They are on none of the guest's
// cores, whose other threads would take from the guest, unless the host has no more cores. They are at most half of the host's CPUs, so that a guest
// with a quota has some to choose from.
func apart(cpus []notebook.CPU, all, its []int) []int {
	cores := map[int]bool{}
	for _, c := range cpus {
		if slices.Contains(its, c.ID) {
			cores[c.Core] = true
		}
	}
	var other, beside []notebook.CPU
	for _, c := range cpus {
		switch {
		case !slices.Contains(all, c.ID) || slices.Contains(its, c.ID):
		case cores[c.Core]:
			beside = append(beside, c)
		default:
			other = append(other, c)
		}
	}
	if len(other) == 0 {
		other = beside
	}
	slices.SortFunc(other, func(a, b notebook.CPU) int { return cmp.Or(cmp.Compare(b.Core, a.Core), cmp.Compare(b.ID, a.ID)) })
	var load []int
	for _, c := range other[:min(len(other), max(len(all)/2, 1))] {
		load = append(load, c.ID)
	}
	slices.Sort(load)
	return load
}

// cpus are the CPUs of a guest of the treatment, if it is bound to any.
func (l *Lab) cpus(t notebook.Treatment) ([]int, error) {
	return host.ChooseCPUs(l.now(), int(math.Ceil(t.Instance.Cores)))
}

// guest is a driver's guest, as a study sees it.
type guest struct {
	engine.Guest
	kit   *trace.Kit
	cores float64
	cpus  []int               // that it may use
	notes []*notebook.Message // on its host
	env   []string            // environment that comes with its devices, for everything it runs

	name    string // name of its engine
	unsaved string // why the engine saves no guest

	leave func(context.Context) error // the folder that it shares; nil: none

	unseen bool // a virtual machine: the host sees its process, but not the processes inside
}

// Destroy removes the guest. With the last guest that shares a folder, it also removes the folder.
func (g guest) Destroy(ctx context.Context) error {
	err := g.Guest.Destroy(ctx)
	if err == nil && g.leave != nil {
		err = g.leave(ctx)
	}
	return err
}

// Facts are the driver's, and the notes.
func (g guest) Facts() engine.Facts {
	f := g.Guest.Facts()
	f.Notes = slices.Concat(f.Notes, g.notes)
	return f
}

// guest is a guest of this many cores, bound to the CPUs; without CPUs, it may use any that the host has now.
func (l *Lab) guest(g engine.Guest, cores float64, cpus []int) guest {
	if len(cpus) == 0 {
		for _, c := range l.now().CPUs {
			cpus = append(cpus, c.ID)
		}
	}
	return guest{Guest: g, kit: l.kit, cores: cores, cpus: cpus}
}

// Save implements engine.Saver.
func (g guest) Save(ctx context.Context) (engine.Saved, error) {
	if s, ok := g.Guest.(engine.Saver); ok {
		return s.Save(ctx)
	}
	return engine.Saved{}, &engine.UnsupportedError{Engine: g.name, What: "a saved state", Why: g.unsaved}
}

// Restore implements it.
func (g guest) Restore(ctx context.Context, m *engine.Moments) error {
	return g.Guest.(engine.Saver).Restore(ctx, m) // only a Saver was saved
}

// Ruler implements crowd.Guest.
func (g guest) Ruler() crowd.Ruler {
	if len(g.env) > 0 {
		return equipped{g.Guest.Ruler(), g.env}
	}
	return g.Guest.Ruler()
}

// equipped is the ruler of a guest whose devices come with an environment.
type equipped struct {
	*ruler.Client
	env []string
}

// Run implements crowd.Ruler. The order's environment takes precedence.
func (r equipped) Run(ctx context.Context, o ruler.Order) (ruler.Result, time.Duration, error) {
	o.Env = slices.Concat(o.Env, r.env)
	return r.Client.Run(ctx, o)
}

// Machine implements crowd.Guest.
func (g guest) Machine() (engine.Machine, bool) {
	m, is := g.Guest.(engine.Machine)
	return m, is
}

// watcher is a driver's guest that can tell whether a trial stayed on its CPUs.
type watcher interface{ Watch() engine.Watch }

// Watch implements crowd.Guest. For a virtual machine the host sees only threads, and each is bound to CPUs.
func (g guest) Watch() engine.Watch {
	if w, is := g.Guest.(watcher); is && !g.unseen {
		return w.Watch()
	}
	return nil
}

// Used implements crowd.Guest.
func (g guest) Used() (time.Duration, error) {
	pids, err := g.Processes()
	if err != nil {
		return 0, err
	}
	return proc.Used(pids)
}

// Throttled implements crowd.Guest. All processes of a container are below one quota.
func (g guest) Throttled() (time.Duration, error) {
	pids, err := g.Processes()
	if err != nil || len(pids) == 0 {
		return 0, err
	}
	return cgroup.Throttled(pids[0])
}

// Resident implements crowd.Guest.
func (g guest) Resident() (sum int64, err error) {
	pids, err := g.Processes()
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		r, err := proc.RollupOf(pid)
		if err != nil && !proc.Ended(err) {
			return 0, err
		}
		sum += r.RSS
	}
	return sum, nil
}

// Demanded implements crowd.Guest.
func (g guest) Demanded() (proc.Demand, error) {
	pids, err := g.Processes()
	if err != nil {
		return proc.Demand{}, err
	}
	return proc.Demanded(pids)
}

// Prepare makes what all guests of the treatment need, such as an engine's image or a disk, so that no guest's start includes it.
func (l *Lab) Prepare(ctx context.Context, t notebook.Treatment, root *image.Image) error {
	_, e, err := l.engineOf(t)
	if err != nil {
		return err
	}
	if of := notebook.PullOf(t); !of.None() {
		if l.registry == nil {
			if l.registry, err = registry.Start(ctx, l.env.Journal, l.env.State); err != nil {
				return err
			}
		}
		_, _, err = l.registry.Push(ctx, &root.Tree, of)
		return err
	}
	if p, ok := e.(engine.Preparer); ok {
		return p.Prepare(ctx, root)
	}
	return nil
}

// pulls returns the reference of the image that the start of the treatment's guest pulls, which the engine has forgotten; "" where it pulls none.
func (l *Lab) pulls(ctx context.Context, e engine.Driver, t notebook.Treatment, root *image.Image) (string, error) {
	of := notebook.PullOf(t)
	if of.None() {
		return "", nil
	}
	reference, _, err := l.registry.Push(ctx, &root.Tree, of) // Prepare has pushed it
	if err != nil {
		return "", err
	}
	return reference, e.(engine.Puller).Forget(ctx, reference)
}

// bareMetal is the engine for work next to guests, or before them.
func (l *Lab) bareMetal() engine.Driver { return l.engine(bare.Kind, "") }

// Execute implements workload.Bench: one order on bare metal with all of the host's CPUs.
func (l *Lab) Execute(ctx context.Context, root *image.Image, work *image.Tree, o ruler.Order) (r ruler.Result, scratch string, release func() error, err error) {
	if err := errors.Join(l.withhold(ctx, 0, nil), l.size(ctx, 0)); err != nil {
		return r, "", nil, err
	}
	n := len(l.host.CPUs)
	cpus, err := host.ChooseCPUs(l.host, n)
	if err != nil {
		return r, "", nil, err
	}
	g, err := l.bareMetal().Provision(ctx, engine.Spec{
		ID: fmt.Sprintf("tare-bench-%d", os.Getpid()), Instance: notebook.Instance{Cores: float64(n)}, CPUs: cpus, Image: root, Work: work,
		Network: &engine.Network{Mode: notebook.NetNone}, // what it starts there must not reach the host's network
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
