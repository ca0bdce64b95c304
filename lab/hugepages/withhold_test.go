//go:build linux

package hugepages

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tare/internal/require"
	"tare/lab/journal"
)

// machine is a tree with the kernel's files of a host with nodes of so many GB, with half a GB of each in use.
func machine(t *testing.T, nodes ...int64) Tree {
	t.Helper()
	root := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text+"\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	var total int64
	for i, n := range nodes {
		total += n << 20
		dir := fmt.Sprintf("/sys/devices/system/node/node%d", i)
		put(dir+"/meminfo", fmt.Sprintf("Node %d MemTotal: %d kB\nNode %[1]d MemFree: %[3]d kB\nNode %[1]d Active(file): 1024 kB\nNode %[1]d Inactive(file): 0 kB", i, n<<20, n<<20-1<<19-1024))
		put(dir+"/hugepages/hugepages-2048kB/nr_hugepages", "3")
	}
	put("/proc/meminfo", fmt.Sprintf("MemTotal: %d kB\nMemAvailable: %d kB\nHugepagesize: 2048 kB\nHugetlb: 0 kB", total, total-int64(len(nodes))<<19))
	put("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "3")
	put("/proc/sys/vm/drop_caches", "0")
	return Tree(root)
}

// pages are how many huge pages each node has, and the host.
func (t Tree) counts(test *testing.T) (all []int64) {
	test.Helper()
	for _, pattern := range []string{"sys/devices/system/node/node*/hugepages/*/nr_hugepages", "sys/kernel/mm/hugepages/*/nr_hugepages"} {
		files, err := filepath.Glob(filepath.Join(string(t), pattern))
		if err != nil {
			test.Fatal(err)
		}
		for _, f := range files {
			n, err := number(f)
			if err != nil {
				test.Fatal(err)
			}
			all = append(all, n)
		}
	}
	return all
}

// The host is left what the instance and all else need, far nodes give theirs first, and all is as before afterwards: in order, and when the run died.
func TestMemoryIsWithheldAndGivenBack(t *testing.T) {
	const gbPages = 1 << 9 // of 2 MiB
	for _, c := range []struct {
		nodes    []int64
		instance int64
		near     []int
		want     []int64 // more huge pages, by node and of the host
	}{
		{[]int64{32}, 8, []int{0}, []int64{0, 22 * gbPages}},
		{[]int64{32}, 1, nil, []int64{0, 29 * gbPages}},
		// Of the far nodes all but the half GB in use and a quarter that they keep; the rest of 64 - 8 - 3 GB is the near one's.
		{[]int64{16, 16, 16, 16}, 8, []int{0}, []int64{53*gbPages - 3*(15*gbPages+gbPages/4), 15*gbPages + gbPages/4, 15*gbPages + gbPages/4, 15*gbPages + gbPages/4, 0}},
		{[]int64{16, 16}, 24, []int{1}, []int64{6 * gbPages, 0, 0}},
		{[]int64{16, 16}, 8, []int{0, 1}, []int64{22*gbPages - (15*gbPages + gbPages/4), 15*gbPages + gbPages/4, 0}},
	} {
		tree, state := machine(t, c.nodes...), t.TempDir()
		before := tree.counts(t)
		check := func(when string, more []int64) {
			t.Helper()
			for i, n := range tree.counts(t) {
				if n != before[i]+more[i] {
					t.Errorf("%d GB of %v, near %v, %s: pool %d has %d more, want %d", c.instance, c.nodes, c.near, when, i, n-before[i], more[i])
				}
			}
		}
		j, err := journal.Open(state)
		if err != nil {
			t.Fatal(err)
		}
		w, err := tree.Withhold(t.Context(), j, c.instance<<30, c.near)
		if err != nil {
			t.Fatal(err)
		}
		check("withheld", c.want)
		var sum int64
		for _, n := range c.want {
			sum += n
		}
		if w.Bytes != sum<<21 || w.Missing != 0 {
			t.Errorf("%d GB of %v: %d bytes are withheld and %d missing, want %d", c.instance, c.nodes, w.Bytes, w.Missing, sum<<21)
		}
		if got := tree.text(t, "/proc/sys/vm/drop_caches"); got != "3" {
			t.Errorf("the page cache was not emptied: %q", got)
		}
		if err := w.Undo(t.Context()); err != nil {
			t.Fatal(err)
		}
		check("given back", make([]int64, len(before)))
		if _, err := tree.Withhold(t.Context(), j, c.instance<<30, c.near); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err == nil { // the run dies
			t.Error("the journal is closed without a word, and memory is withheld")
		}
		if _, err := journal.Recover(t.Context(), state, tree.Undo()); err != nil {
			t.Fatal(err)
		}
		check("recovered", make([]int64, len(before)))
	}
}

func (t Tree) text(test *testing.T, name string) string {
	test.Helper()
	b, err := os.ReadFile(filepath.Join(string(t), name))
	if err != nil {
		test.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// What cannot be withheld is an error, and changes nothing.
func TestMemoryThatCannotBeWithheld(t *testing.T) {
	j, err := journal.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tree := machine(t, 8)
	if _, err := tree.Withhold(t.Context(), j, 6<<30, nil); err == nil || !strings.Contains(err.Error(), "the host has 8.0 GB, and an instance with 6.0 GB") {
		t.Errorf("an instance that needs the host: %v", err)
	}
	if got := tree.text(t, "/proc/sys/vm/drop_caches"); got != "0" {
		t.Error("the page cache was emptied for nothing")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tree.Withhold(gone, j, 1<<30, nil); !errors.Is(err, context.Canceled) || !slices.Equal(tree.counts(t), []int64{3, 3}) {
		t.Errorf("cancelled: %v, pools %v", err, tree.counts(t))
	}
	if err := os.WriteFile(filepath.Join(string(tree), "/proc/meminfo"), []byte("MemTotal: 1 kB\nMemAvailable: 1 kB\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Withhold(t.Context(), j, 1<<30, nil); err == nil || !strings.Contains(err.Error(), "CONFIG_HUGETLBFS") {
		t.Errorf("a kernel without huge pages: %v", err)
	}
	other := filepath.Join(t.TempDir(), "nr_hugepages")
	for target, from := range map[string]string{other: "1", filepath.Join(string(tree), "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"): "-1"} {
		if err := tree.giveBack(t.Context(), journal.Entry{Kind: KindWithheld, Target: target, Detail: map[string]string{detailFrom: from}}); err == nil {
			t.Errorf("%s <- %s: no error", target, from)
		}
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

// Tare asks a kernel that stops early again. Tare has one without more compact its memory once.
func TestAKernelThatHasNoMoreHugePages(t *testing.T) {
	for _, c := range []struct{ from, by, room, slow, want int64 }{
		{0, 100, 1000, 100, 100},
		{5, 100, 1000, 7, 100}, // a signal ends each request early
		{5, 100, 60, 100, 55},  // there is no room for more
		{5, 100, 60, 0, 0},     // nor for any
		{5, 0, 60, 10, 0},
	} {
		has, compacted := c.from, 0
		got, err := raise(t.Context(), c.from, c.by, 16, func(n int64) (int64, error) {
			has = min(n, has+c.slow, max(c.room, c.from))
			return has, nil
		}, func() error { compacted++; return nil })
		if err != nil || got != c.want || has != c.from+got || compacted > 1 {
			t.Errorf("%+v: %d more, %v, compacted %d times", c, got, err, compacted)
		}
	}
	// Memory that compaction finds is taken.
	has, room := int64(0), int64(10)
	got, err := raise(t.Context(), 0, 30, 8, func(n int64) (int64, error) { has = min(n, room); return has, nil }, func() error { room = 20; return nil })
	if err != nil || got != 20 {
		t.Errorf("after compaction %d, %v, want 20", got, err)
	}
	broken := errors.New("broken")
	if got, err := raise(t.Context(), 0, 30, 8, func(n int64) (int64, error) {
		if n > 8 {
			return 0, broken
		}
		return n, nil
	}, func() error { return nil }); !errors.Is(err, broken) || got != 8 {
		t.Errorf("%d, %v, want 8 and that it broke", got, err)
	}
}

// However the host's memory is used, the rest holds the instance and, in addition, what is in use plus 1 GB, or at least 2 GB.
func TestWhatIsLeft(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		m := memory{total: rng.Int64N(512 << 30), page: 2 << 20}
		m.available = rng.Int64N(m.total + 1)
		m.huge = rng.Int64N(m.total - m.available + 1)
		instance := rng.Int64N(64 << 30)
		excess := m.excess(instance)
		if excess <= 0 {
			continue
		}
		if left := m.total - m.huge - excess; left < instance+2<<30 || m.available-excess < instance+1<<30 {
			t.Fatalf("%+v, instance %d: %d are taken", m, instance, excess)
		}
	}
}

// TestThisHostsMemory withholds about a GB of this host's memory, which is back after the run died. Other programs take and free
// memory at the same time.
func TestThisHostsMemory(t *testing.T) {
	require.Root(t)
	before, err := Host.memory()
	if err != nil {
		t.Fatal(err)
	}
	const part = 1 << 30
	instance := before.excess(0) - part
	require.That(t, instance > 0, "a GB of memory to spare")
	state := t.TempDir()
	j, err := journal.Open(state)
	if err != nil {
		t.Fatal(err)
	}
	w, err := Host.Withhold(t.Context(), j, instance, nil)
	if err != nil {
		t.Fatal(err)
	}
	during, err := Host.memory()
	if err != nil {
		t.Fatal(err)
	}
	if got := during.huge - before.huge; got != w.Bytes || got == 0 || w.Left > during.total-during.huge {
		t.Errorf("%d MiB are huge pages now, and %d MiB were withheld, %d missing; %d MiB are left", got>>20, w.Bytes>>20, w.Missing>>20, w.Left>>20)
	}
	if err := j.Close(); err == nil {
		t.Error("the journal is closed without a word, and memory is withheld")
	}
	if _, err := journal.Recover(t.Context(), state, Host.Undo()); err != nil {
		t.Fatal(err)
	}
	if after, err := Host.memory(); err != nil || after.huge != before.huge {
		t.Errorf("%d MiB are huge pages afterwards, %v, want %d", after.huge>>20, err, before.huge>>20)
	}
}

// FuzzMemory: whatever the kernel's files say, it is refused or numbers come of it that can be reckoned with.
func FuzzMemory(f *testing.F) {
	f.Add("MemTotal: 9 kB\nMemAvailable: 8 kB\nHugepagesize: 2048 kB\nHugetlb: 0 kB\n", int64(1<<30))
	f.Add("Node 0 MemFree: 9 kB\nNode 0 Active(file): 1 kB\n", int64(0))
	f.Add("MemTotal: -9 kB\n", int64(0))
	f.Fuzz(func(t *testing.T, text string, instance int64) {
		if m, err := parseMemory(text); err == nil && instance >= 0 && instance < 1<<50 {
			if e := m.excess(instance); e > m.total || m.page < 1024 {
				t.Errorf("%q: %+v, %d are taken for %d", text, m, e, instance)
			}
		}
		if n, err := parseNode(text); err == nil && n < 0 {
			t.Errorf("%q: %d bytes may be taken", text, n)
		}
	})
}
