package claims

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/notebook"
)

// world makes summaries of studies whose true ratios are known.
type world struct {
	sum   *data.Summary
	truth []float64 // mean of each row
}

func size(name string) notebook.Instance {
	i, err := notebook.ParseInstance(name)
	if err != nil {
		panic(err)
	}
	return i
}

func host(name string, cores int) data.Host {
	h := data.Host{Name: name, Host: notebook.Host{ID: name, Hostname: name, CPUModel: "one model"}}
	for i := range cores {
		h.CPUs = append(h.CPUs, notebook.CPU{ID: i, Core: i})
	}
	return h
}

func newWorld(hosts ...data.Host) *world {
	w := &world{sum: &data.Summary{Hosts: hosts}}
	for i, h := range hosts {
		w.sum.Folders = append(w.sum.Folders, data.Folder{Dir: fmt.Sprint("R", i), Host: h.ID})
	}
	return w
}

// cacheNone is how the VMs of the studies about pinning and about clouds are made.
const cacheNone = "cache=none"

// treatment is written as "wordpress cn docker vanilla large", with parameters as k=v, "cache=none" and "cpu=…" of VMs, "network=MODE", and "host=N" for
// a host made smaller to N cores.
func treatment(words string) notebook.Treatment {
	t := notebook.Treatment{ID: words}
	for i, f := range strings.Fields(words) {
		k, v, isParam := strings.Cut(f, "=")
		switch {
		case i == 0:
			t.Workload = f
		case k == "host":
			fmt.Sscan(v, &t.HostCores)
		case k == "network":
			t.Network = v
		case f == cacheNone, k == "cpu":
			t.Machine = strings.TrimSpace(t.Machine + " " + f)
		case isParam:
			if t.Params == nil {
				t.Params = map[string]string{}
			}
			t.Params[k] = v
		case f == notebook.BM || f == notebook.CN || f == notebook.VM || f == notebook.VMCN:
			t.Platform = f
		case f == notebook.Vanilla || f == notebook.Pinned:
			t.Provisioning = f
		case f == notebook.KVM || f == notebook.TCG:
			t.Accelerator = f
		case f == "docker" || f == "crun" || f == "qemu":
			t.Engine = f
		case f == "AA":
			t.AA = true
		case f == notebook.LayersEngine:
			t.Engine = f
		case f == notebook.IsolationFull || slices.Contains(notebook.Layers, f):
			t.Isolation = f
		default:
			t.Instance = size(f)
		}
	}
	return t
}

func (w *world) add(host int, words string, mean float64) *data.Row {
	t := treatment(words)
	h := &w.sum.Hosts[host]
	cores := t.HostCores
	if cores == 0 {
		cores = len(h.CPUs)
	}
	w.sum.Rows = append(w.sum.Rows, &data.Row{
		Treatment: t, Host: h.Name, HostID: h.ID, HostCores: cores, CHR: h.CHR(t), Metric: notebook.Metric{Name: "time", Unit: "s"},
		Image: notebook.Image{Digest: "sha256:" + t.Workload}, Representative: t.Representative(),
	})
	w.truth = append(w.truth, mean)
	return w.sum.Rows[len(w.sum.Rows)-1]
}

// measure gives every row values of so many rounds. A round slows all of its rows alike, and each by itself.
func (w *world) measure(rounds int, noise float64, seed uint64) *data.Summary {
	g := rand.New(rand.NewPCG(seed, 1))
	s := *w.sum
	s.Rows = nil
	for _, r := range w.sum.Rows {
		row := *r
		s.Rows = append(s.Rows, &row)
	}
	s.Folders = append([]data.Folder(nil), s.Folders...)
	for i := range s.Folders {
		s.Folders[i].Study.Design = notebook.Design{Floor: rounds, Cap: rounds}
	}
	slow := make([]float64, rounds)
	for r := range slow {
		slow[r] = math.Exp(2 * noise * g.NormFloat64())
	}
	for i, row := range s.Rows {
		row.Rounds, row.Trials = rounds, rounds
		folder := 0
		for f := range s.Folders {
			if s.Folders[f].Host == row.HostID {
				folder = f
			}
		}
		row.Values = nil
		for r := range rounds {
			row.Values = append(row.Values, data.Value{Block: data.Block{Folder: folder, Round: r}, Mean: w.truth[i] * slow[r] * math.Exp(noise*g.NormFloat64()), Trials: 1})
		}
	}
	return &s
}

// exact is the world without noise: its verdicts are the truth.
func (w *world) exact() *data.Summary { return w.measure(5, 0, 1) }

var platforms = []string{"cn docker vanilla", "cn docker pinned", "vm qemu kvm vanilla cache=none", "vm qemu kvm pinned cache=none", "vmcn crun kvm vanilla cache=none", "vmcn crun kvm pinned cache=none"}

// byPlatform are the ratios of each of platforms at one size.
type byPlatform [6]float64

// paperWorld is a host of 112 cores, which was also made one of 16, where everything is as the paper says.
func paperWorld() *world {
	w := newWorld(host("r830", 112))
	put := func(what, instance string, mean float64, ratios byPlatform) {
		w.add(0, what+" bm "+instance, mean)
		for i, p := range platforms {
			if ratios[i] != 0 {
				w.add(0, what+" "+p+" "+instance, mean*ratios[i])
			}
		}
	}
	names := []string{"large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge"}
	for i, r := range []byPlatform{
		{1.5, 1.03, 2.1, 2.1, 3.9, 3.9},
		{1.3, 1.03, 2.1, 2.1, 3, 3},
		{1.09, 1.03, 2.1, 2.1, 2.5, 2.5},
		{1.045, 1.022, 2.1, 2.1, 2.13, 2.13},
	} {
		put("ffmpeg segments=1", names[i], 80/size(names[i]).Cores, r)
		for _, vm := range platforms[2:4] {
			w.add(0, "ffmpeg segments=1 "+vm+" cpu=qemu64 "+names[i], 80/size(names[i]).Cores*2*r[2])
		}
		put("ffmpeg segments=30", names[i], 80/size(names[i]).Cores, byPlatform{1.1 * r[0], 1.05 * r[1]})
	}
	put("ffmpeg segments=1 host=16", "4xlarge", 5, byPlatform{1, 1})
	put("ffmpeg segments=1 host=16", "large", 40, byPlatform{1.05, 1})
	for i, n := range names {
		vm := []float64{1.3, 1.2, 1.02, 1.02, 1.02, 1.02}[i]
		for _, program := range []string{"mpi-search", "mpi-prime"} {
			put(program, n, 20/size(n).Cores, byPlatform{1.2 * vm, 1.2 * vm, vm, vm, 1.06 * vm, 1.06 * vm})
		}
		put("wordpress", n, 2, byPlatform{[]float64{2.3, 1.9, 1.5, 1.095, 1.09, 1.085}[i], 1, 1.075, 1.05, 1.055, 1.03})
		c := byPlatform{[]float64{4.4, 4.4, 3, 2, 1.0938, 1.0938}[i], 0.949, 1.2, 0.99, 1.15, 0.975}
		switch {
		case i >= 4:
			c[1], c[2], c[3], c[4], c[5] = 1.0425, 1.09, 1.09, 1.07, 1.07
		case i > 0:
			c[3], c[5] = 0.98, 0.969
		}
		put("cassandra", n, []float64{9, 3, 3, 3, 3, 3}[i], c)
	}
	put("ffmpeg segments=1", "8xlarge", 5, byPlatform{})
	put("pingpong where=free", "large", 3, byPlatform{1.1, 1.1, 0.9, 0.9})
	put("io requests=0", "large", 1, byPlatform{1.2, 1})
	put("io requests=1000", "large", 2, byPlatform{1.5, 1})
	for _, what := range []string{"network-request connect=once connections=1 bytes=64", "network-stream connections=1 bytes=128", "network-stream connections=1 bytes=4096"} {
		bridge := 1.5
		if strings.HasSuffix(what, "=4096") {
			bridge = 1.2
		}
		w.add(0, what+" bm large", 1)
		for _, c := range []struct {
			how   string
			ratio float64
		}{{"cn crun pinned network=host", 1}, {"cn crun pinned network=bridge", bridge}, {"cn crun pinned network=macvlan", 1.1}, {"vm qemu kvm pinned network=user", 4}, {"vm qemu kvm pinned network=bridge", 2}} {
			w.add(0, what+" "+c.how+" large", c.ratio)
		}
	}
	return w
}

// nullWorld is paperWorld where no platform costs anything.
func nullWorld() *world {
	w := paperWorld()
	for i := range w.truth {
		w.truth[i] = 5
	}
	return w
}

// smallWorld is a host of two cores as those that the tests run on: VMs are emulated or left out.
func smallWorld() *world {
	w := newWorld(host("bench", 2))
	for _, what := range []string{"ffmpeg segments=1", "mpi-search", "wordpress", "cassandra"} {
		for i, n := range []string{"1/2GB", "2/4GB"} {
			w.add(0, what+" bm "+n, 4)
			w.add(0, what+" cn docker vanilla "+n, []float64{6, 4.04}[i])
			w.add(0, what+" cn docker pinned "+n, 4.1)
			w.add(0, what+" vm qemu tcg vanilla cache=none "+n, 40)
			w.add(0, what+" vmcn crun tcg vanilla cache=none "+n, 41)
		}
	}
	w.sum.LeftOut = []data.LeftOut{
		{Host: "bench", Treatment: treatment("ffmpeg segments=1 vmcn crun kvm vanilla cache=none 4xlarge"), Reason: notebook.TextMessage("needs 16 cores, this host has 2")},
		{Host: "bench", Treatment: treatment("ffmpeg segments=1 cn docker vanilla 4xlarge"), Reason: notebook.TextMessage("needs 16 cores, this host has 2")},
	}
	return w
}
