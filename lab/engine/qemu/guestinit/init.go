//go:build linux

package guestinit

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"tare/lab/engine/oci/config"
	"tare/lab/network"
	"tare/lab/proc"
	"tare/lab/ruler"
	"tare/notebook"
)

// runtimeSettings is the environment variable with which a VM's host sets Go's runtime of the first program and of the ruler.
const runtimeSettings = "GODEBUG"

// deviceWait bounds the wait for a device to appear after its driver was loaded. It takes milliseconds, or longer on an emulated
// processor under load.
const deviceWait = 30 * time.Second

// Main is the whole program init, the first process of a guest that package qemu booted. It does not return.
func Main() {
	if err := run(); err != nil {
		fmt.Println(FailPrefix + strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	unix.Sync()
	// Even if the machine does not react, the first process must not end: that is a kernel panic, which ends the guest too.
	if err := unix.Reboot(leave()); err != nil {
		fmt.Println(FailPrefix + "power off: " + err.Error())
	}
	os.Exit(1)
}

// leave is how the machine ends. Without ACPI it cannot power off, but its reset ends it too.
func leave() int {
	if cmdline, err := os.ReadFile("/proc/cmdline"); err == nil && slices.Contains(strings.Fields(string(cmdline)), NoACPI) {
		return unix.LINUX_REBOOT_CMD_RESTART
	}
	return unix.LINUX_REBOOT_CMD_POWER_OFF
}

func run() error {
	fmt.Println(Begun)
	for _, m := range []mount{
		{"proc", "/proc", "proc", unix.MS_NOSUID | unix.MS_NOEXEC | unix.MS_NODEV, ""},
		{"sysfs", "/sys", "sysfs", unix.MS_NOSUID | unix.MS_NOEXEC | unix.MS_NODEV, ""},
		{"devtmpfs", "/dev", "devtmpfs", unix.MS_NOSUID, ""},
	} {
		if err := m.do(""); err != nil {
			return err
		}
	}
	cmdline, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return err
	}
	p, err := parseParams(string(cmdline))
	if err != nil {
		return err
	}
	if p.Mode == ModeProbe {
		fmt.Println(p.Token)
		return nil
	}
	if err := unix.Sethostname([]byte(p.Name)); err != nil {
		return fmt.Errorf("set the host's name to %q: %w", p.Name, err)
	}
	events, err := listen()
	if err != nil {
		return err
	}
	defer events.Close()
	if err := loadModules("/" + ModulesDir); err != nil {
		return err
	}
	if err := links(p); err != nil {
		return err
	}
	port, err := events.wait("serial port "+Port, func() (string, error) {
		return bySysfs("/sys/class/virtio-ports/*/name", Port)
	})
	if err != nil {
		return err
	}
	root, err := events.wait("disk "+RootSerial, func() (string, error) {
		return bySysfs("/sys/block/*/serial", RootSerial)
	})
	if err != nil {
		return err
	}
	// A guest need not have a work disk. The driver makes all disks at once, so it exists as soon as the root does.
	work, err := bySysfs("/sys/block/*/serial", WorkSerial)
	if err != nil {
		return err
	}
	stream, err := unix.Open(port, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open serial port %s: %w", port, err)
	}
	if p.Mode == ModeVMCN {
		return container(p, root, work, os.NewFile(uintptr(stream), port))
	}
	return machine(root, work, stream, p.System)
}

// mount is one call of mount(2).
type mount struct {
	source, target, fstype string
	flags                  uintptr
	data                   string
}

// do mounts it below root.
func (m mount) do(root string) error {
	target := root + m.target
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(m.source, target, m.fstype, m.flags, m.data); err != nil {
		return fmt.Errorf("mount %s (%s) on %s: %w", m.source, m.fstype, target, err)
	}
	return nil
}

// machine makes the disk the root and becomes the ruler, which serves on the stream. It returns only on failure. A whole system's
// init makes most of the mounts itself, and has the machine's devices.
func machine(root, work string, stream int, system bool) error {
	const at = "/newroot"
	if err := mountMachine(at, root, work, system); err != nil {
		return err
	}
	program, args, keep, err := rulerProgram(stream, system)
	if err != nil {
		return err
	}
	// The initramfs takes the guest's memory. So give back what is no longer needed before leaving this root. This program follows
	// when it has become the ruler.
	for _, dir := range []string{"/" + ModulesDir, "/usr", "/lib", "/lib64", "/init"} {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	if err := enter(at); err != nil {
		return err
	}
	for _, fd := range keep {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("hand file %d to the ruler: %w", fd, err)
		}
	}
	env := []string{}
	if v := os.Getenv(runtimeSettings); v != "" {
		env = append(env, runtimeSettings+"="+v)
	}
	err = unix.Exec(fmt.Sprintf("/proc/self/fd/%d", program), args, env)
	return fmt.Errorf("become the ruler: %w", err)
}

// mountMachine mounts the disks below at, and what a container has, or what a whole system's init does not mount itself.
func mountMachine(at, root, work string, system bool) error {
	mounts := []mount{{root, "", "ext4", 0, ""}}
	if work != "" {
		mounts = append(mounts, mount{work, ruler.WorkDir, "ext4", unix.MS_RDONLY, ""})
	}
	memory, err := proc.Host.Memory("MemTotal")
	if err != nil {
		return err
	}
	// What a container has (package oci), except for the hidden parts of /proc.
	shm := strconv.FormatInt(config.ShmSize(memory), 10)
	const safe = unix.MS_NOSUID | unix.MS_NOEXEC | unix.MS_NODEV
	mounts = append(mounts, mount{"proc", "/proc", "proc", safe, ""})
	if system {
		mounts = append(mounts, mount{"sysfs", "/sys", "sysfs", safe, ""}, mount{"devtmpfs", "/dev", "devtmpfs", unix.MS_NOSUID, ""})
	} else {
		mounts = append(mounts,
			mount{"tmpfs", "/dev", "tmpfs", unix.MS_NOSUID | unix.MS_STRICTATIME, "mode=755,size=65536k"},
			mount{"devpts", "/dev/pts", "devpts", unix.MS_NOSUID | unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620,gid=5"},
			mount{"shm", "/dev/shm", "tmpfs", safe, "mode=1777,size=" + shm},
			mount{"mqueue", "/dev/mqueue", "mqueue", safe, ""},
			mount{"sysfs", "/sys", "sysfs", safe | unix.MS_RDONLY, ""},
		)
	}
	for _, m := range mounts {
		if err := m.do(at); err != nil {
			return err
		}
	}
	if system {
		return nil
	}
	return config.MakeDevices(at + "/dev")
}

// rulerProgram opens the ruler and returns its arguments and the files that it keeps. Its name would not be found in the new root.
func rulerProgram(stream int, system bool) (program int, args []string, keep []int, err error) {
	program, err = unix.Open("/"+RulerPath, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, nil, nil, fmt.Errorf("open the ruler: %w", err)
	}
	args = []string{"ruler", "--machine", "--fd", strconv.Itoa(stream)}
	if system {
		args = append(args, "--init", ruler.SystemInit)
	}
	keep = []int{stream}
	switch tracer, err := unix.Open("/"+TracerPath, unix.O_RDONLY|unix.O_CLOEXEC, 0); {
	case err == nil:
		args, keep = append(args, "--tracer", strconv.Itoa(tracer)), append(keep, tracer)
	case err != unix.ENOENT:
		return 0, nil, nil, fmt.Errorf("open the tracer: %w", err)
	}
	return program, args, keep, nil
}

// enter makes the mount at a folder the root.
func enter(at string) error {
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", dir, err)
		}
	}
	if err := os.Chdir(at); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("make the disk the root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("make the disk the root: %w", err)
	}
	return os.Chdir("/")
}

// bundle is the folder of the container in the VM, as the OCI runtime needs it, and merged its root.
const bundle, merged = "/bundle", "/bundle/rootfs"

// container runs the ruler in a container made from the disk, passes the stream to it, and waits until the container ends.
func container(p Params, root, work string, stream *os.File) error {
	if err := mountContainer(root, work); err != nil {
		return err
	}
	c, err := containerOf(p, work)
	if err != nil {
		return err
	}
	unlimited, err := configure(c)
	if err != nil {
		return err
	}
	// The initramfs is not a mount that pivot_root(2) could leave, hence --no-pivot. The container is made first and started later,
	// so that the limits in force can be read before the ruler runs.
	if err := crun(stream, "create", "--no-pivot", "--preserve-fds", "1", "--pid-file", "/run/pid", "--bundle", bundle, "tare"); err != nil {
		return err
	}
	force, err := inForce("/sys/fs/cgroup"+c.Cgroup, c)
	if err != nil {
		return err
	}
	fmt.Println(NotePrefix + force + unlimited)
	text, err := os.ReadFile("/run/pid")
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("crun's file of the container's process: %w", err)
	}
	switch p.Network {
	case notebook.NetBridge:
		err = network.Through(card, pid, p.Address)
	case notebook.NetNone:
		err = network.Loopback(pid)
	}
	if err != nil {
		return err
	}
	if err := crun(nil, "start", "tare"); err != nil {
		return err
	}
	return reap(pid)
}

// mountContainer mounts the container's root, and what the runtime needs.
func mountContainer(root, work string) error {
	// What the container writes is on the same disk as its root, as with engines. It is inside the folder of the image that the
	// ruler's own mount hides from it.
	const layers = "/disk" + ruler.RunDir
	mounts := []mount{
		{"cgroup2", "/sys/fs/cgroup", "cgroup2", unix.MS_NOSUID | unix.MS_NOEXEC | unix.MS_NODEV, ""},
		{"tmpfs", "/run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=755"},
		{root, "/disk", "ext4", 0, ""},
	}
	if work != "" {
		mounts = append(mounts, mount{work, "/work", "ext4", unix.MS_RDONLY, ""})
	}
	for _, m := range mounts {
		if err := m.do(""); err != nil {
			return err
		}
	}
	for _, dir := range []string{layers + "/upper", layers + "/work"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := config.SameRoot(layers+"/upper", "/disk"); err != nil {
		return err
	}
	overlay := mount{"overlay", merged, "overlay", 0,
		"lowerdir=/disk,upperdir=" + layers + "/upper,workdir=" + layers + "/work"}
	if err := overlay.do(""); err != nil {
		return fmt.Errorf("%w; an upper folder inside the lower one needs Linux 5.12 or later in the guest", err)
	}
	if err := os.RemoveAll("/" + ModulesDir); err != nil { // frees the memory
		return err
	}
	return enableControllers("/sys/fs/cgroup")
}

// containerOf describes the container in the VM. Its memory is what the VM's kernel has left.
func containerOf(p Params, work string) (config.Container, error) {
	memory, err := proc.Host.Memory("MemAvailable")
	if err != nil {
		return config.Container{}, err
	}
	memory &^= 1<<20 - 1
	c := config.Container{
		Root: merged, Args: []string{ruler.Program, "--machine", "--fd", "3"}, Shm: config.ShmSize(memory),
		Hostname: p.Name, Cgroup: "/tare", CgroupNamespace: true,
		HostNetwork: p.Network == notebook.NetHost,
		Mounts:      []specs.Mount{config.Bind("/"+rulerDir, ruler.RunDir)},
	}
	if work != "" {
		c.Mounts = append(c.Mounts, config.Bind("/work", ruler.WorkDir))
	}
	if !p.Whole {
		c.Memory = memory
	}
	switch {
	case p.Whole:
	case p.Pinned:
		var all []int
		for i := range p.Cores {
			all = append(all, i)
		}
		c.CPUs = notebook.FormatCPUList(all)
	default:
		c.Quota = float64(p.Cores)
	}
	return c, nil
}

// configure writes the runtime's configuration of a container; unlimited names what nothing limits.
func configure(c config.Container) (unlimited string, err error) {
	spec, err := config.Config(c)
	if err != nil {
		return "", err
	}
	if _, _, errno := unix.Syscall(unix.SYS_BPF, 0, 0, 0); errno == unix.ENOSYS {
		// In cgroup v2 a program in the kernel decides, and the runtime makes no container whose devices it cannot limit.
		spec.Linux.Resources.Devices = nil
		unlimited = "; not its devices: the VM's kernel has no bpf(2)"
	}
	data, err := json.Marshal(spec)
	if err != nil {
		return "", err
	}
	return unlimited, os.WriteFile(bundle+"/config.json", data, 0o644)
}

// crun runs the OCI runtime; the container gets the stream as its file 3.
func crun(stream *os.File, args ...string) error {
	cmd := exec.Command("/"+CrunPath, append([]string{"--root", "/run/crun", "--cgroup-manager", "cgroupfs"}, args...)...)
	if stream != nil {
		cmd.ExtraFiles = []*os.File{stream}
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("crun %s: %w (its output is above)", args[0], err)
	}
	return nil
}

// inForce reads the limits of the container's cgroup from the kernel's files, compares them with the request, and describes them.
func inForce(dir string, c config.Container) (string, error) {
	read := func(file, want string) error {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return err
		}
		if got := strings.TrimSpace(string(data)); got != want {
			return fmt.Errorf("%s of the container is %q; must be %q", file, got, want)
		}
		return nil
	}
	if (c.Limits == notebook.Limits{}) {
		for file, want := range map[string]string{"memory.max": "max", "cpu.max": fmt.Sprintf("max %d", config.Period)} {
			if err := read(file, want); err != nil {
				return "", err
			}
		}
		return "the container in the VM has no limits", nil
	}
	if err := read("memory.max", strconv.FormatInt(c.Memory, 10)); err != nil {
		return "", err
	}
	words := fmt.Sprintf("in force on the container in the VM: %d MiB of memory (what the VM's kernel had left), ", c.Memory>>20)
	if c.CPUs != "" {
		if err := read("cpuset.cpus.effective", c.CPUs); err != nil {
			return "", err
		}
		return words + "the vCPUs " + c.CPUs, nil
	}
	quota, err := config.Quota(c.Quota)
	if err != nil {
		return "", err
	}
	if err := read("cpu.max", fmt.Sprintf("%d %d", quota, config.Period)); err != nil {
		return "", err
	}
	if c.Quota == 1 {
		return words + "a CPU quota of 1 core", nil
	}
	return words + fmt.Sprintf("a CPU quota of %g cores", c.Quota), nil
}

// reap waits for the children of the first process, inherited ones too, until the one with this pid has ended.
func reap(pid int) error {
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return fmt.Errorf("wait for the container: %w", err)
		case got == pid && status.Signaled():
			return fmt.Errorf("the container's first process was killed: %v", status.Signal())
		case got == pid && status.ExitStatus() != 0:
			return fmt.Errorf("the container's first process ended with status %d (its output is above)", status.ExitStatus())
		case got == pid:
			return nil
		}
	}
}

// enableControllers passes every controller of the root cgroup to its children.
func enableControllers(dir string) error {
	list, err := os.ReadFile(dir + "/cgroup.controllers")
	if err != nil {
		return err
	}
	for _, c := range strings.Fields(string(list)) {
		if err := os.WriteFile(dir+"/cgroup.subtree_control", []byte("+"+c), 0); err != nil {
			return fmt.Errorf("cgroup controller %s: %w", c, err)
		}
	}
	return nil
}

// loadModules loads the kernel modules of a folder in the order of their names.
func loadModules(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil // everything is built into the kernel
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		f.Close()
		// ENODEV: a driver for something that this machine lacks, such as a processor's checksum instructions.
		if err != nil && !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("load kernel module %s: %w", e.Name(), err)
		}
	}
	return nil
}

// bySysfs finds the device whose attribute, a file that matches the pattern, has the value. It returns the path of the device's
// node, or "".
func bySysfs(pattern, value string) (string, error) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return "", err
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			continue // it has gone
		}
		if err != nil {
			return "", err
		}
		if strings.TrimSpace(string(data)) == value {
			return "/dev/" + filepath.Base(filepath.Dir(f)), nil
		}
	}
	return "", nil
}

// uevents is the kernel's stream of news about devices.
type uevents struct{ fd int }

func listen() (*uevents, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return nil, fmt.Errorf("listen for devices: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("listen for devices: %w", err)
	}
	return &uevents{fd}, nil
}

func (u *uevents) Close() error { return unix.Close(u.fd) }

// wait returns the result of find, which it calls again at every news.
func (u *uevents) wait(what string, find func() (string, error)) (string, error) {
	deadline := time.Now().Add(deviceWait)
	buf := make([]byte, 4096)
	for {
		found, err := find()
		if err != nil || found != "" {
			return found, err
		}
		left := time.Until(deadline)
		if left <= 0 {
			return "", fmt.Errorf("%s did not appear within %v", what, deviceWait)
		}
		fds := []unix.PollFd{{Fd: int32(u.fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, int(left.Milliseconds())+1); err != nil && err != unix.EINTR {
			return "", fmt.Errorf("wait for %s: %w", what, err)
		}
		if fds[0].Revents != 0 {
			// The content of the news does not matter, and lost news (ENOBUFS) mean that there was some.
			if _, _, err := unix.Recvfrom(u.fd, buf, unix.MSG_DONTWAIT); err != nil && err != unix.ENOBUFS && err != unix.EAGAIN && err != unix.EINTR {
				return "", fmt.Errorf("wait for %s: %w", what, err)
			}
		}
	}
}

// card is the name of the machine's network card.
const card = "eth0"

// links sets up the loopback interface, and the network card with the guest's address: the given one, or the one that QEMU's user
// network gives its guest. For a container with its own namespace the card has no address.
func links(p Params) error {
	if err := up("lo", netip.Prefix{}); err != nil {
		return err
	}
	if _, err := os.Stat("/sys/class/net/" + card); errors.Is(err, os.ErrNotExist) {
		return nil // a guest without a network card
	}
	switch {
	case p.Network == "" || p.Network == notebook.NetUser:
		if err := up(card, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 2, 15}), 24)); err != nil {
			return err
		}
		return answering(card, netip.AddrFrom4([4]byte{10, 0, 2, 2}))
	case p.Bridged():
		return nil
	}
	return up(card, p.Address)
}

// answering lets a network interface answer everybody by way of the gateway, because QEMU's user network keeps the sender's address
// of a request.
func answering(name string, gateway netip.Addr) error {
	l, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Gw: gateway.AsSlice()})
	}
	if err != nil {
		return fmt.Errorf("network interface %s: its route: %w", name, err)
	}
	return nil
}

// up sets up a network interface, with the address if there is one.
func up(name string, address netip.Prefix) error {
	l, err := netlink.LinkByName(name)
	if err == nil && address.IsValid() {
		err = netlink.AddrAdd(l, &netlink.Addr{IPNet: network.IPNet(address)})
	}
	if err == nil {
		err = netlink.LinkSetUp(l)
	}
	if err != nil {
		return fmt.Errorf("network interface %s: %w", name, err)
	}
	return nil
}
