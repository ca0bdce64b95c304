//go:build linux

// Package config writes the configuration of an OCI container (runtime-spec's config.json). The drivers cn, on the host, and vmcn,
// inside its VM, both use it, so that a container in a VM differs from one on the host only by the VM.
//
// It requests from a runtime what Docker requests by default, as far as that affects cost: the same namespaces, capabilities,
// masked paths and device rules. Like the runtimes' own `spec` command it sets no seccomp filter, except for the isolation ladder.
// A filter's cost is an engine's own, and shows under the engine docker.
package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"tare/lab/device"
	"tare/notebook"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// Period is the length of the CPU quota's period in microseconds: the kernel's and Docker's default.
const Period = 100_000

// minQuota is the smallest quota, in microseconds for each period, that kernels accept.
const minQuota = 1000

// Container describes the wanted container.
type Container struct {
	Root     string   // absolute path of the root folder
	Args     []string // the first process
	System   bool     // its program becomes a system's init, which mounts, and has its own cgroups; only LXC makes such containers
	Hostname string
	Cgroup   string // path of the container's cgroup below the root of every hierarchy, absolute

	notebook.Limits      // limits in force
	LimitSwap       bool // no swap beyond Memory; needs a kernel that accounts for swap

	Processes int64 // greatest number of processes and threads at once; 0: no limit

	Shm int64 // size of its /dev/shm in bytes

	HostNetwork     bool                // the network of the container's host, instead of a namespace
	Network         string              // path of an existing network namespace; "": a new one
	Seccomp         *specs.LinuxSeccomp // filter of system calls, as from Seccomp; nil: none
	CgroupNamespace bool                // own cgroup namespace, as engines do on cgroup v2
	Mounts          []specs.Mount       // in addition to the standard ones
	Devices         device.Edits        // in addition to those that every container has
	Ruler           string              // the ruler's program on the host, for the devices' hooks
}

// Capabilities are those that Docker leaves a container by default.
var Capabilities = []string{
	"CAP_AUDIT_WRITE", "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_MKNOD",
	"CAP_NET_BIND_SERVICE", "CAP_NET_RAW", "CAP_SETFCAP", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID",
	"CAP_SYS_CHROOT",
}

// Config makes the container's configuration. An error says what is impossible in c.
func Config(c Container) (*specs.Spec, error) {
	resources := &specs.LinuxResources{
		// All devices are denied except those that every container has, which the runtime adds itself.
		Devices: []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}},
	}
	if c.Quota > 0 || c.CPUs != "" {
		resources.CPU = &specs.LinuxCPU{Cpus: c.CPUs}
	}
	if c.Quota > 0 {
		q, err := Quota(c.Quota)
		if err != nil {
			return nil, err
		}
		period := uint64(Period)
		resources.CPU.Quota, resources.CPU.Period = &q, &period
	}
	if c.Memory > 0 {
		m := c.Memory
		resources.Memory = &specs.LinuxMemory{Limit: &m}
		if c.LimitSwap {
			resources.Memory.Swap = &m
		}
	}
	if c.Processes > 0 {
		resources.Pids = &specs.LinuxPids{Limit: &c.Processes}
	}
	namespaces := []specs.LinuxNamespace{
		{Type: specs.PIDNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace}, {Type: specs.MountNamespace},
	}
	if !c.HostNetwork {
		namespaces = append(namespaces, specs.LinuxNamespace{Type: specs.NetworkNamespace, Path: c.Network})
	}
	if c.CgroupNamespace {
		namespaces = append(namespaces, specs.LinuxNamespace{Type: specs.CgroupNamespace})
	}
	var nodes []specs.LinuxDevice
	for _, n := range c.Devices.Nodes {
		d, allowed := given(n)
		nodes, resources.Devices = append(nodes, d), append(resources.Devices, allowed)
	}
	return &specs.Spec{
		Version: "1.0.2", // runtimes of 2020 and later read it; nothing newer is used here
		Process: &specs.Process{
			Args: c.Args,
			Cwd:  "/",
			Capabilities: &specs.LinuxCapabilities{
				Bounding: Capabilities, Effective: Capabilities, Permitted: Capabilities,
			},
		},
		Root:     &specs.Root{Path: c.Root},
		Hostname: Hostname(c.Hostname),
		Mounts:   slices.Concat(standardMounts(c.Shm), c.Mounts, mounts(c.Devices.Mounts)),
		Hooks:    hooks(c.Devices.Hooks, c.Ruler),
		Linux: &specs.Linux{
			Devices:     nodes,
			CgroupsPath: c.Cgroup,
			Resources:   resources,
			Namespaces:  namespaces,
			MaskedPaths: []string{
				"/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
				"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware",
			},
			ReadonlyPaths:     []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
			RootfsPropagation: "private",
			Seccomp:           c.Seccomp,
		},
	}, nil
}

// Hostname cuts a name to the length that sethostname(2) takes.
func Hostname(name string) string { return name[:min(len(name), 63)] }

// Quota is the CPU time in microseconds for each Period that makes the given number of cores. An error says why there is none.
func Quota(cores float64) (int64, error) {
	q := int64(math.Round(cores * Period))
	if math.IsNaN(cores) || q < minQuota || cores > 1<<20 {
		return 0, fmt.Errorf("a CPU quota of %g cores: the kernel gives no less than %g of a core; ask for more", cores, float64(minQuota)/Period)
	}
	return q, nil
}

// ShmSize is the size in bytes of /dev/shm in a guest with this much memory: half of it, as the kernel gives a machine of that
// size. (With Docker's 64 MiB, programs fail in a container that run on any machine, and the measurement would show that instead.)
func ShmSize(memory int64) int64 { return memory / 2 }

// Bind is a read-only bind mount of a folder.
func Bind(source, destination string) specs.Mount {
	return specs.Mount{Source: source, Destination: destination, Type: "bind", Options: []string{"rbind", "rprivate", "ro"}}
}

func standardMounts(shm int64) []specs.Mount {
	return []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}},
		{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"nosuid", "noexec", "nodev", "mode=1777", "size=" + strconv.FormatInt(shm, 10)}},
		{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", "ro"}},
	}
}
