//go:build linux

package cgroup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"

	"tare/lab/proc"
)

// Hierarchy is a mounted hierarchy of cgroups.
type Hierarchy struct {
	At          string // mount point
	V2          bool
	Controllers []string // those that a group below its root can have; in version 1 the mount's other options are among them
}

// Has reports whether a group in the hierarchy can have the controller.
func (h Hierarchy) Has(controller string) bool { return slices.Contains(h.Controllers, controller) }

// LimitsSwap reports whether the kernel can limit the swap of a group in this hierarchy, which has the controller memory.
func (h Hierarchy) LimitsSwap() bool {
	file := "/proc/swaps" // version 2 accounts for swap wherever there is swap
	if !h.V2 {
		file = filepath.Join(h.At, "memory.memsw.limit_in_bytes")
	}
	_, err := os.Stat(file)
	return err == nil
}

// Hierarchies are all mounted hierarchies, each once.
type Hierarchies []Hierarchy

// Mounted lists the hierarchies that the host has mounted.
func Mounted() (Hierarchies, error) {
	mounts, err := hostMounted()
	if err != nil {
		return nil, err
	}
	return Among(mounts)
}

// Among lists the hierarchies among the mounts of this process.
func Among(mounts []*mountinfo.Info) (Hierarchies, error) {
	hs := hierarchies(mounts)
	for i, h := range hs {
		if !h.V2 {
			continue
		}
		b, err := os.ReadFile(filepath.Join(h.At, "cgroup.controllers"))
		if err != nil {
			return nil, err
		}
		hs[i].Controllers = strings.Fields(string(b))
	}
	return hs, nil
}

// hierarchies lists the hierarchies among the mounts. One that is mounted at several places is taken at the first.
func hierarchies(mounts []*mountinfo.Info) (hs Hierarchies) {
	seen := map[[2]int]bool{}
	for _, m := range mounts {
		device := [2]int{m.Major, m.Minor} // the same wherever it is mounted
		if m.FSType != "cgroup" && m.FSType != "cgroup2" || seen[device] {
			continue
		}
		seen[device] = true
		h := Hierarchy{At: m.Mountpoint, V2: m.FSType == "cgroup2"}
		if !h.V2 {
			h.Controllers = strings.Split(m.VFSOptions, ",")
		}
		hs = append(hs, h)
	}
	return hs
}

// V1 returns the hierarchy of version 1 that has the controller; nil where none has it.
func (hs Hierarchies) V1(controller string) *Hierarchy {
	for i, h := range hs {
		if !h.V2 && h.Has(controller) {
			return &hs[i]
		}
	}
	return nil
}

// Unified reports whether all controllers with limits are in version 2.
func (hs Hierarchies) Unified() bool { return hs.V1("memory") == nil }

// LimitsSwap reports whether the kernel can limit a group's swap.
func (hs Hierarchies) LimitsSwap() bool {
	if h := hs.V1("memory"); h != nil {
		return h.LimitsSwap()
	}
	return Hierarchy{V2: true}.LimitsSwap()
}

// RemoveEverywhere removes the group of this name, a path below the root, from every hierarchy, as Remove does.
func RemoveEverywhere(ctx context.Context, name string) error {
	mounts, err := proc.Host.Mounts()
	if err != nil {
		return err
	}
	var errs []error
	all := hierarchies(mounts)
	for _, h := range all { // a frozen process dies in no hierarchy
		if err := thaw(filepath.Join(h.At, name)); err != nil {
			errs = append(errs, err)
		}
	}
	for _, h := range all {
		errs = append(errs, Remove(ctx, filepath.Join(h.At, name)))
	}
	return errors.Join(errs...)
}
