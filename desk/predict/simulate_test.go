package predict

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// world is a simulated host: what events take on bare metal, and what they take more in environments.
type world struct {
	*rand.Rand
	own   []float64            // seconds, by Events
	costs map[string][]float64 // by engine
	odd   float64              // standard deviation of each workload's own factor of its costs
	noise float64              // of a trial
}

func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 39)), costs: map[string][]float64{}, odd: 0.2, noise: 0.02}
	for _, e := range Events {
		switch own := math.Exp(math.Log(0.1e-6) + 4*w.Float64()); e.Name {
		case Computing, DiskWaits:
			w.own = append(w.own, 1)
		case "file_bytes", "pipe_bytes", "socket_bytes":
			w.own = append(w.own, own*1e-4)
		default:
			w.own = append(w.own, own)
		}
	}
	for k, own := range w.own {
		light, heavy := 0.0, own*math.Exp(1.5+w.NormFloat64())
		if k%3 == 1 {
			light = own * 0.3 * w.Float64()
		}
		if k == 0 {
			heavy = 0
		}
		w.costs["crun"], w.costs["gvisor"] = append(w.costs["crun"], light), append(w.costs["gvisor"], heavy)
	}
	return w
}

// job is a workload: the share of its time on bare metal that each event takes.
type job struct {
	name, kind string
	shares     []float64
	reciprocal bool    // its metric is a rate
	size       float64 // of its events, which are as many fewer; 0: that of a probe's
}

// inKernel is the share of the job's time that the kernel takes.
func (j job) inKernel() (share float64) {
	for k, e := range Events {
		if e.inKernel() {
			share += j.shares[k]
		}
	}
	return share
}

// events is how many events of a kind the job has in a second of bare metal's time.
func (w *world) events(j job, k int) float64 {
	if n := j.shares[k] / w.own[k]; j.size == 0 || !Events[k].inKernel() {
		return n
	} else {
		return n / j.size
	}
}

func (w *world) probes() (all []job) {
	for k, e := range Events {
		j := job{Probes, e.Name, make([]float64, len(Events)), false, 0}
		j.shares[0], j.shares[k] = 0.05, 0.95
		all = append(all, j)
	}
	return all
}

func (w *world) jobs(n int) (all []job) {
	for i := range n {
		j := job{fmt.Sprintf("job%d", i), "", make([]float64, len(Events)), i%5 == 4, math.Exp(0.5 * w.NormFloat64())}
		left := 0.8 * w.Float64()
		j.shares[0] = 1 - left
		for left > 0.01 {
			part := left * (0.3 + 0.7*w.Float64())
			k := 1 + w.IntN(len(Events)-1)
			if e := Events[k].Figure; e == notebook.WallNetwork || e == notebook.WallFutex { // what the probes say of them is not trusted
				continue
			}
			j.shares[k] += part
			left -= part
		}
		all = append(all, j)
	}
	return all
}

// ratio is what the job truly takes with an engine, relative to bare metal.
func (w *world) ratio(j job, engine string) float64 {
	r := 1.0
	for k, share := range j.shares {
		r += share / w.own[k] * w.costs[engine][k]
	}
	return r
}

var (
	when = time.Date(2026, 11, 30, 7, 0, 0, 0, time.UTC)
	host = notebook.Host{ID: "aaaa", Hostname: "bench", Kernel: "6.18", CPUs: []notebook.CPU{{ID: 0}, {ID: 1}}}
	size = notebook.Instance{Name: "1/4GB", Cores: 1, Memory: 4 << 30}
)

const rounds = 3

// measure makes the folder of a study of these jobs.
func (w *world) measure(t *testing.T, jobs []job, engines ...string) string {
	t.Helper()
	s := notebook.Study{
		Tare: "test", Name: "calibration", Hash: "h", Seed: 1, Created: when, Explain: Tracers,
		Design:  notebook.Design{Floor: rounds, Cap: rounds, Trials: 1, TimeoutS: 60},
		Metrics: map[string]notebook.Metric{}, Images: map[string]notebook.Image{},
	}
	var records []any
	for _, j := range jobs {
		better := notebook.Lower
		if j.reciprocal {
			better = notebook.Higher
		}
		s.Metrics[j.name] = notebook.Metric{Name: "metric", Unit: "s", Better: better}
		s.Images[j.name] = notebook.Image{Reference: "debian", Digest: "sha256:1111"}
		odd := 0.0
		if j.name != Probes {
			odd = w.odd * w.NormFloat64()
		}
		for _, engine := range append([]string{""}, engines...) {
			tr := notebook.Treatment{Workload: j.name, Platform: notebook.BM, Instance: size}
			ratio := 1.0
			if j.kind != "" {
				tr.Params = map[string]string{"kind": j.kind}
			}
			if engine != "" {
				tr.Platform, tr.Engine, tr.Provisioning = notebook.CN, engine, notebook.Pinned
				ratio = 1 + (w.ratio(j, engine)-1)*math.Exp(odd)
			}
			tr.ID = tr.Label() + " " + tr.Platform + " " + engine
			s.Treatments = append(s.Treatments, tr)
			for round := range rounds {
				records = append(records, w.guest(j, tr.ID, round, ratio)...)
			}
		}
	}
	return notebooktest.Write(t, s, host, records...)
}

// tracing is what tracers take for an event of a probe's size, as a share of bare metal's time for it.
const tracing = 0.4

// guest is a guest with a trial and a traced one.
func (w *world) guest(j job, id string, round int, ratio float64) []any {
	g := notebook.Guest{ID: fmt.Sprintf("r%d-%s", round, id), Treatment: id, Round: round, Start: when}
	out := []any{g}
	for _, traced := range []bool{false, true} {
		took := ratio * math.Exp(w.noise*w.NormFloat64())
		for k, e := range Events {
			if traced && e.inKernel() {
				took += ratio * tracing * w.own[k] * w.events(j, k)
			}
		}
		n := notebook.Trial{Treatment: id, Round: round, Guest: g.ID, Start: when, Traced: traced, Value: took, ElapsedS: took, HostS: took}
		work := 1.0 // seconds on bare metal
		if j.reciprocal {
			n.Value, n.ElapsedS, work = 1/took, 1, 1/took // as much as fits into a second
		}
		if traced {
			n.Trace = &notebook.Trace{Looked: Tracers, Figures: map[string]float64{}, Wall: map[string]float64{}}
			n.Trace.Figures["system_s"] = work * j.inKernel()
			for k, e := range Events {
				count := work * w.events(j, k)
				if e.inKernel() {
					n.Trace.Figures["system_s"] += tracing * w.own[k] * count
				}
				switch {
				case e.Name == DiskWaits:
					n.Trace.Wall[notebook.WallBlock] = count
				case slices.Contains(waits, e.Figure):
					n.Trace.Spread = append(n.Trace.Spread, notebook.Distribution{Role: notebook.RoleWork, What: notebook.OffCPU, Of: e.Figure, Unit: "s", Counts: []int64{int64(count)}})
				default:
					n.Trace.Figures[e.Figure] = count
				}
			}
		}
		out = append(out, n)
	}
	return out
}

// read reads a folder.
func read(t *testing.T, dir string) *data.Summary {
	t.Helper()
	s, err := data.Read([]string{dir}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (w *world) calibrate(t *testing.T, jobs []job, engines ...string) *Calibration {
	t.Helper()
	c, err := Calibrate(read(t, w.measure(t, append(w.probes(), jobs...), engines...)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}
