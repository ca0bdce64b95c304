package notebook

import (
	"fmt"
	"slices"
	"strings"
)

// The kinds of devices that no workload needs and that tools for desktops give every VM ("virtualization-overheads", section 6.6.2).
const (
	Video    = "video"    // a graphics card
	Graphics = "graphics" // a server that shows the guest's screen
	Audio    = "audio"    // a sound card
	USB      = "USB"      // controllers and a tablet; with SPICE also its two redirectable devices
	Balloon  = "balloon"  // the host uses it to ask for memory back, or the guest to give back what is free
)

var deviceKinds = []string{Video, Graphics, Audio, USB, Balloon}

// AllKinds says whether a list that ParseMachine made has a device of each kind.
func AllKinds(list string) bool { return len(DeviceKinds(list)) == len(deviceKinds) }

// Device is a device that a VM can have, by the word that studies use for it.
type Device struct{ Word, Kind string }

// Devices are all devices that a study can ask for, at most one of each kind.
var Devices = []Device{
	{"qxl", Video}, {"cirrus", Video},
	{"spice", Graphics}, {"vnc", Graphics},
	{"ich6", Audio}, {"ich9", Audio},
	{"usb", USB},
	{"balloon", Balloon}, {Reporting, Balloon},
}

// Reporting is the word for a balloon by which the guest's kernel reports free pages. QEMU returns these to the host.
const Reporting = "reporting"

// VirtManager is the set of devices that virt-manager gave a new VM at the time of "virtualization-overheads" (2015).
const VirtManager = "virt-manager"

var deviceSets = map[string]string{VirtManager: "qxl,spice,ich6,usb,balloon"}

// DeviceKinds are the kinds of the devices in a list that ParseMachine made, in the order of Devices.
func DeviceKinds(list string) (kinds []string) {
	for _, d := range Devices {
		if slices.Contains(strings.Split(list, ","), d.Word) {
			kinds = append(kinds, d.Kind)
		}
	}
	return kinds
}

// parseDevices reads a comma-separated list of devices, or the name of a set, and returns the list in the order of Devices. The error says
// what is wrong and what is allowed.
func parseDevices(text string) (string, error) {
	if set, ok := deviceSets[text]; ok {
		return set, nil
	}
	var words, list, kinds []string
	asked := strings.Split(text, ",")
	for _, d := range Devices {
		words = append(words, d.Word)
		if !slices.Contains(asked, d.Word) {
			continue
		}
		if slices.Contains(kinds, d.Kind) {
			return "", fmt.Errorf("two devices for %s; only one is allowed", d.Kind)
		}
		list, kinds = append(list, d.Word), append(kinds, d.Kind)
	}
	if len(list) != len(asked) { // a word is unknown or repeated
		return "", fmt.Errorf("must be %s, or a comma-separated list of %s, each at most once", VirtManager, strings.Join(words, ", "))
	}
	return strings.Join(list, ","), nil
}
