package notebook

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MicroVM is the engine with QEMU's minimal machine type, microvm. Management software for VMs, such as libvirt, has no such machine.
const MicroVM = "microvm"

// Machine is the configuration of a virtual machine, except for its size.
type Machine struct {
	Disk      Disk   `json:"disk"`
	HugePages int64  `json:"huge_pages,omitempty"` // size of the host's huge pages that back its memory, in bytes; 0: ordinary pages, which the host may turn into transparent huge pages
	Sockets   int    `json:"sockets"`              // sockets that the guest sees; they share its CPUs evenly
	Threads   int    `json:"threads"`              // threads per core that the guest sees
	Nodes     int    `json:"nodes"`                // NUMA nodes that the guest sees; each has whole sockets and the same amount of memory
	CPU       string `json:"cpu,omitempty"`        // CPU model that the guest sees, by QEMU's name; "": the host's CPU, or under emulation all that QEMU emulates
	NoVhost   bool   `json:"no_vhost,omitempty"`   // QEMU carries the packets of its tap, even if the host's kernel could carry them (vhost)
	Confined  bool   `json:"confined,omitempty"`   // QEMU's other threads share the CPUs of a pinned VM's virtual CPUs
	BootDisk  bool   `json:"boot_disk,omitempty"`  // it boots from its disk, by a BIOS and GRUB; otherwise QEMU gives it the kernel
	RAMFile   bool   `json:"ram_file,omitempty"`   // its memory is a file on the host, from which a restored VM reads a page when it needs it; otherwise all is read first
	NoKASLR   bool   `json:"no_kaslr,omitempty"`   // the guest's kernel does not choose its address at random
	NoTHP     bool   `json:"no_thp,omitempty"`     // the guest's kernel makes no transparent huge pages

	// Devices lists the devices that no workload needs, separated by commas, in the order of Devices; "": none.
	Devices string `json:"devices,omitempty"`
}

// Disk is how the disk of a virtual machine, on which its root is, lies on the host.
type Disk struct {
	Format   string `json:"format"`    // of the guest's own file: "qcow2"
	Cache    string `json:"cache"`     // one of the cache modes
	AIO      string `json:"aio"`       // how QEMU reads and writes: AIOThreads, …
	IOThread bool   `json:"io_thread"` // requests are handled by a thread of their own
}

// The cache modes, by the names that QEMU and libvirt have for them. In all of them what the guest has flushed is on the host's disk;
// in directsync so is all that it has written.
const (
	CacheWriteback  = "writeback"  // through the host's page cache
	CacheNone       = "none"       // past it
	CacheDirectSync = "directsync" // past it, and flushed with every write
)

// The AIO engines.
const (
	AIOThreads = "threads"
	AIONative  = "native"
	AIOURing   = "io_uring"
)

var (
	cacheModes = []string{CacheWriteback, CacheNone, CacheDirectSync}
	aioEngines = []string{AIOThreads, AIONative, AIOURing}
)

// UsualMachine is the machine that is made where nothing else is asked for, and that advice asks for: QEMU's own defaults and
// libvirt's, and an I/O thread.
var UsualMachine = Machine{
	Disk:    Disk{Format: "qcow2", Cache: CacheWriteback, AIO: AIOThreads, IOThread: true},
	Sockets: 1, Threads: 1, Nodes: 1,
}

// Direct says whether the disk is read and written past the host's page cache (O_DIRECT).
func (d Disk) Direct() bool { return d.Cache != CacheWriteback }

// WriteCache says whether the guest's disk has a cache of its own, which the guest then flushes.
func (d Disk) WriteCache() bool { return d.Cache != CacheDirectSync }

// CacheMode is the cache mode with these two.
func CacheMode(writeCache, direct bool) string {
	for _, c := range cacheModes {
		if d := (Disk{Cache: c}); d.WriteCache() == writeCache && d.Direct() == direct {
			return c
		}
	}
	return "writethrough" // which nobody can ask for
}

// The words that take no value: for a disk without an I/O thread, a tap without vhost, QEMU's threads on the guest's CPUs, and a guest's
// kernel without KASLR or transparent huge pages.
const (
	noIOThread = "no-iothread"
	noVhost    = "no-vhost"
	confined   = "confined"
	noKASLR    = "no-kaslr"
	noTHP      = "no-thp"
)

// UsualWord is the word for UsualMachine.
const UsualWord = "usual"

// HostCPU is the word for the CPU of UsualMachine.
const HostCPU = "host"

// cpuModel is the form of QEMU's names of CPU models, such as qemu64, Skylake-Server-v5 and EPYC-Milan.
var cpuModel = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$`)

// parseCPU returns the CPU model that a word names; "" is the host's CPU.
func parseCPU(word string) (string, error) {
	switch {
	case word == HostCPU:
		return "", nil
	case word == "max" || !cpuModel.MatchString(word): // max is the host's CPU under KVM, and depends on QEMU's version
		return "", fmt.Errorf("must be %s, or a CPU model of qemu-system-x86_64 -cpu help, such as qemu64 or Skylake-Server", HostCPU)
	}
	return word, nil
}

// mostParts bounds the sockets, threads and nodes that can be asked for.
const mostParts = 1024

// ParseMachine reads what Text writes: what differs from UsualMachine, as words. "usual" is that machine.
func ParseMachine(text string) (Machine, error) {
	m := UsualMachine
	if text == "" || text == UsualWord {
		return m, nil
	}
	var seen []string
	for _, w := range strings.Fields(text) {
		key, value, _ := strings.Cut(w, "=")
		var wrong error
		number := func(n *int) {
			var err error
			if *n, err = strconv.Atoi(value); err != nil || *n < 1 || *n > mostParts {
				wrong = fmt.Errorf("must be a number from 1 to %d", mostParts)
			}
		}
		among := func(s *string, all []string) {
			if *s = value; !slices.Contains(all, value) {
				wrong = fmt.Errorf("must be one of %s", strings.Join(all, ", "))
			}
		}
		word := func(b *bool, is bool) {
			if *b = is; w != key {
				wrong = fmt.Errorf("takes no value; write %s", key)
			}
		}
		switch key {
		case "cache":
			among(&m.Disk.Cache, cacheModes)
		case "aio":
			among(&m.Disk.AIO, aioEngines)
		case noIOThread:
			word(&m.Disk.IOThread, false)
		case noVhost:
			word(&m.NoVhost, true)
		case confined:
			word(&m.Confined, true)
		case noKASLR:
			word(&m.NoKASLR, true)
		case noTHP:
			word(&m.NoTHP, true)
		case "huge-pages":
			if m.HugePages = pageSizes[value]; m.HugePages == 0 {
				wrong = errors.New("must be a page size, 2M or 1G")
			}
		case "boot":
			if m.BootDisk = value == "disk"; !m.BootDisk {
				wrong = errors.New("must be disk; without this word QEMU gives the guest its kernel")
			}
		case "ram":
			if m.RAMFile = value == "file"; !m.RAMFile {
				wrong = errors.New("must be file; without this word the memory is in no file")
			}
		case "devices":
			m.Devices, wrong = parseDevices(value)
		case "cpu":
			m.CPU, wrong = parseCPU(value)
		case "sockets":
			number(&m.Sockets)
		case "threads":
			number(&m.Threads)
		case "nodes":
			number(&m.Nodes)
		default:
			return Machine{}, fmt.Errorf("machine %q: unknown word %q; use usual, or words from cache=, aio=, %s, cpu=, huge-pages=, sockets=, threads=, nodes=, devices=, boot=, ram=, %s, %s, %s and %s", text, w, noIOThread, noVhost, confined, noKASLR, noTHP)
		}
		switch {
		case wrong != nil:
			return Machine{}, fmt.Errorf("machine %q: %s=%s: %w", text, key, value, wrong)
		case slices.Contains(seen, key):
			return Machine{}, fmt.Errorf("machine %q: %s is given twice; give it once", text, key)
		}
		seen = append(seen, key)
	}
	switch d := m.Disk; {
	case d.AIO == AIONative && !d.Direct():
		return Machine{}, fmt.Errorf("machine %q: aio=native bypasses the page cache; it needs cache=none or cache=directsync", text)
	case m.RAMFile && m.HugePages > 0:
		return Machine{}, fmt.Errorf("machine %q: ram=file and huge-pages= exclude each other; name one of them", text)
	case m.Sockets%m.Nodes != 0:
		return Machine{}, fmt.Errorf("machine %q: a NUMA node consists of whole sockets; nodes=%[2]d needs sockets=%[2]d or a multiple of it", text, m.Nodes)
	}
	return m, nil
}

// pageSizes are the sizes of huge pages, in bytes.
var pageSizes = map[string]int64{"2M": 2 << 20, "1G": 1 << 30}

// Text is the machine in words that ParseMachine reads; "" for UsualMachine.
func (m Machine) Text() string {
	var words []string
	add := func(differs bool, format string, args ...any) {
		if differs {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	u := UsualMachine
	add(m.Disk.Cache != u.Disk.Cache, "cache=%s", m.Disk.Cache)
	add(m.Disk.AIO != u.Disk.AIO, "aio=%s", m.Disk.AIO)
	add(!m.Disk.IOThread, noIOThread)
	add(m.CPU != u.CPU, "cpu=%s", m.CPU)
	for text, size := range pageSizes {
		add(m.HugePages == size, "huge-pages=%s", text)
	}
	add(m.Sockets != u.Sockets, "sockets=%d", m.Sockets)
	add(m.Threads != u.Threads, "threads=%d", m.Threads)
	add(m.Nodes != u.Nodes, "nodes=%d", m.Nodes)
	add(m.NoVhost, noVhost)
	add(m.Confined, confined)
	add(m.BootDisk, "boot=disk")
	add(m.RAMFile, "ram=file")
	add(m.NoKASLR, noKASLR)
	add(m.NoTHP, noTHP)
	switch m.Devices {
	case "":
	case deviceSets[VirtManager]:
		words = append(words, "devices="+VirtManager)
	default:
		words = append(words, "devices="+m.Devices)
	}
	return strings.Join(words, " ")
}

// The words on the command line of a Linux kernel for NoKASLR and NoTHP.
const (
	kernelNoKASLR = "nokaslr"
	kernelNoTHP   = "transparent_hugepage=never"
)

// ReadKernel sets NoKASLR and NoTHP by the command line of the guest's kernel.
func (m *Machine) ReadKernel(line string) {
	words := strings.Fields(line)
	m.NoKASLR, m.NoTHP = slices.Contains(words, kernelNoKASLR), slices.Contains(words, kernelNoTHP)
}

// KernelWords are the words on the command line of the guest's kernel that make it what the machine's NoKASLR and NoTHP say.
func (m Machine) KernelWords() (words []string) {
	if m.NoKASLR {
		words = append(words, kernelNoKASLR)
	}
	if m.NoTHP {
		words = append(words, kernelNoTHP)
	}
	return words
}

// Fits says why the machine cannot have so many virtual CPUs and bytes of memory; nil: it can.
func (m Machine) Fits(cpus int, memory int64) error {
	if each := m.Sockets * m.Threads; cpus%each != 0 {
		return fmt.Errorf("%d virtual CPUs cannot be shared out to %d sockets with cores of %d threads: a multiple of %d is needed", cpus, m.Sockets, m.Threads, each)
	}
	if part := max(m.HugePages, 1<<20) * int64(m.Nodes); memory%part != 0 {
		return fmt.Errorf("%d MiB of memory cannot be shared out: a multiple of %d MiB is needed", memory>>20, part>>20)
	}
	return nil
}

// Cores are those of each socket, of a machine with so many virtual CPUs that it fits.
func (m Machine) Cores(cpus int) int { return cpus / (m.Sockets * m.Threads) }
