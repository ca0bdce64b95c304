package words

import (
	"fmt"
	"strings"

	"tare/desk/data"
	"tare/notebook"
)

// Machine says how a VM is made; a zero one is of a folder from before that was recorded.
func Machine(m notebook.Machine) string {
	d := m.Disk
	if d == (notebook.Disk{}) {
		return "not recorded: the version of Tare that made this folder ran VMs that ignored flushes, so their writes cost too little"
	}
	thread := "no I/O thread"
	if d.IOThread {
		thread = "an I/O thread"
	}
	pages := "ordinary pages"
	if m.HugePages > 0 {
		pages = fmt.Sprintf("huge pages of %d MiB", m.HugePages>>20)
	}
	vhost := ""
	if m.NoVhost {
		vhost = "; QEMU carries the packets of its tap"
	}
	kernel := ""
	if m.Confined {
		kernel = "; QEMU's other threads on the CPUs of its virtual CPUs"
	}
	if m.BootDisk {
		kernel += "; booted from its disk"
	}
	if m.RAMFile {
		kernel += "; its memory in a file, which a restored VM reads page by page"
	}
	if words := m.KernelWords(); len(words) > 0 {
		kernel += "; the guest's kernel with " + strings.Join(words, " ")
	}
	devices := ""
	if m.Devices != "" {
		devices = "; devices " + strings.ReplaceAll(m.Devices, ",", ", ")
	}
	cpu := ""
	if m.CPU != "" {
		cpu = "; CPU model " + m.CPU
	}
	return fmt.Sprintf("disk %s, cache mode %s, AIO engine %s, %s; memory of %s; %s, %s a core, %s", d.Format, d.Cache, d.AIO, thread,
		pages, Count(m.Sockets, "socket"), Count(m.Threads, "thread"), Count(m.Nodes, "NUMA node")) + cpu + vhost + kernel + devices
}

// Machines compares each VM with an unusual machine with the same VM with the usual machine.
func Machines(s *data.Summary) (all []string) {
	for _, r := range s.Rows {
		q, ok := s.OfUsual(r)
		if !ok {
			continue
		}
		text := "no common round"
		switch {
		case q.HasInterval():
			text = Times(q, "the usual machine")
		case q.N > 0:
			text = fmt.Sprintf("%.2f times the usual machine, too few rounds for an interval", q.Value)
		}
		if s.Within(r, q) {
			text += ", within the A/A noise"
		}
		all = append(all, Work(r.Treatment)+", "+Label(s, r)+": "+text)
	}
	return all
}
