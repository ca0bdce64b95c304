//go:build linux

package oci

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/require"
	"tare/lab/engine"
	"tare/lab/engine/conformance"
	"tare/lab/ruler"
	"tare/notebook"
)

// The driver tells records and probes that gVisor has its own kernel, and which threads are that kernel's. If the kernel dies as for lack of
// memory, it says so.
func TestGVisorGuest(t *testing.T) {
	require.Root(t)
	_, err := exec.LookPath(GVisor.Program)
	require.That(t, err == nil, GVisor.Program+" ("+GVisor.Install+")")
	img, err := engine.EmptyImage(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	lab := conformance.NewLab(t)
	g, err := GVisor.New(lab).Provision(t.Context(), engine.Spec{
		ID: "gvisor-guest", Provisioning: notebook.Vanilla, Image: img,
		Instance: notebook.Instance{Name: "test", Cores: 1, Memory: 256 << 20},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.Destroy(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	f := g.Facts()
	if f.Kernel == "" || f.Kernel == unix.ByteSliceToString(u.Release[:]) || !slices.ContainsFunc(f.Notes, func(n *notebook.Message) bool { return n.Is("gvisor-kernel") }) {
		t.Errorf("facts %+v: want a kernel that is gVisor's, and a note that it is", f)
	}
	pids, err := g.Processes()
	if err != nil || len(pids) == 0 || nameOf(pids[0]) != sentryName {
		t.Fatalf("Processes: %v, %v; want %s first", pids, err, sentryName)
	}
	all, err := g.Threads()
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]int{}
	for _, th := range all {
		roles[th.Role]++
		if th.ID == pids[0] && th.Role != notebook.RoleEmulator {
			t.Errorf("%s has the role %s, want %s", sentryName, th.Role, notebook.RoleEmulator)
		}
	}
	if roles[notebook.RoleEmulator] < 3 || roles[notebook.RoleWork] < 1 {
		t.Errorf("threads by role: %v; want gVisor's own, and those that run the ruler", roles)
	}
	if err := unix.Kill(pids[0], unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, _, err = g.Ruler().Run(ctx, ruler.Order{Argv: []string{"/true"}, Timeout: 10 * time.Second})
	if why := g.Diagnose(); !errors.Is(err, ruler.ErrGone) || !strings.Contains(why, "used up its memory") {
		t.Errorf("%v, diagnosed as %q", err, why)
	}
}
