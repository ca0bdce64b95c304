//go:build linux

package qemu_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/require"
	"tare/lab/engine"
	"tare/lab/engine/qemu"
	"tare/lab/proc"
	"tare/lab/ruler"
	"tare/lab/trace"
	"tare/notebook"
)

// kvmKernel is the variable of the environment that names a kernel for the test of KVM.
const kvmKernel = "TARE_KVM_KERNEL"

// kvmTime bounds the test on one platform: where KVM emulates the kernel mode of the guest, nearly all of it is the boot, minutes long on a busy
// host.
const kvmTime = 9 * time.Minute

// The path through KVM runs for real, on both platforms and both boards at once, with a kernel that boots under any kind of KVM: vCPU
// threads are pinned, limits are in force, exits are counted where they can be, a guest that is killed is noticed, and nothing remains.
// Where KVM emulates the guest's kernel mode nothing of it is a VM's cost, and is marked so.
func TestKVM(t *testing.T) {
	require.Root(t)
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil { // whatever else is required: no host can be made to have it
		t.Skipf("needs a /dev/kvm that opens: %v", err)
	}
	f.Close()
	kind, hardware := qemu.KVMKind(proc.Host)
	t.Log("KVM here is", kind)
	kernel, err := qemu.FindKernel(t.Context(), kernels())
	if path := os.Getenv(kvmKernel); path != "" {
		kernel, err = qemu.NamedKernel(path)
	} else if !hardware { // nor can a kernel be had everywhere that boots there
		t.Skipf("KVM here is %s: needs a kernel that boots there, named by %s", kind, kvmKernel)
	}
	if err != nil {
		t.Fatal(err)
	}
	init := program(t)
	accelerator := notebook.KVMEmulated
	if hardware {
		accelerator = notebook.KVM
	}
	if (notebook.Treatment{Accelerator: accelerator}).Representative() != hardware {
		t.Errorf("figures under %s (%s): are they a VM's cost?", accelerator, kind)
	}
	cpus, err := notebook.ParseCPUList(allowed(t, os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		kind          engine.Kind
		name, machine string
	}{{qemu.VM, "", ""}, {qemu.VMCN, "", ""}, {qemu.MicroVM, "", ""}, {qemu.VM, "-confined", "cache=none confined"}} {
		k := c.kind
		t.Run(k.String()+c.name, func(t *testing.T) {
			t.Parallel()
			if k.Platform == notebook.VMCN {
				require.Program(t, "crun")
			}
			machine, err := notebook.ParseMachine(c.machine)
			if err != nil {
				t.Fatal(err)
			}
			testKVM(t, k, machine, init, kernel, accelerator, cpus[i%len(cpus)])
		})
	}
}

func testKVM(t *testing.T, k engine.Kind, machine notebook.Machine, init string, kernel qemu.Kernel, accelerator string, cpu int) {
	d, s := lab(t, k, init, 0, 0)
	d.Kernel, s.Machine = kernel, machine.Text()
	s.Accelerator, s.Provisioning, s.CPUs, s.Instance.Cores, s.Instance.Memory = accelerator, notebook.Pinned, []int{cpu}, 1, 192<<20
	ctx, cancel := context.WithTimeout(context.Background(), kvmTime)
	defer cancel()
	start := time.Now()
	g, err := d.Provision(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("hello after %.0f s", time.Since(start).Seconds())
	defer func() {
		if err := g.Destroy(context.Background()); err != nil {
			t.Error(err)
		}
	}()

	if h := g.Ruler().Hello(); h.Kernel != kernel.Release || len(h.CPUs) != 1 {
		t.Errorf("the guest has kernel %q and CPUs %v; want %q and one", h.Kernel, h.CPUs, kernel.Release)
	}
	if f := g.Facts(); !strings.HasSuffix(f.KernelSource, kernel.Digest) {
		t.Errorf("the kernel is from %q; want its digest %s there", f.KernelSource, kernel.Digest)
	}
	l, err := g.Limits()
	if err != nil || l.CPUs != fmt.Sprint(cpu) || l.Memory != s.Instance.Memory {
		t.Errorf("limits %+v, %v; want CPU %d and %d bytes", l, err, cpu, s.Instance.Memory)
	}
	pids, err := g.Processes()
	if err != nil || len(pids) != 1 {
		t.Fatalf("processes %v, %v; want one", pids, err)
	}
	threads, err := g.Threads()
	if err != nil {
		t.Fatal(err)
	}
	vcpus := slices.DeleteFunc(slices.Clone(threads), func(th engine.Thread) bool { return th.Role != notebook.RoleVCPU })
	if len(vcpus) != 1 {
		t.Fatalf("threads %v; want one vCPU", threads)
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/comm", pids[0], vcpus[0].ID))
	if err != nil || strings.TrimSpace(string(name)) != "CPU 0/KVM" {
		t.Errorf("the vCPU's thread is %q, %v; want KVM's", name, err)
	}
	if on := allowed(t, vcpus[0].ID); on != fmt.Sprint(cpu) {
		t.Errorf("the vCPU may run on CPUs %s, want %d", on, cpu)
	}

	if bytes, known, err := g.(engine.Machine).Mapped(ctx); err != nil || !known && accelerator == notebook.KVM || known && (bytes == 0 || bytes > 2*s.Instance.Memory) {
		t.Errorf("of its %d bytes KVM maps %d, known: %v, %v", s.Instance.Memory, bytes, known, err)
	} else {
		t.Logf("of its %d bytes KVM maps %d, known: %v", s.Instance.Memory, bytes, known)
	}

	kit, err := trace.Open([]string{notebook.TracerHypervisor})
	if err != nil {
		t.Fatal(err)
	}
	defer kit.Close()
	attached := kit.Attach(trace.Target{PID: pids[0], Cores: 1, CPUs: s.CPUs, Threads: threads})
	r, _, err := g.Ruler().Run(ctx, ruler.Order{
		Argv: []string{"/bin/busybox", "echo", "from inside"}, Timeout: 2 * time.Minute, OutputLimit: 4096, Bounds: attached,
	})
	if err != nil || r.Error != "" || r.Exit != 0 || string(r.Stdout) != "from inside\n" {
		t.Errorf("echo: %v %s exit %d %q %q; diagnosis: %s", err, r.Error, r.Exit, r.Stdout, r.Stderr, g.Diagnose())
	}
	seen, err := attached.Stop()
	if err != nil {
		t.Fatal(err)
	}
	if why := cmp.Or(kit.Missing()[notebook.TracerHypervisor], seen.Missing[notebook.TracerHypervisor].String()); why != "" {
		t.Log("exits cannot be counted here:", why)
	} else if n, counted := seen.Figures["exits"]; counted && n == 0 || !counted && accelerator == notebook.KVM {
		t.Errorf("no exit was counted: %v", seen.Figures)
	} else if !counted {
		t.Log("exits cannot be counted here: this KVM tells the tracer of none")
	}

	if err := unix.Kill(pids[0], unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Ruler().Ping(ctx); !errors.Is(err, ruler.ErrGone) {
		t.Errorf("the ruler of a guest that was killed: %v; want that it is gone", err)
	}
	if why := g.Diagnose(); !strings.Contains(why, "killed") {
		t.Errorf("diagnosis %q; want that it was killed", why)
	}
}
