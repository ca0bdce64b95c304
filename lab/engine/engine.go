// Package engine is the contract that every engine keeps (design, section 7), and the
// conformance suite that says whether it does. The drivers are in the packages below this one.
package engine

import (
	"context"
	"net/netip"

	"tare/lab/device"
	"tare/lab/image"
	"tare/lab/network"
	"tare/lab/ruler"
	"tare/lab/ruler/frames"
	"tare/notebook"
)

// Spec says what guest is wanted.
type Spec struct {
	ID           string // unique on this host; names the guest's folder, cgroup, container, …
	Instance     notebook.Instance
	Provisioning string // one of notebook.Provisionings; empty where the kind has none. Whole: the instance is as large as the host
	// CPUs are those that the guest is bound to: one for each core where its provisioning binds it (Kind.Binds). A guest with a CPU quota
	// is bound to none, or to those of the host that its load does not have. It runs on any of them.
	CPUs        []int
	Image       *image.Image // the root
	Copied      bool         // the guest gets a copy of the root to itself (Kind.Copies)
	Work        *image.Tree  // the workload's own files and input, at ruler.WorkDir, read-only
	System      bool         // the image's own init is the guest's first process, with all that it starts (Kind.Systems); the ruler is a child of it
	Isolation   string       // the rung of the isolation ladder that the guest is: one of the kind's Isolations, or none
	Network     *Network     // nil: the engine's default; services cannot be reached
	Devices     device.Edits // what it is to have of the host's devices (Kind.NoDevices)
	Machine     string       // vm, vmcn: as notebook.Machine.Text writes it
	Accelerator string       // vm, vmcn: notebook.KVM or notebook.TCG
	Moments     *Moments     // where the moments of its start are noted; nil: nobody asks
}

// Treatment is as much of a treatment as the spec says, for Kind.Supports.
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

// Network says how a guest is connected, and from where its service will be asked.
type Network struct {
	Mode   string          // one of notebook.Networks
	Bridge *network.Bridge // where the load is; may be nil with NetNone
	Port   int             // on which the guest's service will listen; 0: it has none

	// Published is the host's port at which an engine offers the service that publishes ports; 0: Port. So several guests can offer
	// the same service at the same time.
	Published int

	// Here is the host's address at which a load on another machine asks the service; zero: the load is on the bridge.
	Here netip.Addr
}

// Address says where a guest's service listens and where it is asked. Zero where there is no network to ask through.
type Address struct {
	Listen  netip.Addr // what the service binds to, inside the guest
	Connect netip.Addr // what a load connects to
	Port    int        // at Connect, if the engine published another than the service's; 0: the service's
}

// Driver is an engine on a host: it makes guests of one kind.
type Driver interface {
	// Provision makes a guest and returns when its ruler has said hello and the limits in force, as the kernel's
	// own files give them, are those of the spec. On error nothing of the guest remains.
	Provision(ctx context.Context, s Spec) (Guest, error)
}

// Guest is one live instance of a platform.
type Guest interface {
	// Ruler is the measuring process in the guest.
	Ruler() *ruler.Client
	// Processes lists the host's process ids that make up the guest; first the one whose end is the guest's.
	Processes() ([]int, error)
	// Threads are those that a tracer observes from the host, by role (notebook.RoleWork, …): the ruler's among them, so
	// that what it starts is known to be the work.
	Threads() ([]Thread, error)
	// Limits says what is in force, read from the host's kernel now.
	Limits() (notebook.Limits, error)
	// Facts says what a record should know: kernel, notes on what could not be made the same.
	Facts() Facts
	// Address says where the guest's service listens and is reached.
	Address() Address
	// Diagnose says, after the ruler stopped answering, what the platform knows about why. May be empty.
	Diagnose() string
	// Destroy ends the guest and returns when nothing of it remains: no process, cgroup, mount, namespace,
	// network link, engine object or file. It may be called more than once.
	Destroy(ctx context.Context) error
}

// Machine is what a guest that is a virtual machine is besides.
type Machine interface {
	Guest
	// RAM says where its process has the memory that its guest sees, in the order of the guest's frames.
	RAM(ctx context.Context) ([]frames.Piece, error)
	// KernelFile is the file that its process was told to boot its guest with.
	KernelFile() string
}

// Thread is one of the host's threads in a guest.
type Thread struct {
	ID   int    // as the host numbers it
	Role string // notebook.RoleWork, RoleRuler, RoleVCPU, RoleIO or RoleEmulator
}

// Facts are what a driver knows of a guest beyond its spec.
type Facts struct {
	Kernel       string           // release of the guest's kernel
	KernelSource string           // vm, vmcn: where that kernel was taken from
	Machine      notebook.Machine // vm, vmcn: as it is in force; else zero
	Notes        []*notebook.Message
}
