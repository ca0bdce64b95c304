package page

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// The four applications of the paper, as the studies `pinning` and `pinning-small` run them, with made-up times.
type application struct {
	name    string
	params  []map[string]string
	metric  string
	base    float64 // core-seconds of the work, or response time on one core
	kappa   float64 // of a vanilla container
	vm      float64 // platform-type overhead of a VM
	also    []notebook.Metric
	network []string
}

var further5 = []notebook.Metric{{Name: "p50", Unit: "s"}, {Name: "p95", Unit: "s"}, {Name: "p99", Unit: "s"}, {Name: "requests_per_second", Unit: "1/s"}, {Name: "errors", Unit: "1"}, {Name: "requests", Unit: "1"}}

var applications = []application{
	{"ffmpeg", []map[string]string{{"segments": "1"}, {"segments": "30"}}, "execution time", 240, 0.006, 1.1, nil, []string{""}},
	{"mpi-search", []map[string]string{nil}, "execution time", 90, 0.012, 0.05, nil, []string{""}},
	{"wordpress", []map[string]string{{"users": "1000"}}, "response time", 6, 0.018, 0.4, further5, []string{notebook.NetBridge}},
	{"cassandra", []map[string]string{{"threads": "100"}}, "response time", 0.9, 0.045, 0.5, further5, []string{notebook.NetBridge}},
}

var pinningFigures = []notebook.Figure{
	{Name: "Figure 3", Title: "video transcoding, vanilla and pinned", Workload: "ffmpeg", Params: map[string]string{"segments": "1"}, By: "instance"},
	{Name: "Figure 4", Title: "parallel search with MPI", Workload: "mpi-search", By: "instance"},
	{Name: "Figure 5", Title: "1,000 web users", Workload: "wordpress", By: "instance"},
	{Name: "Figure 6", Title: "Cassandra under stress", Workload: "cassandra", By: "instance"},
	{Name: "Figure 8", Title: "one large video against 30 small", Workload: "ffmpeg", By: "segments"},
}

// pinning is a study of the paper on a host of so many CPUs.
type pinning struct {
	host      int
	hostID    string
	instances []notebook.Instance
	apps      []application
	figures   []notebook.Figure
	hostCores []int // 0: all
	kvm       bool
	rounds    int
	leftOut   []notebook.LeftOut
	cpuCost   float64 // the share by which the host is slower
}

func instance(name string, cores float64, gb int64) notebook.Instance {
	return notebook.Instance{Name: name, Cores: cores, Memory: gb << 30}
}

var paperInstances = []notebook.Instance{
	instance("large", 2, 8), instance("xlarge", 4, 16), instance("2xlarge", 8, 32), instance("4xlarge", 16, 64), instance("8xlarge", 32, 128), instance("16xlarge", 64, 256),
}

// small is the study `pinning-small` on two CPUs: VMs are emulated.
func small() *pinning {
	p := &pinning{host: 2, hostID: "small-host", instances: []notebook.Instance{instance("1/2GB", 1, 2), instance("2/4GB", 2, 4)}, apps: applications, rounds: 4,
		figures: append([]notebook.Figure{{Name: "Figure 7", Title: "one container on hosts of other sizes", Workload: "ffmpeg", Params: map[string]string{"segments": "1", "host": "other"}, By: "host_cores"}}, pinningFigures...)}
	for _, i := range paperInstances[1:] {
		p.leftOut = append(p.leftOut, notebook.LeftOut{Treatment: notebook.Treatment{Workload: "ffmpeg", Params: map[string]string{"segments": "1"}, Platform: "bm", Instance: i}, Reason: notebook.TextMessage(fmt.Sprintf("needs %.0f cores, this host has 2", i.Cores))},
			notebook.LeftOut{Treatment: notebook.Treatment{Workload: "ffmpeg", Params: map[string]string{"segments": "1"}, Platform: "cn", Engine: "docker", Provisioning: "pinned", Instance: i}, Reason: notebook.TextMessage(fmt.Sprintf("needs %.0f cores, this host has 2", i.Cores))})
	}
	p.leftOut = append(p.leftOut, notebook.LeftOut{Treatment: notebook.Treatment{Workload: "wordpress", Params: map[string]string{"users": "1000"}, Platform: "vm", Engine: "qemu", Accelerator: "tcg", Provisioning: "pinned", Network: "bridge", Instance: p.instances[1]}, Reason: notebook.TextMessage("its service was not ready after 50 min")})
	return p
}

// paperHost is the study `pinning` on the paper's host.
func paperHost() *pinning {
	return &pinning{host: 112, hostID: "paper-host", instances: paperInstances, apps: applications, figures: pinningFigures, kvm: true, rounds: 6}
}

// chr is Figure 7: one container size on a host with this many CPUs, and this many of them online.
func chr(host int, hostCores ...int) *pinning {
	apps := []application{applications[0]}
	apps[0].params = apps[0].params[:1]
	return &pinning{host: host, hostID: fmt.Sprintf("host-of-%d", host), instances: paperInstances[3:4], apps: apps, kvm: true, rounds: 5, hostCores: hostCores,
		figures: []notebook.Figure{{Name: "Figure 7", Title: "one container on hosts of other sizes", Workload: "ffmpeg", By: "host_cores"}}}
}

// networks is the study of the network that the paper announces.
func networks() *pinning {
	app := applications[2]
	app.network = []string{notebook.NetBridge, notebook.NetHost}
	return &pinning{host: 8, hostID: "net-host", instances: paperInstances[:2], apps: []application{app}, kvm: true, rounds: 5,
		figures: []notebook.Figure{{Name: "The network’s share", Title: "the same site behind a bridge and on the host’s network", Workload: "wordpress", By: "network"}}}
}

func (p *pinning) write(t testing.TB) string {
	t.Helper()
	at := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	study := notebook.Study{
		Version: notebook.Version, Tare: "0.2.0", Name: "pinning", Title: "The Art of CPU-Pinning", Source: "name: pinning\n", Hash: "sha256:77", Seed: 7, Created: at,
		Design: notebook.Design{Floor: p.rounds, Cap: 20, Precision: 0.05, Trials: 1, Warmups: 1, TimeoutS: 1800}, Figures: p.figures, LeftOut: p.leftOut,
		Metrics: map[string]notebook.Metric{}, Also: map[string][]notebook.Metric{}, Images: map[string]notebook.Image{},
	}
	accel := notebook.KVM
	if !p.kvm {
		accel = notebook.TCG
	}
	if p.hostCores == nil {
		p.hostCores = []int{0}
	}
	type made struct {
		t    notebook.Treatment
		app  application
		mean float64
	}
	var all []made
	for _, a := range p.apps {
		study.Metrics[a.name] = notebook.Metric{Name: a.metric, Unit: "s"}
		if a.also != nil {
			study.Also[a.name] = a.also
		}
		for _, params := range a.params {
			label := notebook.Label(a.name, params)
			study.Images[label] = notebook.Image{Reference: "debian:trixie", Digest: "sha256:0f3a7c1d2b" + label}
			for _, n := range p.hostCores {
				h := float64(n)
				if n == 0 {
					h = float64(p.host)
				}
				for _, inst := range p.instances {
					if inst.Cores > h {
						continue
					}
					add := func(platform, engine, accel, prov, network string, ratio float64) {
						tr := notebook.Treatment{Workload: a.name, Params: params, Platform: platform, Engine: engine, Accelerator: accel, Provisioning: prov, Network: network, Instance: inst, HostCores: n}
						tr.ID = fmt.Sprintf("%s/%s/%s/%s/%s/%s/%d", label, platform, engine, prov, network, inst.Name, n)
						k := 1.0
						if params["segments"] == "30" && prov == "vanilla" {
							k = 1.3
						}
						mean := a.base / inst.Cores * ratio * k * (1 + p.cpuCost)
						all = append(all, made{tr, a, mean})
						study.Treatments = append(study.Treatments, tr)
					}
					grow := (h - inst.Cores) / inst.Cores
					add("bm", "", "", "", "", 1)
					aa := all[len(all)-1]
					aa.t.AA, aa.t.ID = true, aa.t.ID+"/aa"
					all = append(all, aa)
					study.Treatments = append(study.Treatments, aa.t)
					emulation := 1.0
					if !p.kvm {
						emulation = 14
					}
					for _, network := range a.network {
						slower := 1.0
						if network == notebook.NetBridge {
							slower = 1.04
						}
						for _, prov := range []string{"vanilla", "pinned"} {
							k := a.kappa
							if prov == "pinned" {
								k = a.kappa / 20
							}
							add("cn", "docker", "", prov, network, (1.02+k*grow)*slower)
							if !p.kvm && prov == "pinned" {
								continue
							}
							if network != notebook.NetHost {
								add("vm", "qemu", accel, prov, network, (1+a.vm)*emulation)
							}
							add("vmcn", "docker", accel, prov, network, (1.08+a.vm+0.4*k*grow)*emulation)
						}
					}
				}
			}
		}
	}
	host := notebook.Host{ID: p.hostID, Hostname: p.hostID, Kernel: "6.18.5", OS: "Debian GNU/Linux 13 (trixie)", Arch: "amd64", CPUModel: "Intel(R) Xeon(R) Platinum 8280 CPU @ 2.70GHz", Memory: 512 << 30, CgroupVersion: "v2"}
	for i := range p.host {
		host.CPUs = append(host.CPUs, notebook.CPU{ID: i, Core: i})
	}
	records := []any{notebook.Session{Time: at, Event: "start"}, notebook.Session{Time: at, Event: "end", Reason: notebook.TextMessage("precise enough")}}
	seed := fnv.New64()
	seed.Write([]byte(p.hostID))
	g := rand.New(rand.NewPCG(3, seed.Sum64()))
	for round := range p.rounds {
		for _, m := range all {
			id := fmt.Sprintf("%s-r%d-%s", p.hostID, round, m.t.ID)
			gu := notebook.Guest{ID: id, Treatment: m.t.ID, Round: round, Start: at, Kernel: "6.18.5", RulerCostS: 4.3e-4, RulerCostN: 20, RoundTripS: 6e-5}
			if m.app.also != nil {
				gu.ReadyS = 12
			}
			v := m.mean * (1 + 0.012*g.NormFloat64())
			x := notebook.Trial{Treatment: m.t.ID, Round: round, Guest: id, Start: at, Value: v, ElapsedS: v, HostS: v}
			if m.app.also != nil {
				x.Figures = map[string]float64{"p50": v * 0.8, "p95": v * 2.1, "p99": v * 3.2, "requests_per_second": 1000 / v, "errors": 0, "requests": 1000}
				x.Load = &notebook.Load{CPUs: []int{0}, Shared: true, UserS: 1, SystemS: 0.2}
			}
			if strings.HasPrefix(m.t.ID, "cassandra") && m.t.Platform == "vmcn" && round == 1 {
				x.Warnings = []*notebook.Message{notebook.TextMessage("the load used 0.97 of its CPU: it may be what was measured")}
			}
			records = append(records, gu, x)
		}
	}
	return notebooktest.Write(t, study, host, records...)
}

// readPinning reads the studies' folders together.
func readPinning(t testing.TB, studies ...*pinning) *data.Summary {
	t.Helper()
	var dirs []string
	for _, p := range studies {
		dirs = append(dirs, p.write(t))
	}
	s, err := data.Read(dirs, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
