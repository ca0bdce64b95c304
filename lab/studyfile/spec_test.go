package studyfile

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tare/notebook"
	"tare/studies"
	"tare/workloads"
)

const small = `name: small
workloads:
  - name: cpu
    params: {millions: [10, 20]}
platforms:
  - platform: bm
  - platform: cn
    engines: [crun]
    provisioning: [vanilla]
instances: [1/1GB, large]
design:
  rounds: {floor: 2, cap: 3}
`

func TestShippedStudiesLoad(t *testing.T) {
	names := Shipped(studies.FS)
	if len(names) < 2 {
		t.Fatalf("shipped studies: %v, want quick and pinning at least", names)
	}
	for _, n := range names {
		s, err := Load(studies.FS, n, known)
		if err != nil {
			t.Errorf("%s: %v", n, err)
			continue
		}
		if s.Name != n {
			t.Errorf("%s.yaml names itself %q", n, s.Name)
		}
		us, err := s.works(workloads.FS)
		if err != nil {
			t.Errorf("%s: %v", n, err)
		}
		if err := s.drawable(us); err != nil {
			t.Error(err)
		}
	}
}

func TestImpossibleFigures(t *testing.T) {
	for figure, want := range map[string]string{
		"{name: F, title: T, workload: cpu, by: millions}":                         "",
		"{name: F, title: T, workload: cpu, by: network, params: {millions: 9}}":   "",
		"{name: F, title: T, workload: cpu, by: millions, metric: execution time}": "",
		"{name: F, title: T, workload: cpu, by: millions, metric: rate}":           `study small: figure "F": metric: "rate": must be execution time`,
		"{name: F, title: T, workload: ffmpeg, by: instance}":                      `study small: figure "F": workload: "ffmpeg": must be a workload of this study: cpu`,
		"{name: F, title: T, workload: cpu, by: instances}":                        `study small: figure "F": by: "instances": must be platform, engine, accelerator, kernel, provisioning, instance, network, isolation, machine, host_cores or millions`,
		"{name: F, title: T, workload: cpu, by: instance, params: {frames: 9}}":    `study small: figure "F": params: workload cpu has no parameter "frames"`,
		"{name: F, title: T, by: workload}":                                        "",
		"{name: F, title: T, by: workload, params: {frames: 9}}":                   `study small: figure "F": params: no workload of this study has a parameter "frames"`,
		"{name: F, title: T, by: workload, metric: rate}":                          `study small: figure "F": metric: "rate": workload cpu does not have it`,
	} {
		s, err := Parse("s.yaml", []byte(small+"figures: ["+figure+"]\n"), ".", known)
		if err != nil {
			t.Fatal(err)
		}
		us, err := s.works(workloads.FS)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := s.drawable(us); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", figure, got, want)
		}
	}
}

func TestMistakesAreReportedWithTheirLine(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"unknown key", "design:", "desing:", `s.yaml:11: unknown key desing`},
		{"unknown platform", "platform: cn", "platform: lxd", `s.yaml:7: unknown platform "lxd"; must be one of bm, cn, vm, vmcn`},
		{"an engine for a platform", "platform: cn", "platform: docker", `s.yaml:7: unknown platform "docker"; it is an engine: use platform: cn with engines: [docker]`},
		{"unknown engine", "[crun]", "[kata]", `s.yaml:8: unknown engine "kata" for cn; must be docker, crun, runc, podman, containerd, cri, lxc, gvisor or layers`},
		{"unknown provisioning", "[vanilla]", "[vanila]", `s.yaml:9: unknown provisioning "vanila"; must be vanilla, pinned or whole`},
		{"unknown instance", "large", "huge", `s.yaml:10: unknown size "huge"`},
		{"no instances", "[1/1GB, large]", "[]", `s.yaml:10: instances: is empty`},
		{"rounds", "cap: 3", "cap: 1", `s.yaml:12: design: rounds: cap: 1: must be from 2 to 100000`},
		{"no trials", "rounds: {floor: 2, cap: 3}", "trials: 0", `s.yaml:12: design: trials: 0: must be from 1 to 100000`},
		{"not a number", "floor: 2", "floor: two", `s.yaml:12: `},
		{"malformed", "instances: [1/1GB", "instances: [[1/1GB", `s.yaml`},
		{"a list for a value", "millions: [10, 20]", "millions: {a: b}", `s.yaml:4: must be a value or a list of values`},
		{"bad name", "name: small", "name: Small!", `s.yaml:1: name: "Small!": must be at most 40 lower-case letters`},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(small, c.from, c.to, 1)
			if text == small {
				t.Fatal("the case changes nothing")
			}
			_, err := Parse("s.yaml", []byte(text), ".", known)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant … %s …", err, c.want)
			} else if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
	if _, err := Load(studies.FS, "nosuch", known); err == nil || !strings.Contains(err.Error(), `unknown study "nosuch": `) {
		t.Errorf("unknown study: %v", err)
	}
	if _, err := Parse("s.yaml", nil, ".", known); err == nil || err.Error() != "s.yaml: is empty" {
		t.Errorf("empty file: %v", err)
	}
}

// A study of memory measures each guest once, and its workload must keep running.
func TestMistakesInMemoryStudies(t *testing.T) {
	const counts = "must be numbers from 1 to 1000, each greater than the one before"
	const once = "s.yaml:10: memory: a guest's memory is measured once: set trials: 1 and warmups: 0 in design:"
	for _, c := range []struct{ memory, more, want string }{
		{"{guests: [1, 2, 4], ksm: paper}", "", ""},
		{"{guests: [3], ksm: kernel}", "", ""},
		{"{}", "", ""},
		{"{guests: [0]}", "", "s.yaml:10: memory: guests: [0]: " + counts},
		{"{guests: [-1, 2]}", "", "s.yaml:10: memory: guests: [-1 2]: " + counts},
		{"{guests: [2, 1]}", "", "s.yaml:10: memory: guests: [2 1]: " + counts},
		{"{guests: [1, 1]}", "", "s.yaml:10: memory: guests: [1 1]: " + counts},
		{"{guests: [1, 1001]}", "", "s.yaml:10: memory: guests: [1 1001]: " + counts},
		{"{guests: [one]}", "", "s.yaml:10: "},
		{"{guest: [1]}", "", "s.yaml:10: unknown key guest"},
		{"{ksm: always}", "", `s.yaml:10: memory: ksm: "always": must be paper or kernel`},
		{"{published_of: none}", "", `s.yaml:10: memory: published_of: "none": must be a workload of this study`},
		{"{guests: [1]}", "  trials: 2\n", once},
		{"{guests: [1]}", "  warmups: 1\n", once},
		{"{guests: [1]}", "capacity: {objective: p99=50ms}\n", "s.yaml:14: capacity: a study measures one thing, and this study already has memory: leave out one of them"},
		{"{guests: [1]}", "load_from: ssh://elsewhere\n", "s.yaml:10: memory: a guest's memory is measured once, with a load from this host: leave out load_from:"},
		{"{guests: [1]}", "neighbours: {cpu: 1}\n", "s.yaml:14: neighbours: the study has memory:, and a guest's memory is measured once: leave out one of them"},
		{"{guests: [1]}", "memroy: {guests: [1]}\n", "s.yaml:14: unknown key memroy: did you mean memory? The keys here are name, "},
		{"{guests: [1]}", "fit: {metric: p95}\n", "s.yaml:14: unknown key fit: "},
	} {
		text := strings.Replace(small, "instances:", "memory: "+c.memory+"\ninstances:", 1) + c.more // the design is the last in it
		_, err := Parse("s.yaml", []byte(text), ".", known)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("memory: %s%s: got %v\nwant %s", c.memory, c.more, err, c.want)
		}
	}

	// A key without a value counts as absent.
	for _, none := range []string{"memory:\n", "memory: null\ncapacity: ~\n"} {
		if s, err := Parse("s.yaml", []byte(small+none), ".", known); err != nil || s.config != nil || len(s.Measured) > 0 {
			t.Errorf("%q: %v, %v", none, s, err)
		}
	}

	// A workload that never ends cannot be timed.
	for text, want := range map[string]string{
		"":                        "study small: workload shell never ends, so it has no run time: use a study with memory: or paging:",
		"memory: {guests: [1]}\n": "",
	} {
		s, err := Parse("s.yaml", []byte(strings.Replace(small, "  - name: cpu\n    params: {millions: [10, 20]}\n", "  - name: shell\n", 1)+text), ".", known)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if _, err := s.Ask(workloads.FS, Choices{}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestUnknownWorkloadAndParameter(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"name: cpu", "name: npu", `s.yaml:3: unknown workload "npu": did you mean cpu? `},
		{"millions", "milions", `s.yaml:4: workload cpu has no parameter "milions"; it has millions`},
		{"[10, 20]", "[10, many]", `s.yaml:4: workload cpu: millions="many": must be a whole number from 1 to 9999999 (million steps; `},
	} {
		s, err := Parse("s.yaml", []byte(strings.Replace(small, c.from, c.to, 1)), ".", known)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.works(workloads.FS); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want … %s …", err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	for _, n := range Shipped(studies.FS) {
		text, err := studies.FS.ReadFile(n + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("name: x\nworkloads: [{name: cpu, params: {millions: [[1]]}}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse("s.yaml", text, ".", known)
		if err == nil {
			for _, i := range s.Instances {
				if _, err := notebook.ParseInstance(i); err != nil && i != notebook.HostSize {
					t.Errorf("accepted instance %q: %v", i, err)
				}
			}
		} else if !strings.HasPrefix(err.Error(), "s.yaml") {
			t.Errorf("no file in %q", err)
		}
	})
}

func TestOnly(t *testing.T) {
	o, err := ParseOnly("platform=cn,provisioning=pinned")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		t    notebook.Treatment
		want bool
	}{
		{notebook.Treatment{Platform: "bm"}, true},
		{notebook.Treatment{Platform: "cn", Provisioning: "pinned"}, true},
		{notebook.Treatment{Platform: "cn", Provisioning: "vanilla"}, false},
		{notebook.Treatment{Platform: "vm", Provisioning: "pinned"}, false},
	} {
		if got := o.keeps(c.t); got != c.want {
			t.Errorf("%+v: %v", c.t, got)
		}
	}
	s, err := Parse("s.yaml", []byte(small), ".", known)
	if err != nil {
		t.Fatal(err)
	}
	ws, err := s.works(workloads.FS)
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{"platform=cn": "", "platform=vm": "has bm, cn", "engine=docker": "has crun", "instance=huge": "has 1/1GB, large", "workload=ffmpeg": "has cpu"} {
		o, err := ParseOnly(value)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.known(s.Name, s.values(ws, kernels{})); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", value, err, want)
		}
	}
	for _, bad := range []string{"cn", "platform=", "color=red", "platform=cn,platform=vm"} {
		if _, err := ParseOnly(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestUsersOwnCommandAsStudyFile(t *testing.T) {
	s := &Spec{Name: "bench", Workloads: []Use{{Name: "command", Image: "./layout", Command: []string{"sh", "-c", "echo {x}"}}},
		Platforms: []Place{{Platform: "bm"}, {Platform: "cn", Engines: []string{"crun|runc"}}}, Instances: []string{"1/1GB"},
		Design: Design{Rounds: Rounds{Floor: 3, Cap: 9}, Precision: "2%"}}
	if err := s.Complete(known); err != nil {
		t.Fatal(err)
	}
	again, err := Parse("again.yaml", []byte(s.Source), ".", known)
	if err != nil {
		t.Fatalf("%v in\n%s", err, s.Source)
	}
	again.Source, again.where = s.Source, "" // the other was not read from a file
	if !reflect.DeepEqual(again, s) {
		t.Errorf("read again: %+v\nwant %+v", again, s)
	}
	w := again.Workloads[0].own(".")
	if w == nil || w.Image.Reference != "./layout" || w.Command[2] != "echo {x}" {
		t.Errorf("workload %+v", w)
	}
	no := func(t notebook.Treatment) bool { return t.Engine == "runc" }
	for _, tr := range (&Asked{Spec: again}).Treatments(Work{Workload: w}, notebook.Host{}, func(string) string { return "" }, no) {
		if tr.Platform == notebook.CN && tr.Engine != "runc" {
			t.Errorf("engine %q of crun|runc, although the host supports only runc", tr.Engine)
		}
	}
}

func TestMachinesOfAStudy(t *testing.T) {
	const text = `name: machines
workloads: [{name: cpu}]
platforms:
  - platform: bm
  - {platform: vm, provisioning: [pinned], machines: [usual, cache=none aio=native, aio=native cache=none, "threads=2  huge-pages=2M"]}
instances: [1/1GB]
design: {rounds: {floor: 2, cap: 3}}
`
	s, err := Parse("s.yaml", []byte(text), ".", known)
	if err != nil {
		t.Fatal(err)
	}
	us, err := s.works(workloads.FS)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{} // machines by the treatment's ID
	for _, tr := range (&Asked{Spec: s}).Treatments(us[0], notebook.Host{}, func(string) string { return notebook.KVM }, func(notebook.Treatment) bool { return true }) {
		_, id, _ := strings.Cut(tr.ID, " ")
		got[id] = tr.Machine
	}
	want := map[string]string{
		"bm 1/1GB": "", "bm 1/1GB aa": "", "vm qemu kvm pinned 1/1GB": "",
		"vm qemu kvm pinned 1/1GB machine cache=none aio=native": "cache=none aio=native", "vm qemu kvm pinned 1/1GB machine huge-pages=2M threads=2": "huge-pages=2M threads=2",
	}
	if !maps.Equal(got, want) {
		t.Errorf("treatments\n%q\nwant\n%q", got, want)
	}
	own, err := Parse("s.yaml", []byte(strings.Replace(text, "{name: cpu}", "{name: cpu, machines: [usual, cpu=qemu64]}", 1)), ".", known)
	if err != nil {
		t.Fatal(err)
	}
	if us, err = own.works(workloads.FS); err != nil {
		t.Fatal(err)
	}
	var machines []string
	for _, tr := range (&Asked{Spec: own}).Treatments(us[0], notebook.Host{}, func(string) string { return notebook.KVM }, func(notebook.Treatment) bool { return true }) {
		machines = append(machines, tr.Machine)
	}
	if want := []string{"", "", "", "cpu=qemu64"}; !slices.Equal(machines, want) { // bare metal, its A/A control, and two VMs
		t.Errorf("with machines of a workload: %q, want %q", machines, want)
	}
	for _, c := range []struct{ from, to, want string }{
		{"{name: cpu}", "{name: cpu, machines: [cpu=max]}", `s.yaml:2: machine "cpu=max": cpu=max: must be host, or a CPU model`},
		{"cache=none aio=native", "aio=native", `s.yaml:5: machine "aio=native": aio=native bypasses the page cache; it needs cache=none or cache=directsync`},
		{"cache=none aio=native", "unsafe", `s.yaml:5: machine "unsafe": unknown word "unsafe"; `},
		{"- platform: bm", "- {platform: bm, machines: [cache=none]}", `s.yaml:4: machines: is only for virtual machines, and this platform is bm: leave it out`},
		{"platform: vm", "platform: cn, engines: [crun]", `s.yaml:5: machines: is only for virtual machines, and this platform is cn`},
	} {
		if _, err := Parse("s.yaml", []byte(strings.Replace(text, c.from, c.to, 1)), ".", known); err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s:\n%v\nwant one line that begins with\n%s", c.to, err, c.want)
		}
	}
}

func TestHostCoresNetworksAndInstances(t *testing.T) {
	s, err := Parse("s.yaml", []byte(`name: axes
workloads:
  - {name: cpu, instances: [2/1GB], rounds: 6}
platforms:
  - platform: bm
  - {platform: cn, engines: [crun], provisioning: [vanilla], networks: [host, none]}
instances: [1/1GB]
host_cores: [2, all]
figures:
  - {name: Figure 7, title: CHR, workload: cpu, by: host_cores}
design: {rounds: {floor: 2, cap: 3}}
`), ".", known)
	if err != nil {
		t.Fatal(err)
	}
	us, err := s.works(workloads.FS)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tr := range (&Asked{Spec: s}).Treatments(us[0], notebook.Host{}, func(string) string { return "" }, func(notebook.Treatment) bool { return true }) {
		_, id, _ := strings.Cut(tr.ID, " ")
		got = append(got, id)
		if tr.Rounds != 6 {
			t.Errorf("%s: %d rounds, want 6", tr.ID, tr.Rounds)
		}
	}
	want := []string{
		"bm 2/1GB on 2 CPUs", "bm 2/1GB on 2 CPUs aa", "cn crun vanilla 2/1GB network host on 2 CPUs", "cn crun vanilla 2/1GB network none on 2 CPUs",
		"bm 2/1GB", "bm 2/1GB aa", "cn crun vanilla 2/1GB network host", "cn crun vanilla 2/1GB network none",
	}
	if !slices.Equal(got, want) {
		t.Errorf("treatments\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for text, want := range map[string]string{
		"host_cores: [some]":   `s.yaml:1: host_cores: "some": must be a number of CPUs, or all`,
		"figures: [{name: x}]": "s.yaml:1: figures: must be {name: …",
	} {
		_, err := Parse("s.yaml", []byte(text+"\nname: x\nworkloads: [{name: cpu}]\nplatforms: [{platform: bm}]\ninstances: [1/1GB]\n"), ".", known)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"{platform: bm, other_cpus: away}":                            `s.yaml:3: other_cpus: "away": must be offline or online`,
		"{platform: bm, other_memory: away}":                          `s.yaml:3: other_memory: "away": must be withheld or free`,
		"{platform: vm, other_memory: withheld}":                      "s.yaml:3: other_memory: withheld is only for bm, and this platform is vm: leave it out",
		"{platform: cn, other_cpus: offline}":                         "s.yaml:3: other_cpus: offline is only for bm, and this platform is cn: leave it out",
		"{platform: bm, other_cpus: offline}]\nneighbours: [{cpu: 1}": "s.yaml:3: other_cpus: offline is for one guest at a time: leave it out, or neighbours:",
		"{platform: bm, other_cpus: offline}]\nmemory: {guests: [1, 2]}\ndesign: {trials: 1, warmups: 0}\nclaims: [memory": "s.yaml:3: other_cpus: offline is for one guest at a time: leave it out, or memory:",
	} {
		_, err := Parse("s.yaml", []byte("name: x\nworkloads: [{name: cpu}]\nplatforms: ["+text+"]\ninstances: [1/1GB]\n"), ".", known)
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// A figure may name a kind's metric by its name in folders of format 1. A study without a kind leaves names as they are.
func TestFiguresByEarlierNames(t *testing.T) {
	for kind, want := range map[string]string{"memory: {guests: [1, 2]}\n": "guest_pss_alone", "": "PSS alone"} {
		s, err := Parse("s.yaml", []byte("name: x\nworkloads: [{name: shell}]\nplatforms: [{platform: bm}]\ninstances: [1/1GB]\n"+kind+
			"design: {trials: 1, warmups: 0}\nfigures: [{name: F, title: t, workload: shell, metric: PSS alone, by: instance}]\n"), ".", known)
		if err != nil || s.Figures[0].Metric != want {
			t.Errorf("%q: %v, %+v, want %s", kind, err, s, want)
		}
	}
}

// A study of memory draws only those metrics of memory that its figures name.
func TestFiguresOfMemory(t *testing.T) {
	s, err := Load(studies.FS, "footprint", known)
	if err != nil {
		t.Fatal(err)
	}
	us, err := s.works(workloads.FS)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.drawable(us); err != nil {
		t.Error(err)
	}
	var named, drawn []string
	for _, f := range s.Figures {
		named = append(named, f.Metric)
	}
	_, also := s.config.Metrics(us[0].Workload, named)
	for _, of := range also {
		if of.Better != "" {
			drawn = append(drawn, of.Name)
		}
	}
	if want := []string{"guest_pss_alone", "guest_pss_alone_ksm"}; !slices.Equal(drawn, want) {
		t.Errorf("drawn: %q, want %q", drawn, want)
	}
	s.Figures[0].Metric = "the weather"
	if err := s.drawable(us); err == nil || !strings.Contains(err.Error(), `metric: "the weather": must be guest_pss, guest_rss, guest_uss, guest_pss_ksm, guest_pss_alone, `) {
		t.Errorf("%v", err)
	}
}
