//go:build linux

package ruler

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkSpawn holds the ruler against C posix_spawn + waitpid, in pairs because a machine's speed changes: each
// iteration is a batch of each. It reports the medians of the batches' medians, and of their ratios:
//
//	run-ns, run/C    a static true, each by an order of its own
//	cost-ns, cost/C  the ruler's cost (an empty program, in a loop in the ruler) and C with the same program
//
//	go test -run '^$' -bench Spawn -benchtime 20x ./lab/ruler
func BenchmarkSpawn(b *testing.B) {
	cc, err := exec.LookPath("cc")
	need(b, err == nil, "a C compiler (cc)")
	dir := b.TempDir()
	compile := func(name string, flags ...string) string {
		out := filepath.Join(dir, name)
		cmd := exec.Command(cc, append(flags, "-O2", "-o", out, "testdata/"+name+".c")...)
		if msg, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %v: %s", cmd, err, msg)
		}
		return out
	}
	spawn, static := compile("spawn"), compile("true", "-static")
	elf, err := emptyELF("amd64")
	if err != nil {
		b.Fatal(err)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, elf, 0o755); err != nil {
		b.Fatal(err)
	}

	const batch = 200
	c := func(program string) float64 {
		out, err := exec.Command(spawn, strconv.Itoa(batch), program).Output()
		if err != nil {
			b.Fatal(err)
		}
		ns, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
		if err != nil {
			b.Fatal(err)
		}
		return ns
	}
	g := startHere(b)
	o := Order{Argv: []string{static}, Env: os.Environ(), Timeout: 10 * time.Second, OutputLimit: 4096}
	var runs, runRatios, costs, costRatios []float64
	for b.Loop() {
		var ds []float64
		for range batch {
			r, _ := g.mustRun(b, o)
			if r.Exit != 0 || r.Error != "" {
				b.Fatalf("%+v", r)
			}
			ds = append(ds, float64(r.Elapsed))
		}
		runs = append(runs, median(ds))
		runRatios = append(runRatios, median(ds)/c(static))

		elapsed, err := g.Cost(b.Context(), batch)
		if err != nil {
			b.Fatal(err)
		}
		ds = ds[:0]
		for _, d := range elapsed {
			ds = append(ds, float64(d))
		}
		costs = append(costs, median(ds))
		costRatios = append(costRatios, median(ds)/c(empty))
	}
	b.ReportMetric(0, "ns/op") // of no meaning
	b.ReportMetric(median(runs), "run-ns")
	b.ReportMetric(median(runRatios), "run/C")
	b.ReportMetric(median(costs), "cost-ns")
	b.ReportMetric(median(costRatios), "cost/C")
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
