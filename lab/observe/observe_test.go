//go:build linux

package observe

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/require"
	"tare/lab/cgroup"
	"tare/lab/live"
	"tare/lab/proc"
	"tare/notebook"
)

// programTime bounds every program of these tests.
const programTime = 4 * time.Minute

var compiled struct {
	sync.Once
	bytes []byte
	err   error
}

// servedPath is the program of testdata/served.c.
func servedPath(t testing.TB) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	require.That(t, err == nil, "a C compiler (Debian package gcc)")
	path := filepath.Join(t.TempDir(), "served")
	compiled.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), programTime)
		defer cancel()
		out, err := exec.CommandContext(ctx, cc, "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread", "-o", path, "testdata/served.c").CombinedOutput()
		if err != nil {
			compiled.err = fmt.Errorf("%w: %s", err, out)
			return
		}
		compiled.bytes, compiled.err = os.ReadFile(path)
	})
	if compiled.err != nil {
		t.Fatal(compiled.err)
	}
	if err := os.WriteFile(path, compiled.bytes, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// group is a cgroup for a test, with a folder in each hierarchy that it needs.
type group struct {
	name        string
	hierarchies cgroup.Hierarchies
	dirs        map[string]string // by controller
}

// newGroup makes a group with limits: files of controllers and what to write. A file may have a name in each version, with a bar between.
func newGroup(t testing.TB, limits map[string]string) *group {
	t.Helper()
	require.That(t, os.Geteuid() == 0, "root")
	g := &group{name: fmt.Sprintf("tare-observe-test-%d", time.Now().UnixNano()), dirs: map[string]string{}}
	var err error
	if g.hierarchies, err = cgroup.Mounted(); err != nil {
		t.Fatal(err)
	}
	for _, controller := range []string{"cpu", "memory"} {
		if g.join(t, controller) {
			continue
		}
		i := slices.IndexFunc(g.hierarchies, func(h cgroup.Hierarchy) bool { return h.V2 && h.Has(controller) })
		require.That(t, i >= 0, "a hierarchy of cgroups with the controller "+controller)
		at := g.hierarchies[i].At
		if err := os.WriteFile(filepath.Join(at, "cgroup.subtree_control"), []byte("+"+controller), 0); err != nil {
			require.That(t, false, fmt.Sprintf("the controller %s for groups below the root: %v", controller, err))
		}
		g.in(t, controller, at)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), programTime)
		defer cancel()
		for _, dir := range g.dirs {
			if err := cgroup.Remove(ctx, dir); err != nil {
				t.Error(err)
			}
		}
	})
	for names, value := range limits {
		controller, _, _ := strings.Cut(names, ".")
		g.set(t, controller, names, value)
	}
	return g
}

// join gives the group a folder in the hierarchy of version 1 that has a controller, and reports whether there is one.
func (g *group) join(t testing.TB, controller string) bool {
	t.Helper()
	h := g.hierarchies.V1(controller)
	if h != nil {
		g.in(t, controller, h.At)
	}
	return h != nil
}

// in gives it a folder in the hierarchy that is mounted there.
func (g *group) in(t testing.TB, controller, at string) {
	t.Helper()
	g.dirs[controller] = filepath.Join(at, g.name)
	if err := os.MkdirAll(g.dirs[controller], 0o755); err != nil {
		t.Fatal(err)
	}
}

func (g *group) set(t testing.TB, controller, names, value string) {
	t.Helper()
	for _, file := range strings.Split(names, "|") {
		path := filepath.Join(g.dirs[controller], file)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		if file == "cpu.cfs_quota_us" {
			value, _, _ = strings.Cut(value, " ")
		}
		if err := os.WriteFile(path, []byte(value), 0); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("none of the files %s", names)
}

// read is a number in a flat file of the group.
func (g *group) read(t testing.TB, controller, file, key string) float64 {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(g.dirs[controller], file))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == key {
			n, err := strconv.ParseFloat(f[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	return math.NaN()
}

// service is a running program of testdata/served.c.
type service struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// serve starts it in the group (nil: in none of its own) and on these CPUs (none: all).
func serve(t testing.TB, g *group, cpus []int, args ...string) *service {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), programTime)
	line := []string{"-c", `for f; do [ "$f" = -- ] && break; echo $$ >"$f" || exit 1; shift; done; shift; exec "$@"`, "sh"}
	if g != nil {
		for _, dir := range g.dirs {
			line = append(line, filepath.Join(dir, "cgroup.procs"))
		}
	}
	line = append(line, "--")
	if len(cpus) > 0 {
		taskset, err := exec.LookPath("taskset")
		require.That(t, err == nil, "taskset (Debian package util-linux)")
		line = append(line, taskset, "-c", notebook.FormatCPUList(cpus))
	}
	line = append(append(line, servedPath(t)), args...)
	s := &service{t: t, cmd: exec.CommandContext(ctx, "sh", line...)}
	s.cmd.Stderr = os.Stderr
	in, err := s.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.in, s.out = in, bufio.NewReader(out)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = s.cmd.Wait() // it was killed
	})
	if said, err := s.out.ReadString('\n'); err != nil || said != "ready\n" {
		t.Fatalf("%q, %v", said, err)
	}
	return s
}

func (s *service) pid() int { return s.cmd.Process.Pid }

// waited is for how long it has waited, by its own clock, in seconds.
func (s *service) waited() float64 {
	s.t.Helper()
	if _, err := s.in.Write([]byte{'?'}); err != nil {
		s.t.Fatal(err)
	}
	said, err := s.out.ReadString('\n')
	if err != nil {
		s.t.Fatal(err)
	}
	var elapsed, cpu, waited float64
	if _, err := fmt.Sscan(said, &elapsed, &cpu, &waited); err != nil {
		s.t.Fatalf("%q: %v", said, err)
	}
	return waited
}

// seen is an observation, and shares of a part of its time: from the end of its first slice to the end of its last.
type seen struct {
	*notebook.Observation
	share map[string]float64
	truth float64 // what read counted in that time, over that time
}

// observedFor observes a target, and checks that nothing is counted twice. read is a count in seconds by another way to know; nil: none.
func observedFor(t testing.TB, name string, options Options, read func() float64) seen {
	t.Helper()
	target, err := live.Find(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	var counts []float64
	if read != nil {
		options.Say = func(time.Duration) { counts = append(counts, read()) }
	}
	o, err := Watch(t.Context(), target, options)
	if err != nil {
		t.Fatal(err)
	}
	a, sum, part := seen{o, map[string]float64{}, 0}, 0.0, o.Seconds-o.Slices[0].Seconds
	for i, s := range o.Slices {
		for key, seconds := range s.Wall {
			if sum += seconds; i > 0 {
				a.share[key] += seconds / part
			}
		}
	}
	if math.Abs(sum-o.Seconds) > 0.001*o.Seconds {
		t.Errorf("the account is of %.4f of %.4f s: %v", sum, o.Seconds, a.share)
	}
	if read != nil {
		a.truth = (counts[len(counts)-1] - counts[0]) / part
	}
	t.Logf("truth %.3f, seen %v, notes %v, lost %d", a.truth, a.share, o.Said, o.Lost)
	return a
}

// lastCPU is a CPU of the host.
func lastCPU(t testing.TB) []int {
	t.Helper()
	online, err := proc.OnlineCPUs()
	if err != nil {
		t.Fatal(err)
	}
	return online[len(online)-1:]
}

// idle is for which part of the time all threads waited for what they may be there for.
func (a seen) idle() float64 {
	return a.share[notebook.WallNetwork] + a.share[notebook.WallFutex] + a.share[notebook.WallSleep] + a.share[notebook.WallOther]
}

// within says whether a share is within five points of the truth.
func within(share, truth float64) bool { return math.Abs(share-truth) <= 0.05 }

// A service that uses 80 % of its limit on average, in bursts of four threads: the limit holds it back for as long as the kernel counts, which
// is for the one CPU of its threads.
func TestThrottledByItsLimit(t *testing.T) {
	g := newGroup(t, map[string]string{"cpu.cfs_quota_us|cpu.max": "25000 100000"})
	serve(t, g, lastCPU(t), "burst", "4", "40", "190") // not a multiple of the period: sometimes a request has two periods
	file, unit := "throttled_time", 1e-9
	if math.IsNaN(g.read(t, "cpu", "cpu.stat", file)) {
		file, unit = "throttled_usec", 1e-6
	}
	for _, counters := range []bool{false, true} {
		a := observedFor(t, g.dirs["cpu"], Options{For: 4 * time.Second, Counters: counters}, func() float64 { return g.read(t, "cpu", "cpu.stat", file) * unit })
		if got := a.share[notebook.WallThrottled]; !within(got, a.truth) || a.truth == 0 {
			t.Errorf("counters %v: throttled for %.3f, the kernel says %.3f: %v", counters, got, a.truth, a.share)
		}
		if q := a.Quota; q == nil || q.Cores != 0.25 || q.PeriodS != 0.1 || q.LimitedS == 0 || !counters && q.Exhausted == 0 {
			t.Errorf("quota %+v", q)
		}
		if !counters && (a.Cost == nil || a.Cost.Runs == 0 || a.Cost.Seconds > 0.05*a.Cost.Of) {
			t.Errorf("cost %+v", a.Cost)
		}
	}
}

// Processes that end soon count too: the time that they ran, and whether it was in their own code, by events and by counters, of a cgroup and of a
// process.
func TestShortLivedProcesses(t *testing.T) {
	g := newGroup(t, map[string]string{"cpu.cfs_quota_us|cpu.max": "40000 100000"})
	g.join(t, "cpuacct")
	s := serve(t, g, lastCPU(t), "children", "10")
	for _, c := range []struct {
		name     string
		counters bool
	}{{g.dirs["cpu"], false}, {g.dirs["cpu"], true}, {strconv.Itoa(s.pid()), false}, {strconv.Itoa(s.pid()), true}} {
		a := observedFor(t, c.name, Options{For: 4 * time.Second, Counters: c.counters}, s.waited)
		user, system := a.share[notebook.WallUser], a.share[notebook.WallSystem]
		if !within(user, a.truth) || system > 0.15 || a.share[notebook.WallThrottled] < 0.05 {
			t.Errorf("%+v: user %.3f, system %.3f, the program's children %.3f in user code: %v", c, user, system, a.truth, a.share)
		}
		if cores := a.Figures["run_s"] / a.Seconds; !within(cores-system, a.truth) { // making processes takes longer on a busy host
			t.Errorf("%+v: %.3f cores, %.3f of them in the kernel, and the program's children %.3f in user code", c, cores, system, a.truth)
		}
		for _, m := range a.Said {
			if off, is := m.Args["share"].(float64); is && off > 0.2 {
				t.Errorf("%+v: %v", c, m)
			}
		}
	}
}

// The parts of the running time only grow, even if samples say now one thing and now the other.
func TestDivided(t *testing.T) {
	d, ran, stolen, before := divided{}, 0.0, 0.0, map[string]float64{}
	for i := range 20 {
		ran, stolen = ran+0.09, stolen+0.01
		d.add(ran+stolen, ran, stolen, func(running float64) (user, system float64) {
			system = running * float64(i%2)
			return running - system, system
		})
		sum := 0.0
		for key, v := range d.parts {
			if v < before[key] {
				t.Errorf("%s fell from %g to %g", key, before[key], v)
			}
			before[key], sum = v, sum+v
		}
		if math.Abs(sum-ran-stolen) > 1e-9 {
			t.Errorf("the parts are %g in all, want %g", sum, ran+stolen)
		}
	}
	if got := d.parts[notebook.WallStolen]; math.Abs(got-0.2) > 1e-9 {
		t.Errorf("stolen %g, want 0.2", got)
	}
}

// A paused target is said to be paused.
func TestPaused(t *testing.T) {
	g := newGroup(t, nil)
	file, freeze, thaw := "cgroup.freeze", "1", "0"
	if g.join(t, "freezer") {
		file, freeze, thaw = "freezer.state", "FROZEN", "THAWED"
	} else {
		g.dirs["freezer"] = g.dirs["cpu"]
	}
	s := serve(t, g, nil, "sleeps")
	put := func(value string) {
		if err := os.WriteFile(filepath.Join(g.dirs["freezer"], file), []byte(value), 0); err != nil {
			t.Fatal(err)
		}
	}
	put(freeze)
	t.Cleanup(func() { put(thaw) })
	if a := observedFor(t, strconv.Itoa(s.pid()), Options{For: time.Second}, nil); !a.Paused {
		t.Errorf("%+v", a.Observation)
	}
	put(thaw)
	if a := observedFor(t, strconv.Itoa(s.pid()), Options{For: time.Second}, nil); a.Paused {
		t.Errorf("%+v", a.Observation)
	}
}

// An observation begins when the programs are loaded, not when Tare begins to load them.
func TestWhenItBegan(t *testing.T) {
	s := serve(t, nil, nil, "burst", "1", "1", "100")
	target, err := live.Find(t.Context(), strconv.Itoa(s.pid()))
	if err != nil {
		t.Fatal(err)
	}
	called := time.Now()
	var began time.Time
	o, err := Watch(t.Context(), target, Options{For: time.Second, Began: func() { began = time.Now() }})
	if err != nil {
		t.Fatal(err)
	}
	if half := called.Add(began.Sub(called) / 2); o.At.Before(half) || o.At.After(began) {
		t.Errorf("it began %v after the call, and says %v", began.Sub(called), o.At.Sub(called))
	}
}

// One that wants a core which four neighbours want too waits behind them, and they are named. The kernel counts its wait in schedstat.
func TestStarvedByNeighbours(t *testing.T) {
	cpus := lastCPU(t)
	s := serve(t, newGroup(t, nil), cpus, "burst", "1", "100", "100")
	var names []string
	for range 4 {
		g := newGroup(t, nil)
		serve(t, g, cpus, "burst", "1", "100", "100")
		names = append(names, "/"+filepath.Base(g.dirs["cpu"]))
	}
	a := observedFor(t, strconv.Itoa(s.pid()), Options{For: 4 * time.Second}, func() float64 {
		_, waited, err := threadsWait(s.pid())
		if err != nil {
			t.Fatal(err)
		}
		return waited.Seconds()
	})
	if got := a.share[notebook.WallCore]; !within(got, a.truth) || a.truth < 0.5 {
		t.Errorf("waited for a core for %.3f, the kernel says %.3f: %v", got, a.truth, a.share)
	}
	all, known := 0.0, 0.0
	for _, who := range a.Ahead {
		all += who.Seconds
	}
	for _, name := range names {
		share := 0.0
		for _, who := range a.Ahead {
			if who.Name == name && who.Kind == notebook.AheadGroup {
				share += who.Seconds / all
			}
		}
		if known += share; share < 0.05 {
			t.Errorf("behind %s for %.3f of the wait: %+v", name, share, a.Ahead)
		}
	}
	if known < 0.5 {
		t.Errorf("behind its four neighbours for %.3f of the wait: %+v", known, a.Ahead)
	}
}

// threadsWait adds up how long the threads of a process ran and waited for a core, as the kernel counts it.
func threadsWait(pid int) (ran, waited time.Duration, err error) {
	tids, err := proc.Threads(pid)
	for _, tid := range tids {
		r, w, terr := proc.Host.RunAndWait(tid)
		if terr != nil {
			return 0, 0, terr
		}
		ran, waited = ran+r, waited+w
	}
	return ran, waited, err
}

// What sleeps is idle, for as long as it says itself, unless the host lets it wait for a core.
func TestSleeping(t *testing.T) {
	s := serve(t, nil, nil, "sleeps")
	for _, counters := range []bool{false, true} {
		a := observedFor(t, strconv.Itoa(s.pid()), Options{For: 2 * time.Second, Counters: counters}, s.waited)
		if late := a.share[notebook.WallCore] + a.share[notebook.WallStolen]; !within(a.idle(), a.truth-late) || !counters && !within(a.share[notebook.WallSleep], a.truth-late) {
			t.Errorf("counters %v: it slept for %.3f: %v", counters, a.truth, a.share)
		}
	}
}

// file makes a file of so many bytes on a disk.
func file(t testing.TB, size int) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "tare-observe-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "file")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = byte(i * 7)
	}
	for range size >> 20 {
		if _, err := f.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil { // who reads it caches it
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// What reads past the cache waits for its disk, for as long as it says itself, less what it waited for a core then.
func TestWaitingForItsDisk(t *testing.T) {
	s := serve(t, nil, nil, "direct", file(t, 64<<20))
	a := observedFor(t, strconv.Itoa(s.pid()), Options{For: 3 * time.Second}, s.waited)
	late := a.share[notebook.WallCore] + a.share[notebook.WallStolen]
	if got := a.share[notebook.WallBlock]; !within(got, a.truth-late) || got < 0.05 {
		t.Errorf("waited for disks for %.3f, it says itself %.3f with %.3f for a core: %v", got, a.truth, late, a.share)
	}
}

// What reads a file that is larger than its memory limit, again and again, waits for memory: for pages that it had and that were taken away.
func TestBelowItsMemoryLimit(t *testing.T) {
	_, err := proc.Host.Pressure("memory")
	require.That(t, err == nil, fmt.Sprintf("pressure stall information (%v)", err))
	path := file(t, 48<<20)
	g := newGroup(t, map[string]string{"memory.limit_in_bytes|memory.max": strconv.Itoa(32 << 20)})
	s := serve(t, g, nil, "again", path)
	a := observedFor(t, g.dirs["memory"], Options{For: 4 * time.Second}, s.waited)
	late := a.share[notebook.WallCore] + a.share[notebook.WallStolen]
	memory, disk := a.share[notebook.WallMemory], a.share[notebook.WallBlock]
	if !within(memory+disk, a.truth-late) || memory < disk || memory < 0.05 {
		t.Errorf("waited for memory for %.3f and for disks for %.3f, it says itself %.3f with %.3f for a core: %v", memory, disk, a.truth, late, a.share)
	}
	if m := a.Memory; m == nil || m.Limit != 32<<20 || m.Refaults < 1000 || m.AtLimit == 0 || float64(m.Used) < 0.9*float64(m.Limit) {
		t.Errorf("memory %+v", m)
	}
}

// A target that ends is observed until then.
func TestItEndsMidway(t *testing.T) {
	s := serve(t, nil, nil, "sleeps")
	target, err := live.Find(t.Context(), strconv.Itoa(s.pid()))
	if err != nil {
		t.Fatal(err)
	}
	said := 0
	o, err := Watch(t.Context(), target, Options{For: 20 * time.Second, Say: func(time.Duration) {
		if said++; said == 1 {
			if err := s.in.Close(); err != nil {
				t.Error(err)
			}
		}
	}})
	if err != nil || !o.Ended || len(o.Slices) != 2 || o.Seconds < 1 || o.Seconds > 5 {
		t.Fatalf("%+v, %v", o, err)
	}
	if _, err := Watch(t.Context(), target, Options{For: time.Second}); err == nil || !strings.Contains(err.Error(), "has just ended") {
		t.Errorf("it has ended: %v", err)
	}
}

// An interrupt ends the observation early, with what was seen until then.
func TestInterrupted(t *testing.T) {
	s := serve(t, nil, nil, "sleeps")
	target, err := live.Find(t.Context(), strconv.Itoa(s.pid()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	o, err := Watch(ctx, target, Options{For: 20 * time.Second, Say: func(time.Duration) { cancel() }})
	if err != nil || !o.Cut || o.Ended || o.Seconds > 5 {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestUnnumbered(t *testing.T) {
	for name, want := range map[string]string{"worker-12": "worker-*", "GC Thread#0": "GC Thread#*", "nginx": "nginx", "42": "42", "": ""} {
		if got := unnumbered(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
