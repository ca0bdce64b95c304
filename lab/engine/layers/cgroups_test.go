//go:build linux

package layers

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/notebook"
)

func TestSettings(t *testing.T) {
	v1 := t.TempDir()
	for file, text := range map[string]string{"cpuset.mems": "0-1\n", "memory.memsw.limit_in_bytes": "9223372036854771712\n"} {
		if err := os.WriteFile(filepath.Join(v1, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := cgroup.Hierarchy{At: v1, Controllers: []string{"rw", "cpu", "cpuset", "memory"}}
	unified := cgroup.Hierarchy{At: "/sys/fs/cgroup", V2: true, Controllers: []string{"cpuset", "cpu", "io", "memory", "pids"}}
	s := engine.Spec{CPUs: []int{2, 3}, Instance: notebook.Instance{Cores: 2, Memory: 1 << 30}}
	swap := []string{"memory.swap.max 0"}
	if _, err := os.Stat("/proc/swaps"); err != nil {
		swap = nil
	}
	for _, c := range []struct {
		layer string
		in    cgroup.Hierarchy
		want  []string
	}{
		{"cgroup", old, []string{"cpuset.cpus 2-3", "cpuset.mems 0-1"}},
		{"cgroup", unified, []string{"cpuset.cpus 2-3"}},
		{"quota", old, []string{"cpuset.cpus 2-3", "cpuset.mems 0-1", "cpu.cfs_period_us 100000", "cpu.cfs_quota_us 200000"}},
		{"quota", unified, []string{"cpuset.cpus 2-3", "cpu.max 200000 100000"}},
		{"bridge", old, []string{"cpuset.cpus 2-3", "cpuset.mems 0-1", "cpu.cfs_period_us 100000", "cpu.cfs_quota_us 200000",
			"memory.limit_in_bytes 1073741824", "memory.memsw.limit_in_bytes 1073741824"}},
		{"memory", unified, append([]string{"cpuset.cpus 2-3", "cpu.max 200000 100000", "memory.max 1073741824"}, swap...)},
		{"memory", cgroup.Hierarchy{At: "/sys/fs/cgroup/pids", Controllers: []string{"pids"}}, nil},
	} {
		g := &guest{layer: c.layer}
		set, err := g.settings(c.in, s)
		var got []string
		for _, one := range set {
			got = append(got, one.File+" "+one.Value)
		}
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s, v2 %t: %v, %v; want %v", c.layer, c.in.V2, got, err, c.want)
		}
	}
}
