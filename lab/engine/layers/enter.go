//go:build linux

package layers

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"github.com/moby/sys/capability"
	"golang.org/x/sys/unix"

	"tare/lab/engine"
	"tare/lab/engine/oci/config"
	"tare/lab/proc"
)

// Command is the argument of tare that calls Main.
const Command = "layers"

// refusal begins Main's error when the kernel refuses a layer; the layer's name and ": " follow.
const refusal = "refused layer "

// entry says what a process enters before it becomes the ruler.
type entry struct {
	Layer    string // the topmost
	Ruler    string // path of its program
	Cgroups  []string
	CPUs     []int
	Hostname string // with the layer uts
}

func (e entry) has(layer string) bool { return Has(e.Layer, layer) }

// Main is `tare layers ROOT ENTRY`, which tare itself starts. It enters the layers that no flag of clone(2) brings, with the folder
// as its root, and becomes the ruler by an execve. The execve leaves nothing behind: a Go program sets capabilities and filters for
// one thread only. Main returns only on failure, with the exit status and one line on standard error.
func Main(args []string) int {
	runtime.LockOSThread()
	var e entry
	err := errors.New("tare starts it itself, with a root and what to enter")
	if len(args) == 2 {
		err = json.Unmarshal([]byte(args[1]), &e)
	}
	if err == nil {
		err = e.enter(args[0])
	}
	fmt.Fprintf(os.Stderr, "tare %s: %v\n", Command, err)
	return 1
}

// refused is the error for a layer that the kernel refuses.
func refused(layer string, err error) error { return fmt.Errorf("%s%s: %w", refusal, layer, err) }

func (e entry) enter(root string) error {
	for _, dir := range e.Cgroups {
		if err := engine.WriteSetting(filepath.Join(dir, "cgroup.procs"), "0"); err != nil { // 0: the writing process
			return fmt.Errorf("entering cgroup %s: %w", dir, err)
		}
	}
	// Entering a cpuset of version 1 may widen the affinity to that set.
	if err := proc.Bind(0, e.CPUs); err != nil {
		return fmt.Errorf("setting its CPUs to %v: %w", e.CPUs, err)
	}
	if e.has("uts") {
		if err := unix.Sethostname([]byte(e.Hostname)); err != nil {
			return refused("uts", err)
		}
	}
	program, err := os.Open(e.Ruler) // the path means nothing in the new root
	if err != nil {
		return err
	}
	if err := e.changeRoot(root); err != nil {
		return err
	}
	// Set the filter without no_new_privs, as engines do. That needs a capability which is dropped next.
	if e.has("seccomp") {
		if err := setFilter(); err != nil {
			return refused("seccomp", err)
		}
	}
	if e.has("capabilities") {
		if err := dropCapabilities(); err != nil {
			return refused("capabilities", err)
		}
	}
	err = syscall.Exec(fmt.Sprintf("/proc/self/fd/%d", program.Fd()), []string{"ruler", "--fd", "3"}, []string{})
	return fmt.Errorf("becoming the ruler: %w", err)
}

// changeRoot makes the guest's root the root of this process.
func (e entry) changeRoot(root string) error {
	if e.has("mount") {
		// The host must not see these changes.
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("keeping its mounts to itself: %w", err)
		}
	}
	for _, m := range []struct {
		layer, kind, path string
		flags             uintptr
	}{
		{"pid", "proc", "/proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"network", "sysfs", "/sys", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_RDONLY},
	} {
		if !e.has(m.layer) {
			continue
		}
		// The mount there shows the host's namespaces. When it was made, the path was checked to be a folder and not a link.
		at := root + m.path
		if err := unix.Unmount(at, unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("removing the host's %s from %s: %w", m.kind, at, err)
		}
		if err := unix.Mount(m.kind, at, m.kind, m.flags, ""); err != nil {
			return fmt.Errorf("mount of %s at %s: %w", m.kind, at, err)
		}
	}
	if !e.has("mount") {
		if err := unix.Chroot(root); err != nil {
			return fmt.Errorf("making %s the root: %w", root, err)
		}
		return os.Chdir("/")
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	// The old root is then over the new one, and is unmounted (pivot_root(2)).
	if err := unix.PivotRoot(".", "."); err != nil {
		return refused("mount", fmt.Errorf("pivot_root to %s: %w", root, err))
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the host's mounts behind: %w", err)
	}
	return os.Chdir("/")
}

// setFilter sets Docker's default filter for this thread and the program that it becomes.
func setFilter() error {
	list, err := config.Seccomp()
	if err != nil {
		return err
	}
	prog, err := assemble(list)
	if err != nil {
		return err
	}
	p := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&p))); errno != 0 {
		return errno
	}
	return nil
}

// capabilities are those that Docker leaves a container by default.
func capabilities() (left []capability.Cap, err error) {
	known := map[string]capability.Cap{}
	for _, c := range capability.ListKnown() {
		known["CAP_"+strings.ToUpper(c.String())] = c
	}
	for _, name := range config.Capabilities {
		c, ok := known[name]
		if !ok {
			return nil, fmt.Errorf("capability %s: its number is unknown", name)
		}
		left = append(left, c)
	}
	return left, nil
}

// dropCapabilities drops all other capabilities from this thread and the program that it becomes. execve would give it the whole
// bounding set.
func dropCapabilities() error {
	left, err := capabilities()
	if err != nil {
		return err
	}
	caps, err := capability.NewPid2(0) // this thread; none are set
	if err != nil {
		return err
	}
	caps.Set(capability.EFFECTIVE|capability.PERMITTED|capability.BOUNDING, left...)
	return caps.Apply(capability.CAPS | capability.BOUNDING)
}
