//go:build linux

package qemu_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"tare/lab/engine"
	"tare/lab/engine/conformance"
	"tare/lab/engine/qemu"
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
	Name: "vm",
	New: func(l conformance.Lab) (engine.Driver, error) {
		k, err := qemu.FindKernel(context.Background(), kernels())
		if err != nil {
			return nil, err
		}
		return qemu.New(qemu.Config{
			StateDir: l.State, Journal: l.Journal, Init: l.Init, Ruler: l.Ruler, Accelerator: notebook.TCG, Kernel: k,
		})
	},
	Undo: qemu.Undo(),
}

func TestMain(m *testing.M) { conformance.Main(m, subject) }

func TestConformance(t *testing.T) {
	_, err := exec.LookPath("qemu-system-x86_64")
	conformance.Need(t, err == nil, "qemu-system-x86_64 (apt-get install qemu-system-x86)")
	conformance.Run(t, subject, conformance.Expectations{
		Provisionings: []string{notebook.Vanilla, notebook.Pinned},
		MemoryLimit:   true,
		WritableRoot:  true,
		NoHostNetwork: true,
		Memory:        512 << 20,
		Slow:          true,
	})
}
