//go:build linux

package main

import (
	"os"
	"os/exec"
	"slices"
	"testing"

	"tare/internal/require"
	"tare/notebook"
)

// A VM's ruler is traced with what it starts; so can this process be.
func TestAttach(t *testing.T) {
	require.Root(t)
	names := []string{notebook.TracerScheduler, notebook.TracerCPU}
	stop, err := attach(os.Getpid(), false, names)
	if err != nil {
		t.Fatal(err)
	}
	err = exec.Command("sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done").Run()
	p, serr := stop()
	if err != nil || serr != nil {
		t.Fatal(err, serr)
	}
	if !slices.Contains(p.Looked, notebook.TracerCPU) {
		t.Errorf("looked %q, missing %q", p.Looked, p.Missing)
	}
	if why := p.Missing[notebook.TracerScheduler]; why == nil && (p.Wall[notebook.WallUser] <= 0 || p.Figures["elapsed_s"] < p.Wall[notebook.WallUser]*0.99) {
		t.Errorf("wall %v of %v s", p.Wall, p.Figures["elapsed_s"])
	}
	if _, err := attach(os.Getpid(), false, []string{"sheduler"}); err == nil {
		t.Error("an unknown tracer was attached")
	}
}
