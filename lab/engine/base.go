//go:build linux

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"tare/lab/cgroup"
	"tare/lab/journal"
	"tare/lab/network"
	"tare/lab/proc"
	"tare/lab/ruler"
	"tare/notebook"
)

// Base is the part that all guests share, from their making until they are destroyed. It implements Guest for a guest on the host's
// own kernel. An engine that knows more of its guests embeds it.
type Base struct {
	Spec       Spec
	Notes      []*notebook.Message // for the record
	Folder     string
	Changes    *journal.Changes
	Process    *Process // started on the host; it ends with the ruler. Nil where a daemon starts the guest, or a VM
	Client     *ruler.Client
	Connection *Connection
	PID        int    // the host's id of the process whose end is the guest's end
	Cgroup     string // folder that lists the guest's processes; "" where the guest has no cgroup of its own

	// Unfenced: the programs in it are root on the host, and could leave their cgroups (Watch).
	Unfenced bool

	groups     []string // made by HoldToCPUs or CountMemory
	cloned     bool     // the ruler is started directly in the groups, which are of version 2
	free       bool     // nothing confines it to its CPUs, which are all online CPUs of the host
	ruler      int      // the host's id of the ruler's process, where it differs from PID
	appears    func()   // ends the watch for its cgroup; nil: no watch
	socket     *Socket  // where the ruler of a container says hello
	destroying sync.Mutex
}

// Recipe is what differs between engines on the way to a guest (Make).
type Recipe struct {
	What       string            // what is made, in messages: "crun container"
	Address    bool              // the guest has an address of its own on the bridge; otherwise the host's
	Programs   []string          // programs that are started for the guest with a path in its folder, as in makeFolder
	HelloTime  time.Duration     // time limit for the ruler's hello; 0: HelloTime
	ErrorsFrom func(error) error // converts an error of the wait for the hello; nil: it adds what Diagnose says

	// Journal returns entries that are written with the entry of the guest's folder, before anything is made; nil: none. Undo
	// undoes these and the engine's other entries.
	Journal func(folder string) []journal.Entry
	Undo    map[string]journal.Undo
	// Create makes everything that the guest needs before its start, and returns where its ruler will say hello. Start starts the
	// guest; nil: the guest already runs after Create.
	Create func(ctx context.Context) (Meeting, error)
	Start  func(ctx context.Context) error
	// Met goes on when the ruler has come: it connects the network, and finds the guest's cgroup. Only the ruler runs in the guest
	// before its first order, and the ruler needs no network. Where the ruler comes by itself and nobody times the start, Met and
	// InForce run during its hello: the engine has set up the ruler's process by then.
	Met func(ctx context.Context) error
	// InForce checks that the limits in force are the requested ones.
	InForce func() error
}

// Made is a guest that Make makes: a Base, or a type that embeds one.
type Made interface {
	Guest
	base() *Base
}

func (b *Base) base() *Base { return b }

// Meeting is where a guest's ruler says hello.
type Meeting interface {
	// Meet waits for the ruler until ctx is done or the guest has ended. It returns the stream to the ruler and, where the ruler
	// came by itself, the host's id of its process; 0 where it was known at the start. When Meet returns nobody else can come there
	// any more.
	Meet(ctx context.Context) (ruler.Stream, int, error)
}

// HelloTime bounds the wait for the hello of a guest on the host's own kernel, whatever its caller's context says. Such a guest
// says hello within a second, or never.
const HelloTime = 30 * time.Second

// errDied says that a guest ended before its ruler said hello.
var errDied = errors.New("it ended before its ruler said hello")

const (
	// graceful is the time that a ruler has to end what it started after its stream is closed, and that an engine has to remove
	// what it made around it.
	graceful = 3 * time.Second
	// undoTime bounds the undoing where the caller's time may be over.
	undoTime = 30 * time.Second
)

// Make is the only way to a guest: its part in the network, its folder, what the recipe starts, the ruler's hello, and the limits
// in force. g is the engine's guest, or just a Base. If a step fails, Make removes all of it.
func Make(ctx context.Context, env Env, s Spec, g Made, r Recipe) (_ Guest, err error) {
	a, err := Create(ctx, env, s, g, r)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = a.undone(ctx, err)
		}
	}()
	if err := a.start(ctx); err != nil {
		return nil, err
	}
	return g, a.meet(ctx, func(ctx context.Context) error {
		if err := r.Met(ctx); err != nil {
			return err
		}
		return r.InForce()
	})
}

// NetworkNote is the note on the network of a guest in a network namespace or in the host's network.
func NetworkNote(mode string) *notebook.Message { return notebook.Say("network", "mode", mode) }

// Plug connects the guest's network namespace: by a cable to the bridge, by a macvlan link of the bridge, or not at all. Its
// loopback is up already, because the container engines set it up before the ruler starts.
func (b *Base) Plug() error { return b.Connection.Plug(b.PID) }

// PlugNew is Plug for a network namespace that the kernel has just made, whose loopback is down.
func (b *Base) PlugNew() error {
	if b.Connection.Lease().IsValid() {
		return b.Plug() // sets up the loopback too
	}
	return network.Loopback(b.PID)
}

// FindCgroup finds the folder that lists the guest's processes.
func (b *Base) FindCgroup() (err error) {
	// Every hierarchy lists them. The one of memory always exists, because its limit is in force.
	b.Cgroup, err = cgroup.Of(b.PID, "memory")
	if name := "/" + ContainerName(b.Spec.ID); b.Spec.System && err == nil {
		// Its init has made groups below, and may be in one of them.
		above, _, _ := strings.Cut(b.Cgroup+"/", name+"/")
		b.Cgroup = above + name
	}
	return err
}

// LimitsInForce compares the limits that the kernel enforces on the guest with the wanted ones. A zero limit must be absent, and
// the CPUs "" may be any.
func (b *Base) LimitsInForce(want notebook.Limits) error {
	l, err := cgroup.LimitsOf(b.PID)
	if err != nil {
		return err
	}
	if wrong := Differences(l, want); wrong != nil {
		return fmt.Errorf("the kernel's files (%s) give it %s; is tare itself in a cgroup with limits?", l.Source, strings.Join(wrong, " and "))
	}
	return nil
}

// Differences lists in words the differences between the limits in force and the wanted ones, as for LimitsInForce.
func Differences(l, want notebook.Limits) (wrong []string) {
	if want.CPUs != "" && l.CPUs != want.CPUs {
		wrong = append(wrong, fmt.Sprintf("CPUs %s, not %s", l.CPUs, want.CPUs))
	}
	if math.Abs(l.Quota-want.Quota) > 0.001 { // the kernel counts microseconds in a period of 100 ms
		wrong = append(wrong, fmt.Sprintf("a CPU quota of %g cores, not %g", l.Quota, want.Quota))
	}
	page := int64(os.Getpagesize())
	if m := want.Memory / page * page; l.Memory != m {
		wrong = append(wrong, fmt.Sprintf("a memory limit of %d bytes, not %d", l.Memory, m))
	}
	return wrong
}

// Ruler implements Guest.
func (b *Base) Ruler() *ruler.Client { return b.Client }

// Facts implements Guest.
func (b *Base) Facts() Facts { return Facts{Kernel: b.Client.Hello().Kernel, Notes: b.Notes} }

// Address implements Guest.
func (b *Base) Address() Address { return b.Connection.Address() }

// Processes implements Guest: the processes in the guest's cgroup or, where it has none of its own, all whose root is in its
// folder.
func (b *Base) Processes() ([]int, error) {
	in, of := cgroup.Procs, b.Cgroup
	if of == "" {
		in, of = proc.In, b.Folder
	}
	pids, err := in(of)
	if err != nil {
		return nil, err
	}
	if i := slices.Index(pids, b.PID); i > 0 {
		pids[0], pids[i] = pids[i], pids[0]
	}
	return pids, nil
}

// Threads implements Guest.
func (b *Base) Threads() ([]Thread, error) {
	pids, err := b.Processes()
	if err != nil {
		return nil, err
	}
	return ThreadsOf(pids, b.RulerPID())
}

// RulerPID is the host's id of the ruler's process; for a VM, whose inside the host cannot see, QEMU's.
func (b *Base) RulerPID() int { return cmp.Or(b.ruler, b.PID) }

// Limits implements Guest.
func (b *Base) Limits() (notebook.Limits, error) { return cgroup.LimitsOf(b.PID) }

// Diagnose implements Guest.
func (b *Base) Diagnose() string {
	if b.Process == nil {
		return ""
	}
	return b.Process.Name() + ": " + b.Process.Ended()
}

// Destroy implements Guest. It skips what was never made.
func (b *Base) Destroy(ctx context.Context) error {
	b.destroying.Lock()
	defer b.destroying.Unlock()
	if b.Client != nil {
		b.Client.Close() // nobody needs the stream any more
	}
	if b.socket != nil {
		b.socket.l.Close()
	}
	if b.appears != nil {
		b.appears()
	}
	var err error
	if b.Process != nil {
		// The ruler ends with its stream, after everything that it started and what the engine made with it. Undoing the changes
		// removes what the ruler missed, or left because it was killed.
		err = b.Process.End(ctx, graceful)
	}
	undone := b.Changes.Undo(ctx)
	if undone == nil {
		b.Connection.Close() // otherwise a link may remain and disturb the next guest with this address
	}
	return errors.Join(err, undone)
}
