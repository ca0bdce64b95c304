package claims

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// behaviour is what a trial does in addition to taking its time: shares of its instance's cores, and counts by request or by second of
// CPU time.
type behaviour struct {
	used                    float64 // cores
	memory                  float64 // bytes
	migrations, otherCache  float64 // each second of CPU time
	scheduler, cgroup       float64 // shares of CPU time
	reads, writes, packets  float64 // each request
	waits, faults, requests float64 // each request; requests is how many
	spread                  float64 // share of the host's CPUs that it runs on
	communication           float64 // share of the time
	misses, remote          float64 // of the last-level cache for each instruction; share of the wake-ups by an interrupt
	charges, interrupts     float64 // each second of CPU time; each request
}

// asThePaperSays is what the paper says of a treatment.
func asThePaperSays(t notebook.Treatment) behaviour {
	cores := t.Instance.Cores
	b := behaviour{used: 0.5 * cores, memory: 50e6, migrations: 100, otherCache: 10, scheduler: 0.2 / cores, cgroup: 0.01, requests: 1000, packets: 5, waits: 4, faults: 0.01, spread: 0.1, misses: 0.01, remote: 0.5, charges: 1000, interrupts: 4}
	switch t.Workload {
	case "ffmpeg":
		b.used = 0.98 * min(cores, 16)
	case "mpi-search":
		b.used, b.communication = cores, cores/(cores+4)
	case "wordpress":
		b.used, b.reads, b.writes = 0.6*cores, 1.5, 0.2
	case "cassandra":
		b.used, b.reads, b.writes = 0.7*cores, 3, 2
		if cores <= 2 {
			b.faults = 5
		}
	}
	switch t.Provisioning {
	case notebook.Vanilla:
		b.migrations, b.otherCache, b.cgroup, b.spread = 2000/cores, 1000/cores, 1.3/cores, 0.95
		b.misses, b.remote, b.charges = 0.02, 0.9/cores, 3000
	case notebook.Pinned:
		b.used, b.migrations, b.otherCache = 0.9*b.used, 10, 1
		b.remote = 0.1 / cores
	}
	return b
}

// contrary is the opposite of what it says.
func contrary(t notebook.Treatment) behaviour {
	cores := t.Instance.Cores
	b := behaviour{used: 0.99 * cores, memory: 300e6, migrations: 10 * cores, otherCache: cores, scheduler: 0.001 * cores, cgroup: 0.001, requests: 1000, reads: 0.2, writes: 0.1, packets: 0.5, waits: 1, faults: 0.01, spread: 0.1, misses: 0.01, remote: 0.001 * cores, charges: 1000, interrupts: 1}
	switch t.Workload {
	case "ffmpeg", "mpi-search":
		b.used, b.communication = 0.9*cores, 0.4/cores
	case "cassandra":
		b.reads = 0.01
	}
	if t.Provisioning == notebook.Pinned {
		b.used, b.migrations, b.otherCache, b.cgroup = 1.1*b.used, 100*cores, 100*cores, 0.002
		b.misses, b.remote, b.charges = 0.02, 0.002*cores, 2000
	}
	return b
}

// folder is the world measured in so many rounds and written down, traced, as `tare run --explain=deep` would.
func (w *world) folder(t *testing.T, rounds int, noise float64, of func(notebook.Treatment) behaviour) *data.Summary {
	t.Helper()
	f := notebooktest.New(len(w.sum.Hosts[0].CPUs))
	f.Rounds, f.Noise, f.Traced = rounds, noise, 1
	f.Study.Design = notebook.Design{Floor: rounds, Cap: rounds, Trials: 1, TimeoutS: 60}
	f.Study.Explain = notebook.DeepTracers
	services := []string{"wordpress", "cassandra"}
	f.Study.Also = map[string][]notebook.Metric{}
	for _, s := range services {
		f.Study.Also[s] = []notebook.Metric{{Name: "requests", Unit: "1"}}
	}
	f.Study.Also["mpi-search"] = []notebook.Metric{{Name: "communication", Unit: "s"}}
	treatments := map[string]notebook.Treatment{}
	for i, r := range w.sum.Rows {
		f.AddTreatment(r.Treatment, w.truth[i])
		treatments[r.Treatment.ID] = r.Treatment
	}
	g := rand.New(rand.NewPCG(5, uint64(rounds)))
	about := func(v float64) float64 { return v * math.Exp(noise*g.NormFloat64()) }
	f.Trial = func(x *notebook.Trial) {
		tr := treatments[x.Treatment]
		b := of(tr)
		cpu := about(b.used) * x.ElapsedS
		if slices.Contains(services, tr.Workload) {
			x.Figures = map[string]float64{"requests": b.requests}
		} else {
			x.Usage = notebook.Usage{UserS: 0.8 * cpu, SystemS: 0.2 * cpu, MaxRSS: int64(about(b.memory))}
		}
		if tr.Workload == "mpi-search" {
			x.Figures = map[string]float64{"communication": about(b.communication) * x.ElapsedS}
		}
		if x.Trace == nil {
			return
		}
		x.Trace.Figures = map[string]float64{
			"user_s": 0.8 * cpu, "system_s": 0.2 * cpu, "run_s": cpu,
			"migrations": cpu * about(b.migrations), "cache_migrations": cpu * about(b.otherCache),
			"scheduler_s": cpu * about(b.scheduler), "cgroup_s": cpu * about(b.cgroup),
			"vda.reads": b.requests * about(b.reads), "vda.writes": b.requests * about(b.writes),
			"eth0.received_packets": b.requests * about(b.packets), "eth0.sent_packets": b.requests * about(b.packets),
			"cpus_used": float64(f.Host.Cores(tr)) * about(b.spread), "vcpu.cpus_used": float64(f.Host.Cores(tr)) * about(b.spread),
			"instructions": 1e9 * cpu, "llc_misses": 1e9 * cpu * about(b.misses), "charges": cpu * about(b.charges),
			"io_wakeups": 1000, "remote_io_wakeups": 1000 * about(b.remote), "interrupts": b.requests * about(b.interrupts),
			"waits": b.requests * about(b.waits), "major_faults": b.requests * about(b.faults),
		}
	}
	s, err := data.Read([]string{f.Write(t)}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// contraryWorld is paperWorld where what costs gains, and by as much.
func contraryWorld() *world {
	w := paperWorld()
	bare := map[string]float64{}
	at := func(t notebook.Treatment) string { return t.Label() + t.Instance.Name }
	for i, r := range w.sum.Rows {
		if r.Treatment.Platform == notebook.BM {
			bare[at(r.Treatment)] = w.truth[i]
		}
	}
	for i, r := range w.sum.Rows {
		w.truth[i] = bare[at(r.Treatment)] * bare[at(r.Treatment)] / w.truth[i]
		if at(r.Treatment) == "cassandralarge" {
			w.truth[i] /= 3 // no overload
		}
	}
	return w
}

// expensiveWorld is paperWorld where everything costs that the paper says costs nothing: a quota, on every platform; every further core;
// and more in one program than in its like.
func expensiveWorld() *world {
	w := paperWorld()
	for i, r := range w.sum.Rows {
		t := r.Treatment
		if t.Platform == notebook.BM {
			continue
		}
		w.truth[i] *= 1 + 0.1*math.Log2(t.Instance.Cores)
		if t.Provisioning == notebook.Vanilla {
			w.truth[i] *= 1.5
		}
		if t.Platform != notebook.CN {
			w.truth[i] *= 1 + 0.1*math.Log2(t.Instance.Cores)
		}
		if t.Platform == notebook.VMCN {
			w.truth[i] *= 1.2
		}
		if t.Workload == "mpi-prime" {
			w.truth[i] *= 1.3
		}
	}
	return w
}

// Slide 25 contradicts slide 30 and the paper's text, and III-B1 (iii) contradicts (i) and (ii): where these are true they are not.
func contradictsThePaper(c Claim) bool {
	return strings.HasPrefix(c.ID, "slide-25-") || c.ID == "ffmpeg-iii-b"
}

// timed are the shipped claims, except those that have worlds of their own (memory_test.go, paging_test.go, guests_test.go, cloud_test.go).
func timed(t *testing.T) []Claim {
	return slices.DeleteFunc(shipped(t), func(c Claim) bool {
		return slices.Contains([]string{"memory", "characterization", "start-up", "cloud-benchmarking"}, c.Study)
	})
}

// On a host that is as the paper says every claim holds that Tare has the means to test. So they do not contradict each other,
// except those that are said to.
func TestEveryClaimHoldsWhereThePaperIsTrue(t *testing.T) {
	for _, v := range Judge(paperWorld().folder(t, 10, 0.0001, asThePaperSays), timed(t)) {
		want := Holds
		switch {
		case v.Claim.Hypothesis.Unrecorded != "":
			want = NotTestable
		case contradictsThePaper(v.Claim):
			want = DoesNotHold
		}
		if v.Answer != want {
			t.Errorf("%s: %s, want %s: %s", v.Claim.ID, v.Answer, want, Why(v))
		}
	}
}

// On hosts that are otherwise none holds that says what they are not: each claim is refuted by one of them at least.
func TestEveryClaimFailsWhereThePaperIsFalse(t *testing.T) {
	refuted := map[string]bool{}
	for _, s := range []*data.Summary{contraryWorld().folder(t, 10, 0.0001, contrary), nullWorld().folder(t, 10, 0.0001, contrary), expensiveWorld().folder(t, 10, 0.0001, contrary)} {
		for _, v := range Judge(s, timed(t)) {
			refuted[v.Claim.ID] = refuted[v.Claim.ID] || v.Answer == DoesNotHold
		}
	}
	for _, c := range timed(t) {
		if !refuted[c.ID] && c.Hypothesis.Unrecorded == "" && !c.ofLowerBounds() {
			t.Errorf("%s is refuted by none of them", c.ID)
		}
	}
}

// A few rounds in much noise decide nothing, whichever is true.
func TestNoClaimIsDecidedInNoise(t *testing.T) {
	for _, v := range Judge(paperWorld().folder(t, 3, 0.6, asThePaperSays), timed(t)) {
		want := v.Claim.Hypothesis.Unrecorded != ""
		if v.Claim.ofLowerBounds() { // its mean may be where it cannot be refuted
			want = v.Answer == NotTestable
		}
		if want != (v.Answer == NotTestable) || !want && v.Answer != NotDecided {
			t.Errorf("%s: %s: %s", v.Claim.ID, v.Answer, Why(v))
		}
	}
}

// ofLowerBounds says whether the claim compares a lower bound.
func (c Claim) ofLowerBounds() bool {
	f := c.Hypothesis.form()
	return f.measured != nil && f.measured.quantity().Undercounted()
}

// What is recorded of the time in cgroups and in the scheduler is a lower bound: little of it refutes no finding that there is much.
func TestALowerBoundRefutesNothing(t *testing.T) {
	lacking := contraryWorld().folder(t, 10, 0.0001, contrary)
	vs := Judge(lacking, timed(t))
	for _, id := range []string{"tracking-cgroup", "tracking-pinned", "cassandra-iii-c"} {
		if v := Find(t, vs, id); v.Answer != NotTestable || !strings.Contains(Why(v), "is a lower bound here") {
			t.Errorf("%s: %s: %s", id, v.Answer, Why(v))
		}
	}
	of := Selector{Workload: Values{"cassandra"}, Platform: Values{"cn"}, Provisioning: Values{"vanilla"}, Instance: Values{"16xlarge"}}
	share := Measured{Metric: Values{"trace.cgroup_s"}, Per: Values{"trace.user_s", "trace.system_s"}} // 0.001
	for _, c := range []struct {
		bounds Bounds
		want   Answer
	}{
		{Bounds{AtMost: 0.5}, NotTestable}, // there may be more
		{Bounds{AtMost: 0.0001}, DoesNotHold},
		{Bounds{AtLeast: 0.0001}, Holds},
		{Bounds{Between: []float64{0.0001, 0.5}}, NotTestable},
	} {
		v := Judge(lacking, []Claim{{ID: "c", Hypothesis: Hypothesis{Value: &Value{Of: of, Measured: share, Bounds: c.bounds}}}})[0]
		if v.Answer != c.want {
			t.Errorf("%+v: %s, want %s: %s", c.bounds, v.Answer, c.want, Why(v))
		}
	}
}

// Where slide 25 is true, its claims hold.
func TestSlide25(t *testing.T) {
	w := paperWorld()
	for i, r := range w.sum.Rows {
		bound := map[string]float64{"ffmpeg": 0.14, "wordpress": 0.29}[r.Treatment.Workload]
		if r.Treatment.Platform == notebook.CN && r.Treatment.Provisioning == notebook.Vanilla && r.CHR <= bound {
			w.truth[i] *= 1.2
		}
	}
	// 8xlarge is a CHR of 0.286 there, between the two that it is about.
	vs := Judge(w.folder(t, 10, 0.0001, asThePaperSays), timed(t))
	for _, id := range []string{"slide-25-cpu", "slide-25-io"} {
		if v := Find(t, vs, id); v.Answer != Holds {
			t.Errorf("%s: %s: %s", id, v.Answer, Why(v))
		}
	}
}
