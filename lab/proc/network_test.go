//go:build linux

package proc

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestNetDevices(t *testing.T) {
	const head = "Inter-|   Receive\n face |bytes\n"
	all, err := parseNetDevices(head + "    lo: 1 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0\ncni0:1.2: 11 5 0 0 0 0 0 0 22 6 0 0 0 0 0 0\n")
	if want := []NetDevice{{"lo", 1, 2, 3, 4}, {"cni0:1.2", 11, 5, 22, 6}}; err != nil || !slices.Equal(all, want) {
		t.Errorf("%+v, %v; want %+v", all, err, want)
	}
	for _, bad := range []string{"lo 1 2 3 4 5 6 7 8 9 10", ": 1 2 3 4 5 6 7 8 9 10", "lo: 1 2 3", "lo: 1 x 3 4 5 6 7 8 9 10", "lo: -1 2 3 4 5 6 7 8 9 10"} {
		if all, err := parseNetDevices(head + bad); err == nil {
			t.Errorf("%q: %+v", bad, all)
		}
	}
}

// Numbers can be added, and an error is one line.
func FuzzNetDevices(f *testing.F) {
	f.Add("a\nb\nlo: 1 2 0 0 0 0 0 0 3 4")
	f.Fuzz(func(t *testing.T, s string) {
		all, err := parseNetDevices(s)
		if err != nil && (strings.Contains(err.Error(), "\n") || len(err.Error()) > 1000) {
			t.Errorf("%q", err)
		}
		for _, d := range all {
			if max(d.ReceivedBytes, d.ReceivedPackets, d.SentBytes, d.SentPackets) > math.MaxInt64 {
				t.Errorf("%+v", d)
			}
		}
	})
}
