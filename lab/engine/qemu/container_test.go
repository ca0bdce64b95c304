//go:build linux

package qemu_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/internal/require"
	"tare/lab/engine"
	"tare/lab/engine/qemu"
	"tare/lab/ruler"
)

// contained makes a guest of two cores with the given crun ("": the host's).
func contained(t *testing.T, crun string) (engine.Guest, error) {
	t.Helper()
	require.Program(t, "crun")
	d, s := lab(t, qemu.VMCN, program(t), 0, 0)
	d.Crun = crun
	s.Instance.Memory = 320 << 20
	return provision(t, d, s)
}

// The work is in a container, on the container's own file system, under the limits that the VM's kernel tells of.
func TestContainer(t *testing.T) {
	g, err := contained(t, "")
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		r, _, err := g.Ruler().Run(ctx, ruler.Order{
			Argv: append([]string{"/bin/busybox"}, args...), Timeout: 30 * time.Second, OutputLimit: 8192,
		})
		if err != nil || r.Error != "" || r.Exit != 0 {
			t.Fatalf("%v: %v %s exit %d %s; diagnosis: %s", args, err, r.Error, r.Exit, r.Stderr, g.Diagnose())
		}
		return string(r.Stdout)
	}
	if h := g.Ruler().Hello(); h.PID != 1 || len(h.CPUs) != 2 {
		t.Errorf("hello %+v: want process 1 of the container's own, and two CPUs", h)
	}
	if m := run("cat", "/proc/self/mounts"); !strings.HasPrefix(m, "overlay / overlay ") {
		t.Errorf("mounts %q: want an overlay as the root", m)
	}
	if c := run("cat", "/proc/self/cgroup"); c != "0::/\n" {
		t.Errorf("cgroup %q: want the root of a namespace", c)
	}
	if l := run("ls", "-A", "/", ruler.RunDir); strings.Contains(l, "upper") || strings.Contains(l, "disk") {
		t.Errorf("the container sees how it was made: %q", l)
	}
	notes := fmt.Sprint(g.Facts().Notes)
	if !strings.Contains(notes, "in force on the container in the VM: ") || !strings.Contains(notes, "a CPU quota of 2 cores") {
		t.Errorf("notes %q: want the container's limits", notes)
	}
}

// The error contains the words of a runtime that fails.
func TestCrunFails(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":  "module fails\n\ngo 1.26\n",
		"main.go": "package main\n\nimport \"os\"\n\nfunc main() { os.Stderr.WriteString(\"no containers today\\n\"); os.Exit(7) }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, err := contained(t, goBuild(t, ".", dir))
	if err == nil || !strings.Contains(err.Error(), "no containers today") || !strings.Contains(err.Error(), "crun create: exit status 7") {
		t.Errorf("a runtime that fails: %v; want its words and its status", err)
	}
}
