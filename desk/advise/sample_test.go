package advise

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/notebook"
)

var (
	one   = notebook.Instance{Name: "1/1GB", Cores: 1, Memory: 1 << 30}
	half  = notebook.Instance{Name: "0.5/1GB", Cores: 0.5, Memory: 1 << 30}
	large = notebook.Instance{Name: "large", Cores: 2, Memory: 8 << 30}
	at    = time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
)

// lab is a folder of results in the making, with made-up trials.
type lab struct {
	study  notebook.Study
	host   notebook.Host
	rounds int
	noise  float64 // of guests, as a share
	cost   map[string]float64
	cpus   map[string]string
	fail   func(treatment string, round, trial int) string
	start  time.Time
}

func newLab(cpus int) *lab {
	l := &lab{
		study: notebook.Study{
			Tare: "test", Name: "quick", Hash: "h", Seed: 1, Created: at,
			Design:  notebook.Design{Floor: 10, Cap: 10, Trials: 3, TimeoutS: 60},
			Metrics: map[string]notebook.Metric{"ffmpeg": {Name: "execution time", Unit: "s"}},
			Images:  map[string]notebook.Image{"ffmpeg": {Reference: "debian:trixie+ffmpeg", Digest: "sha256:1111111111112222"}},
		},
		host:   notebook.Host{ID: "aaaaaaaabbbb", Hostname: "bench", Kernel: "6.18"},
		rounds: 10, noise: 0.005, cost: map[string]float64{}, cpus: map[string]string{}, start: at,
	}
	for i := range cpus {
		l.host.CPUs = append(l.host.CPUs, notebook.CPU{ID: i, Core: i})
	}
	return l
}

// add adds a treatment, "cn/docker/pinned" or "vm/qemu/kvm/pinned", with its cost in seconds.
func (l *lab) add(kind string, i notebook.Instance, cost float64) *lab {
	t := notebook.Treatment{ID: kind + "/" + i.Name, Workload: "ffmpeg", Instance: i}
	p := strings.Split(kind, "/")
	t.Platform = p[0]
	if len(p) > 1 {
		t.Engine, t.Provisioning = p[1], p[len(p)-1]
	}
	if len(p) > 3 {
		t.Accelerator = p[2]
	}
	if t.Platform == "aa" {
		t.Platform, t.AA = notebook.BM, true
	}
	if t.Platform == notebook.BM || t.Provisioning == notebook.Pinned {
		l.cpus[t.ID] = fmt.Sprintf("0-%.0f", i.Cores-1)
		if i.Cores == 1 {
			l.cpus[t.ID] = "1"
		}
	}
	return l.treatment(t, cost)
}

func (l *lab) treatment(t notebook.Treatment, cost float64) *lab {
	l.study.Treatments = append(l.study.Treatments, t)
	l.cost[t.ID] = cost
	return l
}

func (l *lab) last() *notebook.Treatment { return &l.study.Treatments[len(l.study.Treatments)-1] }

func (l *lab) write(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "R")
	w, err := notebook.Create(dir, l.study, l.host)
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(w.Session(notebook.Session{Time: at, Event: "start"}))
	must(w.Session(notebook.Session{Time: at, Event: "end", Reason: notebook.TextMessage("cap on rounds")}))
	must(w.Close())
	var guests, trials bytes.Buffer
	g := rand.New(rand.NewPCG(7, uint64(len(l.study.Treatments))))
	for round := range l.rounds {
		for _, tr := range l.study.Treatments {
			guest := notebook.Guest{
				ID: fmt.Sprintf("r%d-%s", round, tr.ID), Treatment: tr.ID, Round: round, Start: l.start, RulerCostS: 4e-4, RulerCostN: 20,
				Limits: notebook.Limits{CPUs: l.cpus[tr.ID], Memory: tr.Instance.Memory},
			}
			must(json.NewEncoder(&guests).Encode(guest))
			level := l.cost[tr.ID] * (1 + l.noise*g.NormFloat64())
			for i := range l.study.Design.Trials {
				x := notebook.Trial{Treatment: tr.ID, Round: round, Guest: guest.ID, Index: i, Start: at}
				x.Value = level * (1 + l.noise/3*g.NormFloat64())
				x.ElapsedS, x.HostS = x.Value, x.Value
				if len(l.study.Also) > 0 {
					// The slower by the metric has the smaller p99.
					x.Figures = map[string]float64{"p99": 10 / x.Value, "requests_per_second": x.Value}
				}
				if l.fail != nil {
					x.Failure = notebook.TextMessage(l.fail(tr.ID, round, i))
				}
				must(json.NewEncoder(&trials).Encode(x))
			}
		}
	}
	must(os.WriteFile(filepath.Join(dir, "guests.jsonl"), guests.Bytes(), 0o644))
	must(os.WriteFile(filepath.Join(dir, "trials.jsonl"), trials.Bytes(), 0o644))
	return dir
}

// usual is a study on eight CPUs in which a pinned container is the best treatment after bare metal.
func usual() *lab {
	l := newLab(8)
	l.add("bm", large, 4).add("aa", large, 4).add("cn/docker/vanilla", large, 5.4).add("cn/docker/pinned", large, 4.16)
	l.add("vm/qemu/kvm/vanilla", large, 8.2).add("vm/qemu/kvm/pinned", large, 8).add("vmcn/qemu/kvm/pinned", large, 8.4)
	l.add("vm/qemu/tcg/pinned", large, 3)
	l.study.LeftOut = []notebook.LeftOut{{Treatment: notebook.Treatment{
		ID: "cn/lxc/pinned/large", Workload: "ffmpeg", Platform: "cn", Engine: "lxc", Provisioning: "pinned", Instance: large}, Reason: notebook.TextMessage("no lxc-start: install it (apt-get install lxc)")}}
	return l
}

func read(t testing.TB, o Options, dirs ...string) *Advice {
	t.Helper()
	a, err := readAll(dirs, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func text(t testing.TB, a *Advice) string {
	t.Helper()
	var b bytes.Buffer
	if err := Text(&b, a); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func apply(t testing.TB, a *Advice, format string, pick int) string {
	t.Helper()
	var b bytes.Buffer
	if err := Apply(&b, a, format, pick); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
