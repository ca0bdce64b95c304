package compare_test

import (
	"slices"
	"strings"
	"testing"

	"tare/desk/compare"
	"tare/desk/data"
	"tare/desk/words"
	"tare/notebook"
	"tare/notebook/notebooktest"
	"tare/stats"
)

var treatments = []string{"bm large", "bm aa large", "cn docker vanilla large", "cn docker pinned large", "cn crun vanilla large", "cn crun pinned large", "vm qemu kvm pinned large",
	"cpu n=4 bm large", "cpu n=4 cn crun pinned large"}

// folder is one of a study of all treatments, with a true slowdown of some.
func folder(seed uint64, slower map[string]float64) *notebooktest.Folder {
	f := notebooktest.New(8)
	f.Seed, f.Rounds, f.Noise, f.Study.Design = seed, 10, 0.01, notebook.Design{Floor: 10, Cap: 10, Trials: 1, TimeoutS: 60}
	for i, t := range treatments {
		mean := 1 + 0.3*float64(max(i, 1))
		if by := slower[t]; by > 0 {
			mean *= by
		}
		f.Add(t, mean)
	}
	return f
}

func read(t *testing.T, f *notebooktest.Folder) *data.Summary {
	t.Helper()
	s, err := data.Read([]string{f.Write(t)}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func from(t *testing.T, old, new *data.Summary, margin float64) *compare.Comparison {
	t.Helper()
	c, err := compare.From(old, new, margin)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ids(changes []compare.Change) (all []string) {
	for _, x := range changes {
		all = append(all, x.Old.Treatment.ID)
	}
	return all
}

// A slowdown of 5 % of one treatment is found, and nothing else is; in hundred pairs of folders that are alike nothing is found in 95 at
// least, and the margin is not what makes it so.
func TestASlowdownIsFoundAndNothingElse(t *testing.T) {
	const pairs = 100
	const slow = "cn crun pinned large"
	type count struct{ missed, wrong, alarms int }
	counts := map[float64]*count{0: {}, 0.01: {}}
	for i := range uint64(pairs) {
		before, after := read(t, folder(3*i, nil)), read(t, folder(3*i+1, map[string]float64{slow: 1.05}))
		alike := read(t, folder(3*i+2, nil))
		for margin, n := range counts {
			found := ids(from(t, before, after, margin).Found(stats.Slower, stats.Faster))
			if !slices.Contains(found, slow) {
				n.missed++
			}
			if len(found) > 1 || len(found) == 1 && found[0] != slow {
				n.wrong++
			}
			if len(from(t, before, alike, margin).Found(stats.Slower, stats.Faster)) > 0 {
				n.alarms++
			}
		}
	}
	for margin, n := range counts {
		t.Logf("margin %g, %d pairs: %+v", margin, pairs, *n)
		if n.missed > 2 || n.wrong > 5 || n.alarms > 5 {
			t.Errorf("margin %g, %d pairs: %+v", margin, pairs, *n)
		}
	}
}

func TestAnswers(t *testing.T) {
	// A host that is a tenth faster: no difference; a little apart with much noise: open, with rounds that would do.
	calm := folder(1, nil)
	calm.Noise = 0.0005
	faster := map[string]float64{}
	for _, id := range treatments {
		faster[id] = 0.9
	}
	faster["cn docker vanilla large"] *= 1.004
	again := folder(2, faster)
	again.Noise = 0.0005
	c := from(t, read(t, calm), read(t, again), 0.01)
	for _, x := range c.Changes {
		if x.Answer != stats.Equivalent || !x.Relative || !x.Ratio.HasInterval() || x.Level < 0.95 || x.Rounds != 0 || !(x.Means.High < 0.92) {
			t.Errorf("%s: %+v, want no difference, and the mean a tenth less", x.Old.Treatment.ID, x)
		}
	}
	if len(c.Changes) != 6 || len(c.Host) != 2 || len(c.Found(stats.Equivalent)) != 6 {
		t.Errorf("%d changes and %d of the host, want 6 and 2", len(c.Changes), len(c.Host))
	}
	for _, x := range c.Host {
		if x.Answer != "" || x.Relative || !x.Ratio.Contains(0.9) || x.Old.Treatment.Platform != notebook.BM {
			t.Errorf("%s: %+v, want the host a tenth faster, and no answer", x.Old.Treatment.ID, x)
		}
	}
	noisy := folder(3, nil)
	noisy.Noise = 0.02
	slower := folder(4, map[string]float64{"cn docker vanilla large": 1.03})
	slower.Noise = 0.02
	for _, x := range from(t, read(t, noisy), read(t, slower), 0.01).Changes {
		if x.Old.Treatment.ID == "cn docker vanilla large" && (x.Answer != stats.Inconclusive || x.Rounds <= 10) {
			t.Errorf("%+v; want open, and more rounds named", x)
		}
	}
}

// Where a folder has no bare metal for a comparison, Tare compares means and says so. Bare metal without other treatments to compare is an ordinary treatment.
func TestWithoutBareMetal(t *testing.T) {
	old, new := folder(11, nil), folder(12, map[string]float64{"cn crun pinned large": 1.05})
	for _, f := range []*notebooktest.Folder{old, new} {
		f.Study.Treatments = slices.DeleteFunc(f.Study.Treatments, func(x notebook.Treatment) bool { return x.Platform == notebook.BM && len(x.Params) == 0 })
	}
	c := from(t, read(t, old), read(t, new), 0.01)
	for _, x := range c.Changes {
		if x.Relative != (len(x.Old.Treatment.Params) > 0) {
			t.Errorf("%s: relative %v", x.Old.Treatment.ID, x.Relative)
		}
	}
	said := words.ChangedLevel(c)
	if found := ids(c.Found(stats.Slower)); !slices.Equal(found, []string{"cn crun pinned large"}) || !strings.Contains(said, "For 5 configurations a folder has no such ratio") || !strings.Contains(said, "only if the host was equally fast both times") {
		t.Errorf("found %q: %s", found, said)
	}
	alone := func(seed uint64, mean float64) *data.Summary {
		f := notebooktest.New(2)
		f.Seed, f.Rounds, f.Noise, f.Study.Design = seed, 10, 0.002, notebook.Design{Floor: 10, Cap: 10, Trials: 1, TimeoutS: 60}
		return read(t, f.Add("bm large", mean))
	}
	c = from(t, alone(1, 1), alone(2, 1.05), 0.01)
	if said := words.ChangedLevel(c); len(c.Found(stats.Slower)) != 1 || len(c.Host) != 0 || !strings.Contains(said, "so Tare compares means") {
		t.Errorf("%+v: %s", c.Changes, said)
	}
}

// A difference as small as bare metal's from itself is not a change.
func TestWithinUnsteadiness(t *testing.T) {
	old := folder(5, map[string]float64{"bm aa large": 0.9}) // which makes bare metal 5 % faster there: so much is less
	new := folder(6, nil)
	for _, x := range from(t, read(t, old), read(t, new), 0.01).Changes {
		if x.Old.Treatment.ID == "cn crun pinned large" && (x.Answer != stats.Inconclusive || x.Why != compare.Doubtful || x.Rounds != 0) {
			t.Errorf("%+v; want it open, and doubtful", x)
		}
	}
}

func TestWhatElseDiffers(t *testing.T) {
	old, new := folder(7, nil), folder(8, nil)
	settings := func(f *notebooktest.Folder, turbo, mitigation, docker string) {
		f.Host.Settings = &notebook.Settings{Turbo: turbo, Mitigations: map[string]string{"meltdown": mitigation, "mds": "Not affected"}}
		f.Host.Capabilities = []notebook.Capability{{Name: "docker", Answer: notebook.Supported, Versions: map[string]string{"docker": docker, "runc": "1.1"}}}
	}
	settings(old, "on", "Mitigation: PTI", "20.10")
	settings(new, "off", "Vulnerable", "28.2")
	new.Host.Kernel, new.Host.ID, new.Study.Tare = "6.19", "ccccccccdddd", "v2"
	new.Study.Images["ffmpeg"] = notebook.Image{Reference: "debian", Digest: "sha256:4444"}
	new.Study.Design.Warmups = old.Study.Design.Warmups + 2
	new.Study.Treatments = slices.DeleteFunc(new.Study.Treatments, func(t notebook.Treatment) bool { return t.Engine == "docker" })
	new.Add("cn podman pinned large", 2)
	c := from(t, read(t, old), read(t, new), 0.01)
	var what, said []string
	for _, d := range c.Differences {
		switch d := d.(type) {
		case compare.Differs:
			what = append(what, string(d.What)+d.Of)
			said = append(said, words.Doubt(d))
		case compare.DesignDiffers:
			what = append(what, words.Doubt(d))
		}
	}
	if want := []string{"host", "kernel", "settingturbo", "mitigationmeltdown", "versiondocker", "tare", "imageffmpeg", "the design: 1 trials and 0 warm-ups in a guest before, 1 trials and 2 warm-ups in a guest after"}; !slices.Equal(what, want) {
		t.Errorf("%q differ, want %q", what, want)
	}
	for _, want := range []string{"the host’s setting “Turbo”: on before, off after", "the mitigation of meltdown: Mitigation: PTI before, Vulnerable after", "the version of docker: 20.10 before, 28.2 after"} {
		if !slices.Contains(said, want) {
			t.Errorf("%q lacks %q", said, want)
		}
	}
	if len(c.Gone) != 2 || len(c.Added) != 1 || c.Added[0].Treatment.Engine != "podman" || len(c.Changes) != 4 || len(c.Host) != 2 {
		t.Errorf("%d gone, %d added, %d in both, and %d of the host", len(c.Gone), len(c.Added), len(c.Changes), len(c.Host))
	}
}

func TestFoldersThatCannotBeCompared(t *testing.T) {
	other := folder(9, nil)
	other.Study.Name = "ladder"
	if _, err := compare.From(read(t, folder(10, nil)), read(t, other), 0.01); err == nil || !strings.Contains(err.Error(), "compare needs two folders of one study") {
		t.Error(err)
	}
	if _, err := compare.From(read(t, notebooktest.New(2).Add("bm large", 1)), read(t, notebooktest.New(2).Add("bm 2/4GB", 1)), 0.01); err == nil || !strings.Contains(err.Error(), "no configuration in common") {
		t.Error(err)
	}
}

// A VM's kernel may be what changed. VMs that differ only by it are compared, unless a folder has several of them.
func TestKernelsOfVMsAreCompared(t *testing.T) {
	vms := func(kernels ...string) *data.Summary {
		f := notebooktest.New(8)
		for _, kernel := range kernels {
			vm := notebooktest.Treatment("vm qemu kvm vanilla large")
			vm.Kernel = kernel
			vm.ID += " " + kernel
			f.AddTreatment(vm, 2)
		}
		return read(t, f)
	}
	c := from(t, vms("6.1"), vms("6.12"), 0.01)
	want := compare.Differs{What: compare.GuestKernel, Old: "6.1", New: "6.12"}
	if len(c.Changes) != 1 || len(c.Gone)+len(c.Added) > 0 || !slices.Contains(c.Differences, data.Doubt(want)) {
		t.Errorf("%d changes, %d gone, %d added, %v; want one change, of the VMs' kernel", len(c.Changes), len(c.Gone), len(c.Added), c.Differences)
	}
	if said := words.Doubt(want); said != "the VMs' kernel: 6.1 before, 6.12 after" {
		t.Errorf("said: %q", said)
	}
	if c := from(t, vms("6.1", "6.6"), vms("6.6", "6.12"), 0.01); len(c.Changes) != 1 || len(c.Gone) != 1 || len(c.Added) != 1 {
		t.Errorf("%d changes, %d gone, %d added; want one each", len(c.Changes), len(c.Gone), len(c.Added))
	}
}

// Two kernels of VMs in one folder are compared in the same rounds, so a host whose speed drifts by much from round to round does not hide a
// change. Emulated VMs are compared too, and the result says what they are.
func TestTwoKernelsOfOneFolder(t *testing.T) {
	t.Parallel()
	vms := func(kernels ...string) *data.Summary {
		f := notebooktest.New(8)
		f.Seed, f.Rounds, f.Noise, f.Study.Design = 1, 10, 0.01, notebook.Design{Floor: 10, Cap: 10, Trials: 1, TimeoutS: 60, Margin: 0.05}
		f.Add("cn crun vanilla large", 1)
		for i, kernel := range kernels {
			for work, slower := range map[string]float64{"cpu": 1, "syscall": 0.6} {
				vm := notebooktest.Treatment(work + " vm qemu tcg vanilla large")
				vm.Kernel = kernel
				vm.ID += " kernel " + kernel
				mean := 2.0
				if i == 1 {
					mean *= slower
				}
				f.AddTreatment(vm, mean)
			}
		}
		f.Trial = func(x *notebook.Trial) {
			x.Value *= 1 + float64(x.Round%5)
			x.ElapsedS = x.Value
		}
		return read(t, f)
	}
	s := vms("6.12@4567", "6.1@0123") // the study's order counts, not the alphabet's
	c, err := compare.Kernels(s, s.Margin())
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Changes) != 2 || c.Margin != 0.05 {
		t.Fatalf("%d changes with the margin %v, want cpu and syscall with the study's 0.05", len(c.Changes), c.Margin)
	}
	for _, x := range c.Changes {
		want, ratio := stats.Equivalent, 1.0
		if x.Old.Treatment.Workload == "syscall" {
			want, ratio = stats.Faster, 0.6
		}
		if x.Answer != want || x.Ratio.Low > ratio || x.Ratio.High < ratio || x.Means.High < 2*x.Means.Low {
			t.Errorf("%s: %s, %v of the rounds and %v of the means; want %s, about %v, and unpaired means that say little", x.Old.Treatment.ID, x.Answer, x.Ratio, x.Means, want, ratio)
		}
	}
	if lines := words.Headline(s); len(lines) == 0 || lines[0] != words.Compared(c) {
		t.Errorf("the summary begins with %q, want %q", lines, words.Compared(c))
	}
	said := words.Compared(c) + words.ChangedLevel(c)
	for _, part := range []string{"From kernel 6.12 to kernel 6.1: syscall, VM, emulated, ", " is faster, ", "the other configuration is equivalent within 5 %.", "means of the same rounds", "Emulated VMs do not represent VMs under KVM"} {
		if !strings.Contains(said, part) {
			t.Errorf("%q does not say %q", said, part)
		}
	}
	for _, kernels := range [][]string{{"6.1@0123"}, {"a", "b", "c"}} {
		if c, err := compare.Kernels(vms(kernels...), 0.05); err == nil || !strings.Contains(err.Error(), "comparing needs two") {
			t.Errorf("%d kernels: %v, %v", len(kernels), c, err)
		}
	}
}
