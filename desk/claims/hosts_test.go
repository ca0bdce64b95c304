package claims

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// asFound are the costs of a container of 16 cores as the paper found them: Figure 7 shows a higher one on the larger host, pinned or not.
var asFound = map[int]notebooktest.Ratios{16: {Vanilla: 1.01, Pinned: 1.01}, 112: {Vanilla: 1.085, Pinned: 1.075}}

// oneSize is the study `chr` on two hosts, judged by its own claims as `tare claims R16 R112` does it.
func oneSize(t *testing.T, seed uint64, costs map[int]notebooktest.Ratios, change func(*notebooktest.Folder)) []Verdict {
	t.Helper()
	var dirs []string
	for _, cpus := range []int{16, 112} {
		if cost, has := costs[cpus]; has {
			f := notebooktest.OneSize(cpus, cost)
			f.Seed = 1000*seed + uint64(cpus)
			if change != nil {
				change(f)
			}
			dirs = append(dirs, f.Write(t))
		}
	}
	s, err := data.Read(dirs, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return Judge(s, ofPinning())
}

// ofPinning are the claims that the study `chr` names.
var ofPinning = sync.OnceValue(func() []Claim {
	all, err := Shipped("pinning")
	if err != nil {
		panic(err)
	}
	return all
})

// Figure 7 of the paper, from two simulated hosts: where they are as the paper found them its claims hold, and where CHR has no effect the claims about
// it do not.
func TestTwoHostsDecideFigure7(t *testing.T) {
	for name, c := range map[string]struct {
		costs map[int]notebooktest.Ratios
		want  map[string]Answer
	}{
		"as the paper found it": {asFound, map[string]Answer{
			"chr-a": Holds, "chr-b": Holds, "practice-5-cpu": Holds,
			"tracking": NotTestable, "summary-c": NotTestable, "chr-ffmpeg": NotTestable, // 16 cores are not a small container, and one size has no trend
		}},
		"no effect of CHR": {map[int]notebooktest.Ratios{16: {Vanilla: 1.05, Pinned: 1.05}, 112: {Vanilla: 1.05, Pinned: 1.05}}, map[string]Answer{
			"chr-a": DoesNotHold, "summary-c": DoesNotHold, "chr-b": Holds, "practice-5-cpu": Holds, "tracking": NotTestable,
		}},
		"only a quota costs more": {map[int]notebooktest.Ratios{16: {Vanilla: 1.01, Pinned: 1.01}, 112: {Vanilla: 1.25, Pinned: 1.01}}, map[string]Answer{
			"chr-a": DoesNotHold, "chr-b": DoesNotHold, "practice-5-cpu": DoesNotHold, "chr-ffmpeg": DoesNotHold,
		}},
		"the larger host costs less": {map[int]notebooktest.Ratios{16: {Vanilla: 1.08, Pinned: 1.08}, 112: {Vanilla: 1.01, Pinned: 1.01}}, map[string]Answer{
			"chr-a": DoesNotHold, "summary-c": DoesNotHold, "chr-b": Holds,
		}},
	} {
		for seed := range uint64(6) {
			vs := oneSize(t, seed, c.costs, func(f *notebooktest.Folder) { f.Noise = 0.007 })
			for id, want := range c.want {
				if v := Find(t, vs, id); v.Answer != want {
					t.Errorf("%s, seed %d: %s: %s, want %s: %s", name, seed, id, v.Answer, want, Why(v))
				}
			}
		}
	}
}

// What two hosts differ in besides their cores is said with the verdict, and where it is the CPU or the image there is none.
func TestWhatTwoHostsConfound(t *testing.T) {
	larger := func(change func(*notebooktest.Folder)) func(*notebooktest.Folder) {
		return func(f *notebooktest.Folder) {
			if len(f.Host.CPUs) == 112 {
				change(f)
			}
		}
	}
	v := Find(t, oneSize(t, 1, asFound, nil), "chr-a")
	if why := Why(v); v.Answer != Holds || !strings.Contains(why, "compares two machines, which may also differ in sockets, caches and memory") || strings.Contains(why, "do differ") {
		t.Errorf("%s: %s", v.Answer, why)
	}
	v = Find(t, oneSize(t, 1, asFound, larger(func(f *notebooktest.Folder) { f.Host.Kernel = "7.0" })), "chr-a")
	if why := Why(v); v.Answer != Holds || !strings.HasSuffix(why, "caches and memory, and do differ in kernel") {
		t.Errorf("%s: %s", v.Answer, why)
	}
	v = Find(t, oneSize(t, 1, asFound, larger(func(f *notebooktest.Folder) { f.Host.CPUModel = "AMD EPYC" })), "chr-a")
	if why := Why(v); v.Answer != NotTestable || !strings.Contains(why, "on hosts that differ only in their core counts; here: 16 cores of Intel(R) Xeon(R) CPU E5-4628L v4 @ 1.80GHz, 112 cores of AMD EPYC") {
		t.Errorf("%s: %s", v.Answer, why)
	}
	v = Find(t, oneSize(t, 1, asFound, larger(func(f *notebooktest.Folder) {
		f.Study.Images["ffmpeg"] = notebook.Image{Reference: "debian", Digest: "sha256:2222"}
	})), "chr-a")
	if why := Why(v); v.Answer != NotTestable || !strings.Contains(why, "which ran different images") {
		t.Errorf("%s: %s", v.Answer, why)
	}
	// One host says which other is needed.
	for cpus, here := range map[int]string{16: "here: 16 cores;", 112: "here: 112 cores;"} {
		v = Find(t, oneSize(t, 1, map[int]notebooktest.Ratios{cpus: asFound[cpus]}, nil), "chr-a")
		if why := Why(v); v.Answer != NotTestable || !strings.Contains(why, here+" a second host needs a different core count (at least 16) and the same CPU model (Intel(R) Xeon(R)") {
			t.Errorf("%d CPUs: %s: %s", cpus, v.Answer, why)
		}
	}
}

// Hosts with equally many cores are each compared with those that have more, and not with each other.
func TestSeveralHostsOfEachSize(t *testing.T) {
	build := func(costs ...float64) Verdict {
		w := newWorld(host("a", 16), host("b", 16), host("c", 112), host("d", 112))
		for h, cost := range costs {
			w.add(h, "ffmpeg segments=1 bm 4xlarge", 5)
			w.add(h, "ffmpeg segments=1 cn docker vanilla 4xlarge", 5*cost)
			w.add(h, "ffmpeg segments=1 cn docker pinned 4xlarge", 5*cost)
		}
		return Find(t, Judge(w.measure(20, 0.003, 1), shipped(t)), "chr-a")
	}
	v := build(1.05, 1, 1.3, 1.2)
	if v.Answer != Holds || len(v.Evidence) != 2*4 {
		t.Errorf("%s with %d comparisons: %s", v.Answer, len(v.Evidence), Why(v))
	}
	for _, e := range v.Evidence {
		if e.Comparison.Over.At.Host < "c" || e.Comparison.Below.At.Host > "b" || !e.Comparison.AcrossHosts() {
			t.Errorf("%s is compared with %s", e.Comparison.Over.At.Host, e.Comparison.Below.At.Host)
		}
	}
	// Of very many hosts each takes part, once at least.
	const most = 60
	w := newWorld()
	for i := range 2*most + 5 {
		cores, cost := 16, 1.0
		if i >= most {
			cores, cost = 112, 1.2
		}
		w.sum.Hosts = append(w.sum.Hosts, host(fmt.Sprint("h", i), cores))
		w.sum.Folders = append(w.sum.Folders, data.Folder{Host: fmt.Sprint("h", i)})
		w.add(i, "ffmpeg segments=1 bm 4xlarge", 5)
		w.add(i, "ffmpeg segments=1 cn docker vanilla 4xlarge", 5*cost)
		w.add(i, "ffmpeg segments=1 cn docker pinned 4xlarge", 5*cost)
	}
	many := Find(t, Judge(w.measure(5, 0.001, 1), ofPinning()), "chr-a")
	seen := map[string]bool{}
	for _, e := range many.Evidence {
		seen[e.Comparison.Over.At.Host], seen[e.Comparison.Below.At.Host] = true, true
	}
	if many.Answer != Holds || len(many.Evidence) != 2*(most+5) || len(seen) != 2*most+5 {
		t.Errorf("%s, %d comparisons of %d hosts: %s", many.Answer, len(many.Evidence), len(seen), Why(many))
	}
	if v := build(1.05, 1, 1.3, 1.05); v.Answer != DoesNotHold {
		t.Errorf("%s: %s", v.Answer, Why(v))
	}
}

// A comparison across hosts errs no more often than it promises. The truth lies at the bound, once within and once hardly beyond it.
func TestAcrossHostsErrsSeldom(t *testing.T) {
	claim := []Claim{{ID: "c", Hypothesis: Hypothesis{Trend: &Trend{Of: Selector{Workload: Values{"ffmpeg"}, Platform: Values{"cn"}}, Over: OverHostCores, Rises: 0.02}}}}
	const runs = 400
	for _, c := range []struct {
		rises float64
		wrong Answer
	}{{1.02, DoesNotHold}, {1.02 - 1e-9, Holds}} {
		w := newWorld(host("small", 16), host("big", 112))
		for h, cost := range []float64{1.03, 1.03 * c.rises} {
			w.add(h, "ffmpeg bm 4xlarge", 5)
			w.add(h, "ffmpeg cn docker vanilla 4xlarge", 5*cost)
		}
		wrong := 0
		for seed := range uint64(runs) {
			if Judge(w.measure(8, 0.01, seed), claim)[0].Answer == c.wrong {
				wrong++
			}
		}
		if most := 0.05*runs + 3*math.Sqrt(0.05*0.95*runs); float64(wrong) > most {
			t.Errorf("%s: %d of %d are wrong, at most %.0f may be", c.wrong, wrong, runs, most)
		}
	}
}
