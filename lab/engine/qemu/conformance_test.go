//go:build linux

package qemu_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"tare/internal/require"
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

// emulated makes the guests of a driver with software emulation, which every host can do.
type emulated struct{ *qemu.Driver }

func (d emulated) Provision(ctx context.Context, s engine.Spec) (engine.Guest, error) {
	s.Accelerator = notebook.TCG
	return d.Driver.Provision(ctx, s)
}

func subject(k engine.Kind) conformance.Subject {
	s := conformance.Of(k)
	s.New = func(env engine.Env) (engine.Driver, error) {
		d := qemu.New(k, env)
		var err error
		d.Kernel, err = qemu.FindKernel(context.Background(), kernels())
		return emulated{d}, err
	}
	return s
}

func TestMain(m *testing.M) {
	conformance.Main(m, subject(qemu.VM), subject(qemu.MicroVM), subject(qemu.VMCN))
}

func TestASystem(t *testing.T) {
	_, err := exec.LookPath("qemu-system-x86_64")
	require.That(t, err == nil, "qemu-system-x86_64 (apt-get install qemu-system-x86)")
	conformance.System(t, subject(qemu.VM), conformance.Expectations{Slow: true})
}

func TestConformance(t *testing.T) {
	for _, k := range []engine.Kind{qemu.VM, qemu.MicroVM, qemu.VMCN} {
		t.Run(k.String(), func(t *testing.T) {
			for _, program := range []string{"qemu-system-x86_64", "crun"} {
				_, err := exec.LookPath(program)
				require.That(t, err == nil, program+" (apt-get install qemu-system-x86 crun)")
			}
			conformance.Run(t, subject(k), conformance.Expectations{
				Provisionings: notebook.Provisionings,
				MemoryLimit:   true,
				WritableRoot:  true,
				Slow:          true,
			})
		})
	}
}
