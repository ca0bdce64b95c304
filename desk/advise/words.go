package advise

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"tare/desk/data"
	"tare/notebook"
)

// describe is a treatment in words: "pinned docker container at large".
func describe(t notebook.Treatment, network bool) string {
	words := []string{t.Provisioning, t.Engine}
	vm := "VM"
	if !t.Representative() {
		vm = "emulated VM"
	}
	switch t.Platform {
	case notebook.BM:
		words = []string{"bare metal"}
	case notebook.CN:
		words = append(words, "container")
	case notebook.VM:
		words = []string{t.Provisioning, vm}
	case notebook.VMCN:
		if t.Engine == "qemu" { // the machine's, and not the container's
			words = words[:1]
		}
		words = append(words, "container in", map[string]string{"VM": "a", "emulated VM": "an"}[vm], vm)
	default:
		words = append(words, t.Platform)
	}
	words = append(words, "at", t.Instance.Name)
	if network && t.Platform != notebook.BM {
		words = append(words, map[string]string{
			"": "with the engine's own network", notebook.NetBridge: "on a bridge", notebook.NetHost: "on the host's network", notebook.NetNone: "without a network",
		}[t.Network])
	}
	words = append(words, data.Rung(t.Isolation))
	return clean(strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " "))
}

func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// mostText bounds what is printed of a name.
const mostText = 2000

// clean makes of a text from a folder, which may be anybody's, one line without signs that act on a terminal or end a
// comment.
func clean(s string) string {
	if len(s) > mostText {
		s = s[:mostText] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.ToValidUTF8(s, "?"))
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// interval writes "1.02 (1.00 to 1.04)", with as many decimals as the interval deserves: two digits of its width.
func interval(v, low, high float64) string {
	if !finite(v) {
		return "unknown"
	}
	if !finite(low) || !finite(high) {
		return strconv.FormatFloat(v, 'g', 3, 64) + " (no interval)"
	}
	d := 2
	if w := high - low; w > 0 {
		d = min(max(1-int(math.Floor(math.Log10(w))), 0), 6)
	}
	return fmt.Sprintf("%.*f (%.*f to %.*f)", d, v, d, low, d, high)
}

// parseCPUs reads a list of CPUs as the kernel writes it: "0-1,4".
func parseCPUs(list string) ([]int, bool) {
	const most = 1 << 16 // far above any kernel's
	var cpus []int
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		a, err := strconv.ParseUint(from, 10, 16)
		if err != nil {
			return nil, false
		}
		b := a
		if isRange {
			if b, err = strconv.ParseUint(to, 10, 16); err != nil || b < a {
				return nil, false
			}
		}
		for c := a; c <= b && len(cpus) < most; c++ {
			cpus = append(cpus, int(c))
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), true
}

// formatCPUs writes a sorted list of CPUs as the kernel does.
func formatCPUs(cpus []int) string {
	var parts []string
	for i := 0; i < len(cpus); {
		j := i
		for j+1 < len(cpus) && cpus[j+1] == cpus[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, strconv.Itoa(cpus[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", cpus[i], cpus[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}
