//go:build linux

package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tare/internal/require"
	"tare/lab/journal"
	"tare/notebook"
)

func TestSmallerKeepsWholeCores(t *testing.T) {
	h := notebook.Host{}
	for id := range 8 { // two sockets of two cores with two threads, numbered as Intel's are
		h.CPUs = append(h.CPUs, notebook.CPU{ID: id, Core: id % 4, Socket: id % 4 / 2, Node: id % 4 / 2})
	}
	for n, want := range map[int][]int{1: {0}, 2: {0, 4}, 4: {0, 1, 4, 5}, 8: {0, 1, 2, 3, 4, 5, 6, 7}} {
		stay, leave, err := Smaller(h, n)
		if err != nil || !slices.Equal(stay, want) || len(stay)+len(leave) != 8 {
			t.Errorf("a host of %d: %v stay, %v leave, %v; want %v to stay", n, stay, leave, err, want)
		}
	}
	for n, want := range map[int][]int{1: {1, 2, 3, 4, 5, 6, 7}, 2: {2, 3, 4, 5, 6, 7}, 3: {3, 4, 5, 6, 7}, 5: {5, 6, 7}, 8: nil} {
		if got := Others(h, n); !slices.Equal(got, want) {
			t.Errorf("a machine of %d would not have %v, want %v", n, got, want)
		}
	}
	for _, n := range []int{0, 9} {
		if _, _, err := Smaller(h, n); err == nil {
			t.Errorf("a host of %d CPUs out of 8: no error", n)
		}
	}
}

// TestTakeOffline takes a CPU from this host, and sees that a cgroup's CPU set, from which the kernel takes it for
// good, has it again afterwards: once in order, once as after a crash.
func TestTakeOffline(t *testing.T) {
	require.That(t, os.Geteuid() == 0, "root, to take a CPU offline")
	online := func() []int {
		b, err := os.ReadFile(cpuFolder + "/online")
		if err != nil {
			t.Fatal(err)
		}
		cpus, err := notebook.ParseCPUList(strings.TrimSpace(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		return cpus
	}
	all := online()
	require.That(t, len(all) > 1, "two CPUs")
	cpu := all[len(all)-1]
	_, err := os.Stat(onlineFile(cpu))
	require.That(t, err == nil, "a CPU that can go offline")

	var sets []string // of a cgroup, and of one in it whose file's path comes before
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cpuset", "cpuset.cpus")); err == nil {
		dir, err := os.MkdirTemp(filepath.Join(cgroupRoot, "cpuset"), "tare-test-")
		if err != nil {
			t.Fatal(err)
		}
		child := filepath.Join(dir, "0")
		if err := os.Mkdir(child, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := errors.Join(os.Remove(child), os.Remove(dir)); err != nil {
				t.Error(err)
			}
		})
		for _, d := range []string{dir, child} {
			set := filepath.Join(d, "cpuset.cpus")
			if err := os.WriteFile(set, []byte(notebook.FormatCPUList(all)), 0o644); err != nil {
				t.Fatal(err)
			}
			sets = append(sets, set)
		}
	}
	whole := func(when string) {
		t.Helper()
		if got := online(); !slices.Equal(got, all) {
			t.Errorf("%s: online are %v, want %v", when, got, all)
		}
		for _, set := range sets {
			if b, err := os.ReadFile(set); err != nil || strings.TrimSpace(string(b)) != notebook.FormatCPUList(all) {
				t.Errorf("%s: %s has %q, %v, want %s", when, set, b, err, notebook.FormatCPUList(all))
			}
		}
	}

	state := t.TempDir()
	j, err := journal.Open(state)
	if err != nil {
		t.Fatal(err)
	}
	restore, err := TakeOffline(t.Context(), j, []int{cpu})
	if err != nil {
		t.Fatal(err)
	}
	if got := online(); slices.Contains(got, cpu) {
		t.Errorf("online are %v after CPU %d was taken offline", got, cpu)
	}
	if err := restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	whole("given back")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}

	if j, err = journal.Open(state); err != nil {
		t.Fatal(err)
	}
	if _, err := TakeOffline(t.Context(), j, []int{cpu}); err != nil {
		t.Fatal(err)
	}
	// As a crash does: the lock is gone, the entry stands.
	if err := j.Close(); err == nil {
		t.Error("a journal with an open change is closed, and nothing is said of it")
	}
	undone, err := journal.Recover(t.Context(), state, Undo())
	if err != nil || len(undone) != 1 || undone[0].Kind != KindOffline {
		t.Errorf("recovered %v, %v; want the CPU", undone, err)
	}
	whole("after a crash")
}

func TestACPUThatCannotGo(t *testing.T) {
	require.That(t, os.Geteuid() == 0, "root, to write in the journal's folder")
	j, err := journal.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TakeOffline(context.Background(), j, []int{1 << 15}); err == nil || !strings.Contains(err.Error(), "cannot go offline") {
		t.Errorf("a CPU that is not there: %v, want that it cannot go offline", err)
	}
	if err := j.Close(); err != nil {
		t.Errorf("left in the journal: %v", err)
	}
}

// Files of CPU sets sort in another order than their cgroups: written so, a child's set comes before its parent has it.
func TestParentsFirst(t *testing.T) {
	docker := "/sys/fs/cgroup/cpuset/docker"
	want := []string{docker + "/cpuset.cpus", docker + "/0a1b/cpuset.cpus", docker + "/0a1b/a/cpuset.cpus", docker + "/f00d/cpuset.cpus"}
	sets := map[string]string{}
	for _, path := range want {
		sets[path] = "0-1"
	}
	if got := parentsFirst(sets); !slices.Equal(got, want) {
		t.Errorf("the order is %q, want %q", got, want)
	}
}

func TestProcessesThatWouldLoseTheirCPUs(t *testing.T) {
	for _, c := range []struct {
		set, procs string
		refused    bool
	}{{"1", "17\n", true}, {"2-3", "17\n", false}, {"1", "", false}, {"0-1", "17\n", false}, {"1-2", "17\n", true}} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(c.procs), 0o644); err != nil {
			t.Fatal(err)
		}
		err := bereft(map[string]string{filepath.Join(dir, "cpuset.cpus"): c.set}, []int{1, 2})
		if (err != nil) != c.refused || c.refused && !strings.Contains(err.Error(), dir) {
			t.Errorf("CPUs %s, processes %q: %v", c.set, c.procs, err)
		}
	}
}
