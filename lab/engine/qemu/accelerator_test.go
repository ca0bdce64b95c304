//go:build linux

package qemu_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"tare/internal/require"
	"tare/lab/engine"
	"tare/lab/engine/qemu"
	"tare/lab/proc"
	"tare/notebook"
)

func TestAccelerator(t *testing.T) {
	require.Root(t)
	d := qemu.New(qemu.VM, engine.Env{State: kernels(), Init: program(t)})
	for _, accelerator := range []string{notebook.TCG, notebook.KVM, notebook.KVMEmulated} {
		start := time.Now()
		c := d.Probe(context.Background(), accelerator)
		took := time.Since(start)
		t.Logf("%s: %+v in %v", accelerator, c, took)
		if c.Name != accelerator {
			t.Errorf("capability %q, want %q", c.Name, accelerator)
		}
		if c.Why == "" {
			t.Errorf("%s: no reason", accelerator)
		}
		switch {
		case accelerator == notebook.TCG && c.Answer != notebook.Supported:
			t.Errorf("TCG is %s: %s; every host with QEMU can emulate", c.Answer, c.Why)
		case accelerator != notebook.TCG && c.Answer == notebook.NotSupported && c.Do == "":
			t.Errorf("%s is not supported and nothing is said about what to do: %s", accelerator, c.Why)
		case accelerator != notebook.TCG && took > 20*time.Second:
			t.Errorf("the probe of %s took %v", accelerator, took)
		}
	}
	if left := ownProbes(t); len(left) > 0 {
		t.Errorf("the probe left processes %v", left)
	}
}

func TestAcceleratorStopped(t *testing.T) {
	require.Root(t)
	d := qemu.New(qemu.VM, engine.Env{State: kernels(), Init: program(t)})
	if _, err := qemu.FindKernel(context.Background(), kernels()); err != nil {
		t.Fatal(err) // fetched now, if at all, so that what is stopped is the guest
	}
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	c := d.Probe(ctx, notebook.TCG)
	if c.Answer != notebook.Inconclusive {
		t.Errorf("a probe that was stopped answers %+v, want inconclusive", c)
	}
	if left := ownProbes(t); len(left) > 0 {
		t.Errorf("the probe left processes %v", left)
	}
}

// ownProbes are the probes' guests of this process. Another test's program may try the accelerators at the same time.
func ownProbes(t *testing.T) []string {
	return slices.DeleteFunc(qemus(t, "tare-probe"), func(dir string) bool {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			t.Fatal(err)
		}
		parent, err := proc.Parent(pid)
		return err != nil || parent != os.Getpid() // it has ended, or is another's
	})
}
