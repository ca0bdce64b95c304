// Package engine is the contract of all engines (design, section 7). The package conformance tests it, and the drivers are in other
// packages below this one.
package engine

import (
	"context"
	"net/netip"
	"slices"

	"tare/lab/device"
	"tare/lab/image"
	"tare/lab/network"
	"tare/lab/ruler"
	"tare/lab/ruler/frames"
	"tare/notebook"
)

// Spec describes the wanted guest.
type Spec struct {
	ID           string // unique on this host; names the guest's folder, cgroup, container, …
	Instance     notebook.Instance
	Provisioning string // one of notebook.Provisionings; empty where the kind has none. Whole: the instance has the host's size
	// CPUs are those that the guest is bound to: one for each core where its provisioning binds it (Kind.Binds). A guest with a CPU quota
	// is bound to none, or to the CPUs that its load does not have.
	CPUs        []int
	Image       *image.Image // the root
	Copied      bool         // the guest gets its own copy of the root (Kind.Copies)
	Work        *image.Tree  // the workload's own files and input, at ruler.WorkDir, read-only
	Shared      string       // folder of the host at ruler.SharedDir, writable, which several guests may have; empty: none (Kind.Shares)
	System      bool         // the image's own init is the guest's first process, with everything that it starts (Kind.Systems); the ruler is a child of it
	Isolation   string       // the guest's rung of the isolation ladder: one of the kind's Isolations, or none
	Network     *Network     // nil: the engine's default; services cannot be reached
	Devices     device.Edits // the host's devices for the guest (Kind.NoDevices)
	Machine     string       // vm, vmcn: in the form of notebook.Machine.Text
	Accelerator string       // vm, vmcn: notebook.KVM or notebook.TCG
	Pull        string       // reference of the image in a registry, which the start pulls; "": the engine has the image (Kind.Pulls)
	Moments     *Moments     // where to note the moments of its start; nil: nowhere
}

// Mounts are the files and folders of the host that the guest gets in addition to its root, its work and its ruler's folder: those of its
// devices, and the shared folder.
func (s Spec) Mounts() []device.Mount {
	all := slices.Clone(s.Devices.Mounts)
	if s.Shared != "" {
		all = append(all, device.Mount{Host: s.Shared, Path: ruler.SharedDir})
	}
	return all
}

// Treatment is the part of a treatment that the spec describes, for Kind.Supports.
func (s Spec) Treatment(k Kind) notebook.Treatment {
	t := notebook.Treatment{
		Platform: k.Platform, Engine: k.Name, Instance: s.Instance, Provisioning: s.Provisioning, Isolation: s.Isolation,
		Network: s.NetworkMode(), Accelerator: s.Accelerator, Machine: s.Machine,
	}
	t.Factors = map[string]string{}
	if s.Copied {
		t.Factors[notebook.FactorRoot.Name] = notebook.RootCopied
	}
	if !s.Devices.None() {
		t.Factors[notebook.FactorDevices.Name] = s.Devices.String()
	}
	return t
}

// Network says how a guest is connected, and where its load is.
type Network struct {
	Mode   string          // one of notebook.Networks
	Bridge *network.Bridge // the load's bridge; may be nil with NetNone
	Port   int             // port of the guest's service; 0: no service

	// Published is the host's port of the service, for engines that publish ports; 0: Port. With it several guests can offer the
	// same service at the same time.
	Published int

	// Here is the host's address for a load on another machine; zero: the load is on the bridge.
	Here netip.Addr
}

// Address says where a guest's service listens and where the load reaches it. Zero where there is no network.
type Address struct {
	Listen  netip.Addr // address that the service binds to, inside the guest
	Connect netip.Addr // address that a load connects to
	Port    int        // port at Connect, if the engine published another one; 0: the service's
}

// Driver is an engine on a host. It makes guests of one kind.
type Driver interface {
	// Provision makes a guest. It returns when the guest's ruler has said hello and the limits in force, by the kernel's own files,
	// are those of the spec. On error nothing of the guest remains.
	Provision(ctx context.Context, s Spec) (Guest, error)
}

// Guest is one live instance of a platform.
type Guest interface {
	// Ruler is the measuring process in the guest.
	Ruler() *ruler.Client
	// Processes lists the host's process ids of the guest. The first is the one whose end is the guest's end.
	Processes() ([]int, error)
	// Threads are the threads that a tracer observes from the host, by role (notebook.RoleWork, …). They include the ruler's, so
	// that what it starts counts as work.
	Threads() ([]Thread, error)
	// Limits returns the limits in force, read from the host's kernel now.
	Limits() (notebook.Limits, error)
	// Facts returns facts for the record: the kernel, and notes on differences that could not be avoided.
	Facts() Facts
	// Address says where the guest's service listens and where the load reaches it.
	Address() Address
	// Diagnose says why the ruler stopped answering, as far as the platform knows. It may be empty.
	Diagnose() string
	// Destroy ends the guest and returns when nothing of it remains: no process, cgroup, mount, namespace, network link, engine
	// object or file. It may be called more than once.
	Destroy(ctx context.Context) error
}

// Machine is the part of a guest that only virtual machines have.
type Machine interface {
	Guest
	// RAM says where its process has the guest's memory, in the order of the guest's frames.
	RAM(ctx context.Context) ([]frames.Piece, error)
	// KernelFile is the kernel's file that its process boots.
	KernelFile() string
	// Mapped returns how many bytes of the guest's memory the hypervisor's page tables map (EPT, NPT, shadow tables); known is false if nothing
	// reports this.
	Mapped(ctx context.Context) (bytes int64, known bool, err error)
}

// Thread is one of the host's threads that belongs to a guest.
type Thread struct {
	ID   int    // the host's id
	Role string // notebook.RoleWork, RoleRuler, RoleVCPU, RoleIO or RoleEmulator
}

// Facts are what a driver knows of a guest in addition to its spec.
type Facts struct {
	Kernel       string           // release of the guest's kernel
	KernelSource string           // vm, vmcn: where that kernel was taken from
	Machine      notebook.Machine // vm, vmcn: as in force; otherwise zero
	Notes        []*notebook.Message
}
