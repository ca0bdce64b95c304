//go:build linux

package vmcn_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"tare/lab/engine"
	"tare/lab/engine/conformance"
	"tare/lab/engine/qemu"
	"tare/lab/engine/vmcn"
	"tare/notebook"
)

// kernels is the state folder in which the tests keep the packaged kernel: the user's own cache, as it is fetched
// from the network.
func kernels() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "tare-test")
}

var subject = conformance.Subject{
	Name: "vmcn",
	New: func(l conformance.Lab) (engine.Driver, error) {
		k, err := qemu.FindKernel(context.Background(), kernels())
		if err != nil {
			return nil, err
		}
		return vmcn.New(vmcn.Config{VM: qemu.Config{
			StateDir: l.State, Journal: l.Journal, Init: l.Init, Ruler: l.Ruler, Accelerator: notebook.TCG, Kernel: k,
		}})
	},
	Undo: qemu.Undo(),
}

func TestMain(m *testing.M) { conformance.Main(m, subject) }

func TestConformance(t *testing.T) {
	for _, program := range []string{"qemu-system-x86_64", "crun"} {
		_, err := exec.LookPath(program)
		conformance.Need(t, err == nil, program+" (apt-get install qemu-system-x86 crun)")
	}
	conformance.Run(t, subject, conformance.Expectations{
		Provisionings: []string{notebook.Vanilla, notebook.Pinned},
		MemoryLimit:   true,
		WritableRoot:  true,
		Memory:        512 << 20,
		Slow:          true,
	})
}
