//go:build linux

package cgroup

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The smallest quota on the way up is in force, with its own period.
func TestQuotaOf(t *testing.T) {
	v2 := process(mountsV2, "0::/pod/app", "0-15")
	v2.Put("/sys/fs/cgroup/pod/app/cpu.max", "max 100000\n")
	v2.Put("/sys/fs/cgroup/pod/cpu.max", "20000 10000\n")
	v2.Put("/sys/fs/cgroup/pod/cpu.max.burst", "5000\n")
	v1 := process(mountsHybrid, strings.ReplaceAll(cgroupV1, "%[1]s", "/g"), "0-15")
	v1.Put("/sys/fs/cgroup/cpu,cpuacct/g/cpu.cfs_quota_us", "50000\n")
	v1.Put("/sys/fs/cgroup/cpu,cpuacct/g/cpu.cfs_period_us", "100000\n")
	none := process(mountsV2, "0::/g", "0-15")
	two := process(mountsV2, "0::/pod/app", "0-15")
	two.Put("/sys/fs/cgroup/pod/app/cpu.max", "50000 100000\n")
	two.Put("/sys/fs/cgroup/pod/cpu.max", "50000 100000\n")
	wrong := process(mountsV2, "0::/g", "0-15")
	wrong.Put("/sys/fs/cgroup/g/cpu.max", "10000 10000\n")
	wrong.Put("/sys/fs/cgroup/g/cpu.max.burst", "many\n")
	for what, c := range map[string]struct {
		m    machine
		want *Quota
		fail bool
	}{
		"version 2, above": {m: v2, want: &Quota{Dir: "/sys/fs/cgroup/pod", Version: 2, Cores: 2, Period: 10 * time.Millisecond, Burst: 5 * time.Millisecond}},
		"version 1":        {m: v1, want: &Quota{Dir: "/sys/fs/cgroup/cpu,cpuacct/g", Version: 1, Cores: 0.5, Period: 100 * time.Millisecond}},
		"the same above":   {m: two, want: &Quota{Dir: "/sys/fs/cgroup/pod/app", Version: 2, Cores: 0.5, Next: 0.5, Period: 100 * time.Millisecond}},
		"none":             {m: none},
		"a wrong burst":    {m: wrong, fail: true},
	} {
		got, err := of(c.m.Tree.Tree).quotaOf("7")
		if (err != nil) != c.fail || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", what, got, err, c.want)
		}
	}
}

// The memory is that of the nearest group with a limit, or of the process's own.
func TestMemoryOf(t *testing.T) {
	v2 := process(mountsV2, "0::/pod/app", "0-15")
	for name, text := range map[string]string{
		"/pod/app/memory.max": "max\n", "/pod/app/memory.current": "100\n", "/pod/app/memory.stat": "file 10\n",
		"/pod/memory.max": "4096\n", "/pod/memory.current": "4000\n", "/pod/memory.stat": "anon 1\nfile 3000\nworkingset_refault_anon 2\nworkingset_refault_file 5\n",
		"/pod/memory.events": "low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\n",
	} {
		v2.Put("/sys/fs/cgroup"+name, text)
	}
	v1 := process(mountsHybrid, strings.ReplaceAll(cgroupV1, "%[1]s", "/g"), "0-15")
	for name, text := range map[string]string{
		"memory.limit_in_bytes": "9223372036854771712\n", "memory.usage_in_bytes": "8000\n", "memory.failcnt": "3\n",
		"memory.stat":        "cache 1\nworkingset_refault_file 0\ntotal_cache 7000\ntotal_workingset_refault_anon 0\ntotal_workingset_refault_file 9\n",
		"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
	} {
		v1.Put("/sys/fs/cgroup/memory/g/"+name, text)
	}
	wrong := process(mountsV2, "0::/g", "0-15")
	wrong.Put("/sys/fs/cgroup/g/memory.max", "4096\n")
	wrong.Put("/sys/fs/cgroup/g/memory.current", "4000\n")
	wrong.Put("/sys/fs/cgroup/g/memory.stat", "file\n")
	for what, c := range map[string]struct {
		m    machine
		want *Memory
		fail bool
	}{
		"version 2, the limit above": {m: v2, want: &Memory{Dir: "/sys/fs/cgroup/pod", Limit: 4096, Used: 4000, Files: 3000, AtLimit: 12, Refaults: 7, Killed: 1}},
		"version 1, without a limit": {m: v1, want: &Memory{Dir: "/sys/fs/cgroup/memory/g", Used: 8000, Files: 7000, AtLimit: 3, Refaults: 9, Killed: 2}},
		"no group counts":            {m: process(mountsV2, "0::/g", "0-15")},
		"wrong":                      {m: wrong, fail: true},
	} {
		got, err := of(c.m.Tree.Tree).memoryOf("7")
		if (err != nil) != c.fail || !c.fail && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", what, got, err, c.want)
		}
	}
}

func FuzzPairs(f *testing.F) {
	f.Add("file 3000\nanon 1\n")
	f.Add("a b c\n")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := pairs(text)
		if err == nil && len(n) > strings.Count(text, "\n")+1 {
			t.Errorf("%q: %v", text, n)
		}
		m := &Memory{Refaults: -1}
		if err := m.stat(text); err != nil && m.Files != 0 {
			t.Errorf("%q: %+v, %v", text, m, err)
		}
	})
}

// Groups are known by their inodes.
func TestInodes(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "docker", "0a"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	all, err := inodes(dir)
	if err != nil || len(all) != 3 {
		t.Fatalf("%v, %v", all, err)
	}
	names := map[string]bool{}
	for _, name := range all {
		names[name] = true
	}
	if !names["/"] || !names["/docker"] || !names["/docker/0a"] {
		t.Errorf("%v", all)
	}
}
