package studyfile

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// What a command names takes the place of the study's own. The other settings of a platform stay.
func TestPutInPlaceOfTheStudys(t *testing.T) {
	const text = `name: s
workloads: [{name: cpu, instances: [large]}, {name: nginx}]
platforms:
  - {platform: bm, other_cpus: offline}
  - {platform: cn, engines: [crun, docker], provisioning: [pinned], networks: [bridge]}
instances: [xlarge]
`
	read := func() *Spec {
		s, err := Parse("s.yaml", []byte(text), ".", known)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := read()
	if err := s.Put(Placing{}, known); err != nil || !reflect.DeepEqual(s.Platforms, read().Platforms) || s.where == "" {
		t.Errorf("without flags: %+v, %v", s.Platforms, err)
	}
	if err := s.Put(Placing{Platforms: []string{"host", "container:crun", "vm"}, Sizes: []string{"1/1GB", "2/2GB"}, Networks: []string{"host", "none"}}, known); err != nil {
		t.Fatal(err)
	}
	want := []Place{
		{Platform: "bm", OtherCPUs: "offline"},
		{Platform: "cn", Engines: Values{"crun"}, Provisioning: Values{"pinned"}, Networks: Values{"host", "none"}},
		{Platform: "vm", Networks: Values{"host", "none"}},
	}
	if !reflect.DeepEqual(s.Platforms, want) {
		t.Errorf("platforms %+v, want %+v", s.Platforms, want)
	}
	for _, u := range s.Workloads {
		if sizes := s.instances(u); !slices.Equal(sizes, []string{"1/1GB", "2/2GB"}) {
			t.Errorf("%s: sizes %v", u.Name, sizes)
		}
	}
	s = read()
	s.Platforms = append(s.Platforms, Place{Platform: "cn", Engines: Values{"lxc|crun"}, Provisioning: Values{"vanilla"}}, Place{Platform: "cn", Engines: Values{"podman"}})
	if err := s.Put(Placing{Platforms: []string{"cn:crun"}}, known); err != nil || len(s.Platforms) != 2 || !slices.Equal(s.Platforms[1].Engines, Values{"crun"}) {
		t.Errorf("of three places two have the engine: %+v, %v", s.Platforms, err)
	}
	s = read()
	if err := s.Put(Placing{Workload: "nginx"}, known); err != nil || len(s.Workloads) != 1 || s.Workloads[0].Name != "nginx" {
		t.Errorf("one workload of the study: %+v, %v", s.Workloads, err)
	}
	if err := s.Put(Placing{Workload: "redis"}, known); err != nil || len(s.Workloads) != 1 || s.Workloads[0].Name != "redis" {
		t.Errorf("another workload: %+v, %v", s.Workloads, err)
	}
	s = read()
	if err := s.Put(Placing{Provisioning: []string{"vanilla"}}, known); err != nil || s.Platforms[0].Provisioning != nil || !slices.Equal(s.Platforms[1].Provisioning, Values{"vanilla"}) {
		t.Errorf("CPU limits: %+v, %v", s.Platforms, err)
	}
	for want, p := range map[string]Placing{
		`study s: unknown platform "docker"; it is an engine of cn: use cn:docker`: {Platforms: []string{"docker"}},
		`unknown engine "runx"`: {Platforms: []string{"cn:runx"}},
		`"huge"`:                {Sizes: []string{"huge"}},
	} {
		if err := read().Put(p, known); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; want %s", p, err, want)
		}
	}
}
