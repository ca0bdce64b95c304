//go:build linux

package proc

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func TestCPUTime(t *testing.T) {
	tree := Tree{fstest.MapFS{"proc/stat": {Data: []byte("cpu  500 20 200 4000 10 1 9 80 50 4\ncpu0 1 2 3\n")}}}
	got, err := tree.CPUTime()
	if want := (CPUTime{All: 48200 * time.Millisecond, Busy: 7300 * time.Millisecond, Interrupts: 100 * time.Millisecond, Stolen: 800 * time.Millisecond}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for _, text := range []string{"", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8", "cpu 1 2 3 4 5 6 7 -x"} {
		if _, err := parseCPUTime(text, nil); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
	const two = "cpu  9 9 9 9 9 9 9 9\ncpu0 1 0 2 4 0 1 1 3\ncpu1 1 0 2 4 0 0 1 2 7\nintr 5"
	if got, err := parseCPUTime(two, []int{1, 0}); err != nil || got != (CPUTime{All: 22 * Tick, Busy: 9 * Tick, Interrupts: 3 * Tick, Stolen: 5 * Tick}) {
		t.Errorf("of two CPUs: %+v, %v", got, err)
	}
	if _, err := parseCPUTime(two, []int{0, 2}); err == nil || !strings.Contains(err.Error(), "no line of cpu2") {
		t.Errorf("of a CPU that is not there: %v", err)
	}
	// This machine's, and this process's: what is used here is a part of what all CPUs do.
	before, err := Host.CPUTime()
	if err != nil {
		t.Fatal(err)
	}
	used, err := Used([]int{os.Getpid(), 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		now, err := Used([]int{os.Getpid()})
		if err != nil {
			t.Fatal(err)
		}
		if now >= used+5*Tick {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a minute of work is %v", now-used)
		}
	}
	after, err := Host.CPUTime()
	if err != nil || after.Busy-before.Busy < 4*Tick || after.All-before.All < after.Busy-before.Busy {
		t.Errorf("from %+v to %+v, %v: at least %v of work was done", before, after, err, 4*Tick)
	}
}

func TestUsage(t *testing.T) {
	const stat = "7 (a) b (c) S 1 1 0 0 -1 0 100 20 3 1 50 25 10 5 20 0 1 0 1 1 1 1 1 1 1 0 0 0 0 0 0 0 0 0 17 0 0 0 0 40 4 0 0 0 0 0 0 0\n"
	tree := Tree{fstest.MapFS{"proc/7/stat": {Data: []byte(stat)}, "proc/8/stat": {Data: []byte(stat[:60])}}}
	own, children, err := tree.Usage("/proc/7")
	if want := (Usage{50 * Tick, 25 * Tick, 40 * Tick, 100, 3}); err != nil || own != want {
		t.Errorf("%+v, %v; want %+v", own, err, want)
	}
	if want := (Usage{10 * Tick, 5 * Tick, 4 * Tick, 20, 1}); children != want {
		t.Errorf("of its children %+v, want %+v", children, want)
	}
	for _, dir := range []string{"/proc/8", "/proc/9"} { // it is cut off, and not there
		if _, _, err := tree.Usage(dir); err == nil || Ended(err) != (dir == "/proc/9") {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// A loop is ready to run all the time, whoever has its CPU; what sleeps is not.
func TestReadyAllTheTime(t *testing.T) {
	started := func(script string) int {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
		return cmd.Process.Pid
	}
	read := func(pid int) Demand {
		t.Helper()
		d, err := Demanded([]int{pid})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	loop, sleeper := started("while :; do :; done"), started("exec sleep 100")
	for end := time.Now().Add(time.Minute); ; {
		before := read(loop)
		for read(loop).Ran < before.Ran+10*time.Millisecond && time.Now().Before(end) {
			time.Sleep(time.Millisecond)
		}
		if d := read(loop).Since(before); d.Ready && d.Ran >= 10*time.Millisecond && d.Slept == 0 {
			break // while it started it may have waited for its files
		} else if time.Now().After(end) {
			t.Fatalf("a loop: %+v", d)
		}
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if d := read(sleeper); !d.Ready && d.Slept > 0 {
			break
		} else if time.Now().After(end) {
			t.Fatalf("a process that waits: %+v", d)
		}
	}
	if d := (Demand{Ran: 5, Slept: 3, Ready: true}).Since(Demand{Ran: 2, Slept: 2, Ready: true}); d.Ready || d.Ran != 3 || d.Slept != 1 {
		t.Errorf("it has slept in between: %+v", d)
	}
}
