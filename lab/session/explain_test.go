//go:build linux

package session

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"tare/internal/require"
	"tare/lab/engine"
	"tare/notebook"
)

// A VM's ruler looks at itself and what it starts; so can this process.
func TestLookInside(t *testing.T) {
	require.Root(t)
	names := []string{notebook.ProbeScheduler, notebook.ProbeCPU}
	w, err := lookInside(names)
	if err != nil {
		t.Fatal(err)
	}
	w.Begin()
	err = exec.Command("sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done").Run()
	w.End()
	p, serr := w.Stop()
	if err != nil || serr != nil {
		t.Fatal(err, serr)
	}
	if !slices.Contains(p.Looked, notebook.ProbeCPU) {
		t.Errorf("looked %q, missing %q", p.Looked, p.Missing)
	}
	if why := p.Missing[notebook.ProbeScheduler]; why == "" && (p.Wall[notebook.WallUser] <= 0 || p.Figures["elapsed_s"] < p.Wall[notebook.WallUser]*0.99) {
		t.Errorf("wall %v of %v s", p.Wall, p.Figures["elapsed_s"])
	}
	if _, err := lookInside([]string{"sheduler"}); err == nil {
		t.Error("an unknown probe was made ready")
	}
}

// ended is a guest that cannot be looked at any more.
type ended struct {
	engine.Guest
	pids []int
}

func (e ended) Processes() ([]int, error)         { return e.pids, nil }
func (e ended) Threads() ([]engine.Thread, error) { return nil, errors.New("QEMU does not answer") }

func TestAGuestThatCannotBeLookedAt(t *testing.T) {
	l := &Lab{}
	if _, err := l.guest(ended{}, 1, nil).Look(nil); err == nil || !strings.Contains(err.Error(), "no probes") {
		t.Errorf("without probes: %v", err)
	}
	if missing, err := l.Explain([]string{notebook.ProbeCPU}); err != nil || len(missing) != 0 {
		t.Fatalf("%v, missing %v", err, missing)
	}
	for want, g := range map[string]ended{"the guest has ended": {}, "QEMU does not answer": {pids: []int{1}}} {
		if w, err := l.guest(g, 1, nil).Look(nil); w != nil || err == nil || err.Error() != want {
			t.Errorf("%v, %v; want %s", w, err, want)
		}
	}
	if _, err := l.Explain([]string{"sheduler"}); err == nil {
		t.Error("an unknown probe was made ready")
	}
}
