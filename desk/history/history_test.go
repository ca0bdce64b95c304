package history_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"tare/desk/compare"
	"tare/desk/data"
	"tare/desk/history"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// nightly are n runs of a study. From the run at on, the host has another kernel, and Docker costs more by a share.
func nightly(t *testing.T, n, at int, more float64) (runs []*data.Summary) {
	t.Helper()
	r := rand.New(rand.NewPCG(40, 1))
	for i := range n {
		f := notebooktest.Night(i)
		host := 1 + 0.05*r.NormFloat64() // the host's own speed that night
		docker := 1.02 * (1 + 0.01*r.NormFloat64())
		if i >= at {
			f.Host.Kernel = "7.0"
			docker *= 1 + more
		}
		f.Add("bm large", host).Add("bm aa large", host).Add("cn docker vanilla large", host*docker).Add("cn crun vanilla large", host*1.01*(1+0.01*r.NormFloat64()))
		s, err := data.Read([]string{f.Write(t)}, data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, s)
	}
	r.Shuffle(n, func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
	return runs
}

// Runs are put into the order of time. The configuration that costs more since the new kernel is found, with the kernel; the other ones did not change.
func TestHistory(t *testing.T) {
	const n, at = 30, 24
	h, err := history.From(nightly(t, n, at, 0.05))
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Tracks) != 3 { // the A/A control is none
		t.Fatal(len(h.Tracks))
	}
	for _, track := range h.Tracks {
		r := track.Latest().Row
		if len(track.Points) != n || track.Relative != (r.Treatment.Platform == notebook.CN) {
			t.Errorf("%s: %d points, relative %t", r.Treatment.ID, len(track.Points), track.Relative)
		}
		for i, p := range track.Points[1:] {
			if !history.At(p.Run).After(history.At(track.Points[i].Run)) {
				t.Errorf("%s: not in the order of time", r.Treatment.ID)
			}
		}
		if r.Treatment.Engine != "docker" {
			if len(track.Changes) > 0 {
				t.Errorf("%s: %+v", r.Treatment.ID, track.Changes)
			}
			continue
		}
		if len(track.Changes) != 1 {
			t.Fatalf("%+v", track.Changes)
		}
		c := track.Changes[0]
		if c.First.Row != track.Points[at].Row || math.Abs(c.By()-1.05) > 0.02 || math.Abs(track.Spread-0.01) > 0.005 {
			t.Errorf("by %g since %v, spread %g", c.By(), history.At(c.First.Run), track.Spread)
		}
		if d := fmt.Sprint(c.Differences); len(c.Differences) != 1 || c.Differences[0] != (data.Doubt)(compare.Differs{What: compare.Kernel, Old: "6.18", New: "7.0"}) {
			t.Error(d)
		}
	}
}

// The host's own speed changes no configuration. A run without bare metal's value has no ratio, and is counted. A run that measured nothing is named.
func TestOddRuns(t *testing.T) {
	const n = 20
	var runs []*data.Summary
	for i := range n {
		f := notebooktest.Night(i)
		speed := 1 + 0.001*float64(i%4)
		if i >= 12 {
			speed *= 1.2
		}
		f.Add("bm large", speed).Add("cn docker vanilla large", 1.02*speed)
		if i == n-1 { // bare metal fails in the last run
			f.Trial = func(x *notebook.Trial) {
				if x.Treatment == "bm large" {
					x.Failure = notebook.TextMessage("killed")
				}
			}
		}
		if i == 3 {
			f.Rounds = 0
		}
		s, err := data.Read([]string{f.Write(t)}, data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, s)
	}
	h, err := history.From(runs)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Empty) != 1 || h.Empty[0] != runs[3].Folders[0].Dir || len(h.Runs) != n-1 || len(h.Tracks) != 2 {
		t.Fatalf("%v, %d runs, %d tracks", h.Empty, len(h.Runs), len(h.Tracks))
	}
	for _, track := range h.Tracks {
		switch r := track.Latest().Row; r.Treatment.Platform {
		case notebook.BM:
			if !track.Reference || len(track.Changes) != 1 || track.Without != 0 {
				t.Errorf("bare metal: %+v", track)
			}
		default:
			if track.Reference || !track.Relative || track.Without != 1 || len(track.Points) != n-2 || len(track.Changes) != 0 {
				t.Errorf("Docker: %d points, %d without, changes %+v", len(track.Points), track.Without, track.Changes)
			}
		}
	}
}

// Another kernel of VMs is what may have changed them.
func TestANewKernelOfVMs(t *testing.T) {
	var runs []*data.Summary
	for i := range 20 {
		f := notebooktest.Night(i)
		vm, mean := notebooktest.Treatment("vm qemu kvm pinned large"), 1.3+0.001*float64(i%4)
		if vm.Kernel = "6.1@aaaa"; i >= 12 {
			vm.Kernel, mean = "6.12@bbbb", mean*1.1
		}
		s, err := data.Read([]string{f.Add("bm large", 1).AddTreatment(vm, mean).Write(t)}, data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, s)
	}
	h, err := history.From(runs)
	if err != nil || len(h.Tracks) != 2 {
		t.Fatal(err, h)
	}
	for _, track := range h.Tracks {
		if track.Reference {
			continue
		}
		want := compare.Differs{What: compare.GuestKernel, Old: "6.1@aaaa", New: "6.12@bbbb"}
		if len(track.Changes) != 1 || len(track.Changes[0].Differences) != 1 || track.Changes[0].Differences[0] != data.Doubt(want) {
			t.Errorf("%+v", track.Changes)
		}
	}
}

// What cannot be one history is refused.
func TestNoHistory(t *testing.T) {
	runs := nightly(t, 2, 2, 0)
	if _, err := history.From([]*data.Summary{runs[0], runs[1], runs[0]}); err == nil || !strings.Contains(err.Error(), "copy") {
		t.Error(err)
	}
	runs[1].Folders[0].Study.Name = "other"
	if _, err := history.From(runs); err == nil || !strings.Contains(err.Error(), "one study") {
		t.Error(err)
	}
}
