package notebook

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// A study of format 1 has all factors among the parameters. The other keys of study.json say which of these are factors: a workload may have
// parameters with such names.
func TestFactorsOfFormat1(t *testing.T) {
	const (
		pages    = `"paging":{"guests":2,"initial_s":1,"faults_s":1}`
		weighed  = `"memory":{"guests":[1,2]}`
		started  = `"starting":{"caches":["cold","warm"]}`
		arriving = `"arrivals":{"for_s":2,"least":3,"most":8,"timeout_s":30}`
		rising   = `"capacity":{"metric":"p99","bound":0.2,"from":20,"to":100,"raise":1,"hold_s":1}`
		beside   = `"also":{"w":[{"name":"own share","unit":"1"},{"name":"fairness","unit":"1"}]}`
	)
	for _, c := range []struct {
		name, more, params, factors, own string
	}{
		{"no kind", "", `"rate":"8","cache":"cold","root":"shared","addresses":"fixed"`, "", "addresses=fixed,cache=cold,rate=8,root=shared"},
		{"pages", pages, `"addresses":"fixed","huge_pages":"host","megabytes":"64"`, "addresses=fixed,huge_pages=host", "megabytes=64"},
		{"pages of one value", pages, `"addresses":"random"`, "addresses=random", ""},
		{"pages, and other words", pages, `"addresses":"16","rate":"8","root":"shared","cache":"warm"`, "", "addresses=16,cache=warm,rate=8,root=shared"},
		{"roots", weighed, `"root":"copied","cache":"cold"`, "root=copied", "cache=cold"},
		{"other roots", weighed, `"root":"/srv"`, "", "root=/srv"},
		{"caches", started, `"cache":"cold","rate":"1000","root":"copied"`, "cache=cold", "rate=1000,root=copied"},
		{"rates", arriving, `"rate":"8","form":"service"`, "rate=8", "form=service"},
		{"a workload's rate", rising, `"rate":"8"`, "", "rate=8"},
		{"a kind that says its name", `"kind":"starting",` + started, `"cache":"warm"`, "cache=warm", ""},
		{"neighbours", beside, `"neighbours":"cpu:1/core","n":"1"`, "neighbours=cpu:1/core", "n=1"},
		{"other neighbours", "", `"neighbours":"none"`, "", "neighbours=none"},
		{"other neighbours in words", beside, `"neighbours":"many"`, "", "neighbours=many"},
		{"devices", "", `"devices":"nvidia.com/gpu=0,nvidia.com/gpu=1"`, "devices=nvidia.com/gpu=0,nvidia.com/gpu=1", ""},
		{"other devices", "", `"devices":"2"`, "", "devices=2"},
	} {
		for _, version := range []int{1, 2} {
			text := fmt.Sprintf(`{"version":%d,"metrics":{"w":{"name":"execution time","unit":"s"}},`, version)
			if c.more != "" {
				text += c.more + ","
			}
			text += `"treatments":[{"id":"a","workload":"w","params":{` + c.params + `}}],"left_out":[{"treatment":{"id":"b","workload":"w","params":{` + c.params + `}},"reason":"x"}]}`
			s, err := parseStudy([]byte(text))
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			for _, of := range []Treatment{s.Treatments[0], s.LeftOut[0].Treatment} {
				factors, own := Assignments(of.Factors, ","), Assignments(of.Params, ",")
				switch {
				case version == 1 && (factors != c.factors || own != c.own):
					t.Errorf("%s: the factors %q and the parameters %q; want %q and %q", c.name, factors, own, c.factors, c.own)
				case version == 2 && factors != "":
					t.Errorf("%s: format 2 has its factors in a separate field, and %q were taken for some", c.name, factors)
				}
				whole := map[string]string{}
				if err := json.Unmarshal([]byte("{"+c.params+"}"), &whole); err != nil {
					t.Fatal(err)
				}
				if got := of.Label(); got != Label("w", whole) { // which is in treatments' ids and a key of the study's images
					t.Errorf("%s: the label is %s", c.name, got)
				}
			}
		}
	}
}

// If a study named a workload twice, once with neighbours and then without, its entry in "also" is that of the second.
func TestNeighboursOfFormat1InOneOfTwo(t *testing.T) {
	s, err := parseStudy([]byte(`{"version":1,"metrics":{"w":{"name":"x","unit":"s"}},"treatments":[{"id":"a","workload":"w","params":{"neighbours":"io:1"}},{"id":"b","workload":"w"}]}`))
	if err != nil || FactorNeighbours.Of(s.Treatments[0]) != "io:1" || s.Treatments[0].Params != nil || s.Treatments[1].Factors != nil {
		t.Errorf("%+v, %v", s.Treatments, err)
	}
}

// A study is read back as it was written, whatever names its parameters have.
func TestFactorsAreWrittenApart(t *testing.T) {
	s := Study{Version: Version, Kind: "starting", Config: map[string]any{"caches": []string{"cold"}}, Metrics: map[string]Metric{"w": {Name: "x"}}, Treatments: []Treatment{
		{ID: "a", Workload: "w", Params: map[string]string{"root": "shared"}, Factors: map[string]string{"cache": "cold"}},
		{ID: "b", Workload: "w", Params: map[string]string{"cache": "cold"}},
	}}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	read, err := parseStudy(text)
	if err != nil || !reflect.DeepEqual(read.Treatments, s.Treatments) {
		t.Errorf("%+v, %v", read.Treatments, err)
	}
	text = []byte(strings.Replace(string(text), `"factors":{"cache"`, `"factors":{"root"`, 1))
	if _, err := parseStudy(text); err == nil || !strings.Contains(err.Error(), `treatment "a" has "root" as a factor and as a parameter of its workload`) {
		t.Errorf("a factor with the name of a parameter: %v", err)
	}
}

// Every factor can be read and removed, and no two factors share a value.
func TestEveryFactor(t *testing.T) {
	set := Treatment{
		Workload: "w", Params: map[string]string{"n": "1"}, Platform: VM, Engine: "qemu", Accelerator: KVM, Kernel: "k", Provisioning: Pinned, Instance: Instance{Name: "large"}, Network: NetHost,
		Isolation: IsolationFull, Machine: "cache=none", HostCores: 8, Factors: map[string]string{},
	}
	for _, f := range Factors {
		if !f.IsField() {
			set.Factors[f.Name] = "of " + f.Name
		}
	}
	names := map[string]bool{}
	for _, f := range Factors {
		if names[f.Name] {
			t.Errorf("two factors are named %s", f.Name)
		}
		names[f.Name] = true
		if known, is := FactorNamed(f.Name); !is || known.Name != f.Name {
			t.Errorf("%s is not found", f.Name)
		}
		if v, has := set.Value(f.Name); !has || v == "" || v != f.Of(set) {
			t.Errorf("%s: %q, %v", f.Name, v, has)
		}
		without := set.Without(f.Name)
		for _, o := range Factors {
			if got, want := o.Of(without), o.Of(set); o.Name == f.Name && got != "" || o.Name != f.Name && got != want {
				t.Errorf("without %s, %s is %q", f.Name, o.Name, got)
			}
		}
		if !f.IsField() && set.SameWork(without) {
			t.Errorf("without %s it is the same work", f.Name)
		}
	}
	if got := FactorNames(Factor.IsField); !slices.Equal(got, []string{"platform", "engine", "accelerator", "kernel", "provisioning", "instance", "network", "isolation", "machine", "host_cores"}) {
		t.Errorf("a baseline is written as %v", got)
	}
	if all := set.Assigned(); len(all) != len(set.Factors)+1 || all["n"] != "1" || maps.Equal(all, set.Params) {
		t.Errorf("%v", all)
	}
}

// A figure by the name of a workload's parameter means the parameter, unless the factor of that name could be an axis before others could.
func TestAParameterIsAnAxisBeforeAFactor(t *testing.T) {
	of := Treatment{Engine: "docker", Network: NetHost, Params: map[string]string{"engine": "libaio", "network": "mesh"}}
	for axis, want := range map[string]string{"engine": "libaio", "network": NetHost} {
		if got, has := of.Value(axis); got != want || !has {
			t.Errorf("%s: %q, want %q", axis, got, want)
		}
	}
	if left := of.Without("engine"); left.Engine != "docker" || left.Params["engine"] != "" {
		t.Errorf("%+v", left)
	}
	if left := of.Without("network"); left.Network != "" || left.Params["network"] != "mesh" {
		t.Errorf("%+v", left)
	}
	if _, has := (Treatment{}).Value("segments"); has {
		t.Error("a treatment has a parameter that its workload has not")
	}
}

// A length that a host chose is asked for as the study has it; other parameters of the same value are not.
func TestAsked(t *testing.T) {
	s := Study{Lengths: map[string]string{"cpu{millions=60,rate=180}": "180"}}
	for _, c := range []struct{ workload, millions, rate, want string }{
		{"cpu", "180", "180", "60 or more"}, {"cpu", "180", "8", "180"}, {"cpu", "60", "180", "60"}, {"io", "180", "180", "180"},
	} {
		of := Treatment{Workload: c.workload, Params: map[string]string{"millions": c.millions, "rate": c.rate}}
		asked, chosen := s.Asked(of)
		if asked.Params["millions"] != c.want || asked.Params["rate"] != c.rate || of.Params["millions"] != c.millions || (chosen["millions"] == "180") != (c.want == "60 or more") {
			t.Errorf("%+v: %v, %v", c, asked.Params, chosen)
		}
	}
}
