//go:build linux

package trace

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/lab/engine"
	"tare/notebook"
)

// bpftrace counts the switches from the threads called "load", and gives their time on a core.
func TestSwitchesBesideBpftrace(t *testing.T) {
	k := openKit(t, notebook.TracerScheduler)
	needTool(t, "bpftrace", "bpftrace")
	unshare := needTool(t, "unshare", "util-linux")
	ctx, cancel := context.WithTimeout(t.Context(), loadTime)
	defer cancel()
	// It wants tracefs mounted, which is done where nobody else sees it.
	cmd := exec.CommandContext(ctx, unshare, "--mount", "sh", "-c", `mount -t tracefs none /sys/kernel/tracing && exec bpftrace -B line -e "$0"`,
		`BEGIN { printf("looking\n"); } tracepoint:sched:sched_switch /args->prev_comm == "load"/ { @switches = count(); }`)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // it prints and ends
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("bpftrace: %v, %v", err, cmd.Wait())
		}
		if strings.TrimSpace(line) == "looking" {
			break
		}
	}
	p, _ := watched(t, k, 1, pinned(t, loadCommand(t, "pingpong", "3000"), "0"))
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(rest), "@switches: ")
	theirs, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if !found || err != nil {
		t.Fatalf("bpftrace said %q: %v", rest, err)
	}
	// Ours has those of taskset before it becomes the load.
	if ours := p.Figures["switches"]; theirs < 6000 || ours < theirs-5 || ours > theirs+60 {
		t.Errorf("%v switches, bpftrace counted %v", ours, theirs)
	}
}

// pidstat reads a process's switches once a second from /proc.
func TestWaitsBesidePidstat(t *testing.T) {
	k := openKit(t, notebook.TracerScheduler)
	pidstat := needTool(t, "pidstat", "sysstat")
	l := load(t, nil, "sleep", "5", "600") // three seconds of some 190 waits each
	threads, err := engine.ThreadsOf([]int{l.pid()}, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := k.Attach(Target{Threads: threads, PID: l.pid(), Cores: 1})
	if _, err := l.put.Write([]byte{'\n'}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), loadTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, pidstat, "-w", "-p", strconv.Itoa(l.pid()), "1", "1")
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	w.Begin()
	said, serr := cmd.CombinedOutput()
	w.End()
	p, err := w.Stop()
	if err != nil || serr != nil {
		t.Fatal(err, serr, string(said))
	}
	theirs := 0.0
	for line := range strings.Lines(string(said)) { // Time UID PID cswch/s nvcswch/s Command
		if f := strings.Fields(line); len(f) >= 6 && f[0] != "Average:" && f[len(f)-1] == "load" {
			if theirs, err = strconv.ParseFloat(f[len(f)-3], 64); err != nil {
				t.Fatalf("%v: %s", err, said)
			}
		}
	}
	if ours := p.Figures["waits"] / p.Figures["elapsed_s"]; theirs < 50 || !near(ours, theirs, 0.1, 5) {
		t.Errorf("%.1f waits a second, pidstat says %.1f: %s", ours, theirs, said)
	}
	l.line("done")
	l.finish()
}
