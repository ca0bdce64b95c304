//go:build linux

package trace

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/require"
	"tare/lab/cgroup"
	"tare/lab/engine"
	"tare/lab/proc"
	"tare/notebook"
)

// openKit is a kit of the tracers, all of whose programs the kernel takes.
func openKit(t testing.TB, names ...string) *Kit {
	t.Helper()
	needRoot(t)
	k, err := Open(names)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	for name, why := range k.Missing() {
		if name != notebook.TracerHypervisor {
			need(t, false, "the tracer "+name+": "+why)
		}
	}
	return k
}

// myself is this process as a ruler: what it creates is work. The test keeps its thread, as a ruler does, for Go may start others that are not listed.
func myself(t testing.TB) []engine.Thread {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	threads, err := engine.ThreadsOf([]int{os.Getpid()}, os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return threads
}

// watched is what the tracers see of a load, which this process runs as a ruler does, and how long that took by its own clock.
func watched(t testing.TB, k *Kit, cores float64, cmd *exec.Cmd) (*notebook.Trace, time.Duration) {
	t.Helper()
	w := k.Attach(Target{Threads: myself(t), PID: os.Getpid(), Cores: cores})
	w.Begin() // is harmless
	start := time.Now()
	out, cmdErr := cmd.CombinedOutput()
	took := time.Since(start)
	w.End()
	p, err := w.Stop()
	if err != nil {
		t.Fatal(err)
	}
	if cmdErr != nil {
		t.Fatalf("%v: %v: %s", cmd.Args, cmdErr, out)
	}
	// A kernel may hide a process of the machine's own. Then at most one event for each switch is lost: a switch to what we watch,
	// or its wake-up by an interrupt. The programs correct for it.
	if p.Lost > 2+int64(p.Figures["switches"]) {
		t.Errorf("%d events of %v switches lost", p.Lost, p.Figures["switches"])
	}
	return p, took
}

func loadCommand(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), loadTime)
	t.Cleanup(cancel)
	return exec.CommandContext(ctx, loadPath(t), args...)
}

// pinned makes the command run on one CPU.
func pinned(t testing.TB, cmd *exec.Cmd, cpu string) *exec.Cmd {
	t.Helper()
	taskset := needTool(t, "taskset", "util-linux")
	cmd.Args = append([]string{"taskset", "-c", cpu, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = taskset
	return cmd
}

// inGroup makes the command run in the cgroup.
func inGroup(t testing.TB, dir string, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	shell := needTool(t, "sh", "dash")
	cmd.Args = append([]string{"sh", "-c", `echo $$ >"$0" && exec "$@"`, filepath.Join(dir, "cgroup.procs"), cmd.Path}, cmd.Args[1:]...)
	cmd.Path = shell
	return cmd
}

// slack is how long this process may need, on a busy host, to hear of its child's end, in seconds.
const slack = 0.05

func wallSum(p *notebook.Trace) (sum float64) {
	for _, v := range p.Wall {
		sum += v
	}
	return sum
}

// near says whether two numbers differ by at most a share of the second, and a floor.
func near(got, want, share, floor float64) bool { return math.Abs(got-want) <= share*want+floor }

func TestWallIsAllOfTheTrial(t *testing.T) {
	k := openKit(t, notebook.TracerScheduler)
	for _, c := range []struct {
		args   []string
		wall   string  // what it is known to go on
		want   float64 // seconds
		beside bool    // less what it waited for a core, which the host may have had no more of
	}{
		{[]string{"busy", "200"}, notebook.WallUser, 0.2, true},
		{[]string{"sleep", "20", "10"}, notebook.WallSleep, 0.2, false},
		{[]string{"futex", "20", "10"}, notebook.WallFutex, 0.2, false},
		{[]string{"socket", "20", "10"}, notebook.WallNetwork, 0.2, false},
		{[]string{"signal", "20", "10"}, notebook.WallOther, 0.2, false},
		{[]string{"files", "5", "20"}, notebook.WallNetwork, 0.1, false},
		{[]string{"run", "20", "20", "5"}, notebook.WallUser, 0.1, false},
		{[]string{"run", "20", "20", "5"}, notebook.WallSleep, 0.1, false},
	} {
		check := func(t testing.TB) {
			cmd := loadCommand(t, c.args...)
			p, took := watched(t, k, 1, cmd)
			if sum := wallSum(p); sum > took.Seconds()+0.001 || sum < took.Seconds()-slack || !near(sum, p.Figures["elapsed_s"], 0.001, 1e-4) {
				t.Errorf("the account is of %.4f s; the trial took %.4f s and the tracer saw %.4f s", sum, took.Seconds(), p.Figures["elapsed_s"])
			}
			got := p.Wall[c.wall]
			if c.beside {
				got += p.Wall[notebook.WallCore]
			}
			want := c.want
			if c.wall == notebook.WallUser { // a host that is a VM itself may lose its CPU meanwhile, and the kernel counts that as use
				want = max(want, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
			}
			// A kernel's tick and timer slack; a late timer on a busy host makes a wait longer.
			if got < c.want-0.01 || got > 1.4*want+0.02 {
				t.Errorf("%s: %.4f s, want %.2f: %v", c.wall, got, want, p.Wall)
			}
		}
		t.Run(strings.Join(c.args, " ")+" "+c.wall, func(t *testing.T) { require.Quiet(t, check) })
	}
}

// A trial lasts until its last thread's end, whatever wakes its ruler before.
func TestATrialOutlivesItsFirstThread(t *testing.T) {
	k := openKit(t, notebook.TracerScheduler)
	p, took := watched(t, k, 1, loadCommand(t, "leaderless", "150"))
	if sum := wallSum(p); sum > took.Seconds()+0.001 || sum < 0.15 || !near(sum, p.Figures["elapsed_s"], 0.001, 1e-4) {
		t.Errorf("the account is of %.4f s and the tracer saw %.4f s; the trial took %.4f s: %v", sum, p.Figures["elapsed_s"], took.Seconds(), p.Wall)
	}
}

// A repair that takes more time from a wait than was charged to it leaves no negative time, and does not change the sum.
func TestRepairsLeaveNoNegativeTime(t *testing.T) {
	s := &span{}
	s.Wall[wallRun], s.Wall[wallCore], s.Wall[wallIdle+forSleep] = 100, 7, 3
	over := &span{}
	over.Wall[wallIdle+forSleep] -= 10
	over.Wall[wallRun] += 10
	s.add(over)
	s.settle()
	want := span{}
	want.Wall[wallRun], want.Wall[wallCore] = 103, 7
	if *s != want {
		t.Errorf("%v, want %v", s.Wall, want.Wall)
	}
}

// spread is the number of values and their sum.
func spread(p *notebook.Trace, what, of string) (n int64, sum float64) {
	for _, d := range p.Spread {
		if d.Role == notebook.RoleWork && d.What == what && d.Of == of {
			for _, c := range d.Counts {
				n += c
			}
			sum += d.Sum
		}
	}
	return n, sum
}

func TestOffCPUTimeByReason(t *testing.T) { require.Quiet(t, offCPUTimeByReason) }

func offCPUTimeByReason(t testing.TB) {
	k := openKit(t, notebook.TracerScheduler)
	p, _ := watched(t, k, 1, loadCommand(t, "sleep", "10", "20"))
	n, sum := spread(p, notebook.OffCPU, notebook.WallSleep)
	// On a busy host a timer may be over before its thread sleeps.
	if n < 17 || n > 20 || sum < 0.01*float64(n)-0.001 || sum > 0.02*float64(n) {
		t.Errorf("%d sleeps of %.3f s in all, want 20 of 0.2 s", n, sum)
	}
	for _, d := range p.Spread {
		if d.What == notebook.OffCPU && d.Of == notebook.WallSleep {
			for i, c := range d.Counts { // 10 ms are between 2^23 and 2^24 ns
				if c > 0 && i < 23 {
					t.Errorf("%d sleeps of less than %d ns: %v", c, 1<<(i+1), d.Counts)
				}
			}
		}
	}
	if on, sum := spread(p, notebook.OnCPU, ""); on < 20 || !near(sum, p.Figures["run_s"], 0.001, 1e-6) {
		t.Errorf("%d slices of %.4f s; switched %v times after %.4f s", on, sum, p.Figures["switches"], p.Figures["run_s"])
	}
}

func TestSwitchesBesidePerf(t *testing.T) {
	k := openKit(t, notebook.TracerScheduler)
	perf := needTool(t, "perf", "linux-perf")
	const trips = 2000
	load := loadPath(t)
	out := filepath.Join(t.TempDir(), "perf")
	ctx, cancel := context.WithTimeout(t.Context(), loadTime)
	defer cancel()
	p, _ := watched(t, k, 1, pinned(t, exec.CommandContext(ctx, perf, "stat", "-x,", "-e", "context-switches", "-o", out, load, "pingpong", "2000"), "0"))
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	theirs := -1.0
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(line, ","); len(f) > 2 && strings.HasPrefix(f[2], "context-switches") {
			if theirs, err = strconv.ParseFloat(f[0], 64); err != nil {
				t.Fatal(err)
			}
		}
	}
	// perf itself is in our figure: a few dozen.
	ours := p.Figures["switches"]
	if theirs < 2*trips || ours < theirs || ours > theirs+300 {
		t.Errorf("%v switches, perf says %v; want at least %d", ours, theirs, 2*trips)
	}
	if p.Figures["tasks"] < 2 {
		t.Errorf("%v tasks created; there are two processes", p.Figures["tasks"])
	}
}

// A process that is held to one CPU has run on one.
func TestCPUsUsed(t *testing.T) {
	k := openKit(t, notebook.TracerScheduler)
	runtime.LockOSThread() // the thread ends with the test
	online, err := proc.OnlineCPUs()
	if err != nil {
		t.Fatal(err)
	}
	var one unix.CPUSet
	one.Set(online[len(online)-1])
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	p, _ := watched(t, k, 1, loadCommand(t, "busy", "200"))
	if got := p.Figures["cpus_used"]; got != 1 {
		t.Errorf("it ran on %v CPUs, want 1", got)
	}
}

func TestMigrations(t *testing.T) {
	k := openKit(t, notebook.TracerScheduler)
	online, err := proc.OnlineCPUs()
	if err != nil {
		t.Fatal(err)
	}
	need(t, len(online) >= 2, "two CPUs")
	const times = 200
	p, _ := watched(t, k, 1, loadCommand(t, "migrate", strconv.Itoa(online[0]), strconv.Itoa(online[1]), strconv.Itoa(times)))
	if got := p.Figures["migrations"]; got < times-float64(p.Lost) || got > times+10 {
		t.Errorf("%v migrations, want %d, and a few at its start; %d events were lost", got, times, p.Lost)
	}
	// The kernel counts this for cgroups of version 1 only, so the programs do.
	if got := p.Figures["cpus_used"]; got < 2 || got > float64(len(online)) {
		t.Errorf("it ran on %v CPUs, want at least 2 of %d", got, len(online))
	}
	if p.Figures["cache_migrations"] > p.Figures["migrations"] || p.Figures["node_migrations"] > p.Figures["migrations"] {
		t.Errorf("more migrations between domains than migrations: %v", p.Figures)
	}
}

func TestThrottling(t *testing.T) { require.Quiet(t, throttling) }

func throttling(t testing.TB) {
	k := openKit(t, notebook.TracerScheduler, notebook.TracerBandwidth)
	dir := halfACore(t)
	cmd := inGroup(t, dir, loadCommand(t, "busy", "1000"))
	w := k.Attach(Target{Threads: myself(t), Cores: 1})
	out, cmdErr := cmd.CombinedOutput()
	p, err := w.Stop()
	if err != nil || cmdErr != nil {
		t.Fatalf("%v, %v: %s", err, cmdErr, out)
	}
	// It wants a core for a second of the clock and has half of one. If others are busy it gets less and is throttled less. The
	// kernel counts the time for its run queue, which has one thread.
	throttled := p.Wall[notebook.WallThrottled]
	if want := throttledTime(t, dir); !near(throttled, want, 0.15, 0.02) {
		t.Errorf("throttled for %.3f s, the kernel counted %.3f s: %v", throttled, want, p.Wall)
	}
	if sum := throttled + p.Wall[notebook.WallUser] + p.Wall[notebook.WallCore]; !near(sum, 1, 0.05, 0.02) {
		t.Errorf("throttled, running and waiting for a core are %.3f s together, want 1: %v", sum, p.Wall)
	}
	if alone := p.Wall[notebook.WallCore] < 0.05; alone && (throttled < 0.35 || throttled > 0.56) {
		t.Errorf("throttled for %.3f s, want 0.5: %v", throttled, p.Wall)
	}
	if _, sum := spread(p, notebook.OffCPU, notebook.WallThrottled); !near(sum, throttled, 0.05, 0.01) {
		t.Errorf("the distribution of throttled times is of %.3f s, the account of %.3f s; %d events were lost", sum, throttled, p.Lost)
	}
}

func TestBlockRequests(t *testing.T) {
	k := openKit(t, notebook.TracerScheduler, notebook.TracerIO, notebook.TracerBlock)
	const blocks = 200
	p, _ := watched(t, k, 1, loadCommand(t, "write", filepath.Join(scratch(t), "file"), strconv.Itoa(blocks)))
	var writes, bytes float64
	for name, v := range p.Figures {
		switch {
		case strings.HasSuffix(name, ".writes"):
			writes += v
		case strings.HasSuffix(name, ".written_bytes"):
			bytes += v
		}
	}
	// The file system's own requests are counted too. The trace says what was lost.
	if least := blocks - float64(p.Lost); writes < least || writes > 2*blocks || bytes < least*4096 {
		t.Errorf("%v writes of %v bytes, want %d of 4096 each: %v", writes, bytes, blocks, p.Figures)
	}
	n := int64(0)
	for _, d := range p.Spread {
		if d.What == notebook.BlockIO && strings.HasSuffix(d.Of, " write") {
			for _, c := range d.Counts {
				n += c
			}
		}
	}
	if n != int64(writes) {
		t.Errorf("%d latencies of %v writes", n, writes)
	}
	if p.Wall[notebook.WallBlock] == 0 {
		t.Errorf("no time was spent in waiting for the device: %v", p.Wall)
	}
}

func TestKindsOfFaults(t *testing.T) {
	k := openKit(t, notebook.TracerScheduler, notebook.TracerMemory, notebook.TracerFaults)
	const pages = 61 * 300
	for _, c := range []struct {
		args        []string
		kind, other string
	}{
		{[]string{"anonymous", strconv.Itoa(pages)}, "anonymous_faults", "file_faults"},
		{[]string{"file", filepath.Join(scratch(t), "file"), strconv.Itoa(pages)}, "file_faults", "anonymous_faults"},
	} {
		p, _ := watched(t, k, 1, loadCommand(t, c.args...))
		if got := p.Figures[c.kind]; !near(got, pages, 0.1, 2*faultPeriod) {
			t.Errorf("%v: %v %s, want %d ± a sample: %v", c.args, got, c.kind, pages, p.Figures)
		}
		if got := p.Figures[c.other]; got > pages/10 {
			t.Errorf("%v: %v %s, want next to none", c.args, got, c.other)
		}
	}
}

func TestSamplesOfTheKernel(t *testing.T) { require.Quiet(t, samplesOfTheKernel) }

func samplesOfTheKernel(t testing.TB) {
	k := openKit(t, notebook.TracerScheduler, notebook.TracerAccounting)
	p, _ := watched(t, k, 1, loadCommand(t, "system", "400"))
	if got := p.Figures["kernel_s"]; !near(got, 0.4, 0.35, 0) {
		t.Errorf("%.3f s in the kernel, want 0.4: %v", got, p.Figures)
	}
	p, _ = watched(t, k, 1, loadCommand(t, "busy", "400"))
	if got, run := p.Figures["kernel_s"], p.Figures["run_s"]; got > 0.25*run {
		t.Errorf("%.3f s of %.3f s in the kernel, want next to none: %v", got, run, p.Figures)
	}
}

// stealing returns a function that says how many seconds the CPU clocks of threads lack at most since this call: steal, and
// interrupts. The kernel tells whole ticks.
func stealing(t testing.TB) (most func() float64) {
	t.Helper()
	stolen := func() time.Duration {
		c, err := proc.Host.CPUTime()
		if err != nil {
			t.Fatal(err)
		}
		return c.Stolen + c.Interrupts
	}
	before := stolen()
	return func() float64 { return (stolen() - before + proc.Tick).Seconds() }
}

// The time that a trial ran is complete even if the ruler learns of its end before its last thread leaves its core. Only steal between the thread's end
// and that moment may be missing.
func TestTheLastSliceIsOfTheTrial(t *testing.T) {
	steal, missing := stealing(t), 0.0
	k := openKit(t, notebook.TracerScheduler)
	for range 60 {
		p, _ := watched(t, k, 1, loadCommand(t, "busy", "20"))
		// A lost slice is some milliseconds. On a busy host the trial may get its core for only half a millisecond, and its way
		// onto the core is a tenth of that.
		if run := p.Figures["run_s"]; p.Lost == 0 && run < 0.9*p.Wall[notebook.WallUser]-0.0002 {
			t.Logf("its slices on a core are of %.4f s, its account of %.4f s; %d events were lost: %v %v", run, p.Wall[notebook.WallUser], p.Lost, p.Wall, p.Figures)
			missing += p.Wall[notebook.WallUser] - run
		}
	}
	if most := steal(); missing > most {
		t.Errorf("slices of %.4f s are missing, but steal was at most %.4f s", missing, most)
	}
}

func TestStacks(t *testing.T) {
	k := openKit(t, notebook.TracerScheduler, notebook.TracerStacks)
	p, _ := watched(t, k, 1, loadCommand(t, "sleep", "20", "10"))
	w := k.Attach(Target{Threads: myself(t), Cores: 1})
	if id, err := k.coll.Maps["stacks"].NextKeyBytes(nil); err != nil || id != nil {
		t.Errorf("the next trial begins with the last one's stacks, for which it then has less room: %v, %v", id, err)
	} else if _, err := w.Stop(); err != nil {
		t.Error(err)
	}
	if len(p.Stacks) == 0 || p.Stacks[0].Count < 5 || p.Stacks[0].Seconds < 0.1 || !slices.ContainsFunc(p.Stacks[0].Frames, func(f string) bool { return strings.Contains(f, "nanosleep") }) {
		t.Errorf("the longest wait was in nanosleep: %+v", p.Stacks)
	}
	for _, s := range p.Stacks {
		if slices.ContainsFunc(s.Frames, func(f string) bool { return strings.HasPrefix(f, "bpf_") || strings.HasPrefix(f, "__bpf") }) {
			t.Errorf("the tracer itself is in %v", s.Frames)
		}
	}
}

// What the tracer itself is of a stack is cut off on every kernel.
func TestStacksAreWithoutTheTracer(t *testing.T) {
	wait := []string{"__schedule", "schedule", "do_nanosleep", "hrtimer_nanosleep", "entry_SYSCALL_64_after_hwframe"}
	inlined := []string{"schedule", "do_nanosleep"}
	for kernel, frames := range map[string][][]string{
		"6.18.44":                        {{"bpf_prog_05c49057fda8a733_switched", "bpf_trace_run4"}, wait},
		"6.18.x, earlier":                {{"bpf_prog_05c49057fda8a733_switched", "bpf_trace_run4", "__bpf_trace_sched_switch", "__traceiter_sched_switch"}, wait},
		"6.1":                            {{"bpf_get_stackid_raw_tp", "bpf_prog_05c49057fda8a733_switched", "bpf_trace_run4", "__bpf_trace_sched_switch", "__traceiter_sched_switch"}, wait},
		"programs without symbols":       {{"vmw_balloon_work", "bpf_trace_run4", "__traceiter_sched_switch"}, wait},
		"__schedule compiled into it":    {{"bpf_prog_05c49057fda8a733_switched", "bpf_trace_run4", "__traceiter_sched_switch"}, inlined},
		"a function of another name":     {{"bpf_prog_05c49057fda8a733_switched", "bpf_trace_run4"}, {"do_task_dead", "do_exit"}},
		"nothing of the tracer":          {nil, wait},
		"a program that waits in bpf(2)": {{"bpf_trace_run4"}, {"__schedule", "schedule", "bpf_map_update_value", "__sys_bpf", "__x64_sys_bpf"}},
	} {
		if got := withoutTracer(slices.Concat(frames...)); !slices.Equal(got, frames[1]) {
			t.Errorf("%s: %v, want %v", kernel, got, frames[1])
		}
	}
}

// The first tier counts what a load is known to do, and takes no program into its switches.
func TestThreadsAreCounted(t *testing.T) { require.Quiet(t, threadsAreCounted) }

func threadsAreCounted(t testing.TB) {
	k := openKit(t, notebook.TracerThreads)
	if k.coll.Programs["switched"] != nil {
		t.Error("a program for each switch was loaded")
	}
	p, took := watched(t, k, 1, loadCommand(t, "busy", "200"))
	if seen := p.Figures["elapsed_s"]; seen > took.Seconds() || seen < took.Seconds()-slack {
		t.Errorf("the trial took %.4f s and %.4f s were seen", took.Seconds(), seen)
	}
	if sum := p.Figures["run_s"] + p.Figures["delay_s"]; !near(sum, p.Figures["elapsed_s"], 0.1, 0.02) {
		t.Errorf("it ran and stood in queues for %.4f s of %.4f s, in which it did nothing else", sum, p.Figures["elapsed_s"])
	}
	p, _ = watched(t, k, 1, loadCommand(t, "sleep", "20", "10"))
	if waits := p.Figures["waits"]; waits < 7 || waits > 40 {
		t.Errorf("%v waits, want 10 and a few", waits)
	}
	if busy := p.Figures["run_s"] + p.Figures["delay_s"]; busy > 0.15 {
		t.Errorf("ran and stood in queues for %.4f s of 0.2 s in which it slept", busy)
	}
	dir := halfACore(t)
	p, took = watched(t, k, 1, inGroup(t, dir, loadCommand(t, "busy", "500")))
	// Half of the time, and less where others get of its half: then it is throttled less, which the kernel counts.
	if delay, throttled := p.Figures["delay_s"], throttledTime(t, dir); delay < 0.85*throttled-0.02 || delay > took.Seconds() {
		t.Errorf("stood in queues for %.4f s of %.4f s, and the kernel counts %.4f s of it as throttled", delay, took.Seconds(), throttled)
	}
}

// A thread of an existing process is counted from the trial's beginning to its end.
func TestThreadsByWord(t *testing.T) {
	k := openKit(t, notebook.TracerThreads)
	l := load(t, nil, "run", "20", "20", "10")
	threads, err := engine.ThreadsOf([]int{l.pid()}, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := k.Attach(Target{Threads: threads, PID: l.pid(), Cores: 1})
	w.Begin()
	l.work()
	w.End()
	p, err := w.Stop()
	if err != nil {
		t.Fatal(err)
	}
	l.finish()
	if run := p.Figures["run_s"]; run < 0.05 || run > 0.4 {
		t.Errorf("ran %.4f s, want 0.2: %v", run, p.Figures)
	}
}

// A service: the guest's threads exist before, and the trial is the life of a child of a ruler elsewhere.
func TestAServiceIsWatchedWhileItsLoadLives(t *testing.T) {
	k := openKit(t, notebook.TracerScheduler)
	service := load(t, nil, "run", "10", "10", "30")
	threads, err := engine.ThreadsOf([]int{service.pid()}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var clock []int
	for _, th := range myself(t) {
		clock = append(clock, th.ID)
	}
	w := k.Attach(Target{Threads: threads, Clock: clock, PID: service.pid(), Cores: 1})
	if _, err := service.put.Write([]byte{'\n'}); err != nil {
		t.Fatal(err)
	}
	steal, start := stealing(t), time.Now()
	if out, err := loadCommand(t, "busy", "300").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	took := time.Since(start).Seconds()
	p, err := w.Stop()
	if err != nil {
		t.Fatal(err)
	}
	most := steal()
	service.line("done")
	if sum := wallSum(p); sum > took+0.001 || !near(sum, p.Figures["elapsed_s"], 0.001, 1e-4) {
		t.Errorf("the account is of %.3f s of %.3f s that were seen, the load took %.3f s", sum, p.Figures["elapsed_s"], took)
	}
	if p.Wall[notebook.WallCore] > 0.1*took {
		t.Skip("the host has no core left for the service")
	}
	// The service runs for 10 ms of its own CPU time, which does not include steal, and then sleeps for 10 ms. The load may end during either.
	if run, sleep := p.Wall[notebook.WallUser], p.Wall[notebook.WallSleep]; sleep < 0.01 || !near(sleep, run, 0.2, 0.02+most) {
		t.Errorf("ran %.3f s and slept %.3f s of %.3f s, want as much of each: %v", run, sleep, took, p.Wall)
	}
}

func TestNothingIsSeenWithoutATrial(t *testing.T) {
	k := openKit(t, notebook.TracerScheduler, notebook.TracerAccounting)
	w := k.Attach(Target{Threads: myself(t), Cores: 1})
	p, err := w.Stop()
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range k.tracers {
		if p.Wall != nil || !p.Missing[tr.name].Is("no-trial-seen") || slices.Contains(p.Looked, tr.name) {
			t.Errorf("%s: %+v", tr.name, p)
		}
	}
}

func TestTracersAreThoseOfTheNotebook(t *testing.T) {
	for _, name := range notebook.TracerNames {
		if tracers[name].name != name {
			t.Errorf("no file adds the tracer %s", name)
		}
	}
	if len(tracers) != len(notebook.TracerNames) {
		t.Errorf("%d tracers, but notebook.Tracers has %d", len(tracers), len(notebook.TracerNames))
	}
	inside := Inside(notebook.TracerNames)
	if slices.Contains(inside, notebook.TracerHypervisor) || slices.Contains(inside, notebook.TracerRequests) || len(inside) != len(notebook.TracerNames)-2 {
		t.Errorf("inside a guest: %v", inside)
	}
}

func TestUnknownTracer(t *testing.T) {
	if _, err := Open([]string{"scheduler", "sched"}); err == nil || !strings.Contains(err.Error(), `"sched"; must be one of threads, `) {
		t.Errorf("%v", err)
	}
}

// Where a guest's ruler is not on the host, the trial's bounds are the host's word.
func TestBoundsByWord(t *testing.T) {
	k := openKit(t, notebook.TracerScheduler)
	l := load(t, nil, "run", "20", "20", "10")
	threads, err := engine.ThreadsOf([]int{l.pid()}, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := k.Attach(Target{Threads: threads, PID: l.pid(), Cores: 1})
	before := time.Now()
	w.Begin()
	start := time.Now()
	l.work()
	least := time.Since(start).Seconds()
	w.End()
	most := time.Since(before).Seconds() // a busy host may take its time for each word
	p, err := w.Stop()
	if err != nil {
		t.Fatal(err)
	}
	l.finish()
	if sum := wallSum(p); sum < least-0.001 || sum > most+0.001 {
		t.Errorf("the account is of %.4f s, by the clock it was %.4f to %.4f s", sum, least, most)
	}
	if got := p.Wall[notebook.WallSleep]; got < 0.19 || got > most {
		t.Errorf("slept %.3f s, want 0.2: %v", got, p.Wall)
	}
}

// halfACore is the folder of a new cgroup with a CPU quota of half a core. It is gone when the test ends.
func halfACore(t testing.TB) string {
	t.Helper()
	needRoot(t)
	own, err := cgroup.Of(os.Getpid(), "cpu")
	if err != nil || own == "" {
		need(t, false, fmt.Sprintf("a cgroup hierarchy with the CPU controller (%v)", err))
	}
	top := own
	dir, err := os.MkdirTemp(top, "tare-tracer-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := cgroup.Remove(ctx, dir); err != nil {
			t.Error(err)
		}
	})
	file, value := "cpu.cfs_quota_us", "50000"
	if _, err := os.Stat(filepath.Join(dir, "cpu.max")); err == nil {
		file, value = "cpu.max", "50000 100000"
	}
	if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0); err != nil {
		t.Fatal(err)
	}
	return dir
}

// throttledTime is how long the kernel has throttled what is in the cgroup, in seconds.
func throttledTime(t testing.TB, dir string) float64 {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "cpu.stat"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		unit := map[string]float64{"throttled_time": 1e-9, "throttled_usec": 1e-6}[name]
		if unit == 0 {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n * unit
	}
	t.Fatalf("cpu.stat has no throttled time: %s", b)
	return 0
}
