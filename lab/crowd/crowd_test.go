package crowd

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"tare/lab/ruler"
	"tare/notebook"
)

func TestWhoIsBusy(t *testing.T) {
	for _, c := range []struct {
		n    notebook.Neighbour
		busy bool
	}{
		{notebook.Neighbour{Busy: "cpu", RanS: 1}, true},
		{notebook.Neighbour{Busy: "cpu", RanS: 0.2, WaitedS: 0.8}, true}, // five share a CPU
		{notebook.Neighbour{Busy: "cpu", RanS: 0.2, Moved: 1 << 30}, false},
		{notebook.Neighbour{Busy: "io", RanS: 1}, false},
		{notebook.Neighbour{Busy: "work", RanS: 0.01}, true}, // it may wait for a device
		{notebook.Neighbour{Busy: "work"}, false},
		{notebook.Neighbour{Busy: "io", Moved: 64 << 10}, true},
	} {
		if got := idle(c.n, false, time.Second, 1) == nil; got != c.busy {
			t.Errorf("%+v: busy %v", c.n, got)
		}
	}
	if why := idle(notebook.Neighbour{Busy: "cpu", RanS: 0.01, WaitedS: 0.04}, true, time.Second, 1); why != nil {
		t.Errorf("a neighbour that was ready all the time and waits still: %v", why)
	}
}

func TestASaturatedLoadIsAWarning(t *testing.T) {
	l := &notebook.Load{CPUs: []int{1}, UserS: 0.7, SystemS: 0.25}
	if w := Saturated(l, time.Second); len(w) != 1 {
		t.Errorf("95 %% of its CPU: %q, want a warning", w)
	}
	l.CPUs = []int{1, 2}
	if w := Saturated(l, time.Second); len(w) != 0 {
		t.Errorf("half of its CPUs: %q, want none", w)
	}
}

// quiet is a guest whose platform knows nothing about it.
type quiet struct{ Guest }

func (quiet) Diagnose() string { return "" }

// When the kernel kills a ruler because memory has run out, the ruler's own count of such kills is lost, and the host's count tells.
func TestARulerThatIsGoneForMemory(t *testing.T) {
	proc := fstest.MapFS{"vmstat": {Data: []byte("nr_free_pages 5\noom_kill 7\n")}}
	defer func(was fs.FS) { hostProc = was }(hostProc)
	hostProc = proc
	gone := fmt.Errorf("the guest's %w", ruler.ErrGone)
	said := MemoryKills()
	if got := said(gone, quiet{}); got.Is("host-out-of-memory") {
		t.Errorf("nothing was killed: %q", got)
	}
	proc["vmstat"] = &fstest.MapFile{Data: []byte("nr_free_pages 5\noom_kill 9\n")}
	if got := said(gone, quiet{}); !got.Equal(notebook.Say("host-out-of-memory", "processes", 2, "cause", gone)) {
		t.Errorf("two were killed: %q", got)
	}
	if got := said(errors.New("another"), quiet{}); got.Is("host-out-of-memory") {
		t.Errorf("a ruler that lives: %q", got)
	}
}
