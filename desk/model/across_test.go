package model

import (
	"math/rand/v2"
	"testing"

	"tare/desk/data"
)

// figure7 is a container of 16 cores on a host of 16 and on one of 112, as in the paper's Figure 7.
var figure7 = world{pto: 0.03, perCPU: 0.012, noise: 0.01, rounds: 8, hosts: map[int][]float64{16: {16}, 112: {16}}}

// The comparison of two hosts finds the true overheads without a fit, and its intervals hold.
func TestAcrossHosts(t *testing.T) {
	truth := figure7.ratio(16, 112) / figure7.ratio(16, 16)
	const runs = 400
	held := 0
	for seed := range uint64(runs) {
		v := Fit(figure7.measure(rand.New(rand.NewPCG(seed, 3))), Options{}).Overheads[0]
		if v.Cannot == nil || len(v.Across) != 1 {
			t.Fatalf("%v, %+v", v.Cannot, v.Across)
		}
		a := v.Across[0]
		if !a.Whole() || a.Few.HostCores != 16 || a.Many.HostCores != 112 || a.FewHost == a.ManyHost || a.Unlike != nil {
			t.Fatalf("%+v", a)
		}
		if a.Times.Contains(truth) {
			held++
		}
	}
	if held < 367 { // 95 %, less three standard deviations
		t.Errorf("%d of %d intervals contain the truth", held, runs)
	}
}

func TestWhatIsComparedAcrossHosts(t *testing.T) {
	across := func(s *data.Summary) []Across {
		for _, v := range AcrossHosts(s, s.Rows) {
			return v.Across
		}
		return nil
	}
	measure := func(hosts map[int][]float64) *data.Summary {
		w := figure7
		w.hosts = hosts
		return w.measure(rand.New(rand.NewPCG(1, 3)))
	}
	if got := across(measure(map[int][]float64{112: {4, 16}})); got != nil {
		t.Errorf("one host: %+v", got)
	}
	if got := across(measure(map[int][]float64{16: {4}, 112: {8}})); got != nil {
		t.Errorf("two sizes: %+v", got)
	}
	// Hosts between the smallest and the largest are left to the fit. A host larger than the container has platform-size overhead too.
	got := across(measure(map[int][]float64{32: {16, 32}, 64: {16, 32}, 112: {16}}))
	if len(got) != 2 || got[0].Many.HostCores != 112 || got[0].Whole() || !got[1].Whole() || got[1].Few.Cores != 32 || got[1].Many.HostCores != 64 {
		t.Errorf("%+v", got)
	}

	// A host that was made smaller is compared with itself first. Many hosts are compared only with themselves.
	s := measure(map[int][]float64{16: {16}, 32: {16}, 64: {16}, 112: {16}})
	places := []struct {
		cores int
		host  string
	}{{16, "a"}, {16, "b"}, {112, "b"}, {112, "c"}}
	for i, p := range places {
		for _, r := range s.Rows[2*i : 2*i+2] {
			r.HostCores, r.HostID, r.CHR = p.cores, p.host, 16/float64(p.cores)
		}
	}
	got = across(s)
	if len(got) != 4 || got[0].FewHost != "b" || got[0].ManyHost != "b" || got[1].FewHost == got[1].ManyHost {
		t.Errorf("%+v", got)
	}
	more := measure(map[int][]float64{17: {16}})
	for _, r := range more.Rows {
		r.HostCores, r.HostID, r.CHR = 16, "d", 1
		for i := range r.Values {
			r.Values[i].Folder = 4
		}
	}
	s.Rows, s.Folders = append(s.Rows, more.Rows...), append(s.Folders, more.Folders...)
	if got = across(s); len(got) != 1 || got[0].FewHost != "b" {
		t.Errorf("%+v", got)
	}
}
