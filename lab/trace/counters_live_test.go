//go:build linux

package trace

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/require"
	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/lab/host"
	"tare/notebook"
)

// groupsFor makes a cgroup of the test's own in each controller's hierarchy, with the given files. They go when the test ends, after
// the loads that were started since.
func groupsFor(t testing.TB, files map[string]string, controllers ...string) (dirs []string) {
	t.Helper()
	needRoot(t)
	made := map[string]bool{}
	for _, c := range controllers {
		top, err := cgroup.Of(os.Getpid(), c)
		if err != nil {
			t.Fatal(err)
		}
		_, err = os.Stat(filepath.Join(top, map[string]string{"cpuacct": "cpuacct.usage", "cpu": "cpu.cfs_quota_us", "memory": "memory.usage_in_bytes", "blkio": "blkio.reset_stats"}[c]))
		need(t, top != "" && err == nil, "a version 1 hierarchy for the cgroup controller "+c)
		if made[top] {
			continue
		}
		made[top] = true
		dir, err := os.MkdirTemp(top, "tare-counters-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := unix.Rmdir(dir); err != nil {
				t.Errorf("removing %s: %v", dir, err)
			}
		})
		for name, value := range files {
			if strings.HasPrefix(name, c+".") {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// moveTo puts a load that stands at its gate into cgroups.
func moveTo(t testing.TB, l *aLoad, dirs []string) {
	t.Helper()
	for _, dir := range dirs {
		if err := os.WriteFile(dir+"/cgroup.procs", []byte(strconv.Itoa(l.pid())), 0); err != nil {
			t.Fatal(err)
		}
	}
}

// counting reads the counters around a load's work.
func counting(t testing.TB, l *aLoad, as counted) (figures, fallback map[string]float64, missing reasons) {
	t.Helper()
	before := readCounters(as)
	l.work()
	after := readCounters(as)
	figures, fallback, missing = after.since(before)
	t.Log(figures, fallback, missing)
	return figures, fallback, missing
}

// alone is a process of the host's as a bare metal guest.
func alone(l *aLoad, tracers ...string) counted {
	return counted{PID: l.pid(), Threads: []engine.Thread{{ID: l.pid(), Role: notebook.RoleRuler}}, Tracers: named(tracers)}
}

// within fails unless least ≤ got ≤ most.
func within(t testing.TB, what string, got, least, most float64) {
	t.Helper()
	if got < least || got > most || math.IsNaN(got) {
		t.Errorf("%s: %v, want %v to %v", what, got, least, most)
	}
}

func TestThrottledToHalfACore(t *testing.T) { require.Quiet(t, throttledToHalfACore) }

func throttledToHalfACore(t testing.TB) {
	const quota, period = 0.05, 0.1
	const clock = 2.0
	dirs := groupsFor(t, map[string]string{"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "50000", "cpu.shares": "262144"}, "cpu", "cpuacct")
	l := load(t, nil, "busy", "2000")
	moveTo(t, l, dirs)
	began := time.Now()
	figures, _, missing := counting(t, l, alone(l, notebook.TracerBandwidth, notebook.TracerCPU))
	took := time.Since(began).Seconds()
	l.finish()
	if missing[notebook.TracerBandwidth] != nil {
		t.Errorf("missing: %v", missing)
	}
	// It wants a core all the time and gets one at once, for its cgroup weighs more than all others, unless a hypervisor takes it
	// away. So it runs for half of each period and is throttled for the rest, in each period but the first and last at the most.
	used, stolen := figures["user_s"]+figures["system_s"], figures["steal_s"]
	within(t, "CPU time", used, clock*quota/period-stolen-0.1, clock*quota/period*1.1+quota)
	within(t, "periods", figures["periods"], took/period-3, took/period+2)
	within(t, "throttled periods", figures["throttled_periods"], figures["periods"]*0.8-stolen/period, figures["periods"])
	within(t, "throttled time", figures["throttled_s"], took-used-stolen-0.15, took-used+0.1)
	within(t, "user's part", figures["user_s"]/used, 0.7, 1) // it reads the clock, which is not a system call
}

func TestNoQuotaNothingMissing(t *testing.T) {
	l := load(t, nil, "busy", "1")
	figures, fallback, missing := counting(t, l, alone(l, notebook.TracerBandwidth))
	l.finish()
	if len(figures)+len(fallback)+len(missing) != 0 {
		t.Errorf("%v, %v, %v, want nothing of bare metal without a quota", figures, fallback, missing)
	}
}

func TestCPUTimeOfProcesses(t *testing.T) { require.Quiet(t, cpuTimeOfProcesses) }

func cpuTimeOfProcesses(t testing.TB) {
	l := load(t, nil, "run", "300", "1", "1")
	figures, _, _ := counting(t, l, alone(l, notebook.TracerCPU))
	used := figures["user_s"] + figures["system_s"]
	within(t, "CPU time", used, 0.28, 0.35)
	within(t, "user's part", figures["user_s"]/used, 0.7, 1)
	if _, ok := figures["guest_s"]; ok {
		t.Error("guest_s of something other than a VM")
	}
	l.finish()

	l = load(t, nil, "system", "300")
	figures, _, _ = counting(t, l, alone(l, notebook.TracerCPU))
	within(t, "system_s", figures["system_s"], 0.2, 0.34)
	l.finish()

	// A child's time is its ruler's once that has waited for it.
	program := loadPath(t)
	self := counted{Threads: []engine.Thread{{ID: os.Getpid(), Role: notebook.RoleRuler}}, Tracers: named([]string{notebook.TracerCPU, notebook.TracerMemory})}
	before := readCounters(self)
	quick(t, program, "run", "300", "1", "1")
	quick(t, program, "anonymous", "20000")
	figures, _, missing := readCounters(self).since(before)
	within(t, "a child's CPU time", figures["user_s"]+figures["system_s"], 0.28, 0.6)
	within(t, "a child's faults", figures["minor_faults"], 20000, 24000)
	if !strings.Contains(fmt.Sprint(missing[notebook.TracerCPU]), "step=0.01") {
		t.Errorf("missing %v, want the steps in which times come", missing)
	}

	// A virtual CPU's thread is counted by itself and with its process.
	l = load(t, nil, "run", "300", "1", "1")
	as := alone(l, notebook.TracerCPU)
	as.Threads[0].Role = notebook.RoleVCPU
	figures, _, _ = counting(t, l, as)
	l.finish()
	for _, name := range []string{"guest_s", "vcpu.guest_s"} {
		if v, ok := figures[name]; !ok || v != 0 {
			t.Errorf("%s %v, %v, want 0", name, v, ok)
		}
	}
	within(t, "a virtual CPU's time", figures["vcpu.user_s"]+figures["vcpu.system_s"], 0.28, figures["user_s"]+figures["system_s"]+0.04)
}

// quick runs a program to its end and gives what it printed on standard error.
func quick(t testing.TB, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), loadTime)
	defer cancel()
	var said strings.Builder
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %v: %v: %s", program, args, err, said.String())
	}
	return said.String()
}

func TestPageFaults(t *testing.T) {
	const pages, slack = 20000, 100
	file := filepath.Join(scratch(t), "file")
	for _, c := range []struct {
		mode         []string
		minor, major float64
	}{
		{[]string{"anonymous", strconv.Itoa(pages)}, pages, 0},
		{[]string{"file", file, strconv.Itoa(pages / 10)}, pages / 10, 0},
		{[]string{"major", file, strconv.Itoa(pages / 20)}, 0, pages / 20},
	} {
		l := load(t, nil, c.mode...)
		figures, _, _ := counting(t, l, alone(l, notebook.TracerMemory))
		l.finish()
		within(t, c.mode[0]+": minor", figures["minor_faults"], c.minor, c.minor+slack)
		within(t, c.mode[0]+": major", figures["major_faults"], c.major, c.major+slack)
	}
}

// TestPageFaultsOfACgroup asks for as many as were made, give or take what a cgroup's counts may lag: 64 for each CPU.
func TestPageFaultsOfACgroup(t *testing.T) {
	const pages = 20000
	dirs := groupsFor(t, nil, "memory")
	l := load(t, nil, "anonymous", strconv.Itoa(pages))
	moveTo(t, l, dirs)
	figures, _, _ := counting(t, l, alone(l, notebook.TracerMemory))
	l.finish()
	h, err := host.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lag := float64(64 * len(h.CPUs))
	within(t, "minor faults", figures["minor_faults"], pages-lag, pages+lag+100)
	within(t, "major faults", figures["major_faults"], 0, 10)
}

// TestPageFaultsBesideOthers compares with time and perf, which count from the program's start to its end.
func TestPageFaultsBesideOthers(t *testing.T) {
	const pages = 20000
	program := loadPath(t)
	self := counted{Threads: []engine.Thread{{ID: os.Getpid(), Role: notebook.RoleRuler}}, Tracers: named([]string{notebook.TracerMemory})}
	before := readCounters(self)
	quick(t, program, "anonymous", strconv.Itoa(pages))
	figures, _, _ := readCounters(self).since(before)
	ours := figures["minor_faults"] + figures["major_faults"]
	for _, other := range []struct {
		tool, pkg string
		args      []string
		want      *regexp.Regexp
	}{
		{"time", "time", []string{"-v"}, regexp.MustCompile(`Minor \(reclaiming a frame\) page faults: (\d+)`)},
		{"perf", "linux-perf", []string{"stat", "-x,", "-e", "page-faults"}, regexp.MustCompile(`(?m)^(\d+),,page-faults`)},
	} {
		t.Run(other.tool, func(t *testing.T) {
			said := quick(t, needTool(t, other.tool, other.pkg), append(other.args, program, "anonymous", strconv.Itoa(pages))...)
			m := other.want.FindStringSubmatch(said)
			if m == nil {
				t.Fatalf("no page faults in %q", said)
			}
			n, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("ours %v, %s %v", ours, other.tool, n)
			within(t, "next to "+other.tool, ours, n-200, n+1000) // this test's own process faults too
		})
	}
}

func TestBlocksOfProcesses(t *testing.T) {
	needRoot(t) // /proc/PID/io
	const blocks = 500
	l := load(t, nil, "write", filepath.Join(scratch(t), "file"), strconv.Itoa(blocks))
	_, fallback, _ := counting(t, l, alone(l, notebook.TracerIO))
	l.finish()
	within(t, "written", fallback["written_bytes"], blocks*4096, blocks*4096*1.05)
	within(t, "read", fallback["read_bytes"], 0, 64<<10)

	l = load(t, nil, "read", filepath.Join(scratch(t), "file"), strconv.Itoa(blocks))
	_, fallback, _ = counting(t, l, alone(l, notebook.TracerIO))
	l.finish()
	within(t, "read", fallback["read_bytes"], blocks*4096, blocks*4096*1.05)
	within(t, "written", fallback["written_bytes"], 0, 64<<10)
}

func TestNetworkOfItsOwn(t *testing.T) {
	needRoot(t)
	const times, size = 5000, 1000
	// What lo counts of a datagram: with its headers of UDP (8 bytes) and IPv4 (20).
	const bytes = times * (size + 8 + 20)
	l := load(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}, "datagrams", strconv.Itoa(times), strconv.Itoa(size))
	figures, _, missing := counting(t, l, alone(l, notebook.TracerIO))
	want := map[string]float64{"lo.received_packets": times, "lo.sent_packets": times, "lo.received_bytes": bytes, "lo.sent_bytes": bytes}
	for name, v := range want {
		if figures[name] != v {
			t.Errorf("%s %v, want %v", name, figures[name], v)
		}
	}
	if missing[notebook.TracerIO] != nil {
		t.Errorf("missing %v, and the network was the load's own", missing)
	}
	l.finish()

	l = load(t, nil, "datagrams", strconv.Itoa(times), strconv.Itoa(size))
	figures, _, missing = counting(t, l, alone(l, notebook.TracerIO))
	l.finish()
	if figures["lo.received_bytes"] < bytes || !strings.Contains(fmt.Sprint(missing[notebook.TracerIO]), "network-of-whole-host") {
		t.Errorf("%v, missing %v, want at least %d, and a word that the network is the host's", figures, missing, bytes)
	}
}

// TestInterruptsOnThisHost asks only for what holds on a host with others on it.
func TestInterruptsOnThisHost(t *testing.T) {
	l := load(t, nil, "busy", "200")
	as := alone(l, notebook.TracerCPU)
	as.CPUs = []int{0}
	began := time.Now()
	figures, _, _ := counting(t, l, as)
	took := time.Since(began).Seconds()
	l.finish()
	for _, name := range []string{"interrupt_s", "steal_s"} {
		v, ok := figures[name]
		if !ok {
			t.Errorf("no %s", name)
		}
		within(t, name, v, 0, took+0.02)
	}
}

func TestAGuestThatHasGone(t *testing.T) {
	l := load(t, nil, "busy", "1")
	as := alone(l, notebook.TracerCPU, notebook.TracerMemory, notebook.TracerIO, notebook.TracerBandwidth)
	before := readCounters(as)
	l.work()
	l.finish()
	figures, _, missing := readCounters(as).since(before)
	for _, name := range []string{"user_s", "minor_faults", "lo.received_bytes"} {
		if v, ok := figures[name]; ok {
			t.Errorf("%s %v of a process that was gone", name, v)
		}
	}
	for _, tr := range as.Tracers {
		if missing[tr.name] == nil {
			t.Errorf("nothing is said to be missing of %s: %v", tr.name, missing)
		}
	}
}

// TestReadingIsCheap bounds the work, not the time, which others on the host would stretch.
func TestReadingIsCheap(t *testing.T) {
	as := counted{PID: os.Getpid(), Threads: []engine.Thread{{ID: os.Getpid(), Role: notebook.RoleRuler}}, Tracers: named(notebook.DefaultTracers)}
	if n := testing.AllocsPerRun(5, func() { readCounters(as) }); n > 5000 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkReadCounters(b *testing.B) {
	as := counted{PID: os.Getpid(), Threads: []engine.Thread{{ID: os.Getpid(), Role: notebook.RoleRuler}}, Tracers: named(notebook.DefaultTracers)}
	b.ReportAllocs()
	for b.Loop() {
		readCounters(as)
	}
}

// TestFiguresAreInTheNotebook holds the names to those that the notebook knows.
func TestFiguresAreInTheNotebook(t *testing.T) {
	known := map[string]string{}
	for _, f := range notebook.TracerMetrics {
		known[f.Name] = f.Tracer
	}
	for _, all := range []map[string]string{bandwidthV1, bandwidthV2, cpuV2, faultsBelow, faultsV2, hugeFaults, reclaimed, ioNames} {
		for name := range maps.Values(all) {
			if known[name] == "" {
				t.Errorf("the notebook does not know %s", name)
			}
		}
	}
}
