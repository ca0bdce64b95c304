package page

import (
	"fmt"
	"math"
	"time"

	"tare/desk/data"
	"tare/desk/show/kinds"
	"tare/notebook"
)

var nan = math.NaN()

func treatment(platform, engine, accel, prov, inst string) notebook.Treatment {
	cores := 2.0
	if inst == "xlarge" {
		cores = 4
	}
	t := notebook.Treatment{
		Workload: "ffmpeg", Params: map[string]string{"segments": "1"},
		Platform: platform, Engine: engine, Accelerator: accel, Provisioning: prov,
		Instance: notebook.Instance{Name: inst, Cores: cores, Memory: 8 << 30},
	}
	t.ID = fmt.Sprintf("ffmpeg/%s/%s/%s/%s", platform, engine, prov, inst)
	return t
}

// sampleRow is a row whose trials lie evenly around their mean.
func sampleRow(t notebook.Treatment, mean, half, ratio, ratioHalf float64, dots int) *data.Row {
	r := &data.Row{
		Treatment: t, Host: "bench-1", HostID: "h1", Metric: notebook.Metric{Name: "execution time", Unit: "s"},
		Guests: 5, Rounds: 5, Trials: 15,
		Mean: mean, MeanLow: mean - half, MeanHigh: mean + half,
		Ratio: ratio, RatioLow: ratio - ratioHalf, RatioHigh: ratio + ratioHalf, RatioRounds: 5,
		Baseline:       "ffmpeg/bm///" + t.Instance.Name,
		Representative: t.Representative(), DotsOf: dots,
		Kernels: []string{"6.18.5"},
	}
	if t.Accelerator != "" {
		r.Kernels = []string{"6.12.48+deb13-cloud-amd64, from the package linux-image-cloud-amd64"}
		r.Machines = []notebook.Machine{notebook.UsualMachine}
	}
	for i := range dots {
		r.Dots = append(r.Dots, data.Dot{Round: i / 3, Trial: i % 3, Value: mean + 2.2*half*math.Sin(float64(i)*1.7)})
	}
	return r
}

// sample is a summary such as a study on a small host gives.
func sample(instances ...string) *data.Summary {
	s := &data.Summary{
		Doubts: []data.Doubt{data.Looks{Rounds: 10, Level: 0.99}},
		Hosts: []data.Host{{Name: "bench-1", Host: notebook.Host{
			ID: "h1", Hostname: "bench-1", Kernel: "6.18.5", OS: "Debian GNU/Linux 12 (bookworm)", Arch: "amd64",
			CPUModel: "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz",
			CPUs:     []notebook.CPU{{ID: 0, Core: 0}, {ID: 1, Core: 1}},
			Memory:   24 << 30, CgroupVersion: "v1", Virtualization: "kvm",
			Capabilities: []notebook.Capability{
				{Name: "kvm", Answer: notebook.NotSupported, Why: "a small guest was started and did not say hello within 5 s", Do: "run on a host with nested virtualization, or with --accel tcg"},
				{Name: "docker", Answer: notebook.Supported, Why: "Engine 20.10.24 answers at /var/run/docker.sock"},
				{Name: "perf-hardware", Answer: notebook.Inconclusive, Why: "the counter counted nothing"},
			},
		}}},
		Ruler: []data.RulerCost{
			{Platform: "bm", Guests: 10, Median: 433e-6, Low: 410e-6, High: 502e-6, RoundTrip: 61e-6},
			{Platform: "cn", Engine: "docker", Guests: 10, Median: 441e-6, Low: 420e-6, High: 560e-6, RoundTrip: 64e-6},
			{Platform: "vm", Engine: "qemu", Accelerator: "tcg", Guests: 10, Median: 9.1e-3, Low: 8.8e-3, High: 12.3e-3, RoundTrip: 1.4e-3},
		},
		Warnings: []data.Warning{{Text: data.Text{First: notebook.TextMessage("the guest's clock and the host's disagree by 1.4 %")}, Count: 3, Treatments: []string{"ffmpeg/vm/qemu/vanilla/large"}}},
	}
	study := notebook.Study{
		Version: 1, Tare: "0.1.0", Name: "quick", Title: "FFmpeg on every platform, quickly",
		Source: "name: quick\ntitle: FFmpeg on every platform, quickly\nworkloads:\n  - ffmpeg\ninstances: [large]\n",
		Hash:   "sha256:4e1f", Seed: 42, Created: time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC),
		Design: notebook.Design{Floor: 5, Cap: 10, Precision: 0.02, Trials: 3, Warmups: 1, TimeoutS: 120},
		Images: map[string]notebook.Image{"ffmpeg": {Reference: "debian:trixie ffmpeg", Digest: "sha256:0f3a7c1d2b", Input: "sha256:99ab"}},
	}
	s.Folders = []data.Folder{{Dir: "R", Study: study, Host: "h1", Rounds: 5, Trials: 200, Failed: 2, Ends: []data.End{{Recorded: true, Reason: notebook.Say("precise-enough")}}}}
	for i, inst := range instances {
		k := 1 / float64(i+1)
		add := func(p, e, a, prov string, ratio, half float64) *data.Row {
			s.Rows = append(s.Rows, sampleRow(treatment(p, e, a, prov, inst), 3.9*k*ratio, 3.9*k*half, ratio, half, 15))
			return s.Rows[len(s.Rows)-1]
		}
		b := add("bm", "", "", "", 1, 0.012)
		b.RatioLow, b.RatioHigh = 1, 1
		aa := add("bm", "", "", "", 1.003, 0.011)
		aa.Treatment.AA, aa.Treatment.ID = true, aa.Treatment.ID+"/aa"
		add("cn", "docker", "", "vanilla", 1.31, 0.04)
		add("cn", "docker", "", "pinned", 1.02, 0.02)
		add("cn", "crun", "", "vanilla", 1.29, 0.05)
		add("cn", "crun", "", "pinned", 1.01, 0.018)
		v := add("vm", "qemu", "tcg", "vanilla", 14.2, 0.4)
		v.Failed = 2
		v.Doubts = []data.Doubt{data.Emulated{}, failedBy(2, 15, "killed after 120 s")}
		add("vm", "qemu", "tcg", "pinned", 14.0, 0.3).Doubts = []data.Doubt{data.Emulated{}}
		add("vmcn", "crun", "tcg", "vanilla", 15.1, 0.9).Doubts = []data.Doubt{data.Emulated{}}
		add("vmcn", "crun", "tcg", "pinned", 14.9, 0.6).Doubts = []data.Doubt{data.Emulated{}}
		s.AA = append(s.AA, data.AACheck{Workload: "ffmpeg", Params: aa.Treatment.Params, Instance: aa.Treatment.Instance, Ratio: 1.003, Low: 0.992, High: 1.014, Verdict: data.Holds})
	}
	s.LeftOut = []data.LeftOut{{Host: "bench-1", Treatment: treatment("bm", "", "", "", "8xlarge"), Reason: notebook.TextMessage("needs 32 cores, this host has 2")}}
	return s
}

// cluster is a summary of two hosts with working VMs, two workloads and many instance types.
func cluster() *data.Summary {
	s := sample("large", "xlarge", "2xlarge", "4xlarge")
	s.Hosts[0].Virtualization = ""
	other := s.Hosts[0]
	other.ID, other.Name = "h2", "bench-2"
	s.Hosts = append(s.Hosts, other)
	second := s.Folders[0]
	second.Dir, second.Host, second.Study.Created = "S", "h2", second.Study.Created.Add(26*time.Hour)
	s.Folders = append(s.Folders, second)
	for _, r := range s.Rows {
		if r.Treatment.Accelerator == notebook.TCG {
			r.Treatment.Accelerator, r.Representative, r.Doubts, r.Failed = notebook.KVM, true, nil, 0
			for _, v := range []*float64{&r.Mean, &r.MeanLow, &r.MeanHigh, &r.Ratio, &r.RatioLow, &r.RatioHigh} {
				*v /= 6
			}
			for j := range r.Dots {
				r.Dots[j].Value /= 6
			}
		}
	}
	for _, known := range s.Rows[:10] {
		r := *known
		r.Host, r.HostID = "bench-2", "h2"
		s.Rows = append(s.Rows, &r)
	}
	for _, known := range s.Rows[:10] {
		r := *known
		r.Treatment.Params = map[string]string{"segments": "30"}
		r.DotsOf = 5000
		for i := range 100 {
			r.Dots = append(r.Dots, data.Dot{Value: r.Mean * (1 + 0.03*math.Sin(float64(i*i)))})
		}
		s.Rows = append(s.Rows, &r)
	}
	return s
}

// troubled is a summary of a study in which much went wrong.
func troubled() *data.Summary {
	s := sample("large")
	s.Folders[0].Ends = []data.End{{Recorded: true, Reason: notebook.Say("interrupted")}, {Recorded: true, Open: true}}
	s.AA[0].Verdict, s.AA[0].Ratio, s.AA[0].Low, s.AA[0].High = data.Misses, 1.08, 1.03, 1.13
	s.AA[0].Untrusted = []string{"ffmpeg/cn/docker/pinned/large", "ffmpeg/cn/crun/pinned/large"}
	s.Rows[3].Doubtful, s.Rows[5].Doubtful = true, true
	r := s.Rows[4]
	r.Failed, r.Dots, r.DotsOf = r.Trials, nil, 0
	r.Mean, r.MeanLow, r.MeanHigh, r.Ratio, r.RatioLow, r.RatioHigh = nan, nan, nan, nan, nan, nan
	r.Doubts = []data.Doubt{failedBy(15, 15, "exit status 1: Cannot allocate memory")}
	r = s.Rows[2]
	r.RatioLow, r.RatioHigh = math.Inf(-1), math.Inf(1)
	r.MeanLow, r.MeanHigh = nan, nan
	r.Doubts = []data.Doubt{data.OneRound{}}
	s.Rows[5].RatioHigh = 9
	return s
}

// hostile is a summary in which everything that a guest or a user can name is an attack.
func hostile() *data.Summary {
	const evil = "</script></style></title></svg><img src=x onerror=alert(1)>\" onclick=\"alert(2)\" href=\"javascript:alert(3)'`{{.}}\u202e\x00\x1b[31m&lt;"
	s := sample("large")
	s.Doubts = append(s.Doubts, data.Torn{Dir: evil})
	s.Hosts[0].Name, s.Hosts[0].CPUModel = evil, evil
	s.Hosts[0].Capabilities[0].Why = evil
	f := &s.Folders[0]
	f.Dir = "R" + "<b>"
	f.Ends = []data.End{{Recorded: true, Reason: notebook.TextMessage(evil)}}
	f.Study.Title, f.Study.Source, f.Study.Hash = evil, "name: "+evil, evil
	f.Study.Images = map[string]notebook.Image{evil: {Reference: evil, Digest: evil}}
	s.Warnings[0].Text.First = notebook.TextMessage(evil)
	s.LeftOut[0].Reason = notebook.TextMessage(evil)
	s.AA[0].Workload = evil
	f.Study.Figures = []notebook.Figure{{Name: evil, Title: evil, Workload: evil, By: evil}}
	s.LeftOut[0].Treatment.Workload, s.LeftOut[0].Treatment.Params = evil, map[string]string{evil: evil}
	for i := range s.Rows {
		t := &s.Rows[i].Treatment
		if t.Platform == notebook.CN {
			t.Network = []string{evil, "host"}[i%2]
		}
		f.Study.Treatments = append(f.Study.Treatments, notebook.Treatment{ID: t.ID})
		s.Rows[i].Secondary = []data.Secondary{{Metric: notebook.Metric{Name: evil, Unit: evil}, Mean: float64(i), Low: nan, High: nan}}
		t.Workload, t.Params = evil, map[string]string{evil: evil}
		t.Instance.Name = evil
		if t.Engine != "" {
			t.Engine = evil
		}
		s.Rows[i].Metric = notebook.Metric{Name: evil, Unit: evil}
		s.Rows[i].Doubts = append(s.Rows[i].Doubts, data.GuestSaid{Text: data.Text{First: notebook.TextMessage(evil)}})
		s.Rows[i].Kernels = []string{evil}
	}
	return s
}

// failedBy is the doubt about failed trials of one cause.
func failedBy(n, of int, cause string) data.Doubt {
	return data.TrialsFailed{Failed: n, Trials: of, Cause: data.Cause{Text: data.Text{First: notebook.TextMessage(cause)}, Times: n, Alone: true}}
}

// readAndWrite writes the report of a folder.
func readAndWrite(dir, out string) ([]string, error) {
	s, err := data.Read([]string{dir}, data.Options{Kinds: kinds.All})
	if err != nil {
		return nil, err
	}
	return WriteSummary(s, out, Options{})
}
