//go:build linux

// Package node runs a program on the node of a privileged Kubernetes pod, as if somebody had logged in there: in the host's namespaces, in no
// pod's cgroup, and in a folder of the host. The pod needs hostPID, hostNetwork and privileged. Run is called in the pod; it starts this program
// again with Command, which enters the host and then becomes the other program.
package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"tare/lab/cgroup"
	"tare/lab/proc"
)

// Command is the hidden command of tare that calls Main.
const Command = "enter-node"

// Program is what to run on the node.
type Program struct {
	Args   []string // the program, an absolute path on the node, and its arguments
	Env    []string // in addition to PATH, HOME and the socket of the node's containerd
	Folder string   // in which it runs: an absolute path on the node
	Seen   string   // the same folder, as the pod sees it
}

// Run runs the program on the node until it ends, and returns its exit status. When ctx is done, the program gets SIGTERM, and Run still waits:
// Kubernetes kills the pod after its grace period. If this process dies, the program gets SIGTERM as well, and can put the host in order outside
// of the pod. An error says why the program cannot run.
func Run(ctx context.Context, p Program, out, said io.Writer) (status int, err error) {
	text, err := json.Marshal(p)
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", Command, string(text))
	cmd.Stdout, cmd.Stderr = out, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setsid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	runtime.LockOSThread() // the kernel's parent-death signal comes when this thread ends
	defer runtime.UnlockOSThread()
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case cmd.ProcessState == nil:
		return 0, err
	case errors.As(err, &exit) && !exit.Exited():
		return 128 + int(exit.Sys().(syscall.WaitStatus).Signal()), nil // as shells have it
	}
	return cmd.ProcessState.ExitCode(), nil
}

// Main turns this process into the program that Run describes. It returns only with an error.
func Main(args []string) error {
	var p Program
	if len(args) != 1 || json.Unmarshal([]byte(args[0]), &p) != nil || len(p.Args) == 0 {
		return errors.New("only tare itself calls this command")
	}
	parent := os.Getppid()
	pid, err := witness()
	if err != nil {
		return err
	}
	return proc.Apart(func() error {
		if err := enter(pid, p.Folder, p.Seen); err != nil {
			return err
		}
		if err := leaveGroups(); err != nil {
			return err
		}
		// The kernel ends a pod's processes first when memory runs out. Some hosts forbid the change, and then the program stays among them.
		_ = os.WriteFile("/proc/self/oom_score_adj", []byte("0"), 0)
		// The signal comes only to the thread that asked for it, and this one goes on as the program.
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGTERM), 0, 0, 0); err != nil {
			return err
		}
		if os.Getppid() != parent {
			return errors.New("the pod's process has ended")
		}
		return fmt.Errorf("%s: %w", p.Args[0], unix.Exec(p.Args[0], p.Args, environment(p.Env)))
	})
}

// environment is that of a program on the node.
func environment(more []string) []string {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	return append(env, more...)
}

// witness is a process in the host's namespaces, by which a process of a pod finds them: process 1 of the host, or, where the kernel denies a
// look at its namespaces, the container runtime's process on the host that started the pod.
func witness() (int, error) {
	above, err := starter()
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, pid := range []int{1, above} {
		_, err := os.Readlink(file(pid, "mnt"))
		if err == nil {
			return pid, nil
		}
		errs = append(errs, err)
	}
	return 0, fmt.Errorf("no look at the host's namespaces: %w; the pod must be privileged", errors.Join(errs...))
}

// starter is the closest process above this one that is in another mount namespace: it started the pod's container.
func starter() (int, error) {
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return 0, err
	}
	for pid := os.Getppid(); pid > 1; {
		if of, err := os.Readlink(file(pid, "mnt")); err == nil && of != own {
			return pid, nil
		}
		if pid, err = proc.Parent(pid); err != nil {
			return 0, err
		}
	}
	return 0, errors.New("this process sees no process of the host above it; the pod's specification must have hostPID: true")
}

// kinds are the namespaces that programs on the host share: their files in /proc/PID/ns, their flags, and for those that a pod can share with the
// host from the start, the key of its specification. The mount namespace comes last, because it has another /proc.
var kinds = []struct {
	file string
	flag int
	key  string
}{
	{"user", unix.CLONE_NEWUSER, "hostUsers"}, {"pid", unix.CLONE_NEWPID, "hostPID"}, {"net", unix.CLONE_NEWNET, "hostNetwork"},
	{"ipc", unix.CLONE_NEWIPC, ""}, {"uts", unix.CLONE_NEWUTS, ""}, {"cgroup", unix.CLONE_NEWCGROUP, ""}, {"mnt", unix.CLONE_NEWNS, ""},
}

func file(pid int, kind string) string { return fmt.Sprintf("/proc/%d/ns/%s", pid, kind) }

// differences names the namespaces in which the calling thread is not where process pid is.
func differences(pid int) (all []string, err error) {
	for _, k := range kinds {
		of, err := os.Readlink(file(pid, k.file))
		if err != nil {
			return nil, err
		}
		own, err := os.Readlink("/proc/thread-self/ns/" + k.file)
		if err != nil {
			return nil, err
		}
		if of != own {
			all = append(all, k.file)
		}
	}
	return all, nil
}

// enter puts the calling thread into the namespaces of process pid and into a folder there. It checks that the thread shares all of them then,
// and that the folder is the one that the pod sees, so that these are the namespaces of the kubelet's host.
func enter(pid int, folder, seen string) error {
	before, err := os.Stat(seen)
	if err != nil {
		return err
	}
	different, err := differences(pid)
	if err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // a thread that shares its working folder cannot change its mounts
		return err
	}
	for _, k := range kinds {
		if !slices.Contains(different, k.file) {
			continue
		}
		if k.key != "" {
			return fmt.Errorf("the pod has a namespace %s of its own; its specification must have %s: true", k.file, k.key)
		}
		f, err := os.Open(file(pid, k.file))
		if err != nil {
			return err
		}
		err = unix.Setns(int(f.Fd()), k.flag)
		f.Close() // only read: a failing close loses nothing
		if err != nil {
			return fmt.Errorf("enter the host's namespace %s: %w; the pod must be privileged", k.file, err)
		}
	}
	if different, err = differences(pid); err != nil {
		return err
	}
	if different != nil {
		return fmt.Errorf("after entering the host, these namespaces are still not those of its process %d: %s", pid, strings.Join(different, ", "))
	}
	if err := os.Chdir(folder); err != nil {
		return err
	}
	after, err := os.Stat(".")
	if err != nil {
		return err
	}
	if !os.SameFile(before, after) {
		return fmt.Errorf("the folder %s of process %d is not the pod's %s: they are on different hosts", folder, pid, seen)
	}
	return nil
}

// leaveGroups moves this process to the root of every hierarchy of cgroups. Its memory and CPU time then count for no pod, and no pod's limit
// holds for it.
func leaveGroups() error {
	f, err := os.Open("/proc/thread-self/mountinfo") // /proc/self has the first thread's
	if err != nil {
		return err
	}
	defer f.Close() // only read: a failing close loses nothing
	mounts, err := mountinfo.GetMountsFromReader(f, nil)
	if err != nil {
		return err
	}
	all, err := cgroup.Among(mounts)
	if err != nil {
		return err
	}
	for _, h := range all {
		if err := os.WriteFile(filepath.Join(h.At, "cgroup.procs"), []byte("0"), 0); err != nil {
			return fmt.Errorf("leave the pod's cgroup: %w", err)
		}
	}
	return nil
}

// Containerd is the socket of the containerd that started this pod, by the command line of the shim above it; empty: another runtime did.
func Containerd() string {
	pid, err := starter()
	if err != nil {
		return ""
	}
	line, err := proc.Host.Read(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	return socketIn(line)
}

// socketIn finds the socket in the command line of a containerd-shim, whose arguments end with NUL.
func socketIn(line string) string {
	args := strings.Split(line, "\x00")
	if !strings.HasPrefix(filepath.Base(args[0]), "containerd-shim") {
		return ""
	}
	i := slices.Index(args, "-address")
	if i < 0 || i+1 >= len(args) || !filepath.IsAbs(args[i+1]) {
		return ""
	}
	return args[i+1]
}
