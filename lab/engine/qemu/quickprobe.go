//go:build linux

package qemu

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"

	"tare/notebook"
)

// QuickProbe implements engine.QuickProber: it boots no guest.
func (d *Driver) QuickProbe(ctx context.Context, capability string) notebook.Capability {
	is := installed(ctx, capability)
	if is.Answer != notebook.Supported || !slices.Contains(d.kind.Accelerators, capability) {
		return is
	}
	if err := checkArchitecture(); err != nil {
		return notebook.Capability{Name: capability, Answer: notebook.NotSupported, Why: err.Error()}
	}
	if capability == notebook.TCG {
		return is
	}
	open := notebook.Capability{Name: capability, Answer: notebook.Inconclusive, Why: "only a guest that boots can tell", Do: "sudo tare doctor"}
	if f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0); errors.Is(err, fs.ErrPermission) {
		open.Why = "only root or the group kvm can tell"
		return open
	} else if err == nil {
		f.Close()
	}
	if _, no := d.tryKVM(capability); no != nil {
		return *no
	}
	return open
}
