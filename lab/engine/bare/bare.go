//go:build linux

// Package bm is bare metal: the image's root by chroot and CPU affinity to the instance's cores, and nothing else
// that the work would not have had on the machine itself. No cgroup limit, no namespace, no overlay; the root is
// read-only, and what a workload writes goes to folders on the file system that Tare's state is on.
//
// The network is the host's. Only what must not be reached while it is prepared, and the load that is applied to other
// guests, have a network namespace: with the loopback alone, and with a cable to the bridge.
package bare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/lab/journal"
	"tare/lab/network"
	"tare/lab/proc"
	"tare/lab/ruler"
	"tare/notebook"
)

// Driver makes guests of bare metal.
type Driver struct {
	// Journal has every change that is made on the host.
	Journal *journal.Journal
	// State is the folder below which the guests' folders are made. It should be on the file system that the
	// images are on: a container writes there, and bare metal must not write to another disk.
	State string
	// Ruler is the path of the ruler's program.
	Ruler string
}

// Undo gives the ways to undo what the driver journals, for journal.Recover.
func Undo() map[string]journal.Undo { return engine.Undo() }

type guest struct {
	engine.Parts
	root string
}

// Provision makes a guest of bare metal. It gives no part of a core and no limit: a *engine.CannotError says so.
func (d *Driver) Provision(ctx context.Context, s engine.Spec) (_ engine.Guest, err error) {
	if err := check(s); err != nil {
		return nil, err
	}
	g := &guest{Parts: engine.Parts{Changes: engine.NewChanges(d.Journal, nil)}}
	defer func() {
		if err != nil {
			// The caller's time may be over; what was begun is taken back all the same.
			undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
			defer cancel()
			err = errors.Join(fmt.Errorf("bare metal guest %s: %w", s.ID, err), g.Destroy(undo))
		}
	}()
	if g.Connection, err = engine.Connect(s.Network, s.NetworkMode() == notebook.NetBridge); err != nil {
		return nil, err
	}
	folder, err := g.Changes.MakeFolder(d.State, s.ID, d.Ruler)
	if err != nil {
		return nil, err
	}
	g.root = filepath.Join(folder, "root")
	if err := Mounts(ctx, folder, g.root, s, nil); err != nil {
		return nil, err
	}
	conn, err := g.start(d.Ruler, s)
	if err != nil {
		return nil, err
	}
	if err := g.connect(s); err != nil {
		conn.Close()
		return nil, err
	}
	hello, cancel := context.WithTimeoutCause(ctx, engine.HelloTime, engine.ErrNoHello)
	defer cancel()
	if g.Client, err = ruler.Connect(hello, conn); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("waiting for its ruler's hello: %w", ctx.Err())
		}
		if hello.Err() != nil {
			err = context.Cause(hello)
		}
		return nil, fmt.Errorf("waiting for its ruler's hello: %w (%s)", err, g.Autopsy())
	}
	return g, g.inForce(s)
}

// check refuses what bare metal cannot be.
func check(s engine.Spec) error {
	cannot := func(what, why string) error {
		return &engine.CannotError{Platform: notebook.BM, What: what, Why: why}
	}
	switch c := s.Instance.Cores; {
	case c != math.Trunc(c):
		return cannot(fmt.Sprintf("%g cores", c), "a part of a core needs a quota, which is a cgroup's; compare with whole cores")
	case len(s.CPUs) == 0 || float64(len(s.CPUs)) != c:
		return fmt.Errorf("bare metal of %g cores: the spec names %d CPUs; want one for each core", c, len(s.CPUs))
	case s.Image == nil:
		return errors.New("bare metal: the spec has no image")
	}
	return nil
}

// start starts the ruler in the root and returns the stream to it.
func (g *guest) start(program string, s engine.Spec) (net.Conn, error) {
	conn, theirs, err := Stream()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd := exec.Command(program, "--fd", "3", "--root", g.root)
	cmd.Env = []string{} // a trial's environment is its order's
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{theirs}
	if ownNetwork(s) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	}
	if g.Process, err = engine.Start(cmd, s.CPUs); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// Stream makes the stream to a ruler that is started on the host: Tare's end, and the file that the ruler gets.
func Stream() (conn net.Conn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ruler"), os.NewFile(uintptr(fds[1]), "ruler's end")
	conn, err = net.FileConn(ours) // a copy
	if cerr := ours.Close(); err == nil && cerr != nil {
		conn.Close()
		err = cerr
	}
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn, theirs, nil
}

// ownNetwork says whether the guest has a network namespace.
func ownNetwork(s engine.Spec) bool {
	m := s.NetworkMode()
	return m == notebook.NetBridge || m == notebook.NetNone
}

// connect sets up what the guest's network namespace has in it.
func (g *guest) connect(s engine.Spec) error {
	if s.NetworkMode() == notebook.NetNone {
		return network.Loopback(g.Process.PID())
	}
	return g.Connection.Plug(g.Process.PID())
}

// inForce says whether the kernel holds the guest to its CPUs and to nothing else.
func (g *guest) inForce(s engine.Spec) error {
	l, err := g.Limits()
	if err != nil {
		return err
	}
	if want := proc.FormatCPUList(s.CPUs); l.CPUs != want {
		return fmt.Errorf("its ruler may use CPUs %s, not %s: a cpuset of Tare's own cgroup forbids them; run tare outside of it", l.CPUs, want)
	}
	var limits []string
	if l.Quota != 0 {
		limits = append(limits, fmt.Sprintf("a CPU quota of %g cores", l.Quota))
	}
	if l.Memory != 0 {
		limits = append(limits, fmt.Sprintf("a memory limit of %d bytes", l.Memory))
	}
	if limits != nil {
		return &engine.CannotError{Platform: notebook.BM, What: "the machine without a limit",
			Why: fmt.Sprintf("tare itself runs in a cgroup with %s (%s); run it outside, as from a login on the host", strings.Join(limits, " and "), l.Source)}
	}
	return nil
}

// Processes lists the ruler first, then all else that has its root in the guest.
func (g *guest) Processes() ([]int, error) {
	pids := []int{}
	select {
	case <-g.Process.Done():
	default:
		pids = append(pids, g.Process.PID())
	}
	in, err := engine.ProcessesIn(g.root)
	for _, pid := range in {
		if pid != g.Process.PID() {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// Threads implements engine.Guest.
func (g *guest) Threads() ([]engine.Thread, error) {
	pids, err := g.Processes()
	if err != nil {
		return nil, err
	}
	return engine.ThreadsOf(pids, g.Process.PID())
}

func (g *guest) Limits() (notebook.Limits, error) { return cgroup.LimitsOf(g.Process.PID()) }

func (g *guest) Facts() engine.Facts { return engine.Facts{Kernel: g.Client.Hello().Kernel} }

func (g *guest) Autopsy() string {
	if g.Process == nil {
		return ""
	}
	return "the ruler: " + g.Process.Ended()
}
