package engine

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"tare/lab/image"
	"tare/lab/journal"
	"tare/notebook"
)

// Kind is an engine as it is registered: all that is known of it on any host, and how it is made ready on one.
type Kind struct {
	Platform string // notebook.BM, notebook.CN, notebook.VM or notebook.VMCN
	Name     string // as studies name it; empty where the platform has one engine that needs no name

	// Usual: this is what is meant by its platform where no engine is named and any will do.
	Usual bool
	// Provisionings are those that its guests can have. An engine without any binds every guest to its CPUs.
	Provisionings []string
	// Isolations are the rungs of the isolation ladder that its guests can be. An engine with rungs and without
	// provisionings makes nothing else.
	Isolations []string
	// Accelerators are those that its guests can have, the preferred one first and the emulation that any host can do last;
	// those between are taken only where they are asked for by name. None for one that needs no such thing.
	Accelerators []string
	// Kernel reads a file that is to be its guests' kernel (Env.Kernel), and refuses what is none; nil for one whose guests
	// have no kernel to choose.
	Kernel func(path string) (notebook.Kernel, error)
	// Ahead: its guests can be made first and started later; it is a Creator.
	Ahead bool
	// Copies: each of its guests can have a copy of the image's root to itself (Spec.Copied).
	Copies bool
	// Systems: its guests can be whole systems, with an init of their own (Spec.System).
	Systems bool
	// Fractions: a vanilla guest can have a part of a core.
	Fractions bool
	// Networks are the ways in which its guests can be connected; none stands for a bridge, the host's network, and only the loopback.
	Networks []string

	// Machines: its guests are virtual machines, whose configuration can be chosen in addition to their size (notebook.Machine).
	Machines bool

	// Network is how a guest is connected where nothing else is asked for; "" leaves it to the engine. isolation is the
	// guest's rung, and service says that a service in it has to be asked.
	Network func(isolation string, service bool) string

	// Publishes: a service on a bridge is reached at a port of the host, so that one guest alone can have it at a time.
	Publishes bool
	// RandomAddresses says why what runs in its guests cannot ask for addresses that are not random (personality(2)); "" where it can.
	RandomAddresses string

	// NoDevices says why its guests cannot have devices of the host (Spec.Devices); "" where they can.
	NoDevices string
	// RunsHooks: programs of the host that come with a device (device.Hook) run while its guests are made.
	RunsHooks bool

	// Unsaved says why its guests cannot be saved and restored (Saver); "" where they can. Saving is that of Capabilities which asks whether they can
	// on this host; "" where nothing has to be tried.
	Unsaved, Saving string

	// TracesInside: the guest's kernel is its own, and its ruler can load tracers there.
	TracesInside bool
	// Untraceable says why neither the host nor the ruler can see what happens in a guest; "" where one of them can.
	Untraceable string

	// Limitations are the parts of the contract that it does not keep.
	Limitations []Limitation
	// Capabilities are the questions that a doctor asks about it (Probe). A guest with an accelerator needs the one
	// of that name, and any other guest the first; none: the engine is Tare's own and runs wherever Tare does.
	Capabilities []string
	// Program is looked up in PATH, and makes and holds its containers (Hold); Install says how it is had. "" for an engine that is
	// no such program.
	Program, Install string
	// Packages are Debian's that have it, for a machine that is made to measure; none: it is Tare's own, or Debian has it not.
	Packages []string
	// Daemons are the programs that run before any guest does and make guests, with all that they start.
	Daemons []string

	// Takes is about how many seconds making and removing a guest takes: from the fastest tenth on an idle host to the slowest tenth on a busy
	// one, of what was measured on hosts of two cores. TakesEmulated is the same for a guest of an emulated machine.
	Takes, TakesEmulated notebook.Span

	// New makes the engine ready to be used on a host. It looks for nothing there yet.
	New func(Env) Driver
	// Undo gives the ways to undo what the engine journals.
	Undo func() map[string]journal.Undo
	// Lasting are those of its kinds in the journal that survive a reboot of the host.
	Lasting []string
}

// Env is what engines are given to work with on a host.
type Env struct {
	// Journal has every change that is made on the host.
	Journal *journal.Journal
	// State is the folder below which the guests' folders and all else that the engines keep are made. A guest of bare
	// metal writes there, so it should be on the file system that the images are on.
	State string
	// Ruler is the path of the ruler's program, Init that of the program that a virtual machine boots into, and Tracer that
	// of the one that traces trials inside it; "" where none is traced.
	Ruler, Init, Tracer string
	// Entry is the path of the program that makes a process's layers of isolation before it becomes the ruler (layers.Main).
	Entry string
	// Kernel is the path of a file with the guests' kernel; "": the engine's own choice.
	Kernel string
}

// Cabled are the Networks of an engine whose containers have a network namespace that Tare connects.
var Cabled = []string{notebook.NetBridge, notebook.NetMacvlan, notebook.NetHost, notebook.NetNone}

// Prober is an engine that answers for its kind's Capabilities in a way of its own, by trying the thing.
type Prober interface {
	Probe(ctx context.Context, capability string) notebook.Capability
}

// Chooser is an engine of whose treatments a host may do some and not others.
type Chooser interface {
	// Supports says why this host cannot do the treatment, which it tries; nil: it can.
	Supports(ctx context.Context, t notebook.Treatment) error
}

// Preparer is an engine whose guests need what can be made once for all of them.
type Preparer interface {
	// Prepare makes what all guests with the image need, so that none of them pays for it. Provision does it too.
	Prepare(ctx context.Context, img *image.Image) error
}

// String names the kind in messages: "bm", "cn with crun".
func (k Kind) String() string {
	if k.Name == "" || k.Name == k.Platform {
		return k.Platform
	}
	return k.Platform + " with " + k.Name
}

// Unsupported is the error for what the kind cannot give.
func (k Kind) Unsupported(what, why string) error {
	return &UnsupportedError{Engine: k.String(), What: what, Why: why}
}

// Supports says what of the treatment the engine can give on no host, as an *UnsupportedError; nil: nothing.
func (k Kind) Supports(t notebook.Treatment) error {
	cores := t.Instance.Cores
	whole := cores == math.Trunc(cores)
	switch {
	case !whole && !k.Fractions:
		return k.Unsupported(fmt.Sprintf("%g cores", cores), "it gives whole cores only; a part of a core needs a container's CPU quota")
	case !whole && t.Provisioning == notebook.Pinned:
		return k.Unsupported(fmt.Sprintf("%g cores, %s", cores, t.Provisioning), "a CPU set has whole CPUs only; ask for "+notebook.Vanilla+" provisioning, or for whole cores")
	case t.Machine != "" && !k.Machines:
		return k.Unsupported("a machine "+t.Machine, "its guests are no virtual machines")
	case notebook.FactorRoot.Of(t) == notebook.RootCopied && !k.Copies:
		return k.Unsupported("a copy of the image's root for each guest", "its guests read the image where the engine, the machine's disk or the host has it")
	case notebook.FactorDevices.Of(t) != "" && k.NoDevices != "":
		return k.Unsupported("the device "+notebook.FactorDevices.Of(t), k.NoDevices)
	case t.Network != "" && !slices.Contains(k.NetworkModes(), t.Network):
		return k.Unsupported("the network "+t.Network, "its guests can be connected by "+strings.Join(k.NetworkModes(), ", "))
	}
	return nil
}

// Check says what is wrong in the specification of a guest of the kind; an *UnsupportedError says what no such guest can be.
func (k Kind) Check(s Spec) error {
	if err := k.Supports(s.Treatment(k)); err != nil {
		return err
	}
	if s.System {
		if err := k.Boots(); err != nil {
			return err
		}
	}
	if !k.RunsHooks && len(s.Devices.Hooks) > 0 {
		return k.Unsupported("the device "+s.Devices.String(),
			fmt.Sprintf("its description has %s run while a container is made, which it does not; bare metal and the engines crun, runc, docker and podman do", s.Devices.Hooks[0].Path))
	}
	switch cores := s.Instance.Cores; {
	case s.Image == nil:
		return fmt.Errorf("%s: the spec has no image", k)
	case len(k.Provisionings) > 0 && !slices.Contains(k.Provisionings, s.Provisioning):
		return fmt.Errorf("%s: provisioning %q: want %s", k, s.Provisioning, strings.Join(k.Provisionings, " or "))
	case k.Binds(s.Provisioning) && (len(s.CPUs) == 0 || float64(len(s.CPUs)) != cores):
		return fmt.Errorf("%s of %g cores: the spec names %d CPUs; want one for each core", k, cores, len(s.CPUs))
	}
	return nil
}

// Boots says why no guest of the kind can be a whole system, as an *UnsupportedError; nil: one can.
func (k Kind) Boots() error {
	if k.Systems {
		return nil
	}
	return k.Unsupported("a whole system", "its guests have one program and what that starts; a system's init needs a machine, or a container that gives it cgroups and the rights to mount")
}

// Needs is the capability that a guest of the treatment needs; "" where it needs none.
func (k Kind) Needs(t notebook.Treatment) string {
	if t.Accelerator != "" {
		return t.Accelerator
	}
	if len(k.Capabilities) == 0 {
		return ""
	}
	return k.Capabilities[0]
}

// Binds says whether every guest with that provisioning is bound to CPUs.
func (k Kind) Binds(provisioning string) bool {
	return provisioning == notebook.Pinned || len(k.Provisionings) == 0
}

// NetworkModes are Networks, or what none of them stands for.
func (k Kind) NetworkModes() []string {
	if k.Networks == nil {
		return []string{notebook.NetBridge, notebook.NetHost, notebook.NetNone}
	}
	return k.Networks
}

// Connected is how a guest is connected where nothing else is asked for; see Network.
func (k Kind) Connected(isolation string, service bool) string {
	switch {
	case k.Network != nil:
		return k.Network(isolation, service)
	case service || isolation == notebook.IsolationFull:
		return notebook.NetBridge
	}
	return ""
}

// Registry is the engines that there are. Of a platform's the first is taken where a study names none.
type Registry []Kind

// Of lists the engines of a platform.
func (r Registry) Of(platform string) (kinds []Kind) {
	for _, k := range r {
		if k.Platform == platform {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// Names lists the names of a platform's engines; nil for a platform that there is not.
func (r Registry) Names(platform string) (names []string) {
	for _, k := range r.Of(platform) {
		names = append(names, k.Name)
	}
	return names
}

// Usual lists the names of those of a platform's engines that will do where no engine is named.
func (r Registry) Usual(platform string) (names []string) {
	for _, k := range r.Of(platform) {
		if k.Usual {
			names = append(names, k.Name)
		}
	}
	return names
}

// Platforms lists the platforms that have an engine, each once.
func (r Registry) Platforms() (all []string) {
	for _, k := range r {
		if !slices.Contains(all, k.Platform) {
			all = append(all, k.Platform)
		}
	}
	return all
}

// Find is the engine of a platform with that name.
func (r Registry) Find(platform, name string) (Kind, error) {
	for _, k := range r {
		if k.Platform == platform && k.Name == name {
			return k, nil
		}
	}
	return Kind{}, fmt.Errorf("there is no engine %q of %s", name, platform)
}

// Lasting are the kinds of changes that survive a reboot of the host: the guests' folders, and what engines keep on a disk.
func (r Registry) Lasting() []string {
	all := []string{KindFolder}
	for _, k := range r {
		all = append(all, k.Lasting...)
	}
	return all
}

// Undo gives the ways to undo what any of the engines journals, for journal.Recover.
func (r Registry) Undo() map[string]journal.Undo {
	all := Undo()
	for _, k := range r {
		if k.Undo != nil {
			maps.Copy(all, k.Undo())
		}
	}
	return all
}
