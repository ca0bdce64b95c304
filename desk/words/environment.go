package words

import (
	"cmp"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/notebook"
)

// engineNames are the engines as their makers write them.
var engineNames = map[string]string{"docker": "Docker", "podman": "Podman", "lxc": "LXC", "gvisor": "gVisor", "qemu": "QEMU"}

// engineName names an engine.
func engineName(engine string) string { return cmp.Or(engineNames[engine], Plain(engine)) }

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
		name = engineName(t.Engine)
	case notebook.VM:
		if name = a("VM"); t.Engine != "" && t.Engine != "qemu" {
			name += " (" + engineName(t.Engine) + ")"
		}
	case notebook.VMCN:
		name = engineName(t.Engine) + " in a VM"
		if t.Engine == "" || t.Engine == "qemu" {
			name = a("container in a VM")
		}
	default:
		name = Plain(t.Platform)
	}
	return cmp.Or(name, a("container"))
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
		parts = append(parts, "layers up to "+Plain(t.Isolation))
	}
	if t.Machine != "" {
		parts = append(parts, "with "+Plain(t.Machine))
	}
	return parts
}

// Environment names a treatment as its users do: "Docker, CPU quota (--cpus)". Its network is named where that differs between those that
// stand together.
func Environment(t notebook.Treatment, network bool) string {
	name := join(", ", append([]string{product(t, false), limit(t)}, details(t, network)...))
	if !t.Representative() {
		name += ", emulated"
	}
	return name
}

// InSentence names a treatment in a sentence: "Docker with --cpus", "a VM with a CPU set". Its network is named as in Environment.
func InSentence(t notebook.Treatment, network bool) string {
	name := join(", ", append([]string{product(t, true) + withLimit(t)}, details(t, network)...))
	if !t.Representative() {
		name += ", emulated"
	}
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
			name += " at " + size(b.Treatment.Instance)
		}
		return name
	})
	if len(names) == 0 {
		return Plain(data.ReferenceText(s.Baseline))
	}
	return strings.Join(names, and)
}
