//go:build linux

package qemu

import (
	"fmt"
	"slices"

	"tare/notebook"
)

// board is a QEMU machine type.
type board struct {
	name    string // QEMU's name for it
	options string // further options of -machine
	bus     string // suffix of the names of virtio devices
	noROM   string // option that gives a network card no boot ROM
	module  string // the guest's kernel module for the bus
	minimal bool   // no PCI bus, no NUMA nodes, no I/O threads for disks
}

// q35 is what users of VMs have. It omits what a default machine has and no guest uses (VGA, floppy, CD-ROM, …).
var q35 = board{name: "q35", options: ",usb=off,vmport=off", bus: "pci", noROM: ",romfile=", module: "virtio_pci"}

// microvm is QEMU's minimal machine type: no PCI, virtio devices at fixed addresses, and no firmware beyond what starts a kernel (QEMU's
// documentation, "microvm virtual platform", which names Firecracker's machine as its model).
var microvm = board{name: microName, bus: "device", module: "virtio_mmio", minimal: true}

// boards are the types of machines by the name of their engine.
var boards = map[string]board{usualName: q35, microName: microvm}

// machine is the value of QEMU's -machine.
func (b board) machine(accelerator string) string {
	if b.minimal && accelerator == notebook.KVMEmulated {
		return b.name + b.options + ",acpi=off" // the kernel's command line then names the devices, see guestinit.NoACPI
	}
	return b.name + b.options
}

// device is QEMU's name of a virtio device on the board.
func (b board) device(name string) string { return name + "-" + b.bus }

// cmdline is added to the command line of the guest's kernel.
//
// In a microVM the kernel can calibrate the time-stamp counter (TSC) only against the PIT. On a busy host, emulation is too uneven for
// that: the kernel hangs (three of eight boots) or falls back to a clock of 4 ms. So Tare passes the TSC's frequency, and marks the TSC as
// reliable.
func (b board) cmdline(accelerator string) string {
	if b.minimal && accelerator == notebook.TCG {
		return fmt.Sprintf("tsc_early_khz=%d tsc=reliable ", tscKHz())
	}
	return ""
}

// firmware returns the arguments for a firmware other than QEMU's default.
func (b board) firmware(accelerator string) []string {
	if b.minimal || accelerator == notebook.KVMEmulated {
		return []string{"-bios", "qboot.rom"} // QEMU's smallest firmware, which only starts the kernel
	}
	return nil
}

// made returns the machine as the board can build it.
func (b board) made(m notebook.Machine) notebook.Machine {
	m.Disk.IOThread = m.Disk.IOThread && !b.minimal
	return m
}

// lacks says which part of a machine the board cannot have, and why; empty: it can have all of them.
func (b board) lacks(m notebook.Machine) (part, why string) {
	switch {
	case b.minimal && m.Devices != "":
		return "devices=" + m.Devices, "QEMU's machine " + b.name + " has no PCI bus for them: use engine qemu"
	case b.minimal && m.BootDisk:
		return "boot=disk", "the firmware of QEMU's machine " + b.name + " boots from no disk: use engine qemu"
	case b.minimal && m.Nodes > 1:
		return "several NUMA nodes", "QEMU's machine " + b.name + " has only one: use engine qemu"
	}
	return "", ""
}

// modules are the kernel modules that every guest on the board needs.
func (b board) modules() []string { return slices.Concat([]string{b.module}, guestModules) }
