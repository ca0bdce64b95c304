//go:build linux

// Package qemu is the driver of virtual machines: QEMU, controlled over QMP, with the image's root on a virtio disk and the ruler
// on a virtio serial port.
//
// On the host a guest is one QEMU process and a folder with the file for what it writes to its disk. Its control socket, its
// console and its ruler's stream are descriptors that it shares with this program. It ends with this program, however that ends
// (PR_SET_PDEATHSIG), and is also in the undo journal.
//
// On a network it has a virtio card on a tap of the load's bridge, with an address that its first process sets. By default it has
// QEMU's own network, with nothing behind it.
package qemu

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tare/lab/image"

	"tare/lab/engine"
	"tare/lab/engine/oci/config"
	"tare/lab/engine/qemu/guestinit"
	"tare/lab/journal"
	"tare/lab/network"
	"tare/lab/proc"
	"tare/notebook"
	"tare/notebook/durable"
)

// VM and VMCN are the engines of virtual machines, and of containers in them. MicroVM is that of virtual machines of QEMU's minimal
// machine type.
var (
	VM      = kind(notebook.VM, usualName)
	VMCN    = kind(notebook.VMCN, usualName)
	MicroVM = kind(notebook.VM, microName)
)

// kind registers the engine of one of the two platforms, for one of the boards.
func kind(platform, name string) engine.Kind {
	k := engine.Kind{
		Takes: notebook.Span{Low: 0.8, High: 6}, TakesEmulated: notebook.Span{Low: 3, High: 15}, // by KVM: estimated from the guest's own boot time
		Platform: platform, Name: name, Usual: name == usualName, Undo: undo,
		Provisionings: notebook.Provisionings,
		Accelerators:  []string{notebook.KVM, notebook.KVMEmulated, notebook.TCG},
		Capabilities:  []string{"qemu", notebook.KVM, notebook.KVMEmulated, notebook.TCG},
		Kernel:        recorded,
		Machines:      true,
		NoDevices:     "a virtual machine needs a whole device, by VFIO and the host's IOMMU, and Tare does not take devices from the host; the study's other platforms have it",
		Packages:      []string{"qemu-system-x86", "crun"}, // crun makes the container in a VM
		Systems:       platform == notebook.VM,
	}
	if platform == notebook.VM {
		k.Networks, k.TracesInside = []string{notebook.NetBridge, notebook.NetUser, notebook.NetNone}, true
	} else {
		k.Untraceable = "the ruler is in the container in the VM, which may not load tracers"
	}
	self := k
	k.New = func(env engine.Env) engine.Driver { return New(self, env) }
	return k
}

// New makes a driver of virtual machines, or of containers in them. It does not look at the host yet.
func New(k engine.Kind, env engine.Env) *Driver {
	return &Driver{Env: env, kind: k, board: boards[k.Name], container: k.Platform == notebook.VMCN}
}

// Driver makes virtual machines.
type Driver struct {
	engine.Env
	Kernel      Kernel        // of the guests; default: Env's, or the one that FindKernel finds
	BootTimeout time.Duration // time limit for the ruler's hello; 0: by accelerator
	Crun        string        // the OCI runtime for the VM; default: the host's crun, looked up in PATH

	kind      engine.Kind
	board     board
	container bool // the ruler runs in a container inside
	prepare   sync.Mutex
	kernel    Kernel
	disks     map[string]bootDisks // of machines that boot from disk, by their initramfs, without configuration
	initramfs map[inGuest]string   // paths of the initramfs files made so far
}

// bootTimes bound the time until the ruler's hello, by accelerator. A guest whose kernel mode KVM emulates takes one minute, and on
// a busy host several.
var bootTimes = map[string]time.Duration{notebook.KVM: 30 * time.Second, notebook.KVMEmulated: 6 * time.Minute, notebook.TCG: 3 * time.Minute}

// perBootSecond is how much memory adds a second to this bound: with huge pages, QEMU fills all of it first.
const perBootSecond = 2 << 30

// maxCores is the greatest number of virtual CPUs of a machine. More need interrupts that an emulated IOMMU remaps, which none of the machines
// has, and QEMU before 8.1 gives a machine of type q35 at most 288.
const maxCores = 255

// minMemory is the least memory with which a guest boots: kernel, initramfs and its unpacked copy.
const minMemory = 192 << 20

// checkArchitecture refuses hosts for which this package describes no machine.
func checkArchitecture() error {
	if runtime.GOARCH != "amd64" {
		return fmt.Errorf("vm: guests are made on x86-64 hosts only; this one is %s", runtime.GOARCH)
	}
	return nil
}

const (
	qemu      = "qemu-system-x86_64"
	usualName = "qemu" // of the engine with the usual board
	microName = notebook.MicroVM
)

// guestModules are the kernel modules that every guest needs in addition to its board's, and the optional ones that it uses where the
// kernel has them. With the first optional one the processor computes the file system's checksums, as on any installed system.
var (
	guestModules     = []string{"virtio_console", "virtio_blk", "virtio_net", "ext4"}
	containerModules = []string{"overlay"}
	bridgeModules    = []string{"bridge", "veth"} // for a container in the VM with its own network namespace
	balloonModule    = "virtio_balloon"           // so that the guest reports free pages
	optionalModules  = []string{"crc32c_intel", "crc32c_generic"}
)

// chosen returns the kernel with its digest.
func (d *Driver) chosen(ctx context.Context) (k Kernel, err error) {
	switch {
	case d.Kernel.Image != "":
		k = d.Kernel
	case d.Env.Kernel != "":
		return NamedKernel(d.Env.Kernel)
	default:
		k, err = FindKernel(ctx, d.State)
	}
	if err == nil && k.Digest == "" {
		k.Digest, err = digestOf(k.Image)
	}
	return k, err
}

// inGuest is what only some guests have and their initramfs must therefore contain.
type inGuest struct{ bridge, balloon bool }

// needs is what a guest with these parameters and this machine has.
func needs(p guestinit.Params, m notebook.Machine) inGuest {
	return inGuest{p.Bridged(), slices.Contains(strings.Split(m.Devices, ","), notebook.Reporting)}
}

// boot returns the kernel and the initramfs of guests that have this, which the first call makes.
func (d *Driver) boot(ctx context.Context, in inGuest) (Kernel, string, error) {
	d.prepare.Lock()
	defer d.prepare.Unlock()
	if path, ok := d.initramfs[in]; ok {
		return d.kernel, path, nil
	}
	k, err := d.chosen(ctx)
	if err != nil {
		return Kernel{}, "", err
	}
	wanted := d.board.modules()
	files := []file{program(guestinit.RulerPath, d.Ruler)}
	if d.Tracer != "" && !d.container { // the ruler in a container could not use it
		files = append(files, program(guestinit.TracerPath, d.Tracer))
	}
	if d.container {
		wanted = append(wanted, containerModules...)
		more, err := d.runtime(ctx)
		if err != nil {
			return Kernel{}, "", err
		}
		files = append(files, more...)
	}
	if in.bridge {
		wanted = append(wanted, bridgeModules...)
	}
	if in.balloon {
		wanted = append(wanted, balloonModule)
	}
	path, err := makeInitramfs(d.State, d.Init, k, wanted, files)
	if err != nil {
		return Kernel{}, "", err
	}
	if d.initramfs == nil {
		d.initramfs = make(map[inGuest]string)
	}
	d.kernel, d.initramfs[in] = k, path
	return k, path, nil
}

// Supports implements engine.Chooser: a host may lack what a machine needs.
func (d *Driver) Supports(ctx context.Context, t notebook.Treatment) (err error) {
	m, err := notebook.ParseMachine(t.Machine)
	if err != nil {
		return err
	}
	if err := d.fits(m, t.Instance); err != nil {
		return err
	}
	if err := d.boots(m, t.Accelerator); err != nil {
		return err
	}
	if m.Confined && t.Provisioning != notebook.Pinned {
		return d.kind.Unsupported("confined", "only a pinned VM has CPUs of its own for all of QEMU's threads")
	}
	if m.NoVhost {
		if err := d.vhost(t); err != nil {
			return err
		}
	}
	if err := d.tryParts(ctx, t, m); err != nil {
		return err
	}
	folder, err := d.tryFolder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	file := filepath.Join(folder, "disk")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return err
	}
	changes := journal.NewChanges(d.Journal, undo())
	err = errors.Join(opens(d.kind, m.Disk, file), reserve(d.kind, changes, m.HugePages, t.Instance.Memory))
	return errors.Join(err, changes.Undo(context.WithoutCancel(ctx)))
}

// triedPrefix begins the names of the folders, below the state folder, in which machines are tried.
const triedPrefix = "try-"

func (d *Driver) tryFolder() (string, error) { return os.MkdirTemp(d.State, triedPrefix) }

// Sweep removes the folders below the state folder that dead processes left from trying machines, and returns their names. Its
// caller holds the host's lock, so nobody is trying a machine. A machine that was made in one has ended with its process.
func Sweep(state string) (removed []string, err error) { return durable.Sweep(state, triedPrefix) }

// vhost says why a guest of the treatment has no packets that the host's kernel could carry; nil if it has some.
func (d *Driver) vhost(t notebook.Treatment) error {
	why := ""
	switch f, err := os.OpenFile(vhostDevice, os.O_RDWR, 0); {
	case err != nil:
		why = "the host's kernel carries no packets of a tap: " + err.Error()
	case t.Accelerator != notebook.KVM:
		why = "the host's kernel carries a tap's packets only under KVM"
		f.Close()
	case !slices.Contains([]string{notebook.NetBridge, notebook.NetHost}, t.Network):
		why = "only a guest on a bridge has a tap"
		f.Close()
	default:
		return f.Close()
	}
	return d.kind.Unsupported("no-vhost", why+"; so this is the usual machine")
}

// fits says why a machine cannot have the instance's cores and memory; nil if it can.
func (d *Driver) fits(m notebook.Machine, i notebook.Instance) error {
	if i.Cores < 1 || i.Cores > maxCores {
		return d.kind.Unsupported(fmt.Sprintf("%g cores", i.Cores), fmt.Sprintf("a machine has 1 to %d virtual CPUs", maxCores))
	}
	if part, why := d.board.lacks(m); why != "" {
		return d.kind.Unsupported(part, why)
	}
	if err := m.Fits(int(i.Cores), i.Memory); err != nil {
		return d.kind.Unsupported("a machine with "+m.Text(), err.Error())
	}
	return nil
}

// Provision implements engine.Driver.
func (d *Driver) Provision(ctx context.Context, s engine.Spec) (engine.Guest, error) {
	if err := d.kind.Check(s); err != nil {
		return nil, err
	}
	if err := checkArchitecture(); err != nil {
		return nil, err
	}
	boot := d.BootTimeout
	if boot == 0 {
		boot = bootTimes[s.Accelerator]
	}
	if boot == 0 {
		return nil, fmt.Errorf("accelerator %q: must be one of %s", s.Accelerator, strings.Join(d.kind.Accelerators, ", "))
	}
	cpus := int(s.Instance.Cores)
	memory := s.Instance.Memory &^ (1<<20 - 1) // QEMU's unit
	if memory < minMemory {
		return nil, d.kind.Unsupported(fmt.Sprintf("%d MiB of memory", memory>>20), fmt.Sprintf("its kernel needs some of it to boot; ask for at least %d MiB", minMemory>>20))
	}
	boot += time.Duration(memory/perBootSecond) * time.Second
	vm, err := notebook.ParseMachine(s.Machine)
	if err != nil {
		return nil, err
	}
	if err := d.fits(vm, notebook.Instance{Cores: s.Instance.Cores, Memory: memory}); err != nil {
		return nil, err
	}
	vm = d.board.made(vm)
	allowed, err := proc.Host.AllowedCPUs("self")
	if err != nil {
		return nil, err
	}
	params := guestinit.Params{Mode: guestinit.ModeVM, Name: config.Hostname(strings.ReplaceAll(s.ID, "_", "-")), Network: s.NetworkMode(), System: s.System}
	if d.container {
		params.Mode, params.Cores = guestinit.ModeVMCN, cpus
		params.Pinned, params.Whole = s.Provisioning == notebook.Pinned, s.Provisioning == notebook.Whole
	}
	kernel, initrd, err := d.boot(ctx, needs(params, vm))
	if err != nil {
		return nil, err
	}
	boots, err := d.bootDisks(ctx, vm, s.Accelerator, kernel, initrd)
	if err != nil {
		return nil, err
	}
	root, err := s.Image.Disk(ctx)
	if err != nil {
		return nil, err
	}
	work := ""
	if s.Work != nil {
		if work, err = s.Work.Disk(ctx); err != nil {
			return nil, err
		}
	}
	g := &Guest{kind: d.kind}
	_, err = engine.Make(ctx, d.Env, s, g, engine.Recipe{
		What: d.kind.Platform + " guest", Address: s.NetworkMode() != notebook.NetUser, HelloTime: boot, Undo: undo(),
		Create: func(ctx context.Context) (engine.Meeting, error) {
			return g.start(ctx, hardware{
				board: d.board, accelerator: s.Accelerator, cpus: cpus, memory: memory,
				kernel: kernel.Image, initramfs: initrd, boot: boots, name: s.ID, root: root, work: work, machine: vm, network: params.Network,
			}, params, allowed)
		},
		Met:     func(context.Context) error { return nil },
		InForce: func() error { return g.check(vm, cpus, memory, allowed) },
	})
	if err != nil {
		return nil, kernel.explain(err)
	}
	g.note(ctx, kernel, d.container)
	return g, nil
}

// start starts the machine.
func (g *Guest) start(ctx context.Context, h hardware, p guestinit.Params, allowed []int) (_ engine.Meeting, err error) {
	if h.tap, err = g.Connection.Tap(); err != nil {
		return nil, err
	}
	p.Address = g.Connection.Lease()
	if p.Network == notebook.NetUser && g.Spec.Network.Port != 0 {
		h.forward = netip.AddrPortFrom(g.Connection.Address().Connect, uint16(g.Spec.Network.Port))
	}
	if g.onTap = h.tap != nil; g.onTap {
		defer h.tap.Close() // the machine has its own copy
		h.mac = network.MAC(p.Address.Addr())
		if p.Bridged() {
			h.mac[0] |= 4 // the address and the MAC are the container's, so the machine's card has another MAC
		}
	}
	if h.cmdline, err = p.Arg(); err != nil {
		return nil, err
	}
	h.folder, h.moments = g.Folder, g.Spec.Moments
	if h.overlay, err = makeOverlay(g.Folder, h.root); err != nil {
		return nil, fmt.Errorf("disk: %w", err)
	}
	for _, path := range []string{h.overlay, h.root, h.work} {
		if err := opens(g.kind, h.machine.Disk, path); err != nil {
			return nil, err
		}
	}
	if h.machine.BootDisk {
		if err := h.boot.configure(g.Folder, h.commandLine()); err != nil {
			return nil, err
		}
	}
	if err := reserve(g.kind, g.Changes, h.machine.HugePages, h.memory); err != nil {
		return nil, err
	}
	if h.machine.RAMFile {
		if err := os.Mkdir(filepath.Join(g.Folder, savedFolder), 0o700); err != nil {
			return nil, err
		}
	}
	if err := g.CountMemory(); err != nil {
		return nil, err
	}
	h.starts = g.Base.StartTied
	ctx, cancel := context.WithTimeout(ctx, engine.HelloTime) // for QEMU itself, which takes no longer than a container
	defer cancel()
	if g.machine, err = startMachine(ctx, h); err != nil {
		return nil, err
	}
	g.hardware, g.allowed = h, allowed
	g.hardware.tap = nil
	g.PID = g.machine.process.PID()
	// The machine is still paused: no instruction of the guest runs before the machine is in the journal and pinned.
	if err := g.hold(ctx); err != nil {
		return nil, err
	}
	g.Spec.Moments.Mark(notebook.MomentCreated)
	if err := g.machine.qmp.run(ctx, "cont", nil); err != nil {
		return nil, err
	}
	return g.machine, nil
}

// hold journals the machine's process and binds it to the guest's CPUs.
func (g *Guest) hold(ctx context.Context) error {
	entry, err := journal.ProcessEntry(g.PID)
	if err != nil {
		return err
	}
	if err := g.Changes.Announce(entry); err != nil {
		return err
	}
	switch {
	case g.Spec.Provisioning == notebook.Pinned:
		return g.machine.pin(ctx, g.Spec.CPUs, g.rest())
	case len(g.Spec.CPUs) > 0:
		return g.machine.within(ctx, g.Spec.CPUs)
	}
	return nil
}

// rest returns the CPUs of a pinned machine's threads other than vCPUs: the others that Tare may use, or all if there is no other.
func (g *Guest) rest() []int {
	if g.hardware.machine.Confined {
		return g.Spec.CPUs
	}
	others := slices.DeleteFunc(slices.Clone(g.allowed), func(c int) bool { return slices.Contains(g.Spec.CPUs, c) })
	if len(others) == 0 {
		return g.allowed
	}
	return others
}

// confined reports whether all threads of the machine's process are bound to the guest's CPUs.
func (g *Guest) confined() (bool, error) {
	all, err := proc.Threads(g.PID)
	if err != nil {
		return false, err
	}
	for _, tid := range all {
		cpus, err := proc.Host.AllowedCPUs(strconv.Itoa(tid))
		if proc.Ended(err) {
			continue
		}
		if err != nil || len(proc.IntersectCPUs(cpus, g.Spec.CPUs)) < len(cpus) {
			return false, err
		}
	}
	return true, nil
}

// Guest is a virtual machine. It implements engine.Guest.
type Guest struct {
	engine.Base
	machine      *machine
	hardware     hardware // as at its start, without open files
	allowed      []int
	state        string // path of its saved state; "" where there is none
	kind         engine.Kind
	kernelSource string
	inForce      notebook.Machine
	onTap        bool
}

func undo() map[string]journal.Undo {
	return map[string]journal.Undo{
		journal.KindProcess: func(ctx context.Context, e journal.Entry) error { return journal.KillProcess(ctx, e.Target) },
		KindHugePages:       giveBack,
	}
}

// Address implements engine.Guest. In QEMU's user network the guest has an address that nobody else sees, and QEMU forwards the
// port to it.
func (g *Guest) Address() engine.Address {
	a := g.Base.Address()
	if g.Spec.NetworkMode() == notebook.NetUser {
		a.Listen = netip.IPv4Unspecified()
	}
	return a
}

// Facts implements engine.Guest.
func (g *Guest) Facts() engine.Facts {
	f := g.Base.Facts()
	f.KernelSource, f.Machine = g.kernelSource, g.inForce
	return f
}

// Processes implements engine.Guest: a VM is one process of the host.
func (g *Guest) Processes() ([]int, error) {
	select {
	case <-g.machine.process.Done():
		return nil, nil
	default:
		return []int{g.PID}, nil
	}
}

// Threads implements engine.Guest. QEMU says which are the vCPUs and the I/O threads. Threads of its pool for blocking I/O have the
// name that its command line sets.
func (g *Guest) Threads() ([]engine.Thread, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limitsWait)
	defer cancel()
	vcpus, others, err := g.machine.threads(ctx)
	if err != nil {
		return nil, err
	}
	io, err := g.machine.ioThreads(ctx)
	if err != nil {
		return nil, err
	}
	var all []engine.Thread
	for _, tid := range vcpus {
		all = append(all, engine.Thread{ID: tid, Role: notebook.RoleVCPU})
	}
	for _, tid := range others {
		role := notebook.RoleEmulator
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/comm", g.PID, tid))
		if err != nil {
			continue // it has ended: a pool's threads come and go
		}
		if slices.Contains(io, tid) || strings.TrimSpace(string(name)) == "worker" {
			role = notebook.RoleIO
		}
		all = append(all, engine.Thread{ID: tid, Role: role})
	}
	return all, nil
}

// limitsWait bounds the queries to QEMU about a running guest.
const limitsWait = 10 * time.Second

// Limits implements engine.Guest: the CPUs of the vCPU threads, a quota of as many cores as there are such threads, and the
// machine's memory.
func (g *Guest) Limits() (notebook.Limits, error) {
	_, l, err := g.limits()
	return l, err
}

// limits also returns the CPUs of each vCPU.
func (g *Guest) limits() ([][]int, notebook.Limits, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limitsWait)
	defer cancel()
	vcpus, _, err := g.machine.threads(ctx)
	if err != nil {
		return nil, notebook.Limits{}, err
	}
	var each [][]int
	var all []int
	for _, tid := range vcpus {
		cpus, err := proc.Host.AllowedCPUs(strconv.Itoa(tid))
		if err != nil {
			return nil, notebook.Limits{}, err
		}
		each = append(each, cpus)
		all = append(all, cpus...)
	}
	slices.Sort(all)
	var memory struct {
		Base    int64 `json:"base-memory"`
		Plugged int64 `json:"plugged-memory"`
	}
	if err := g.machine.qmp.run(ctx, "query-memory-size-summary", &memory); err != nil {
		return nil, notebook.Limits{}, err
	}
	l := notebook.Limits{CPUs: notebook.FormatCPUList(slices.Compact(all)), Memory: memory.Base + memory.Plugged, Source: "qemu"}
	if g.Spec.Provisioning == notebook.Vanilla {
		l.Quota = float64(len(vcpus)) // that many threads cannot use more
	}
	return each, l, nil
}

// check compares what is in force with the request.
func (g *Guest) check(machine notebook.Machine, cpus int, memory int64, allowed []int) error {
	each, l, err := g.limits()
	if err != nil {
		return err
	}
	if len(each) != cpus {
		return fmt.Errorf("the machine has %d vCPUs; must be %d", len(each), cpus)
	}
	if l.Memory != memory {
		return fmt.Errorf("the machine has %d bytes of memory; must be %d", l.Memory, memory)
	}
	for i, on := range each {
		want := allowed
		switch {
		case g.Spec.Provisioning == notebook.Pinned:
			want = g.Spec.CPUs[i : i+1]
		case len(g.Spec.CPUs) > 0:
			want = g.Spec.CPUs
		}
		if !slices.Equal(on, want) {
			return fmt.Errorf("vCPU %d may run on CPUs %v; must be %v", i, on, want)
		}
	}
	hello := g.Client.Hello()
	if seen := len(hello.CPUs); seen != cpus {
		return fmt.Errorf("the guest sees %d CPUs; must be %d: %s", seen, cpus, g.machine.console.tail(5))
	}
	ctx, cancel := context.WithTimeout(context.Background(), limitsWait)
	defer cancel()
	is := notebook.Machine{Sockets: hello.Sockets, Threads: hello.Threads, Nodes: hello.Nodes}
	if is.Disk, err = g.machine.disk(ctx, machine.Disk.AIO); err != nil {
		return err
	}
	if is.HugePages, err = hugePagesOf(g.PID, memory); err != nil {
		return err
	}
	carried, err := g.machine.carried()
	if err != nil {
		return err
	}
	is.NoVhost = machine.NoVhost && !carried
	if is.Devices, err = g.machine.devices(ctx); err != nil {
		return err
	}
	if machine.Confined { // a machine with all CPUs is confined in any case
		if is.Confined, err = g.confined(); err != nil {
			return err
		}
	}
	if is.BootDisk, err = g.machine.booted(ctx); err != nil {
		return err
	}
	if is.RAMFile, err = g.machine.maps(ramFile(g.Folder, 0)); err != nil {
		return err
	}
	is.ReadKernel(hello.Cmdline)
	var lacking []string
	if is.CPU, lacking, err = g.machine.model(ctx); err != nil {
		return err
	}
	if len(lacking) > 0 {
		g.Notes = append(g.Notes, notebook.Say("cpu-features-lacking", "model", machine.CPU, "features", lacking))
	}
	if g.onTap && g.Spec.Accelerator == notebook.KVM && !carried && !machine.NoVhost {
		g.Notes = append(g.Notes, notebook.Say("qemu-carries-packets", "device", vhostDevice))
	}
	want := machine
	// A kernel may have these words built in. Then they are in force whatever the machine is, and the record says so.
	want.NoKASLR, want.NoTHP = want.NoKASLR || is.NoKASLR, want.NoTHP || is.NoTHP
	if g.inForce = is; is != want {
		return fmt.Errorf("the machine is %+v, by QEMU, its process and the guest; must be %+v", is, want)
	}
	return nil
}

// noteWait bounds the wait for the guest's note, which the guest writes before its ruler says hello.
const noteWait = 5 * time.Second

// note collects the notes for the record of a guest whose ruler may be in a container.
func (g *Guest) note(ctx context.Context, k Kernel, container bool) {
	hello := g.Client.Hello()
	g.kernelSource = k.Source + ", " + k.Digest
	if hello.Kernel != k.Release {
		g.Notes = append(g.Notes, notebook.Say("kernel-differs", "says", hello.Kernel, "given", k.Release))
	}
	if missing := missingVectors(hello.CPUFlags); len(missing) > 0 {
		g.Notes = append(g.Notes, notebook.Say("vector-instructions-missing", "instructions", missing))
	}
	if container {
		ctx, cancel := context.WithTimeout(ctx, noteWait)
		defer cancel()
		if line, ok := g.machine.console.wait(ctx, guestinit.NotePrefix); ok {
			g.Notes = append(g.Notes, notebook.TextMessage(line)) // from its first process
		} else {
			g.Notes = append(g.Notes, notebook.Say("container-limit-unsaid"))
		}
	}
}

// missingVectors returns the vector instruction sets that the host has and the guest lacks, in order.
func missingVectors(guest []string) []string {
	flags, err := proc.Host.CPUFlags()
	if err != nil {
		return nil // every host has it; the guest's own record has its flags
	}
	var missing []string
	for _, f := range flags {
		vector := strings.HasPrefix(f, "avx") || strings.HasPrefix(f, "amx") || strings.HasPrefix(f, "sse") || strings.HasPrefix(f, "ssse") || f == "fma"
		if vector && !slices.Contains(guest, f) {
			missing = append(missing, f)
		}
	}
	slices.Sort(missing)
	return missing
}

// Diagnose implements engine.Guest.
func (g *Guest) Diagnose() string { return g.machine.diagnose(context.Background()) }

// Destroy implements engine.Guest. It kills the machine instead of shutting it down, because nothing of it is kept.
func (g *Guest) Destroy(ctx context.Context) error {
	if g.machine != nil {
		if err := g.machine.kill(ctx); err != nil {
			return fmt.Errorf("%s: %w", g.Spec.ID, err)
		}
	}
	return g.Base.Destroy(ctx)
}

var _ engine.Preparer = (*Driver)(nil)

// Prepare makes what all guests with the image need: kernel, initramfs and disk. Provision does it too, but then it counts as a
// part of the guest's start. The first guest on a bridge makes what only such guests need.
func (d *Driver) Prepare(ctx context.Context, img *image.Image) error {
	if _, _, err := d.boot(ctx, inGuest{}); err != nil {
		return err
	}
	_, err := img.Disk(ctx)
	return err
}

var _ engine.Reads = (*Driver)(nil)

// Reads implements engine.Reads: the kernel, the initramfs and the disks. What a machine boots from is made here at the latest, and not in
// its timed start.
func (d *Driver) Reads(ctx context.Context, s engine.Spec) ([]string, error) {
	params := guestinit.Params{Network: s.NetworkMode()}
	if d.container {
		params.Mode = guestinit.ModeVMCN
	}
	vm, err := notebook.ParseMachine(s.Machine)
	if err != nil {
		return nil, err
	}
	kernel, initrd, err := d.boot(ctx, needs(params, vm))
	if err != nil {
		return nil, err
	}
	root, err := s.Image.Disk(ctx)
	if err != nil {
		return nil, err
	}
	all := []string{kernel.Image, initrd, root}
	if vm.BootDisk {
		disks, err := d.bootDisks(ctx, vm, s.Accelerator, kernel, initrd)
		if err != nil {
			return nil, err
		}
		all = []string{disks.loader, disks.kernel, root}
	}
	if s.Work != nil {
		work, err := s.Work.Disk(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, work)
	}
	return all, nil
}
