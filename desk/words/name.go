package words

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// platforms are the platforms in words.
var platforms = map[string]string{
	notebook.BM:   "bare metal",
	notebook.CN:   "container",
	notebook.VM:   "VM",
	notebook.VMCN: "container in VM",
}

// Platform names a platform: "container in VM".
func Platform(p string) string { return cmp.Or(platforms[p], Plain(p)) }

// Treatment names a treatment in few words, each part where it says something: "cn docker vanilla". Its network is named
// where that differs between those that stand together.
func Treatment(t notebook.Treatment, network bool) string {
	parts := []string{t.Platform, t.Engine, t.Provisioning, t.Accelerator}
	if t.Platform == notebook.VM && t.Engine == "qemu" {
		parts[1] = "" // there is no other
	}
	if t.Kernel != "" {
		parts = append(parts, "kernel", t.Kernel)
	}
	if network && t.Network != "" {
		parts = append(parts, "network", t.Network)
	}
	switch t.Isolation {
	case "", notebook.IsolationFull:
		parts = append(parts, t.Isolation)
	default:
		parts = append(parts, "up to", t.Isolation)
	}
	if t.Machine != "" {
		parts = append(parts, "with", t.Machine)
	}
	if t.AA {
		parts = append(parts, "again (A/A)")
	}
	return Plain(join(" ", parts))
}

// Brief says the same in two short lines, to stand under a bar: "cn docker", "pinned".
func Brief(t notebook.Treatment) [2]string {
	first := []string{t.Platform, t.Engine}
	if t.Platform == notebook.VM {
		first[1] = ""
	}
	return [2]string{Plain(join(" ", first)), Plain(join(" ", []string{t.Provisioning, t.Isolation, t.Machine}))}
}

// Described says what a treatment is, without its instance type and workload: "container, docker, pinned".
func Described(t notebook.Treatment, network bool) string {
	if !t.Representative() {
		return Unmarked(t, network) + " (emulated)"
	}
	return Unmarked(t, network)
}

// Unmarked says the same without marking emulation, for lists in which all treatments are emulated or none is.
func Unmarked(t notebook.Treatment, network bool) string {
	name := join(", ", []string{Platform(t.Platform), Plain(t.Engine), Provisioned(t, network)})
	if t.AA {
		name += " again (A/A)"
	}
	if t.Kernel != "" {
		name += ", kernel " + Plain(t.Kernel)
	}
	return name
}

// Provisioned says how a treatment is provisioned, how far it is isolated where it is of a ladder, and how it is
// connected: "pinned, network host".
func Provisioned(t notebook.Treatment, network bool) string {
	parts := []string{Plain(t.Provisioning)}
	switch t.Isolation {
	case "":
	case notebook.IsolationFull:
		parts = append(parts, "isolation in full")
	default:
		parts = append(parts, "up to "+Plain(t.Isolation))
	}
	if network && t.Network != "" {
		parts = append(parts, "network "+Plain(t.Network))
	}
	if t.Machine != "" {
		parts = append(parts, "with "+Plain(t.Machine))
	}
	return join(", ", parts)
}

// Name says a treatment in a sentence, without workload and instance type: "a pinned docker container".
func Name(n data.Name) string {
	if n.Platform == notebook.BM {
		return noun(n)
	}
	return article(noun(n)) + isolated(n.Isolation) + made(n.Machine)
}

// Choice names a treatment that can be chosen: "pinned docker container at large".
func Choice(t notebook.Treatment, network bool) string {
	n := data.NameOf(t)
	s := noun(n) + " at " + t.Instance.Name
	if network {
		s += connected(t)
	}
	return Plain(s + isolated(n.Isolation) + made(n.Machine))
}

// noun is a treatment without its article.
func noun(n data.Name) string {
	vm := "VM"
	if n.Accelerator != "" && n.Accelerator != notebook.KVM {
		vm = "emulated VM"
	}
	if n.Kernel != "" {
		vm += " with kernel " + Plain(n.Kernel)
	}
	engine, what := n.Engine, n.Platform
	switch n.Platform {
	case notebook.BM:
		if n.AA {
			return "bare metal under another name"
		}
		return "bare metal"
	case notebook.CN:
		what = "container"
	case notebook.VM:
		engine, what = "", vm
	case notebook.VMCN:
		what = "container in " + article(vm)
		if engine == "qemu" { // the machine's, and not the container's
			engine = ""
		}
	}
	if n.Provisioning == notebook.Whole {
		return join(" ", []string{engine, what}) + " of the whole host"
	}
	return join(" ", []string{n.Provisioning, engine, what})
}

func article(noun string) string {
	if noun != "" && strings.ContainsAny(noun[:1], "aeiou") {
		return "an " + noun
	}
	return "a " + noun
}

// made says how a VM is made where it is not the usual one, to follow its name.
func made(machine string) string {
	if machine == "" {
		return ""
	}
	return " with " + Plain(machine)
}

// isolated says how far a treatment of the isolation ladder is isolated, to follow its name.
func isolated(isolation string) string {
	switch isolation {
	case "":
		return ""
	case notebook.IsolationFull:
		return " with every layer"
	}
	return " with the layers up to " + isolation
}

// connected says how a treatment is connected, to follow its name. Bare metal has no choice.
func connected(t notebook.Treatment) string {
	switch {
	case t.Platform == notebook.BM:
		return ""
	case t.Network == "":
		return " with the engine's own network"
	case t.Network == notebook.NetBridge:
		return " on a bridge"
	case t.Network == notebook.NetMacvlan:
		return " on a macvlan"
	case t.Network == notebook.NetUser:
		return " on QEMU's user network"
	case t.Network == notebook.NetHost:
		return " on the host's network"
	case t.Network == notebook.NetNone:
		return " without a network"
	}
	return " on the network " + t.Network
}

// Label names a row's treatment in few words, with its instance type, and with its network and its host's CPUs where
// rows of its workload differ in them: "cn docker vanilla 1/1GB".
func Label(s *data.Summary, r *data.Row) string {
	return Plain(join(" ", []string{Treatment(r.Treatment, s.Networks(r.Treatment.Workload)), r.Treatment.Instance.Name, Online(s, r)}))
}

// Work names a treatment's workload with its parameters and those factors that are written like them: "hashing (megabytes=64, rate=8)".
func Work(t notebook.Treatment) string {
	assigned := t.Assigned()
	if len(assigned) == 0 {
		return Plain(t.Workload)
	}
	return Plain(t.Workload + " (" + notebook.Assignments(assigned, ", ") + ")")
}

// Place names what a row's table is of: "ffmpeg (segments=1) on bench".
func Place(r *data.Row) string {
	return Work(r.Treatment) + " on " + Plain(r.Host)
}

// Where says where a row stands, as far as it says so itself: "ffmpeg (segments=1) at large on bench with 4 of 8 CPUs". Its
// host is named where there are several.
func Where(s *data.Summary, r *data.Row) string {
	w := Work(r.Treatment)
	if r.Treatment.Instance.Name != "" {
		w += " at " + r.Treatment.Instance.Name
	}
	on := Online(s, r)
	switch {
	case len(s.Hosts) > 1 && r.Host != "":
		w += " on " + r.Host
	case on != "":
		w += " on the host"
	}
	return Plain(w + " " + on)
}

// Table says what a table of rows is of: where they stand, how many guests were weighed, and their image where other rows of their work
// have another.
func Table(s *data.Summary, rows []*data.Row) string {
	at := *rows[0]
	at.Treatment.Instance = notebook.Instance{}
	return Where(s, &at) + measuring(s, rows[0]) + Image(s, rows[0])
}

// Image names a row's image where other rows of its work have another, to follow what its table is of.
func Image(s *data.Summary, r *data.Row) string {
	if s.OtherImages(r) {
		return ", " + Plain(Digests(r.Image))
	}
	return ""
}

// Sized says what a treatment is, with its instance type and the size of its host where that was chosen for it:
// "container, docker, pinned, large".
func Sized(s *data.Summary, t notebook.Treatment) string {
	n := Described(t, s.Networks(t.Workload)) + ", " + Plain(t.Instance.Name)
	if t.HostCores > 0 {
		n += ", host with " + Count(t.HostCores, "CPU")
	}
	return n
}

// Metric names a metric with its unit, and says where more of it is better: "execution time, s", "bandwidth, GB/s, higher is better".
func Metric(m notebook.Metric) string {
	return join(", ", []string{Plain(Caption(m.Name)), Plain(m.Unit), Direction(m)})
}

// Direction says which values of a metric are better where it is not less, as everybody expects of a time; else it is empty.
func Direction(m notebook.Metric) string {
	switch {
	case m.MoreIsBetter():
		return "higher is better"
	case !m.Directed():
		return "neither higher nor lower is better"
	}
	return ""
}

// CostOf says what a cost is of a metric of which more is better, to be read with figures that are costs and no ratios of it.
func CostOf(m notebook.Metric) string {
	return "where a cost is the " + Plain(Caption(m.Name)) + " below over its own (" + Direction(m) + ")"
}

// Online says how many of its host's CPUs were online for a row, where that must be said; else it is empty.
func Online(s *data.Summary, r *data.Row) string {
	of, say := s.Online(r.HostID, r.Treatment.Workload, r.HostCores)
	switch {
	case !say:
		return ""
	case r.HostCores == of:
		return fmt.Sprintf("with all %d CPUs", of)
	}
	return fmt.Sprintf("with %d of %d CPUs", r.HostCores, of)
}

// LeftOut names what was left out.
func LeftOut(s *data.Summary, l data.LeftOut) string {
	t := l.Treatment
	what := t.Workload + " " + Treatment(t, s.Networks(t.Workload)) + " at " + t.Instance.Name + " on " + l.Host
	if t.HostCores > 0 {
		what += " with " + Count(t.HostCores, "CPU")
	}
	return Plain(what)
}

// join puts parts together, without those that are empty.
func join(sep string, parts []string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), sep)
}

// CHR writes a container-to-host core ratio; empty where it is not known.
func CHR(chr float64) string {
	if !stats.Finite(chr) || chr <= 0 {
		return ""
	}
	return strconv.FormatFloat(chr, 'g', 2, 64)
}

// Cores says how many of a host's CPUs an instance has: "2 of 112 CPUs".
func Cores(cores float64, host int) string { return fmt.Sprintf("%.3g of %d CPUs", cores, host) }

// P writes a probability of a test, a small one as a bound: "p = 0.012".
func P(p float64) string {
	switch {
	case math.IsNaN(p):
		return "p not known"
	case p < 0.001:
		return "p < 0.001"
	}
	return "p = " + Digits(p, 2)
}

// Digests says which image it is where several are told apart: "image 0123456789ab, input ba9876543210".
func Digests(i notebook.Image) string {
	short := func(digest string) string {
		d := strings.TrimPrefix(digest, "sha256:")
		return d[:min(len(d), 12)]
	}
	w := "image " + short(i.Digest)
	if i.Input != "" {
		w += ", input " + short(i.Input)
	}
	return w
}

// Omissions are what was left out, by reason. Folders of the first format have the sentence of what later ones have as a message.
func Omissions(s *data.Summary) [][]data.LeftOut {
	return data.Together(s.LeftOut, func(a, b data.LeftOut) bool { return Message(a.Reason) == Message(b.Reason) })
}
