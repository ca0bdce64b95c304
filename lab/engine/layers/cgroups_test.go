//go:build linux

package layers

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/lab/journal"
	"tare/notebook"
)

func TestSettings(t *testing.T) {
	v1 := t.TempDir()
	for file, text := range map[string]string{"cpuset.cpus": "0-7\n", "cpuset.mems": "0-1\n", "memory.memsw.limit_in_bytes": "9223372036854771712\n"} {
		if err := os.WriteFile(filepath.Join(v1, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := cgroup.Hierarchy{At: v1, Controllers: []string{"rw", "cpu", "cpuset", "memory"}}
	unified := cgroup.Hierarchy{At: "/sys/fs/cgroup", V2: true, Controllers: []string{"cpuset", "cpu", "io", "memory", "pids"}}
	s := engine.Spec{CPUs: []int{2, 3}, Instance: notebook.Instance{Cores: 2, Memory: 1 << 30}}
	swap := []setting{{"memory.swap.max", "0"}}
	if _, err := os.Stat("/proc/swaps"); err != nil {
		swap = nil
	}
	for _, c := range []struct {
		layer string
		in    cgroup.Hierarchy
		want  []setting
	}{
		{"cgroup", old, []setting{{"cpuset.cpus", "0-7"}, {"cpuset.mems", "0-1"}}},
		{"cgroup", unified, nil},
		{"quota", old, []setting{{"cpu.cfs_period_us", "100000"}, {"cpu.cfs_quota_us", "200000"}, {"cpuset.cpus", "0-7"}, {"cpuset.mems", "0-1"}}},
		{"quota", unified, []setting{{"cpu.max", "200000 100000"}}},
		{"cpuset", unified, []setting{{"cpu.max", "200000 100000"}, {"cpuset.cpus", "2-3"}}},
		{"bridge", old, []setting{{"cpu.cfs_period_us", "100000"}, {"cpu.cfs_quota_us", "200000"}, {"cpuset.cpus", "2-3"}, {"cpuset.mems", "0-1"},
			{"memory.limit_in_bytes", "1073741824"}, {"memory.memsw.limit_in_bytes", "1073741824"}}},
		{"memory", unified, append([]setting{{"cpu.max", "200000 100000"}, {"cpuset.cpus", "2-3"}, {"memory.max", "1073741824"}}, swap...)},
		{"memory", cgroup.Hierarchy{At: "/sys/fs/cgroup/pids", Controllers: []string{"pids"}}, nil},
	} {
		g := &guest{layer: c.layer}
		got, err := g.settings(c.in, s)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s, v2 %t: %v, %v; want %v", c.layer, c.in.V2, got, err, c.want)
		}
	}
}

// A controller is taken away again only where nobody uses it meanwhile.
func TestUndoController(t *testing.T) {
	dir := t.TempDir()
	file, other := filepath.Join(dir, "cgroup.subtree_control"), filepath.Join(dir, "system.slice", "cgroup.subtree_control")
	limit := filepath.Join(dir, "system.slice", "cpuset.cpus")
	if err := os.Mkdir(filepath.Dir(other), 0o700); err != nil {
		t.Fatal(err)
	}
	undo := func(used, cpus string) string {
		t.Helper()
		for f, text := range map[string]string{file: "", other: used, limit: cpus} {
			if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := undoController(t.Context(), journal.Entry{Target: file, Detail: map[string]string{detailController: "cpuset"}}); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got := undo("cpu memory", "\n"); got != "-cpuset" {
		t.Errorf("nobody uses it: wrote %q", got)
	}
	if got := undo("cpu cpuset", "\n"); got != "" {
		t.Errorf("another uses it: wrote %q", got)
	}
	if got := undo("", "0-1\n"); got != "" {
		t.Errorf("another, with no cgroups below it, has a limit by it: wrote %q", got)
	}
	if err := undoController(t.Context(), journal.Entry{Target: filepath.Join(dir, "gone", "cgroup.subtree_control"), Detail: map[string]string{detailController: "cpuset"}}); err != nil {
		t.Errorf("a hierarchy that is gone: %v", err)
	}
}
