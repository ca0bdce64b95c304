//go:build linux

package cn

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/notebook"
)

// RunscName is the name of gVisor's OCI runtime: with it an OCI is the engine gvisor.
const RunscName = "runsc"

const gVisorEngine = "gvisor"

func (d *OCI) isGVisor() bool { return filepath.Base(d.Runtime) == RunscName }

// gVisorLacks is what gVisor cannot keep of the contract: it is one program on the host that plays a kernel.
var gVisorLacks = []engine.Lack{
	{Name: engine.LackOOMCount, Why: "gVisor's kernel has no such count, so a trial that was killed for memory shows SIGKILL alone"},
	{Name: engine.LackHostProcesses, Why: "the host sees gVisor's own processes alone, and the guest numbers its CPUs from 0"},
	{Name: engine.LackCPUTime, Why: "gVisor counts by a clock of its own, which goes on while its quota is used up"},
}

var gVisorNotes = []string{
	"the kernel is gVisor's, a program on the host that catches every system call (platform systrap)",
	"what the guest writes to its root goes to gVisor's own overlay, as is its default, over the container's",
	"no raw sockets, as is gVisor's default",
}

// toGVisor gives what runsc is told beyond an OCI runtime's configuration, and the path of the network namespace; "":
// any. gVisor takes over a namespace's links as they are when it starts, so the cable is plugged before.
func toGVisor(g *guest, folder string) (flags []string, namespace string, err error) {
	// Its other platform, kvm, is a virtual machine. The host's only socket in the container is the ruler's.
	flags = []string{"--platform=systrap", "--host-uds=open"}
	switch g.network {
	case notebook.NetHost:
		return append(flags, "--network=host"), "", nil
	case notebook.NetBridge:
		namespace = filepath.Join(folder, "netns")
		if err := makeNamespace(namespace, g.Connection.Plug); err != nil {
			return nil, "", fmt.Errorf("a network namespace: %w", err)
		}
		flags = append(flags, "--network=sandbox")
	default:
		flags = append(flags, "--network=none")
	}
	return flags, namespace, nil
}

// makeNamespace makes a network namespace, has plug connect it under the id of a thread that is in it, and keeps it as
// a mount at path, with which it ends.
func makeNamespace(path string, plug func(pid int) error) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	made, plugged, done := make(chan int), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- inNamespace(path, func(tid int) {
			made <- tid
			<-plugged
		})
	}()
	select {
	case tid := <-made:
		err := plug(tid) // not on that thread: it compares with its own namespace
		close(plugged)
		return errors.Join(err, <-done)
	case err := <-done:
		return err
	}
}

// inNamespace makes a network namespace, mounts it at path, and calls f with the id of this thread, which is in it. A
// thread that cannot be brought back stays locked, and ends with its goroutine.
func inNamespace(path string, f func(tid int)) error {
	runtime.LockOSThread()
	here, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer here.Close()
	made, err := netns.New() // and this thread is in it
	if err == nil {
		defer made.Close() // the mount keeps it
		tid := unix.Gettid()
		if err = unix.Mount(fmt.Sprintf("/proc/self/task/%d/ns/net", tid), path, "", unix.MS_BIND, ""); err == nil {
			f(tid)
		}
	}
	if serr := netns.Set(here); serr != nil {
		return errors.Join(err, fmt.Errorf("leaving it: %w", serr))
	}
	runtime.UnlockOSThread()
	return err
}

// What gVisor's own processes are called; those that run the guest's programs for it have no name.
const (
	sentryName = "runsc-sandbox" // its kernel
	goferName  = "runsc-gofer"   // opens files for it
)

// sentry finds gVisor's kernel: it is in the cgroup of the one who opened the ruler's socket for it.
func sentry(peer int) (int, error) {
	group, err := cgroupOf(peer)
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
	return 0, fmt.Errorf("no process in %s is called %s: want runsc of 2023 or later", group, sentryName)
}

// sandboxThreads are the threads of gVisor's processes: those that run programs are work, the ruler among them, which
// cannot be told apart from the host.
func sandboxThreads(group string) ([]engine.Thread, error) {
	pids, err := cgroup.Procs(group)
	if err != nil {
		return nil, err
	}
	all, err := engine.ThreadsOf(pids, 0)
	if err != nil {
		return nil, err
	}
	own := map[int]bool{}
	for _, pid := range pids {
		if n := nameOf(pid); n != sentryName && n != goferName {
			continue
		}
		tids, err := engine.Tasks(pid)
		if err != nil {
			return nil, err
		}
		for _, tid := range tids {
			own[tid] = true
		}
	}
	for i, t := range all {
		if own[t.ID] {
			all[i].Role = notebook.RoleEmulator
		}
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
