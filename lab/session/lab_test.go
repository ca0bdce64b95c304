//go:build linux

package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/engine/bare"
	"tare/lab/engine/qemu"
	"tare/lab/host"
	"tare/lab/hugepages"
	"tare/lab/journal"
	"tare/lab/ksm"
	"tare/lab/network"
	"tare/lab/noise"
	"tare/lab/workload"
	"tare/notebook"
)

// On a host with two threads a core, a load on the guest's own cores would be measured together with the guest.
func TestALoadIsApartFromItsGuest(t *testing.T) {
	var cpus []notebook.CPU
	var all []int
	for id := range 8 { // four cores, numbered as Intel's are
		cpus, all = append(cpus, notebook.CPU{ID: id, Core: id % 4}), append(all, id)
	}
	for _, c := range []struct{ all, its, want []int }{
		{all, []int{3}, []int{1, 2, 5, 6}}, // half of the host's, of whole cores
		{all, []int{1, 2, 3}, []int{0, 4}},
		{all, []int{0, 1, 2, 3}, []int{4, 5, 6, 7}}, // there are no other cores
		{all, all, nil},
		{[]int{1, 2, 3, 7}, []int{3}, []int{1, 2}}, // CPUs that Tare may not use are none
	} {
		if got := apart(cpus, c.all, c.its); !slices.Equal(got, c.want) {
			t.Errorf("of %v, with the guest on %v, the load has %v, want %v", c.all, c.its, got, c.want)
		}
	}
}

// A host whose CPUs did not all come back is of no known size: nothing may be measured on it as if it were.
func TestAHostThatIsNotWholeAgain(t *testing.T) {
	stuck := errors.New("CPU 1 cannot come back")
	tries := 0
	l := &Lab{host: notebook.Host{CPUs: make([]notebook.CPU, 2)}, gone: []int{1}}
	l.restoreCPUs = func(context.Context) error {
		if tries++; tries < 3 {
			return stuck
		}
		return nil
	}
	for range 2 {
		if err := l.size(t.Context(), 0); !errors.Is(err, stuck) {
			t.Fatalf("made whole: %v, want %v", err, stuck)
		}
		if !l.torn {
			t.Fatal("the host counts as whole, or as smaller")
		}
	}
	if err := l.size(t.Context(), 0); err != nil || l.torn || l.gone != nil || l.restoreCPUs != nil {
		t.Errorf("the third try: %v, without %d", err, l.gone)
	}
}

// starved is an engine whose guests need more memory than is left while any is withheld.
type starved struct{ pool string }

var errMade = errors.New("it has enough")

func (s starved) Provision(context.Context, engine.Spec) (engine.Guest, error) {
	b, err := os.ReadFile(s.pool)
	switch {
	case err != nil:
		return nil, err
	case strings.TrimSpace(string(b)) != "0":
		return nil, fmt.Errorf("starting the ruler: %w", unix.ENOMEM)
	}
	return nil, errMade
}

// A guest that cannot be made with the memory that is left gets all of it, its record says so, and no other guest of its size has less.
func TestAGuestThatNeedsTheWithheldMemory(t *testing.T) {
	root, state := t.TempDir(), t.TempDir()
	pool := filepath.Join(root, "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
	for path, text := range map[string]string{
		pool: "0", filepath.Join(root, "proc/sys/vm/drop_caches"): "0",
		filepath.Join(root, "proc/meminfo"): "MemTotal: 16777216 kB\nMemAvailable: 16000000 kB\nHugepagesize: 2048 kB\nHugetlb: 0 kB",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	l := newLab(func(string) {})
	l.memory = hugepages.Tree(root)
	var err error
	if l.env.Journal, err = journal.Open(state); err != nil {
		t.Fatal(err)
	}
	if l.host, err = host.Inspect(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.engines[made{bare.Kind.String(), ""}] = starved{pool}
	bm := notebook.Treatment{Platform: notebook.BM, Instance: notebook.Instance{Cores: 1, Memory: 1 << 30}, MemoryWithheld: true}
	w := &workload.Ready{Workload: &workload.Workload{}}
	if _, err := l.sizeFor(t.Context(), bm, false); err != nil || l.kept.held == nil || !withheld(l.kept.note, 13) {
		t.Fatalf("%v, %+v, want 13 of 16 GB withheld", err, l.kept)
	}
	for range 2 {
		if _, err := l.Provision(t.Context(), crowd.Want{Treatment: bm, ID: "x", Work: w}); !errors.Is(err, errMade) {
			t.Fatalf("got %v, want that it has enough", err)
		}
		if notes, err := l.sizeFor(t.Context(), bm, false); err != nil || len(notes) != 1 || !notes[0].Is("memory-not-withheld") {
			t.Errorf("notes %q, %v", notes, err)
		}
	}
	large := bm
	large.Instance.Memory = 2 << 30
	if notes, err := l.sizeFor(t.Context(), large, false); err != nil || len(notes) != 1 || !withheld(notes[0], 12) {
		t.Errorf("of another size: %q, %v", notes, err)
	}
	large.Instance.Memory = 16 << 30
	if notes, err := l.sizeFor(t.Context(), large, false); err != nil || len(notes) != 1 || !notes[0].Is("memory-not-withheld") || !strings.HasPrefix(fmt.Sprint(notes[0].Args["cause"]), "the host has 16.0 GB, and an instance with 16.0 GB") {
		t.Errorf("as large as the host: %q, %v", notes, err)
	}
	bm.MemoryWithheld = false
	if notes, err := l.sizeFor(t.Context(), bm, false); err != nil || len(notes) > 0 {
		t.Errorf("where it was not asked for: %q, %v", notes, err)
	}
	if b, err := os.ReadFile(pool); err != nil || string(b) != "0" {
		t.Errorf("in the end %q, %v huge pages", b, err)
	}
	if err := l.env.Journal.Close(); err != nil {
		t.Error(err)
	}
}

// What the host has of its own is said to be put back, and what Tare made to be removed.
func TestWhatWasUndone(t *testing.T) {
	for want, e := range map[string]journal.Entry{
		"put back: setting /proc/sys/kernel/randomize_va_space":                            {Kind: noise.KindSetting, Target: "/proc/sys/kernel/randomize_va_space"},
		"put back: withheld memory /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": {Kind: hugepages.KindWithheld, Target: "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"},
		"put back: CPUs 2-3":                    {Kind: host.KindOffline, Target: "2-3"},
		"put back: ksm /sys/kernel/mm/ksm/run":  {Kind: ksm.Kind, Target: "/sys/kernel/mm/ksm/run"},
		"put back: network-forwarding eth0":     {Kind: network.KindForwarding, Target: "eth0"},
		"put back: huge-pages nr_hugepages":     {Kind: qemu.KindHugePages, Target: "nr_hugepages"},
		"removed: guest-folder /var/lib/tare/x": {Kind: engine.KindFolder, Target: "/var/lib/tare/x"},
	} {
		if got := undone(e).String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if all := removed([]string{"images/half"}); len(all) != 1 || all[0].String() != "removed: images/half" {
		t.Errorf("%v", all)
	}
}

// withheld reports whether a note says that this many GB of the host's memory were withheld.
func withheld(note *notebook.Message, gb float64) bool {
	return note.Is("memory-withheld") && note.Args["withheld"] == gb*(1<<30)
}
