//go:build linux

package layers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/lab/engine/oci/config"
	"tare/lab/journal"
	"tare/notebook"
)

// wanted are the controllers that a container's cgroup has: those with a limit, and those that only count.
var wanted = []string{"cpuset", "cpu", "io", "memory", "pids"}

// needs are the controllers without which a layer cannot be made.
var needs = []struct{ layer, controller string }{
	{"cgroup", "cpu"}, {"cgroup", "memory"}, {"quota", "cpu"}, {"cpuset", "cpuset"}, {"memory", "memory"},
}

// cgroups makes the guest's own cgroup in every hierarchy, with the limits of its layers, and gives their folders.
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
	name := engine.ContainerName(s.ID)
	for _, h := range hs {
		// Before the entry is written: its undoing would take another's away.
		if _, err := os.Lstat(filepath.Join(h.At, name)); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cgroup %s in %s is there already (%v); `tare clean` removes what a dead run left", name, h.At, err)
		}
	}
	for _, h := range hs {
		if h.V2 {
			if err := g.enable(h); err != nil {
				return err
			}
		}
	}
	if err := g.Changes.Announce(journal.Entry{Kind: kindCgroups, Target: name}); err != nil {
		return err
	}
	for _, h := range hs {
		dir := filepath.Join(h.At, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		settings, err := g.settings(h, s)
		if err != nil {
			return err
		}
		for _, set := range settings {
			if err := write(filepath.Join(dir, set.file), set.value); err != nil {
				return err
			}
		}
		g.dirs = append(g.dirs, dir)
	}
	return nil
}

// setting is a value for one of a cgroup's files.
type setting struct{ file, value string }

// settings are what the guest's cgroup gets in the hierarchy, in order.
func (g *guest) settings(h cgroup.Hierarchy, s engine.Spec) (set []setting, err error) {
	add := func(file, value string) { set = append(set, setting{file, value}) }
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
	if h.Has("cpuset") {
		cpus := notebook.FormatCPUList(s.CPUs)
		if !h.V2 {
			// In version 1 a cgroup without both takes no process, so below the layer it has all that there is above it.
			for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
				all, err := os.ReadFile(filepath.Join(h.At, file))
				if err != nil {
					return nil, err
				}
				value := strings.TrimSpace(string(all))
				if file == "cpuset.cpus" && g.has("cpuset") {
					value = cpus
				}
				add(file, value)
			}
		} else if g.has("cpuset") {
			add("cpuset.cpus", cpus)
		}
	}
	if h.Has("memory") && g.has("memory") {
		bytes := strconv.FormatInt(s.Instance.Memory, 10)
		// No swap beside it, where the kernel accounts swap: as a container of an OCI runtime.
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

// enable has the cgroups below the root of a hierarchy of version 2 have the controllers that a container's has.
func (g *guest) enable(h cgroup.Hierarchy) error {
	file := filepath.Join(h.At, "cgroup.subtree_control")
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, c := range wanted {
		if !h.Has(c) || slices.Contains(strings.Fields(string(b)), c) {
			continue
		}
		if err := g.Changes.Announce(journal.Entry{Kind: kindController, Target: file, Detail: map[string]string{detailController: c}}); err != nil {
			return err
		}
		if err := write(file, "+"+c); err != nil {
			return g.cannot("cgroup", err.Error())
		}
	}
	return nil
}

// limitFile has a cgroup's limit by each controller in version 2: nothing, or max, where there is none.
var limitFile = map[string]string{"cpuset": "cpuset.cpus", "cpu": "cpu.max", "io": "io.max", "memory": "memory.max", "pids": "pids.max"}

// undoController takes a controller from the cgroups of version 2 again. While another cgroup at the top has it in use, it
// stays: it would lose its limits.
func undoController(_ context.Context, e journal.Entry) error {
	c := e.Detail[detailController]
	others, err := filepath.Glob(filepath.Join(filepath.Dir(e.Target), "*", "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	for _, o := range others {
		for _, file := range []string{o, filepath.Join(filepath.Dir(o), limitFile[c])} {
			b, err := os.ReadFile(file)
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) { // they come and go
				return err
			}
			has := strings.Fields(string(b))
			if file == o && slices.Contains(has, c) || file != o && len(has) > 0 && has[0] != "max" {
				return nil
			}
		}
	}
	err = write(e.Target, "-"+c)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the hierarchy itself is gone
	}
	return err
}

// write sets one of the kernel's files.
func write(file, value string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("setting it to %q: %w", value, err)
	}
	return nil
}
