// Package guestinit is the first process of a virtual machine, and its orders from the host. It makes the guest's root, brings up
// its devices and becomes the ruler, or starts the container with the ruler (design, section 3). The initramfs has the program as
// /init (cmd/init); its orders come on the kernel's command line.
package guestinit

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"tare/notebook"
)

// The purposes of a guest.
const (
	ModeProbe = "probe" // say Token on the console and power off
	ModeVM    = "vm"    // be the ruler on the disk's root
	ModeVMCN  = "vmcn"  // run the ruler in a container on the disk's root
)

// Names of a guest's devices that host and guest agree on.
const (
	Port       = "org.tare.ruler" // virtio-serial port that the ruler speaks on
	RootSerial = "tare-root"      // serial number of the disk with the root
	WorkSerial = "tare-work"      // serial number of the disk with the workload's files
)

// Paths in the initramfs that host and guest agree on.
const (
	ModulesDir = "modules" // kernel modules, loaded in the order of their names
	CrunPath   = "usr/bin/crun"
	RulerPath  = rulerDir + "/ruler"
	TracerPath = "tracer" // exists where trials are traced
)

// NoACPI on the kernel's command line turns ACPI off.
const NoACPI = "acpi=off"

// rulerDir becomes ruler.RunDir in a container.
const rulerDir = "ruler"

// Begun is the line on the console that tells the host that the guest's first process runs.
const Begun = "tare: init runs"

// NotePrefix begins a line on the console that is meant for the host: a note for the guest's record.
const NotePrefix = "tare: note: "

// FailPrefix begins the line on the console that says why the guest gave up.
const FailPrefix = "tare: init failed: "

// Params are the host's orders to a guest's first process.
type Params struct {
	Mode   string `json:"mode"`
	Token  string `json:"token,omitempty"`  // probe
	Name   string `json:"name,omitempty"`   // host name of the guest and of the container
	Cores  int    `json:"cores,omitempty"`  // vmcn: of the container
	Pinned bool   `json:"pinned,omitempty"` // vmcn: a CPU set instead of a quota
	Whole  bool   `json:"whole,omitempty"`  // vmcn: the container has no limits
	System bool   `json:"system,omitempty"` // vm: the ruler leaves the first process to the root's own init

	// Network is the requested mode of the network, as in notebook; empty: QEMU's own. Address is the address on the host's bridge,
	// zero where the guest has none. It is the machine's, or the container's where that has a namespace (vmcn, bridge).
	Network string       `json:"network,omitempty"`
	Address netip.Prefix `json:"address,omitzero"`
}

// Bridged reports whether the guest is a container with its own network namespace, which is reached through a bridge in the VM.
func (p Params) Bridged() bool { return p.Mode == ModeVMCN && p.Network == notebook.NetBridge }

// maxArg bounds the parameter, so that it fits the kernel's command line of 2048 bytes with everything else.
const maxArg = 1024

const argPrefix = "tare.init="

// Arg returns the parameters as one word of the kernel's command line.
func (p Params) Arg() (string, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	arg := argPrefix + base64.RawURLEncoding.EncodeToString(data)
	if len(arg) > maxArg {
		return "", fmt.Errorf("guest parameters of %d bytes: the kernel's command line has room for %d; use a shorter guest name", len(arg), maxArg)
	}
	return arg, nil
}

// parseParams finds the parameters in a kernel's command line.
func parseParams(cmdline string) (Params, error) {
	for _, word := range strings.Fields(cmdline) {
		code, ok := strings.CutPrefix(word, argPrefix)
		if !ok {
			continue
		}
		data, err := base64.RawURLEncoding.DecodeString(code)
		if err != nil {
			return Params{}, fmt.Errorf("%s: %w", argPrefix, err)
		}
		var p Params
		if err := json.Unmarshal(data, &p); err != nil {
			return Params{}, fmt.Errorf("%s: %w", argPrefix, err)
		}
		switch p.Mode {
		case ModeProbe, ModeVM:
		case ModeVMCN:
			if p.Cores < 1 {
				return Params{}, fmt.Errorf("%s: %d cores for the container; must be at least 1", argPrefix, p.Cores)
			}
		default:
			return Params{}, fmt.Errorf("%s: unknown mode %q", argPrefix, p.Mode)
		}
		if a := p.Address; a.IsValid() && !a.Addr().Is4() {
			return Params{}, fmt.Errorf("%s: address %s; must be an IPv4 address", argPrefix, a)
		}
		return p, nil
	}
	return Params{}, fmt.Errorf("no %s on the kernel's command line", argPrefix)
}
