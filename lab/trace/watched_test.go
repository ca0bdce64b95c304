//go:build linux

package trace

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/engine"
	"tare/lab/proc"
	"tare/notebook"
)

// watch watches processes that run already while do runs.
func watch(t testing.TB, k *Kit, cores float64, pids []int, do func(*Trace)) (*Watched, *notebook.Trace) {
	t.Helper()
	threads, err := engine.ThreadsOf(pids, 0)
	if err != nil {
		t.Fatal(err)
	}
	tr := k.Attach(Target{Threads: threads, PID: pids[0], Cores: cores, Word: true, Each: true})
	tr.Begin()
	do(tr)
	tr.End()
	w, werr := tr.Watched()
	p, err := tr.Stop()
	if err != nil || werr != nil {
		t.Fatal(err, werr)
	}
	for i, th := range w.Threads {
		sum := th.Ran + th.Stolen + th.Core + th.Throttled
		for _, s := range th.Waited {
			sum += s
		}
		if th.ID != 0 && !near(sum, p.Figures["elapsed_s"], 0.01, 0.002) {
			t.Errorf("thread %d: its parts add up to %.4f s of %.4f s: %+v", i, sum, p.Figures["elapsed_s"], th)
		}
	}
	return w, p
}

// used waits until a process has used that much CPU time from now on.
func used(t testing.TB, pid int, most time.Duration) {
	t.Helper()
	dir := "/proc/" + strconv.Itoa(pid)
	before, _, err := proc.Host.Usage(dir)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(loadTime); ; time.Sleep(5 * time.Millisecond) {
		now, _, err := proc.Host.Usage(dir)
		if err != nil {
			t.Fatal(err)
		}
		if now.User+now.System-before.User-before.System >= most {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not run")
		}
	}
}

// What runs, and what waits, is known from the beginning, even if it is never switched.
func TestWhatRunsAlready(t *testing.T) {
	k := watchKit(t)
	sleeps := load(t, nil, "sleep", "5000", "1")
	if _, err := sleeps.put.Write([]byte{'\n'}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(loadTime); ; { // until it sleeps in nanosleep
		call, err := os.ReadFile("/proc/" + strconv.Itoa(sleeps.pid()) + "/syscall")
		if err == nil && (string(call[:3]) == "230" || string(call[:2]) == "35") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it does not sleep: %s, %v", call, err)
		}
	}
	w, p := watch(t, k, 1, []int{sleeps.pid()}, func(*Trace) {})
	if len(w.Threads) != 1 || !near(w.Threads[0].Waited[notebook.WallSleep], p.Figures["elapsed_s"], 0.01, 0.001) || !near(p.Wall[notebook.WallSleep], p.Figures["elapsed_s"], 0.01, 0.001) {
		t.Errorf("it slept all the time: %+v; %v", w.Threads, p.Wall)
	}

	// A kernel may show no switch from a process that it hides (repair in bpf/scheduler.c). A program that is not switched again seems to wait
	// since then. This is seldom.
	for try := 1; ; try++ {
		wrong := ranAllTheTime(t, k)
		if wrong == "" {
			return
		}
		if try == 3 {
			t.Fatal(wrong)
		}
		t.Log(wrong)
	}
}

// ranAllTheTime watches a busy program, and returns what is wrong with its account.
func ranAllTheTime(t *testing.T, k *Kit) (wrong string) {
	busy := load(t, nil, "busy", "1500")
	if _, err := busy.put.Write([]byte{'\n'}); err != nil {
		t.Fatal(err)
	}
	used(t, busy.pid(), 50*time.Millisecond)
	w, p := watch(t, k, 1, []int{busy.pid()}, func(tr *Trace) {
		used(t, busy.pid(), 300*time.Millisecond)
		wall, took, err := tr.SoFar()
		if sum := wallSum(&notebook.Trace{Wall: wall}); err != nil || !near(sum, took, 0.001, 1e-4) {
			t.Errorf("so far %v of %.4f s, %v", wall, took, err)
		}
		if wall[notebook.WallUser] < 0.25 {
			wrong = fmt.Sprintf("so far %v of %.4f s", wall, took)
		}
	})
	if len(w.Threads) != 1 {
		t.Fatalf("%+v", w.Threads)
	}
	if th := w.Threads[0]; th.Ran < 0.25 || th.Ran+th.Stolen+th.Core < p.Figures["elapsed_s"]*0.98 {
		wrong = fmt.Sprintf("it ran all the time: %+v; %v", w.Threads, p.Wall)
	}
	return wrong
}

// Two that want one core: one is behind the other for most of the time in which it does not run.
func TestBehindWhom(t *testing.T) {
	k := watchKit(t)
	online, err := proc.OnlineCPUs()
	if err != nil {
		t.Fatal(err)
	}
	one := online[len(online)-1]
	var both [2]*aLoad
	for i := range both {
		both[i] = load(t, nil, "busy", "3000")
		var set unix.CPUSet
		set.Set(one)
		if err := unix.SchedSetaffinity(both[i].pid(), &set); err != nil {
			t.Fatal(err)
		}
		if _, err := both[i].put.Write([]byte{'\n'}); err != nil {
			t.Fatal(err)
		}
	}
	w, p := watch(t, k, 1, []int{both[0].pid()}, func(*Trace) { used(t, both[0].pid(), 400*time.Millisecond) })
	core, all, other := p.Wall[notebook.WallCore], 0.0, 0.0
	for _, a := range w.Ahead {
		if all += a.Seconds; a.Process == both[1].pid() {
			other += a.Seconds
		}
	}
	if !near(all, core, 0.1, 0.01) || other < 0.2*core || core < 0.3*p.Figures["elapsed_s"] { // others of a busy host may be ahead too
		t.Errorf("behind %+v, want process %d; waited for a core for %.3f s of %.3f s", w.Ahead, both[1].pid(), core, p.Figures["elapsed_s"])
	}
}

// Threads that end count by their names.
func TestThreadsThatEnd(t *testing.T) {
	k := watchKit(t)
	l := load(t, nil, "threads", "3", "20")
	w, _ := watch(t, k, 2, []int{l.pid()}, func(*Trace) { l.work() })
	ended := 0
	for _, th := range w.Threads {
		if th.ID == 0 {
			ended += th.Threads
			if th.Process != "load" || th.Thread != "load" || th.Ran+th.Stolen < 0.015 {
				t.Errorf("%+v", th)
			}
		}
	}
	if ended != 3 {
		t.Errorf("%d threads ended, want 3: %+v", ended, w.Threads)
	}
	l.finish()
}

// What the programs take is counted, and is little.
func TestWhatTracingCosts(t *testing.T) {
	k := watchKit(t)
	l := load(t, nil, "pingpong", "2000")
	watch(t, k, 2, []int{l.pid()}, func(tr *Trace) {
		end, err := tr.Counting()
		if err != nil {
			t.Fatal(err)
		}
		l.work()
		c, err := end()
		if err != nil || c.Runs < 4000 || !(c.Seconds > 0) || c.Seconds > c.Of.Seconds() {
			t.Errorf("%+v, %v", c, err)
		}
		t.Logf("%.0f ns for each run of a program", c.Seconds/float64(c.Runs)*1e9)
	})
	l.finish()
}

// watchKit is a kit for watching.
func watchKit(t testing.TB) *Kit {
	t.Helper()
	needRoot(t)
	k, err := OpenToWatch([]string{notebook.TracerScheduler, notebook.TracerBandwidth})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	for name, why := range k.Missing() {
		need(t, false, "the tracer "+name+": "+why)
	}
	return k
}
