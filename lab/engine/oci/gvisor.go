//go:build linux

package oci

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/lab/engine/oci/config"
	"tare/lab/proc"
	"tare/notebook"
)

// GVisor is the engine of gVisor's runtime.
var GVisor = func() engine.Kind {
	k := kind("gvisor", "runsc", "scripts/gvisor/build, or apt-get install runsc of 2023 or later", false)
	k.Takes = notebook.Span{Low: 0.2, High: 0.9}
	k.Packages = nil // Debian's version, if there is one, is too old
	k.Unsaved = "CRIU cannot save processes in gVisor's kernel, and Tare does not drive runsc checkpoint"
	k.Usual, k.Untraceable = false, "the sandbox has its own kernel, which has no tracers"
	k.NoDevices = "its kernel passes through only NVIDIA GPUs (nvproxy), which Tare does not use"
	k.RunsHooks = false
	// It is one program on the host that acts as a kernel.
	k.Limitations = []engine.Limitation{
		{Name: engine.NoOOMCount, Why: "gVisor's kernel keeps no count, so a trial that was killed for lack of memory shows only SIGKILL"},
		{Name: engine.EndsOutOfMemory, Why: "gVisor ends itself when the host's kernel kills a process that runs programs for it while it waits for an answer of this process"},
		{Name: engine.NoHostProcesses, Why: "the host sees only gVisor's own processes, and the guest numbers its CPUs from 0"},
		{Name: engine.NoFlush, Why: "gVisor's overlay, its default, keeps what the guest writes to its root and ignores flushes"},
		{Name: engine.NoCPUTime, Why: "gVisor counts by its own clock, which goes on while its quota is used up"},
	}
	self := k
	k.New = func(env engine.Env) engine.Driver { return &gVisor{Driver{Env: env, Kind: self}} }
	return k
}()

// gVisor makes containers with runsc.
type gVisor struct{ containers Driver }

// sandboxed is a container whose kernel is gVisor's.
type sandboxed struct{ engine.Base }

// Provision implements engine.Driver.
func (d *gVisor) Provision(ctx context.Context, s engine.Spec) (engine.Guest, error) {
	g := sandboxFor(s)
	return d.containers.provision(ctx, s, g, g.prepare, g.met)
}

// Create implements engine.Creator, as of any other OCI runtime.
func (d *gVisor) Create(ctx context.Context, s engine.Spec) (*engine.Ahead, error) {
	g := sandboxFor(s)
	return d.containers.ahead(ctx, s, g, g.prepare, g.met)
}

func sandboxFor(s engine.Spec) *sandboxed {
	return &sandboxed{engine.Base{Notes: []*notebook.Message{
		engine.NetworkNote(s.NetworkMode()),
		notebook.Say("gvisor-kernel"),
		notebook.Say("gvisor-overlay"),
		notebook.Say("gvisor-no-raw-sockets"),
	}}}
}

func (g *sandboxed) prepare(c *config.Container) (flags []string, err error) {
	flags, c.Network, err = g.options()
	return flags, err
}

// met finds the process whose end is the guest's. Its network existed before it.
func (g *sandboxed) met(context.Context) (err error) {
	if g.PID, err = sentry(g.PID); err != nil {
		return err
	}
	return g.FindCgroup()
}

// options returns runsc's options in addition to an OCI runtime's configuration, and the path of the network namespace; "" for any.
// gVisor takes over the links that a namespace has at its start, so the cable is plugged before.
func (g *sandboxed) options() (flags []string, namespace string, err error) {
	// Its other platform, kvm, is a virtual machine. The container's only socket of the host is the ruler's.
	flags = []string{"--platform=systrap", "--host-uds=open"}
	switch {
	case g.Spec.NetworkMode() == notebook.NetHost:
		return append(flags, "--network=host"), "", nil
	case g.Connection.Lease().IsValid():
		namespace = filepath.Join(g.Folder, "netns")
		if err := makeNamespace(namespace, g.Connection.Plug); err != nil {
			return nil, "", fmt.Errorf("a network namespace: %w", err)
		}
		flags = append(flags, "--network=sandbox")
	default:
		flags = append(flags, "--network=none")
	}
	return flags, namespace, nil
}

// makeNamespace makes a network namespace. It calls plug with the id of a thread in it, to connect it, and keeps it as a mount at
// path, with which it ends.
func makeNamespace(path string, plug func(pid int) error) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return proc.Apart(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		tid := unix.Gettid()
		if err := unix.Mount(fmt.Sprintf("/proc/self/task/%d/ns/net", tid), path, "", unix.MS_BIND, ""); err != nil {
			return err
		}
		plugged := make(chan error)
		go func() { plugged <- plug(tid) }() // not on this thread, because plug compares with its own namespace
		return <-plugged
	})
}

// Diagnose implements engine.Guest. gVisor ends itself with SIGKILL if the host's kernel kills one of its processes.
func (g *sandboxed) Diagnose() string {
	why := g.Base.Diagnose()
	if strings.HasSuffix(why, "exit status 137") {
		why += " (SIGKILL: usually the host's kernel killed one of gVisor's processes because the guest used up its memory)"
	}
	return why
}

// Names of gVisor's own processes. Those that run the guest's programs for it have no name.
const (
	sentryName = "runsc-sandbox" // its kernel
	goferName  = "runsc-gofer"   // opens files for it
)

// sentry finds gVisor's kernel: it is in the cgroup of the process that opened the ruler's socket for it.
func sentry(peer int) (int, error) {
	group, err := cgroup.Of(peer, "memory")
	if err != nil {
		return 0, err
	}
	pids, err := cgroup.Procs(group)
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		if nameOf(pid) == sentryName {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("no process in %s is called %s: install runsc of 2023 or later", group, sentryName)
}

// Threads implements engine.Guest: those of gVisor's processes that run programs are work. The ruler is among them, because the
// host cannot tell it from the others.
func (g *sandboxed) Threads() ([]engine.Thread, error) {
	pids, err := cgroup.Procs(g.Cgroup)
	if err != nil {
		return nil, err
	}
	var all []engine.Thread
	for _, pid := range pids {
		threads, err := engine.ThreadsOf([]int{pid}, 0)
		if err != nil {
			return nil, err
		}
		if n := nameOf(pid); n == sentryName || n == goferName {
			for i := range threads {
				threads[i].Role = notebook.RoleEmulator
			}
		}
		all = append(all, threads...)
	}
	return all, nil
}

// nameOf is the name under which a process was started; "" where it has none or has ended.
func nameOf(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return ""
	}
	name, _, _ := bytes.Cut(b, []byte{0})
	return string(name)
}
