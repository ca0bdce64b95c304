//go:build linux

package cgroup

import (
	"testing"

	"tare/lab/proc/proctest"
)

func TestHierarchies(t *testing.T) {
	tree := proctest.New()
	tree.Put("/proc/self/mountinfo", "24 23 0:21 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"+
		"25 23 0:21 / /mnt/again rw shared:1 - cgroup cgroup rw,cpu,cpuacct\n"+
		"26 23 0:22 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n27 1 8:1 / / rw - ext4 /dev/vda rw")
	mounts, err := tree.Mounts()
	if err != nil {
		t.Fatal(err)
	}
	hs := hierarchies(mounts)
	if len(hs) != 2 || hs[0].V2 || hs[0].At != "/sys/fs/cgroup/cpu,cpuacct" || !hs[0].Has("cpu") || !hs[1].V2 {
		t.Errorf("%+v", hs)
	}
	if hs.V1("cpu") == nil || hs.V1("memory") != nil || !hs.Unified() {
		t.Errorf("%+v: want cpu in version 1 and memory in none", hs)
	}
}
