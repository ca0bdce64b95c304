//go:build linux

package layers_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"tare/internal/require"
	"tare/lab/engine"
	"tare/lab/engine/conformance"
	"tare/lab/engine/layers"
	"tare/notebook"
)

// TestRungs makes a guest of every rung. That it has its layers, and no other, the driver reads in the kernel's files before it
// gives a guest out; here the two that nothing else shows are tried.
func TestRungs(t *testing.T) {
	require.Root(t)
	img, err := engine.EmptyImage(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	lab := conformance.NewLab(t)
	lab.Entry = os.Args[0]
	d := layers.Kind.New(lab)
	s := engine.Spec{
		CPUs: []int{0}, Image: img, Instance: notebook.Instance{Name: "test", Cores: 1, Memory: 256 << 20},
	}
	for _, s.Isolation = range slices.Concat(notebook.Rungs, notebook.SingleLayers) {
		t.Run(s.Isolation, func(t *testing.T) {
			s.ID = "rung-" + s.Isolation
			g, err := d.Provision(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := g.Destroy(t.Context()); err != nil {
					t.Error(err)
				}
			}()
			if _, err := g.Ruler().Cost(t.Context(), 3); err != nil {
				t.Error(err)
			}
			pids, err := g.Processes()
			if err != nil || len(pids) == 0 {
				t.Fatalf("Processes: %v, %v", pids, err)
			}
			mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pids[0]))
			if err != nil {
				t.Fatal(err)
			}
			top := ""
			for line := range strings.Lines(string(mounts)) {
				if f := strings.Fields(line); f[4] == "/" {
					_, top, _ = strings.Cut(line, " - ")
				}
			}
			if layers.Has(s.Isolation, "mount") && strings.HasPrefix(top, "overlay ") != layers.Has(s.Isolation, "overlay") {
				t.Errorf("the root is %s", top)
			}
			// By the host's processes' own list of mounts it is told apart whether there are others' in it.
			if foreign := strings.Contains(string(mounts), " /sys/fs/cgroup"); foreign && layers.Has(s.Isolation, "mount") {
				t.Errorf("the guest has mounts of the host:\n%s", mounts)
			}
			want := engine.NetworkNote(notebook.NetHost)
			if layers.Has(s.Isolation, "network") {
				want = engine.NetworkNote("") // the spec names no bridge
			}
			if f := g.Facts(); f.Kernel == "" || len(f.Notes) != 1 || !f.Notes[0].Equal(want) {
				t.Errorf("facts %+v; want %v", f, want)
			}
		})
	}
	for what, change := range map[string]func(*engine.Spec){
		"half a core":        func(s *engine.Spec) { s.Instance.Cores = 0.5 },
		"the host's network": func(s *engine.Spec) { s.Network = &engine.Network{Mode: notebook.NetHost} },
	} {
		c := s
		c.ID, c.Isolation = "rung-cannot", "network"
		change(&c)
		_, err := d.Provision(t.Context(), c)
		if _, ok := errors.AsType[*engine.UnsupportedError](err); !ok {
			t.Errorf("%s: %v, want an *engine.UnsupportedError", what, err)
		}
	}
	s.ID, s.Isolation = "rung-unknown", "armour"
	if _, err := d.Provision(t.Context(), s); err == nil || !strings.Contains(err.Error(), "one of cgroup, quota, memory") {
		t.Errorf("an unknown layer: %v", err)
	}
}
