package page

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"tare/notebook"
)

// plain makes text of unknown origin fit to be shown: control and formatting characters, which could hide or
// reorder what stands around them or make an SVG file unreadable, become spaces.
func plain(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp) || r == 0xFFFE || r == 0xFFFF {
			return ' '
		}
		return r
	}, s))
}

// plainLines is plain for text of several lines, which stay.
func plainLines(s string) string {
	lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	for i, l := range lines {
		// Indentation carries meaning in YAML.
		body := strings.TrimLeft(l, " ")
		lines[i] = l[:len(l)-len(body)] + plain(body)
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// tight keeps a percentage on one line.
func tight(s string) string { return strings.ReplaceAll(s, " %", "\u00a0%") }

// decimals says how many decimals a value deserves: its distance to the nearer end of its interval is written with
// two digits where they are below 30, else with one. More would be read as knowledge.
func decimals(v, low, high float64) int {
	half := math.Inf(1)
	for _, end := range []float64{high - v, v - low} {
		if end > 0 {
			half = math.Min(half, end)
		}
	}
	var d float64
	switch {
	case !math.IsInf(half, 0):
		size := math.Floor(math.Log10(half))
		d = 1 - size
		if half/math.Pow(10, size) >= 2.95 {
			d--
		}
	case v != 0 && !math.IsNaN(v) && !math.IsInf(v, 0):
		d = 2 - math.Floor(math.Log10(math.Abs(v)))
	default:
		return 0
	}
	// More than six digits in all are never an insight here.
	if v != 0 && !math.IsNaN(v) && !math.IsInf(v, 0) {
		d = math.Min(d, 5-math.Floor(math.Log10(math.Abs(v))))
	}
	return int(math.Max(0, math.Min(d, 9)))
}

// number writes a value with so many decimals; what is not known as a dash.
func number(v float64, decimals int) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case math.IsInf(v, 1):
		return "∞"
	case math.IsInf(v, -1):
		return "−∞"
	}
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.HasPrefix(s, "-") {
		if strings.Trim(s, "-0.") == "" {
			return s[1:]
		}
		return "−" + s[1:]
	}
	return s
}

// intervalWords says an interval: "1.00 to 1.04", or where it has no end, in words.
func intervalWords(low, high float64, decimals int) string {
	switch {
	case math.IsNaN(low) || math.IsNaN(high):
		return "not known"
	case math.IsInf(low, 0) && math.IsInf(high, 0):
		return "without bounds"
	case math.IsInf(high, 0):
		return "above " + number(low, decimals)
	case math.IsInf(low, 0):
		return "below " + number(high, decimals)
	}
	return number(low, decimals) + " to " + number(high, decimals)
}

// valueWords says a value with its interval: "1.02 s (1.00 to 1.04)".
func valueWords(v, low, high float64, unit string) string {
	if math.IsNaN(v) {
		return "no value"
	}
	d := decimals(v, low, high)
	s := number(v, d)
	if unit = plain(unit); unit != "" {
		s += " " + unit
	}
	if math.IsNaN(low) || math.IsNaN(high) {
		return s + " (no interval)"
	}
	return s + " (" + intervalWords(low, high, d) + ")"
}

// seconds says a duration with the unit that suits it and three digits.
func seconds(s float64) string {
	switch a := math.Abs(s); {
	case math.IsNaN(s):
		return "–"
	case a == 0:
		return "0 s"
	case a < 1e-3:
		return digits(s*1e6, 3) + " µs"
	case a < 1:
		return digits(s*1e3, 3) + " ms"
	}
	return digits(s, 3) + " s"
}

func digits(v float64, n int) string {
	d := 0
	if v != 0 {
		d = max(0, n-1-int(math.Floor(math.Log10(math.Abs(v)))))
	}
	return number(v, d)
}

// bytesWords says a size in binary units.
func bytesWords(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	v, i := float64(n), 0
	for v >= 1024 && i < len(units)-1 {
		v /= 1024
		i++
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") + " " + units[i]
}

// count says how many of something: "1 trial", "3 trials", "12,000 trials".
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + many
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// shellWord quotes a word for a POSIX shell where it needs it.
func shellWord(s string) string {
	s = plain(s)
	safe := s != ""
	for _, r := range s {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:@%+", r) {
			safe = false
		}
	}
	if safe {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// topology says how many sockets, NUMA nodes, cores and threads a host has.
func topology(cpus []notebook.CPU) string {
	cores, sockets, nodes := map[int]bool{}, map[int]bool{}, map[int]bool{}
	for _, c := range cpus {
		cores[c.Core], sockets[c.Socket], nodes[c.Node] = true, true, true
	}
	s := count(len(cpus), "CPU", "CPUs") + " on " + count(len(cores), "core", "cores")
	switch {
	case len(cpus) > len(cores):
		s += " (simultaneous multithreading)"
	case len(cpus) > 0:
		s += " (one thread a core)"
	}
	return s + ", " + count(len(sockets), "socket", "sockets") + ", " + count(len(nodes), "NUMA node", "NUMA nodes")
}

// term is one word of the glossary.
type term struct{ Word, Meaning string }

// glossary explains the words that the page uses.
var glossary = []term{
	{"Host", "the machine: its sockets, NUMA nodes, cores, memory and kernel."},
	{"Platform", "where work runs: bm (bare metal), cn (container), vm (virtual machine), vmcn (container in a virtual machine)."},
	{"Engine", "what implements a platform: docker, crun or runc for a container, qemu for a virtual machine."},
	{"Accelerator", "what runs a virtual machine's code: kvm (the processor itself) or tcg (software emulation, many times slower). A tcg figure is never a VM's cost."},
	{"Provisioning", "vanilla: a CPU quota, the scheduler chooses the cores. Pinned: a fixed set of CPUs. Bare metal has neither."},
	{"Instance type", "how many cores and how much memory a guest gets."},
	{"Workload", "the application with its input and its metric."},
	{"Treatment", "one combination of platform, engine, provisioning, instance type, workload and its parameters."},
	{"Guest", "one live instance of a platform, made for one treatment and destroyed after it."},
	{"Trial", "one measured execution of the workload in a guest."},
	{"Warm-up", "an execution before the trials of a guest that is not counted; it also fills the page cache."},
	{"Round", "every treatment once, in random order. Both means of a ratio are taken from the same rounds, so that a host that drifts slows both."},
	{"95 % interval", "a range made so that, over many studies like this one, about 95 of 100 such ranges hold the true value."},
	{"Overhead ratio", "the mean on a platform over the mean on bare metal at the same instance type. 1.20 means that the work takes 20 % longer."},
	{"CHR", "container-to-host core ratio: the instance’s cores over the CPUs that the host had online. A container as large as its host has a CHR of 1."},
	{"PTO, PSO", "platform-type overhead, which a platform costs at any size; platform-size overhead, which it costs because its instance is small. Both are shares of bare metal’s time: 0.20 means 20 % longer."},
	{"Network", "how a guest is connected: bridge (behind a bridge, as the platform’s users have it), host (the network of what it runs on) or none."},
	{"Load", "what asks the service in a guest for its answers, from outside and on the host’s own CPUs; the same on every platform."},
	{"A/A check", "bare metal measured against itself under another name. The truth is known to be 1, so an interval that misses it shows a host too unsteady for small differences."},
	{"Isolation ladder", "from bare metal to a whole container one layer of isolation at a time. Each rung has all layers below it; its own cost is its mean over that of the rung below, in the rounds that both have."},
	{"Explained trial", "one at which probes looked on. It feeds no mean and no ratio, because the probes’ own cost is in it."},
	{"Account", "where the time went that a treatment takes longer than bare metal, part by part, with what nothing explains as a part of its own, so that the sum is the measured gap."},
	{"Ruler", "the small program inside every guest that starts the work and times it: the same one on every platform."},
}
