//go:build linux

package host

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"

	"tare/lab/cgroup"
	"tare/lab/proc"
	"tare/lab/proc/proctest"
	"tare/notebook"
)

// put sets a file, or takes it away.
func (s system) put(name, text string) { proctest.Tree{Tree: s.Tree}.Put(name, text) }

func (s system) drop(name string) { proctest.Tree{Tree: s.Tree}.Drop(name) }

// at is where one logical CPU is, with the core's number as the kernel gives it: unique in its socket only.
type at struct{ socket, node, core int }

// machine lays out the files of a machine whose CPU i is at where[i].
func machine(where []at, offline ...int) system {
	s := system{proctest.New().Tree}
	s.put("/proc/sys/kernel/osrelease", "6.1.0-18-amd64")
	s.put("/proc/sys/kernel/hostname", "big")
	s.put("/proc/sys/kernel/arch", "x86_64")
	s.put("/etc/os-release", "NAME=Debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"")
	s.put("/etc/machine-id", "fedcba9876543210fedcba9876543210")
	s.put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Platinum 8276 CPU @ 2.20GHz\nflags\t\t: fpu vme avx512f\n\nprocessor\t: 1\nmodel name\t: other")
	s.put("/proc/meminfo", "MemTotal:       396211000 kB\nMemFree:        1 kB")
	s.put("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate")
	var online []int
	nodes := make(map[int][]int)
	for id, w := range where {
		if slices.Contains(offline, id) {
			continue // the kernel takes the topology folder of an offline CPU away
		}
		online = append(online, id)
		nodes[w.node] = append(nodes[w.node], id)
		var threads []int
		for other, o := range where {
			if o == w && !slices.Contains(offline, other) {
				threads = append(threads, other)
			}
		}
		dir := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/", id)
		s.put(dir+"topology/physical_package_id", fmt.Sprint(w.socket))
		s.put(dir+"topology/core_id", fmt.Sprint(w.core))
		s.put(dir+"topology/die_id", "0")
		s.put(dir+"topology/core_cpus_list", notebook.FormatCPUList(threads))
		s.put(dir+"cpufreq/scaling_governor", "performance")
	}
	s.put("/sys/devices/system/cpu/online", notebook.FormatCPUList(online))
	for n, cpus := range nodes {
		s.put(fmt.Sprintf("/sys/devices/system/node/node%d/cpulist", n), notebook.FormatCPUList(cpus))
	}
	return s
}

// The paper's host ("pinning", section III): four sockets of 28 cores, 112 CPUs, with SMT off. Firmware numbers
// them in one of two ways.
func bigInBlocks() []at {
	var where []at
	for id := range 112 {
		where = append(where, at{id / 28, id / 28, id % 28})
	}
	return where
}

func bigInTurn() []at {
	var where []at
	for id := range 112 {
		where = append(where, at{id % 4, id % 4, id / 4})
	}
	return where
}

// smt is two sockets of 4 cores with 2 threads; the second threads are numbered after all the first ones.
func smt() []at {
	var where []at
	for id := range 16 {
		where = append(where, at{id / 4 % 2, id / 4 % 2, id % 4})
	}
	return where
}

func inspect(t *testing.T, s system) notebook.Host {
	t.Helper()
	h, err := s.inspect()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestInspectRecordedMachine(t *testing.T) {
	s := system{proctest.Recorded(t, "testdata/debian12-vm.txt").Tree}
	h := inspect(t, s)
	flags := h.CPUFlags
	if h.Settings == nil || h.Settings.ClockSource != "tsc" {
		t.Errorf("settings %+v", h.Settings)
	}
	h.CPUFlags, h.Settings = nil, nil
	want := notebook.Host{
		ID: "m-765d38df28469860", Hostname: "host-a", Kernel: "6.18.44-fc-v595", OS: "Debian GNU/Linux 12 (bookworm)",
		Arch: "x86_64", CPUModel: "Intel(R) Xeon(R) Processor", Memory: 24684096 * 1024, CgroupVersion: "hybrid", Virtualization: "KVM",
		CPUs: []notebook.CPU{{ID: 0, Core: 0}, {ID: 1, Core: 1}},
	}
	if got, want := fmt.Sprintf("%+v", h), fmt.Sprintf("%+v", want); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !slices.Contains(flags, "avx512f") || !slices.Contains(flags, "hypervisor") {
		t.Errorf("flags %v", flags)
	}
}

func TestInspectThisMachine(t *testing.T) {
	h, err := Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again, err := Inspect(t.Context())
	if err != nil || again.ID != h.ID {
		t.Errorf("id %s, and then %s, %v", h.ID, again.ID, err)
	}
	if len(h.CPUs) == 0 || h.Memory < 1<<20 || h.CPUModel == "" || h.Kernel == "" {
		t.Errorf("%+v", h)
	}
}

func TestInspectBigMachine(t *testing.T) {
	for name, where := range map[string][]at{"in blocks": bigInBlocks(), "in turn": bigInTurn()} {
		h := inspect(t, machine(where))
		cores := make(map[int]bool)
		for i, c := range h.CPUs {
			cores[c.Core] = true
			if c.ID != i || c.Socket != where[i].socket || c.Node != where[i].node {
				t.Errorf("%s: CPU %d is %+v, want %+v", name, i, c, where[i])
			}
		}
		if len(h.CPUs) != 112 || len(cores) != 112 || h.Virtualization != "" || h.Governor != "performance" || h.CgroupVersion != "v2" {
			t.Errorf("%s: %d CPUs, %d cores, virtualization %q, governor %q, cgroup %s", name, len(h.CPUs), len(cores), h.Virtualization, h.Governor, h.CgroupVersion)
		}
		if h.CPUModel != "Intel(R) Xeon(R) Platinum 8276 CPU @ 2.20GHz" || !slices.Equal(h.CPUFlags, []string{"fpu", "vme", "avx512f"}) {
			t.Errorf("%s: model %q, flags %q", name, h.CPUModel, h.CPUFlags)
		}
	}
}

func TestInspectSMTAndOfflineCPUs(t *testing.T) {
	h := inspect(t, machine(smt(), 3, 12))
	if got := notebook.FormatCPUList(ids(h.CPUs)); got != "0-2,4-11,13-15" {
		t.Errorf("online %s", got)
	}
	core := make(map[int]int)
	for _, c := range h.CPUs {
		core[c.ID] = c.Core
	}
	for _, pair := range [][2]int{{0, 8}, {1, 9}, {2, 10}, {5, 13}, {7, 15}} {
		if core[pair[0]] != core[pair[1]] {
			t.Errorf("CPUs %v are threads of one core and are said to be of %d and %d", pair, core[pair[0]], core[pair[1]])
		}
	}
	// Core 3 has lost one thread of its two, and so has core 4, in the other socket.
	if core[11] == core[4] || core[0] == core[4] {
		t.Errorf("cores of different sockets are one: %v", core)
	}
}

func TestInspectWithoutSiblingLists(t *testing.T) {
	s := machine(smt())
	for id := range 16 {
		s.drop(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/core_cpus_list", id))
	}
	h := inspect(t, s)
	cores := make(map[int]bool)
	for _, c := range h.CPUs {
		cores[c.Core] = true
	}
	if len(cores) != 8 {
		t.Errorf("%d cores, want 8", len(cores))
	}
	for id := range 16 {
		s.drop(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/core_id", id))
	}
	if h := inspect(t, s); h.CPUs[15].Core != 15 {
		t.Errorf("a machine that says nothing of cores: %+v", h.CPUs)
	}
}

func TestInspectBadFiles(t *testing.T) {
	for file, text := range map[string]string{
		"/sys/devices/system/cpu/online":                            "0-",
		"/proc/meminfo":                                             "MemTotal: many kB",
		"/proc/self/mountinfo":                                      "rubbish",
		"/sys/devices/system/node/node0/cpulist":                    "x",
		"/sys/devices/system/cpu/cpu0/topology/core_cpus_list":      "9-1",
		"/sys/devices/system/cpu/cpu0/topology/physical_package_id": "",
	} {
		s := machine(smt())
		s.put(file, text)
		if _, err := s.inspect(); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s holds %q: the error is %v and does not name it", file, text, err)
		}
	}
}

func TestHostID(t *testing.T) {
	s := machine(smt())
	m := inspect(t, s).ID
	if strings.Contains(m, "fedcba98") || !strings.HasPrefix(m, "m-") {
		t.Errorf("id %s", m)
	}
	seen := []string{m}
	for _, bad := range []string{"", "uninitialized", strings.Repeat("0", 32)} {
		s.put("/etc/machine-id", bad)
		s.put("/sys/class/dmi/id/product_uuid", "12345678-0000")
		d := inspect(t, s).ID
		s.put("/sys/class/dmi/id/product_uuid", "Not Specified")
		h := inspect(t, s).ID
		if !strings.HasPrefix(d, "d-") || !strings.HasPrefix(h, "h-") {
			t.Errorf("machine-id %q: ids %s, %s", bad, d, h)
		}
		seen = append(seen, h)
	}
	s.put("/proc/sys/kernel/hostname", "other")
	seen = append(seen, inspect(t, s).ID)
	if seen[1] != seen[3] || seen[3] == seen[4] {
		t.Errorf("ids %v", seen)
	}
}

func TestVirtualization(t *testing.T) {
	const yes, no = "flags : fpu hypervisor", "flags : fpu"
	for _, c := range []struct {
		arch, flags string
		files       map[string]string
		want        string
	}{
		{"x86_64", no, nil, ""},
		{"x86_64", no, map[string]string{"/sys/class/dmi/id/sys_vendor": "Amazon EC2"}, ""}, // a bare-metal instance
		{"x86_64", yes, map[string]string{"/sys/class/dmi/id/sys_vendor": "Amazon EC2"}, "KVM (Amazon EC2)"},
		{"x86_64", yes, map[string]string{"/sys/class/dmi/id/sys_vendor": "VMware, Inc."}, "VMware"},
		{"x86_64", yes, map[string]string{"/sys/class/dmi/id/sys_vendor": "QEMU", "/sys/devices/system/clocksource/clocksource0/available_clocksource": "kvm-clock tsc"}, "KVM"},
		{"x86_64", yes, map[string]string{"/sys/class/dmi/id/sys_vendor": "QEMU", "/sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet"}, "QEMU without KVM, which may emulate the CPU"},
		{"x86_64", yes, map[string]string{"/sys/class/dmi/id/sys_vendor": "Microsoft Corporation"}, "Hyper-V"},
		{"x86_64", yes, nil, "unknown hypervisor"},
		{"x86_64", yes, map[string]string{"/sys/hypervisor/type": "xen"}, "Xen"},
		{"x86_64", no, map[string]string{"/sys/hypervisor/type": "xen", "/proc/xen/capabilities": "control_d"}, ""},
		{"aarch64", "", nil, ""},
		{"aarch64", "", map[string]string{"/sys/class/dmi/id/sys_vendor": "QEMU"}, "QEMU without KVM, which may emulate the CPU"},
		{"aarch64", "", map[string]string{"/sys/class/dmi/id/sys_vendor": "Amazon EC2", "/sys/class/dmi/id/product_name": "a1.metal"}, ""},
	} {
		s := machine(smt())
		s.put("/proc/sys/kernel/arch", c.arch)
		s.put("/proc/cpuinfo", c.flags)
		for name, text := range c.files {
			s.put(name, text)
		}
		if got := inspect(t, s).Virtualization; got != c.want {
			t.Errorf("%s, %s, %v: %q, want %q", c.arch, c.flags, c.files, got, c.want)
		}
	}
}

func TestVirtualizationByContainer(t *testing.T) {
	link := func(s system, to string) {
		s.FS.(fstest.MapFS)["proc/self/ns/pid"] = &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink}
	}
	s := machine(smt())
	s.put("/.dockerenv", "")
	link(s, initialPIDNamespace)
	if got := inspect(t, s).Virtualization; got != "" {
		t.Errorf("a whole machine whose root was made of a container image is %q", got)
	}
	link(s, "pid:[4026532198]")
	if got := inspect(t, s).Virtualization; got != "in a container (docker)" {
		t.Errorf("in Docker: %q", got)
	}
	s.put("/proc/1/environ", "A=b\x00container=lxc\x00")
	s.put("/proc/cpuinfo", "flags : hypervisor")
	s.put("/sys/class/dmi/id/product_name", "KVM")
	if got := inspect(t, s).Virtualization; got != "KVM, in a container (lxc)" {
		t.Errorf("in LXC in KVM: %q", got)
	}
}

func TestChooseCPUs(t *testing.T) {
	split := func() []at { // two sockets with two nodes of 2 cores each
		var where []at
		for id := range 8 {
			where = append(where, at{id / 4, id / 2, id % 4})
		}
		return where
	}
	for _, c := range []struct {
		name    string
		where   []at
		allowed string
		n       int
		want    string
	}{
		{"one of a big machine", bigInBlocks(), "0-111", 1, "111"},
		{"a node of a big machine", bigInBlocks(), "0-111", 28, "84-111"},
		{"part of a node numbered in turn", bigInTurn(), "0-111", 4, "99,103,107,111"},
		{"two nodes", bigInBlocks(), "0-111", 56, "56-111"},
		{"two nodes numbered in turn hold 32", bigInTurn(), "0-111", 32, "3,7,11,15,19,23,27,31,35,39,43,47,51,55,59,63,67,71,75,79,83,87,91,95,98-99,102-103,106-107,110-111"},
		{"all but the one that takes interrupts", bigInBlocks(), "0-111", 111, "1-111"},
		{"whole cores first", smt(), "0-15", 4, "12-15"},
		{"whole cores of both nodes before second threads", smt(), "0-15", 8, "8-15"},
		{"then second threads, but not of CPU 0's core", smt(), "0-15", 10, "6-15"},
		{"everything", smt(), "0-15", 16, "0-15"},
		{"the second thread of CPU 0's core comes last", smt(), "0-3,8-11", 3, "9-11"},
		{"a node with room, though its numbers are lower", smt(), "0-3,6-7", 4, "0-3"},
		{"one socket when no node has room", split(), "0-7", 4, "4-7"},
		{"one socket, though another has as much room", split(), "0-1,3-5,7", 3, "4-5,7"},
		{"the fullest node first when no socket has room", split(), "2-4,6", 3, "2-3,6"},
		{"not CPU 0's core, whatever its other thread is called", []at{{0, 0, 0}, {0, 0, 1}, {0, 0, 1}, {0, 0, 0}}, "0-3", 1, "2"},
		{"only what is allowed", smt(), "2,5", 2, "2,5"},
	} {
		h := inspect(t, machine(c.where))
		allowed, err := notebook.ParseCPUList(c.allowed)
		if err != nil {
			t.Fatal(err)
		}
		// The order of CPUs in a record has no effect.
		slices.Reverse(h.CPUs)
		got, err := chooseCPUs(h.CPUs, allowed, c.n)
		if err != nil || notebook.FormatCPUList(got) != c.want || !slices.IsSorted(got) {
			t.Errorf("%s: %d of %s: %v, %v, want %s", c.name, c.n, c.allowed, notebook.FormatCPUList(got), err, c.want)
		}
	}
}

func TestChooseCPUsThatDoNotFit(t *testing.T) {
	h := inspect(t, machine(smt()))
	for _, n := range []int{-1, 0, 3, 17} {
		if got, err := chooseCPUs(h.CPUs, []int{4, 5}, n); err == nil {
			t.Errorf("%d of 2: %v", n, got)
		}
	}
	if _, err := chooseCPUs(h.CPUs, []int{4, 5, 99}, 3); err == nil || !strings.Contains(err.Error(), "only 2") || !strings.Contains(err.Error(), "4-5") {
		t.Errorf("the error %v does not say how many there are, and which", err)
	}
}

func TestChooseCPUsOfThisMachine(t *testing.T) {
	h, err := Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := cgroup.LimitsOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	allowed, err := notebook.ParseCPUList(l.CPUs)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ChooseCPUs(h, len(allowed))
	if err != nil || !slices.Equal(got, allowed) {
		t.Errorf("ChooseCPUs = %v, %v, want %v", got, err, allowed)
	}
	if got, err := ChooseCPUs(h, len(allowed)+1); err == nil {
		t.Errorf("one more than there are: %v", got)
	}
}

func TestDescribe(t *testing.T) {
	for _, c := range []struct {
		s    system
		want []string
		not  []string
	}{
		{machine(bigInTurn()), []string{"112 CPUs in 112 cores and 4 sockets; no SMT", "NUMA node 3: CPUs 3,7,11", "377.9 GiB", "v2"}, []string{"guest", "identity"}},
		{machine(smt()), []string{"16 CPUs in 8 cores and 2 sockets; SMT", "NUMA node 1: CPUs 4-7,12-15"}, []string{"guest"}},
		{system{proctest.Recorded(t, "testdata/debian12-vm.txt").Tree}, []string{"2 CPUs in 2 cores and 1 socket", "itself a guest (KVM): bare metal means this VM without another layer"}, []string{"NUMA"}},
	} {
		var b strings.Builder
		if err := Describe(&b, inspect(t, c.s)); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("no %q in\n%s", want, b.String())
			}
		}
		for _, not := range c.not {
			if strings.Contains(b.String(), not) {
				t.Errorf("%q in\n%s", not, b.String())
			}
		}
	}
}

func FuzzCPUModel(f *testing.F) {
	f.Add("processor\t: 0\nmodel name\t: X\nflags\t\t: a b\n\nprocessor\t: 1\n")
	f.Add("processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n")
	f.Add(":\n:\n")
	f.Fuzz(func(t *testing.T, s string) {
		model, flags := cpuModel(s)
		if model == "" || slices.Contains(flags, "") {
			t.Errorf("%q: model %q, flags %q", s, model, flags)
		}
	})
}

func TestCPUModelOfArm(t *testing.T) {
	model, flags := cpuModel("processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n")
	if model != "implementer 0x41, part 0xd0c" || !slices.Equal(flags, []string{"fp", "asimd"}) {
		t.Errorf("%q %q", model, flags)
	}
}

// The files laid out must be ones that a file system can have.
func TestMachineIsAFileSystem(t *testing.T) {
	for name := range machine(smt()).FS.(fstest.MapFS) {
		if !fs.ValidPath(name) || path.Clean(name) != name {
			t.Errorf("%q", name)
		}
	}
}

func TestArchitectureIsTheKernels(t *testing.T) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	if got, want := (system{proc.Host}).arch(), unix.ByteSliceToString(u.Machine[:]); got != want {
		t.Errorf("arch %s, want %s", got, want)
	}
	// Without the kernel's word (before Linux 6.1) the program's own stands for it.
	if got := machine(nil); runtime.GOARCH == "amd64" {
		got.drop("/proc/sys/kernel/arch")
		if a := got.arch(); a != "x86_64" {
			t.Errorf("arch %s", a)
		}
	}
}
