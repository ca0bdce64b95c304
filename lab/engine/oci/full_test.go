//go:build linux

package oci

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"testing"

	"tare/internal/require"
	"tare/lab/engine"
	"tare/lab/engine/conformance"
	"tare/notebook"
)

// TestFull makes the engines' rungs of the isolation ladder, which have a quota in addition to their CPU set, and looks what is in
// force.
func TestFull(t *testing.T) {
	require.Root(t)
	img, err := engine.EmptyImage(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	lab := conformance.NewLab(t)
	s := engine.Spec{
		ID: "full", Provisioning: notebook.Pinned, Isolation: notebook.IsolationFull, CPUs: []int{0},
		Image:    img,
		Instance: notebook.Instance{Name: "test", Cores: 1, Memory: 256 << 20},
	}
	for _, k := range []engine.Kind{Runc, Crun, GVisor} {
		t.Run(k.Name, func(t *testing.T) {
			_, err := exec.LookPath(k.Program)
			require.That(t, err == nil, k.Program)
			d := k.New(lab)
			g, err := d.Provision(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := g.Destroy(t.Context()); err != nil {
					t.Error(err)
				}
			}()
			l, err := g.Limits()
			if err != nil || math.Abs(l.Quota-1) > 0.001 || l.CPUs != notebook.FormatCPUList(s.CPUs) || l.Memory != s.Instance.Memory {
				t.Errorf("limits %+v, %v; want a quota of 1, CPU 0 and %d bytes", l, err, s.Instance.Memory)
			}
			if k.Name != GVisor.Name {
				pids, err := g.Processes()
				if err != nil {
					t.Fatal(err)
				}
				status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pids[0]))
				if err != nil || !bytes.Contains(status, []byte("\nSeccomp:\t2\n")) {
					t.Errorf("%s%v; want a seccomp filter", status, err)
				}
			}
			if _, err := g.Ruler().Cost(t.Context(), 3); err != nil {
				t.Error(err)
			}
		})
	}
	vanilla := s
	vanilla.Provisioning = notebook.Vanilla
	if g, err := Runc.New(lab).Provision(t.Context(), vanilla); err == nil {
		t.Error("a vanilla container in full isolation was made")
		if err := g.Destroy(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
