//go:build linux

package qemu_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/require"
	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/lab/engine/qemu"
	"tare/lab/image"
	"tare/lab/journal"
	"tare/lab/memory"
	"tare/lab/proc"
	"tare/lab/programs"
	"tare/lab/programs/programstest"
	"tare/lab/ruler"
	"tare/notebook"
)

// goBuild compiles a command, static, and gives its path.
func goBuild(t *testing.T, path string, dir string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "tare")
	cmd := exec.Command("go", "build", "-o", out, path)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", path, err, b)
	}
	return out
}

func program(t *testing.T) string {
	t.Helper()
	_, err := exec.LookPath("qemu-system-x86_64")
	require.That(t, err == nil, "qemu-system-x86_64 (apt-get install qemu-system-x86)")
	return programstest.Build(t, programs.Init)
}

// qemus lists the processes with id in their command line, except this one. Another guest's id may begin with id.
func qemus(t *testing.T, id string) (found []string) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	whole := regexp.MustCompile(regexp.QuoteMeta(id) + `([^A-Za-z0-9._-]|$)`)
	for _, d := range dirs {
		cmdline, err := os.ReadFile(d + "/cmdline") // it may end while we look
		if err == nil && bytes.HasPrefix(cmdline, []byte("/usr/bin/qemu")) && whole.Match(cmdline) {
			found = append(found, d)
		}
	}
	return found
}

// lab is a driver of the kind with what it needs, and a spec for its guests, whose root has a shell and these programs. room is the size of the state
// folder in bytes; 0: its file system's.
func lab(t *testing.T, k engine.Kind, program string, boot time.Duration, room int64, more ...string) (*qemu.Driver, engine.Spec) {
	t.Helper()
	require.Root(t)
	busybox, err := exec.LookPath("busybox")
	require.That(t, err == nil, "busybox, static (apt-get install busybox-static)")
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if room > 0 {
		if err := unix.Mount("tmpfs", state, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", room)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(state, 0); err != nil {
				t.Error(err)
			}
		})
	}
	journal, err := journal.Open(state)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := journal.Close(); err != nil {
			t.Error(err)
		}
	})
	store, err := image.OpenStore(filepath.Join(dir, "images"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]image.Source{"bin/busybox": {Path: busybox, Exec: true}}
	for _, path := range more {
		files["bin/"+filepath.Base(path)] = image.Source{Path: path, Exec: true}
	}
	for _, d := range []string{ruler.WorkDir, ruler.ScratchDir, ruler.RunDir, "/proc", "/sys", "/dev", "/tmp"} {
		files[strings.TrimPrefix(d, "/")+"/keep"] = image.Source{Data: []byte{}}
	}
	root, err := store.Files(context.Background(), files)
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := qemu.FindKernel(context.Background(), kernels())
	if err != nil {
		t.Fatal(err)
	}
	d := qemu.New(k, engine.Env{State: state, Journal: journal, Init: program, Ruler: programstest.Build(t, programs.Ruler)})
	d.Kernel, d.BootTimeout = kernel, boot
	t.Cleanup(func() {
		left, err := filepath.Glob(filepath.Join(state, "guests", "*"))
		if err != nil || len(left) > 0 {
			t.Errorf("folders %v remain (%v)", left, err)
		}
		if p := qemus(t, state); len(p) > 0 {
			t.Errorf("processes %v remain", p)
		}
	})
	return d, engine.Spec{
		ID: fmt.Sprintf("vmtest-%d-%s", os.Getpid(), strings.ReplaceAll(t.Name(), "/", "-")), Provisioning: notebook.Vanilla, Accelerator: notebook.TCG,
		Instance: notebook.Instance{Name: "test", Cores: 2, Memory: 256 << 20},
		Image:    &image.Image{Tree: *root},
	}
}

func provision(t *testing.T, d *qemu.Driver, s engine.Spec) (engine.Guest, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	g, err := d.Provision(ctx, s)
	if err == nil {
		t.Cleanup(func() {
			if err := g.Destroy(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return g, nil
	}
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		if left, gerr := filepath.Glob(pattern + engine.ContainerName(s.ID)); gerr != nil || len(left) > 0 {
			t.Errorf("cgroups left after a VM could not be made: %q, %v", left, gerr)
		}
	}
	return g, err
}

// Each vCPU has a CPU of its own, in the order of the spec; and a machine that is stopped can be destroyed.
func TestPinned(t *testing.T) {
	t.Parallel()
	d, s := lab(t, qemu.VM, program(t), 0, 0)
	cpus, err := notebook.ParseCPUList(allowed(t, os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	require.That(t, len(cpus) >= 2, "two CPUs")
	s.Provisioning, s.CPUs = notebook.Pinned, []int{cpus[1], cpus[0]}
	g, err := provision(t, d, s)
	if err != nil {
		t.Fatal(err)
	}
	l, err := g.Limits()
	if err != nil {
		t.Fatal(err)
	}
	if want := notebook.FormatCPUList(cpus[:2]); l.CPUs != want || l.Quota != 0 || l.Memory != s.Instance.Memory {
		t.Errorf("limits %+v; want CPUs %s, no quota, %d bytes", l, want, s.Instance.Memory)
	}
	if m := g.Facts().Machine; m != notebook.UsualMachine {
		t.Errorf("it is %+v, want %+v", m, notebook.UsualMachine)
	}
	if n := len(g.Ruler().Hello().CPUs); n != 2 {
		t.Errorf("the guest sees %d CPUs, want 2", n)
	}
	byName := map[string]string{}
	pids, err := g.Processes()
	if err != nil || len(pids) != 1 {
		t.Fatalf("processes %v, %v; want one", pids, err)
	}
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pids[0]))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		name, err := os.ReadFile(task + "/comm")
		if errors.Is(err, os.ErrNotExist) {
			continue // a thread of QEMU's pool that ended
		}
		if err != nil {
			t.Fatal(err)
		}
		var tid int
		if _, err := fmt.Sscan(filepath.Base(task), &tid); err != nil {
			t.Fatal(err)
		}
		byName[strings.TrimSpace(string(name))] = allowed(t, tid)
	}
	for i, c := range s.CPUs {
		// The names that QEMU gives its threads with debug-threads=on.
		if name := fmt.Sprintf("CPU %d/TCG", i); byName[name] != fmt.Sprint(c) {
			t.Errorf("thread %q may run on %q, want %d; all threads: %v", name, byName[name], c, byName)
		}
	}

	group, err := cgroup.Of(pids[0], "memory")
	if err != nil || filepath.Base(group) != engine.ContainerName(s.ID) {
		t.Errorf("QEMU is in the cgroup %q (%v), want one of its own", group, err)
	}
	// Page tables of the machine's memory and stacks of its threads are some 100 KB; the tables of a whole machine of 256 MB are less
	// than 1 MB.
	if n, known, err := cgroup.KernelMemory(pids); err != nil || !known || n < 100<<10 || n > 64<<20 {
		t.Errorf("the kernel has %d bytes for the machine (known: %v, %v)", n, known, err)
	}

	// A machine that hangs as a whole can be destroyed all the same.
	if err := unix.Kill(pids[0], unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := g.Destroy(context.Background()); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("destroying a stopped machine took %v", took)
	}
	if _, err := os.Stat(group); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after its end its cgroup %s is there: %v", group, err)
	}
}

// The emulator's and the disks' threads keep off the guest's CPUs where there are others.
func TestPinnedOthers(t *testing.T) {
	t.Parallel()
	d, s := lab(t, qemu.VM, program(t), 0, 0)
	cpus, err := notebook.ParseCPUList(allowed(t, os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	require.That(t, len(cpus) >= 2, "two CPUs")
	last := cpus[len(cpus)-1]
	s.Instance.Cores, s.Provisioning, s.CPUs = 1, notebook.Pinned, []int{last}
	s.Instance.Memory = 192 << 20 // the smallest size that the engine claims to support
	g, err := provision(t, d, s)
	if err != nil {
		t.Fatal(err)
	}
	pids, err := g.Processes()
	if err != nil || len(pids) != 1 {
		t.Fatalf("processes %v, %v; want one", pids, err)
	}
	if got, want := allowed(t, pids[0]), notebook.FormatCPUList(cpus[:len(cpus)-1]); got != want {
		t.Errorf("QEMU's main thread may run on %s, want %s", got, want)
	}
}

// With the word confined all threads share the guest's CPUs, and the record says so.
func TestConfined(t *testing.T) {
	t.Parallel()
	d, s := lab(t, qemu.VM, program(t), 0, 0)
	cpus, err := notebook.ParseCPUList(allowed(t, os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	s.Machine = "confined"
	if err := d.Supports(t.Context(), notebook.Treatment{Platform: notebook.VM, Provisioning: notebook.Vanilla, Accelerator: notebook.TCG, Machine: s.Machine, Instance: s.Instance}); err == nil || !strings.Contains(err.Error(), "only a pinned VM") {
		t.Errorf("a VM that is not pinned: %v", err)
	}
	s.Instance.Cores, s.Provisioning, s.CPUs = 1, notebook.Pinned, cpus[:1]
	g, err := provision(t, d, s)
	if err != nil {
		t.Fatal(err)
	}
	if m := g.Facts().Machine; !m.Confined {
		t.Errorf("it is %+v", m)
	}
	pids, err := g.Processes()
	if err != nil || len(pids) != 1 {
		t.Fatalf("processes %v, %v; want one", pids, err)
	}
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pids[0]))
	if err != nil || len(tasks) < 3 {
		t.Fatalf("threads %v, %v", tasks, err)
	}
	for _, task := range tasks {
		var tid int
		if _, err := fmt.Sscan(filepath.Base(task), &tid); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(task); err == nil && allowed(t, tid) != notebook.FormatCPUList(cpus[:1]) {
			t.Errorf("thread %d may run on %s", tid, allowed(t, tid))
		}
	}
}

// allowed gives the list of CPUs that a thread may run on.
func allowed(t *testing.T, tid int) string {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(status), "Cpus_allowed_list:")
	if !ok {
		t.Fatalf("no list of CPUs in %s", status)
	}
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}

// A first process that ends is a kernel panic: the guest is gone at once, and the error has the kernel's word.
func TestPanic(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeMain(t, dir, `package main
func main() {}`)
	program(t) // asks for QEMU
	d, s := lab(t, qemu.VM, goBuild(t, ".", dir), 0, 0)
	_, err := provision(t, d, s)
	if err == nil || !strings.Contains(err.Error(), "Attempted to kill init") {
		t.Errorf("a guest whose first process ends: %v; want the kernel's panic", err)
	}
	if !errors.Is(err, ruler.ErrGone) {
		t.Errorf("a guest whose first process ends: %v; want ruler.ErrGone", err)
	}
}

// A guest that hangs is given up after its time, and the error has its last output. This one floods its console besides.
func TestHang(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeMain(t, dir, `package main
import ("fmt"; "os"; "os/signal")
func main() {
	c := make(chan os.Signal, 1)
	signal.Notify(c)
	for i := 0; i < 2000; i++ { fmt.Println("the flood rises, and rises, and rises, and does not stop rising", i) }
	fmt.Println("the flood \x1b[31mis over")
	for range c {}
}`)
	program(t) // asks for QEMU
	d, s := lab(t, qemu.VM, goBuild(t, ".", dir), 40*time.Second, 0)
	start := time.Now()
	_, err := provision(t, d, s)
	if err == nil || !strings.Contains(err.Error(), "did not say hello within 40s") {
		t.Fatalf("a guest that hangs: %v; want that it said no hello", err)
	}
	if !strings.Contains(err.Error(), "the flood") || strings.ContainsAny(err.Error(), "\x1b") {
		t.Errorf("a guest that hangs: %q; want the console's end, and no control characters", err)
	}
	if took := time.Since(start); took > 2*time.Minute {
		t.Errorf("given up after %v", took)
	}
}

func writeMain(t *testing.T, dir, source string) {
	t.Helper()
	for name, content := range map[string]string{"main.go": source, "go.mod": "module first\n\ngo 1.26\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Where the host has no room for what a guest writes, the guest is told so and lives on. Its file system may not: where it is the journal for which there is
// no room, the guest's kernel writes nothing any more, and that is what is said.
func TestNoSpace(t *testing.T) {
	t.Parallel()
	d, s := lab(t, qemu.VM, program(t), 0, 48<<20)
	g, err := provision(t, d, s)
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) ruler.Result {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		r, _, err := g.Ruler().Run(ctx, ruler.Order{
			Argv: append([]string{"/bin/busybox"}, args...), Timeout: time.Minute, OutputLimit: 4096,
		})
		if err != nil {
			t.Fatalf("%v: %v; diagnosis: %s", args, err, g.Diagnose())
		}
		return r
	}
	if r := run("dd", "if=/dev/zero", "of=small", "bs=1M", "count=4", "conv=fsync"); r.Exit != 0 || r.Error != "" {
		t.Errorf("4 MiB, for which there is room: exit %d: %s %s", r.Exit, r.Error, r.Stderr)
	}
	if r := run("dd", "if=/dev/zero", "of=large", "bs=1M", "count=64", "conv=fsync"); r.Exit == 0 && r.Error == "" {
		t.Error("64 MiB were written and synced where there is no room for them")
	}
	if r := run("true"); (r.Exit != 0 || r.Error != "") && !strings.Contains(r.Error, "read-only file system") {
		t.Errorf("true after that: exit %d: %s %s", r.Exit, r.Error, r.Stderr)
	}
}

// kernelCopied reports whether QEMU's own memory has a copy of the guest's kernel.
func kernelCopied(t *testing.T, g engine.Guest) bool {
	t.Helper()
	image, err := os.ReadFile(g.(engine.Machine).KernelFile())
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := memory.ProtectedMode(image)
	if err != nil {
		t.Fatal(err)
	}
	pids, err := g.Processes()
	if err != nil || len(pids) != 1 {
		t.Fatalf("processes %v, %v; want one", pids, err)
	}
	of, err := memory.FindCopy(pids[0], kernel)
	if err != nil {
		t.Fatal(err)
	}
	return of != memory.Span{}
}

// inPool gives the bytes that a process has of the pool of huge pages, by the name of its kind of page.
func inPool(t *testing.T, pid int) map[string]int64 {
	t.Helper()
	scan, err := memory.Scan(t.Context(), []int{pid}, memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer scan.Close()
	pool := map[string]int64{}
	for _, k := range scan.Account([]memory.Guest{{PIDs: []int{pid}}})[0].Kinds {
		if strings.HasPrefix(k.Name, memory.Hugetlb.String()) {
			pool[k.Name] = k.Other
		}
	}
	return pool
}

// Every machine that can be asked for is in force, as QEMU, the host's kernel and the guest's say; what is synced in it can be read again,
// and has survived where the guest is killed.
func TestMachines(t *testing.T) {
	for _, text := range []string{"cache=none aio=native huge-pages=2M", "cache=directsync aio=io_uring threads=2 no-kaslr no-thp ram=file", "cache=none no-iothread huge-pages=2M sockets=2 nodes=2 boot=disk no-thp"} {
		t.Run(text, func(t *testing.T) {
			require.Program(t, "qemu-img", "e2fsck", "debugfs")
			d, s := lab(t, qemu.VM, program(t), 0, 0)
			s.ID = "machine-" + strings.NewReplacer(" ", "-", "=", "-").Replace(text)
			s.Machine = text
			before := hugePages(t)
			t.Cleanup(func() {
				if after := hugePages(t); after != before {
					t.Errorf("the host keeps %s huge pages after, %s before", after, before)
				}
			})
			g, err := provision(t, d, s)
			if err != nil {
				t.Fatal(err)
			}
			want, err := notebook.ParseMachine(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := g.Facts().Machine; got != want {
				t.Errorf("it is %+v, want %+v", got, want)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			r, _, err := g.Ruler().Run(ctx, ruler.Order{Argv: []string{"/bin/busybox", "sh", "-c",
				"b=/bin/busybox; $b yes disk | $b head -c 4194304 >f && $b sync f && echo 3 >/proc/sys/vm/drop_caches && test $($b yes disk | $b head -c 4194304 | $b md5sum | $b cut -c-32) = $($b md5sum f | $b cut -c-32)"},
				Env: []string{"PATH=/bin"}, Timeout: time.Minute, OutputLimit: 4096})
			if err != nil || r.Error != "" || r.Exit != 0 {
				t.Fatalf("writing and reading: %v %s exit %d: %s%s; diagnosis: %s", err, r.Error, r.Exit, r.Stdout, r.Stderr, g.Diagnose())
			}
			if copied := kernelCopied(t, g); copied == want.BootDisk {
				t.Errorf("QEMU has a copy of the kernel: %v", copied)
			}
			if want.NoKASLR { // the address of a kernel of x86-64 that was linked as usual, and no huge pages but by request
				r, _, err := g.Ruler().Run(ctx, ruler.Order{Argv: []string{"/bin/busybox", "sh", "-c",
					"b=/bin/busybox; $b grep '[tT] _text$' /proc/kallsyms; $b cat /sys/kernel/mm/transparent_hugepage/enabled"}, Env: []string{"PATH=/bin"}, Timeout: time.Minute, OutputLimit: 4096, KeepScratch: true})
				if err != nil || !strings.HasPrefix(string(r.Stdout), "ffffffff81000000 ") || !strings.Contains(string(r.Stdout), "[never]") {
					t.Errorf("with no-kaslr and no-thp the guest says %q (%v, %s)", r.Stdout, err, r.Error)
				}
			}
			pids, err := g.Processes()
			if err != nil || len(pids) != 1 {
				t.Fatalf("processes %v, %v; want one", pids, err)
			}
			pool := map[string]int64{}
			if want.HugePages > 0 {
				pool["hugetlb, 2 MiB each"] = s.Instance.Memory
			}
			if got := inPool(t, pids[0]); !maps.Equal(got, pool) {
				t.Errorf("bytes of the pool of huge pages that QEMU has: %v, want %v", got, pool)
			}
			pidfd, err := unix.PidfdOpen(pids[0], 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(pidfd)
			if err := proc.KillByFD(pidfd); err != nil {
				t.Fatal(err)
			}
			if err := proc.AwaitEnd(ctx, pidfd); err != nil {
				t.Fatal(err)
			}
			if _, err := g.Ruler().Ping(ctx); !errors.Is(err, ruler.ErrGone) {
				t.Errorf("the ruler of a guest that was killed: %v; want that it is gone", err)
			}
			if got := onDisk(t, d, s, ruler.ScratchDir+"/f"); !bytes.Equal(got, bytes.Repeat([]byte("disk\n"), 4<<20/5+1)[:4<<20]) {
				t.Errorf("of what was synced before the kill %d bytes are on the disk: %.40q", len(got), got)
			}
		})
	}
}

// A guest sees the CPU model that its machine names: qemu64 has no AVX2, which the usual machine's CPU has.
func TestCPUModels(t *testing.T) {
	d, s := lab(t, qemu.VM, program(t), 0, 0)
	for machine, has := range map[string]bool{"": true, "cpu=qemu64": false, "cpu=Haswell": true} {
		s.ID, s.Machine = "cpu"+strings.TrimPrefix(machine, "cpu="), machine
		g, err := provision(t, d, s)
		if err != nil {
			t.Fatal(err)
		}
		f, flags := g.Facts(), g.Ruler().Hello().CPUFlags
		if want := strings.TrimPrefix(machine, "cpu="); f.Machine.CPU != want {
			t.Errorf("%q: the record has the CPU %q", machine, f.Machine.CPU)
		}
		if slices.Contains(flags, "avx2") != has && (!has || s.Accelerator != notebook.KVM) { // under KVM the host may lack it
			t.Errorf("%q: avx2 is %v among %v", machine, !has, flags)
		}
		lacks := slices.ContainsFunc(f.Notes, func(m *notebook.Message) bool { return m.Is("cpu-features-lacking") })
		if want := machine == "cpu=Haswell"; lacks != want && s.Accelerator == notebook.TCG { // TCG has no TSX
			t.Errorf("%q: that features of the model are missing: %v, want %v", machine, lacks, want)
		}
		if err := g.Destroy(t.Context()); err != nil {
			t.Error(err)
		}
	}
	err := d.Supports(t.Context(), notebook.Treatment{Platform: notebook.VM, Engine: "qemu", Accelerator: s.Accelerator, Machine: "cpu=no-such", Instance: s.Instance})
	var cannot *engine.UnsupportedError
	if !errors.As(err, &cannot) || !strings.Contains(err.Error(), "no-such") || !strings.HasSuffix(err.Error(), "; qemu-system-x86_64 -cpu help lists the models") {
		t.Errorf("an unknown model: %v", err)
	}
}

// What a guest has written and freed goes back to the host if it reports free pages, and stays in QEMU if it does not.
func TestFreePagesGoBack(t *testing.T) {
	t.Parallel()
	const used = 96 << 20
	for _, device := range []string{"balloon", notebook.Reporting} {
		t.Run(device, func(t *testing.T) {
			t.Parallel()
			d, s := lab(t, qemu.VM, program(t), 0, 0)
			s.Machine, s.Instance.Cores = "devices="+device, 1
			g, err := provision(t, d, s)
			if err != nil {
				t.Fatal(err)
			}
			if got := g.Facts().Machine.Devices; got != device {
				t.Errorf("it has %q", got)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			const script = `m=/tmp/m; /bin/busybox mkdir -p $m && /bin/busybox mount -t tmpfs none $m && /bin/busybox dd if=/dev/urandom of=$m/f bs=1048576 count=96 && /bin/busybox rm $m/f`
			r, _, err := g.Ruler().Run(ctx, ruler.Order{Argv: []string{"/bin/busybox", "sh", "-c", script}, Timeout: time.Minute, OutputLimit: 1 << 16})
			if err != nil || r.Exit != 0 {
				t.Fatalf("%v, exit %d: %s", err, r.Exit, r.Stderr)
			}
			pids, err := g.Processes()
			if err != nil || len(pids) != 1 {
				t.Fatalf("processes %v, %v", pids, err)
			}
			most, least := int64(0), int64(math.MaxInt64)
			// The guest reports two seconds after it has freed pages, and not all at once.
			watched := map[string]time.Duration{"balloon": 8 * time.Second, notebook.Reporting: time.Minute}[device]
			for end := time.Now().Add(watched); time.Now().Before(end) && most-least < used/2; time.Sleep(100 * time.Millisecond) {
				r, err := proc.RollupOf(pids[0])
				if err != nil {
					t.Fatal(err)
				}
				most, least = max(most, r.RSS), min(least, r.RSS)
			}
			if gone := most-least >= used/2; gone != (device == notebook.Reporting) {
				t.Errorf("of %d bytes that the guest has freed, %d went back to the host", used, most-least)
			}
			if most < used {
				t.Errorf("QEMU had %d bytes at most", most)
			}
		})
	}
}

// A guest has the devices that were asked for and no others, nobody can reach its screen over a network, and what QEMU has not is refused.
func TestDevices(t *testing.T) {
	d, s := lab(t, qemu.VM, program(t), 0, 0)
	s.ID, s.Machine = "devices", "devices=virt-manager"
	supports := func(machine string) error {
		return d.Supports(t.Context(), notebook.Treatment{Platform: notebook.VM, Engine: "qemu", Accelerator: s.Accelerator, Machine: machine, Instance: s.Instance})
	}
	for _, machine := range []string{"devices=virt-manager", "devices=cirrus,vnc,ich9"} {
		if err := supports(machine); err != nil {
			t.Fatal(err)
		}
	}
	g, err := provision(t, d, s)
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Facts().Machine.Devices; got != "qxl,spice,ich6,usb,balloon" {
		t.Errorf("it has %q", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, _, err := g.Ruler().Run(ctx, ruler.Order{Argv: []string{"/bin/busybox", "sh", "-c", "cd /sys/bus/pci/devices && /bin/busybox cat */uevent"}, Timeout: time.Minute, OutputLimit: 1 << 16})
	if err != nil || r.Exit != 0 {
		t.Fatalf("%v, exit %d: %s", err, r.Exit, r.Stderr)
	}
	for _, id := range []string{"1B36:0100", "8086:2668", "8086:293A", "8086:2934", "8086:2935", "8086:2936", "1AF4:1002"} {
		if !strings.Contains(string(r.Stdout), "PCI_ID="+id+"\n") {
			t.Errorf("the guest sees no device %s", id)
		}
	}
	pids, err := g.Processes()
	if err != nil || len(pids) != 1 {
		t.Fatalf("processes %v, %v", pids, err)
	}
	sockets, err := filepath.Glob(filepath.Join(d.State, "guests", "*", "screen"))
	if err != nil || len(sockets) != 1 {
		t.Errorf("its screen's sockets are %v, %v; want one, in its folder", sockets, err)
	}
	listening := listens(t, pids[0])
	if len(listening) > 0 {
		t.Errorf("QEMU listens on %v", listening)
	}
	if err := g.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(d.State, "guests", "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}

	// A QEMU without the card: what it says of a device that it does not know.
	real, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	script := "#!/bin/sh\nfor a; do shift; case $a in qxl-vga,*) a=no-such-card ;; esac; set -- \"$@\" \"$a\"; done\nexec " + real + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "qemu-system-x86_64"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	err = supports("devices=qxl,spice")
	var cannot *engine.UnsupportedError
	if !errors.As(err, &cannot) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "'no-such-card' is not a valid device model name") {
		t.Errorf("%v; want one line with what QEMU lacks", err)
	}
	if left, err := filepath.Glob(filepath.Join(d.State, "devices-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// listens are the TCP and UDP sockets that a process holds.
func listens(t *testing.T, pid int) (all []string) {
	t.Helper()
	mine := map[string]bool{}
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(fds) == 0 {
		t.Fatalf("descriptors of %d: %v, %v", pid, fds, err)
	}
	for _, f := range fds {
		if to, err := os.Readlink(f); err == nil {
			mine[strings.TrimSuffix(strings.TrimPrefix(to, "socket:["), "]")] = true
		}
	}
	for _, kind := range []string{"tcp", "tcp6", "udp", "udp6"} {
		table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, kind))
		if err != nil {
			continue // a kernel without IPv6
		}
		for line := range strings.Lines(string(table)) {
			if f := strings.Fields(line); len(f) > 9 && mine[f[9]] {
				all = append(all, kind+" "+f[1])
			}
		}
	}
	return all
}

// hugePages is how many of the default size the host keeps.
func hugePages(t *testing.T) string {
	t.Helper()
	n, err := os.ReadFile("/proc/sys/vm/nr_hugepages")
	require.That(t, err == nil, "a kernel with huge pages (CONFIG_HUGETLBFS)")
	return strings.TrimSpace(string(n))
}

// onDisk is a file on the disk of a guest that has ended: of what the host has of it, its journal replayed as the next boot would.
func onDisk(t *testing.T, d *qemu.Driver, s engine.Spec, file string) []byte {
	t.Helper()
	overlays, err := filepath.Glob(filepath.Join(d.State, "guests", "*", "disk.qcow2"))
	if err != nil || len(overlays) != 1 {
		t.Fatalf("overlays %v, %v; want the guest's", overlays, err)
	}
	root, err := s.Image.Disk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	raw := filepath.Join(t.TempDir(), "raw")
	for _, argv := range [][]string{
		// --force-share, because the kernel gives up the locks of a process's files only some time after its end if io_uring has used them.
		{"qemu-img", "convert", "--force-share", "-O", "raw", "--image-opts", fmt.Sprintf("driver=qcow2,file.filename=%s,backing.driver=raw,backing.file.filename=%s", overlays[0], root), raw},
		{"e2fsck", "-fp", raw},
	} {
		out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
		if exit := new(exec.ExitError); err != nil && !(argv[0] == "e2fsck" && errors.As(err, &exit) && exit.ExitCode() == 1) { // 1: mended
			t.Fatalf("%s: %v: %s", argv, err, out)
		}
	}
	got, err := exec.CommandContext(t.Context(), "debugfs", "-R", "cat "+file, raw).Output()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// An error names what the host cannot make before it makes any guest, in one line, and leaves the host as it was.
func TestCannotBeMade(t *testing.T) {
	d, s := lab(t, qemu.VM, program(t), 0, 0)
	before := hugePages(t)
	for machine, memory := range map[string]int64{"huge-pages=2M": 1 << 46, "huge-pages=1G": 1 << 46} {
		err := d.Supports(t.Context(), notebook.Treatment{Platform: notebook.VM, Engine: "qemu", Machine: machine, Instance: notebook.Instance{Cores: 1, Memory: memory}})
		var cannot *engine.UnsupportedError
		if !errors.As(err, &cannot) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "huge-pages: ") {
			t.Errorf("%s: %v, want one line", machine, err)
		}
		t.Log(err)
		if after := hugePages(t); after != before {
			t.Errorf("the host keeps %s huge pages after, %s before", after, before)
		}
	}
	// A guest cannot be made without something that it would not have anyway, such as vhost under emulation.
	err := d.Supports(t.Context(), notebook.Treatment{Platform: notebook.VM, Engine: "qemu", Accelerator: notebook.TCG, Machine: "no-vhost", Network: notebook.NetBridge, Instance: s.Instance})
	if err == nil || !strings.HasPrefix(err.Error(), "vm with qemu cannot give no-vhost: the host's kernel carries ") || !strings.HasSuffix(err.Error(), "; so this is the usual machine") {
		t.Errorf("no-vhost: %v, want it refused", err)
	}
	if err := d.Supports(t.Context(), notebook.Treatment{Platform: notebook.VM, Engine: "qemu", Machine: "huge-pages=2M cache=none", Instance: s.Instance}); err != nil {
		t.Errorf("%d bytes in huge pages: %v", s.Instance.Memory, err)
	}
}

// A configuration that a VM cannot have gives an error that says so.
func TestCannot(t *testing.T) {
	d, s := lab(t, qemu.VM, program(t), 0, 0)
	for _, i := range []notebook.Instance{
		{Cores: 0.5, Memory: 1 << 30}, {Cores: 1.5, Memory: 1 << 30}, {Cores: 0, Memory: 1 << 30}, {Cores: 1, Memory: 64 << 20},
	} {
		s.Instance = i
		_, err := provision(t, d, s)
		var cannot *engine.UnsupportedError
		if !errors.As(err, &cannot) {
			t.Errorf("%+v: %v, want an *engine.UnsupportedError", i, err)
		}
	}
}
