//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tare/lab/engine"
	"tare/lab/trace"
	"tare/notebook"
	"tare/stats"
)

// probeLimit is what all default probes together may cost the most switch-heavy work.
const probeLimit = 1.05

// theirs does with bpftrace what the scheduler's probe does: time on and off a core and in run queues, by thread, with reasons left out.
// Threads are known by their program's name, for it cannot follow a tree of processes cheaply.
const theirs = `
tracepoint:sched:sched_wakeup /args->comm == "pingpong"/ { @queued[args->pid] = nsecs; }
tracepoint:sched:sched_switch {
	if (args->prev_comm == "pingpong") {
		@on = hist(nsecs - @in[args->prev_pid]);
		@out[args->prev_pid] = nsecs;
		@why[args->prev_pid] = args->prev_state;
	}
	if (args->next_comm == "pingpong") {
		@off = hist(nsecs - @out[args->next_pid]);
		@queue = hist(nsecs - @queued[args->next_pid]);
		@in[args->next_pid] = nsecs;
	}
}
END { clear(@in); clear(@out); clear(@queued); clear(@why); }`

// probing says what the probes cost two processes that do nothing but wake each other, beside bpftrace doing a part of it. Runs of all take
// turns. Bare processes, no guests: what is compared is the probes.
func probing(ctx context.Context, dir string) (err error) {
	program := filepath.Join(dir, "pingpong")
	if said, err := exec.CommandContext(ctx, "cc", "-O2", "-static", "-o", program, "workloads/pingpong/pingpong.c").CombinedOutput(); err != nil {
		return fmt.Errorf("cc pingpong.c: %w: %s", err, said)
	}
	kit, err := trace.Open(notebook.DefaultProbes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kit.Close()) }()
	for name, why := range kit.Missing() {
		fmt.Printf("probe %s: %s\n", name, why)
		if name == notebook.ProbeScheduler {
			return nil
		}
	}
	const trips, rounds = 300_000, 12
	fmt.Printf("\nA number passed to and fro %d times (mean; ratio to the same without probes, 95 %%)\n", trips)
	for _, where := range []string{"free", "one"} {
		once := func() (float64, error) {
			cmd := exec.CommandContext(ctx, program, "run", strconv.Itoa(trips), where, filepath.Join(dir, "answer"))
			began := time.Now()
			said, err := cmd.CombinedOutput()
			if err != nil {
				return 0, fmt.Errorf("pingpong: %w: %s", err, said)
			}
			return time.Since(began).Seconds(), nil
		}
		lost := int64(0)
		ways := []struct {
			name string
			run  func() (float64, error)
		}{
			{"without", once},
			{"all default probes", func() (float64, error) {
				threads, err := engine.ThreadsOf([]int{os.Getpid()}, os.Getpid())
				if err != nil {
					return 0, err
				}
				w, err := kit.Watch(trace.Target{Threads: threads, PID: os.Getpid(), Cores: 1})
				if err != nil {
					return 0, err
				}
				took, err := once()
				p, serr := w.Stop()
				if serr == nil {
					lost += p.Lost
					if p.Figures["switches"] < trips {
						serr = fmt.Errorf("the probes saw %v switches; there were %d at least", p.Figures["switches"], trips)
					}
				}
				return took, errors.Join(err, serr)
			}},
			{"bpftrace", func() (float64, error) { return beside(ctx, dir, once) }},
		}
		took := make([][]float64, len(ways))
		skip := map[int]bool{}
		for round := range rounds {
			for _, i := range rand.New(rand.NewPCG(2, uint64(round))).Perm(len(ways)) {
				if skip[i] {
					continue
				}
				s, err := ways[i].run()
				if err != nil && i < 2 {
					return err
				}
				if err != nil {
					fmt.Printf("  %s: skipped: %v\n", ways[i].name, err)
					skip[i] = true
					continue
				}
				took[i] = append(took[i], s)
			}
		}
		fmt.Printf("  %s\n", map[string]string{"free": "on any CPU", "one": "both on one CPU, each way a switch between them"}[where])
		for i, w := range ways {
			if skip[i] {
				continue
			}
			q := stats.Ratio(took[i], took[0], 0.95)
			fmt.Printf("    %-20s %8.0f ns a trip   %5.3f (%.3f to %.3f)\n", w.name, stats.Mean(took[i], 0.95).Value/trips*1e9, q.Value, q.Low, q.High)
			// On one CPU a trip is two switches and nothing else; the promise is for the program as it is run.
			if i == 1 && where == "free" && q.Low > probeLimit {
				err = fmt.Errorf("the default probes make it %.3f times as long (%.3f to %.3f); at most %.2f is promised", q.Value, q.Low, q.High, probeLimit)
			}
		}
		if lost > 0 {
			fmt.Printf("    %d events lost\n", lost)
		}
	}
	return err
}

// beside runs it while bpftrace looks. bpftrace wants tracefs mounted, which is done where nobody else sees it.
func beside(ctx context.Context, dir string, once func() (float64, error)) (took float64, err error) {
	for _, name := range []string{"bpftrace", "unshare"} {
		if _, err := exec.LookPath(name); err != nil {
			return 0, errors.New(name + " is not installed")
		}
	}
	script := filepath.Join(dir, "theirs.bt")
	ready := filepath.Join(dir, "ready")
	if err := os.WriteFile(script, []byte(theirs+"\nBEGIN { printf(\"looking\\n\"); }\n"), 0o644); err != nil {
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
	for looking := false; !looking; {
		select {
		case err := <-ended:
			said, _ := os.ReadFile(ready) // only for the message
			return 0, fmt.Errorf("bpftrace ended: %v: %.200s", err, said)
		case <-time.After(50 * time.Millisecond):
		}
		said, err := os.ReadFile(ready)
		if err != nil {
			return 0, err
		}
		looking = strings.Contains(string(said), "looking")
	}
	took, err = once()
	if serr := cmd.Process.Signal(syscall.SIGINT); serr != nil {
		err = errors.Join(err, serr)
	}
	<-ended // its status after a signal says nothing
	return took, err
}
