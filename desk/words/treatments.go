package words

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

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
func Platform(p string) string {
	if n := platforms[p]; n != "" {
		return n
	}
	return Plain(p)
}

// EmulatedMark ends the name of a treatment that ran under software emulation.
const EmulatedMark = " (emulated)"

// Described says in words what a treatment is, without its instance type and workload: "container, docker, pinned". Its
// network is named where that differs between those that stand together.
func Described(t notebook.Treatment, network bool) string {
	parts := []string{Platform(t.Platform)}
	for _, p := range []string{Plain(t.Engine), Plain(t.Provisioning), Isolation(t)} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if network && t.Network != "" {
		parts = append(parts, "network "+Plain(t.Network))
	}
	name := strings.Join(parts, ", ")
	if t.AA {
		name += " again (A/A)"
	}
	if !t.Representative() {
		name += EmulatedMark
	}
	return name
}

// Brief says the same in two short lines, to stand under a bar: "cn docker", "pinned".
func Brief(t notebook.Treatment) [2]string {
	first := Plain(t.Platform)
	if t.Engine != "" && t.Platform != notebook.VM {
		first += " " + Plain(t.Engine)
	}
	return [2]string{first, strings.TrimSpace(Plain(t.Provisioning) + " " + Plain(t.Isolation))}
}

// BriefLine says the same in one short line: "cn docker pinned".
func BriefLine(t notebook.Treatment, network bool) string {
	b := Brief(t)
	n := strings.TrimSpace(b[0] + " " + b[1])
	if network && t.Network != "" {
		n += ", " + Plain(t.Network)
	}
	if t.AA {
		n += " (A/A)"
	}
	return n
}

// Isolation says how far a treatment of the isolation ladder is isolated; empty where it is none.
func Isolation(t notebook.Treatment) string {
	switch t.Isolation {
	case "":
		return ""
	case notebook.IsolationFull:
		return "isolation in full"
	}
	return "up to " + Plain(t.Isolation)
}

// Params says a workload's parameters, sorted by name: "segments 30".
func Params(params map[string]string) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(params)) {
		list = append(list, Plain(k+" "+params[k]))
	}
	return strings.Join(list, ", ")
}

// CHR writes a container-to-host core ratio; empty where it is not known.
func CHR(chr float64) string {
	if !stats.Finite(chr) || chr <= 0 {
		return ""
	}
	return strconv.FormatFloat(chr, 'g', 2, 64)
}

// Cores says how many of a host's CPUs an instance has: "2 of 112 CPUs".
func Cores(cores float64, host int) string {
	return fmt.Sprintf("%s of %d CPUs", strconv.FormatFloat(cores, 'g', 3, 64), host)
}

// P writes a probability of a test, to follow "p": "= 0.012", or a small one as a bound.
func P(p float64) string {
	if math.IsNaN(p) {
		return "not known"
	}
	if p < 0.001 {
		return "below 0.001"
	}
	return "= " + Digits(p, 2)
}
