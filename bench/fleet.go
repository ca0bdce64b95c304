//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"tare/notebook"
	"tare/notebook/notebooktest"
	"tare/stats"
)

// What reading a fleet must keep, on two CPUs.
const (
	fleetHosts   = 10_000
	fleetSeconds = 60
	fleetRoom    = 1 << 30 // bytes
	fleetGrowth  = 1.5     // the time for four times as many folders, over four times the time: at most
	leastHeld    = 0.93    // of the intervals of the next host
)

// fleets times the command that reads the folders of ten thousand hosts, as a whole process, and of a quarter of them. It also simulates how often the
// interval of the next host holds.
func fleets(ctx context.Context, dir string) error {
	fmt.Printf("\nResults folders of %d hosts, each of 10 rounds with 5 runs of 2 configurations, read on 2 CPUs\n", fleetHosts)
	at := filepath.Join(dir, "fleet")
	written := 0
	var took []float64
	var broken error
	for _, n := range []int{fleetHosts / 4, fleetHosts} {
		for ; written < n; written++ {
			if err := hostFolder(written, filepath.Join(at, fmt.Sprintf("node-%05d", written))); err != nil {
				return err
			}
		}
		cmd := exec.CommandContext(ctx, "bin/tare", "summary", at, "--format", "json")
		cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
		cmd.Stderr = os.Stderr
		began := time.Now()
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("tare summary: %w", err)
		}
		took = append(took, time.Since(began).Seconds())
		rss := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
		fmt.Printf("  tare summary %6d folders %8.2f s   %6.0f MiB", n, took[len(took)-1], float64(rss)/(1<<20))
		if n < fleetHosts {
			fmt.Println()
			continue
		}
		growth := took[1] / took[0] / 4
		verdict := met
		if took[1] > fleetSeconds || rss > fleetRoom || growth > fleetGrowth {
			verdict = notMet
			broken = fmt.Errorf("%.1f s, %d MiB, growth %.2f; must be at most %d s, %d MiB and %g",
				took[1], rss>>20, growth, fleetSeconds, fleetRoom>>20, fleetGrowth)
		}
		fmt.Printf("   at most %d s and %d MiB, and %g times linear growth (%.2f): %s\n", fleetSeconds, fleetRoom>>20, fleetGrowth, growth, verdict)
	}
	return errors.Join(broken, nextHosts())
}

// hostFolder writes the folder of a simulated host.
func hostFolder(i int, at string) error {
	f := notebooktest.Node(i, 0.01)
	f.Trial = func(t *notebook.Trial) {
		t.Command = []string{"/usr/bin/ffmpeg", "-nostdin", "-i", "/.tare/work/input.mp4", "-c:v", "libx265", "-an", "-f", "mp4", "/.tare/scratch/out.mp4"}
		t.Usage = notebook.Usage{UserS: t.Value, SystemS: 0.1, MaxRSS: 2e8, MinFlt: 123456, VCSw: 1234, IVCSw: 567}
	}
	return f.Spill(at)
}

// nextHosts prints how often the interval of the next host holds that host's true cost, by simulation.
func nextHosts() (broken error) {
	fmt.Println("\nThe interval of the next host: how often it holds, and how wide it is compared with one from a known distribution")
	g := rand.New(rand.NewPCG(40, 40))
	const rounds = 10
	for _, hosts := range []int{5, 20, 100} {
		for _, variance := range []float64{0, 0.3, 1, 3, 10} { // between hosts, over the one within a host
			sd := math.Sqrt(variance)
			const studies = 1000
			held, wide := 0.0, 0.0
			for range studies {
				var effects []stats.Effect
				for range hosts {
					within, v := math.Exp(0.3*g.NormFloat64()), 0.0
					for range rounds - 1 {
						z := g.NormFloat64()
						v += z * z / (rounds - 1)
					}
					value := sd*g.NormFloat64() + within*g.NormFloat64()
					effects = append(effects, stats.Effect{Value: value, Variance: within * within * v, Free: rounds - 1})
				}
				a := stats.AcrossOf(effects, stats.Alpha)
				next := sd * g.NormFloat64()
				if a.NextLow <= next && next <= a.NextHigh {
					held += 1.0 / studies
				}
				wide += (a.NextHigh - a.NextLow) / 2 / 1.96 / sd / studies
			}
			promise := ""
			if variance >= 1 {
				verdict := met
				if held < leastHeld-2*math.Sqrt(leastHeld*(1-leastHeld)/studies) { // by more than these simulations can be off
					verdict = notMet
					broken = errors.Join(broken, fmt.Errorf("the next of %d hosts is in %.1f %% of intervals; must be at least %.0f %%",
						hosts, 100*held, 100*leastHeld))
				}
				promise = fmt.Sprintf("   at least %.0f %%: %s", 100*leastHeld, verdict)
			}
			width := "    –"
			if sd > 0 {
				width = fmt.Sprintf("%5.2f", wide)
			}
			fmt.Printf("  %3d hosts, %4g times the variance within   %5.1f %%   %s%s\n", hosts, variance, 100*held, width, promise)
		}
	}
	return broken
}
