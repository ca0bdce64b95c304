//go:build linux

package qemu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/engine"
	"tare/lab/engine/qemu/guestinit"
	"tare/lab/proc"
	"tare/lab/ruler"
	"tare/notebook"
)

// machine is one QEMU process with the ends of its streams.
type machine struct {
	process *engine.Process
	conn    net.Conn // the ruler's port
	qmp     *qmp
	console *console       // the guest's serial console
	drained sync.WaitGroup // of the console
}

// hardware describes the wanted machine.
type hardware struct {
	board       board
	accelerator string
	cpus        int
	memory      int64 // bytes, whole MiB
	kernel      string
	initramfs   string
	boot        bootDisks // of a machine that boots from disk
	cmdline     string    // added to the kernel's command line
	name        string
	root, work  string // disk images; may be empty
	overlay     string // for writes to root
	machine     notebook.Machine
	network     string         // mode; "": a network of the guest's own with nothing behind it
	forward     netip.AddrPort // address of the host that QEMU's user network forwards to that port of the guest; zero: none
	tap         *os.File
	mac         net.HardwareAddr                         // of the card on the tap
	vhost       *os.File                                 // with a tap, where the kernel can carry its packets; may be nil
	folder      string                                   // of the guest
	moments     *engine.Moments                          // moments of its start
	ruler       *os.File                                 // its end of an existing stream of the ruler; the caller closes it
	state       *os.File                                 // the saved state to restore; nil: the machine boots. The caller closes it.
	screen      string                                   // path of the socket at which its screen is shown; connect sets it
	starts      func(*exec.Cmd) (*engine.Process, error) // starts QEMU; nil: engine.StartTied
	bare        bool                                     // no disks, no network, no ruler's port: the probe's machine
}

// Descriptors of the QEMU process, by the order of exec.Cmd's ExtraFiles.
const (
	consoleFD = 3
	qmpFD     = 4
	rulerFD   = 5
	tapFD     = 6
	vhostFD   = 7
)

// vhostDevice is what a process opens to have the host's kernel carry the packets of its tap.
const vhostDevice = "/dev/vhost-net"

// carried reports whether the host's kernel carries the packets of the machine's tap.
func (m *machine) carried() (bool, error) {
	dir := fmt.Sprintf("/proc/%d/fd", m.process.PID())
	all, err := os.ReadDir(dir)
	return slices.ContainsFunc(all, func(f os.DirEntry) bool {
		to, err := os.Readlink(filepath.Join(dir, f.Name()))
		return err == nil && to == vhostDevice // a file that was closed in the meantime does not count
	}), err
}

// maps reports whether the machine's process has mapped the file.
func (m *machine) maps(file string) (bool, error) {
	all, err := proc.Host.Read(fmt.Sprintf("/proc/%d/maps", m.process.PID()))
	return strings.Contains(all, " "+file+"\n") || strings.HasSuffix(all, " "+file), err
}

// commandLine is the command line of the guest's kernel. The console is for failures: errors and worse. A panic ends the guest at once.
// no_timer_check, which a kernel on KVM sets itself: under emulation on a busy host the timer may seem broken, and the kernel would
// panic.
func (h hardware) commandLine() string {
	line := "console=ttyS0 quiet loglevel=4 panic=-1 no_timer_check "
	if h.accelerator == notebook.KVMEmulated {
		// Under emulation every instruction of the guest's kernel is emulated. So spare it the interpretation of the machine's
		// description, and the patching of its own code for one CPU and back. Also spare it the signals by which Go's runtime lets
		// goroutines share a CPU. The kernel passes on to its first program what it does not know.
		line += guestinit.NoACPI + " noreplace-smp random.trust_cpu=on GODEBUG=asyncpreemptoff=1 "
	}
	return strings.Join(append(h.machine.KernelWords(), line+h.board.cmdline(h.accelerator)+h.cmdline), " ")
}

// args is QEMU's command line.
func (h hardware) args() ([]string, error) {
	accel, cpu := "kvm", "host"
	if h.accelerator == notebook.TCG {
		accel, cpu = "tcg,thread=multi", "max"
	}
	if h.accelerator == notebook.KVMEmulated {
		// It offers the register that lists the CPU's absent weaknesses, but refuses to set it, and QEMU then aborts.
		cpu += ",arch-capabilities=off"
	}
	if h.machine.CPU != "" {
		_, features, _ := strings.Cut(cpu, ",")
		cpu = strings.TrimSuffix(h.machine.CPU+","+features, ",")
	}
	if h.machine.Threads > 1 {
		// An AMD core has threads for its guest only where that is enabled, and the core that TCG emulates never has them.
		switch flags, err := proc.Host.CPUFlags(); {
		case h.accelerator == notebook.TCG:
			cpu += ",vendor=GenuineIntel"
		case err != nil:
			return nil, err
		case slices.Contains(flags, "topoext"):
			cpu += ",topoext=on"
		}
	}
	args := []string{
		"-name", "guest=" + strings.ReplaceAll(h.name, ",", ",,") + ",debug-threads=on",
		"-machine", h.board.machine(h.accelerator), "-accel", accel, "-cpu", cpu,
		"-smp", fmt.Sprintf("cpus=%d,sockets=%d,cores=%d,threads=%d", h.cpus, h.machine.Sockets, h.machine.Cores(h.cpus), h.machine.Threads),
		"-m", fmt.Sprintf("size=%dM", h.memory>>20),
		"-no-user-config", "-nodefaults", "-display", "none", "-no-reboot", "-S",
		"-add-fd", fmt.Sprintf("fd=%d,set=1", consoleFD),
		// append=on, because QEMU could not truncate a pipe.
		"-chardev", "file,id=console,path=/dev/fdset/1,append=on", "-serial", "chardev:console",
		"-chardev", fmt.Sprintf("socket,id=qmp,fd=%d", qmpFD), "-mon", "chardev=qmp,mode=control",
		// A guest that breaks out of its machine finds few system calls.
		"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
	}
	if h.machine.BootDisk {
		args = append(args, h.boot.args()...)
	} else {
		args = append(args, "-kernel", h.kernel, "-initrd", h.initramfs, "-append", h.commandLine())
	}
	args = append(args, h.board.firmware(h.accelerator)...)
	if h.bare {
		return args, nil
	}
	args = append(args, h.memoryArgs()...)
	args = append(args,
		"-device", h.board.device("virtio-serial"),
		"-chardev", fmt.Sprintf("socket,id=ruler,fd=%d", rulerFD),
		"-device", "virtserialport,chardev=ruler,name="+guestinit.Port,
	)
	args = append(args, deviceArgs(h.machine.Devices, h.screen)...)
	card := h.board.device("virtio-net") + ",netdev=net" + h.board.noROM
	switch {
	case h.tap != nil:
		tap := fmt.Sprintf("tap,id=net,fd=%d", tapFD)
		if h.vhost != nil {
			tap += fmt.Sprintf(",vhost=on,vhostfd=%d", vhostFD)
		}
		args = append(args, "-netdev", tap, "-device", fmt.Sprintf("%s,mac=%s", card, h.mac))
	case h.network == "" || h.network == notebook.NetUser:
		// restrict=on: the guest sees only a network of its own, except for the forwarded port.
		user := "user,id=net,restrict=on,ipv6=off"
		if h.forward.IsValid() {
			user += fmt.Sprintf(",hostfwd=tcp:%s-:%d", h.forward, h.forward.Port())
		}
		args = append(args, "-netdev", user, "-device", card)
	}
	disks, err := h.disks()
	return append(args, disks...), err
}

// savedFolder is the folder, in the guest's folder, of a file with its saved state and of the files that are its memory (notebook.Machine.RAMFile).
const savedFolder = "saved"

// ramFile is the file with the memory of a NUMA node of the guest with this folder.
func ramFile(folder string, node int) string {
	return filepath.Join(folder, savedFolder, fmt.Sprintf("ram%d", node))
}

// memoryArgs describe the machine's memory and its NUMA nodes: by default one anonymous mapping.
func (h hardware) memoryArgs() (args []string) {
	m := h.machine
	if m.HugePages == 0 && m.Nodes == 1 && !m.RAMFile {
		return nil
	}
	node := func(i int) string { return fmt.Sprintf("memory%d", i) }
	for i := range m.Nodes {
		kind := "memory-backend-ram"
		switch {
		case m.HugePages > 0:
			// Take all of them now: a guest that found none later would be killed.
			kind = fmt.Sprintf("memory-backend-memfd,hugetlb=on,hugetlbsize=%d,prealloc=on", m.HugePages)
		case m.RAMFile:
			share := "on"
			if h.state != nil { // the restored machine's writes are its own, so that the saved state stays as it is
				share = "off"
			}
			kind = fmt.Sprintf("memory-backend-file,mem-path=%s,share=%s", strings.ReplaceAll(ramFile(h.folder, i), ",", ",,"), share)
		}
		args = append(args, "-object", fmt.Sprintf("%s,id=%s,size=%d", kind, node(i), h.memory/int64(m.Nodes)))
		if h.board.minimal { // without nodes
			args = append(args, "-machine", "memory-backend="+node(i))
			continue
		}
		each := h.cpus / m.Nodes
		args = append(args, "-numa", fmt.Sprintf("node,nodeid=%d,memdev=%s,cpus=%d-%d", i, node(i), i*each, (i+1)*each-1))
	}
	return args
}

// startMachine starts QEMU with the vCPUs paused. On error nothing of it remains.
func startMachine(ctx context.Context, h hardware) (*machine, error) {
	program, err := exec.LookPath(qemu)
	if err != nil {
		return nil, fmt.Errorf("no %s: %w; install it (Debian, Ubuntu: apt-get install qemu-system-x86)", qemu, err)
	}
	c, err := connect(&h)
	if err != nil {
		return nil, err
	}
	process, err := c.start(program, h)
	if err != nil {
		c.close()
		return nil, err
	}
	m := &machine{process: process, conn: c.ours[1], console: newConsole()}
	m.drained.Go(func() {
		m.console.drain(h.moments.Watch(h.moments.Watch(c.out, guestinit.Begun, notebook.MomentFirst), engine.Prompt, notebook.MomentLogin))
		c.out.Close()
	})
	c.release()
	m.qmp, err = newQMP(ctx, c.ours[0])
	if err != nil {
		c.ours[0].Close()
		why := m.diagnose(ctx)
		if killErr := m.kill(context.WithoutCancel(ctx)); killErr != nil {
			err = errors.Join(err, killErr)
		}
		return nil, fmt.Errorf("QEMU did not start: %w: %s", err, why)
	}
	return m, nil
}

// channels are the files that QEMU gets at its start, and this process's ends of them.
type channels struct {
	out    *os.File   // the console
	ours   []net.Conn // QMP's and the ruler's port; nil where the caller has the port's
	extra  []*os.File // QEMU's files from consoleFD on
	theirs []*os.File // those of extra to close here when QEMU has them
}

// connect makes what a machine needs, and sets the parts that QEMU's arguments name. On error nothing of it remains.
func connect(h *hardware) (_ *channels, err error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe for the console: %w", err)
	}
	c := &channels{out: out}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	c.give(in)
	pairs := 2
	if h.ruler != nil {
		pairs = 1
	}
	for range pairs {
		conn, file, err := engine.Pair()
		if err != nil {
			return nil, err
		}
		c.ours = append(c.ours, conn)
		c.give(file)
	}
	if h.ruler != nil {
		c.extra, c.ours = append(c.extra, h.ruler), append(c.ours, nil)
	}
	if h.tap != nil {
		c.extra = append(c.extra, h.tap) // the caller closes it
		if h.accelerator == notebook.KVM && !h.machine.NoVhost {
			// As for users of KVM. Where it cannot be opened, QEMU carries the packets itself.
			if fd, err := unix.Open(vhostDevice, unix.O_RDWR|unix.O_CLOEXEC, 0); err == nil {
				h.vhost = os.NewFile(uintptr(fd), vhostDevice)
				c.give(h.vhost)
			}
		}
	}
	if h.machine.Devices != "" {
		// A socket's address holds 107 bytes, but a folder's path may be longer.
		dir, err := unix.Open(h.folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.folder, err)
		}
		h.screen = fmt.Sprintf("/proc/self/fd/%d/%s", consoleFD+len(c.extra), screenName)
		c.give(os.NewFile(uintptr(dir), h.folder))
	}
	return c, nil
}

// start starts QEMU with these channels.
func (c *channels) start(program string, h hardware) (*engine.Process, error) {
	args, err := h.args()
	if err != nil {
		return nil, err
	}
	switch {
	case h.state != nil && h.machine.RAMFile:
		args = append(args, "-incoming", "defer") // it must first be told that the memory is not in the stream
	case h.state != nil:
		args = append(args, "-incoming", fmt.Sprintf("fd:%d", consoleFD+len(c.extra)))
		c.extra = append(c.extra, h.state)
	}
	cmd := exec.Command(program, args...)
	cmd.ExtraFiles = c.extra
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	if h.starts == nil {
		return engine.StartTied(cmd)
	}
	return h.starts(cmd)
}

// give passes a file to QEMU; this process's copy is then no longer needed.
func (c *channels) give(f *os.File) {
	c.extra, c.theirs = append(c.extra, f), append(c.theirs, f)
}

// release closes the files that QEMU has by now.
func (c *channels) release() {
	for _, f := range c.theirs {
		f.Close()
	}
}

// close closes both ends.
func (c *channels) close() {
	c.out.Close()
	for _, conn := range c.ours {
		if conn != nil {
			conn.Close()
		}
	}
	c.release()
}

// Meet implements engine.Meeting.
func (m *machine) Meet(context.Context) (ruler.Stream, int, error) { return m.conn, 0, nil }

// model returns the CPU model of the machine's vCPUs, as notebook.Machine has it, by QEMU's own account. lacking are the features of a
// named model that the host or the accelerator does not have.
func (m *machine) model(ctx context.Context) (name string, lacking []string, err error) {
	var cpus []struct {
		Path string `json:"qom-path"`
	}
	if err := m.qmp.run(ctx, "query-cpus-fast", &cpus); err != nil {
		return "", nil, err
	}
	property := func(cpu int, name string, to any) error {
		return m.qmp.with(ctx, "qom-get", map[string]string{"path": cpus[cpu].Path, "property": name}, to)
	}
	for i := range cpus {
		var is string
		if err := property(i, "type", &is); err != nil {
			return "", nil, err
		}
		if is = strings.TrimSuffix(is, "-x86_64-cpu"); is == "host" || is == "max" {
			is = ""
		}
		if i > 0 && is != name {
			return "", nil, fmt.Errorf("QEMU says that vCPU %d is a %s, and others a %s", i, cmp.Or(is, notebook.HostCPU), cmp.Or(name, notebook.HostCPU))
		}
		name = is
	}
	if name != "" {
		err = property(0, "unavailable-features", &lacking) // all have the same
	}
	return name, lacking, err
}

// booted reports whether the machine booted from its disk, by QEMU's account: QEMU then has no kernel.
func (m *machine) booted(ctx context.Context) (fromDisk bool, err error) {
	var kernel string
	err = m.qmp.with(ctx, "qom-get", map[string]string{"path": "/machine", "property": "kernel"}, &kernel)
	return kernel == "", err
}

// threads returns the thread of each vCPU, by the vCPU's number, and all other threads of the process.
func (m *machine) threads(ctx context.Context) (vcpus, others []int, err error) {
	var cpus []struct {
		Index  int `json:"cpu-index"`
		Thread int `json:"thread-id"`
	}
	if err := m.qmp.run(ctx, "query-cpus-fast", &cpus); err != nil {
		return nil, nil, err
	}
	all, err := proc.Threads(m.process.PID())
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(cpus, func(a, b struct {
		Index  int `json:"cpu-index"`
		Thread int `json:"thread-id"`
	}) int {
		return a.Index - b.Index
	})
	for i, c := range cpus {
		if c.Index != i || !slices.Contains(all, c.Thread) || slices.Contains(vcpus, c.Thread) {
			return nil, nil, fmt.Errorf("QEMU says that vCPU %d is thread %d, but that is not its own thread or not one for each vCPU", c.Index, c.Thread)
		}
		vcpus = append(vcpus, c.Thread)
	}
	for _, t := range all {
		if !slices.Contains(vcpus, t) {
			others = append(others, t)
		}
	}
	return vcpus, others, nil
}

// pin binds the thread of each vCPU to its own CPU, and all other threads to rest.
func (m *machine) pin(ctx context.Context, cpus, rest []int) error {
	vcpus, others, err := m.threads(ctx)
	if err != nil {
		return err
	}
	if len(vcpus) != len(cpus) {
		return fmt.Errorf("%d vCPUs to pin to %d CPUs; must be one CPU for each vCPU", len(vcpus), len(cpus))
	}
	for i, tid := range vcpus {
		if err := setAffinity(tid, cpus[i:i+1]); err != nil {
			return err
		}
	}
	for _, tid := range others {
		// A thread of QEMU's pool may have ended.
		if err := setAffinity(tid, rest); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// within binds all threads to CPUs. The threads that they start inherit this.
func (m *machine) within(ctx context.Context, cpus []int) error {
	vcpus, others, err := m.threads(ctx)
	if err != nil {
		return err
	}
	for _, tid := range slices.Concat(vcpus, others) {
		if err := setAffinity(tid, cpus); err != nil && !errors.Is(err, unix.ESRCH) { // a thread of QEMU's pool may have ended since
			return err
		}
	}
	return nil
}

func setAffinity(tid int, cpus []int) error {
	if err := proc.Bind(tid, cpus); err != nil {
		return fmt.Errorf("bind QEMU's thread %d to CPUs %v: %w", tid, cpus, err)
	}
	return nil
}

// kill ends the process and waits until it is gone.
func (m *machine) kill(ctx context.Context) error {
	if err := m.process.End(ctx, 0); err != nil {
		return err
	}
	if m.conn != nil { // otherwise it belongs to the saved machine
		m.conn.Close()
	}
	if m.qmp != nil {
		m.qmp.close()
	}
	m.drained.Wait()
	return nil
}

// diagnoseWait bounds how long a diagnosis waits for a QEMU that lost its ruler to end by itself.
const diagnoseWait = 2 * time.Second

// diagnose says why the guest does not answer, as far as known.
func (m *machine) diagnose(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, diagnoseWait)
	defer cancel()
	var said []string
	select {
	case <-m.process.Done():
		m.drained.Wait()
		said = append(said, "QEMU ended: "+m.process.State())
	case <-ctx.Done():
		said = append(said, "QEMU still runs")
	}
	if m.qmp != nil {
		if why := m.qmp.stopped(); why != "" {
			said = append(said, "its machine stopped: "+why)
		}
	}
	// The most important line may be far from the console's end.
	if s, ok := m.console.find(guestinit.FailPrefix); ok {
		said = append(said, "its first process failed: "+s)
	}
	if s, ok := m.console.find("Kernel panic - "); ok {
		said = append(said, "its kernel panicked: "+s)
	}
	if s := tail([]byte(m.process.Said()), 5); s != "" {
		said = append(said, "QEMU said: "+s)
	}
	if s := m.console.tail(12); s != "" {
		said = append(said, "the console's end: "+s)
	}
	return strings.Join(said, "; ")
}
