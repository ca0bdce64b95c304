package apply

import (
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"

	"tare/notebook"
)

// Disk is the placeholder for a VM's disk.
const Disk = "/REPLACE/WITH/YOUR/DISK.img"

// libvirt writes a domain: the machine that Tare makes, without what only Tare needs in it.
func libvirt(s *setting) (string, error) {
	type (
		memory struct {
			Unit string `xml:"unit,attr"`
			Size string `xml:",chardata"`
		}
		vcpu struct {
			Placement string `xml:"placement,attr"`
			Count     int    `xml:",chardata"`
		}
		pin struct {
			VCPU   int    `xml:"vcpu,attr"`
			CPUSet string `xml:"cpuset,attr"`
		}
		set struct {
			CPUSet string `xml:"cpuset,attr"`
		}
		tune struct {
			Pins     []pin `xml:"vcpupin"`
			Emulator set   `xml:"emulatorpin"`
			IO       struct {
				Thread int    `xml:"iothread,attr"`
				CPUSet string `xml:"cpuset,attr"`
			} `xml:"iothreadpin"`
		}
		machine struct {
			Machine string `xml:"machine,attr"`
			Type    string `xml:",chardata"`
		}
		topology struct {
			Sockets int `xml:"sockets,attr"`
			Cores   int `xml:"cores,attr"`
			Threads int `xml:"threads,attr"`
		}
		cpu struct {
			Mode     string   `xml:"mode,attr"`
			Topology topology `xml:"topology"`
		}
		driver struct {
			Name   string `xml:"name,attr"`
			Type   string `xml:"type,attr"`
			Thread int    `xml:"iothread,attr"`
		}
		file struct {
			File string `xml:"file,attr"`
		}
		target struct {
			Dev string `xml:"dev,attr"`
			Bus string `xml:"bus,attr"`
		}
		disk struct {
			Type   string `xml:"type,attr"`
			Device string `xml:"device,attr"`
			Driver driver `xml:"driver"`
			Source file   `xml:"source"`
			Target target `xml:"target"`
		}
		network struct {
			Network string `xml:"network,attr"`
		}
		model struct {
			Type string `xml:"type,attr"`
		}
		nic struct {
			Type   string  `xml:"type,attr"`
			Source network `xml:"source"`
			Model  model   `xml:"model"`
		}
		console struct {
			Type string `xml:"type,attr"`
		}
		domain struct {
			XMLName  xml.Name `xml:"domain"`
			Type     string   `xml:"type,attr"`
			Name     string   `xml:"name"`
			Says     string   `xml:"description,omitempty"`
			Memory   memory   `xml:"memory"`
			VCPU     vcpu     `xml:"vcpu"`
			Threads  int      `xml:"iothreads"`
			Tune     *tune    `xml:"cputune"`
			OS       machine  `xml:"os>type"`
			ACPI     struct{} `xml:"features>acpi"`
			CPU      cpu      `xml:"cpu"`
			Disk     disk     `xml:"devices>disk"`
			NIC      *nic     `xml:"devices>interface"`
			Terminal console  `xml:"devices>console"`
		}
	)
	n := int(s.t.Instance.Cores)
	m := s.t.Instance.Memory
	if m <= 0 {
		return "", fmt.Errorf("the study records no memory for the VM: name a treatment that has one with --pick")
	}
	d := domain{
		Type: "kvm", Name: s.name, VCPU: vcpu{"static", n}, Threads: 1, OS: machine{"q35", "hvm"},
		CPU:      cpu{"host-passthrough", topology{1, n, 1}},
		Disk:     disk{"file", "disk", driver{"qemu", "raw", 1}, file{Disk}, target{"vda", "virtio"}},
		Terminal: console{"pty"},
	}
	d.Memory = memory{"bytes", strconv.FormatInt(m, 10)}
	if m%1024 == 0 {
		d.Memory = memory{"KiB", strconv.FormatInt(m/1024, 10)}
	}
	if s.t.Network != notebook.NetNone {
		d.NIC = &nic{"network", network{"default"}, model{"virtio"}}
	}
	if s.cpus != nil {
		d.Tune = &tune{}
		for i := range n {
			d.Tune.Pins = append(d.Tune.Pins, pin{i, strconv.Itoa(s.cpus[i])})
		}
		// What is no vCPU runs beside them where the host has other CPUs: so it was measured.
		rest := s.others
		if len(rest) == 0 {
			rest = s.cpus
		}
		d.Tune.Emulator.CPUSet = notebook.FormatCPUList(rest)
		d.Tune.IO.Thread, d.Tune.IO.CPUSet = 1, d.Tune.Emulator.CPUSet
	}
	s.comments = append(s.comments, Disk+" is a placeholder: write your disk there.")
	if s.t.Platform == notebook.VMCN {
		in := *s
		in.t.Instance.Memory = 0 // what the VM's kernel leaves
		in.cpus = nil
		if s.t.Provisioning == notebook.Pinned {
			for i := range n {
				in.cpus = append(in.cpus, i)
			}
		}
		if in.t.Network == notebook.NetBridge {
			in.t.Network = ""
		}
		flags := append(dockerFlags(&in), "--shm-size="+dockerSize(shm(m)))
		d.Says = "The container in the VM has all of the VM's CPUs: docker run " + strings.Join(flags, " ") + " " + s.image
	}
	text, err := xml.MarshalIndent(d, "", "  ")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, c := range s.comments {
		// Two hyphens would end the comment, and one at its end too.
		for strings.Contains(c, "--") {
			c = strings.ReplaceAll(c, "--", "- -")
		}
		fmt.Fprintf(&b, "<!-- %s -->\n", c)
	}
	return b.String() + string(text) + "\n", nil
}

// systemd writes a unit: bare metal's CPUs, or a container's limits on a service.
func systemd(s *setting) (string, error) {
	var b strings.Builder
	line := func(f string, args ...any) { fmt.Fprintf(&b, f+"\n", args...) }
	s.comments = append(s.comments, "Write your command in ExecStart, or put the lines below it into your service: systemctl edit NAME.service")
	if s.t.Platform == notebook.CN {
		s.comments = append(s.comments, "A service has a container's limits, not its namespaces: what was measured had both.")
	}
	line("[Unit]")
	line("Description=%s with the limits that Tare advises", s.name)
	line("")
	line("[Service]")
	line(`ExecStart=/bin/sh -c 'echo "write your command in ExecStart" >&2; exit 1'`)
	switch {
	case s.t.Platform == notebook.BM:
		line("CPUAffinity=%s", notebook.FormatCPUList(s.cpus))
	case s.cpus != nil:
		line("AllowedCPUs=%s", notebook.FormatCPUList(s.cpus))
		s.comments = append(s.comments, "AllowedCPUs needs a host with cgroup v2; on another use CPUAffinity.")
	default:
		line("CPUQuota=%s%%", strconv.FormatFloat(math.Round(s.t.Instance.Cores*1e4)/1e2, 'f', -1, 64))
	}
	if m := s.t.Instance.Memory; m > 0 && s.t.Platform == notebook.CN {
		line("MemoryMax=%s", size(m, "K", "M", "G"))
		line("MemorySwapMax=0")
	}
	if s.t.Network == notebook.NetNone && s.t.Platform == notebook.CN {
		line("PrivateNetwork=yes")
	}
	return s.commented(b.String()), nil
}
