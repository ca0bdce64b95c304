//go:build linux

package session

import (
	"errors"
	"strings"
	"testing"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/notebook"
)

// ended is a guest that cannot be looked at any more.
type ended struct {
	engine.Guest
	pids []int
}

func (e ended) Processes() ([]int, error)         { return e.pids, nil }
func (e ended) Threads() ([]engine.Thread, error) { return nil, errors.New("QEMU does not answer") }

func TestAGuestThatCannotBeTraced(t *testing.T) {
	l := &Lab{}
	if _, err := l.guest(ended{}, 1, nil).Trace(crowd.Traced{}); err == nil || !strings.Contains(err.Error(), "no tracers") {
		t.Errorf("without tracers: %v", err)
	}
	if missing, err := l.Explain([]string{notebook.TracerCPU}); err != nil || len(missing) != 0 {
		t.Fatalf("%v, missing %v", err, missing)
	}
	for want, g := range map[string]ended{"the guest has ended": {}, "QEMU does not answer": {pids: []int{1}}} {
		if w, err := l.guest(g, 1, nil).Trace(crowd.Traced{}); w != nil || err == nil || err.Error() != want {
			t.Errorf("%v, %v; want %s", w, err, want)
		}
	}
	if _, err := l.Explain([]string{"sheduler"}); err == nil {
		t.Error("an unknown tracer was made ready")
	}
}
