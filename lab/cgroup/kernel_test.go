//go:build linux

package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tare/internal/require"
)

func TestKernelMemory(t *testing.T) {
	const stat = "anon 4096\nkernel 700\nkernel_stack 100\npagetables 200\nslab 50\nsock 30\n"
	v2 := func(group string, files map[string]string) machine {
		m := process(mountsV2, "0::"+group, "0-15")
		for name, text := range files {
			m.Put("/sys/fs/cgroup"+group+"/"+name, text)
		}
		return m
	}
	v1 := process(mountsHybrid, strings.ReplaceAll(cgroupV1, "%[1]s", "/g"), "0-15")
	v1.Put("/sys/fs/cgroup/memory/g/memory.kmem.usage_in_bytes", "5000\n")
	v1.Put("/sys/fs/cgroup/memory/g/memory.kmem.tcp.usage_in_bytes", "7\n")
	for what, c := range map[string]struct {
		m     machine
		own   string
		want  int64
		known bool
	}{
		"version 2":              {v2("/g", map[string]string{"memory.stat": stat}), "/sys/fs/cgroup/tare", 730, true},
		"version 2 before 5.18":  {v2("/g", map[string]string{"memory.stat": strings.Replace(stat, "kernel 700\n", "", 1)}), "/sys/fs/cgroup/tare", 380, true},
		"nothing is counted":     {v2("/g", map[string]string{"memory.stat": "anon 4096\n"}), "/sys/fs/cgroup/tare", 0, false},
		"without the controller": {v2("/g", nil), "/sys/fs/cgroup/tare", 0, false},
		"the root":               {v2("/", map[string]string{"memory.stat": stat}), "/sys/fs/cgroup/tare", 0, false},
		"this program's":         {v2("/g", map[string]string{"memory.stat": stat}), "/sys/fs/cgroup/g", 0, false},
		"one above this program": {v2("/g", map[string]string{"memory.stat": stat}), "/sys/fs/cgroup/g/tare", 0, false},
		"version 1, and its tcp": {v1, "/sys/fs/cgroup/memory/tare", 5007, true},
	} {
		got, known, err := of(c.m.Tree.Tree).kernelMemory([]int{7, 7}, Group{Dir: c.own})
		if err != nil || got != c.want || known != c.known {
			t.Errorf("%s: %d, %v, %v; want %d, %v", what, got, known, err, c.want, c.known)
		}
	}
	for _, text := range []string{"kernel -1\n", "slab x\n", "kernel 9223372036854775807\nsock 1\n"} {
		if n, known, err := parseKernelStat(text); err == nil || known || n != 0 {
			t.Errorf("%q: %d, %v, %v", text, n, known, err)
		}
	}
}

// What a group is charged is with its page cache, by the names of both versions.
func TestCharged(t *testing.T) {
	v2 := process(mountsV2, "0::/g", "0-15")
	v2.Put("/sys/fs/cgroup/g/memory.current", "9000\n")
	v2.Put("/sys/fs/cgroup/g/memory.stat", "anon 4096\nfile 3000\nkernel 700\n")
	v1 := process(mountsHybrid, strings.ReplaceAll(cgroupV1, "%[1]s", "/g"), "0-15")
	v1.Put("/sys/fs/cgroup/memory/g/memory.usage_in_bytes", "8000\n")
	v1.Put("/sys/fs/cgroup/memory/g/memory.stat", "cache 1\ntotal_cache 2000\n")
	none := process(mountsV2, "0::/g", "0-15")
	for what, c := range map[string]struct {
		m     machine
		own   string
		want  Charge
		known bool
	}{
		"version 2":              {v2, "/sys/fs/cgroup/tare", Charge{9000, 3000}, true},
		"version 1":              {v1, "/sys/fs/cgroup/memory/tare", Charge{8000, 2000}, true},
		"without the controller": {none, "/sys/fs/cgroup/tare", Charge{}, false},
		"this program's":         {v2, "/sys/fs/cgroup/g", Charge{}, false},
	} {
		got, known, err := of(c.m.Tree.Tree).charged([]int{7, 7}, Group{Dir: c.own})
		if err != nil || got != c.want || known != c.known {
			t.Errorf("%s: %+v, %v, %v; want %+v, %v", what, got, known, err, c.want, c.known)
		}
	}
	v2.Put("/sys/fs/cgroup/g/memory.current", "-3\n")
	if got, known, err := of(v2.Tree.Tree).charged([]int{7}, Group{Dir: "/sys/fs/cgroup/tare"}); err == nil || known {
		t.Errorf("a negative charge: %+v, %v, %v", got, known, err)
	}
}

// A process in a group of its own has a stack and page tables, and the kernel counts both.
func TestKernelMemoryOfAProcess(t *testing.T) {
	require.Root(t)
	own, err := Find("memory")
	if err != nil || own.Dir == "" {
		t.Fatalf("no memory controller: %v", err)
	}
	dir := makeGroup(t, own.Top, "tare-test-kernel")
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	// Born in the group: what a process had before it came stays where it was.
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `echo $$ >"$0" && cat && :`, filepath.Join(dir, "cgroup.procs")}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	if _, err := in.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	got, known, err := KernelMemory([]int{cmd.Process.Pid})
	if err != nil || !known || got < 16<<10 || got > 64<<20 {
		t.Errorf("%d bytes, %v, %v; want 16 KiB to 64 MiB", got, known, err)
	}
	if c, known, err := Charged([]int{cmd.Process.Pid}); err != nil || !known || c.All < got || c.Files < 0 || c.Files > c.All {
		t.Errorf("charged %+v, %v, %v; want %d bytes or more", c, known, err, got)
	}
	if got, known, err := KernelMemory([]int{os.Getpid()}); err != nil || known || got != 0 {
		t.Errorf("of this program itself: %d, %v, %v", got, known, err)
	}
}

func FuzzParseKernelStat(f *testing.F) {
	f.Add("anon 1\nkernel 5\nsock 1\n")
	f.Add("slab 99999999999999999999\n")
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := statLine(text, "file"); n < -1 || err != nil && n != -1 {
			t.Errorf("%q: %d, %v", text, n, err)
		}
		if n, known, err := parseKernelStat(text); n < 0 || err != nil && (known || n != 0) {
			t.Errorf("%q: %d, %v, %v", text, n, known, err)
		}
	})
}
