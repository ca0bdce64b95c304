package notebook

import (
	"strings"
	"testing"
)

// A machine is written in the words that differ from the usual one's, and read back.
func TestParseMachine(t *testing.T) {
	with := func(change func(*Machine)) Machine {
		m := UsualMachine
		change(&m)
		return m
	}
	for text, want := range map[string]Machine{
		"":                            UsualMachine,
		"usual":                       UsualMachine,
		"cache=writeback aio=threads": UsualMachine,
		"sockets=1 nodes=1":           UsualMachine,
		"cache=none":                  with(func(m *Machine) { m.Disk.Cache = CacheNone }),
		"aio=native cache=none":       with(func(m *Machine) { m.Disk.Cache, m.Disk.AIO = CacheNone, AIONative }),
		"aio=io_uring":                with(func(m *Machine) { m.Disk.AIO = AIOURing }),
		"no-iothread  cache=none":     with(func(m *Machine) { m.Disk.Cache, m.Disk.IOThread = CacheNone, false }),
		"huge-pages=2M":               with(func(m *Machine) { m.HugePages = 2 << 20 }),
		"huge-pages=1G threads=2":     with(func(m *Machine) { m.HugePages, m.Threads = 1<<30, 2 }),
		"cpu=host":                    UsualMachine,
		"cpu=qemu64 cache=none":       with(func(m *Machine) { m.CPU, m.Disk.Cache = "qemu64", CacheNone }),
		"cpu=Skylake-Server-v5":       with(func(m *Machine) { m.CPU = "Skylake-Server-v5" }),
		"no-vhost":                    with(func(m *Machine) { m.NoVhost = true }),
		"confined":                    with(func(m *Machine) { m.Confined = true }),
		"boot=disk":                   with(func(m *Machine) { m.BootDisk = true }),
		"ram=file nodes=2 sockets=2":  with(func(m *Machine) { m.RAMFile, m.Nodes, m.Sockets = true, 2, 2 }),
		"no-thp no-kaslr":             with(func(m *Machine) { m.NoKASLR, m.NoTHP = true, true }),
		"devices=virt-manager":        with(func(m *Machine) { m.Devices = "qxl,spice,ich6,usb,balloon" }),
		"devices=usb,vnc,cirrus":      with(func(m *Machine) { m.Devices = "cirrus,vnc,usb" }),
		"devices=ich9 no-vhost":       with(func(m *Machine) { m.Devices, m.NoVhost = "ich9", true }),
		"nodes=2 sockets=4":           with(func(m *Machine) { m.Nodes, m.Sockets = 2, 4 }),
	} {
		m, err := ParseMachine(text)
		if err != nil || m != want {
			t.Errorf("%q: %+v, %v; want %+v", text, m, err, want)
		}
		if again, err := ParseMachine(m.Text()); err != nil || again != m {
			t.Errorf("%q, written as %q: %+v, %v", text, m.Text(), again, err)
		}
	}
	if text := UsualMachine.Text(); text != "" {
		t.Errorf("the usual machine is written %q, want nothing", text)
	}
	for text, want := range map[string]string{
		"aio=native":                 "it needs cache=none or cache=directsync",
		"cache=unsafe":               "cache=unsafe: must be one of writeback, none, directsync",
		"cache=none cache=writeback": "cache is given twice",
		"none":                       `unknown word "none"`,
		"threads=2 usual":            `unknown word "usual"`,
		"no-iothread=1":              "takes no value; write no-iothread",
		"ram=disk":                   "ram=disk: must be file",
		"ram=file huge-pages=2M":     "exclude each other",
		"huge-pages":                 "huge-pages=: must be a page size, 2M or 1G",
		"huge-pages=4K":              "2M or 1G",
		"devices=":                   "devices=: must be virt-manager, or a comma-separated list of qxl, cirrus, spice, vnc, ich6, ich9, usb, balloon, reporting, each at most once",
		"devices=qxl,floppy":         "devices=qxl,floppy: must be virt-manager, or a comma-separated list",
		"devices=usb,usb":            "each at most once",
		"devices=balloon,reporting":  "two devices for balloon; only one is allowed",
		"devices=qxl,cirrus":         "devices=qxl,cirrus: two devices for video; only one is allowed",
		"boot=net":                   "boot=net: must be disk",
		"cpu=":                       "cpu=: must be host, or a CPU model of qemu-system-x86_64 -cpu help",
		"cpu=max":                    "cpu=max: must be host, or a CPU model",
		"cpu=qemu64,+avx2":           "cpu=qemu64,+avx2: must be host, or a CPU model",
		"sockets=0":                  "sockets=0: must be a number from 1 to 1024",
		"threads=two":                "threads=two: must be a number",
		"nodes=2":                    "a NUMA node consists of whole sockets; nodes=2 needs sockets=2 or a multiple of it",
	} {
		if m, err := ParseMachine(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %+v, %v; want one line with %q", text, m, err, want)
		}
	}
}

// Every kind of device is found in the list that has it, and no other.
func TestDeviceKinds(t *testing.T) {
	for list, want := range map[string]string{"": "", "balloon": Balloon, "cirrus,vnc,ich9": "video graphics audio", deviceSets[VirtManager]: "video graphics audio USB balloon"} {
		if got := strings.Join(DeviceKinds(list), " "); got != want {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
}

// A machine that cannot be shared out evenly fits no size.
func TestMachineFits(t *testing.T) {
	for _, c := range []struct {
		text   string
		cpus   int
		memory int64
		want   string
		cores  int
	}{
		{"", 3, 1<<30 + 1<<20, "", 3},
		{"threads=2", 2, 1 << 30, "", 1},
		{"sockets=2 threads=2", 8, 1 << 30, "", 2},
		{"threads=2", 3, 1 << 30, "a multiple of 2 is needed", 0},
		{"sockets=2 threads=2", 2, 1 << 30, "2 virtual CPUs cannot be shared out to 2 sockets with cores of 2 threads: a multiple of 4 is needed", 0},
		{"huge-pages=2M", 1, 1<<30 + 1<<20, "1025 MiB of memory cannot be shared out: a multiple of 2 MiB is needed", 0},
		{"huge-pages=2M sockets=2 nodes=2", 2, 1 << 30, "", 1},
		{"sockets=2 nodes=2", 2, 1<<30 + 1<<20, "a multiple of 2 MiB", 0},
	} {
		m, err := ParseMachine(c.text)
		if err != nil {
			t.Fatal(err)
		}
		err = m.Fits(c.cpus, c.memory)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q with %d virtual CPUs and %d bytes: %v, want %q", c.text, c.cpus, c.memory, err, c.want)
		}
		if err == nil && m.Cores(c.cpus) != c.cores {
			t.Errorf("%q with %d virtual CPUs: %d cores a socket, want %d", c.text, c.cpus, m.Cores(c.cpus), c.cores)
		}
	}
}
