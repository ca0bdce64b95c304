//go:build linux

// Package cn makes containers: with an OCI runtime (crun, runc, and runsc, which is gVisor's), with LXC, or with Docker
// Engine through its API. Vanilla is a CPU quota of n cores over all of the host's CPUs, pinned a CPU set; the memory
// limit holds in both, with no swap beside it. What the kernel's own files say is in force is compared with what was
// asked for before a guest is given out.
//
// They differ where engines differ: Docker's containers have a seccomp filter, the others have none
// (but for an OCI runtime's at the top of the isolation ladder). Where no network
// is asked for, Docker's have the engine's bridge and the others the loopback alone; on the bridge that the load is on,
// Docker publishes a port of the engine's own network, as its users do, and the others have a cable and an address.
// What an engine cannot keep of the contract it declares (engine.Lack).
package cn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/lab/engine/oci"
	"tare/lab/journal"
	"tare/lab/proc"
	"tare/lab/ruler"
	"tare/notebook"
)

// rulerArgs is the first process of every container.
var rulerArgs = []string{ruler.Program, "--connect", ruler.Socket}

// Engine is an engine without a daemon.
type Engine interface {
	engine.Lacking
	// Probe tries the engine: it runs a container with nothing in it but the ruler, has it answer, and looks whether the
	// limits asked for are in force. The capability is called as the engine is; with the answer it says what the engine
	// lacks of the contract.
	Probe(ctx context.Context) notebook.Capability
}

// New gives the engine of that name: "lxc", "gvisor", or an OCI runtime's, which is looked up in PATH. The guests'
// folders are made below state, and ruler is the path of the ruler's program.
func New(name string, j *journal.Journal, state, ruler string) Engine {
	switch name {
	case lxcEngine:
		return &LXC{Journal: j, State: state, Ruler: ruler}
	case gVisorEngine:
		name = RunscName
	}
	return &OCI{Journal: j, State: state, Ruler: ruler, Runtime: name}
}

// Undo gives the ways to undo what the drivers of this package journal, for journal.Recover.
func Undo() map[string]journal.Undo {
	u := engine.Undo()
	u[kindOCI] = undoOCI
	u[kindLXC] = undoLXC
	u[kindDocker] = undoDocker
	return u
}

// check refuses what no container can be.
func check(platformName string, s engine.Spec) error {
	if s.Image == nil {
		return errors.New("the spec has no image")
	}
	if s.Instance.Memory <= 0 {
		return fmt.Errorf("a container of %d bytes of memory: want more than 0", s.Instance.Memory)
	}
	if s.Isolation != "" && (!full(s) || s.Provisioning != notebook.Pinned) {
		return fmt.Errorf("isolation %q, %s: a container has isolation %s, %s, or none", s.Isolation, s.Provisioning, notebook.IsolationFull, notebook.Pinned)
	}
	cannot := func(why string) error {
		return &engine.CannotError{Platform: platformName, What: fmt.Sprintf("%g cores, %s", s.Instance.Cores, s.Provisioning), Why: why}
	}
	switch s.Provisioning {
	case notebook.Vanilla:
		if _, err := oci.Quota(s.Instance.Cores); err != nil {
			return cannot(err.Error())
		}
	case notebook.Pinned:
		if s.Instance.Cores != math.Trunc(s.Instance.Cores) {
			return cannot("a CPU set is of whole CPUs; ask for vanilla, or for whole cores")
		}
		if float64(len(s.CPUs)) != s.Instance.Cores {
			return fmt.Errorf("a pinned container of %g cores: the spec names %d CPUs; want one for each core", s.Instance.Cores, len(s.CPUs))
		}
	default:
		return fmt.Errorf("provisioning %q: want %s or %s", s.Provisioning, notebook.Vanilla, notebook.Pinned)
	}
	return nil
}

// full says whether the container has all layers of the isolation ladder at once: a quota beside its CPU set, and a
// seccomp filter with every engine that takes one.
func full(s engine.Spec) bool { return s.Isolation == notebook.IsolationFull }

// inForce compares the limits that the kernel holds a process to with those of the spec.
func inForce(pid int, s engine.Spec) error {
	l, err := cgroup.LimitsOf(pid)
	if err != nil {
		return err
	}
	var wrong []string
	want, cpus := 0.0, l.CPUs
	if s.Provisioning == notebook.Vanilla || full(s) {
		want = s.Instance.Cores
	}
	if s.Provisioning != notebook.Vanilla {
		cpus = proc.FormatCPUList(s.CPUs)
	}
	if math.Abs(l.Quota-want) > 0.001 { // the kernel counts in microseconds of a period of 100 ms
		wrong = append(wrong, fmt.Sprintf("a CPU quota of %g cores, not %g", l.Quota, want))
	}
	if l.CPUs != cpus {
		wrong = append(wrong, fmt.Sprintf("CPUs %s, not %s", l.CPUs, cpus))
	}
	page := int64(os.Getpagesize())
	if m := s.Instance.Memory / page * page; l.Memory != m {
		wrong = append(wrong, fmt.Sprintf("a memory limit of %d bytes, not %d", l.Memory, m))
	}
	if wrong != nil {
		return fmt.Errorf("the kernel's files (%s) give the container %s; is tare itself in a cgroup with limits?", l.Source, strings.Join(wrong, " and "))
	}
	return nil
}

// door is the socket that a container's ruler connects to.
type door struct {
	l    *net.UnixListener
	path string
}

// openDoor makes the socket in the guest's folder.
func openDoor(folder string) (*door, error) {
	dir, err := unix.Open(folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", folder, err)
	}
	defer unix.Close(dir)
	// A socket's address holds 107 bytes, and a folder's path may be longer.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("/proc/self/fd/%d/ruler.sock", dir)})
	if err != nil {
		return nil, fmt.Errorf("making a socket in %s: %w", folder, err)
	}
	l.SetUnlinkOnClose(false) // by then the name means another folder, or none
	d := &door{l, filepath.Join(folder, "ruler.sock")}
	// The folder is root's alone; in the container whoever is root there may connect.
	if err := os.Chmod(d.path, 0o666); err != nil {
		l.Close()
		return nil, err
	}
	return d, nil
}

// errDied says that a container ended before its ruler said hello.
var errDied = errors.New("the container ended before its ruler said hello")

// meet waits for the ruler's hello, at most for engine.HelloTime and until ctx is done or died is closed, and returns the ruler and its process id on
// the host. The door is closed then in any case: what runs in the container later finds nobody behind it.
func (d *door) meet(ctx context.Context, died <-chan struct{}) (*ruler.Client, int, error) {
	ctx, stopClock := context.WithTimeoutCause(ctx, engine.HelloTime, engine.ErrNoHello)
	defer stopClock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-died:
			cancel(errDied)
		case <-ctx.Done():
		}
	}()
	stop := context.AfterFunc(ctx, func() { d.l.Close() })
	defer stop()
	defer d.l.Close()
	conn, err := d.l.AcceptUnix()
	if err == nil {
		var pid int
		if pid, err = peer(conn); err != nil {
			conn.Close()
			return nil, 0, err
		}
		var c *ruler.Client
		if c, err = ruler.Connect(ctx, conn); err == nil {
			return c, pid, nil
		}
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return nil, 0, fmt.Errorf("waiting for its ruler's hello: %w", err)
}

// peer asks the kernel which process, as the host numbers them, is at the other end. Nothing but the ruler runs in
// a container before its hello. (A runtime writes its pid file, and an engine its state, only afterwards.)
func peer(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var cerr error
	if err := raw.Control(func(fd uintptr) { cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return 0, err
	}
	if cerr != nil {
		return 0, fmt.Errorf("asking who connected to the ruler's socket: %w", cerr)
	}
	if cred.Pid < 1 {
		return 0, fmt.Errorf("who connected to the ruler's socket is process %d: it is in a pid namespace that this one cannot see; run tare on the host that the engine runs on", cred.Pid)
	}
	return int(cred.Pid), nil
}

// cgroupOf is a folder that lists the processes of a container, of which one is pid.
func cgroupOf(pid int) (string, error) {
	// Every hierarchy lists them; memory's is always there, since its limit is in force.
	return cgroup.Of(pid, "memory")
}

// inside lists a container's processes, the first one first.
func inside(group string, first int) ([]int, error) {
	pids, err := cgroup.Procs(group)
	if err != nil {
		return nil, err
	}
	for i, pid := range pids {
		if pid == first {
			pids[0], pids[i] = pids[i], pids[0]
		}
	}
	return pids, nil
}

// Threads implements engine.Guest.
func (g *guest) Threads() ([]engine.Thread, error) {
	if g.sandbox {
		return sandboxThreads(g.cgroup)
	}
	return threads(g.cgroup, g.first)
}

// Threads implements engine.Guest.
func (g *dockerGuest) Threads() ([]engine.Thread, error) { return threads(g.cgroup, g.pid) }

// threads are those of the processes in a container's cgroup, of which one is the ruler.
func threads(group string, ruler int) ([]engine.Thread, error) {
	pids, err := inside(group, ruler)
	if err != nil {
		return nil, err
	}
	return engine.ThreadsOf(pids, ruler)
}
