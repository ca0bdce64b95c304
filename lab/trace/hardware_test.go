//go:build linux

package trace

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tare/lab/engine"
	"tare/notebook"
)

// faultEvents are events of the kernel that are opened and read as those of the CPU are, and whose counts are known.
var faultEvents = []hardwareEvent{{"faults", unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_PAGE_FAULTS_MIN}}

// The events are of the threads that exist and of all that they create, and of nobody else.
func TestHardwareEventsAreInherited(t *testing.T) {
	needRoot(t)
	shell := needTool(t, "sh", "dash")
	one := loadCommand(t, "anonymous", "3000")
	two := loadCommand(t, "anonymous", "2000")
	two.Args = []string{"sh", "-c", `"$0" anonymous 1500 & "$0" anonymous 500; wait`, two.Path}
	two.Path = shell
	other := loadCommand(t, "anonymous", "50000")
	h, err := openHardware(faultEvents, myself(t))
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan error, 1)
	go func() { started <- other.Run() }() // by another thread of this process, which is listed too
	if err := errors.Join(one.Run(), two.Run(), <-started); err != nil {
		t.Fatal(err)
	}
	p := &notebook.Trace{Figures: map[string]float64{}}
	why, err := h.end(p)
	if err := errors.Join(err, h.Close()); err != nil || why != nil {
		t.Fatal(err, why)
	}
	if n := p.Figures["faults"]; n < 55000 || n > 58000 { // programs have some of their own when they start
		t.Errorf("%v faults; the programs have 55000 and a few hundred each", n)
	}

	alone := load(t, nil, "anonymous", "1000")
	h, err = openHardware(faultEvents, []engine.Thread{{ID: alone.pid(), Role: notebook.RoleVCPU}, {ID: 1 << 22, Role: notebook.RoleWork}})
	if err != nil {
		t.Fatal(err)
	}
	if err := loadCommand(t, "anonymous", "5000").Run(); err != nil {
		t.Fatal(err)
	}
	alone.work()
	_, err = h.end(p)
	if err := errors.Join(err, h.Close()); err != nil {
		t.Fatal(err)
	}
	if n := p.Figures["vcpu.faults"]; n < 1000 || n > 1100 {
		t.Errorf("vcpu.faults: %v; the program has 1000", n)
	}
	alone.finish()
}

// A CPU without counters is said to have none; one with counters counts.
func TestHardwareCounters(t *testing.T) {
	needRoot(t)
	k, err := Open([]string{notebook.TracerHardware, notebook.TracerThreads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	p, _ := watched(t, k, 1, loadCommand(t, "busy", "100"))
	why := p.Missing[notebook.TracerHardware]
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_HARDWARE, Config: unix.PERF_COUNT_HW_CPU_CYCLES, Size: unix.PERF_ATTR_SIZE_VER1}
	fd, err := unix.PerfEventOpen(&attr, os.Getpid(), -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		if why == nil || !strings.Contains(why.Text(), "no performance counters") || slices.Contains(p.Looked, notebook.TracerHardware) || p.Figures["cycles"] != 0 {
			t.Errorf("the CPU counts nothing (%v): %v, %v", err, why, p.Looked)
		}
		return
	}
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
	if n := p.Figures["cycles"]; !slices.Contains(p.Looked, notebook.TracerHardware) || n < 1e7 || p.Figures["instructions"] < 1e6 {
		t.Errorf("%v cycles in a tenth of a second: %v, %v", n, why, p.Figures)
	}
}

// A guest of very many threads is refused before anything is opened.
func TestHardwareEventsAreBounded(t *testing.T) {
	if _, err := openHardware(hardwareEvents, make([]engine.Thread, mostEvents)); err == nil || !strings.Contains(err.Error(), "at most 8192") {
		t.Errorf("%v", err)
	}
}

// What is counted is of the threads alone, and of what they create; a CPU that does not count says so.
func TestInstructionsAreOfTheThreads(t *testing.T) {
	needRoot(t)
	c, err := countEvents(faultEvents, myself(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := loadCommand(t, "anonymous", "3000").Run(); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Stop(); err != nil || n < 3000 || n > 6000 {
		t.Errorf("%v events, %v; the program has 3000 and a few hundred", n, err)
	}
	if c, err = CountInstructions(myself(t)); err != nil {
		t.Skip(err)
	}
	if err := loadCommand(t, "anonymous", "3000").Run(); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Stop(); err != nil || n < 3000 {
		t.Errorf("%v instructions, %v; the program has one for each of 3000 faults at least", n, err)
	}
}
