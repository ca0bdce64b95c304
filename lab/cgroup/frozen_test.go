//go:build linux

package cgroup

import "testing"

func TestFrozen(t *testing.T) {
	frozen := process(mountsV2, "0::/pod/app", "0-15")
	frozen.Put("/sys/fs/cgroup/pod/app/cgroup.events", "populated 1\nfrozen 1\n")
	running := process(mountsV2, "0::/pod/app", "0-15")
	running.Put("/sys/fs/cgroup/pod/app/cgroup.events", "populated 1\nfrozen 0\n")
	for want, m := range map[bool]machine{true: frozen, false: running} {
		if got, err := of(m.Tree.Tree).frozen("7"); got != want || err != nil {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	}
}
