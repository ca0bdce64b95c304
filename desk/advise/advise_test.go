package advise

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/golden"
	"tare/notebook"
)

func TestGolden(t *testing.T) {
	dir := usual().write(t)
	a := read(t, Options{}, dir)
	golden.Check(t, "usual.txt", []byte(text(t, a)))
	var b bytes.Buffer
	if err := JSON(&b, a); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "usual.json", b.Bytes())
	golden.Check(t, "cost.txt", []byte(text(t, read(t, Options{Prefer: Cost, Exclude: []string{"bm"}}, dir, sizes2(t)))))
	at := func(name string) int {
		i := slices.IndexFunc(a.Rankings[0].Choices, func(c Choice) bool { return c.named() == name })
		if i < 0 {
			t.Fatalf("no %s in the ranking", name)
		}
		return i + 1
	}
	for _, f := range []struct{ file, format, name string }{
		{"pinned.docker.sh", "docker", "Docker with --cpuset-cpus at large"},
		{"vanilla.docker.sh", "docker", "Docker with --cpus at large"},
		{"pinned.compose.yaml", "compose", "Docker with --cpuset-cpus at large"},
		{"vanilla.compose.yaml", "compose", "Docker with --cpus at large"},
		{"pinned.kubernetes.yaml", "kubernetes", "Docker with --cpuset-cpus at large"},
		{"vanilla.kubernetes.yaml", "kubernetes", "Docker with --cpus at large"},
		{"pinned.libvirt.xml", "libvirt", "VM with a CPU set at large"},
		{"vanilla.libvirt.xml", "libvirt", "VM at large"},
		{"vmcn.libvirt.xml", "libvirt", "container in a VM with a CPU set at large"},
		{"bm.systemd.service", "systemd", "bare metal at large"},
		{"pinned.systemd.service", "systemd", "Docker with --cpuset-cpus at large"},
		{"vanilla.systemd.service", "systemd", "Docker with --cpus at large"},
	} {
		golden.Check(t, f.file, []byte(apply(t, a, f.format, at(f.name))))
	}
}

// sizes2 is another folder of the usual host, with a smaller size.
func sizes2(t *testing.T) string {
	l := newLab(8).add("bm", one, 7.9).add("cn/docker/vanilla", one, 12).add("cn/docker/pinned", one, 8.1).add("cn/docker/vanilla", half, 25)
	l.start = at.Add(time.Hour)
	return l.write(t)
}

func names(r Ranking) []string {
	var all []string
	for _, c := range r.Choices {
		all = append(all, c.named())
	}
	return all
}

func TestRankedByTheUpperEnd(t *testing.T) {
	r := read(t, Options{}, usual().write(t)).Rankings[0]
	want := []string{"bare metal at large", "Docker with --cpuset-cpus at large", "Docker with --cpus at large", "VM with a CPU set at large", "VM at large", "container in a VM with a CPU set at large"}
	if !slices.Equal(names(r), want) {
		t.Errorf("%q", names(r))
	}
	for i, c := range r.Choices {
		if c.Rank != i+1 || c.Predicted || (i == 0) != c.Tied || i > 0 && !(c.Against.Low > 1) {
			t.Errorf("%+v", c)
		}
	}
	if !strings.Contains(Why(r), "Bare metal at large: execution time 3.998 (3.97") || !strings.Contains(Why(r), "times faster than Docker with --cpuset-cpus at large") {
		t.Error(Why(r))
	}
	// A mean that is a little smaller, with a much wider interval, comes after.
	dir := newLab(8).add("bm", large, 3).add("cn/docker/pinned", large, 4.2).add("cn/docker/vanilla", large, 4.1).write(t)
	wild(t, dir, "cn/docker/vanilla/large")
	c := read(t, Options{}, dir).Rankings[0].Choices
	if c[1].Treatment.Provisioning != notebook.Pinned || c[1].Tied || c[2].Tied || !(c[2].Value < c[1].Value) {
		t.Errorf("%+v", c)
	}
}

// wild makes a treatment's values swing from round to round.
func wild(t *testing.T, dir, treatment string) {
	path := filepath.Join(dir, "trials.jsonl")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for line := range bytes.Lines(b) {
		var x notebook.Trial
		if err := json.Unmarshal(line, &x); err != nil {
			t.Fatal(err)
		}
		if x.Treatment == treatment {
			x.Value += []float64{-0.5, 0.5}[x.Round%2]
		}
		if err := json.NewEncoder(&out).Encode(x); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestPreferCost(t *testing.T) {
	l := newLab(8).add("bm", one, 8).add("bm", large, 5).add("cn/docker/pinned", one, 8.4).add("cn/docker/pinned", large, 5.2)
	dir := l.write(t)
	if got := names(read(t, Options{}, dir).Rankings[0]); got[0] != "bare metal at large" || got[3] != "Docker with --cpuset-cpus at 1/1GB" {
		t.Errorf("latency: %q", got)
	}
	r := read(t, Options{Prefer: Cost}, dir).Rankings[0]
	if got := names(r); got[0] != "bare metal at 1/1GB" || got[1] != "Docker with --cpuset-cpus at 1/1GB" || got[2] != "bare metal at large" {
		t.Errorf("cost: %q", got)
	}
	if c := r.Choices[2]; !(c.Value > 9.9 && c.Value < 10.1 && c.Against.Value > 1.24 && c.Against.Value < 1.26) || !strings.Contains(Why(r), "core-seconds") {
		t.Errorf("%+v %s", c, Why(r))
	}
}

func TestTies(t *testing.T) {
	// They differ only by noise: the simplest is first.
	l := newLab(8).add("vmcn/crun/kvm/vanilla", large, 4).add("cn/docker/pinned", large, 4).add("cn/docker/vanilla", large, 4.01).add("bm", large, 4.005).
		add("vm/qemu/kvm/vanilla", large, 4).add("cn/crun/pinned", large, 5)
	r := read(t, Options{}, l.write(t)).Rankings[0]
	want := []string{"bare metal at large", "Docker with --cpus at large", "Docker with --cpuset-cpus at large", "VM at large", "crun in a VM at large", "crun with a CPU set at large"}
	if !slices.Equal(names(r), want) {
		t.Errorf("%q", names(r))
	}
	for i, c := range r.Choices {
		if c.Tied != (i < 5) {
			t.Errorf("%s: tied %v", c.named(), c.Tied)
		}
	}
	if out := text(t, of(r)); !strings.Contains(out, "(=) are not distinguishable from number 3, whose upper end is the lowest") || !strings.Contains(out, "are corrected for all 15 pairs of choices") || !strings.Contains(out, "the first 5, estimated at no more than that upper end, stand in this order: measured before predicted") {
		t.Error(out)
	}
	// A difference that one comparison would show is a tie among many.
	few := newLab(8).add("bm", large, 4).add("cn/docker/pinned", large, 4.02)
	for _, many := range []int{0, 40} {
		l := *few
		l.rounds = 4
		l.study.Treatments = slices.Clone(few.study.Treatments)
		for i := range many {
			tr := notebook.Treatment{ID: "x" + string(rune('A'+i)), Workload: "ffmpeg", Platform: "cn", Engine: "docker", Provisioning: "vanilla", Instance: large}
			tr.Instance.Memory += int64(i)
			l.treatment(tr, 9)
		}
		dir := l.write(t)
		shift(t, dir)
		c := read(t, Options{}, dir).Rankings[0].Choices[1]
		if c.Treatment.Platform != "cn" || c.Tied != (many > 0) {
			t.Errorf("with %d more: %+v", many, c)
		}
	}
}

// What is badly known may be as good as the leader, and does not come before it for being simple; nor is a time less
// than nothing.
func TestWhatIsBadlyKnownIsNoGoodChoice(t *testing.T) {
	l := newLab(8).add("bm", one, 0.55).add("cn/docker/pinned", large, 0.4).add("cn/docker/vanilla", large, 0.401).add("cn/crun/pinned", large, 0.8)
	l.rounds = 4
	dir := l.write(t)
	wild(t, dir, "bm/1/1GB")
	a := read(t, Options{}, dir)
	c := a.Rankings[0].Choices
	if got := names(a.Rankings[0]); got[0] != "Docker with --cpus at large" || got[3] != "bare metal at 1/1GB" || !c[3].Tied || c[3].Near || !c[1].Near || c[2].Tied {
		t.Errorf("%q %+v", got, c)
	}
	if out := text(t, a); c[3].Low != 0 || !strings.Contains(out, "0.6 (0.0 to 1.") || strings.Contains(out, "-") && strings.Contains(out, "(-") {
		t.Errorf("%g\n%s", c[3].Low, out)
	}
}

// shift makes the container of TestTies cost 1 ± 0.4 % more than bare metal in each round.
func shift(t *testing.T, dir string) {
	path := filepath.Join(dir, "trials.jsonl")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for line := range bytes.Lines(b) {
		var x notebook.Trial
		if err := json.Unmarshal(line, &x); err != nil {
			t.Fatal(err)
		}
		switch x.Treatment {
		case "bm/large":
			x.Value = 4
		case "cn/docker/pinned/large":
			x.Value = 4 * []float64{1.006, 1.012, 1.008, 1.014}[x.Round]
		}
		if err := json.NewEncoder(&out).Encode(x); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// of is advice of the one ranking.
func of(r Ranking) *Advice { return &Advice{Rankings: []Ranking{r}} }

func TestNotRanked(t *testing.T) {
	reason := func(r Ranking, name string) string {
		for _, p := range r.Apart {
			if p.named() == name {
				return Said(p.Reason)
			}
		}
		t.Errorf("%s is not apart: %+v", name, r.Apart)
		return ""
	}
	r := read(t, Options{}, usual().write(t)).Rankings[0]
	if got := reason(r, "LXC with a CPU set at large"); !strings.Contains(got, "left out: no lxc-start") {
		t.Error(got)
	}
	if got := reason(r, "VM with a CPU set at large, emulated"); !strings.Contains(got, "software emulation") {
		t.Error(got)
	}
	// Bare metal differed from itself by ten percent, and the container from it by no more.
	l := newLab(8).add("bm", large, 4).add("aa", large, 4.4).add("cn/docker/pinned", large, 4.2).add("cn/docker/vanilla", large, 8)
	l.add("cn/crun/pinned", large, 4)
	l.add("vm/qemu/kvm/pinned", large, 9).add("vm/qemu/kvm/vanilla", large, 3)
	l.fail = func(id string, round, trial int) string {
		// A tenth of the vanilla container's trials fail, a little more of the VM with a CPU set's, and a round of the vanilla one's.
		some := id == "cn/docker/vanilla/large" && round < 3 && trial == 0 || id == "vm/qemu/kvm/pinned/large" && round < 4 && trial == 1
		if id == "cn/crun/pinned/large" || some || id == "vm/qemu/kvm/vanilla/large" && round == 5 {
			return "killed"
		}
		return ""
	}
	l.add("cn/docker/vanilla", one, 9)
	l.last().HostCores = 4
	r = read(t, Options{}, l.write(t)).Rankings[0]
	if got := names(r); !slices.Equal(got, []string{"bare metal at large", "Docker with --cpus at large"}) {
		t.Errorf("%q", got)
	}
	for name, want := range map[string]string{
		"Docker with --cpuset-cpus at large": "do not trust it",
		"crun with a CPU set at large":       "every trial failed: killed",
		"VM with a CPU set at large":         "4 of 30 trials failed: killed",
		"VM at large":                        "3 of 30 trials failed: killed",
		"Docker with --cpus at 1/1GB":        "with 4 of the host's 8 CPUs online",
	} {
		if got := reason(r, name); !strings.Contains(got, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	if n := said(r.Choices[1].Doubts); len(n) != 1 || n[0] != "3 of its 30 trials failed" {
		t.Errorf("%q", n)
	}
	// One round has no interval.
	l = newLab(8).add("bm", large, 4).add("cn/docker/pinned", large, 4.2)
	l.rounds = 1
	a := read(t, Options{}, l.write(t))
	if r := a.Rankings[0]; len(r.Choices) != 0 || !strings.Contains(reason(r, "bare metal at large"), "no interval: one round only") || Why(r) != "Nothing can be ranked: no interval: one round only; at least two are needed." {
		t.Errorf("%+v", r)
	}
	text(t, a)
	if err := Apply(&bytes.Buffer{}, a, "docker", 0); err == nil || !strings.Contains(err.Error(), "nothing to apply") {
		t.Error(err)
	}
}

func TestFurtherFigure(t *testing.T) {
	l := newLab(8).add("bm", large, 4).add("cn/docker/pinned", large, 5)
	l.study.Also = map[string][]notebook.Metric{"ffmpeg": {{Name: "p99", Unit: "s"}, {Name: "requests_per_second", Unit: "1/s"}, {Name: "errors", Unit: "1"}}}
	dir := l.write(t)
	r := read(t, Options{Metric: "p99"}, dir).Rankings[0]
	if c := r.Choices; len(c) != 2 || c[0].Treatment.Platform != "cn" || !(c[0].Value > 1.98 && c[0].Value < 2.02) || !(c[0].Ratio > 0.79 && c[0].Ratio < 0.81) || c[1].Ratio != 1 || c[1].Tied {
		t.Errorf("%+v", c)
	}
	for metric, want := range map[string]string{
		"requests_per_second": "a rate (1/s) whose workload does not say that higher is better (better: higher): must be one of execution time, p99",
		"errors":              `--metric "errors" is a count, which cannot rank configurations: must be one of execution time, p99`,
		"p42":                 `--metric "p42" was not measured: must be one of execution time, p99`,
	} {
		if _, err := readAll([]string{dir}, Options{Metric: metric}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", metric, err)
		}
	}
	if r := read(t, Options{Metric: "execution time"}, dir).Rankings[0]; r.Choices[0].Treatment.Platform != "bm" {
		t.Errorf("%q", names(r))
	}
}

func TestChoosing(t *testing.T) {
	l := usual().add("cn/docker/pinned", one, 8)
	l.study.Metrics["mpi"] = notebook.Metric{Name: "execution time", Unit: "s"}
	for _, p := range []string{"bm", "cn"} {
		for _, n := range []string{"1", "2"} {
			tr := notebook.Treatment{ID: "mpi-" + p + n, Workload: "mpi", Params: map[string]string{"n": n}, Platform: p, Instance: large}
			if p == "cn" {
				tr.Engine, tr.Provisioning = "docker", "pinned"
			}
			l.treatment(tr, 4)
		}
	}
	dir := l.write(t)
	a := read(t, Options{}, dir)
	if len(a.Rankings) != 3 || a.Rankings[1].Workload != "mpi{n=1}" {
		t.Fatalf("%+v", a.Rankings)
	}
	if out := text(t, a); !strings.Contains(out, "mpi{n=2} on bench") || !strings.Contains(out, "--workload chooses one") {
		t.Error(out)
	}
	err := Apply(&bytes.Buffer{}, a, "docker", 0)
	if err == nil || !strings.Contains(err.Error(), "choose with --workload one of ffmpeg, mpi{n=1}, mpi{n=2}") {
		t.Error(err)
	}
	if a := read(t, Options{Workload: "mpi"}, dir); len(a.Rankings) != 2 {
		t.Errorf("%+v", a)
	}
	if a := read(t, Options{Workload: "mpi{n=2}"}, dir); len(a.Rankings) != 1 || a.Rankings[0].Workload != "mpi{n=2}" {
		t.Errorf("%+v", a)
	}
	if r := read(t, Options{Workload: "ffmpeg", Instance: "1/1GB"}, dir).Rankings[0]; len(r.Choices) != 1 || !strings.Contains(Why(r), "nothing else can be ranked") {
		t.Errorf("%+v", r)
	}
	if r := read(t, Options{Workload: "ffmpeg", Instance: "2/8GB", Exclude: []string{"host", "pinned", "vm-container"}}, dir).Rankings[0]; !slices.Equal(names(r), []string{"Docker with --cpus at large", "VM at large"}) {
		t.Errorf("%q", names(r))
	}
	for want, o := range map[string]Options{
		`--workload "ffmpg" was not measured: must be one of ffmpeg, mpi{n=1}, mpi{n=2}`: {Workload: "ffmpg"},
		`--exclude "bare": must be one of bm, cn, docker`:                                {Exclude: []string{"bare"}},
		`name a size that was measured (1/1GB, large), or cores/memory`:                  {Instance: "huge"},
		`0.01 to 65536 CPUs`:    {Instance: "0/1GB"},
		`--prefer "everything"`: {Prefer: "everything"},
	} {
		if _, err := readAll([]string{dir}, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	// Hosts have rankings of their own.
	other := usual()
	other.host.ID, other.host.Hostname, other.start = "ccccccccdddd", "other", at.Add(time.Hour)
	a = read(t, Options{Workload: "ffmpeg"}, dir, other.write(t))
	if len(a.Rankings) != 2 || a.Rankings[1].Host != "other" {
		t.Errorf("%+v", a.Rankings)
	}
	if err := Apply(&bytes.Buffer{}, a, "docker", 0); err == nil || !strings.Contains(err.Error(), "name one host's folders") {
		t.Error(err)
	}
}

func TestWhatAFormatCannotExpress(t *testing.T) {
	a := read(t, Options{}, usual().write(t))
	for _, c := range []struct {
		format string
		pick   int
		want   string
	}{
		{"docker", 1, "docker cannot express number 1 of the ranking, bare metal at large; systemd fits"},
		{"compose", 4, "compose cannot express number 4 of the ranking, VM with a CPU set at large; libvirt fits"},
		{"libvirt", 2, "docker, compose, kubernetes and systemd fit"},
		{"docker", 7, "--pick 7: the ranking of ffmpeg has 1 to 6"},
		{"toml", 1, "must be one of docker, compose, kubernetes, libvirt, systemd"},
	} {
		if err := Apply(&bytes.Buffer{}, a, c.format, c.pick); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %d: %v", c.format, c.pick, err)
		}
	}
	// Without a number it is the best that the format has words for, and says so.
	if out := apply(t, a, "docker", 0); !strings.Contains(out, "# Docker with --cpuset-cpus at large, number 2 of 6") || !strings.Contains(out, "# Number 1, bare metal at large, cannot be expressed in docker; systemd fits.") {
		t.Error(out)
	}
	bare := read(t, Options{Exclude: []string{"cn", "vm", "vmcn"}}, usual().write(t))
	if err := Apply(&bytes.Buffer{}, bare, "docker", 0); err == nil || !strings.Contains(err.Error(), "docker cannot express number 1 of the ranking, bare metal at large; systemd fits") {
		t.Error(err)
	}
}

func TestNetworks(t *testing.T) {
	l := newLab(8).add("bm", large, 4)
	for i, n := range []string{notebook.NetHost, notebook.NetBridge, notebook.NetNone, "--privileged"} {
		tr := notebook.Treatment{ID: n, Workload: "ffmpeg", Platform: "cn", Engine: "docker", Provisioning: "vanilla", Instance: large, Network: n}
		l.treatment(tr, 4.5+float64(i)/2)
	}
	a := read(t, Options{}, l.write(t))
	for pick, want := range map[int][3]string{2: {"--network=host ", "network_mode: host", "hostNetwork: true"}, 3: {"--network=bridge ", "network_mode: bridge", ""}, 4: {"--network=none ", "network_mode: none", "refused"}} {
		if got := apply(t, a, "docker", pick); !strings.Contains(got, want[0]) {
			t.Error(got)
		}
		if got := apply(t, a, "compose", pick); !strings.Contains(got, want[1]) {
			t.Error(got)
		}
		var b bytes.Buffer
		err := Apply(&b, a, "kubernetes", pick)
		switch {
		case want[2] == "refused":
			if err == nil || !strings.Contains(err.Error(), "docker, compose and systemd fit") {
				t.Error(err)
			}
		case err != nil || !strings.Contains(b.String(), want[2]) || want[2] == "" && strings.Contains(b.String(), "hostNetwork"):
			t.Error(err, b.String())
		}
	}
	if err := Apply(&bytes.Buffer{}, a, "docker", 5); err == nil || !strings.Contains(err.Error(), "no format fits") {
		t.Error(err)
	}
}

// A service has a port, which each format says where the network needs it said.
func TestPorts(t *testing.T) {
	l := newLab(8).add("bm", large, 4).add("vm/qemu/kvm/pinned", large, 8).add("vmcn/docker/kvm/pinned", large, 9)
	for i, n := range []string{notebook.NetHost, notebook.NetBridge, notebook.NetNone, ""} {
		tr := notebook.Treatment{ID: "n" + n, Workload: "ffmpeg", Platform: "cn", Engine: "docker", Provisioning: "vanilla", Instance: large, Network: n}
		l.treatment(tr, 4.5+float64(i)/2)
	}
	none := l.write(t)
	l.study.Ports, l.start = map[string]int{"ffmpeg": 8080, "other": 99}, at.Add(time.Hour)
	a := read(t, Options{}, l.write(t))
	said := func(format string, pick int) string {
		var lines []string
		for line := range strings.Lines(apply(t, a, format, pick)) {
			if strings.Contains(line, "8080") {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "")
	}
	const comment = "The service was measured at port 8080"
	for _, c := range []struct {
		format string
		pick   int
		want   []string
	}{
		{"systemd", 1, []string{"# " + comment}},
		{"docker", 2, []string{"# " + comment}},
		{"compose", 2, []string{"# " + comment}},
		{"kubernetes", 2, []string{"# " + comment, "- containerPort: 8080"}},
		{"docker", 3, []string{" -p 8080:8080 "}},
		{"compose", 3, []string{"- 8080:8080"}},
		{"kubernetes", 3, []string{"- containerPort: 8080"}},
		{"docker", 4, nil},
		{"compose", 4, nil},
		{"docker", 5, []string{" -p 8080:8080 "}},
		{"libvirt", 6, []string{comment}},
		{"libvirt", 7, []string{comment, " -p 8080:8080 "}},
	} {
		got := said(c.format, c.pick)
		if strings.Count(got, "\n") != len(c.want) {
			t.Errorf("%s of number %d: %q, want %q", c.format, c.pick, got, c.want)
		}
		for _, w := range c.want {
			if !strings.Contains(got, w) {
				t.Errorf("%s of number %d: %q, want %q", c.format, c.pick, got, c.want)
			}
		}
	}
	if got := apply(t, read(t, Options{}, none), "docker", 3); strings.Contains(got, "-p ") {
		t.Error(got)
	}
}

// That nothing can be ranked comes with the reason.
func TestWhyNothingIsRanked(t *testing.T) {
	dir := usual().write(t)
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Exclude: []string{"bm", "cn", "vm", "vmcn"}}, "--exclude bm,cn,vm,vmcn excludes everything that was measured."},
		{Options{Exclude: []string{"bm", "cn", "vm", "vmcn"}, Instance: "large"}, "--exclude bm,cn,vm,vmcn excludes everything that was measured at large."},
		{Options{Instance: "3/5GB"}, "3/5GB was not measured, only large, and the model predicts nothing for it."},
	} {
		r := read(t, c.o, dir).Rankings[0]
		if want := "Nothing can be ranked: " + c.want; len(r.Choices) > 0 || Why(r) != want {
			t.Errorf("%+v: %d choices: %s, want %s", c.o, len(r.Choices), Why(r), want)
		}
	}
}

// Advice states what several rankings have in common once.
func TestReasonsInCommon(t *testing.T) {
	l := newLab(8)
	l.study.Metrics["mpi"] = notebook.Metric{Name: "execution time", Unit: "s"}
	const why = "no VM with kvm: a guest was started and did not say hello"
	for _, w := range []string{"ffmpeg", "mpi"} {
		l.treatment(notebook.Treatment{ID: w, Workload: w, Platform: "bm", Instance: large}, 4)
		for _, p := range []string{"vanilla", "pinned"} {
			tr := notebook.Treatment{ID: w + p, Workload: w, Platform: "vm", Engine: "qemu", Accelerator: "kvm", Provisioning: p, Instance: large}
			l.study.LeftOut = append(l.study.LeftOut, notebook.LeftOut{Treatment: tr, Reason: notebook.TextMessage(why)})
		}
	}
	l.study.LeftOut = append(l.study.LeftOut, notebook.LeftOut{Treatment: notebook.Treatment{ID: "x", Workload: "mpi", Platform: "bm", Instance: one}, Reason: notebook.TextMessage("another")})
	out := text(t, read(t, Options{}, l.write(t)))
	if strings.Count(out, why) != 1 || strings.Count(out, "- VM at large, VM with a CPU set at large: see [1]\n") != 2 ||
		!strings.Contains(out, "\n[1] left out: "+why+"\n") || !strings.Contains(out, "- bare metal at 1/1GB: left out: another\n") {
		t.Error(out)
	}
}
