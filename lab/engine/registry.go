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

// Kind is a registered engine: what is known of it on any host, and how to set it up on one.
type Kind struct {
	Platform string // notebook.BM, notebook.CN, notebook.VM or notebook.VMCN
	Name     string // its name in studies; empty where the platform has only one engine

	// Usual: it may stand for its platform where a study names no engine.
	Usual bool
	// Provisionings are those that its guests can have. An engine without any binds every guest to its CPUs.
	Provisionings []string
	// Isolations are the rungs of the isolation ladder that its guests can be. An engine with rungs and without provisionings makes
	// only rungs.
	Isolations []string
	// Accelerators are those that its guests can have: the preferred one first, and last the emulation that works on every host.
	// Those between are used only if requested by name. Empty for an engine without accelerators.
	Accelerators []string
	// Kernel reads a file as the kernel of its guests (Env.Kernel), and refuses a file that is not a kernel. It is nil for an
	// engine whose guests have no kernel to choose.
	Kernel func(path string) (notebook.Kernel, error)
	// Ahead: its guests can be made first and started later, so it is a Creator.
	Ahead bool
	// Copies: each of its guests can have its own copy of the image's root (Spec.Copied).
	Copies bool
	// Pulls: the start of a guest can pull the image from a registry (Spec.Pull), so it is a Puller.
	Pulls bool
	// Systems: its guests can be whole systems, with an init of their own (Spec.System).
	Systems bool
	// Fractions: a vanilla guest can have a part of a core.
	Fractions bool
	// Networks are the ways in which its guests can be connected. Empty stands for a bridge, the host's network, and only the
	// loopback.
	Networks []string

	// Machines: its guests are virtual machines, whose configuration can be chosen in addition to their size (notebook.Machine).
	Machines bool

	// Network is how a guest is connected by default; "" leaves it to the engine. isolation is the guest's rung, and service says
	// that a service in it must be reachable.
	Network func(isolation string, service bool) string

	// Publishes: a service on a bridge is reached at a port of the host (Network.Published).
	Publishes bool

	// NoDevices says why its guests cannot have devices of the host (Spec.Devices); "" where they can.
	NoDevices string
	// RunsHooks: the programs of the host that come with a device (device.Hook) run while its guests are made.
	RunsHooks bool

	// Unsaved says why its guests cannot be saved and restored (Saver); "" where they can. Saving is the one of Capabilities that
	// tests this on a host; "" where no test is needed.
	Unsaved, Saving string

	// TracesInside: its guests have their own kernel, and the ruler can load tracers there.
	TracesInside bool
	// Untraceable says why neither the host nor the ruler can see what happens in a guest; "" where one of them can.
	Untraceable string

	// Limitations are the parts of the contract that it does not keep.
	Limitations []Limitation
	// Capabilities are the questions that a doctor asks about it (Probe). A guest with an accelerator needs the capability of that
	// name, and any other guest the first. Empty: the engine is Tare's own and runs wherever Tare does.
	Capabilities []string
	// Program is looked up in PATH, and makes and holds its containers (Hold). Install says how to install it. "" for an engine
	// without such a program.
	Program, Install string
	// Packages are its Debian packages, for a disk image that measures. Empty: it is Tare's own, or not in Debian.
	Packages []string
	// Daemons are programs that run before any guest and that make guests, directly or through others.
	Daemons []string

	// Takes is about how many seconds making and removing a guest takes, as measured on hosts of two cores: from the fastest tenth
	// on an idle host to the slowest tenth on a busy one. TakesEmulated is the same for a guest of an emulated machine.
	Takes, TakesEmulated notebook.Span

	// New makes the engine's driver for a host. It does not look at the host yet.
	New func(Env) Driver
	// Undo returns the functions that undo the engine's journal entries.
	Undo func() map[string]journal.Undo
	// Lasting are those of its kinds in the journal that survive a reboot of the host.
	Lasting []string
}

// Env is what engines work with on a host.
type Env struct {
	// Journal has every change to the host.
	Journal *journal.Journal
	// State is the folder for the guests' folders and everything else that engines keep. A guest of bare metal writes there, so it
	// should be on the images' file system.
	State string
	// Ruler is the path of the ruler's program, Init that of the program that a VM boots into, and Tracer that of the program that
	// traces trials inside it; "" where nothing is traced.
	Ruler, Init, Tracer string
	// Entry is the path of the program that makes a process's layers of isolation before it becomes the ruler (layers.Main).
	Entry string
	// Kernel is the path of a file with the guests' kernel; "": the engine chooses.
	Kernel string
}

// Cabled are the Networks of an engine whose containers have a network namespace that Tare connects.
var Cabled = []string{notebook.NetBridge, notebook.NetMacvlan, notebook.NetHost, notebook.NetNone}

// Prober is an engine that tests its kind's Capabilities in its own way.
type Prober interface {
	Probe(ctx context.Context, capability string) notebook.Capability
}

// Chooser is an engine that supports only some treatments on some hosts.
type Chooser interface {
	// Supports says why this host does not support the treatment; nil if it does. It tries.
	Supports(ctx context.Context, t notebook.Treatment) error
}

// Preparer is an engine whose guests share something that can be made once.
type Preparer interface {
	// Prepare makes what all guests with the image need, so that no guest's start includes it. Provision would make it too.
	Prepare(ctx context.Context, img *image.Image) error
}

// String names the kind in messages: "bm", "cn with crun".
func (k Kind) String() string {
	if k.Name == "" || k.Name == k.Platform {
		return k.Platform
	}
	return k.Platform + " with " + k.Name
}

// Unsupported is the error for a request that the kind cannot fulfil.
func (k Kind) Unsupported(what, why string) error {
	return &UnsupportedError{Engine: k.String(), What: what, Why: why}
}

// Supports returns an *UnsupportedError for a treatment that the engine supports on no host; nil otherwise.
func (k Kind) Supports(t notebook.Treatment) error {
	cores := t.Instance.Cores
	whole := cores == math.Trunc(cores)
	switch {
	case !whole && !k.Fractions:
		return k.Unsupported(fmt.Sprintf("%g cores", cores), "it supports only whole CPUs; a part of a CPU needs a container's CPU quota")
	case !whole && t.Provisioning == notebook.Pinned:
		return k.Unsupported(fmt.Sprintf("%g cores, %s", cores, t.Provisioning), "a CPU set has only whole CPUs; use "+notebook.Vanilla+" provisioning, or whole CPUs")
	case t.Machine != "" && !k.Machines:
		return k.Unsupported("a machine "+t.Machine, "its guests are not virtual machines")
	case notebook.FactorRoot.Of(t) == notebook.RootCopied && !k.Copies:
		return k.Unsupported("a copy of the image's root for each guest", "its guests read the image from the engine, the machine's disk or the host")
	case !notebook.PullOf(t).None() && !k.Pulls:
		return k.Unsupported("an image that each start pulls", noPulls)
	case notebook.FactorDevices.Of(t) != "" && k.NoDevices != "":
		return k.Unsupported("the device "+notebook.FactorDevices.Of(t), k.NoDevices)
	case t.Network != "" && !slices.Contains(k.NetworkModes(), t.Network):
		return k.Unsupported("the network "+t.Network, "its guests can be connected by "+strings.Join(k.NetworkModes(), ", "))
	}
	return nil
}

// noPulls says why most engines pull no images.
const noPulls = "Tare gives its containers their root; only the engines docker and cri pull images"

// Check checks the specification of a guest of the kind. An *UnsupportedError says what no such guest can be.
func (k Kind) Check(s Spec) error {
	if err := k.Supports(s.Treatment(k)); err != nil {
		return err
	}
	if s.System {
		if err := k.Boots(); err != nil {
			return err
		}
	}
	if s.Shared != "" {
		if err := k.Shares(); err != nil {
			return err
		}
	}
	if s.Pull != "" && !k.Pulls {
		return k.Unsupported("an image that each start pulls", noPulls)
	}
	if !k.RunsHooks && len(s.Devices.Hooks) > 0 {
		return k.Unsupported("the device "+s.Devices.String(),
			fmt.Sprintf("its description runs %s while a container is made, which this engine does not support; bare metal and the engines crun, runc, docker and podman do", s.Devices.Hooks[0].Path))
	}
	switch cores := s.Instance.Cores; {
	case s.Image == nil:
		return fmt.Errorf("%s: the spec has no image", k)
	case len(k.Provisionings) > 0 && !slices.Contains(k.Provisionings, s.Provisioning):
		return fmt.Errorf("%s: provisioning %q: must be %s", k, s.Provisioning, strings.Join(k.Provisionings, " or "))
	case k.Binds(s.Provisioning) && (len(s.CPUs) == 0 || float64(len(s.CPUs)) != cores):
		return fmt.Errorf("%s of %g cores: the spec names %d CPUs; must be one for each core", k, cores, len(s.CPUs))
	}
	return nil
}

// Boots returns an *UnsupportedError that says why no guest of the kind can be a whole system; nil if one can.
func (k Kind) Boots() error {
	if k.Systems {
		return nil
	}
	return k.Unsupported("a whole system", "its guests have one program and what that starts; a system's init needs a machine, or a container that gives it cgroups and the rights to mount")
}

// Shares returns an *UnsupportedError that says why guests of the kind cannot have a folder in common (Spec.Shared); nil if they can.
func (k Kind) Shares() error {
	if notebook.HasMachine(k.Platform) {
		return k.Unsupported("a folder shared by several instances", "Tare does not share folders of the host with VMs")
	}
	return nil
}

// Needs is the capability that a guest of the treatment needs; "" where it needs none.
func (k Kind) Needs(t notebook.Treatment) string {
	switch {
	case t.Accelerator != "":
		return t.Accelerator
	case k.Saving != "" && notebook.FactorFrom.Of(t) == notebook.FromSnapshot: // tested on a guest, so it includes the first
		return k.Saving
	case len(k.Capabilities) == 0:
		return ""
	}
	return k.Capabilities[0]
}

// Binds reports whether every guest with that provisioning is bound to CPUs.
func (k Kind) Binds(provisioning string) bool {
	return provisioning == notebook.Pinned || len(k.Provisionings) == 0
}

// NetworkModes are Networks, or the modes that an empty Networks stands for.
func (k Kind) NetworkModes() []string {
	if k.Networks == nil {
		return []string{notebook.NetBridge, notebook.NetHost, notebook.NetNone}
	}
	return k.Networks
}

// Connected is how a guest is connected by default; see Network.
func (k Kind) Connected(isolation string, service bool) string {
	switch {
	case k.Network != nil:
		return k.Network(isolation, service)
	case service || isolation == notebook.IsolationFull:
		return notebook.NetBridge
	}
	return ""
}

// Registry is the list of engines. The first engine of a platform is the default.
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

// Names lists the names of a platform's engines; nil for an unknown platform.
func (r Registry) Names(platform string) (names []string) {
	for _, k := range r.Of(platform) {
		names = append(names, k.Name)
	}
	return names
}

// Usual lists the names of the platform's engines that may stand for it where a study names none.
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

// Find returns the engine of a platform by its name.
func (r Registry) Find(platform, name string) (Kind, error) {
	for _, k := range r {
		if k.Platform == platform && k.Name == name {
			return k, nil
		}
	}
	return Kind{}, fmt.Errorf("%s has no engine %q", name, platform)
}

// Lasting are the kinds of changes that survive a reboot of the host: the guests' folders, and what engines keep on a disk.
func (r Registry) Lasting() []string {
	all := []string{KindFolder}
	for _, k := range r {
		all = append(all, k.Lasting...)
	}
	return all
}

// Undo returns the functions that undo the journal entries of all engines, for journal.Recover.
func (r Registry) Undo() map[string]journal.Undo {
	all := Undo()
	for _, k := range r {
		if k.Undo != nil {
			maps.Copy(all, k.Undo())
		}
	}
	return all
}
