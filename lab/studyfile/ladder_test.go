package studyfile

import (
	"slices"
	"strings"
	"testing"

	"tare/notebook"
	"tare/workloads"
)

// climb is a study of the isolation ladder in which the lines of platforms begin at line 5.
const climb = `name: climb
workloads: [{name: WORKLOAD}]
platforms:
  - platform: bm
  - {platform: cn, engines: [layers], isolation: all}
  - {platform: cn, engines: [docker, runc], isolation: [full]}
instances: [1/1GB]
figures: [{name: Ladder, title: T, workload: WORKLOAD, by: isolation}]
design: {rounds: {floor: 2, cap: 3}}
`

// rungs are the treatments of the study, and their names without the workload's.
func rungs(t *testing.T, name string) (ids []string, all []notebook.Treatment) {
	t.Helper()
	s, err := Parse("s.yaml", []byte(strings.ReplaceAll(climb, "WORKLOAD", name)), ".", known)
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.Ask(workloads.FS, Choices{})
	if err != nil {
		t.Fatal(err)
	}
	all = a.Treatments(a.Works[0], notebook.Host{}, func(string) string { return "" }, func(notebook.Treatment) bool { return true })
	for _, tr := range all {
		ids = append(ids, strings.TrimPrefix(tr.ID, tr.Label()+" "))
	}
	return ids, all
}

func TestLadderRungs(t *testing.T) {
	got, all := rungs(t, "ladder-cpu")
	want := []string{"bm 1/1GB", "bm 1/1GB aa"}
	for _, l := range notebook.Rungs {
		want = append(want, "cn layers "+l+" 1/1GB")
	}
	want = append(want, "cn docker full pinned 1/1GB", "cn runc full pinned 1/1GB")
	if !slices.Equal(got, want) {
		t.Errorf("treatments\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if single := (Place{Isolation: Values{"each", "all"}}).isolation(); len(single) != 2*len(notebook.Rungs)-1 || single[1] != "only-quota" || !slices.Contains(single, "quota") {
		t.Errorf("each and all: %v", single)
	}
	if tr := all[len(all)-1]; tr.Isolation != notebook.IsolationFull || tr.Provisioning != notebook.Pinned || tr.Network != "" {
		t.Errorf("an engine's rung: %+v", tr)
	}

	got, _ = rungs(t, "ladder-network")
	for _, want := range []string{
		"cn layers cgroup 1/1GB network host", "cn layers mount 1/1GB network host", "cn layers network 1/1GB network none",
		"cn layers overlay 1/1GB network none", "cn layers bridge 1/1GB network bridge", "cn runc full pinned 1/1GB network bridge",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, strings.Join(got, "\n"))
		}
	}
}

func TestMistakesInLadders(t *testing.T) {
	layers, full := "{platform: cn, engines: [layers], isolation: all}", "{platform: cn, engines: [docker, runc], isolation: [full]}"
	text := strings.ReplaceAll(climb, "WORKLOAD", "cpu")
	for _, c := range []struct{ from, to, want string }{
		{layers, "{platform: cn, engines: [layers]}", `s.yaml:5: engine layers: needs isolation: all, each, or a list of cgroup, quota, `},
		{layers, "{platform: cn, engines: [layers], isolation: [cgroup, armour]}", `s.yaml:5: unknown layer "armour"; must be all, each, or a list of cgroup, quota, `},
		{layers, "{platform: cn, engines: [layers], isolation: full}", `s.yaml:5: unknown layer "full"; must be all, each, or a list of cgroup`},
		{layers, "{platform: cn, engines: [layers, docker], isolation: all}", `s.yaml:5: engine layers: must be the only engine here: `},
		{layers, "{platform: cn, engines: [layers|docker], isolation: all}", `s.yaml:5: engine layers: must be the only engine here: `},
		{layers, "{platform: cn, engines: [layers], isolation: all, provisioning: [pinned]}", `s.yaml:5: engine layers: takes no provisioning:`},
		{layers, "{platform: cn, engines: [layers], isolation: all, networks: [host]}", `s.yaml:5: networks: a rung of the isolation ladder has the network of its layers`},
		{layers, "{platform: vm, isolation: all}", `s.yaml:5: isolation: is only for cn, and this platform is vm: leave it out`},
		{full, "{platform: cn, engines: [docker], isolation: [seccomp]}", `s.yaml:6: isolation "seccomp": must be full; single layers need engines: [layers]`},
		{full, "{platform: cn, engines: [docker], isolation: full, provisioning: [vanilla]}", `s.yaml:6: isolation full: has a CPU set: `},
	} {
		bad := strings.Replace(text, c.from, c.to, 1)
		if bad == text {
			t.Fatalf("%s changes nothing", c.to)
		}
		_, err := Parse("s.yaml", []byte(bad), ".", known)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s:\n%v\nwant one line that begins with\n%s", c.to, err, c.want)
		}
	}
	if _, err := Parse("s.yaml", []byte(text), ".", known); err != nil {
		t.Error(err)
	}
}

func TestOnlySelectsRungs(t *testing.T) {
	s, err := Parse("s.yaml", []byte(strings.ReplaceAll(climb, "WORKLOAD", "cpu")), ".", known)
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]int{"isolation=seccomp": 3, "isolation=full": 4, "engine=layers": 2 + len(notebook.Rungs), "isolation=none": -1} {
		o, err := ParseOnly(value)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		a, err := s.Ask(workloads.FS, Choices{Only: o})
		if err == nil {
			n = len(a.Treatments(a.Works[0], notebook.Host{}, func(string) string { return "" }, func(notebook.Treatment) bool { return true }))
		}
		if (err != nil) != (want < 0) || want >= 0 && n != want {
			t.Errorf("%s keeps %d treatments (%v), want %d", value, n, err, want)
		}
	}
}
