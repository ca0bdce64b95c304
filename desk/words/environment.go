package words

import (
	"cmp"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/notebook"
)

// engineNames are the engines as their makers write them.
var engineNames = map[string]string{"docker": "Docker", "podman": "Podman", "lxc": "LXC", "gvisor": "gVisor", "cri": "containerd (CRI)", "qemu": "QEMU", notebook.MicroVM: "microVM"}

// EngineName names an engine as its makers write it.
func EngineName(engine string) string { return cmp.Or(engineNames[engine], Plain(engine)) }

// limitFlags are the options by which users of an engine limit CPUs.
var limitFlags = map[string]map[string]string{
	"docker": {notebook.Vanilla: "--cpus", notebook.Pinned: "--cpuset-cpus"},
	"podman": {notebook.Vanilla: "--cpus", notebook.Pinned: "--cpuset-cpus"},
}

// limit names the way in which an environment's CPUs are limited; empty: they are not, or there is one way only.
func limit(t notebook.Treatment) string {
	name := ""
	switch {
	case t.Platform == notebook.BM:
		return ""
	case t.Provisioning == notebook.Whole:
		return "whole host"
	case t.Provisioning == notebook.Pinned:
		name = "CPU set"
	case t.Provisioning == notebook.Vanilla && t.Platform == notebook.CN:
		name = "CPU quota"
	}
	if flag := limitFlags[t.Engine][t.Provisioning]; flag != "" && t.Platform == notebook.CN {
		name += " (" + flag + ")"
	}
	return name
}

// limitNames are the ways of limiting CPUs in a sentence.
var limitNames = map[string]string{notebook.Vanilla: "a CPU quota", notebook.Pinned: "a CPU set", notebook.Whole: "the whole host"}

// LimitsCompared heads accounts of one way of limiting CPUs against the other.
const LimitsCompared = "CPU quota against CPU set"

// withLimit names the same to follow a figure: " with --cpus".
func withLimit(t notebook.Treatment) string {
	if flag := limitFlags[t.Engine][t.Provisioning]; flag != "" && t.Platform == notebook.CN {
		return " with " + flag
	}
	switch name := limit(t); {
	case t.Provisioning == notebook.Whole && name != "":
		return " with the " + name
	case name != "":
		return " with a " + name
	}
	return ""
}

// product names what runs the work, without its limit: "Docker", "a container in a VM".
func product(t notebook.Treatment, articled bool) string {
	a := func(noun string) string {
		if articled {
			return "a " + noun
		}
		return noun
	}
	name := ""
	switch t.Platform {
	case notebook.BM:
		name = "bare metal"
		if t.AA {
			name += " again (A/A control)"
		}
	case notebook.CN:
		if t.Engine != notebook.LayersEngine {
			name = EngineName(t.Engine)
		}
	case notebook.VM:
		name = a("VM")
		if t.Engine != "" && t.Engine != "qemu" {
			name = a(EngineName(t.Engine))
		}
	case notebook.VMCN:
		name = EngineName(t.Engine) + " in a VM"
		if t.Engine == "" || t.Engine == "qemu" {
			name = a("container in a VM")
		}
	default:
		name = Plain(t.Platform)
	}
	return cmp.Or(name, a("container"))
}

// isolation names a guest's layers: "layers up to seccomp", "only seccomp".
func isolation(of string) string {
	if only, single := strings.CutPrefix(of, notebook.OnlyLayer); single {
		return "only " + Plain(only)
	}
	return "layers up to " + Plain(of)
}

// details follow an environment's name where it differs from the usual one.
func details(t notebook.Treatment, network bool) (parts []string) {
	if t.Kernel != "" {
		parts = append(parts, "kernel "+Plain(t.Kernel))
	}
	if network && t.Network != "" {
		parts = append(parts, "network "+Plain(t.Network))
	}
	switch t.Isolation {
	case "":
	case notebook.IsolationFull:
		parts = append(parts, "every layer")
	default:
		parts = append(parts, isolation(t.Isolation))
	}
	if t.Machine != "" {
		parts = append(parts, "with "+Plain(t.Machine))
	}
	return parts
}

// Environment names a treatment as its users do: "Docker, CPU quota (--cpus)". Its network is named where that differs between those that
// stand together.
func Environment(t notebook.Treatment, network bool) string {
	return Unmarked(t, network) + emulated(t)
}

// Unmarked says the same without marking emulation, for lists in which all treatments are emulated or none is.
func Unmarked(t notebook.Treatment, network bool) string {
	return join(", ", append([]string{product(t, false), limit(t)}, details(t, network)...))
}

// Short says the same where there is little room: "Docker, CPU quota".
func Short(t notebook.Treatment, network bool) string {
	return join(", ", append([]string{product(t, false), shortLimit(t)}, details(t, network)...)) + emulated(t)
}

// Brief says the same in two short lines, to stand under a bar: "Docker", "CPU quota".
func Brief(t notebook.Treatment) [2]string {
	return [2]string{product(t, false), join(", ", append([]string{shortLimit(t)}, details(t, false)...))}
}

// Limited says how a treatment is limited, and what else tells it from others with the same engine: "CPU set (--cpuset-cpus), network host".
func Limited(t notebook.Treatment, network bool) string {
	return join(", ", append([]string{limit(t)}, details(t, network)...))
}

// BesidePlatform is what an environment's name has in addition to its platform: "Docker, CPU set (--cpuset-cpus)".
func BesidePlatform(t notebook.Treatment, network bool) string {
	engine, again := EngineName(t.Engine), ""
	if t.Engine == notebook.LayersEngine { // details name the layers
		engine = ""
	}
	if t.AA {
		again = "again (A/A control)"
	}
	return strings.TrimPrefix(join(", ", []string{engine, again, Limited(t, network)})+emulated(t), ", ")
}

// InSentence names a treatment in a sentence: "Docker with --cpus", "a VM with a CPU set". Its network is named as in Environment.
func InSentence(t notebook.Treatment, network bool) string {
	return join(", ", append([]string{product(t, true) + withLimit(t)}, details(t, network)...)) + emulated(t)
}

// emulated marks what was.
func emulated(t notebook.Treatment) string {
	if t.Representative() {
		return ""
	}
	return ", emulated"
}

// shortLimit is the limit without the option that sets it.
func shortLimit(t notebook.Treatment) string {
	name, _, _ := strings.Cut(limit(t), " (")
	return name
}

// ReferenceOf names what the ratios of folders are relative to, as the table does: "bare metal", "Docker, CPU quota (--cpus)".
func ReferenceOf(s *data.Summary) string { return referenceOf(s, "; ", Environment) }

// referenceOf names them in some form.
func referenceOf(s *data.Summary, and string, named func(notebook.Treatment, bool) string) string {
	if len(s.Baseline) == 0 {
		return "bare metal"
	}
	_, sized := s.Baseline[notebook.FactorInstance.Name]
	var bases []*data.Row
	for _, r := range s.Rows {
		if b := s.Base(r); b != nil && !slices.Contains(bases, b) {
			bases = append(bases, b)
		}
	}
	names := data.Distinct(bases, func(b *data.Row) string {
		name := named(b.Treatment, s.Networks(b.Treatment.Workload))
		if sized {
			name += " at " + Size(b.Treatment.Instance)
		}
		return name
	})
	if len(names) == 0 {
		return Plain(notebook.ReferenceText(s.Baseline))
	}
	return strings.Join(names, and)
}
