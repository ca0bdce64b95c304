//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/host"
	"tare/lab/image"
	"tare/lab/measure"
	"tare/lab/proc"
	"tare/lab/ruler"
	"tare/lab/session"
	"tare/lab/study"
	"tare/lab/studyfile"
	"tare/lab/workload"
	"tare/notebook"
	"tare/notebook/kinds/arrivals"
	"tare/stats"
	"tare/workloads"
)

// The limits of the client of a study of starts under load, on one CPU, in each round: its requests a second, and the 99th percentile of their lateness.
const (
	ceilingRate = 1000
	ceilingLate = time.Millisecond
)

// reachedShare is the share of an offered rate that counts as the whole rate: requests come for a second, and the last answer a moment later.
const reachedShare = 0.98

// ceilingStudy is a study that starts containers under load, at rates beyond those of any engine.
const ceilingStudy = `name: ceiling
title: what the client can do
workloads: [{name: %q}]
platforms: [{platform: cn, engines: [crun], provisioning: [vanilla]}]
instances: [1/1GB]
arrivals: {rates: [125, %d, 2000, 4000, 8000], for: 1s, least: 125, most: 1000}
design: {rounds: {floor: %d, cap: %d}, trials: 1, warmups: 0, timeout: 1m}
`

// ceiling measures how many requests a second a study of starts under load can make, and how late they are, with an engine that does nothing and one CPU for
// the client. The client is complete and does everything that it does for a request. Only the engine and the guest do nothing.
func ceiling(ctx context.Context, dir string) error {
	const rounds = 20 // each must be within the limits
	file := filepath.Join(dir, "ceiling.yaml")
	folder, err := filepath.Abs("bench/spin")
	if err != nil {
		return err
	}
	text := fmt.Sprintf(ceilingStudy, folder, ceilingRate, rounds, rounds)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	book := &trials{}
	err = guests(ctx, func(l *session.Lab, _ *image.Image) error {
		spec, err := studyfile.Parse(file, []byte(text), dir, session.Known)
		if err != nil {
			return err
		}
		asked, err := spec.Ask(workloads.FS, studyfile.Choices{Accel: "auto"})
		if err != nil {
			return err
		}
		nothing := idle{l}
		plan, err := study.NewPlan(ctx, nothing, asked, workload.Options{Store: l.Store(), Cache: filepath.Join(dir, "cache"), Bench: l, Progress: func(string) {}})
		if err != nil {
			return err
		}
		cpus, err := host.ChooseCPUs(l.Host(), 1)
		if err != nil {
			return err
		}
		everywhere, err := confine(cpus...)
		if err != nil {
			return err
		}
		_, err = (&study.Run{Plan: plan, Lab: nothing, Book: book}).Do(ctx)
		return errors.Join(err, everywhere())
	})
	if err != nil {
		return err
	}
	return book.report()
}

// confine binds all threads of this program, and those that they start, to these CPUs until the returned function is called.
func confine(cpus ...int) (undo func() error, err error) {
	var before, only unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, fmt.Errorf("sched_getaffinity: %w", err)
	}
	for _, cpu := range cpus {
		only.Set(cpu)
	}
	bind := func(to *unix.CPUSet) error {
		for range 2 { // a thread that starts during the first pass inherits the CPUs of its parent
			tids, err := proc.Threads(os.Getpid())
			if err != nil {
				return err
			}
			for _, tid := range tids {
				if err := unix.SchedSetaffinity(tid, to); err != nil && err != unix.ESRCH {
					return fmt.Errorf("sched_setaffinity: %w", err)
				}
			}
		}
		return nil
	}
	return func() error { return bind(&before) }, bind(&only)
}

// trials are the trials of a study of starts under load.
type trials []notebook.Trial

// Guest and Trial implement study.Book.
func (*trials) Guest(notebook.Guest) error      { return nil }
func (t *trials) Trial(tr notebook.Trial) error { *t = append(*t, tr); return nil }

// report prints what the client did at each rate. The error says that it missed a limit.
func (t trials) report() (broken error) {
	fmt.Printf("\nRequests to start containers, on one core, with an engine that does nothing (medians of rounds)\n")
	of := map[float64][]map[string]float64{}
	for _, tr := range t {
		if tr.Failure != nil {
			return fmt.Errorf("%s: %s", tr.Treatment, tr.Failure)
		}
		seen, err := notebook.SeenOf[arrivals.Seen](&tr)
		if err != nil {
			return err
		}
		of[seen.Bringup.Offered] = append(of[seen.Bringup.Offered], tr.Figures)
	}
	for _, rate := range slices.Sorted(maps.Keys(of)) {
		at := func(m notebook.Metric) stats.Quotient {
			var values []float64
			for _, f := range of[rate] {
				values = append(values, f[m.Name])
			}
			return median(values)
		}
		late, reached, cpu := at(arrivals.ClientLate), at(arrivals.RateReached), at(arrivals.ClientCPU)
		line := fmt.Sprintf("  %5.0f a second: %6.0f (%.0f to %.0f) made   p99 %s (%s to %s) late   %3.0f %% of a core, %d rounds",
			rate, reached.Value, reached.Low, reached.High, duration(late.Value), duration(late.Low), duration(late.High), cpu.Value, late.N)
		if rate == ceilingRate {
			many := verdict(stats.Quotient{Low: reachedShare * rate / reached.High, High: reachedShare * rate / reached.Low}, 1)
			latest := 0.0 // across all rounds
			for _, f := range of[rate] {
				latest = max(latest, f[arrivals.ClientLate.Name])
			}
			early := met
			if latest > ceilingLate.Seconds() {
				early = notMet
			}
			line += fmt.Sprintf("   so many: %s; p99 at most %v late in each round (latest %s): %s", many, ceilingLate, duration(latest), early)
			if many == notMet || early == notMet {
				broken = fmt.Errorf("%.0f of %d requests a second were made, and p99 was %.2g ms late in the worst round; must be all, and at most %v late in each", reached.Value, ceilingRate, 1e3*latest, ceilingLate)
			}
		}
		fmt.Println(line)
	}
	return broken
}

// idle is the laboratory with an engine that does nothing.
type idle struct{ study.Lab }

// Provision and Create implement measure.Lab.
func (idle) Provision(context.Context, crowd.Want) (crowd.Guest, error) {
	return nobody{}, nil
}

func (idle) Create(context.Context, crowd.Want) (measure.Ahead, error) {
	return nobody{}, nil
}

// nobody is a guest that starts at once and carries out every order at once.
type nobody struct{ crowd.Guest }

// Start, Meet and InForce implement measure.Ahead.
func (nobody) Start(context.Context) error                 { return nil }
func (g nobody) Meet(context.Context) (crowd.Guest, error) { return g, nil }
func (nobody) InForce() error                              { return nil }

// Destroy, Limits, Facts, Used, Throttled, Diagnose, Watch and Ruler are the methods that every study calls.
func (nobody) Destroy(context.Context) error     { return nil }
func (nobody) Limits() (notebook.Limits, error)  { return notebook.Limits{}, nil }
func (nobody) Facts() engine.Facts               { return engine.Facts{} }
func (nobody) Used() (time.Duration, error)      { return 0, nil }
func (nobody) Throttled() (time.Duration, error) { return 0, nil }
func (nobody) Diagnose() string                  { return "" }
func (nobody) Watch() engine.Watch               { return nil }
func (nobody) Ruler() crowd.Ruler                { return noRuler{} }

type noRuler struct{ crowd.Ruler }

// Run, Cost, Ping and RoundTrip implement crowd.Ruler.
func (noRuler) Run(context.Context, ruler.Order) (ruler.Result, time.Duration, error) {
	return ruler.Result{}, 0, nil
}

func (noRuler) Cost(context.Context, int, ...string) ([]time.Duration, error) {
	return []time.Duration{0}, nil
}
func (noRuler) Ping(context.Context) (time.Duration, error) { return 0, nil }
func (noRuler) RoundTrip() time.Duration                    { return 0 }
