//go:build linux

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tare/lab/engine"
	"tare/lab/trace"
	"tare/notebook"
)

// The limits on what the tracers of each tier together cost the most switch-heavy work. In each run the scheduler places the two processes
// anew, and a trip takes five times as long on two CPUs as on one. So the cost of counters is measured with the two processes bound, to one CPU
// and to two. Events change the placement, which is a part of their cost, so their cost is measured with the processes free.
const (
	countersLimit = 1.02
	eventsLimit   = 1.05
)

// theirs is a bpftrace script that does what the scheduler's tracer does: time on CPU, off CPU and in run queues, by thread, without reasons.
// It selects threads by their program's name, because bpftrace cannot follow a tree of processes cheaply.
//
//go:embed theirs.bt
var theirs []byte

// tracers measures what tracing costs two processes that only wake each other, next to bpftrace, which does a part of the same. They are plain
// processes, not guests, because the comparison is about the tracers.
func tracers(ctx context.Context, dir string) error {
	program, err := pingpong(ctx, dir)
	if err != nil {
		return err
	}
	// The tracers follow the children of the threads that they know, but Go may start a new thread at any time.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var broken error
	for _, at := range []struct {
		where, is        string
		trips            float64 // so that a run lasts a few times as long as a process's start, but not so long that the CPUs' speed drifts
		counters, events float64
	}{
		{"free", "on any CPU", 5_000, 0, eventsLimit},
		{"two", "each on a CPU of its own", 500, countersLimit, 0},
		{"one", "both on one CPU", 5_000, countersLimit, 0}, // a trip is only two switches; the limit of events is for the program as it usually runs
	} {
		once := func() (float64, error) {
			cmd := exec.CommandContext(ctx, program, "run", strconv.Itoa(int(at.trips)), at.where, filepath.Join(dir, "answer"))
			began := time.Now()
			said, err := cmd.CombinedOutput()
			if err != nil {
				return 0, fmt.Errorf("pingpong: %w: %s", err, said)
			}
			return time.Since(began).Seconds() / at.trips, nil
		}
		counters, err := trace.Open(notebook.DefaultTracers)
		if err != nil {
			return err
		}
		events, err := trace.Open(notebook.DeepTracers)
		if err != nil {
			return err
		}
		err = comparison{
			"A number passed to and fro between two processes, " + at.is + " (a trip)",
			[]way{
				{"without tracers", 0, once},
				{"--explain: counters", at.counters, func() (float64, error) { return traced(counters, notebook.TracerThreads, once, at.trips) }},
				{"--explain=deep: events", at.events, func() (float64, error) { return traced(events, notebook.TracerScheduler, once, at.trips) }},
				{"bpftrace", 0, func() (float64, error) { return beside(ctx, dir, once) }},
			}, 2 * time.Minute}.run()
		counters.Close()
		events.Close()
		broken = errors.Join(broken, err)
	}
	return broken
}

// pingpong compiles the program that passes a number to and fro.
func pingpong(ctx context.Context, dir string) (program string, err error) {
	program = filepath.Join(dir, "pingpong")
	if said, err := exec.CommandContext(ctx, "cc", "-O2", "-static", "-o", program, "workloads/pingpong/pingpong.c").CombinedOutput(); err != nil {
		return "", fmt.Errorf("cc pingpong.c: %w: %s", err, said)
	}
	return program, nil
}

// traced runs once while the kit's tracers are attached, and checks that the named tracer saw the switches.
func traced(kit *trace.Kit, tracer string, once func() (float64, error), trips float64) (float64, error) {
	threads, err := engine.ThreadsOf([]int{os.Getpid()}, os.Getpid())
	if err != nil {
		return 0, err
	}
	w := kit.Attach(trace.Target{Threads: threads, PID: os.Getpid(), Cores: 1})
	took, err := once()
	p, serr := w.Stop()
	if serr == nil {
		if why := p.Missing[tracer]; why != nil {
			serr = errors.New(why.String())
		} else if p.Figures["switches"] < trips {
			serr = fmt.Errorf("the tracers saw %v switches; must be at least %v", p.Figures["switches"], trips)
		}
	}
	return took, errors.Join(err, serr)
}

// beside runs once while bpftrace traces. bpftrace needs tracefs, which is mounted in a mount namespace of its own.
func beside(ctx context.Context, dir string, once func() (float64, error)) (took float64, err error) {
	for _, name := range []string{"bpftrace", "unshare"} {
		if _, err := exec.LookPath(name); err != nil {
			return 0, errors.New(name + " is not installed")
		}
	}
	script := filepath.Join(dir, "theirs.bt")
	ready := filepath.Join(dir, "ready")
	if err := os.WriteFile(script, theirs, 0o644); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "sh", "-c", `mount -t tracefs none /sys/kernel/tracing && exec bpftrace -B line "$0"`, script)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // it prints and ends
	cmd.WaitDelay = 10 * time.Second
	out, err := os.Create(ready)
	if err != nil {
		return 0, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for attached := false; !attached; {
		select {
		case err := <-ended:
			said, _ := os.ReadFile(ready) // only for the error message
			return 0, fmt.Errorf("bpftrace ended: %v: %.200s", err, said)
		case <-time.After(50 * time.Millisecond):
		}
		said, err := os.ReadFile(ready)
		if err != nil {
			return 0, err
		}
		attached = strings.Contains(string(said), "ready")
	}
	took, err = once()
	if serr := cmd.Process.Signal(syscall.SIGINT); serr != nil {
		err = errors.Join(err, serr)
	}
	<-ended // its status after a signal says nothing
	return took, err
}
