package words

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/notebook"
)

// Treatment writes platform, engine, provisioning, accelerator and isolation, each where it says something:
// "cn docker vanilla".
func Treatment(t notebook.Treatment) string {
	parts := []string{t.Platform, t.Engine, t.Provisioning, t.Accelerator, Rung(t.Isolation)}
	if t.Platform == notebook.VM && t.Engine == "qemu" {
		parts[1] = "" // there is no other
	}
	if t.AA {
		parts = append(parts, "again (A/A)")
	}
	return join(parts)
}

// Label names a row's treatment in few words, with its instance type, and with its network and its host's CPUs where
// rows of its workload differ in them: "cn docker vanilla 1/1GB". It is safe for a terminal.
func Label(s *data.Summary, r *data.Row) string {
	l := Treatment(r.Treatment) + " " + r.Treatment.Instance.Name
	if r.Treatment.Network != "" && s.Networks(r.Treatment.Workload) {
		l += " network " + r.Treatment.Network
	}
	if on := Online(s, r); on != "" {
		l += " " + on
	}
	return data.Printable(l)
}

// Place names what a row is compared within: "ffmpeg (segments=1) on bench". It is safe for a terminal.
func Place(r *data.Row) string {
	return data.Printable(Work(r.Treatment.Workload, r.Treatment.Params) + " on " + r.Host)
}

// Work names a workload with its parameters: "ffmpeg (segments=1)".
func Work(workload string, params map[string]string) string {
	if len(params) == 0 {
		return workload
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(params)) {
		parts = append(parts, k+"="+params[k])
	}
	return workload + " (" + strings.Join(parts, ", ") + ")"
}

// Online says how many of its host's CPUs were online for a row, where that must be said; else it is empty.
func Online(s *data.Summary, r *data.Row) string {
	return online(s, r.HostID, r.Treatment.Workload, r.HostCores)
}

func online(s *data.Summary, hostID, workload string, cores int) string {
	of, say := s.Online(hostID, workload, cores)
	switch {
	case !say:
		return ""
	case cores == of:
		return fmt.Sprintf("with all %d CPUs", of)
	}
	return fmt.Sprintf("with %d of %d CPUs", cores, of)
}

// Name says a treatment in words, without workload and instance type: "a pinned docker container".
func Name(n data.Name) string {
	words := []string{"a"}
	if n.Provisioning != "" {
		words = append(words, n.Provisioning)
	}
	switch n.Platform {
	case notebook.BM:
		if n.AA {
			return "bare metal under another name"
		}
		return "bare metal"
	case notebook.CN:
		words = append(words, n.Engine, "container")
	case notebook.VM:
		words = append(words, "VM")
	case notebook.VMCN:
		words = append(words, n.Engine, "container in a VM")
	default:
		words = append(words, n.Engine, n.Platform)
	}
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
	if strings.ContainsRune("aeiou", rune(words[1][0])) {
		words[0] = "an"
	}
	return strings.Join(words, " ") + isolated(n.Isolation)
}

// Rung says in few words which rung of the isolation ladder a treatment is: "up to seccomp", "full". Empty: of none.
func Rung(isolation string) string {
	if isolation == "" || isolation == notebook.IsolationFull {
		return isolation
	}
	return "up to " + isolation
}

// isolated says a rung in words, to follow a treatment's name.
func isolated(isolation string) string {
	switch isolation {
	case "":
		return ""
	case notebook.IsolationFull:
		return " with every layer"
	}
	return " with the layers up to " + isolation
}

// connected says a network in words, to follow a treatment's name.
func connected(network string) string {
	switch network {
	case "":
		return ""
	case notebook.NetBridge:
		return " on a bridge"
	case notebook.NetHost:
		return " on the host's network"
	case notebook.NetNone:
		return " without a network"
	}
	return " on the network " + network
}

// LeftOut names what was left out.
func LeftOut(s *data.Summary, l data.LeftOut) string {
	what := l.Treatment.Workload + " " + Treatment(l.Treatment) + " at " + l.Treatment.Instance.Name + " on " + l.Host
	if n := l.Treatment.HostCores; n > 0 {
		what += " with " + Count(n, "CPU")
	}
	if n := l.Treatment.Network; n != "" && s.Networks(l.Treatment.Workload) {
		what += ", network " + n
	}
	return what
}

// join puts words together, without those that are empty.
func join(words []string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}
