package data

import (
	"maps"
	"slices"
)

// HostTrait is something in which hosts differ.
type HostTrait struct {
	Kind TraitKind
	Of   string // which setting or version; else empty
}

// TraitKind is a kind of trait.
type TraitKind string

// The kinds of traits.
const (
	TraitCPU            TraitKind = "cpu"            // the CPU model
	TraitKernel         TraitKind = "kernel"         // its release
	TraitVirtualization TraitKind = "virtualization" // the hypervisor under the host, or none
	TraitSetting        TraitKind = "setting"        // one of notebook.Host.SettingList
	TraitMitigations    TraitKind = "mitigations"    // of the vulnerabilities of CPUs
	TraitVersion        TraitKind = "version"        // of an engine's program
)

// commandLine names the setting that differs between any two hosts: it has their disks.
const commandLine = "kernel_command_line"

// Unlike lists the traits in which two hosts differ, apart from their number of cores and what comes with it, such as sockets, caches and
// memory. It leaves out what one of the hosts did not record, and the kernel's command line.
func Unlike(a, b Host) (all []HostTrait) {
	differ := func(kind TraitKind, of, x, y string) {
		if x != "" && y != "" && x != y {
			all = append(all, HostTrait{kind, of})
		}
	}
	differ(TraitCPU, "", a.CPUModel, b.CPUModel)
	differ(TraitKernel, "", a.Kernel, b.Kernel)
	under := func(h Host) string { return "under " + h.Virtualization } // empty means none
	differ(TraitVirtualization, "", under(a), under(b))
	settings := b.SettingList()
	for i, s := range a.SettingList() {
		if s.Name != commandLine {
			differ(TraitSetting, s.Name, s.Value, settings[i].Value)
		}
	}
	if a.Settings != nil && b.Settings != nil && !maps.Equal(a.Settings.Mitigations, b.Settings.Mitigations) {
		all = append(all, HostTrait{TraitMitigations, ""})
	}
	versions := b.Versions()
	for _, of := range slices.Sorted(maps.Keys(versions)) {
		differ(TraitVersion, of, a.Versions()[of], versions[of])
	}
	return all
}

// Unlike lists the traits in which any of these hosts differs from the first of them, each once.
func (s *Summary) Unlike(ids []string) (all []HostTrait) {
	for _, id := range ids {
		for _, t := range Unlike(s.HostOf(ids[0]), s.HostOf(id)) {
			if !slices.Contains(all, t) {
				all = append(all, t)
			}
		}
	}
	return all
}
