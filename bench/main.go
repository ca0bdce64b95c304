//go:build linux

// Command bench holds Tare against others, in ratios taken in one run on one machine: the ruler against C, hyperfine
// and runexec; the start of a container against `crun run`; the reading of a large folder against its bounds; and the probes against
// bpftrace.
// `make bench` runs it as root.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tare/lab/host"
	"tare/lab/image"
	"tare/lab/ruler"
	"tare/lab/session"
	"tare/lab/workload"
	"tare/notebook"
	"tare/stats"
)

func main() {
	session.AsGuest() // this program is the ruler in its own guests
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "tare-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if len(os.Args) > 1 && os.Args[1] == "probes" { // these alone, for whoever works on them
		return probing(ctx, dir)
	}
	if err := reading(filepath.Join(dir, "million")); err != nil {
		return err
	}
	if err := probing(ctx, dir); err != nil {
		return err
	}
	l, err := session.Open(ctx, func(what string) { fmt.Fprintln(os.Stderr, what) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	root, err := l.Store().Debian(ctx, image.Recipe{Suite: "trixie"}, func(what string) { fmt.Fprintln(os.Stderr, what) })
	if err != nil {
		return err
	}
	if err := spawning(ctx, l, root, dir); err != nil {
		return err
	}
	return starting(ctx, l, root, dir)
}

const (
	batches  = 12
	perBatch = 100
)

// spawning compares what each ruler says an empty process takes. Batches of all take turns, so that a host that
// drifts drifts for all of them.
func spawning(ctx context.Context, l *session.Lab, root *image.Image, dir string) (err error) {
	empty, spawn := filepath.Join(dir, "true"), filepath.Join(dir, "spawn")
	for out, source := range map[string]string{empty: "bench/c/true.c", spawn: "bench/c/spawn.c"} {
		if said, err := exec.CommandContext(ctx, "cc", "-O2", "-static", "-o", out, source).CombinedOutput(); err != nil {
			return fmt.Errorf("cc %s: %w: %s", source, err, said)
		}
	}
	work, err := l.Store().Files(ctx, map[string]image.Source{"true": {Path: empty, Exec: true}})
	if err != nil {
		return err
	}
	one := notebook.Instance{Name: "1/1GB", Cores: 1, Memory: 1 << 30}
	g, err := l.Provision(ctx, notebook.Treatment{Platform: notebook.BM, Instance: one}, "bench-bm",
		&workload.Ready{Workload: &workload.Workload{}, Image: root, Work: work})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Destroy(ctx)) }()
	cpus, err := host.ChooseCPUs(l.Host(), 1)
	if err != nil {
		return err
	}
	cpu := strconv.Itoa(cpus[0]) // all of them on the core that the bare-metal guest has

	type contender struct {
		name string
		one  func() ([]float64, error) // seconds, a batch
	}
	all := []contender{
		{"C posix_spawn + waitpid", func() ([]float64, error) {
			return numbers(exec.CommandContext(ctx, "taskset", "-c", cpu, spawn, strconv.Itoa(perBatch), empty), 1e-9)
		}},
		{"tare's ruler on bm", func() ([]float64, error) {
			all, err := g.Ruler().Cost(ctx, perBatch, ruler.WorkDir+"/true")
			var took []float64
			for _, d := range all {
				took = append(took, d.Seconds())
			}
			return took, err
		}},
	}
	if _, err := exec.LookPath("hyperfine"); err != nil {
		fmt.Println("hyperfine: skipped, not installed")
	} else {
		all = append(all, contender{"hyperfine -N", func() ([]float64, error) {
			out := filepath.Join(dir, "hyperfine.json")
			cmd := exec.CommandContext(ctx, "taskset", "-c", cpu, "hyperfine", "-N", "--runs", strconv.Itoa(perBatch), "--export-json", out, empty)
			if said, err := cmd.CombinedOutput(); err != nil {
				return nil, fmt.Errorf("hyperfine: %w: %s", err, said)
			}
			text, err := os.ReadFile(out)
			if err != nil {
				return nil, err
			}
			var v struct{ Results []struct{ Times []float64 } }
			if err := json.Unmarshal(text, &v); err != nil || len(v.Results) != 1 {
				return nil, fmt.Errorf("hyperfine's answer has %d results, one was expected: %v", len(v.Results), err)
			}
			return v.Results[0].Times, nil
		}})
	}
	if _, err := exec.LookPath("runexec"); err != nil {
		fmt.Println("runexec: skipped, not installed")
	} else {
		all = append(all, contender{"runexec (BenchExec)", func() ([]float64, error) {
			said, err := exec.CommandContext(ctx, "runexec", "--no-container", "--cores", cpu, "--output", os.DevNull, "--", empty).Output()
			if err != nil {
				return nil, fmt.Errorf("runexec: %w", err)
			}
			for line := range strings.Lines(string(said)) {
				if v, ok := strings.CutPrefix(line, "walltime="); ok {
					s, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(v), "s"), 64)
					return []float64{s}, err
				}
			}
			return nil, errors.New("runexec said no walltime")
		}})
	}
	took := make([][]float64, len(all))
	for b := range batches {
		for _, i := range rand.New(rand.NewPCG(1, uint64(b))).Perm(len(all)) {
			batch, err := all[i].one()
			if err != nil && i < 2 { // C and the ruler are what this is about
				return fmt.Errorf("%s: %w", all[i].name, err)
			}
			if err != nil {
				fmt.Printf("%s: skipped: %v\n", all[i].name, err)
				all = append(all[:i], all[i+1:]...)
				took = append(took[:i], took[i+1:]...)
				break
			}
			took[i] = append(took[i], batch...)
		}
	}
	fmt.Println("\nAn empty process, created and reaped, on one core (median; ratio to C)")
	base := stats.Median(took[0])
	for i, c := range all {
		m := stats.Median(took[i])
		fmt.Printf("  %-26s %8.0f us   %5.2f   (%d runs)\n", c.name, m*1e6, m/base, len(took[i]))
	}
	if r := stats.Median(took[1]) / base; r > 1.15 {
		return fmt.Errorf("the ruler takes %.2f times C's time; at most 1.15 is promised", r)
	}
	return nil
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

// starting compares the start of a guest, from asking until its ruler answers, with `crun run` of true in the same
// root; with runc where the host is one that crun refuses.
func starting(ctx context.Context, l *session.Lab, root *image.Image, dir string) error {
	one := notebook.Instance{Name: "1/1GB", Cores: 1, Memory: 1 << 30}
	t := notebook.Treatment{Platform: notebook.CN, Engine: "crun", Provisioning: notebook.Vanilla, Instance: one}
	if why := l.Refuses(ctx, t); why != "" {
		fmt.Println("\ncrun: skipped:", why)
		t.Engine = "runc"
		if why := l.Refuses(ctx, t); why != "" {
			fmt.Println("runc: skipped:", why)
			return nil
		}
	}
	bundle := filepath.Join(dir, "bundle")
	if err := os.Mkdir(bundle, 0o755); err != nil {
		return err
	}
	spec := exec.CommandContext(ctx, t.Engine, "spec")
	spec.Dir = bundle
	if said, err := spec.CombinedOutput(); err != nil {
		return fmt.Errorf("%s spec: %w: %s", t.Engine, err, said)
	}
	file := filepath.Join(bundle, "config.json")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var config map[string]any
	if err := json.Unmarshal(text, &config); err != nil {
		return err
	}
	config["root"] = map[string]any{"path": root.Dir, "readonly": true}
	process := config["process"].(map[string]any)
	process["terminal"], process["args"] = false, []string{"/bin/true"}
	if text, err = json.Marshal(config); err != nil {
		return err
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return err
	}
	work, err := l.Store().Files(ctx, map[string]image.Source{"none": {}})
	if err != nil {
		return err
	}
	var ours, theirs []float64
	const n = 15
	for i := range n {
		began := time.Now()
		g, err := l.Provision(ctx, t, fmt.Sprint("bench-cn-", i), &workload.Ready{Workload: &workload.Workload{}, Image: root, Work: work})
		if err != nil {
			return err
		}
		ours = append(ours, time.Since(began).Seconds())
		if err := g.Destroy(ctx); err != nil {
			return err
		}
		began = time.Now()
		if said, err := exec.CommandContext(ctx, t.Engine, "run", "-b", bundle, fmt.Sprint("tare-bench-", i)).CombinedOutput(); err != nil {
			return fmt.Errorf("%s run: %w: %s", t.Engine, err, said)
		}
		theirs = append(theirs, time.Since(began).Seconds())
	}
	a, b := stats.Median(ours), stats.Median(theirs)
	fmt.Println("\nA container with " + t.Engine + " (median)")
	fmt.Printf("  %-46s %8.1f ms\n", "`"+t.Engine+" run` of true, start to end", b*1e3)
	fmt.Printf("  %-46s %8.1f ms   %5.2f   (%d each)\n", "tare's guest, asked for to ruler's answer", a*1e3, a/b, n)
	return nil
}

// reading times summary and report of a folder of a million trials, as whole processes.
func reading(dir string) error {
	const rounds, trials = 20_000, 5
	study := notebook.Study{
		Version: notebook.Version, Tare: "bench", Name: "million", Source: "name: million\n", Hash: "sha256:none", Seed: 1,
		Created: time.Unix(1_700_000_000, 0).UTC(),
		Design:  notebook.Design{Floor: rounds, Cap: rounds, Trials: trials, TimeoutS: 60},
		Metrics: map[string]notebook.Metric{"w": {Name: "execution time", Unit: "s"}},
		Images:  map[string]notebook.Image{"w": {Reference: "none", Digest: "sha256:none"}},
	}
	inst := notebook.Instance{Name: "1/1GB", Cores: 1, Memory: 1 << 30}
	for i := range 10 {
		t := notebook.Treatment{ID: fmt.Sprint("t", i), Workload: "w", Platform: notebook.CN, Engine: "crun", Provisioning: notebook.Vanilla, Instance: inst, Params: map[string]string{}}
		switch i {
		case 0, 1:
			t.Platform, t.Engine, t.Provisioning, t.AA = notebook.BM, "", "", i == 1
		case 2:
			t.Provisioning = notebook.Pinned
		case 3:
			t.Engine = "docker"
		default:
			t.Instance.Name, t.Instance.Cores = fmt.Sprintf("%d/1GB", i), float64(i)
		}
		study.Treatments = append(study.Treatments, t)
	}
	w, err := notebook.Create(dir, study, notebook.Host{ID: "bench", Hostname: "bench", CPUs: []notebook.CPU{{}}})
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	// Written here, not through Writer: that syncs every line to the disk, which is not what is timed.
	f, err := os.Create(filepath.Join(dir, "trials.jsonl"))
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(f, 1<<20)
	e := json.NewEncoder(b)
	rng := rand.New(rand.NewPCG(1, 1))
	at := study.Created
	for round := range rounds {
		for i, t := range study.Treatments {
			for k := range trials {
				v := 1 + 0.1*float64(i) + 0.01*rng.NormFloat64()
				at = at.Add(time.Second)
				if err := e.Encode(notebook.Trial{
					Treatment: t.ID, Round: round, Guest: fmt.Sprintf("r%d-%d", round, i), Index: k, Start: at,
					Command: []string{"/.tare/work/run"}, Value: v, ElapsedS: v, HostS: v * 1.0001,
					Usage: notebook.Usage{UserS: v, SystemS: 0.01, MaxRSS: 1 << 20, MinFlt: 321, VCSw: 12, IVCSw: 3},
				}); err != nil {
					return err
				}
			}
		}
	}
	if err := errors.Join(b.Flush(), f.Close()); err != nil {
		return err
	}
	fmt.Printf("A folder of a million trials, on %d CPUs\n", runtime.NumCPU())
	total := 0.0
	var peak int64
	for _, args := range [][]string{{"summary", dir}, {"report", dir}} {
		cmd := exec.Command("bin/tare", args...)
		var said bytes.Buffer
		cmd.Stderr = &said
		began := time.Now()
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("tare %s: %w: %s", args[0], err, said.Bytes())
		}
		took := time.Since(began).Seconds()
		rss := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
		fmt.Printf("  tare %-20s %8.2f s   %6.0f MiB\n", args[0], took, float64(rss)/(1<<20))
		total, peak = total+took, max(peak, rss)
	}
	if total > 10 || peak > 1<<30 {
		return fmt.Errorf("summary and report took %.1f s and %d MiB; under 10 s and 1024 MiB are promised", total, peak>>20)
	}
	return nil
}
