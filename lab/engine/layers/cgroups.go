//go:build linux

package layers

import (
	"fmt"
	"slices"
	"strconv"

	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/lab/engine/oci/config"
)

// wanted are the controllers that a container's cgroup has: those with a limit, and those that only count.
var wanted = []string{"cpuset", "cpu", "io", "memory", "pids"}

// needs are the controllers that layers need.
var needs = []struct{ layer, controller string }{
	{"cgroup", "cpu"}, {"cgroup", "memory"}, {"cgroup", "cpuset"}, {"quota", "cpu"}, {"memory", "memory"},
}

// cgroups makes the guest's own cgroup in every hierarchy, with the limits of its layers, and returns their folders.
func (g *guest) cgroups(s engine.Spec) error {
	hs, err := cgroup.Mounted()
	if err != nil {
		return err
	}
	for _, n := range needs {
		there := slices.ContainsFunc(hs, func(h cgroup.Hierarchy) bool { return h.Has(n.controller) })
		if g.has(n.layer) && !there {
			return g.cannot(n.layer, fmt.Sprintf("the kernel's cgroups have no controller %s here; mount it, or boot with it enabled (see /proc/cgroups)", n.controller))
		}
	}
	g.dirs, err = g.MakeGroups(hs, wanted, func(h cgroup.Hierarchy) ([]engine.Setting, error) { return g.settings(h, s) })
	return err
}

// settings are the settings of the guest's cgroup in the hierarchy, in order.
func (g *guest) settings(h cgroup.Hierarchy, s engine.Spec) (set []engine.Setting, err error) {
	if set, err = engine.CPUSet(h, s.CPUs); err != nil {
		return nil, err
	}
	add := func(file, value string) { set = append(set, engine.Setting{File: file, Value: value}) }
	if h.Has("cpu") && g.has("quota") {
		q, err := config.Quota(s.Instance.Cores)
		if err != nil {
			return nil, err
		}
		if h.V2 {
			add("cpu.max", fmt.Sprintf("%d %d", q, config.Period))
		} else {
			add("cpu.cfs_period_us", strconv.Itoa(config.Period))
			add("cpu.cfs_quota_us", strconv.FormatInt(q, 10))
		}
	}
	if h.Has("memory") && g.has("memory") {
		bytes := strconv.FormatInt(s.Instance.Memory, 10)
		// No swap beyond the memory limit if the kernel accounts for swap, as in a container of an OCI runtime.
		if h.V2 {
			add("memory.max", bytes)
			if h.LimitsSwap() {
				add("memory.swap.max", "0")
			}
		} else {
			add("memory.limit_in_bytes", bytes)
			if h.LimitsSwap() {
				add("memory.memsw.limit_in_bytes", bytes)
			}
		}
	}
	return set, nil
}
