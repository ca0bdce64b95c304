//go:build linux

package cn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"tare/lab/engine"
	"tare/lab/engine/oci"
	"tare/lab/journal"
	"tare/lab/proc"
	"tare/notebook"
)

// LXC makes containers with LXC's own program. What it is asked for is what an OCI runtime is (package oci), as far as
// LXC has it: the same namespaces, capabilities and device rules, no seccomp filter and no AppArmor profile.
type LXC struct {
	// Journal has every change that is made on the host.
	Journal *journal.Journal
	// State is the folder below which the guests' folders are made.
	State string
	// Ruler is the path of the ruler's program.
	Ruler string
}

const (
	lxcEngine  = "lxc"
	lxcProgram = "lxc-start"
	lxcInstall = "apt-get install lxc"
)

// kindLXC is the journal's kind for a container of LXC, target its name.
const kindLXC = "lxc-container"

// lxcCgroups are what LXC makes for a container beside its own cgroup: for the program that holds it, and for that
// program to go to when it removes the others.
var lxcCgroups = []string{"-monitor", "-pivot"}

var lxcNotes = []string{
	"no seccomp filter, no AppArmor profile",
	"LXC masks nothing in /proc but makes /proc/sys and /sys read-only",
}

// Provision makes a container. A *engine.CannotError says what no container can be.
func (d *LXC) Provision(ctx context.Context, s engine.Spec) (engine.Guest, error) {
	program, err := lookUp(lxcProgram)
	if err != nil {
		return nil, fmt.Errorf("LXC: %w; install it (%s)", err, lxcInstall)
	}
	h := holder{journal: d.Journal, state: d.State, engine: lxcEngine, program: program, notes: lxcNotes}
	h.command = func(g *guest, folder, root, socket string) (*exec.Cmd, error) {
		c, err := container(d.Ruler, root, socket, s)
		if err != nil {
			return nil, err
		}
		hs, err := hierarchies()
		if err != nil {
			return nil, err
		}
		c.Cgroup, c.LimitSwap = containerName(s.ID), hs.accountsSwap()
		config, err := lxcConfig(c, hs.unified())
		if err != nil {
			return nil, err
		}
		file := filepath.Join(folder, "lxc.conf")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			return nil, err
		}
		if err := g.Changes.Announce(journal.Entry{Kind: kindLXC, Target: c.Cgroup, Detail: map[string]string{
			"program": program, "folder": folder,
		}}); err != nil {
			return nil, err
		}
		// Without a log of its own LXC makes one, and the folder for it.
		return exec.Command(program, "--foreground", "--name", c.Cgroup, "--rcfile", file,
			"--logfile", filepath.Join(folder, "lxc.log"), "--logpriority", "ERROR"), nil
	}
	return h.provision(ctx, s)
}

// Lacks implements engine.Lacking: LXC keeps all of the contract.
func (d *LXC) Lacks() []engine.Lack { return nil }

// Probe implements Engine.
func (d *LXC) Probe(ctx context.Context) notebook.Capability {
	return probe(ctx, d, lxcEngine, lxcProgram, lxcInstall, d.Journal, d.State)
}

// lxcConfig is the configuration of a container, lxc.container.conf(5). unified: all controllers are on cgroup v2.
func lxcConfig(c oci.Container, unified bool) (string, error) {
	var b strings.Builder
	var bad []string
	set := func(key, value string) {
		if strings.ContainsAny(value, "\n\x00") {
			bad = append(bad, fmt.Sprintf("%q", value))
		}
		fmt.Fprintf(&b, "lxc.%s = %s\n", key, value)
	}
	limit := func(v1, v2, value string) {
		if unified {
			set("cgroup2."+v2, value)
		} else {
			set("cgroup."+v1, value)
		}
	}
	set("rootfs.path", "dir:"+c.Root)
	set("uts.name", oci.Hostname(c.Hostname))
	set("init.cmd", strings.Join(c.Args, " "))
	set("mount.auto", "proc:mixed sys:ro")
	set("autodev", "1")
	set("pty.max", "1024")
	set("tty.max", "0")
	set("console.path", "none")
	mount := func(source, target, kind, options string) {
		// As in fstab(5), with the target below the root.
		set("mount.entry", strings.Join([]string{lxcEscape.Replace(source), strings.TrimPrefix(target, "/"), kind, options, "0", "0"}, " "))
	}
	mount("shm", "/dev/shm", "tmpfs", "nosuid,nodev,noexec,mode=1777,size="+strconv.FormatInt(oci.ShmSize(c.Memory), 10)+",create=dir")
	mount("mqueue", "/dev/mqueue", "mqueue", "nosuid,nodev,noexec,create=dir")
	for _, m := range c.Mounts {
		st, err := os.Stat(m.Source)
		if err != nil {
			return "", err
		}
		create := "create=file"
		if st.IsDir() {
			create = "create=dir"
		}
		mount(m.Source, m.Destination, "none", "bind,"+m.Options[len(m.Options)-1]+","+create)
	}
	if c.HostNetwork {
		set("net.0.type", "none")
	} else {
		set("net.0.type", "empty") // a namespace with the loopback
	}
	set("apparmor.profile", "unconfined")
	keep := make([]string, len(oci.Capabilities))
	for i, name := range oci.Capabilities {
		keep[i] = strings.ToLower(strings.TrimPrefix(name, "CAP_"))
	}
	set("cap.keep", strings.Join(keep, " "))
	set("cgroup.dir.container", c.Cgroup)
	set("cgroup.dir.monitor", c.Cgroup+lxcCgroups[0])
	set("cgroup.dir.monitor.pivot", c.Cgroup+lxcCgroups[1])
	memory := strconv.FormatInt(c.Memory, 10)
	limit("memory.limit_in_bytes", "memory.max", memory)
	if c.LimitSwap && unified {
		set("cgroup2.memory.swap.max", "0")
	} else if c.LimitSwap {
		set("cgroup.memory.memsw.limit_in_bytes", memory)
	}
	if c.Quota > 0 {
		q, err := oci.Quota(c.Quota)
		if err != nil {
			return "", err
		}
		if unified {
			set("cgroup2.cpu.max", fmt.Sprintf("%d %d", q, oci.Period))
		} else {
			set("cgroup.cpu.cfs_period_us", strconv.Itoa(oci.Period))
			set("cgroup.cpu.cfs_quota_us", strconv.FormatInt(q, 10))
		}
	}
	if c.CPUs != nil {
		cpus := proc.FormatCPUList(c.CPUs)
		limit("cpuset.cpus", "cpuset.cpus", cpus)
	}
	limit("devices.deny", "devices.deny", "a")
	for _, rule := range lxcDevices {
		limit("devices.allow", "devices.allow", rule)
	}
	if bad != nil {
		return "", &engine.CannotError{Platform: "cn with lxc", What: "a container with a line break in a path", Why: strings.Join(bad, ", ") + "; rename it"}
	}
	return b.String(), nil
}

// lxcDevices are the devices that OCI runtimes allow every container.
var lxcDevices = []string{
	"c *:* m", "b *:* m",
	"c 1:3 rwm", "c 1:5 rwm", "c 1:7 rwm", "c 1:8 rwm", "c 1:9 rwm", // null, zero, full, random, urandom
	"c 5:0 rwm", "c 5:1 rwm", "c 5:2 rwm", "c 136:* rwm", // tty, console, ptmx, pts
}

// lxcEscape writes a path as fstab(5) wants it.
var lxcEscape = strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`)

// undoLXC removes a container in whatever state it is. LXC keeps no other state of one than its processes.
func undoLXC(ctx context.Context, e journal.Entry) error {
	// The program first: while it lives it may make what is looked for below.
	if err := engine.EndProcesses(ctx, e.Detail["folder"], []string{e.Detail["program"]}); err != nil {
		return err
	}
	errs := []error{removeCgroups(ctx, e.Target)}
	for _, suffix := range lxcCgroups {
		errs = append(errs, removeCgroups(ctx, e.Target+suffix))
	}
	return errors.Join(errs...)
}
