package studyfile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tare/workloads"
)

// A study names what it runs as root on the host before it runs anything there. A user can forbid it.
func TestHostCode(t *testing.T) {
	dir := t.TempDir()
	for name, more := range map[string]string{"plain": "", "prepared": "prepare: [sh, -c, 'id > {scratch}/who']\n"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		text := "name: " + name + "\ntitle: a title\nimage: {suite: trixie, packages: [coreutils]}\ncommand: [\"true\"]\nmetric: {name: time, unit: s}\n" + more
		if err := os.WriteFile(filepath.Join(dir, name, "workload.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const containers, metal, rungs = "{platform: cn, engines: [crun, runc]}", "{platform: bm}", "{platform: cn, engines: [layers], isolation: all}"
	for _, c := range []struct {
		workload, platforms, from string
		want                      []string
	}{
		{"./plain", containers, "", nil},
		{"./plain", metal + ", " + containers, "", []string{"the work on bare metal"}},
		{"./plain", metal + ", " + rungs, "", []string{"the work on bare metal", "the work on the rungs of engine layers"}},
		{"./prepared", containers, "", []string{"the preparation of workload prepared"}},
		{"httpd", containers, "", []string{"the preparation of workload httpd", "the load of workload httpd"}},
		{"httpd", containers, "ssh://root@other", []string{"the preparation of workload httpd"}},
	} {
		text := "name: host-code\nworkloads: [{name: " + c.workload + "}]\nplatforms: [" + c.platforms + "]\ninstances: [1/1GB]\n"
		s, err := Parse("study.yaml", []byte(text), dir, Known{withKernels(), known.Kinds})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		ch := Choices{LoadFrom: c.from}
		a, err := s.Ask(workloads.FS, ch)
		if err != nil {
			t.Fatalf("%s on %s: %v", c.workload, c.platforms, err)
		}
		if got := a.HostCode(); !slices.Equal(got, c.want) {
			t.Errorf("%s on %s: %q; want %q", c.workload, c.platforms, got, c.want)
		}
		ch.NoHostCode = true
		_, err = s.Ask(workloads.FS, ch)
		if (err != nil) != (len(c.want) > 0) || err != nil && !strings.Contains(err.Error(), "--no-host-code: the study would run "+strings.Join(c.want, ", ")+" as root on this host") {
			t.Errorf("%s on %s with --no-host-code: %v", c.workload, c.platforms, err)
		}
	}
}

// A workload that --only leaves out runs nothing on the host.
func TestHostCodeOfChosenWorkloads(t *testing.T) {
	text := "name: host-code\nworkloads: [{name: cpu}, {name: httpd}]\nplatforms: [{platform: bm}]\ninstances: [1/1GB]\n"
	s, err := Parse("study.yaml", []byte(text), t.TempDir(), Known{withKernels(), known.Kinds})
	if err != nil {
		t.Fatal(err)
	}
	for only, most := range map[string]int{"cpu": 1, "httpd": 3} {
		a, err := s.Ask(workloads.FS, Choices{Only: Only{byWorkload: only}})
		if err != nil {
			t.Fatal(err)
		}
		if got := a.HostCode(); len(got) != most {
			t.Errorf("--only workload=%s: %q; want %d parts", only, got, most)
		}
	}
}
