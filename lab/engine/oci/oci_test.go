//go:build linux

package oci

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/require"
	"tare/lab/engine"
	"tare/lab/engine/conformance"
	"tare/lab/engine/criu"
	"tare/notebook"
)

func TestMain(m *testing.M) {
	conformance.Main(m, subject(Crun), subject(Runc), subject(GVisor))
}

// subject saves its guests where CRIU is installed.
func subject(k engine.Kind) conformance.Subject {
	s := conformance.Of(k)
	_, err := exec.LookPath(criu.Program)
	s.Saves = s.Saves && err == nil
	return s
}

func TestRuntimes(t *testing.T) {
	for _, k := range []engine.Kind{Crun, Runc, GVisor} {
		t.Run(k.Name, func(t *testing.T) {
			_, err := exec.LookPath(k.Program)
			require.That(t, err == nil, k.Program+" ("+k.Install+")")
			conformance.Run(t, subject(k), conformance.Containers)
			t.Run("no hello", func(t *testing.T) { conformance.NoHello(t, subject(k), notebook.Vanilla) })
			if k.RunsHooks {
				t.Run("vendor's hooks", func(t *testing.T) { conformance.VendorHooks(t, subject(k), notebook.Vanilla) })
			}
		})
	}
}

func TestRestored(t *testing.T) {
	require.Program(t, "runc", criu.Program)
	yards := func() []string {
		all, err := filepath.Glob("/tmp/.criu.mntns.*")
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := yards()
	conformance.Restored(t, subject(Runc), conformance.Containers)
	for _, y := range yards() {
		for late := time.Now().Add(10 * time.Second); !slices.Contains(before, y) && exists(y); time.Sleep(10 * time.Millisecond) { // it may belong to a test that runs at the same time
			if time.Now().After(late) {
				t.Errorf("CRIU's %s is left", y)
				break
			}
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestProbe(t *testing.T) {
	require.Root(t)
	_, err := exec.LookPath("runc")
	require.That(t, err == nil, "runc (apt-get install runc)")
	lab := conformance.NewLab(t)
	for program, want := range map[string]notebook.Answer{"runc": notebook.Supported, "no-such-runtime": notebook.NotSupported, "true": notebook.NotSupported} {
		k := kind("trial", program, "install it", false)
		c := k.Probe(t.Context(), lab, k.New(lab), "trial")
		if c.Answer != want || c.Name != "trial" || want == notebook.NotSupported && c.Do == "" {
			t.Errorf("%s: %+v, want %s", program, c, want)
		}
	}
	c := GVisor.Probe(t.Context(), lab, GVisor.New(lab), "gvisor")
	if _, err := exec.LookPath(GVisor.Program); err != nil {
		if c.Answer != notebook.NotSupported || c.Do == "" {
			t.Errorf("gVisor without %s: %+v, want not supported, and how to install it", GVisor.Program, c)
		}
	} else if c.Answer != notebook.Supported {
		t.Errorf("gVisor: %+v, want supported", c)
	}
	for _, l := range GVisor.Limitations {
		if c.Answer == notebook.Supported && !strings.Contains(c.Why, "limitation: "+l.Name+": "+l.Why) {
			t.Errorf("%q does not declare the limitation %+v", c.Why, l)
		}
	}
	c = Runc.Probe(t.Context(), lab, Runc.New(lab), Runc.Saving)
	if _, err := exec.LookPath(criu.Program); err != nil {
		if c.Answer != notebook.NotSupported || !strings.Contains(c.Why, criu.Install) {
			t.Errorf("saving without CRIU: %+v, want not supported, and how to install it", c)
		}
	} else if c.Answer != notebook.Supported || !strings.Contains(c.Why, "went on") {
		t.Errorf("saving: %+v, want supported", c)
	}
	left, err := os.ReadDir(filepath.Join(lab.State, "guests"))
	if err != nil || len(left) > 0 {
		t.Errorf("after the probes: %v, %v; want nothing", left, err)
	}
}
