package study

import (
	"testing"

	"tare/lab/studyfile"
	"tare/notebook"
	"tare/studies"
	"tare/workloads"
)

// In the studies of the paper that limited bare metal to the instance's cores and memory, bare metal is limited, also on a host that is made
// smaller. They are still planned on a host with two CPUs, where the first cannot go offline.
func TestBareMetalOfThePaper(t *testing.T) {
	two := notebook.Host{CPUs: []notebook.CPU{{ID: 0}, {ID: 1, Core: 1}}, Memory: 32 << 30}
	for _, n := range []string{"pinning", "pinning-small", "chr-small", "provisioning", "provisioning-small", "io", "multitasking", "multitasking-small"} {
		s, err := studyfile.Load(studies.FS, n, known)
		if err != nil {
			t.Fatal(err)
		}
		a, err := s.Ask(workloads.FS, studyfile.Choices{})
		if err != nil {
			t.Fatal(err)
		}
		bare, sizes := 0, map[int]bool{}
		for _, tr := range (&planner{asked: a, host: two}).fitting().Treatments {
			sizes[tr.HostCores] = true
			if tr.Platform == notebook.BM {
				bare++
			}
			if tr.OthersOffline != (tr.Platform == notebook.BM) {
				t.Errorf("%s: %s: the other CPUs offline: %t", n, tr.ID, tr.OthersOffline)
			}
			if tr.MemoryWithheld != tr.OthersOffline {
				t.Errorf("%s: %s: the other memory withheld: %t", n, tr.ID, tr.MemoryWithheld)
			}
		}
		if bare == 0 && n != "pinning" { // its smallest instance has as many cores as the host
			t.Errorf("%s: no bare metal on two CPUs", n)
		}
		if len(s.HostCores) > 0 && len(sizes) < 2 {
			t.Errorf("%s: on two CPUs hosts of %v", n, sizes)
		}
	}
}
