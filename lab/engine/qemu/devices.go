//go:build linux

package qemu

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"tare/notebook"
)

// pciID is how a device identifies itself on the bus.
type pciID struct {
	Vendor int `json:"vendor"`
	Device int `json:"device"`
}

// deviceIDs are the devices of notebook.Devices that are on the bus, by their words. For the USB controllers it is the main one.
var deviceIDs = map[string]pciID{
	"qxl": {0x1b36, 0x0100}, "cirrus": {0x1013, 0x00b8},
	"ich6": {0x8086, 0x2668}, "ich9": {0x8086, 0x293e},
	"usb":     {0x8086, 0x293a},
	"balloon": {0x1af4, 0x1002}, notebook.Reporting: {0x1af4, 0x1002},
}

// screenName is the socket in the guest's folder at which a server shows its screen. It has no password, because only root can
// enter the folder and no network leads there.
const screenName = "screen"

// deviceArgs are the devices that no workload needs, as libvirt sets them up for virt-manager. screen is the path of the screen's
// socket.
func deviceArgs(list, screen string) (args []string) {
	has := func(word string) bool { return slices.Contains(strings.Split(list, ","), word) }
	screen = strings.ReplaceAll(screen, ",", ",,")
	sound := "none"
	if has("spice") {
		args = append(args, "-spice", "unix=on,addr="+screen+",disable-ticketing=on,image-compression=off,seamless-migration=on",
			// The guest's agent for the clipboard and the size of the screen.
			"-chardev", "spicevmc,id=agent,name=vdagent", "-device", "virtserialport,chardev=agent,name=com.redhat.spice.0")
		sound = "spice"
	}
	if has("vnc") {
		args = append(args, "-vnc", "unix:"+screen)
	}
	if has("qxl") {
		args = append(args, "-device", "qxl-vga,ram_size=67108864,vram_size=67108864,vgamem_mb=16")
	}
	if has("cirrus") {
		args = append(args, "-device", "cirrus-vga")
	}
	for word, device := range map[string]string{"ich6": "intel-hda", "ich9": "ich9-intel-hda"} {
		if has(word) {
			args = append(args, "-audiodev", sound+",id=sound", "-device", device, "-device", "hda-duplex,audiodev=sound")
		}
	}
	if has("usb") {
		// A controller for fast devices and, on the same slot, its companions for slow ones.
		args = append(args, "-device", "ich9-usb-ehci1,id=usb,addr=1d.7",
			"-device", "ich9-usb-uhci1,masterbus=usb.0,firstport=0,multifunction=on,addr=1d.0",
			"-device", "ich9-usb-uhci2,masterbus=usb.0,firstport=2,addr=1d.1",
			"-device", "ich9-usb-uhci3,masterbus=usb.0,firstport=4,addr=1d.2",
			"-device", "usb-tablet,bus=usb.0")
		if has("spice") {
			for _, id := range []string{"redirected1", "redirected2"} {
				args = append(args, "-chardev", "spicevmc,name=usbredir,id="+id, "-device", "usb-redir,bus=usb.0,chardev="+id)
			}
		}
	}
	if has("balloon") {
		args = append(args, "-device", "virtio-balloon-pci")
	}
	if has(notebook.Reporting) {
		args = append(args, "-device", "virtio-balloon-pci,id="+notebook.Reporting+",free-page-reporting=on")
	}
	return args
}

// devices returns those of notebook.Devices that the machine has, by QEMU's own account.
func (m *machine) devices(ctx context.Context) (string, error) {
	var buses []struct {
		Devices []struct {
			ID pciID `json:"id"`
		} `json:"devices"`
	}
	type server struct {
		Enabled bool `json:"enabled"`
	}
	var spice, vnc server
	err := m.qmp.run(ctx, "query-pci", &buses)
	for word, s := range map[string]*server{"spice": &spice, "vnc": &vnc} {
		// A QEMU that was built without the device does not know the query.
		if e := m.qmp.run(ctx, "query-"+word, s); e != nil && !strings.Contains(e.Error(), "CommandNotFound") {
			err = errors.Join(err, e)
		}
	}
	reporting, rerr := m.reporting(ctx)
	err = errors.Join(err, rerr)
	var list []string
	for _, d := range notebook.Devices {
		if d.Kind == notebook.Balloon && (d.Word == notebook.Reporting) != reporting {
			continue
		}
		there := d.Word == "spice" && spice.Enabled || d.Word == "vnc" && vnc.Enabled
		for _, b := range buses {
			for _, is := range b.Devices {
				there = there || is.ID == deviceIDs[d.Word]
			}
		}
		if there {
			list = append(list, d.Word)
		}
	}
	return strings.Join(list, ","), err
}

// reporting says whether QEMU takes the guest's reports of free pages.
func (m *machine) reporting(ctx context.Context) (on bool, err error) {
	err = m.qmp.with(ctx, "qom-get", map[string]string{"path": "/machine/peripheral/" + notebook.Reporting, "property": "free-page-reporting"}, &on)
	if err != nil && strings.Contains(err.Error(), "DeviceNotFound") {
		return false, nil
	}
	return on, err
}

// tryParts says why the host's QEMU lacks the machine's devices or its CPU model; nil if it has them. It makes a machine with them, and
// ends it before it runs.
func (d *Driver) tryParts(ctx context.Context, t notebook.Treatment, m notebook.Machine) (err error) {
	if m.Devices == "" && m.CPU == "" && d.board == q35 {
		return nil
	}
	kernel, initrd, err := d.boot(ctx, inGuest{})
	if err != nil {
		return err
	}
	folder, err := d.tryFolder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	accelerator := t.Accelerator
	if accelerator == "" {
		accelerator = notebook.TCG // every QEMU has it
	}
	vm := d.board.made(notebook.UsualMachine)
	vm.Devices, vm.CPU = m.Devices, m.CPU
	ctx, cancel := context.WithTimeout(ctx, limitsWait)
	defer cancel()
	tried, err := startMachine(ctx, hardware{
		board: d.board, accelerator: accelerator, cpus: 1, memory: minMemory, kernel: kernel.Image, initramfs: initrd, name: "tried",
		machine: vm, network: notebook.NetNone, folder: folder,
	})
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		return d.lacks(m, strings.Join(strings.Fields(err.Error()), " "))
	}
	has, err := tried.devices(ctx)
	if err == nil && has != m.Devices {
		err = d.kind.Unsupported("devices="+m.Devices, "QEMU made "+has)
	}
	return errors.Join(err, tried.kill(context.WithoutCancel(ctx)))
}

// lacks is the error of a machine that QEMU does not make, with what to do.
func (d *Driver) lacks(m notebook.Machine, why string) error {
	switch {
	case m.CPU != "" && strings.Contains(why, "CPU model"):
		return d.kind.Unsupported("cpu="+m.CPU, why+"; qemu-system-x86_64 -cpu help lists the models")
	case m.Devices != "":
		return d.kind.Unsupported("devices="+m.Devices, why+
			"; install QEMU's module for it (Debian 13, Ubuntu: apt-get install qemu-system-modules-spice; Debian 12 has it in qemu-system-common)")
	case m.CPU != "":
		return d.kind.Unsupported("cpu="+m.CPU, why)
	}
	return d.kind.Unsupported("a machine of type "+d.board.name, why)
}
