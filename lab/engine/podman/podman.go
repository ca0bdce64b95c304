//go:build linux

// Package podman makes containers with Podman, as a command. Tare's containers are in their own store below the state folder, with
// their own locks, so that they and the user's Podman do not know each other. The root is the image's with an overlay by Tare
// (podman run --rootfs), as in an OCI runtime's container: Podman gets no image. Its seccomp filter and its capabilities are
// Podman's defaults.
package podman

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/cgroup"
	"tare/lab/device"
	"tare/lab/engine"
	"tare/lab/engine/oci/config"
	"tare/lab/image"
	"tare/lab/journal"
	"tare/lab/proc"
	"tare/lab/ruler"
	"tare/notebook"
)

// Kind is the engine Podman. It keeps the whole contract.
var Kind = engine.Kind{
	Takes:    notebook.Span{Low: 0.4, High: 2},
	Platform: notebook.CN, Name: "podman", Usual: true, Capabilities: []string{"podman"}, Fractions: true, Undo: undo, Lasting: []string{kindPodman},
	Unsaved:       "Tare does not drive podman container checkpoint; it can save containers of runc",
	Provisionings: notebook.Provisionings, Isolations: []string{notebook.IsolationFull},
	Networks: engine.Cabled,
	Ahead:    true,
	Copies:   true, RunsHooks: true,
	Daemons: []string{monitor},
	Program: "podman", Install: "apt-get install podman runc",
	Packages: []string{"podman", "runc"},
	New:      func(env engine.Env) engine.Driver { return &Driver{Env: env} },
}

// monitor is Podman's program that holds a container.
const monitor = "conmon"

// Driver makes containers with Podman.
type Driver struct {
	engine.Env
}

// store is where Podman keeps its state of Tare's containers.
type store struct{ dir string }

// run is the folder for what does not outlive a boot. longestRun is the greatest length of its path in bytes that Podman allows.
func (s store) run() string { return filepath.Join(s.dir, "run") }

const longestRun = 50

func (d *Driver) store() (store, error) {
	dir, err := filepath.Abs(filepath.Join(d.State, "podman"))
	if err != nil {
		return store{}, err
	}
	if n := len(store{dir}.run()); n > longestRun {
		return store{}, Kind.Unsupported("any container below the state folder "+d.State,
			fmt.Sprintf("its path may have at most %d characters, because Podman puts sockets there; choose a shorter one (TARE_STATE)", len(d.State)-(n-longestRun)))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return store{}, err
	}
	// Locks are files in the store, because the user's Podman would share locks in shared memory. A Podman before 5.0 ignores
	// cdi_spec_dirs, and looks in those folders anyway.
	text := "[engine]\nlock_type = \"file\"\nevents_logger = \"none\"\ncgroup_manager = \"cgroupfs\"\n" + fmt.Sprintf("cdi_spec_dirs = [\"%s\"]\n", strings.Join(device.Dirs, `", "`))
	return store{dir}, os.WriteFile(filepath.Join(dir, "containers.conf"), []byte(text), 0o600)
}

// command is a command of Podman's on the store. Its runtime is runc if it is installed. Podman prefers crun, but crun refuses a
// host where cgroup v2 has controllers next to v1. The runtime keeps its state of the guest's container in the guest's folder, so
// that it goes with the folder whatever Podman still knows.
func (s store) command(ctx context.Context, podman, folder string, args ...string) *exec.Cmd {
	global := []string{
		"--root", filepath.Join(s.dir, "root"), "--runroot", s.run(), "--tmpdir", filepath.Join(s.dir, "tmp"),
		"--storage-driver", "vfs", // the driver that leaves no mount; nothing is stored with it
		"--runtime-flag", "root=" + filepath.Join(folder, "runtime"),
	}
	if runc, err := exec.LookPath("runc"); err == nil {
		global = append(global, "--runtime", runc)
	}
	cmd := exec.CommandContext(ctx, podman, append(global, args...)...)
	cmd.Env = append(os.Environ(), "CONTAINERS_CONF="+filepath.Join(s.dir, "containers.conf"))
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second
	return cmd
}

// Prepare implements engine.Preparer: it makes the store.
func (d *Driver) Prepare(ctx context.Context, _ *image.Image) error {
	path, err := Kind.LookUp()
	if err != nil {
		return err
	}
	s, err := d.store()
	if err != nil {
		return err
	}
	if out, err := s.command(ctx, path, s.dir, "info", "--format", "{{.Version.Version}}").CombinedOutput(); err != nil {
		return fmt.Errorf("podman info: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Provision makes a container. An *engine.UnsupportedError says what no container can be.
func (d *Driver) Provision(ctx context.Context, s engine.Spec) (engine.Guest, error) {
	st, err := d.store()
	if err != nil {
		return nil, err
	}
	return Kind.Hold(ctx, d.Env, s, base(s), st.held(ctx, s))
}

// Create implements engine.Creator: it makes what `podman create` makes. The root is mounted already; the start makes the
// namespaces, cgroup and mounts.
func (d *Driver) Create(ctx context.Context, s engine.Spec) (*engine.Ahead, error) {
	st, err := d.store()
	if err != nil {
		return nil, err
	}
	return Kind.HoldAhead(ctx, d.Env, s, base(s), st.held(ctx, s))
}

func base(s engine.Spec) *engine.Base {
	return &engine.Base{Notes: []*notebook.Message{
		engine.NetworkNote(s.NetworkMode()), notebook.Say("seccomp-filter", "of", "Podman"), notebook.Say("default-capabilities", "of", "Podman"),
	}}
}

// held is how Podman holds a container. Its commands do not end with ctx, because Podman would leave half a container. They end
// with the guest.
func (st store) held(ctx context.Context, s engine.Spec) engine.Held {
	ctx = context.WithoutCancel(ctx)
	return engine.Held{
		Kind: kindPodman,
		Detail: func(path, folder string) map[string]string {
			return map[string]string{"program": path, "store": st.dir, "folder": folder}
		},
		Command: func(b *engine.Base, path, root, run string) (*exec.Cmd, error) {
			args, err := arguments(s, b.Folder, root, run, "run", "--rm")
			if err != nil {
				return nil, err
			}
			return st.command(ctx, path, b.Folder, args...), nil
		},
		Detached: func(b *engine.Base, path, root, run string) (create, start *exec.Cmd, err error) {
			args, err := arguments(s, b.Folder, root, run, "create")
			if err != nil {
				return nil, nil, err
			}
			return st.command(ctx, path, b.Folder, args...), st.command(ctx, path, b.Folder, "start", engine.ContainerName(s.ID)), nil
		},
	}
}

// arguments are those of `podman run` or `podman create`, as verb says.
func arguments(s engine.Spec, folder, root, run string, verb ...string) ([]string, error) {
	name := engine.ContainerName(s.ID)
	hs, err := cgroup.Mounted()
	if err != nil {
		return nil, err
	}
	processes, err := engine.MaxProcesses()
	if err != nil {
		return nil, err
	}
	limits := s.ContainerLimits()
	args := append(verb,
		"--name", name, "--hostname", config.Hostname(s.ID), "--cgroup-parent", "/"+name,
		"--conmon-pidfile", filepath.Join(folder, "conmon.pid"), "--log-driver", "none", "--systemd", "false", "--no-hosts",
		"--http-proxy=false", "--pids-limit", strconv.FormatInt(processes, 10), "--shm-size", strconv.FormatInt(config.ShmSize(s.Instance.Memory), 10),
	)
	if limits.Memory > 0 {
		memory := strconv.FormatInt(limits.Memory, 10)
		args = append(args, "--memory", memory)
		if hs.LimitsSwap() {
			args = append(args, "--memory-swap", memory) // memory and swap together: no swap
		}
	}
	if limits.Quota > 0 {
		q, err := config.Quota(limits.Quota)
		if err != nil {
			return nil, err
		}
		args = append(args, "--cpu-period", strconv.Itoa(config.Period), "--cpu-quota", strconv.FormatInt(q, 10))
	}
	if limits.CPUs != "" {
		args = append(args, "--cpuset-cpus", limits.CPUs)
	}
	network := notebook.NetNone // a namespace with only the loopback, into which the cable is plugged
	if s.NetworkMode() == notebook.NetHost {
		network = notebook.NetHost
	}
	args = append(args, "--network", network)
	ulimits, err := ulimits()
	if err != nil {
		return nil, err
	}
	args = append(args, ulimits...)
	if s.Devices.Hooks != nil {
		// Podman runs them only for a device that it finds itself, with everything that comes with it.
		for _, dir := range s.Devices.Dirs {
			if !slices.Contains(device.Dirs, dir) {
				return nil, Kind.Unsupported("the device "+s.Devices.String(),
					fmt.Sprintf("it is described in %s, but Podman reads descriptions only in %s, and the device needs programs that Podman must run", dir, strings.Join(device.Dirs, " and ")))
			}
		}
		for _, name := range s.Devices.Names {
			args = append(args, "--device", name)
		}
		s.Devices = device.Edits{}
	}
	for _, n := range s.Devices.Nodes {
		if strings.Contains(n.Host+n.Path, ":") {
			return nil, Kind.Unsupported(fmt.Sprintf("the device %q", n.Host), "Podman takes no colon in a device's path")
		}
		args = append(args, "--device", n.Host+":"+n.Path+":"+n.Access)
	}
	mounts := []device.Mount{{Host: run, Path: ruler.RunDir, ReadOnly: true}}
	if s.Work != nil {
		mounts = append(mounts, device.Mount{Host: s.Work.Dir, Path: ruler.WorkDir, ReadOnly: true})
	}
	for _, m := range append(mounts, s.Mounts()...) {
		for _, path := range []string{m.Host, m.Path} {
			if strings.ContainsAny(path, ",\"\n") {
				return nil, Kind.Unsupported(fmt.Sprintf("a mount of %q", path), "Podman takes no comma, quote or line break in a path; rename it")
			}
		}
		words := "type=bind,source=" + m.Host + ",target=" + m.Path + ",bind-propagation=rprivate"
		if m.ReadOnly {
			words += ",ro"
		}
		args = append(args, "--mount", words)
	}
	return slices.Concat(args, []string{"--rootfs", root}, engine.RulerArgs), nil
}

// ulimits are Tare's own limits. Podman's defaults raise them, which a root without CAP_SYS_RESOURCE may not do. Podman itself
// lowers the number of processes to the kernel's greatest process id, so a container can have no more.
func ulimits() (args []string, err error) {
	most, err := proc.Host.Number("/proc/sys/kernel/pid_max")
	if err != nil {
		return nil, err
	}
	for _, l := range []struct {
		name  string
		which int
		most  uint64
	}{{"nofile", unix.RLIMIT_NOFILE, unix.RLIM_INFINITY}, {"nproc", unix.RLIMIT_NPROC, uint64(most)}} {
		var own unix.Rlimit
		if err := unix.Getrlimit(l.which, &own); err != nil {
			return nil, fmt.Errorf("reading the limit %s: %w", l.name, err)
		}
		args = append(args, "--ulimit", fmt.Sprintf("%s=%d:%d", l.name, int64(min(own.Cur, l.most)), int64(min(own.Max, l.most)))) // -1: no limit
	}
	return args, nil
}

// kindPodman is the journal's kind for a Podman container; its target is the name.
const kindPodman = "podman-container"

func undo() map[string]journal.Undo { return map[string]journal.Undo{kindPodman: undoPodman} }

// undoPodman removes a container in any state.
func undoPodman(ctx context.Context, e journal.Entry) error {
	if err := engine.OwnFolder(e, e.Detail["folder"]); err != nil {
		return err
	}
	kept := store{e.Detail["store"]}
	if dir, err := filepath.EvalSymlinks(kept.dir); err == nil && dir != filepath.Join(e.State, "podman") {
		return fmt.Errorf("%q is not the store below %q", kept.dir, e.State)
	}
	programs := []string{e.Detail["program"]}
	if path, err := exec.LookPath(monitor); err == nil {
		programs = append(programs, path)
	}
	// End the programs first: while they live they may make what the next step looks for.
	if err := proc.EndAll(ctx, e.Detail["folder"], programs); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	remove := func() error {
		out, err := kept.command(bounded, e.Detail["program"], e.Detail["folder"], "rm", "--force", "--ignore", "--time", "0", e.Target).CombinedOutput()
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
				return fmt.Errorf("%w: %w; install Podman again", journal.ErrUnreachable, err)
			}
			return fmt.Errorf("podman rm %s: %w: %s", e.Target, err, strings.TrimSpace(string(out)))
		}
		return nil
	}
	removing := remove()
	if removing != nil {
		// While the container's first process is dead but not yet waited for, Podman takes the runtime's "not running" for a
		// failure to stop it. By then it has recorded that it is stopping, and continues from there.
		removing = remove()
	}
	// The rest of it is in its cgroup, with what Podman started to clean up after it.
	return errors.Join(removing, cgroup.RemoveEverywhere(ctx, e.Target))
}
