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

// Base is what every guest has, while it is made and until it is destroyed. It implements Guest for one on the host's own kernel;
// an engine that knows more of its guests embeds it.
type Base struct {
	Spec       Spec
	Notes      []*notebook.Message // for the record
	Folder     string
	Changes    *journal.Changes
	Process    *Process // what was started on the host; it ends with the ruler. Nil where a daemon starts the guest, or a VM.
	Client     *ruler.Client
	Connection *Connection
	PID        int    // of the process whose end is the guest's, as the host numbers it
	Cgroup     string // a folder that lists the guest's processes; "" where the guest has no cgroup of its own

	// Unfenced: what runs in it is root on the host, and could leave its cgroups (Watch).
	Unfenced bool

	groups     []string // that HoldToCPUs has made
	cloned     bool     // into them, the ruler is started: they are of version 2
	free       bool     // nothing holds it to its CPUs, which are all that the host has online
	ruler      int      // its process, as the host numbers it, where that is not PID
	appears    func()   // ends the watch for its cgroup; nil: there is none
	socket     *Socket  // where the ruler of a container says hello
	destroying sync.Mutex
}

// Recipe is what one engine does otherwise than another on the way to a guest (Make).
type Recipe struct {
	What       string            // is made, in messages: "crun container"
	Address    bool              // the guest has an address of its own on the bridge; else the host's
	Programs   []string          // that are started for the guest with a path in its folder, as in makeFolder
	HelloTime  time.Duration     // how long its ruler may take to say hello; 0: HelloTime
	ErrorsFrom func(error) error // what an error of the wait for the hello becomes; nil: it says what Diagnose does

	// Journal is what is journaled with the guest's folder, and so before anything is made; nil: nothing. Undo is how it, and what
	// else the engine journals, is undone.
	Journal func(folder string) []journal.Entry
	Undo    map[string]journal.Undo
	// Create makes all of the guest that has to be there before it is started, and gives where its ruler will say hello. Start starts it;
	// nil: what Create has made runs already.
	Create func(ctx context.Context) (Meeting, error)
	Start  func(ctx context.Context) error
	// Met goes on when the ruler has come: it connects the network, and finds the guest's cgroup. Nothing but the
	// ruler runs in the guest before its first order, and the ruler needs no network. Where it has come by itself, and nobody times the
	// start, Met and InForce are done beside its hello: they are of its process, which the engine has put in its place by then.
	Met func(ctx context.Context) error
	// InForce says whether the limits in force are those asked for.
	InForce func() error
}

// Made is a guest that Make makes: a Base, or what embeds one.
type Made interface {
	Guest
	base() *Base
}

func (b *Base) base() *Base { return b }

// Meeting is where a guest's ruler says hello.
type Meeting interface {
	// Meet waits for the ruler until ctx is done or the guest has ended, and gives the stream to it and, where the ruler came by itself, the
	// host's id of its process; 0: it was known when it was started. Nobody can come there any more when it returns.
	Meet(ctx context.Context) (ruler.Stream, int, error)
}

// HelloTime bounds the wait for the hello of a guest that runs on the host's own kernel, whatever its caller's
// context says: such a guest says it within a second, or never.
const HelloTime = 30 * time.Second

// errDied says that a guest ended before its ruler said hello.
var errDied = errors.New("it ended before its ruler said hello")

const (
	// graceful is how long a ruler may take to end what it started once its stream is closed, and an engine to remove
	// what it made around it.
	graceful = 3 * time.Second
	// undoTime bounds what is undone where the caller's time may be over.
	undoTime = 30 * time.Second
)

// Make is the one way to a guest: its part in the network and its folder, what the recipe starts, the ruler's hello, and the
// limits in force. g is the engine's guest, or a Base alone. Where a step fails, all that was made is taken back.
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

// NetworkNote is the note on how a guest in a network namespace, or in the host's network, is connected.
func NetworkNote(mode string) *notebook.Message { return notebook.Say("network", "mode", mode) }

// Plug connects the guest's network namespace: by a cable to the bridge, by a macvlan link of it, or not at all. Its loopback is up: the
// container engines see to that before the ruler is started.
func (b *Base) Plug() error { return b.Connection.Plug(b.PID) }

// PlugNew is Plug of a network namespace that the kernel has just made, whose loopback is down.
func (b *Base) PlugNew() error {
	if b.Connection.Lease().IsValid() {
		return b.Plug() // the loopback too
	}
	return network.Loopback(b.PID)
}

// FindCgroup finds the folder that lists the guest's processes.
func (b *Base) FindCgroup() (err error) {
	// Every hierarchy lists them; memory's is always there, since its limit is in force.
	b.Cgroup, err = cgroup.Of(b.PID, "memory")
	if name := "/" + ContainerName(b.Spec.ID); b.Spec.System && err == nil {
		// Its init has made groups below, and may be in one.
		above, _, _ := strings.Cut(b.Cgroup+"/", name+"/")
		b.Cgroup = above + name
	}
	return err
}

// LimitsInForce compares the limits that the kernel holds the guest to with those wanted; a limit that is wanted with
// its zero value is to be absent, and CPUs that are "" may be any.
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

// Differences says in words in what limits in force differ from those wanted, as LimitsInForce.
func Differences(l, want notebook.Limits) (wrong []string) {
	if want.CPUs != "" && l.CPUs != want.CPUs {
		wrong = append(wrong, fmt.Sprintf("CPUs %s, not %s", l.CPUs, want.CPUs))
	}
	if math.Abs(l.Quota-want.Quota) > 0.001 { // the kernel counts in microseconds of a period of 100 ms
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

// Processes implements Guest: those in the guest's cgroup, or, where it has none of its own, all that have their root in its
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

// RulerPID is the ruler's process, as the host numbers it; of a VM, which the host does not look into, QEMU's.
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

// Destroy implements Guest. What was not there yet is left out.
func (b *Base) Destroy(ctx context.Context) error {
	b.destroying.Lock()
	defer b.destroying.Unlock()
	if b.Client != nil {
		b.Client.Close() // its error is of a stream that nobody needs any more
	}
	if b.socket != nil {
		b.socket.l.Close()
	}
	if b.appears != nil {
		b.appears()
	}
	var err error
	if b.Process != nil {
		// The ruler ends with its stream, and everything it started before it, and what the engine made with it; what
		// it did not get at, or left because it was killed itself, goes with the changes.
		err = b.Process.End(ctx, graceful)
	}
	undone := b.Changes.Undo(ctx)
	if undone == nil {
		b.Connection.Close() // else a link may be left, which the next one with the address would meet
	}
	return errors.Join(err, undone)
}
