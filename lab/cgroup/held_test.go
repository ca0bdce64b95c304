//go:build linux

package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/require"
	"tare/lab/proc"
	"tare/notebook"
)

// heldAt finds process 7 of a made machine.
func (m machine) heldAt(t *testing.T) Held {
	t.Helper()
	h, err := of(m.Tree.Tree).heldAt("7")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHeldV1(t *testing.T) {
	m := process(mountsHybrid, fmt.Sprintf(cgroupV1, "/tare-a"), "2-3")
	h := m.heldAt(t)
	if h.Set.Dir != "/sys/fs/cgroup/cpuset/tare-a" || h.Count.Dir != "/sys/fs/cgroup/cpu,cpuacct/tare-a" {
		t.Fatalf("%+v", h)
	}
	if cpus, err := h.CPUs(); err == nil {
		t.Errorf("a group that is gone has CPUs %v", cpus)
	}
	m.Put(h.Set.Dir+"/cpuset.cpus", "2-3")
	if cpus, err := h.CPUs(); err != nil || !slices.Equal(cpus, []int{2, 3}) {
		t.Errorf("CPUs %v, %v", cpus, err)
	}
	m.Put(h.Set.Dir+"/cpuset.effective_cpus", "3")
	if cpus, err := h.CPUs(); err != nil || !slices.Equal(cpus, []int{3}) {
		t.Errorf("with one offline: CPUs %v, %v", cpus, err)
	}
	m.Put("/sys/devices/system/cpu/possible", "0-1,4-5") // there is no CPU 2
	m.Put(h.Count.Dir+"/cpuacct.usage_percpu", "1000 2000 3000 4000 ")
	before, err := h.Used()
	if err != nil || before.All != 10*time.Microsecond || before.By[4] != 3*time.Microsecond {
		t.Fatalf("%+v, %v", before, err)
	}
	m.Put(h.Count.Dir+"/cpuacct.usage_percpu", "1000 2500 3300 4040")
	after, err := h.Used()
	if err != nil {
		t.Fatal(err)
	}
	since := after.Since(before)
	if since.All != 840 {
		t.Errorf("since: %+v", since)
	}
	if d, known := since.Elsewhere([]int{4, 5}); d != 500 || !known {
		t.Errorf("elsewhere: %v, %t", d, known)
	}
	for _, bad := range []string{"", "1 2 3", "1 2 3 -4", "1 2 3 four", "1 2 3 99999999999999999999"} {
		m.Put(h.Count.Dir+"/cpuacct.usage_percpu", bad)
		if u, err := h.Used(); err == nil {
			t.Errorf("%q: %+v", bad, u)
		}
	}
}

func TestHeldV2(t *testing.T) {
	m := process(mountsV2, "0::/tare-a", "2-3")
	h := m.heldAt(t)
	if h.Set.Dir != "/sys/fs/cgroup/tare-a" || h.Count.Dir != h.Set.Dir {
		t.Fatalf("%+v", h)
	}
	m.Put(h.Set.Dir+"/cpuset.cpus.effective", "2-3")
	if cpus, err := h.CPUs(); err != nil || !slices.Equal(cpus, []int{2, 3}) {
		t.Errorf("CPUs %v, %v", cpus, err)
	}
	m.Put(h.Count.Dir+"/cpu.stat", "usage_usec 1234\nuser_usec 1000\nsystem_usec 234")
	u, err := h.Used()
	if err != nil || u.All != 1234*time.Microsecond {
		t.Errorf("%+v, %v", u, err)
	}
	if d, known := u.Elsewhere([]int{2}); d != 0 || known {
		t.Errorf("elsewhere: %v, %t; this version does not count by CPU", d, known)
	}
	m.Put(h.Count.Dir+"/cpu.stat", "user_usec 1000")
	if u, err := h.Used(); err == nil {
		t.Errorf("without a count: %+v", u)
	}
}

// A thread that is in another group than its process, or may use other CPUs, is seen.
func TestHeldThreads(t *testing.T) {
	for what, c := range map[string]struct {
		mounts, in, allowed string
		want                bool
	}{
		"there":               {mountsV2, "0::/tare-a", "2-3", true},
		"below":               {mountsV2, "0::/tare-a/b", "3", true},
		"beside":              {mountsV2, "0::/tare-ab", "2-3", false},
		"the root":            {mountsV2, "0::/", "2-3", false},
		"other CPUs":          {mountsV2, "0::/tare-a", "1-3", false},
		"another CPU set":     {mountsHybrid, "12:cpuset:/\n5:cpu,cpuacct:/tare-a\n4:memory:/", "2-3", false},
		"counted elsewhere":   {mountsHybrid, "12:cpuset:/tare-a\n5:cpu,cpuacct:/\n4:memory:/", "2-3", false},
		"there, in version 1": {mountsHybrid, "12:cpuset:/tare-a\n5:cpu,cpuacct:/tare-a\n4:memory:/", "2-3", true},
	} {
		whole := "0::/tare-a"
		if c.mounts == mountsHybrid {
			whole = fmt.Sprintf(cgroupV1, "/tare-a")
		}
		m := process(c.mounts, whole, "2-3")
		m.Put("/proc/7/task/8/cgroup", c.in)
		m.Put("/proc/7/task/8/status", "Cpus_allowed_list:\t"+c.allowed)
		got, err := m.heldAt(t).holds("7/task/8", []int{2, 3})
		if err != nil || got != c.want {
			t.Errorf("%s: %t, %v", what, got, err)
		}
	}
}

// A process of this host is held where it was put, and is missed when it leaves.
func TestHeldHere(t *testing.T) {
	require.Root(t)
	hs, err := Mounted()
	if err != nil {
		t.Fatal(err)
	}
	h := hs.V1("cpuset")
	if h == nil {
		t.Skip("no hierarchy of version 1 has the controller cpuset")
	}
	online, err := proc.OnlineCPUs()
	if err != nil {
		t.Fatal(err)
	}
	dir, cpus := makeGroup(t, h.At, "held"), online[len(online)-1:]
	for file, value := range map[string]string{"cpuset.mems": "0", "cpuset.cpus": notebook.FormatCPUList(cpus)} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	p := cmd.Process.Pid
	enter(t, dir, p)
	held, err := HeldAt(p)
	if err != nil || held.Set.Dir != dir {
		t.Fatalf("%+v, %v; want %s", held, err, dir)
	}
	if got, err := held.CPUs(); err != nil || !slices.Equal(got, cpus) {
		t.Errorf("CPUs %v, %v; want %v", got, err, cpus)
	}
	if left, err := held.Left([]int{p}, cpus); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	enter(t, h.At, p)
	if left, err := held.Left([]int{p}, cpus); err != nil || !slices.Equal(left, []int{p}) {
		t.Errorf("left: %v, %v; want %d", left, err, p)
	}
	enter(t, dir, p)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// It ends, and nobody has waited for it.
	if err := unix.Waitid(unix.P_PID, p, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if left, err := held.Left([]int{p}, cpus); err != nil || len(left) > 0 {
		t.Errorf("left by its end: %v, %v", left, err)
	}
}

// A group in which a thread of this process started a program is removed as soon as the thread ends.
func TestRemoveAfterAThread(t *testing.T) {
	require.Root(t)
	hs, err := Mounted()
	if err != nil {
		t.Fatal(err)
	}
	h := hs.V1("cpuacct")
	if h == nil {
		t.Skip("no hierarchy of version 1 counts CPU time")
	}
	dir := makeGroup(t, h.At, "thread")
	in, leave := make(chan error), make(chan bool)
	go func() {
		_ = proc.Apart(func() error { // never the first thread, which would stay
			in <- os.WriteFile(filepath.Join(dir, "tasks"), []byte("0"), 0)
			<-leave
			return nil
		})
	}()
	if err := <-in; err != nil {
		t.Fatal(err)
	}
	if err := unix.Rmdir(dir); err != unix.EBUSY {
		t.Fatalf("rmdir of a group with a thread in it: %v", err)
	}
	if err := killAll(testContext(t), dir); err != nil {
		t.Errorf("next to a thread of this process: %v", err)
	}
	close(leave)
	if err := Remove(testContext(t), dir); err != nil {
		t.Error(err)
	}
}

func FuzzUsedByCPU(f *testing.F) {
	f.Add("1 2", 2)
	f.Add("18446744073709551615 1", 2)
	f.Add(strings.Repeat("72057594037927935 ", 64), 64)
	f.Fuzz(func(t *testing.T, text string, n int) {
		var cpus []int
		for cpu := range max(0, min(n, 1024)) {
			cpus = append(cpus, cpu)
		}
		var u Used
		if u.parse(text, cpus) != nil {
			return
		}
		var all time.Duration
		for _, by := range u.By {
			if all += by; by < 0 {
				t.Fatalf("%v on a CPU", by)
			}
		}
		if len(u.By) != len(cpus) || all != u.All {
			t.Fatalf("%+v of %d CPUs", u, len(cpus))
		}
	})
}
