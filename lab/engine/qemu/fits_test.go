//go:build linux

package qemu

import (
	"strings"
	"testing"

	"tare/lab/engine"
	"tare/notebook"
)

// A plan leaves out what no machine can be, with the reason: the whole of a host of 384 CPUs.
func TestAMachineHasAtMost255CPUs(t *testing.T) {
	d := New(VM, engine.Env{})
	of := notebook.Treatment{Platform: notebook.VM, Engine: "qemu", Accelerator: notebook.KVM, Provisioning: notebook.Whole, Instance: notebook.Instance{Cores: 384, Memory: 1 << 40}}
	if err := d.Supports(t.Context(), of); err == nil || !strings.Contains(err.Error(), "384 cores") || !strings.Contains(err.Error(), "1 to 255 virtual CPUs") {
		t.Errorf("%v", err)
	}
	of.Instance.Cores = 255
	if err := d.Supports(t.Context(), of); err != nil {
		t.Errorf("%v", err)
	}
}
