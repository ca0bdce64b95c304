//go:build linux

// Command bench compares Tare with other programs, as ratios measured in one run on one machine. The comparisons are:
//
//   - reading: the time and memory to read a large folder, with their limits;
//   - fleet: the time and memory to read the results of ten thousand hosts, with their limits, and how often the next host's interval holds;
//   - tracers: the tracers, no tracing, and bpftrace;
//   - observing: what tare observe costs what it observes;
//   - ruler: the ruler, C, and hyperfine;
//   - start: the start of a container by Tare, and by `crun run` or `runc run`;
//   - ceiling: the requests a second that Tare can make with an engine that does nothing;
//   - itself: how soon Tare and hyperfine know that a command takes as long as itself;
//   - turns: interleaved trials, and one guest after the other;
//   - memory: a scan of a process's memory, and simple loops over it;
//   - alike, only if named: how often Tare calls bare metal different from itself;
//   - injected, only if named: whether Tare finds a cost of one per cent;
//   - predictions, only if named: what tare observe predicts for other CPU limits, and what is measured under them.
//
// It prints every comparison, even if another one fails. A limit is missed only where the interval of the ratio lies beyond it.
// `make bench` runs it as root; `scripts/bench tracers start` runs only those two.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"tare/lab/crowd"
	"tare/lab/engine/oci"
	"tare/lab/host"
	"tare/lab/image"
	"tare/lab/proc"
	"tare/lab/ruler"
	"tare/lab/session"
	"tare/lab/workload"
	"tare/notebook"
	"tare/notebook/notebooktest"
	"tare/stats"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run makes every comparison. The error names the limits that were missed.
func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "tare-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	all := []struct {
		name  string
		run   func(ctx context.Context, dir string) error
		asked bool // only if named: it takes long, or compares with nothing
	}{{"reading", reading, false}, {"fleet", fleets, false}, {"tracers", tracers, false}, {"observing", observing, false}, {"ruler", rulers, false}, {"start", starts, false}, {"ceiling", ceiling, false}, {"itself", itself, false},
		{"turns", turns, false}, {"memory", memories, false}, {"alike", alike, true}, {"injected", injected, true}, {"predictions", predictions, true}}
	only := os.Args[1:] // the named comparisons; none: all but the long ones
	var names []string
	for _, c := range all {
		names = append(names, c.name)
	}
	for _, name := range only {
		if !slices.Contains(names, name) {
			return fmt.Errorf("unknown comparison %q: must be one of %q", name, names)
		}
	}
	var broken []error
	for _, c := range all {
		if !slices.Contains(only, c.name) && (len(only) > 0 || c.asked) {
			continue
		}
		if err := c.run(ctx, dir); err != nil {
			broken = append(broken, fmt.Errorf("%s: %w", c.name, err))
		}
	}
	if len(broken) > 0 {
		return fmt.Errorf("not kept:\n%w", errors.Join(broken...))
	}
	fmt.Println("\nEvery limit is met, or not decided on this host.")
	return nil
}

// guests opens the laboratory and the root filesystem of guests, for comparisons that need them.
func guests(ctx context.Context, f func(l *session.Lab, root *image.Image) error) (err error) {
	say := func(what string) { fmt.Fprintln(os.Stderr, what) }
	l, err := session.Open(ctx, say)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	root, err := l.Store().Debian(ctx, image.Recipe{Suite: "trixie"}, say)
	if err != nil {
		return err
	}
	return f(l, root)
}

var one = notebook.Instance{Name: "1/1GB", Cores: 1, Memory: 1 << 30}

// rulers compares how long an empty process takes by each ruler, all on the CPU of the bare-metal guest.
func rulers(ctx context.Context, dir string) error {
	empty, spawn := filepath.Join(dir, "true"), filepath.Join(dir, "spawn")
	for out, source := range map[string]string{empty: "bench/c/true.c", spawn: "bench/c/spawn.c"} {
		if said, err := exec.CommandContext(ctx, "cc", "-O2", "-static", "-o", out, source).CombinedOutput(); err != nil {
			return fmt.Errorf("cc %s: %w: %s", source, err, said)
		}
	}
	return guests(ctx, func(l *session.Lab, root *image.Image) (err error) {
		work, err := l.Store().Files(ctx, map[string]image.Source{"true": {Path: empty, Exec: true}})
		if err != nil {
			return err
		}
		g, err := l.Provision(ctx, crowd.Want{
			Treatment: notebook.Treatment{Platform: notebook.BM, Instance: one}, ID: "bench-bm", Work: &workload.Ready{Workload: &workload.Workload{}, Image: root, Work: work},
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, g.Destroy(ctx)) }()
		cpus, err := host.ChooseCPUs(l.Host(), 1)
		if err != nil {
			return err
		}
		cpu := strconv.Itoa(cpus[0])
		const batch = 50
		return comparison{"An empty process, created and reaped, on one core (medians of batches of 50)", []way{
			{"C posix_spawn + waitpid", 0, func() (float64, error) {
				all, err := numbers(exec.CommandContext(ctx, "taskset", "-c", cpu, spawn, strconv.Itoa(batch), empty), 1e-9)
				return stats.Median(all), err
			}},
			{"tare's ruler on bm", 1.00, func() (float64, error) {
				all, err := g.Ruler().Cost(ctx, batch, ruler.WorkDir+"/true")
				var took []float64
				for _, d := range all {
					took = append(took, d.Seconds())
				}
				return stats.Median(took), err
			}},
			{"hyperfine -N", 0, func() (float64, error) {
				all, err := hyperfine(ctx, cpu, filepath.Join(dir, "hyperfine.json"), batch, empty)
				if err != nil {
					return 0, err
				}
				return stats.Median(all[0]), nil
			}},
		}, time.Minute}.run()
	})
}

// hyperfine returns the times that hyperfine measures for each command on a CPU, in runs runs; 0: as many as hyperfine chooses.
func hyperfine(ctx context.Context, cpu, out string, runs int, commands ...string) (times [][]float64, err error) {
	args := []string{"-c", cpu, "hyperfine", "-N", "--export-json", out}
	if runs > 0 {
		args = append(args, "--runs", strconv.Itoa(runs))
	}
	if said, err := exec.CommandContext(ctx, "taskset", append(args, commands...)...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("hyperfine: %w: %s", err, said)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	var v struct{ Results []struct{ Times []float64 } }
	if err := json.Unmarshal(text, &v); err != nil || len(v.Results) != len(commands) {
		return nil, fmt.Errorf("hyperfine's answer has %d results; must be %d: %v", len(v.Results), len(commands), err)
	}
	for _, r := range v.Results {
		times = append(times, r.Times)
	}
	return times, nil
}

func numbers(cmd *exec.Cmd, unit float64) ([]float64, error) {
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd.Path, err)
	}
	var all []float64
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		v, err := strconv.ParseFloat(s.Text(), 64)
		if err != nil {
			return nil, err
		}
		all = append(all, v*unit)
	}
	return all, nil
}

// starts compares the start of a guest, from the request to its ruler's answer, with the time that its runtime takes to run true in the same root.
func starts(ctx context.Context, dir string) error {
	return guests(ctx, func(l *session.Lab, root *image.Image) (err error) {
		work, err := l.Store().Files(ctx, map[string]image.Source{"none": {}})
		if err != nil {
			return err
		}
		for _, program := range []string{"crun", "runc"} {
			err = errors.Join(err, startsWith(ctx, l, program, dir, root, work))
		}
		return err
	})
}

func startsWith(ctx context.Context, l *session.Lab, program, dir string, root *image.Image, work *image.Tree) error {
	t := notebook.Treatment{Platform: notebook.CN, Engine: program, Provisioning: notebook.Vanilla, Instance: one}
	bundle, err := bundle(ctx, dir, t.Engine, root.Dir)
	if err != nil {
		return err
	}
	n := 0
	return comparison{"A container with " + t.Engine, []way{
		{"`" + t.Engine + " run` of true, start to end", 0, func() (float64, error) {
			n++
			var took time.Duration
			err := proc.Apart(func() error {
				began := time.Now()
				if t.Engine == oci.Crun.Name { // crun never works where both versions of cgroups are mounted
					if err := oci.HideV2(); err != nil {
						return err
					}
				}
				if said, err := exec.CommandContext(ctx, t.Engine, "run", "-b", bundle, fmt.Sprint("tare-bench-", n)).CombinedOutput(); err != nil {
					return fmt.Errorf("%s run: %w: %s", t.Engine, err, said)
				}
				took = time.Since(began)
				return nil
			})
			return took.Seconds(), err
		}},
		{"tare's, asked to ruler's answer", 1.10, func() (float64, error) {
			n++
			began := time.Now()
			g, err := l.Provision(ctx, crowd.Want{Treatment: t, ID: fmt.Sprint("bench-cn-", n), Work: &workload.Ready{Workload: &workload.Workload{}, Image: root, Work: work}})
			if err != nil {
				return 0, err
			}
			return time.Since(began).Seconds(), g.Destroy(ctx)
		}},
	}, 90 * time.Second}.run()
}

// bundle makes an OCI bundle, as the engine itself would make it, that runs true in the root filesystem.
func bundle(ctx context.Context, dir, engine, root string) (string, error) {
	bundle := filepath.Join(dir, "bundle-"+engine)
	if err := os.Mkdir(bundle, 0o755); err != nil {
		return "", err
	}
	spec := exec.CommandContext(ctx, engine, "spec")
	spec.Dir = bundle
	if said, err := spec.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s spec: %w: %s", engine, err, said)
	}
	file := filepath.Join(bundle, "config.json")
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var config map[string]any
	if err := json.Unmarshal(text, &config); err != nil {
		return "", err
	}
	config["root"] = map[string]any{"path": root, "readonly": true}
	process := config["process"].(map[string]any)
	process["terminal"], process["args"] = false, []string{"/bin/true"}
	if text, err = json.Marshal(config); err != nil {
		return "", err
	}
	return bundle, os.WriteFile(file, text, 0o644)
}

// reading times the commands that read a folder of a million trials, half of them traced, as whole processes.
func reading(ctx context.Context, dir string) error {
	dir = filepath.Join(dir, "million")
	if err := notebooktest.Million().WriteTo(dir); err != nil {
		return err
	}
	if err := os.Truncate(filepath.Join(dir, "guests.jsonl"), 0); err != nil { // only the trials are timed
		return err
	}
	fmt.Printf("A folder of a million trials, on %d CPUs\n", runtime.NumCPU())
	const most, room = 10, 1 << 30 // seconds, bytes
	var broken error
	for _, command := range []string{"summary", "explain", "report"} {
		cmd := exec.CommandContext(ctx, "bin/tare", command, dir)
		var said bytes.Buffer
		cmd.Stderr = &said
		began := time.Now()
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("tare %s: %w: %s", command, err, said.Bytes())
		}
		took := time.Since(began).Seconds()
		rss := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
		promise := ""
		if command == "report" { // report reads the folder once, for the summary, the accounts and the page
			verdict := met
			if took > most || rss > room {
				verdict = notMet
				broken = fmt.Errorf("%.1f s and %d MiB; must be at most %d s and %d MiB", took, rss>>20, most, room>>20)
			}
			promise = fmt.Sprintf("   at most %d s and %d MiB: %s", most, room>>20, verdict)
		}
		fmt.Printf("  tare %-20s %8.2f s   %6.0f MiB%s\n", command, took, float64(rss)/(1<<20), promise)
	}
	return broken
}
