//go:build linux

// Package lxc makes containers with LXC.
package lxc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/lab/engine/criu"
	"tare/lab/engine/oci/config"
	"tare/lab/journal"
	"tare/notebook"
)

const saving = "lxc restore" // the capability to save and restore containers

// Kind is the engine LXC. It keeps the whole contract.
var Kind = engine.Kind{
	Takes:    notebook.Span{Low: 0.1, High: 0.9},
	Platform: notebook.CN, Name: "lxc", Capabilities: []string{"lxc", saving}, Saving: saving, Fractions: true, Systems: true, Copies: true, Undo: undo,
	Provisionings: notebook.Provisionings, Isolations: []string{notebook.IsolationFull},
	Networks: engine.Cabled,
	Program:  "lxc-start", Install: "apt-get install lxc",
	Packages: []string{"lxc"},
	New:      func(env engine.Env) engine.Driver { return &Driver{Env: env} },
}

// Driver makes containers with LXC's own program. It requests the same as from an OCI runtime, as far as LXC supports it: the same
// namespaces, capabilities and device rules, no seccomp filter and no AppArmor profile.
type Driver struct {
	engine.Env
}

// kindLXC is the journal's kind for an LXC container; its target is the name.
const kindLXC = "lxc-container"

func undo() map[string]journal.Undo { return map[string]journal.Undo{kindLXC: undoLXC} }

// extraCgroups are the cgroups that LXC makes for a container in addition to the container's own: one for the program that holds
// it, and one that this program moves to when it removes the others.
var extraCgroups = []string{"-monitor", "-pivot"}

// Provision makes a container. An *engine.UnsupportedError says what no container can be.
func (d *Driver) Provision(ctx context.Context, s engine.Spec) (engine.Guest, error) {
	g := &guest{Base: engine.Base{Notes: []*notebook.Message{
		engine.NetworkNote(s.NetworkMode()),
		notebook.Say("unfiltered"),
		notebook.Say("lxc-masks-nothing"),
	}}}
	return Kind.Hold(ctx, d.Env, s, g, engine.Held{
		Kind: kindLXC, Command: g.command, Returns: s.Moments != nil,
		Detail: func(path, folder string) map[string]string {
			return map[string]string{"program": path, "restorer": restorerOf(path), "folder": folder}
		},
	})
}

// guest is an LXC container. If its start is timed, LXC holds it as it does for its users: lxc-start returns when it runs. Only such a
// container can be saved, because only its standard files are /dev/null.
type guest struct {
	engine.Base
	restorer string // path of the program that saves and restores it
	state    criu.State

	console *os.File // console output of a whole system, if its start is timed
	read    chan struct{}
}

// listen makes the pipe into which LXC copies the console, and reads it until the guest is destroyed.
func (g *guest) listen() (path string, err error) {
	path = filepath.Join(g.Folder, "console")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return "", fmt.Errorf("a pipe for the console: %w", err)
	}
	if g.console, err = os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0); err != nil { // opened only for reading, it would end with each writer
		return "", err
	}
	g.read = make(chan struct{})
	go func() {
		defer close(g.read)
		_, _ = io.Copy(io.Discard, g.Spec.Moments.Watch(g.console, engine.Prompt, notebook.MomentLogin)) // ends when the pipe is closed
	}()
	return path, nil
}

// Destroy implements engine.Guest.
func (g *guest) Destroy(ctx context.Context) error {
	err := errors.Join(g.state.Close(), g.Base.Destroy(ctx))
	if g.console != nil {
		g.console.Close()
		<-g.read
	}
	return err
}

// command writes the configuration and returns the command that runs it.
func (g *guest) command(_ *engine.Base, path, root, run string) (*exec.Cmd, error) {
	g.restorer = restorerOf(path)
	c, err := g.Spec.OCI(root, run)
	if err != nil {
		return nil, err
	}
	c.Cgroup = engine.ContainerName(g.Spec.ID)
	of := kernel{unified: c.CgroupNamespace}
	if _, err := os.Stat("/sys/module/apparmor"); err == nil {
		of.appArmor = true
	}
	text, err := configure(c, of)
	if err != nil {
		return nil, err
	}
	held := "--foreground"
	if g.Spec.Moments != nil {
		held = "--daemon"
		if g.Spec.System {
			console, err := g.listen()
			if err != nil {
				return nil, err
			}
			text += "lxc.console.logfile = " + console + "\n"
		}
	}
	file := g.file("lxc.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	// Without a log of its own LXC would make one, and a folder for it.
	return exec.Command(path, held, "--name", c.Cgroup, "--rcfile", file,
		"--logfile", filepath.Join(g.Folder, "lxc.log"), "--logpriority", "ERROR"), nil
}

// kernel is what a container's configuration needs to know of the host's kernel.
type kernel struct {
	unified  bool // all controllers are in cgroup v2
	appArmor bool // without AppArmor a container has no profile, and CRIU refuses to restore one that names a profile
}

// configure is the configuration of a container, lxc.container.conf(5).
func configure(c config.Container, of kernel) (string, error) {
	f := &configuration{kernel: of}
	f.start(c)
	if err := f.mounts(c); err != nil {
		return "", err
	}
	f.rights(c)
	if err := f.limits(c); err != nil {
		return "", err
	}
	f.devices(c)
	if f.bad != nil {
		return "", Kind.Unsupported("a container with a line break in a path", strings.Join(f.bad, ", ")+"; rename it")
	}
	return f.text.String(), nil
}

// configuration is the configuration of a container in the making.
type configuration struct {
	kernel
	text strings.Builder
	bad  []string // values that do not fit on a line
}

// set adds a line.
func (f *configuration) set(key, value string) {
	if strings.ContainsAny(value, "\n\x00") {
		f.bad = append(f.bad, fmt.Sprintf("%q", value))
	}
	fmt.Fprintf(&f.text, "lxc.%s = %s\n", key, value)
}

// limit sets a file of the container's cgroup, which has a name in each version.
func (f *configuration) limit(v1, v2, value string) {
	if f.unified {
		f.set("cgroup2."+v2, value)
	} else {
		f.set("cgroup."+v1, value)
	}
}

// mount adds a line in the format of fstab(5), with the target below the root.
func (f *configuration) mount(source, target, kind, options string) {
	f.set("mount.entry", strings.Join([]string{escape.Replace(source), strings.TrimPrefix(target, "/"), kind, options, "0", "0"}, " "))
}

// start sets the root and the first process with its environment.
func (f *configuration) start(c config.Container) {
	f.set("rootfs.path", "dir:"+c.Root)
	f.set("uts.name", config.Hostname(c.Hostname))
	f.set("init.cmd", strings.Join(c.Args, " "))
	f.set("autodev", "1")
	f.set("pty.max", "1024")
	f.set("tty.max", "0")
	if c.System { // as LXC's templates for Debian, except for what a container has on any engine
		f.set("mount.auto", "proc:mixed sys:mixed cgroup:mixed")
		f.set("signal.halt", "SIGRTMIN+3")
		f.set("console.buffer.size", "64kB") // so that nobody needs to read the console
	} else {
		f.set("mount.auto", "proc:mixed sys:ro")
		f.set("console.path", "none")
	}
}

// mounts sets the mounts below the root: the usual filesystems, the container's folders, and its devices.
func (f *configuration) mounts(c config.Container) error {
	f.mount("shm", "/dev/shm", "tmpfs", "nosuid,nodev,noexec,mode=1777,size="+strconv.FormatInt(c.Shm, 10)+",create=dir")
	f.mount("mqueue", "/dev/mqueue", "mqueue", "nosuid,nodev,noexec,create=dir")
	for _, m := range c.Mounts {
		f.mount(m.Source, m.Destination, "none", "bind,ro,create=dir")
	}
	for _, n := range c.Devices.Nodes {
		f.mount(n.Host, n.Path, "none", "bind,create=file")
	}
	for _, m := range c.Devices.Mounts {
		options := "bind"
		if m.ReadOnly {
			options += ",ro"
		}
		is, err := os.Stat(m.Host)
		if err != nil {
			return err
		}
		if is.IsDir() {
			options += ",create=dir"
		} else {
			options += ",create=file"
		}
		f.mount(m.Host, m.Path, "none", options)
	}
	return nil
}

// rights restricts the container's network and capabilities.
func (f *configuration) rights(c config.Container) {
	if c.HostNetwork {
		f.set("net.0.type", "none")
	} else {
		f.set("net.0.type", "empty") // a namespace with only the loopback
		f.set("net.0.flags", "up")   // which other engines set up too
	}
	if f.appArmor {
		f.set("apparmor.profile", "unconfined")
	}
	if c.System {
		f.set("cap.drop", "sys_module mac_admin mac_override sys_time sys_rawio")
	} else {
		keep := make([]string, len(config.Capabilities))
		for i, name := range config.Capabilities {
			keep[i] = strings.ToLower(strings.TrimPrefix(name, "CAP_"))
		}
		f.set("cap.keep", strings.Join(keep, " "))
	}
}

// limits sets the container's cgroups and its limits of CPU time, memory and processes.
func (f *configuration) limits(c config.Container) error {
	f.set("cgroup.dir.container", c.Cgroup)
	f.set("cgroup.dir.monitor", c.Cgroup+extraCgroups[0])
	f.set("cgroup.dir.monitor.pivot", c.Cgroup+extraCgroups[1])
	if c.Memory > 0 {
		memory := strconv.FormatInt(c.Memory, 10)
		f.limit("memory.limit_in_bytes", "memory.max", memory)
		if c.LimitSwap && f.unified {
			f.set("cgroup2.memory.swap.max", "0")
		} else if c.LimitSwap {
			f.set("cgroup.memory.memsw.limit_in_bytes", memory)
		}
	}
	if c.Processes > 0 {
		f.limit("pids.max", "pids.max", strconv.FormatInt(c.Processes, 10))
	}
	if c.Quota > 0 {
		q, err := config.Quota(c.Quota)
		if err != nil {
			return err
		}
		if f.unified {
			f.set("cgroup2.cpu.max", fmt.Sprintf("%d %d", q, config.Period))
		} else {
			f.set("cgroup.cpu.cfs_period_us", strconv.Itoa(config.Period))
			f.set("cgroup.cpu.cfs_quota_us", strconv.FormatInt(q, 10))
		}
	}
	if c.CPUs != "" {
		f.limit("cpuset.cpus", "cpuset.cpus", c.CPUs)
	}
	return nil
}

// devices sets the devices that the container may open.
func (f *configuration) devices(c config.Container) {
	f.limit("devices.deny", "devices.deny", "a")
	for _, rule := range allowed {
		f.limit("devices.allow", "devices.allow", rule)
	}
	for _, n := range c.Devices.Nodes {
		kind := "c"
		if n.Block {
			kind = "b"
		}
		f.limit("devices.allow", "devices.allow", fmt.Sprintf("%s %d:%d %s", kind, n.Major, n.Minor, n.Access))
	}
}

// allowed are the devices that OCI runtimes allow every container.
var allowed = []string{
	"c *:* m", "b *:* m",
	"c 1:3 rwm", "c 1:5 rwm", "c 1:7 rwm", "c 1:8 rwm", "c 1:9 rwm", // null, zero, full, random, urandom
	"c 5:0 rwm", "c 5:1 rwm", "c 5:2 rwm", "c 136:* rwm", // tty, console, ptmx, pts
}

// escape writes a path as fstab(5) needs it.
var escape = strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`)

// undoLXC removes a container in any state. LXC keeps no state of a container other than its processes.
func undoLXC(ctx context.Context, e journal.Entry) error {
	if err := engine.OwnFolder(e, e.Detail["folder"]); err != nil {
		return err
	}
	// End the program first: while it lives it may make what the next step looks for.
	if err := criu.End(ctx, e.Detail["folder"], e.Detail["program"], e.Detail["restorer"]); err != nil {
		return err
	}
	return errors.Join(removeCgroups(ctx, e.Target), criu.RemoveMounts(e.Detail["folder"]))
}

// removeCgroups removes the cgroups of the container of that name, and those that LXC makes in addition.
func removeCgroups(ctx context.Context, name string) error {
	errs := []error{cgroup.RemoveEverywhere(ctx, name)}
	for _, suffix := range extraCgroups {
		errs = append(errs, cgroup.RemoveEverywhere(ctx, name+suffix))
	}
	return errors.Join(errs...)
}
