//go:build linux

package session

import (
	"context"
	"errors"
	"slices"
	"testing"

	"tare/lab/engine"
	"tare/lab/engine/qemu"
	"tare/lab/host"
	"tare/lab/journal"
	"tare/lab/ksm"
	"tare/lab/network"
	"tare/lab/noise"
	"tare/notebook"
)

// On a host whose cores have two threads each, a load beside the guest on its own cores would be measured with it.
func TestALoadIsApartFromItsGuest(t *testing.T) {
	var cpus []notebook.CPU
	var all []int
	for id := range 8 { // four cores, numbered as Intel's are
		cpus, all = append(cpus, notebook.CPU{ID: id, Core: id % 4}), append(all, id)
	}
	for _, c := range []struct{ all, its, want []int }{
		{all, []int{3}, []int{0, 1, 2, 4, 5, 6}},
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
	l.regrow = func(context.Context) error {
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
	if err := l.size(t.Context(), 0); err != nil || l.torn || l.gone != nil || l.regrow != nil {
		t.Errorf("the third try: %v, without %d", err, l.gone)
	}
}

// What the host has of its own is said to be put back, and what Tare made to be removed.
func TestWhatWasUndone(t *testing.T) {
	for want, e := range map[string]journal.Entry{
		"put back: setting /proc/sys/kernel/randomize_va_space": {Kind: noise.KindSetting, Target: "/proc/sys/kernel/randomize_va_space"},
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
