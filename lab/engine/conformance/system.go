//go:build linux

package conformance

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"tare/internal/require"
	"tare/lab/ruler"
	"tare/notebook"
)

// System checks that a guest can be a whole system (engine.Kind.Systems): the image's own init is its first process, the ruler
// answers too, both end with the guest, and nothing of the guest remains.
func System(t *testing.T, s Subject, e Expectations) {
	require.Root(t)
	e.Memory = memory
	r := prepare(t, s, e, NewLab(t))
	before := r.snapshot(t)
	spec := r.spec(t, notebook.Pinned, 1)
	spec.System = true
	g := r.provision(t, spec)
	// The ruler may answer before process 1 has become the init.
	const is = "until grep -q probe /proc/1/comm; do sleep 0.05; done"
	res, _, err := g.Ruler().Run(t.Context(), ruler.Order{
		Argv: []string{"/bin/sh", "-c", is}, Env: []string{"PATH=/bin"}, Timeout: e.patience(20 * time.Second), OutputLimit: 4096,
	})
	if err != nil || res.Error != "" || res.Exit != 0 || res.TimedOut {
		t.Fatalf("what process 1 of the system is: %+v, %v", res, err)
	}
	pids, err := g.Processes()
	if err != nil || len(pids) == 0 {
		t.Fatalf("its processes: %v, %v", pids, err)
	}
	if e.SharesKernel {
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pids[0]))
		if err != nil || strings.TrimSpace(string(comm)) != "probe" {
			t.Errorf("the first of its processes is %q (%v), want its init, probe", comm, err)
		}
		if len(pids) != 2 {
			t.Errorf("it has the processes %v, want its init and the ruler", pids)
		}
	}
	r.end(t, before, g, spec)
}
