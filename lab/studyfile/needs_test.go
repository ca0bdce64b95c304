package studyfile

import (
	"slices"
	"strings"
	"testing"

	"tare/workloads"
)

// Needs lists the workloads and engines that a machine without a network must have, or says which one it cannot have.
func TestNeeds(t *testing.T) {
	const text = `name: it
workloads: [{name: cpu}, {name: io}]
platforms: [{platform: bm}, {platform: cn, engines: ["crun|runc"]}, {platform: vm}]
instances: [1/1GB]
`
	s, err := Parse("it.yaml", []byte(text), ".", known)
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.Needs(workloads.FS)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, w := range n.Workloads {
		names = append(names, w.Name)
	}
	for _, k := range n.Engines {
		names = append(names, k.String())
	}
	if want := []string{"cpu", "io", "cn with crun", "vm with qemu"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	s, err = Parse("it.yaml", []byte(strings.Replace(text, "{name: io}", "{name: mine, image: alpine, command: [true]}", 1)), ".", known)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Needs(workloads.FS); err == nil || !strings.Contains(err.Error(), "workload mine has the image alpine, but the machine that runs the study has neither this host's files nor a network") {
		t.Errorf("%v", err)
	}
}
