package studyfile

import (
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"tare/lab/measure"
	"tare/notebook"
	"tare/notebook/notebooktest"
	"tare/workloads"
)

// --only can select by every factor. Factors that bare metal lacks do not deselect it.
func TestOnlyByEveryFactor(t *testing.T) {
	for _, p := range notebooktest.Pairs() {
		name := p.Factor.Name
		o, err := ParseOnly("workload=cpu," + name + "=" + p.Of[0])
		if err != nil || o[name] != p.Of[0] {
			t.Errorf("%s: %v, %v", name, o, err)
			continue
		}
		if !o.keeps(p.A) || o.keeps(p.B) {
			t.Errorf("%s: keeps the first: %v, the second: %v; want only the first", o, o.keeps(p.A), o.keeps(p.B))
		}
		bm := notebook.Treatment{Workload: "cpu", Platform: notebook.BM, Instance: p.A.Instance, HostCores: p.A.HostCores, Factors: p.A.Factors}
		other := notebook.Treatment{Workload: "cpu", Platform: notebook.BM, Instance: p.B.Instance, HostCores: p.B.HostCores, Factors: p.B.Factors}
		ofAll := name == "instance" || name == "host_cores" || !p.Factor.IsField()
		if !o.keeps(bm) || o.keeps(other) == ofAll {
			t.Errorf("%s: keeps the first bare metal: %v, the second: %v", o, o.keeps(bm), o.keeps(other))
		}
		if again, err := ParseOnly(o.String()); err != nil || fmt.Sprint(again) != fmt.Sprint(o) {
			t.Errorf("%s read again: %v, %v", o, again, err)
		}
	}
}

// A value that occurs nowhere in the study is refused, and the error lists the values that occur.
func TestOnlyRefusesUnknownValues(t *testing.T) {
	k := &fakeKind{factors: []measure.Factor{{Of: notebook.FactorCache, Values: []string{"cold", "warm"}}}}
	registry := measure.Registry{{Name: "sizes", Part: measure.Part{Read: func(*yaml.Node, []string) (measure.Config, error) { return k, nil }}}}
	const text = `name: s
workloads: [{name: cpu, devices: [v.com/gpu=0, v.com/gpu=1]}]
platforms: [{platform: bm}, {platform: cn, engines: [crun]}, {platform: vm, machines: [usual, devices=balloon]}]
neighbours: [{cpu: 0}, {io: 1}]
host_cores: [2, all]
instances: [1/1GB]
sizes: {}
`
	s, err := Parse("s.yaml", []byte(text), ".", Known{kinds, registry})
	if err != nil {
		t.Fatal(err)
	}
	for only, want := range map[string]string{
		"cache=cold": "", "cache=hot": "the study s has cold, warm",
		"devices=v.com/gpu=0,v.com/gpu=1": "", "devices=v.com/gpu=0": "the study s has v.com/gpu=0,v.com/gpu=1",
		"isolation=full":  "the study s has no isolation: leave it out",
		"neighbours=io:1": "", "neighbours=cpu:1": "the study s has io:1, none",
		"host_cores=2": "", "host_cores=all": "", "host_cores=4": "the study s has 2, all",
		"machine=usual": "", "machine=devices=balloon,cache=warm": "", "machine=cache=none": "the study s has devices=balloon, usual",
		"accelerator=kvm": "", "accelerator=xen": "the study s has kvm, kvm-emulated, tcg", "kernel=usual": "", "kernel=6.1": "the study s has usual",
		"rate=8": "the study s has no rate: leave it out",
	} {
		o, err := ParseOnly(only)
		if err != nil {
			t.Errorf("%s: %v", only, err)
			continue
		}
		if _, err := s.Ask(workloads.FS, Choices{Only: o}); (err == nil) != (want == "") || err != nil && !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", only, err, want)
		}
	}
}

// Treatments keep the study's factors and their workload's parameters separately, and their IDs have both.
func TestTreatmentsHaveFactors(t *testing.T) {
	const text = "name: s\nworkloads: [{name: cpu, params: {millions: [10]}}]\nplatforms: [{platform: cn, engines: [crun], provisioning: [pinned]}]\ninstances: [1/1GB]\nneighbours: {cpu: 1}\n"
	s, err := Parse("s.yaml", []byte(text), ".", known)
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.Ask(workloads.FS, Choices{})
	if err != nil {
		t.Fatal(err)
	}
	all := a.Treatments(a.Works[0], notebook.Host{}, func(string) string { return "" }, func(notebook.Treatment) bool { return true })
	if len(all) != 1 || all[0].ID != "cpu{millions=10,neighbours=cpu:1} cn crun pinned 1/1GB" || len(all[0].Params) != 1 || notebook.FactorNeighbours.Of(all[0]) != "cpu:1" {
		t.Errorf("%+v", all)
	}
}

// Of alternative engines --only chooses the one it names, whether the host supports it or not. Otherwise a study of alternatives would be left
// with only bare metal, and nothing would say why.
func TestOnlyChoosesAmongAlternatives(t *testing.T) {
	const text = "name: s\nworkloads: [{name: cpu, params: {millions: [10]}}]\nplatforms: [{platform: bm}, {platform: cn, engines: [docker|crun], provisioning: [pinned]}]\ninstances: [1/1GB]\n"
	s, err := Parse("s.yaml", []byte(text), ".", known)
	if err != nil {
		t.Fatal(err)
	}
	for only, want := range map[string]string{"": "crun", "engine=docker": "docker", "engine=crun": "crun"} {
		o, err := ParseOnly(only)
		if err != nil {
			t.Fatal(err)
		}
		a, err := s.Ask(workloads.FS, Choices{Only: o})
		if err != nil {
			t.Fatal(err)
		}
		withoutDocker := func(t notebook.Treatment) bool { return t.Engine != "docker" }
		all := a.Treatments(a.Works[0], notebook.Host{}, func(string) string { return "" }, withoutDocker)
		if len(all) != 3 || all[2].Engine != want {
			t.Errorf("--only %q: %+v, want bare metal twice and %s", only, all, want)
		}
	}
}
