//go:build linux

package engine

import (
	"testing"

	"tare/lab/cgroup"
)

// A host that cannot hold a guest to its CPUs, or cannot show that it stayed there, says so.
func TestHolding(t *testing.T) {
	v1 := func(at string, controllers ...string) cgroup.Hierarchy {
		return cgroup.Hierarchy{At: at, Controllers: controllers}
	}
	v2 := func(controllers ...string) cgroup.Hierarchy {
		return cgroup.Hierarchy{At: "unified", V2: true, Controllers: controllers}
	}
	for what, c := range map[string]struct {
		has  cgroup.Hierarchies
		want []string
	}{
		"version 1":              {cgroup.Hierarchies{v1("cpu", "cpu"), v1("cpuset", "cpuset"), v1("cpuacct", "cpuacct"), v2("hugetlb")}, []string{"cpuset", "cpuacct"}},
		"version 1, as systemd":  {cgroup.Hierarchies{v1("cpu,cpuacct", "cpu", "cpuacct"), v1("cpuset", "cpuset"), v2()}, []string{"cpuset", "cpu,cpuacct"}},
		"version 1, in one":      {cgroup.Hierarchies{v1("all", "cpuset", "cpu", "cpuacct")}, []string{"all"}},
		"version 2":              {cgroup.Hierarchies{v2("cpuset", "cpu", "memory")}, []string{"unified"}},
		"version 2 without them": {cgroup.Hierarchies{v2("memory", "pids")}, nil},
		"nothing counts":         {cgroup.Hierarchies{v1("cpuset", "cpuset"), v1("memory", "memory"), v2("hugetlb")}, nil},
		"no cgroups":             {nil, nil},
	} {
		got, why := holding(c.has)
		if len(got) != len(c.want) || (why == "") != (c.want != nil) {
			t.Errorf("%s: %v, %q; want %v, or why not", what, got, why, c.want)
			continue
		}
		for i, h := range got {
			if h.At != c.want[i] {
				t.Errorf("%s: %s, want %s", what, h.At, c.want[i])
			}
		}
	}
}
