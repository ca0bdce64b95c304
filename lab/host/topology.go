//go:build linux

package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"tare/lab/cgroup"
	"tare/lab/proc"
	"tare/notebook"
)

// system is the inspected machine.
type system struct{ proc.Tree }

// Inspect describes this machine. It reads only files of /proc, /sys and /etc and changes nothing. Capabilities, which need trying,
// are not a part of the description (see Capabilities).
//
// The id is a salted hash, which does not reveal the machine's own identity. Its first letter names the source: "m" the machine-id,
// "d" the firmware's serial numbers, "h" hostname and CPU model where nothing better exists (such as in a container). Two machines
// may share an "h" id, and a machine may change its own.
func Inspect(ctx context.Context) (notebook.Host, error) {
	if err := ctx.Err(); err != nil {
		return notebook.Host{}, err
	}
	h, err := system{proc.Host}.inspect()
	if err != nil {
		return h, fmt.Errorf("host: inspect this machine: %w", err)
	}
	return h, nil
}

// CPUs are the host's online CPUs, with their cores, sockets and nodes.
func CPUs() ([]notebook.CPU, error) { return system{proc.Host}.cpus() }

func (s system) inspect() (notebook.Host, error) {
	h := notebook.Host{Arch: s.arch()}
	var err error
	if h.Kernel, err = s.Read("/proc/sys/kernel/osrelease"); err != nil {
		return h, err
	}
	if h.Hostname, err = s.Read("/proc/sys/kernel/hostname"); err != nil {
		return h, err
	}
	h.OS = s.os()
	cpuinfo, err := s.Read("/proc/cpuinfo")
	if err != nil {
		return h, err
	}
	h.CPUModel, h.CPUFlags = cpuModel(cpuinfo)
	if h.CPUs, err = s.cpus(); err != nil {
		return h, err
	}
	if h.Memory, err = s.Memory("MemTotal"); err != nil {
		return h, err
	}
	if h.CgroupVersion, err = cgroup.Versions(s.Tree); err != nil {
		return h, err
	}
	h.Virtualization = s.virtualization(h.Arch, h.CPUFlags)
	h.Governor = s.governor(h.CPUs)
	h.Settings = s.settings(h.CPUs, cpuinfo)
	h.ID = s.id(h.Hostname, h.CPUModel)
	return h, nil
}

func (s system) arch() string {
	if a, err := s.Read("/proc/sys/kernel/arch"); err == nil && a != "" { // from Linux 6.1 on
		return a
	}
	if a, ok := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]; ok {
		return a
	}
	return runtime.GOARCH
}

func (s system) os() string {
	for _, file := range []string{"/etc/os-release", "/usr/lib/os-release"} {
		text, err := s.Read(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(text) {
			if v, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
				return strings.Trim(v, `"'`)
			}
		}
	}
	return "unknown"
}

// cpuModel parses the first processor of /proc/cpuinfo. Only x86 has a name there.
func cpuModel(cpuinfo string) (model string, flags []string) {
	first, _, _ := strings.Cut(cpuinfo, "\n\n")
	model = proc.Field(first, "model name")
	if model == "" {
		var parts []string
		for _, name := range []string{"CPU implementer", "CPU part", "CPU variant", "CPU revision"} {
			if v := proc.Field(first, name); v != "" {
				parts = append(parts, strings.TrimPrefix(name, "CPU ")+" "+v)
			}
		}
		model = cmp.Or(strings.Join(parts, ", "), "unknown")
	}
	return model, strings.Fields(cmp.Or(proc.Field(first, "flags"), proc.Field(first, "Features")))
}

// cpus reads the online CPUs and their places. Cores are numbered from 0 in the order of their first online CPU, because the
// kernel's own numbers are unique only within a die.
func (s system) cpus() ([]notebook.CPU, error) {
	online, err := s.OnlineCPUs()
	if err != nil {
		return nil, err
	}
	node := make(map[int]int)
	nodes, err := fs.Glob(s.FS, "sys/devices/system/node/node[0-9]*/cpulist")
	if err != nil {
		return nil, err
	}
	for _, file := range nodes {
		text, err := s.Read(file)
		if err != nil {
			return nil, err
		}
		list, err := notebook.ParseCPUList(text)
		n, err2 := strconv.Atoi(strings.TrimPrefix(path.Base(path.Dir(file)), "node"))
		if err := errors.Join(err, err2); err != nil {
			return nil, fmt.Errorf("/%s: %w", file, err)
		}
		for _, c := range list {
			node[c] = n
		}
	}
	cores := make(map[string]int)
	var cpus []notebook.CPU
	for _, id := range online {
		dir := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/", id)
		socket, err := s.number(dir+"physical_package_id", 0)
		if err != nil {
			return nil, err
		}
		key, err := s.coreKey(dir, id, socket)
		if err != nil {
			return nil, err
		}
		if _, ok := cores[key]; !ok {
			cores[key] = len(cores)
		}
		cpus = append(cpus, notebook.CPU{ID: id, Core: cores[key], Socket: max(socket, 0), Node: node[id]})
	}
	return cpus, nil
}

// coreKey is equal for the threads of one core: the list of these threads where the kernel has it.
func (s system) coreKey(dir string, id, socket int) (string, error) {
	for _, name := range []string{"core_cpus_list", "thread_siblings_list"} { // the first from Linux 5.3 on
		text, err := s.Read(dir + name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		list, err := notebook.ParseCPUList(text)
		if err != nil {
			return "", fmt.Errorf("%s%s: %w", dir, name, err)
		}
		if slices.Contains(list, id) {
			return notebook.FormatCPUList(list), nil
		}
	}
	die, err := s.number(dir+"die_id", 0)
	if err != nil {
		return "", err
	}
	core, err := s.number(dir+"core_id", -1)
	if err != nil {
		return "", err
	}
	if core < 0 {
		return fmt.Sprintf("cpu %d", id), nil
	}
	return fmt.Sprintf("socket %d die %d core %d", socket, die, core), nil
}

// number reads a file with one number; it returns otherwise if the file is missing.
func (s system) number(file string, otherwise int) (int, error) {
	text, err := s.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return otherwise, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %.40q: must be a number", file, text)
	}
	return n, nil
}

// virtualization names what this machine runs in: a hypervisor, a container, or both; "" for neither.
func (s system) virtualization(arch string, flags []string) string {
	name := s.hypervisor(arch, flags)
	if c := s.container(); c != "" {
		name = strings.TrimPrefix(name+", in a container ("+c+")", ", ")
	}
	return name
}

// hypervisor names the hypervisor. On x86 the CPU says that there is one; the firmware and the clocks say which. The name in the
// firmware is not enough, because clouds give their bare-metal machines the same name.
func (s system) hypervisor(arch string, flags []string) string {
	if t, err := s.Read("/sys/hypervisor/type"); err == nil && t == "xen" {
		if caps, err := s.Read("/proc/xen/capabilities"); err == nil && strings.Contains(caps, "control_d") {
			return "" // the first domain, which controls the machine
		}
		return "Xen"
	}
	x86 := arch == "x86_64" || strings.HasPrefix(arch, "i")
	if x86 && !slices.Contains(flags, "hypervisor") {
		return ""
	}
	var firmware string
	for _, name := range []string{"sys_vendor", "product_name", "board_vendor", "bios_vendor", "chassis_asset_tag"} {
		if v, err := s.Read("/sys/class/dmi/id/" + name); err == nil {
			firmware += v + "\n"
		}
	}
	if !x86 && strings.Contains(firmware, ".metal") {
		return ""
	}
	for _, known := range []struct{ has, name string }{
		{"Amazon EC2", "KVM (Amazon EC2)"},
		{"Google Compute Engine", "KVM (Google Compute Engine)"},
		{"OpenStack", "KVM (OpenStack)"},
		{"KubeVirt", "KVM (KubeVirt)"},
		{"KVM", "KVM"},
		{"VMware", "VMware"},
		{"VirtualBox", "VirtualBox"},
		{"innotek", "VirtualBox"},
		{"Xen", "Xen"},
		{"Microsoft Corporation", "Hyper-V"},
		{"Parallels", "Parallels"},
		{"BHYVE", "bhyve"},
		{"Apple Virtualization", "Apple Virtualization"},
	} {
		if strings.Contains(firmware, known.has) {
			return known.name
		}
	}
	// The hypervisor's own clock. A QEMU machine runs on KVM only if this clock exists.
	clocks, err := s.Read("/sys/devices/system/clocksource/clocksource0/available_clocksource")
	switch {
	case err == nil && strings.Contains(clocks, "kvm-clock"):
		return "KVM"
	case err == nil && strings.Contains(clocks, "hyperv"):
		return "Hyper-V"
	case err == nil && strings.Contains(clocks, "xen"):
		return "Xen"
	case strings.Contains(firmware, "QEMU"):
		return "QEMU without KVM, which may emulate the CPU"
	case x86:
		return "unknown hypervisor"
	}
	return ""
}

// initialPIDNamespace is the kernel's fixed name of its first PID namespace (PROC_PID_INIT_INO).
const initialPIDNamespace = "pid:[4026531836]"

// container names the kind of container that this process's whole system is, or "". Files that containers leave in their root prove
// nothing, because roots of virtual machines are made from container images too.
func (s system) container() string {
	if ns, err := fs.ReadLink(s.FS, "proc/self/ns/pid"); err != nil || ns == initialPIDNamespace {
		return ""
	}
	if env, err := s.Read("/proc/1/environ"); err == nil { // only root can read it
		for v := range strings.SplitSeq(env, "\x00") {
			if c, ok := strings.CutPrefix(v, "container="); ok && c != "" {
				return c
			}
		}
	}
	for _, known := range []struct{ file, name string }{{".dockerenv", "docker"}, {"run/.containerenv", "podman"}} {
		if _, err := fs.Stat(s.FS, known.file); err == nil {
			return known.name
		}
	}
	return "of some kind"
}

// governor is the CPU frequency governor; all of them where CPUs differ; "" where the machine has none.
func (s system) governor(cpus []notebook.CPU) string { return s.scaling(cpus, "scaling_governor") }

func (s system) id(hostname, model string) string {
	if id, err := s.Read("/etc/machine-id"); err == nil && len(id) == 32 && strings.Trim(id, "0123456789abcdef") == "" && strings.Trim(id, "0") != "" {
		return hash("m", id)
	}
	var serials string
	for _, name := range []string{"product_uuid", "product_serial", "board_serial"} { // only root can read it
		if v, err := s.Read("/sys/class/dmi/id/" + name); err == nil {
			serials += v
		}
	}
	// Firmware without numbers has text such as "Not Specified" or "None" instead.
	if strings.ContainsAny(serials, "123456789") {
		return hash("d", serials)
	}
	return hash("h", hostname+"\n"+model)
}

func hash(kind, identity string) string {
	sum := sha256.Sum256([]byte("tare\n" + kind + "\n" + identity))
	return fmt.Sprintf("%s-%x", kind, sum[:8])
}

// ChooseCPUs chooses n of the host's CPUs for a guest that gets its own CPUs, always the same ones. It prefers whole cores, with
// one thread of each; then one NUMA node, else one socket; then the highest numbers, because CPU 0 serves most interrupts. It takes
// only CPUs that this process may use. The result is in ascending order.
func ChooseCPUs(h notebook.Host, n int) ([]int, error) {
	l, err := cgroup.LimitsOf(os.Getpid())
	if err != nil {
		return nil, err
	}
	allowed, err := notebook.ParseCPUList(l.CPUs)
	if err != nil {
		return nil, err
	}
	return chooseCPUs(h.CPUs, allowed, n)
}

// ChooseSeats chooses CPUs for as many guests of n CPUs as possible, so that no two share one. The first guest gets those of
// ChooseCPUs, the next one the same from the rest, and so on. It returns at least one seat, or an error.
func ChooseSeats(h notebook.Host, n int) (seats [][]int, err error) {
	l, err := cgroup.LimitsOf(os.Getpid())
	if err != nil {
		return nil, err
	}
	allowed, err := notebook.ParseCPUList(l.CPUs)
	if err != nil {
		return nil, err
	}
	return chooseSeats(h.CPUs, allowed, n)
}

func chooseSeats(all []notebook.CPU, allowed []int, n int) (seats [][]int, err error) {
	allowed = proc.IntersectCPUs(ids(all), allowed)
	for len(seats) == 0 || len(allowed) >= n {
		cpus, err := chooseCPUs(all, allowed, n)
		if err != nil {
			return nil, err
		}
		seats = append(seats, cpus)
		allowed = slices.DeleteFunc(allowed, func(c int) bool { return slices.Contains(cpus, c) })
	}
	return seats, nil
}

func chooseCPUs(all []notebook.CPU, allowed []int, n int) ([]int, error) {
	type core struct {
		threads            []int // descending
		lowest             int   // lowest thread, usable or not: the core of CPU 0 comes last
		core, node, socket int
	}
	byID := make(map[int]*core)
	usable := 0
	for _, c := range all {
		k := byID[c.Core]
		if k == nil {
			k = &core{lowest: c.ID, core: c.Core, node: c.Node, socket: c.Socket}
			byID[c.Core] = k
		}
		k.lowest = min(k.lowest, c.ID)
		if slices.Contains(allowed, c.ID) {
			k.threads = append(k.threads, c.ID)
			usable++
		}
	}
	if n < 1 {
		return nil, fmt.Errorf("host: choose %d CPUs: must be at least 1", n)
	}
	if n > usable {
		return nil, fmt.Errorf("host: choose %d CPUs: this process may use only %d of the host's %d (%s); take a smaller instance, or give this process more CPUs", n, usable, len(all), notebook.FormatCPUList(proc.IntersectCPUs(ids(all), allowed)))
	}
	var cores []*core
	for _, k := range byID {
		if len(k.threads) > 0 {
			slices.SortFunc(k.threads, func(a, b int) int { return b - a })
			cores = append(cores, k)
		}
	}
	slices.SortFunc(cores, func(a, b *core) int { return cmp.Or(b.lowest-a.lowest, b.core-a.core) })

	// The smallest place that has enough cores. cores is in order of preference, so the first such place is preferred too.
	want := min(n, len(cores))
	place := func(of func(*core) int) []*core {
		in := make(map[int][]*core)
		for _, k := range cores {
			in[of(k)] = append(in[of(k)], k)
		}
		for _, k := range cores {
			if p := in[of(k)]; len(p) >= want {
				return p
			}
		}
		return nil
	}
	chosen := place(func(k *core) int { return k.node })
	if chosen == nil {
		if chosen = place(func(k *core) int { return k.socket }); chosen == nil {
			chosen = cores
		}
		// Over as few nodes as possible: the fullest first.
		size := make(map[int]int)
		for _, k := range chosen {
			size[k.node]++
		}
		slices.SortStableFunc(chosen, func(a, b *core) int {
			return cmp.Or(size[b.node]-size[a.node], b.node-a.node)
		})
	}
	var cpus []int
	for t := 0; len(cpus) < n; t++ {
		for _, k := range chosen {
			if t < len(k.threads) && len(cpus) < n {
				cpus = append(cpus, k.threads[t])
			}
		}
	}
	slices.Sort(cpus)
	return cpus, nil
}

func ids(cpus []notebook.CPU) []int {
	var all []int
	for _, c := range cpus {
		all = append(all, c.ID)
	}
	return all
}

// Describe writes a description of the machine in a few lines of plain text.
func Describe(w io.Writer, h notebook.Host) error {
	var b strings.Builder
	line := func(name, format string, a ...any) { fmt.Fprintf(&b, "%-10s %s\n", name, fmt.Sprintf(format, a...)) }
	line("host", "%s (%s), id %s", h.Hostname, h.Arch, h.ID)
	line("system", "%s, Linux %s", h.OS, h.Kernel)
	line("CPU", "%s", h.CPUModel)

	sockets, cores, nodes := make(map[int]bool), make(map[int]bool), make(map[int][]int)
	for _, c := range h.CPUs {
		sockets[c.Socket], cores[c.Core] = true, true
		nodes[c.Node] = append(nodes[c.Node], c.ID)
	}
	smt := "no SMT"
	if len(h.CPUs) > len(cores) {
		smt = "SMT: threads share cores"
	}
	line("CPUs", "%s in %s and %s; %s", count(len(h.CPUs), "CPU"), count(len(cores), "core"), count(len(sockets), "socket"), smt)
	if len(nodes) > 1 {
		for _, n := range slices.Sorted(maps.Keys(nodes)) {
			line("", "NUMA node %d: CPUs %s", n, notebook.FormatCPUList(nodes[n]))
		}
	}
	line("memory", "%.1f GiB", float64(h.Memory)/(1<<30))
	line("cgroups", "%s", h.CgroupVersion)
	if h.Governor != "" {
		line("governor", "%s", h.Governor)
	}
	if h.Virtualization != "" {
		line("note", "this host is itself a guest (%s): bare metal means this VM without another layer", h.Virtualization)
	}
	if strings.HasPrefix(h.ID, "h-") {
		line("note", "this host has no identity of its own (no /etc/machine-id, no serial number): its id is made from hostname and CPU model, and another host may have the same")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
