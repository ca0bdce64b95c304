package fleet

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unique"

	"tare/desk/claims"
	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
	"tare/stats"
)

// simulated are hosts with two configurations. Costs are 2 % and 5 % more than bare metal's; their true values vary by between from host to host, and what
// each host measures varies by 1 % around them. Hosts take turns with two models of CPU, and three of the last ones have an old kernel.
func simulated(g *rand.Rand, n int, between float64) (hosts []*Host) {
	var of []*Subject
	for _, words := range []string{"cn docker vanilla 2/4GB", "cn docker pinned 2/4GB"} {
		r := data.Row{Treatment: notebooktest.Treatment(words), Representative: true, Baseline: "bm"}
		of = append(of, &Subject{Row: r.Bare()})
	}
	for i := range n {
		h := &Host{Name: fmt.Sprintf("node-%d", i), ID: fmt.Sprint(i), Folders: []string{fmt.Sprint("R", i)}, at: i, study: study{name: "quick"}, margin: 0.01}
		kernel := "6.12"
		if i >= n-3 {
			kernel = "5.10"
		}
		for factor, value := range map[Factor]string{{CPUModel, ""}: []string{"A", "B"}[i%2], {Kernel, ""}: kernel, {Setting, "kernel_command_line"}: fmt.Sprint("root=", i)} {
			h.Facts = append(h.Facts, unique.Make(Fact{factor, value}))
		}
		for k, cost := range []float64{1.02, 1.05} {
			free := 9.0
			v := 0.0
			for range int(free) {
				z := 0.01 * g.NormFloat64()
				v += z * z / free
			}
			log := math.Log(cost) + between*g.NormFloat64() + 0.01*g.NormFloat64()
			half := stats.Student(free, stats.Alpha) * math.Sqrt(v)
			h.Results = append(h.Results, Result{Of: of[k], Rounds: 10, Trials: 50, Effect: stats.Effect{Value: log, Variance: v, Free: free},
				Cost: stats.Quotient{Value: math.Exp(log), Low: math.Exp(log - half), High: math.Exp(log + half), N: 10}})
		}
		hosts = append(hosts, h)
	}
	return hosts
}

// shift multiplies what a host says its first configuration costs.
func (h *Host) shift(by float64) {
	r := &h.Results[0]
	r.Effect.Value += math.Log(by)
	r.Cost.Value, r.Cost.Low, r.Cost.High = r.Cost.Value*by, r.Cost.Low*by, r.Cost.High*by
}

// TestFleet: the mean, the spread and the interval of the next host are those of the simulation.
func TestFleet(t *testing.T) {
	f := from(simulated(rand.New(rand.NewPCG(40, 10)), 400, 0.01), 0)
	if f.Margin != 0.01 || f.Reference() != "bm" || len(f.Configurations) != 2 || len(f.Primary()) != 2 || len(f.Hosts) != 400 {
		t.Fatalf("%+v", f)
	}
	for k, want := range []float64{1.02, 1.05} {
		c := f.Configurations[k]
		n := 0
		for _, v := range c.Verdicts {
			n += v
		}
		if math.Abs(c.Ratio.Value-want) > 0.003 || !c.Ratio.Contains(want) || math.Abs(c.Across.Between-0.01) > 0.002 || c.Verdict != stats.Slower ||
			math.Abs(c.Next.Low-want*math.Exp(-0.0196)) > 0.004 || math.Abs(c.Next.High-want*math.Exp(0.0196)) > 0.004 || n != 400 {
			t.Errorf("%g: %+v", want, c)
		}
	}
	if len(f.Classes) > 0 || len(f.Outliers) > 0 || f.Compared != 4 {
		t.Errorf("%d comparisons, classes %+v, outliers %+v", f.Compared, f.Classes, f.Outliers)
	}
}

// TestInjected: a host and a class of hosts that differ are found and named, with what is different about them. Where there are none, few
// fleets report one.
func TestInjected(t *testing.T) {
	g := rand.New(rand.NewPCG(40, 11))
	const fleets = 100
	falseClass, falseHost, class, outlier := 0, 0, 0, 0
	for range fleets {
		hosts := simulated(g, 60, 0.01)
		f := from(hosts, 0)
		falseClass += min(len(f.Classes), 1)
		falseHost += min(len(f.Outliers), 1)

		old := hosts[59]
		old.shift(1.15)
		f = from(hosts, 0)
		if len(f.Outliers) > 0 && f.Outliers[0].Host == old && f.Outliers[0].In[0].Of == f.Configurations[0] &&
			slices.ContainsFunc(f.Outliers[0].Differs, func(r Rare) bool { return r.Kind == Kernel && r.Value == "5.10" && r.Hosts == 3 && r.Of == 60 }) &&
			!slices.ContainsFunc(f.Outliers[0].Differs, func(r Rare) bool { return r.Kind == Setting }) {
			outlier++
		}
		old.shift(1 / 1.15)
		for i := 1; i < len(hosts); i += 2 {
			hosts[i].shift(1.03)
		}
		f = from(hosts, 0)
		if len(f.Classes) > 0 && f.Classes[0].Factors[0].Kind == CPUModel && f.Classes[0].Of == f.Configurations[0] && f.Classes[0].Explained > 0.3 &&
			f.Classes[0].Means[0].Cost.Value < f.Classes[0].Means[1].Cost.Value && f.Classes[0].Means[0].Cost.N == 30 {
			class++
		}
	}
	t.Logf("of %d fleets, a false class in %d, a false outlier in %d, the class in %d, the outlier in %d", fleets, falseClass, falseHost, class, outlier)
	if falseClass > 10 || falseHost > 10 || class < 95 || outlier < 98 {
		t.Errorf("of %d fleets, a false class in %d, a false outlier in %d, the class in %d, the outlier in %d", fleets, falseClass, falseHost, class, outlier)
	}
}

// TestFactorsThatGoTogether: nobody can tell apart factors that divide the hosts alike, so they are one comparison.
func TestFactorsThatGoTogether(t *testing.T) {
	hosts := simulated(rand.New(rand.NewPCG(40, 12)), 20, 0.001)
	for i, h := range hosts {
		h.add(Cores, "", []string{"16", "112"}[i%2])
		if i%2 == 1 {
			h.shift(1.05)
		}
	}
	f := from(hosts, 0.02)
	if f.Margin != 0.02 || f.Compared != 4 || len(f.Classes) != 1 || len(f.Classes[0].Factors) != 2 || !slices.Equal(slices.Sorted(slices.Values(f.Classes[0].Means[1].Values)), []string{"112", "B"}) {
		t.Errorf("%d comparisons, %+v", f.Compared, f.Classes)
	}
}

// TestFewHosts: one and two hosts give what there is.
func TestFewHosts(t *testing.T) {
	one := from(simulated(rand.New(rand.NewPCG(40, 13)), 1, 0.01)[:1], 0)
	if c := one.Configurations[0]; c.Ratio != one.Hosts[0].Results[0].Cost || !math.IsNaN(c.Next.Low) || c.Verdict == "" || c.Across.N != 1 {
		t.Errorf("one host: %+v", c)
	}
	two := from(simulated(rand.New(rand.NewPCG(40, 14)), 2, 0.01), 0)
	if c := two.Configurations[0]; !c.Ratio.HasInterval() || !math.IsNaN(c.Next.High) || c.Across.N != 2 {
		t.Errorf("two hosts: %+v", c)
	}
}

// written writes the folders of nodes, after change has changed them, and gives their paths.
func written(t *testing.T, n int, change func(i int, f *notebooktest.Folder)) (dirs []string) {
	t.Helper()
	for i := range n {
		f := notebooktest.Node(i, 0.01)
		change(i, f)
		dirs = append(dirs, f.Write(t))
	}
	return dirs
}

// TestRead: folders of one host count once, whatever their hostnames; what cannot be read and other studies are left out; a wrong clock does not matter.
func TestRead(t *testing.T) {
	dirs := written(t, 8, func(i int, f *notebooktest.Folder) {
		switch i {
		case 1: // another node on the machine of node 0
			f.Host.ID = notebooktest.Node(0, 0).Host.ID
			f.Guest = func(g *notebook.Guest) { g.ID += "-again" }
		case 2:
			f.Study.Name = "other"
		case 3:
			f.Start = f.Start.Add(3600e9)
		case 4: // another image
			f.Study.Images["ffmpeg"] = notebook.Image{Reference: "debian", Digest: "sha256:9999", Input: "sha256:3333"}
		case 5:
			f.Trial = func(x *notebook.Trial) {
				if x.Index == 0 && x.Treatment != "bm 2/4GB" {
					x.Failure = notebook.TextMessage("it failed")
				}
			}
		}
	})
	empty := t.TempDir()
	f, err := Read(append(dirs, empty), data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f.Folders != 9 || len(f.Hosts) != 6 || len(f.Unread) != 2 || f.Study != "quick" {
		t.Fatalf("%d folders, %d hosts, %+v", f.Folders, len(f.Hosts), f.Unread)
	}
	if shared := f.Shared(); len(shared) != 1 || !slices.Equal(shared[0].Nodes, []string{"node-00000", "node-00001"}) || len(shared[0].Folders) != 2 {
		t.Errorf("hosts with several folders: %+v", shared)
	}
	if f.Unread[0].Dir != empty || f.Unread[0].Err == nil || f.Unread[1].Dir != dirs[2] || f.Unread[1].Study != "other" {
		t.Errorf("left out: %+v", f.Unread)
	}
	c := f.Configurations[0]
	if len(f.Configurations) != 1 || len(c.Hosts) != 5 || c.Unreliable != 1 || c.Results[0].Rounds != 20 || c.Results[1].Rounds != 10 || !c.Ratio.Contains(1.02) {
		t.Errorf("%+v", c)
	}
	if images := f.Values(Factor{Image, "ffmpeg"}); len(images) != 2 || images[1].Hosts != 1 {
		t.Errorf("images: %+v", images)
	}
	// The variance is that of the rounds: the interval of a study without looks is Student's with it.
	one := c.Results[1]
	half := stats.Student(9, stats.Alpha) * math.Sqrt(one.Effect.Variance)
	if math.Abs(math.Log(one.Cost.High/one.Cost.Low)/2/half-1) > 0.02 {
		t.Errorf("%+v: half of the interval is %g, want %g", one, math.Log(one.Cost.High/one.Cost.Low)/2, half)
	}
	// A copy of a host's folder counts once.
	f, err = Read([]string{dirs[0], dirs[0], dirs[3]}, data.Options{})
	if err != nil || len(f.Hosts) != 2 || len(f.Unread) != 1 || f.Unread[0].Err == nil {
		t.Errorf("a folder named twice: %+v, %v", f, err)
	}
	if _, err := Read([]string{empty, dirs[0] + "/study.json"}, data.Options{}); err == nil {
		t.Error("nothing can be read, and there is no error")
	}
	if _, err := Read(dirs[:1], data.Options{Baseline: notebook.Reference{"platform": "vm"}}); err == nil {
		t.Error("no host has the reference, and there is no error")
	}
}

// TestReadDiffering: lengths, kernels of VMs and sizes of whole hosts that differ between hosts are facts, and not other configurations. Costs of a metric where higher
// is better are costs.
func TestReadDiffering(t *testing.T) {
	dirs := written(t, 4, func(i int, f *notebooktest.Folder) {
		f.Study.Treatments, f.Study.Images, f.Study.Metrics = nil, map[string]notebook.Image{}, map[string]notebook.Metric{}
		f.Study.Lengths = map[string]string{"cpu{millions=60,rate=8}": "180"}
		length := "180"
		if i == 3 {
			f.Study.Lengths, length = map[string]string{"cpu{millions=60,rate=8}": "600"}, "600"
		}
		f.Study.Metrics["cpu"] = notebook.Metric{Name: "bandwidth", Unit: "GB/s", Better: notebook.Higher}
		work := "cpu millions=" + length + " rate=8 "
		f.Add(work+"bm 2/4GB", 100).Add(work+"cn docker vanilla 2/4GB", 90)
		vm := notebooktest.Treatment(work + "vm qemu kvm pinned 2/4GB")
		vm.Kernel = fmt.Sprint("6.1", i)
		f.AddTreatment(vm, 80)
	})
	f, err := Read(dirs, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Configurations) != 2 {
		t.Fatalf("%d configurations", len(f.Configurations))
	}
	for k, want := range []float64{1 / 0.9, 1 / 0.8} {
		if c := f.Configurations[k]; len(c.Hosts) != 4 || math.Abs(c.Ratio.Value-want) > 0.01 || c.Verdict != stats.Slower || c.Row.Treatment.Params["millions"] != "60 or more" {
			t.Errorf("want %g: %+v", want, c)
		}
	}
	if v := f.Values(Factor{Length, "cpu"}); !slices.Equal(v, []Value{{"180", 3}, {"600", 1}}) {
		t.Errorf("lengths: %+v", v)
	}
}

// TestJudge: claims are judged on each host by its own results. The hosts that refute one are named.
func TestJudge(t *testing.T) {
	dirs := written(t, 5, func(i int, f *notebooktest.Folder) {
		f.Noise, f.Study.Name = 0.001, "quick"
		if f.Mean["cn docker vanilla 2/4GB"] = 1.02; i == 3 {
			f.Mean["cn docker vanilla 2/4GB"] = 1.2
		}
	})
	f, err := Read(dirs, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := claims.Parse("mine.yaml", []byte(`paper: Mine
groups:
- name: all
  about: {workload: ffmpeg}
  claims:
  - id: cheap
    place: here
    finding: Docker costs at most 10 %.
    tolerance: It is an example.
    hypothesis:
      ratio: {of: {platform: cn}, to: {platform: bm}, between: [0.5, 1.1]}
  - id: vms
    place: here
    finding: VMs cost more than 5 %.
    hypothesis:
      ratio: {of: {platform: vm}, to: {platform: bm}, higher: 5%}
`))
	if err != nil {
		t.Fatal(err)
	}
	got := f.Judge(all, data.Options{})
	if len(got) != 2 || got[0].Hosts[claims.Holds] != 4 || got[0].Hosts[claims.DoesNotHold] != 1 || len(got[0].Refuted) != 1 || got[0].Refuted[0] != f.Hosts[3] ||
		got[0].First.Answer != claims.DoesNotHold || !got[0].Concerns || got[1].Hosts[claims.NotTestable] != 5 || got[1].Refuted != nil || got[1].First == nil {
		t.Errorf("%+v", got)
	}
	if err := os.RemoveAll(dirs[2]); err != nil {
		t.Fatal(err)
	}
	if got := f.Judge(all, data.Options{}); got[0].Hosts[claims.Holds] != 3 || len(f.Unread) != 1 {
		t.Errorf("a folder is gone: %+v, %+v", got, f.Unread)
	}
}

// TestCopiedFolder: a copy of a folder does not count, and leaves the others of its host as they are, whatever comes first.
func TestCopiedFolder(t *testing.T) {
	dirs := written(t, 2, func(i int, f *notebooktest.Folder) {
		if i == 1 {
			f.Host.ID = notebooktest.Node(0, 0).Host.ID
			f.Guest = func(g *notebook.Guest) { g.ID += "-again" }
		}
	})
	again := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(again, os.DirFS(dirs[1])); err != nil {
		t.Fatal(err)
	}
	for _, order := range [][]string{{dirs[0], dirs[1], again}, {again, dirs[0], dirs[1]}, {again, dirs[1], dirs[0]}} {
		f, err := Read(order, data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Hosts) != 1 || len(f.Hosts[0].Folders) != 2 || !slices.Contains(f.Hosts[0].Folders, dirs[0]) || len(f.Unread) != 1 || f.Unread[0].Dir == dirs[0] {
			t.Errorf("%v: %+v, left out %+v", order, f.Hosts[0].Folders, f.Unread)
		}
	}
}
