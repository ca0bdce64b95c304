//go:build linux

package trace

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tare/lab/proc"
	"tare/notebook"
)

// deviceInterrupts is the kernel's own count of the interrupts that have a number, as those of devices have.
func deviceInterrupts(t testing.TB) (n float64) {
	t.Helper()
	b, err := os.ReadFile("/proc/interrupts")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	cpus := len(strings.Fields(lines[0]))
	for _, line := range lines[1:] {
		number, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		if _, err := strconv.Atoi(number); err != nil {
			continue
		}
		for _, f := range strings.Fields(rest)[:cpus] {
			v, err := strconv.ParseFloat(f, 64)
			if err != nil {
				t.Fatal(err)
			}
			n += v
		}
	}
	return n
}

// Interrupts are those that the kernel counts, and a thread that waits for its disk is woken by one.
func TestInterruptsOfADisk(t *testing.T) {
	const blocks = 200
	k := openKit(t, notebook.TracerInterrupts, notebook.TracerThreads)
	file := filepath.Join(scratch(t), "file")
	before := deviceInterrupts(t)
	p, _ := watched(t, k, 1, loadCommand(t, "write", file, strconv.Itoa(blocks)))
	all := deviceInterrupts(t) - before
	f := p.Figures
	if f["interrupts"] > all || f["softirqs"] == 0 || f["remote_io_wakeups"] > f["io_wakeups"] || f["far_io_wakeups"] > f["remote_io_wakeups"] {
		t.Errorf("%v of %v interrupts: %v", f["interrupts"], all, f)
	}
	of := 0.0
	for name, n := range f {
		if strings.HasSuffix(name, ".interrupts") {
			of += n
		}
	}
	if of != f["interrupts"] {
		t.Errorf("the devices have %v of %v interrupts", of, f["interrupts"])
	}
	if all < blocks/2 {
		t.Skipf("the disk of %s has %v interrupts for %d requests: it is polled, or a file of memory", file, all, blocks)
	}
	if f["interrupts"] < blocks/2 {
		t.Errorf("%d requests, one after the other, gave %v interrupts", blocks, f["interrupts"])
	}
}

// A datagram's receiver is woken where the datagram is delivered, which on lo is the sender's CPU.
func TestWakeUpsByTheNetwork(t *testing.T) {
	const times = 2000
	k := openKit(t, notebook.TracerInterrupts, notebook.TracerThreads)
	cpus, err := proc.OnlineCPUs()
	if err != nil {
		t.Fatal(err)
	}
	need(t, len(cpus) > 1, "two CPUs")
	for _, other := range []bool{false, true} {
		a, b := strconv.Itoa(cpus[0]), strconv.Itoa(cpus[0])
		if other {
			b = strconv.Itoa(cpus[1])
		}
		p, _ := watched(t, k, 2, loadCommand(t, "answers", a, b, strconv.Itoa(times)))
		f := p.Figures
		share := f["remote_io_wakeups"] / f["io_wakeups"]
		if f["io_wakeups"] < times/2 || f["net_rx.softirqs"] < times || other && share < 0.9 || !other && share > 0.1 {
			t.Errorf("two CPUs %v: of %v wake-ups %v were of a thread on another CPU; %v soft interrupts", other, f["io_wakeups"], f["remote_io_wakeups"], f["net_rx.softirqs"])
		}
	}
}
