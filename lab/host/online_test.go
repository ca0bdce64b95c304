//go:build linux

package host

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tare/internal/require"
	"tare/lab/journal"
	"tare/lab/proc"
	"tare/notebook"
)

// A smaller host has one thread of each core, as a guest of its size has, until there are no more cores.
func TestASmallerHostHasCores(t *testing.T) {
	// The paper's host as its core count says: 56 cores with two threads, four sockets of 14. Second threads have the upper half of
	// the numbers, or stand next to the first ones.
	var halves, turns, beside []at
	for id := range 112 {
		halves = append(halves, at{id % 56 / 14, id % 56 / 14, id % 14})
		turns = append(turns, at{id % 4, id % 4, id / 4 % 14})
		beside = append(beside, at{id / 28, id / 28, id / 2 % 14})
	}
	// A host whose first CPU is not in its first socket: that CPU stays all the same.
	last := []at{{1, 1, 0}, {0, 0, 0}, {1, 1, 0}, {0, 0, 0}, {1, 1, 1}, {0, 0, 1}, {1, 1, 1}, {0, 0, 1}}
	for _, c := range []struct {
		name  string
		where []at
		want  map[int]string
	}{
		{"no SMT, in blocks", bigInBlocks(), map[int]string{1: "0", 16: "0-15", 28: "0-27", 30: "0-29", 112: "0-111"}},
		{"no SMT, in turn", bigInTurn(), map[int]string{1: "0", 3: "0,4,8", 112: "0-111"}},
		{"SMT", smt(), map[int]string{1: "0", 2: "0-1", 4: "0-3", 8: "0-7", 10: "0-9", 16: "0-15"}},
		{"the paper's, halves", halves, map[int]string{14: "0-13", 16: "0-15", 56: "0-55", 64: "0-63", 112: "0-111"}},
		{"the paper's, in turn", turns, map[int]string{2: "0,4", 14: "0,4,8,12,16,20,24,28,32,36,40,44,48,52", 56: "0-55", 112: "0-111"}},
		{"the paper's, side by side", beside, map[int]string{1: "0", 2: "0,2", 14: "0,2,4,6,8,10,12,14,16,18,20,22,24,26", 16: "0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30", 112: "0-111"}},
		{"the first CPU elsewhere", last, map[int]string{1: "0", 2: "0,4", 3: "0-1,4", 4: "0-1,4-5", 5: "0-2,4-5"}},
	} {
		h := inspect(t, machine(c.where))
		core := map[int]int{}
		for _, cpu := range h.CPUs {
			core[cpu.ID] = cpu.Core
		}
		for n := range len(c.where) + 1 {
			stay, leave, err := Smaller(h, n)
			if n == 0 {
				if err == nil {
					t.Errorf("%s: a host of no CPU: no error", c.name)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, want := notebook.FormatCPUList(stay), c.want[n]; want != "" && got != want {
				t.Errorf("%s: of a host of %d stay %s, want %s", c.name, n, got, want)
			}
			cores := map[int]bool{}
			for _, id := range stay {
				cores[core[id]] = true
			}
			all := slices.Sorted(slices.Values(slices.Concat(stay, leave)))
			if len(stay) != n || len(slices.Compact(all)) != len(c.where) || !slices.Contains(stay, 0) {
				t.Errorf("%s: of a host of %d stay %v and leave %v", c.name, n, stay, leave)
			}
			if want := min(n, len(slices.Compact(slices.Sorted(maps.Values(core))))); len(cores) != want {
				t.Errorf("%s: a host of %d has %d cores, want %d", c.name, n, len(cores), want)
			}
			// A guest of that size finds as many cores there as on the whole host.
			var left []notebook.CPU
			for _, cpu := range h.CPUs {
				if slices.Contains(stay, cpu.ID) {
					left = append(left, cpu)
				}
			}
			if guest, err := chooseCPUs(left, stay, n); err != nil || !slices.Equal(guest, stay) {
				t.Errorf("%s: a guest of %d on a host of as many has %v, %v", c.name, n, guest, err)
			}
		}
		if _, _, err := Smaller(h, len(c.where)+1); err == nil {
			t.Errorf("%s: a host of %d out of %d CPUs: no error", c.name, len(c.where)+1, len(c.where))
		}
	}
}

// TestTakeOffline takes a CPU from this host, and sees that a cgroup's CPU set and an interrupt, from which the kernel takes it for
// good, have it again afterwards: once in order, once as after a crash.
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
	irq, its := interruptOf(t, cpu)
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
		if has, err := affinityOf(irqFolder, irq); err != nil || has.Allowed != its {
			t.Errorf("%s: interrupt %d is for CPUs %s, %v, want %s", when, irq, has.Allowed, err, its)
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
	if has, err := affinityOf(irqFolder, irq); err != nil || has.Allowed == its {
		t.Errorf("interrupt %d is for CPUs %s, %v, with that CPU offline", irq, has.Allowed, err)
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
		t.Error("closing a journal with an open change: got no error")
	}
	undone, err := journal.Recover(t.Context(), state, Undo())
	if err != nil || len(undone) != 1 || undone[0].Kind != KindOffline {
		t.Errorf("recovered %v, %v; want the CPU", undone, err)
	}
	whole("after a crash")
}

// interruptOf has an interrupt served only by that CPU, until the test is over.
func interruptOf(t *testing.T, cpu int) (n int, allowed string) {
	t.Helper()
	all, err := interruptsOn(irqFolder, []int{cpu})
	if err != nil {
		t.Fatal(err)
	}
	allowed = strconv.Itoa(cpu)
	for _, n := range slices.Sorted(maps.Keys(all)) {
		file := filepath.Join(irqFolder, strconv.Itoa(n), irqAllowed)
		if err := proc.WriteSetting(file, allowed); err != nil {
			continue // the kernel manages it
		}
		t.Cleanup(func() {
			if err := proc.WriteSetting(file, all[n].Allowed); err != nil {
				t.Error(err)
			}
		})
		return n, allowed
	}
	require.That(t, false, "an interrupt that lets its CPUs be chosen")
	return 0, ""
}

// What the kernel moved is put back, what it refuses or what went stays as it is, and the error names anything else that goes wrong.
func TestInterruptsAreRestored(t *testing.T) {
	folder := t.TempDir()
	put := func(n int, allowed, served string) {
		t.Helper()
		dir := filepath.Join(folder, strconv.Itoa(n))
		err := os.MkdirAll(dir, 0o755)
		for name, text := range map[string]string{irqAllowed: allowed, irqServed: served} {
			if text != "" {
				err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o644))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put(7, "3", "3")      // only for the CPU that goes offline
	put(8, "0-3", "3")    // for any CPU, and it is on the one that goes offline
	put(9, "0-1", "0")    // on another CPU
	put(10, "0-3", "")    // the kernel does not say on which CPU
	put(11, "2-3", "2")   // goes away during the test
	put(12, "3", "3")     // becomes managed by the kernel
	put(13, "nobody", "") // appears later, in a journal's text
	if err := os.WriteFile(filepath.Join(folder, "default_smp_affinity"), []byte("f\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := interruptsOn(folder, []int{3}); err == nil || !strings.Contains(err.Error(), "interrupt 13") {
		t.Errorf("an affinity that is not a list of CPUs: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(folder, "13")); err != nil {
		t.Fatal(err)
	}
	had, err := interruptsOn(folder, []int{3})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Sorted(maps.Keys(had)), []int{7, 8, 10, 11, 12}; !slices.Equal(got, want) {
		t.Fatalf("interrupts on CPU 3: %v, want %v", got, want)
	}
	put(7, "0-2", "0")
	put(8, "0-3", "0")
	put(10, "0-2", "")
	// What the kernel manages gives EIO when it is written, as this file does.
	managed := filepath.Join(folder, "12", irqAllowed)
	if err := errors.Join(os.RemoveAll(filepath.Join(folder, "11")), os.Remove(managed), os.Symlink("/proc/version", managed)); err != nil {
		t.Fatal(err)
	}
	if err := restoreInterrupts(folder, had); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]string{7: "3", 8: "0-3", 9: "0-1", 10: "0-3"} {
		if a, err := affinityOf(folder, n); err != nil || a.Allowed != want {
			t.Errorf("interrupt %d is for CPUs %q, %v, want %s", n, a.Allowed, err, want)
		}
	}
	put(14, "0", "")
	full := filepath.Join(folder, "14", irqAllowed)
	if err := errors.Join(os.Remove(full), os.Mkdir(full, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := restoreInterrupts(folder, map[int]affinity{14: {Allowed: "3"}}); err == nil || !strings.Contains(err.Error(), "interrupt 14 cannot have its CPUs back") {
		t.Errorf("an interrupt whose file cannot be read: %v", err)
	}
	if err := restoreInterrupt(folder, 15, affinity{Allowed: "3"}); err != nil {
		t.Errorf("an interrupt that is not there: %v", err)
	}
}

// FuzzInterrupts: whatever the kernel's files say, it is read or refused, and what is read is of the CPUs.
func FuzzInterrupts(f *testing.F) {
	f.Add("3", "3")
	f.Add("0-3,8", "")
	f.Add("x", "1")
	f.Fuzz(func(t *testing.T, allowed, served string) {
		folder := t.TempDir()
		dir := filepath.Join(folder, "7")
		if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, irqAllowed), []byte(allowed), 0o644), os.WriteFile(filepath.Join(dir, irqServed), []byte(served), 0o644)); err != nil {
			t.Fatal(err)
		}
		all, err := interruptsOn(folder, []int{3})
		if err == nil && len(all) > 0 && !strings.Contains(allowed+served, "-") && !strings.Contains(allowed+served, "3") {
			t.Errorf("%q, %q: %v is of CPU 3", allowed, served, all)
		}
	})
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
		err := checkCPUsLeft(map[string]string{filepath.Join(dir, "cpuset.cpus"): c.set}, []int{1, 2})
		if (err != nil) != c.refused || c.refused && !strings.Contains(err.Error(), dir) {
			t.Errorf("CPUs %s, processes %q: %v", c.set, c.procs, err)
		}
	}
}
