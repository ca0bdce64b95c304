package ladder

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tare/desk/data"
	"tare/internal/golden"
	"tare/notebook"
)

// study is a made-up ladder: each rung costs what the test says, and one round is as good as the next, except for noise.
type study struct {
	sum   *data.Summary
	noise float64
	rand  *rand.Rand
	n     int // rounds
}

func newStudy(rounds int, noise float64) *study {
	return &study{noise: noise, n: rounds, rand: rand.New(rand.NewPCG(1, 2)), sum: &data.Summary{
		Hosts:   []data.Host{{Name: "bench", Host: notebook.Host{ID: "h1", CPUs: []notebook.CPU{{ID: 0}, {ID: 1, Core: 1}}}}},
		Folders: []data.Folder{{Dir: "R", Host: "h1", Study: notebook.Study{Design: notebook.Design{Floor: rounds, Cap: rounds, Trials: 1}}}},
	}}
}

func rung(platform, engine, isolation string) notebook.Treatment {
	t := notebook.Treatment{Workload: "ladder-syscall", Params: map[string]string{"calls": "1000"}, Platform: platform, Engine: engine, Isolation: isolation,
		Instance: notebook.Instance{Name: "1/1GB", Cores: 1, Memory: 1 << 30}}
	switch {
	case platform == notebook.VM, platform == notebook.VMCN:
		t.Accelerator, t.Provisioning = notebook.KVM, notebook.Pinned
	case isolation == notebook.IsolationFull:
		t.Provisioning, t.Network = notebook.Pinned, notebook.NetBridge
	}
	t.ID = strings.Join([]string{t.Workload, platform, engine, isolation}, "/")
	return t
}

// add gives a treatment a row of a mean in seconds.
func (s *study) add(t notebook.Treatment, mean float64) *data.Row {
	r := &data.Row{Treatment: t, Host: "bench", HostID: "h1", HostCores: 2, Metric: notebook.Metric{Name: "execution time", Unit: "s"}, Trials: s.n, Rounds: s.n, Representative: t.Representative(), Mean: mean, MeanLow: math.NaN(), MeanHigh: math.NaN()}
	for i := range s.n {
		r.Values = append(r.Values, data.Value{Block: data.Block{Round: i}, Mean: mean * (1 + s.noise*s.rand.NormFloat64()), Trials: 1})
	}
	s.sum.Rows = append(s.sum.Rows, r)
	return r
}

func (s *study) leave(t notebook.Treatment, why string) {
	s.sum.LeftOut = append(s.sum.LeftOut, data.LeftOut{Host: "bench", Treatment: t, Reason: notebook.TextMessage(why)})
}

// own is what each layer costs by itself in the whole sample.
var own = map[string]float64{"cgroup": 1.01, "quota": 1.02, "seccomp": 1.2, "bridge": 1.05, "overlay": 0.97}

// whole is a ladder that lacks only gVisor. Its rows are in no order.
func whole(noise float64) *study {
	s := newStudy(8, noise)
	mean := 0.5
	s.add(rung("bm", "", ""), mean)
	again := rung("bm", "", "")
	again.AA, again.ID = true, again.ID+"/aa"
	s.add(again, mean)
	s.add(rung("vmcn", "docker", ""), mean*1.1*1.3)
	s.add(rung("vm", "qemu", ""), mean*1.1)
	top := mean
	for _, l := range notebook.Layers {
		if c, ok := own[l]; ok {
			top *= c
		}
	}
	s.add(rung("cn", "docker", "full"), top*1.01)
	s.add(rung("cn", "runc", "full"), top*1.1)
	s.leave(rung("cn", "gvisor", "full"), "no runsc here")
	for _, l := range notebook.Layers {
		if c, ok := own[l]; ok {
			mean *= c
		}
		s.add(rung("cn", "layers", l), mean)
	}
	// Of other studies: no rungs.
	other := rung("cn", "docker", "")
	other.Provisioning, other.ID = notebook.Vanilla, "other"
	s.add(other, 9)
	return s
}

func one(t *testing.T, s *study) *Staircase {
	t.Helper()
	all := Of(s.sum)
	if len(all) != 1 {
		t.Fatalf("%d staircases, want 1", len(all))
	}
	return all[0]
}

func (c *Staircase) named(t *testing.T, name string) *Rung {
	t.Helper()
	for _, r := range c.Rungs {
		if r.Name == name {
			return r
		}
	}
	t.Fatalf("no rung %q", name)
	return nil
}

func names(c *Staircase) string {
	var n []string
	for _, r := range c.Rungs {
		n = append(n, r.Name)
	}
	return strings.Join(n, " ")
}

func TestOrderAndBelow(t *testing.T) {
	c := one(t, whole(1e-4))
	if got, want := names(c), "bm bm again "+strings.Join(notebook.Layers, " ")+" runc docker gvisor vm vmcn"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for name, want := range map[string]struct {
		below string
		own   float64
	}{
		"bm again": {"bm", 1}, "cgroup": {"bm", 1.01}, "quota": {"cgroup", 1.02}, "cpuset": {"quota", 1}, "seccomp": {"network", 1.2}, "overlay": {"capabilities", 0.97},
		"bridge": {"overlay", 1.05}, "runc": {"bridge", 1.1}, "docker": {"bridge", 1.01}, "vm": {"bm", 1.1}, "vmcn": {"vm", 1.3},
	} {
		r := c.named(t, name)
		if r.Below == nil || r.Below.Name != want.below || math.Abs(r.Own.Value-want.own) > 0.002 || r.Own.N != 8 || len(r.With) > 0 {
			t.Errorf("%s: below %+v, own cost %+v, with %q; want %+v", name, r.Below, r.Own, r.With, want)
		}
	}
	if r := c.named(t, "bridge"); math.Abs(r.Ratio.Value-1.01*1.02*1.2*0.97*1.05) > 0.002 {
		t.Errorf("all layers: %+v", r.Ratio)
	}
	if r := c.named(t, "gvisor"); r.Measured() || !reflect.DeepEqual(r.Missing, data.Omitted{Reason: notebook.TextMessage("no runsc here")}) || !math.IsNaN(r.Own.Value) || !math.IsNaN(r.Ratio.Value) {
		t.Errorf("the gap: %+v", r)
	}
	if r := c.named(t, "bm again"); r.Ranked {
		t.Error("the A/A check is ranked")
	}
}

// A layer that was not measured is part of the next one's cost, and the next one says so.
func TestGapsAreCarried(t *testing.T) {
	s := whole(1e-4)
	s.sum.Rows = slices.DeleteFunc(s.sum.Rows, func(r *data.Row) bool {
		return r.Treatment.Engine == "layers" && slices.Contains([]string{"network", "seccomp", "capabilities", "overlay"}, r.Treatment.Isolation)
	})
	for _, l := range []string{"network", "seccomp", "capabilities", "overlay"} {
		s.leave(rung("cn", "layers", l), "a service that nobody can ask")
	}
	c := one(t, s)
	b := c.named(t, "bridge")
	if b.Below.Name != "mount" || Together(b) != "network to bridge together (5 layers)" || math.Abs(b.Own.Value-1.2*0.97*1.05) > 0.002 {
		t.Errorf("bridge stands on %+v, %q, own cost %+v", b.Below, Together(b), b.Own)
	}
	// Without the topmost layer the engine's cost has it in it.
	s.sum.Rows = slices.DeleteFunc(s.sum.Rows, func(r *data.Row) bool { return r.Treatment.Isolation == "bridge" })
	c = one(t, s)
	r := c.named(t, "runc")
	if r.Below.Name != "mount" || len(r.With) != 5 {
		t.Errorf("runc stands on %+v with %q", r.Below, r.With)
	}
	if !strings.Contains(Sentence(c), "all layers up to mount cost") {
		t.Error(Sentence(c))
	}
}

// What is emulated, doubtful or failed is drawn and never picked.
func TestNeverPicked(t *testing.T) {
	s := whole(1e-4)
	for _, r := range s.sum.Rows {
		switch {
		case r.Treatment.Accelerator != "":
			r.Treatment.Accelerator, r.Representative = notebook.TCG, false
		case r.Treatment.Isolation == "seccomp":
			r.Failed, r.Lost, r.Trials = 3, 1, 8
		}
	}
	s.sum.AA = []data.AACheck{{Host: "bench", Workload: "ladder-syscall", Params: map[string]string{"calls": "1000"}, Instance: s.sum.Rows[0].Treatment.Instance, HostCores: 2, Ratio: 1.06, Low: 1.03, High: 1.08, Verdict: data.Misses}}
	c := one(t, s)
	for name, is := range map[string]func(*Rung) bool{
		"vm":      func(r *Rung) bool { return r.Emulated },
		"vmcn":    func(r *Rung) bool { return r.Emulated },
		"seccomp": func(r *Rung) bool { return r.Failing },
		// A rung above one with many failures has no better value.
		"capabilities": func(r *Rung) bool { return r.Failing },
		"bridge":       func(r *Rung) bool { return r.Doubtful },
	} {
		if r := c.named(t, name); !is(r) || r.Ranked || r.Significant || math.IsNaN(r.Own.Value) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	for _, want := range []string{"runc container costs 1.10", "are not ranked", "not ranked: the difference is within the A/A noise", "too many runs failed"} {
		if !strings.Contains(Sentence(c), want) {
			t.Errorf("%q is not in: %s", want, Sentence(c))
		}
	}
}

// Noise is not a cost: over many ladders on which nothing costs anything, at most the promised share of them names a
// cost.
func TestNothingCostsNothing(t *testing.T) {
	named, studies := 0, 400
	r := rand.New(rand.NewPCG(5, 6))
	for range studies {
		s := newStudy(6, 0.02)
		s.rand = r
		s.add(rung("bm", "", ""), 1)
		for _, l := range notebook.Layers {
			s.add(rung("cn", "layers", l), 1)
		}
		s.add(rung("cn", "runc", "full"), 1)
		if c := one(t, s); strings.Contains(Sentence(c), "costs most") || strings.Contains(Sentence(c), "cost most") || strings.Contains(Sentence(c), "is faster") {
			named++
		}
	}
	// 5 % of 400 are 20; 3 standard deviations above are 33.
	if named > 33 {
		t.Errorf("a cost is named in %d of %d ladders without one", named, studies)
	}
}

func TestSentences(t *testing.T) {
	var b strings.Builder
	say := func(what string, s *study) {
		for _, c := range Of(s.sum) {
			fmt.Fprintf(&b, "%s\n  %s\n", what, Sentence(c))
		}
	}
	say("precise", whole(1e-3))
	say("noisy", whole(0.02))
	say("very noisy", whole(0.3))
	s := newStudy(1, 0)
	s.add(rung("bm", "", ""), 1)
	s.add(rung("cn", "layers", "cgroup"), 1.1)
	say("one round", s)
	s = newStudy(8, 1e-3)
	s.add(rung("bm", "", ""), 1)
	m := 1.0
	for i, l := range notebook.Layers {
		m *= 1 + 0.01*float64(i)
		s.add(rung("cn", "layers", l), m)
	}
	say("each dearer than the one before", s)
	s = newStudy(8, 0.004)
	s.add(rung("bm", "", ""), 1)
	m = 1.0
	for _, l := range notebook.Layers[:6] {
		m *= 1.06
		s.add(rung("cn", "layers", l), m)
	}
	say("all the same", s)
	s = whole(1e-3)
	for _, r := range s.sum.Rows {
		if r.Treatment.Accelerator != "" {
			r.Treatment.Accelerator, r.Representative = notebook.TCG, false
		}
	}
	say("emulated", s)
	golden.Check(t, "sentences.txt", []byte(b.String()))
}

func TestCSV(t *testing.T) {
	s := whole(1e-3)
	s.sum.LeftOut[0].Reason = notebook.TextMessage("a reason, with \"quotes\"\nand lines")
	var b bytes.Buffer
	c := one(t, s)
	if err := CSV(&b, c); err != nil {
		t.Fatal(err)
	}
	back, err := csv.NewReader(bytes.NewReader(b.Bytes())).ReadAll()
	if err != nil || len(back) != len(c.Rungs)+1 || strings.Contains(b.String(), "NaN") {
		t.Errorf("%d lines, %v:\n%s", len(back), err, b.String())
	}
	golden.Check(t, "ladder.csv", b.Bytes())
}

// Without a layer there is no ladder, and nothing measured gives none.
// A ladder measured again with another image is another ladder: no rung stands on one of the other's.
func TestAnotherImageIsAnotherLadder(t *testing.T) {
	s := whole(0.01)
	s.sum.Folders = append(s.sum.Folders, s.sum.Folders[0])
	for _, known := range s.sum.Rows {
		r := *known
		r.Values = slices.Clone(r.Values)
		for i := range r.Values {
			r.Values[i].Folder = 1
		}
		r.Image.Digest = "sha256:2222"
		s.sum.Rows = append(s.sum.Rows, &r)
	}
	all := Of(s.sum)
	if len(all) != 2 {
		t.Fatalf("%d staircases, want 2", len(all))
	}
	for i, c := range all {
		for _, r := range c.Rungs {
			if r.Measured() && r.Below != nil && r.Own.N != s.n {
				t.Errorf("%s: its own cost is of %d rounds", r.Name, r.Own.N)
			}
		}
		if r := c.named(t, "gvisor"); !reflect.DeepEqual(r.Missing, data.Omitted{Reason: notebook.TextMessage("no runsc here")}) {
			t.Errorf("%+v", r)
		}
		if want := []string{"image ", "image 2222"}[i]; !c.OtherImages || !strings.Contains(Sentence(c), want+":") {
			t.Error(Sentence(c))
		}
	}
	if c := one(t, whole(0.01)); c.OtherImages {
		t.Error("another image")
	}
}

func TestNoLadder(t *testing.T) {
	s := newStudy(3, 0.01)
	s.add(rung("bm", "", ""), 1)
	s.add(rung("vm", "qemu", ""), 1.1)
	if all := Of(s.sum); len(all) > 0 {
		t.Errorf("%d staircases without a layer", len(all))
	}
	s = newStudy(0, 0)
	s.add(rung("cn", "layers", "cgroup"), 1)
	if all := Of(s.sum); len(all) > 0 {
		t.Errorf("%d staircases of nothing", len(all))
	}
	s = newStudy(3, 0.01) // no bare metal
	s.add(rung("cn", "layers", "cgroup"), 1)
	s.add(rung("cn", "layers", "quota"), 1.2)
	c := one(t, s)
	if r := c.named(t, "cgroup"); r.Below != nil || !math.IsNaN(r.Ratio.Value) {
		t.Errorf("%+v", r)
	}
	if r := c.named(t, "quota"); !r.Significant || math.Abs(r.Own.Value-1.2) > 0.05 {
		t.Errorf("%+v", r)
	}
}
