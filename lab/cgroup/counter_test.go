//go:build linux

package cgroup

import (
	"strings"
	"testing"
	"time"
)

// A group counts its processes' CPU time in either version. It is found by its name, from a process in it or below it.
func TestCounterOf(t *testing.T) {
	v2 := process(mountsV2, "0::/pod/app", "0-15")
	v2.Put("/sys/fs/cgroup/pod/cpu.stat", "usage_usec 5000000\nuser_usec 3000000\nsystem_usec 2000000\nnr_periods 0\n")
	v1 := process(mountsHybrid, strings.ReplaceAll(cgroupV1, "%[1]s", "/g"), "0-15")
	v1.Put("/sys/fs/cgroup/cpu,cpuacct/g/cpuacct.usage", "5000000000\n")
	v1.Put("/sys/fs/cgroup/cpu,cpuacct/g/cpuacct.stat", "user 300\nsystem 200\n")
	wrong := process(mountsV2, "0::/pod/app", "0-15")
	wrong.Put("/sys/fs/cgroup/pod/cpu.stat", "usage_usec 5000000\nuser_usec -1\nsystem_usec 1\n")
	short := process(mountsV2, "0::/pod/app", "0-15")
	short.Put("/sys/fs/cgroup/pod/cpu.stat", "usage_usec 5000000\n")
	for what, c := range map[string]struct {
		m    machine
		name string
		fail bool
	}{
		"version 2, above":  {m: v2, name: "pod"},
		"version 1":         {m: v1, name: "g"},
		"a negative time":   {m: wrong, name: "pod", fail: true},
		"without user time": {m: short, name: "pod", fail: true},
	} {
		group, err := of(c.m.Tree.Tree).counterOf("7", c.name)
		if err != nil || group == nil {
			t.Errorf("%s: %+v, %v", what, group, err)
			continue
		}
		got, err := group.Spent()
		if want := (Spent{5 * time.Second, 3 * time.Second, 2 * time.Second}); (err != nil) != c.fail || !c.fail && got != want {
			t.Errorf("%s: %+v, %v; want %+v", what, got, err, want)
		}
	}
	if group, err := of(v2.Tree.Tree).counterOf("7", "cgroup"); group != nil || err != nil {
		t.Errorf("the root: %+v, %v", group, err)
	}
}
