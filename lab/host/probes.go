//go:build linux

package host

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/moby/sys/capability"
	"golang.org/x/sys/unix"

	"tare/lab/cgroup"
	"tare/lab/proc"
	"tare/notebook"
)

var probes = []probe{
	{name: "root", try: tryRoot},
	{name: "cgroup cpu", try: func(context.Context) notebook.Capability { return tryCgroup("cpu") }},
	{name: "cgroup cpuset", try: func(context.Context) notebook.Capability { return tryCgroup("cpuset") }},
	{name: "cgroup memory", try: func(context.Context) notebook.Capability { return tryCgroup("memory") }},
	{name: "overlayfs", try: tryOverlayfs},
	{name: "network namespaces", try: tryNetworkNamespaces},
	{name: "perf software events", try: tryPerfSoftware},
	{name: "perf hardware events", try: tryPerfHardware},
}

// tools are needed only before a measurement. Testing them takes a second together, and a tool that is missing is named by whatever
// needs it.
var tools = []probe{
	{name: "mke2fs", try: tryMke2fs},
	{name: "mmdebstrap", timeout: 30 * time.Second, try: tryMmdebstrap},
	{name: "gcc", try: tryGCC},
}

const runAsRoot = "run tare as root (sudo tare …)"

func tryRoot(context.Context) notebook.Capability {
	if uid := os.Geteuid(); uid != 0 {
		return unsupported(runAsRoot, "running as user %d; guests, mounts and cgroups need root", uid)
	}
	caps, err := capability.NewPid2(0)
	if err == nil {
		err = caps.Load()
	}
	if err != nil {
		return inconclusive("%v", err)
	}
	for _, c := range []capability.Cap{capability.CAP_SYS_ADMIN, capability.CAP_SYS_CHROOT, capability.CAP_NET_ADMIN, capability.CAP_SYS_PTRACE} {
		if !caps.Get(capability.EFFECTIVE, c) {
			return unsupported("run tare outside of the container, or in one that is privileged", "user 0, but without CAP_%s", strings.ToUpper(c.String()))
		}
	}
	return supported("user 0 with the capabilities to mount, to chroot and to make namespaces")
}

// probeGroup begins the name of every cgroup that a probe makes. The process's pid and start time follow, so that the leftovers of
// a killed probe can be recognized.
const probeGroup = "tare-probe-"

// tryCgroup makes a cgroup below the hierarchy's root, where engines make theirs, and sets a limit in it.
func tryCgroup(controller string) notebook.Capability {
	g, err := cgroup.Find(controller)
	if err != nil {
		return unsupported("run tare on the host itself, not in a container", "%v", err)
	}
	if g.Dir == "" {
		return unsupported("mount -t cgroup -o "+controller+" none /sys/fs/cgroup/"+controller, "no hierarchy with the controller is mounted")
	}
	if g.Version == 2 {
		there, err := proc.Host.Read(g.Top + "/cgroup.controllers")
		if err != nil {
			return inconclusive("%v", err)
		}
		if !strings.Contains(" "+there+" ", " "+controller+" ") {
			return unsupported("boot the kernel with this controller in version 2 (cgroup_no_v1="+controller+")", "%s/cgroup.controllers does not name %s, only %q", g.Top, controller, there)
		}
		given, err := proc.Host.Read(g.Top + "/cgroup.subtree_control")
		if err != nil {
			return inconclusive("%v", err)
		}
		if !strings.Contains(" "+given+" ", " "+controller+" ") {
			return supported("cgroup v2: %s is in %s/cgroup.controllers; not yet enabled for groups below, which engines do with their first container", controller, g.Top)
		}
	}
	removeProbeGroups(g.Top)

	start, err := proc.StartTime(os.Getpid())
	if err != nil {
		return inconclusive("%v", err)
	}
	dir := filepath.Join(g.Top, fmt.Sprintf("%s%d-%d-%08x", probeGroup, os.Getpid(), start, rand.Uint32()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return cgroupFailure(err)
	}
	c := setLimit(dir, controller, g.Version)
	if err := unix.Rmdir(dir); err != nil {
		return inconclusive("%s could be made but not removed: %v", dir, err)
	}
	return c
}

func cgroupFailure(err error) notebook.Capability {
	switch {
	case errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0:
		return unsupported(runAsRoot, "%v", err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS):
		return unsupported("run tare on the host itself, or in a privileged container", "%v", err)
	}
	return inconclusive("%v", err)
}

// setLimit sets a limit in the cgroup and reads it back.
func setLimit(dir, controller string, version int) notebook.Capability {
	var file, value, what string
	switch {
	case controller == "cpu" && version == 2:
		file, value, what = "cpu.max", "50000 100000", "a quota of 0.5 cores"
	case controller == "cpu":
		file, value, what = "cpu.cfs_quota_us", "50000", "a quota of 0.5 cores"
	case controller == "cpuset":
		online, err := proc.OnlineCPUs()
		if err != nil {
			return inconclusive("%v", err)
		}
		file, value = "cpuset.cpus", strconv.Itoa(online[len(online)-1])
		what = "CPU " + value
	case controller == "memory":
		file, value = "memory.limit_in_bytes", strconv.Itoa(64<<20)
		if version == 2 {
			file = "memory.max"
		}
		what = value + " bytes"
	}
	path := filepath.Join(dir, file)
	if err := os.WriteFile(path, []byte(value), 0); err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return unsupported("use a kernel that is built with it (CONFIG_CFS_BANDWIDTH for CPU quotas)", "a new cgroup has no file %s: %v", file, err)
		}
		return inconclusive("%v", err)
	}
	got, err := proc.Host.Read(path)
	if err != nil {
		return inconclusive("%v", err)
	}
	if got != value {
		return inconclusive("%s was written to %s, but the kernel says %s", value, file, got)
	}
	return supported("cgroup v%d: made a group and set %s", version, what)
}

// removeProbeGroups removes the empty cgroups of probes whose process was killed.
func removeProbeGroups(top string) {
	dirs, err := filepath.Glob(filepath.Join(top, probeGroup+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		var pid int
		var start uint64
		var rest string
		if n, _ := fmt.Sscanf(strings.TrimPrefix(filepath.Base(dir), probeGroup), "%d-%d-%s", &pid, &start, &rest); n != 3 {
			continue
		}
		if now, err := proc.StartTime(pid); err == nil && now == start {
			continue
		}
		// If this fails the group is in use or gone, and does not disturb this probe.
		_ = unix.Rmdir(dir)
	}
}

// outputLimit bounds the kept part of a tool's output, in bytes.
const outputLimit = 64 << 10

// limited keeps the first bytes written to it.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := outputLimit - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// output runs a tool to its end and returns its standard output. The error has the tool's message, in one line.
func output(cmd *exec.Cmd) (string, error) {
	var out, complaint limited
	cmd.Stdout, cmd.Stderr = &out, &complaint
	cmd.Env = append(cmd.Environ(), "LC_ALL=C")
	cmd.WaitDelay = time.Second
	// Processes that the tool started end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, cmp.Or(firstLine(complaint.String()), firstLine(out.String())))
	}
	return out.String(), err
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// toolFailure is the answer when a tool could not be run or failed.
func toolFailure(ctx context.Context, err error, do string) notebook.Capability {
	switch {
	case ended(ctx, err):
		return inconclusive("%v", err)
	case errors.Is(err, exec.ErrNotFound):
		return unsupported(do, "it is not installed (not found in PATH)")
	}
	return unsupported(do, "%v", err)
}

func tryVersion(ctx context.Context, do, name string, args ...string) notebook.Capability {
	out, err := output(exec.CommandContext(ctx, name, args...))
	if err != nil {
		return toolFailure(ctx, err, do)
	}
	return supported("%s", firstLine(out))
}

const doMmdebstrap = "apt-get install mmdebstrap apt"

// tryMmdebstrap makes a root without packages, from a repository without packages: everything except fetching and unpacking
// packages. Its temporary files are in memory in a mount namespace, and so end with it, however this process ends. For users other
// than root, who make no roots, it only asks for the version.
func tryMmdebstrap(ctx context.Context) notebook.Capability {
	c := tryVersion(ctx, doMmdebstrap, "mmdebstrap", "--version")
	if c.Answer != notebook.Supported || os.Geteuid() != 0 {
		return c
	}
	tried := inNamespaces(unix.CLONE_NEWNS|unix.CLONE_FS, func() notebook.Capability {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return inconclusive("make mounts private: %v", err)
		}
		// It needs nothing below this folder, which every system has (Filesystem Hierarchy Standard, 3.12).
		const base = "/mnt"
		if err := unix.Mount("tare-probe", base, "tmpfs", 0, "size=64m,mode=1777"); err != nil {
			return inconclusive("mount a tmpfs on %s: %v", base, err)
		}
		return makeNoPackages(ctx, filepath.Join(base, "probe"))
	})
	if tried.Answer == notebook.Supported {
		tried.Why = c.Why + "; " + tried.Why
	}
	return tried
}

// makeNoPackages lets mmdebstrap make a root without packages, in a new folder.
func makeNoPackages(ctx context.Context, dir string) notebook.Capability {
	// apt reads it as a user of its own.
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o755), os.WriteFile(filepath.Join(dir, "Packages"), nil, 0o644)); err != nil {
		return inconclusive("%v", err)
	}
	cmd := exec.CommandContext(ctx, "mmdebstrap", "--quiet", "--simulate", "--mode=root", "--variant=custom", "--format=tar", "trixie", "/dev/null", "deb [trusted=yes] copy:"+dir+" ./")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	if _, err := output(cmd); err != nil {
		return toolFailure(ctx, err, doMmdebstrap)
	}
	return supported("made a root of no packages")
}

// tryMke2fs makes a file system in memory.
func tryMke2fs(ctx context.Context) notebook.Capability {
	const do = "apt-get install e2fsprogs"
	fd, err := unix.MemfdCreate("tare-mke2fs", unix.MFD_CLOEXEC)
	if err != nil {
		return inconclusive("memfd_create: %v", err)
	}
	disk := os.NewFile(uintptr(fd), "memfd")
	defer disk.Close()
	if err := disk.Truncate(4 << 20); err != nil {
		return inconclusive("%v", err)
	}
	path, err := exec.LookPath("mke2fs")
	if err != nil {
		// Debian keeps it in a folder that only root's PATH has.
		if path, err = exec.LookPath("/sbin/mke2fs"); err != nil {
			return unsupported(do, "it is not installed (not found in PATH)")
		}
	}
	out, err := output(exec.CommandContext(ctx, path, "-q", "-F", "-t", "ext4", fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd)))
	if err != nil {
		return toolFailure(ctx, err, do)
	}
	var magic [2]byte // of the superblock, at 1024 + 56
	if _, err := disk.ReadAt(magic[:], 1080); err != nil || magic != [2]byte{0x53, 0xef} {
		return inconclusive("mke2fs succeeded but made no file system: %s", firstLine(out))
	}
	return supported("made an ext4 file system")
}

// tryGCC compiles a small program that uses the C library.
func tryGCC(ctx context.Context) notebook.Capability {
	const do = "apt-get install gcc libc6-dev"
	const program = "#include <stdio.h>\nint main(void) { return puts(\"tare\") < 0; }\n"
	cmd := exec.CommandContext(ctx, "gcc", "-x", "c", "-S", "-o", "-", "-")
	cmd.Stdin = strings.NewReader(program)
	out, err := output(cmd)
	if err != nil {
		return toolFailure(ctx, err, do)
	}
	if !strings.Contains(out, "main") {
		return inconclusive("gcc succeeded but made no code: %s", firstLine(out))
	}
	c := tryVersion(ctx, do, "gcc", "--version")
	if c.Answer == notebook.Supported {
		c.Why = "compiled a program; " + c.Why
	}
	return c
}

// inNamespaces runs f on its own thread in new namespaces, which flags name. The namespaces and all mounts in them end with the
// thread, even when this process is killed.
func inNamespaces(flags int, f func() notebook.Capability) (c notebook.Capability) {
	err := proc.Apart(func() error {
		err := unix.Unshare(flags)
		if err == nil {
			c = f()
		}
		return err
	})
	switch {
	case err == unix.EPERM:
		return unsupported(runAsRoot, "unshare: %v", err)
	case err != nil:
		return unsupported("use a kernel that is built with namespaces", "unshare: %v", err)
	}
	return c
}

// tryOverlayfs mounts an overlay in memory, in a mount namespace of its own, and writes through it.
func tryOverlayfs(context.Context) notebook.Capability {
	return inNamespaces(unix.CLONE_NEWNS|unix.CLONE_FS, func() notebook.Capability {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return inconclusive("make mounts private: %v", err)
		}
		base := os.TempDir()
		if err := unix.Mount("tare-probe", base, "tmpfs", 0, "size=1m"); err != nil {
			return inconclusive("mount a tmpfs on %s: %v", base, err)
		}
		var dirs []any
		for _, name := range []string{"lower", "upper", "work", "merged"} {
			dir := filepath.Join(base, name)
			if err := os.Mkdir(dir, 0o755); err != nil {
				return inconclusive("%v", err)
			}
			dirs = append(dirs, dir)
		}
		if err := os.WriteFile(filepath.Join(base, "lower", "file"), []byte("below"), 0o644); err != nil {
			return inconclusive("%v", err)
		}
		merged := filepath.Join(base, "merged")
		err := unix.Mount("tare-probe", merged, "overlay", 0, fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", dirs[:3]...))
		switch {
		case err == unix.ENODEV:
			return unsupported("modprobe overlay", "the kernel has no overlayfs: %v", err)
		case err != nil:
			return unsupported("see the kernel's log (dmesg) for the reason", "mount: %v", err)
		}
		if err := os.WriteFile(filepath.Join(merged, "file"), []byte("above"), 0o644); err != nil {
			return unsupported("see the kernel's log (dmesg)", "write through the overlay: %v", err)
		}
		lower, err1 := os.ReadFile(filepath.Join(base, "lower", "file"))
		upper, err2 := os.ReadFile(filepath.Join(base, "upper", "file"))
		if err := errors.Join(err1, err2); err != nil || string(lower) != "below" || string(upper) != "above" {
			return inconclusive("after a write through the overlay the lower layer has %q and the upper %q (%v)", lower, upper, err)
		}
		return supported("an overlay mount works; a write through it left the lower layer unchanged")
	})
}

// tryNetworkNamespaces makes one. A new one has only a loopback device.
func tryNetworkNamespaces(context.Context) notebook.Capability {
	return inNamespaces(unix.CLONE_NEWNET, func() notebook.Capability {
		text, err := proc.Host.Read("/proc/thread-self/net/dev")
		if err != nil {
			return inconclusive("%v", err)
		}
		var devices []string
		for line := range strings.Lines(text) {
			if name, _, ok := strings.Cut(line, ":"); ok {
				devices = append(devices, strings.TrimSpace(name))
			}
		}
		if !slices.Contains(devices, "lo") {
			return inconclusive("a new namespace has no loopback device, but %q", devices)
		}
		return supported("made a network namespace; its devices are %s", strings.Join(devices, ", "))
	})
}

// tryPerfSoftware counts the page faults of touching new memory.
func tryPerfSoftware(context.Context) notebook.Capability {
	const pages = 64
	n, err := perfCount(unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_PAGE_FAULTS, func() error {
		size := os.Getpagesize()
		b, err := unix.Mmap(-1, 0, pages*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return err
		}
		defer unix.Munmap(b)
		// Each page must fault separately: a huge page would take all at once.
		if err := unix.Madvise(b, unix.MADV_NOHUGEPAGE); err != nil && err != unix.EINVAL {
			return err
		}
		for i := 0; i < len(b); i += size {
			b[i] = 1
		}
		return nil
	})
	if err != nil {
		return perfFailure(err, "use a kernel that is built with CONFIG_PERF_EVENTS")
	}
	if n < pages {
		return inconclusive("counted %d page faults; there were at least %d", n, pages)
	}
	return supported("counted %d page faults on %d pages", n, pages)
}

// tryPerfHardware counts instructions.
func tryPerfHardware(context.Context) notebook.Capability {
	n, err := perfCount(unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_INSTRUCTIONS, func() error {
		for range 1000 {
			unix.Getppid()
		}
		return nil
	})
	if err != nil {
		return perfFailure(err, "the CPU, or the hypervisor below this machine, offers no counters; on your own hypervisor enable the virtual PMU")
	}
	if n < 1000 {
		return inconclusive("counted %d instructions; there were more than 1000", n)
	}
	return supported("counted %d instructions", n)
}

func perfFailure(err error, do string) notebook.Capability {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return unsupported(runAsRoot+", or sysctl kernel.perf_event_paranoid=1", "perf_event_open: %v", err)
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
		return unsupported(do, "perf_event_open: %v", err)
	}
	return inconclusive("perf_event_open: %v", err)
}

// perfCount counts an event in this thread, without the kernel, while f runs.
func perfCount(kind uint32, config uint64, f func() error) (uint64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	attr := unix.PerfEventAttr{Type: kind, Config: config, Bits: unix.PerfBitDisabled | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}
	attr.Size = uint32(unsafe.Sizeof(attr))
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_DISABLE, 0); err != nil {
		return 0, err
	}
	var b [8]byte
	if _, err := unix.Read(fd, b[:]); err != nil {
		return 0, err
	}
	return *(*uint64)(unsafe.Pointer(&b)), nil
}
