//go:build linux

package podman

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tare/internal/require"
	"tare/lab/device"
	"tare/lab/engine"
	"tare/lab/engine/conformance"
	"tare/notebook"
)

var subject = func() conformance.Subject {
	s := conformance.Of(Kind)
	s.Descriptions = device.Dirs[len(device.Dirs)-1]
	return s
}()

func TestMain(m *testing.M) { conformance.Main(m, subject) }

func need(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath(Kind.Program)
	require.That(t, err == nil, Kind.Program+" ("+Kind.Install+")")
}

// The tests' names are short: they are in the paths of their state folders, and Podman wants that short.
func TestAll(t *testing.T) {
	need(t)
	conformance.Run(t, subject, conformance.Containers)
}

func TestNoHello(t *testing.T) {
	need(t)
	conformance.NoHello(t, subject, notebook.Vanilla)
}

func TestLongPath(t *testing.T) {
	d := Kind.New(engine.Env{State: "/" + strings.Repeat("x", 50)}).(*Driver)
	_, err := d.store()
	if _, ok := errors.AsType[*engine.UnsupportedError](err); !ok {
		t.Errorf("a state folder with a long path: %v, want an *engine.UnsupportedError", err)
	}
}

// Podman itself knows of no container when all guests are destroyed, and the user's Podman never did.
func TestProbe(t *testing.T) {
	need(t)
	env := conformance.NewLab(t)
	if c := Kind.Probe(t.Context(), env, Kind.New(env), Kind.Name); c.Answer != notebook.Supported {
		t.Errorf("podman: %+v, want supported", c)
	}
	out, err := store{filepath.Join(env.State, "podman")}.command(context.Background(), Kind.Program, env.State, "ps", "--all", "--quiet").CombinedOutput()
	if err != nil || len(strings.TrimSpace(string(out))) > 0 {
		t.Errorf("podman ps: %s, %v; want no container", out, err)
	}
}

func TestArguments(t *testing.T) {
	const folder = "/state/guests/x"
	s := engine.Spec{
		ID: "x", Provisioning: notebook.Pinned, Isolation: notebook.IsolationFull, CPUs: []int{0, 2},
		Instance: notebook.Instance{Cores: 2, Memory: 1 << 30},
	}
	args, err := arguments(s, folder, folder+"/root", folder+"/run")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{
		{"--cpu-quota", "200000"}, {"--cpuset-cpus", "0,2"}, {"--memory", "1073741824"}, {"--network", "none"},
		{"--rootfs", "/state/guests/x/root", engine.RulerArgs[0]},
	} {
		i := slices.Index(args, want[0])
		if i < 0 || !slices.Equal(args[i:i+len(want)], want) {
			t.Errorf("%q are not among %q", want, args)
		}
	}
	s.Devices = device.Edits{
		Names: []string{"v.org/c=d"}, Dirs: device.Dirs[:1], Nodes: []device.Node{{Host: "/dev/null", Path: "/dev/x"}},
		Mounts: []device.Mount{{Host: "/etc/passwd", Path: "/x"}}, Hooks: []device.Hook{{When: "createContainer"}},
	}
	args, err = arguments(s, folder, "/root", "/run")
	if i := slices.Index(args, "--device"); err != nil || i < 0 || args[i+1] != "v.org/c=d" || strings.Contains(strings.Join(args, " "), "/dev/x") || strings.Contains(strings.Join(args, " "), "target=/x") {
		t.Errorf("a device with a hook: %q, %v; want only its name", args, err)
	}
	s.Devices.Dirs = []string{"/elsewhere"}
	_, err = arguments(s, folder, "/root", "/run")
	if _, ok := errors.AsType[*engine.UnsupportedError](err); !ok {
		t.Errorf("a device with a hook, described where Podman does not look: %v, want an *engine.UnsupportedError", err)
	}
	s.Devices = device.Edits{}
	_, err = arguments(s, folder, "/root", "/a,b")
	if _, ok := errors.AsType[*engine.UnsupportedError](err); !ok {
		t.Errorf("a path with a comma: %v, want an *engine.UnsupportedError", err)
	}
}

func TestVendor(t *testing.T) {
	need(t)
	conformance.VendorHooks(t, subject, notebook.Vanilla)
}
