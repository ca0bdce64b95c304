//go:build linux

package ruler

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkSpawn holds the ruler against C posix_spawn + waitpid, in pairs because a machine's speed changes: each
// iteration is a batch of each. It reports the medians of the batches' medians, and of their ratios:
//
//	loop-ns, loop/C    a static true, started again and again
//	cost-ns, cost/C    the same of an empty program: the ruler's cost
//	order-ns, order/C  a static true, each by an order of its own, and by C with a pause of 1 ms before each: after a
//	                   pause the kernel's way through creation is out of the caches, whoever goes it
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
	elf, err := makeELF(runtime.GOARCH, exits[runtime.GOARCH])
	if err != nil {
		b.Fatal(err)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, elf, 0o755); err != nil {
		b.Fatal(err)
	}

	const batch = 200
	c := func(pause, program string) float64 {
		out, err := exec.Command(spawn, strconv.Itoa(batch), pause, program).Output()
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
	loop := func(argv ...string) float64 {
		elapsed, err := g.Cost(b.Context(), batch, argv...)
		if err != nil {
			b.Fatal(err)
		}
		return median(elapsed)
	}
	orders := func() float64 {
		var elapsed []time.Duration
		for range batch {
			r, _ := g.mustRun(b, o)
			if r.Exit != 0 || r.Error != "" {
				b.Fatalf("%+v", r)
			}
			elapsed = append(elapsed, r.Elapsed)
		}
		return median(elapsed)
	}
	figures := map[string][]float64{}
	note := func(name string, ruler, c float64) {
		figures[name+"-ns"] = append(figures[name+"-ns"], ruler)
		figures[name+"/C"] = append(figures[name+"/C"], ruler/c)
	}
	for b.Loop() {
		note("loop", loop(static), c("0", static))
		note("cost", loop(), c("0", empty))
		note("order", orders(), c("1000", static))
	}
	b.ReportMetric(0, "ns/op") // of no meaning
	for name, values := range figures {
		b.ReportMetric(median(values), name)
	}
}

func median[T ~int64 | ~float64](v []T) float64 {
	v = slices.Sorted(slices.Values(v))
	return float64(v[len(v)/2])
}
