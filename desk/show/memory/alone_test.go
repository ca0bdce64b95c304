package memory

import (
	"math"
	"testing"

	"tare/desk/show/showtest"
	"tare/notebook"
	kind "tare/notebook/kinds/memory"
	"tare/notebook/notebooktest"
	"tare/stats"
)

// The report has the memory that only the last guest has: for a VM by how its guest uses it, for a container by what the host sees.
func TestAlone(t *testing.T) {
	s := showtest.Read(t, notebooktest.WeighedInside(), &Kind)
	vms := 0
	for _, r := range s.Rows {
		a := weightsOf(r).Alone
		if a == nil || !a.Merged || a.Guests != 8 {
			t.Fatalf("%s: %+v", r.Treatment.ID, a)
		}
		if r.Treatment.Platform != notebook.VM {
			if a.RAM != nil || len(a.Kinds) != 2 || math.Abs(a.Kinds[0].Own.Value+a.Kinds[1].Own.Value-a.Own.Value) > 1e-5 || weightsOf(r).Last.ByGuest != nil {
				t.Errorf("%s: %+v", r.Treatment.ID, a)
			}
			continue
		}
		vms++
		is := func(what string, e stats.Estimate, want float64) {
			t.Helper()
			if e.Value != want {
				t.Errorf("%s: %v, want %v", what, e.Value, want)
			}
		}
		is("own", a.Own, 91)
		is("of RAM", a.RAM.Own, 68)
		is("the emulator's", a.RAM.Emulator.Own, 23)
		is("duplicates", a.RAM.Left, 26)
		is("idle", a.RAM.Idle, 2)
		is("changed", a.RAM.Changed, 0.25)
		is("of others", a.RAM.Others.Own, 30)
		is("of no file", a.RAM.Unnamed.Own, 21)
		if own, guest, rss := a.RAM.Of(notebook.FramesFile, notebook.FramesShared); own != 55 || guest != 110 || rss != 98 {
			t.Errorf("files: %v of its own, the guest has %v, the host %v", own, guest, rss)
		}
		if f := a.RAM.Files; len(f) != 2 || f[0].Name != "/usr/lib/systemd/libsystemd-shared-257.so" || f[0].Own.Value != 3 || a.RAM.Out == "" {
			t.Errorf("files: %+v", f)
		}
		is("duplicates by what they are to the guest", weightsOf(r).Last.ByGuest.Within.FileFile, 9)
		is("and merged", weightsOf(r).Last.Merged.Guests.AnonAnon, 48)
	}
	if vms != 1 {
		t.Errorf("%d VMs", vms)
	}
	if a := weightsOf(showtest.Read(t, notebooktest.Weighed(), &Kind).Rows[0]).Alone; a != nil {
		t.Errorf("a study that does not ask: %+v", a)
	}
}

// A VM that cannot tell says why.
func TestAVMThatCannotTell(t *testing.T) {
	f := notebooktest.WeighedInside()
	weigh := f.Trial
	f.Trial = func(x *notebook.Trial) {
		weigh(x)
		weights := notebooktest.Seen[kind.Seen](x).Weights
		for i := range weights {
			if r := weights[i].Last.RAM; r != nil {
				weights[i].Last.RAM = &notebook.MemoryRAM{Why: notebook.TextMessage("no kpageflags")}
			}
		}
	}
	for _, r := range showtest.Read(t, f, &Kind).Rows {
		if a := weightsOf(r).Alone; r.Treatment.Platform == notebook.VM && (a.RAM != nil || a.Why != "no kpageflags") {
			t.Errorf("%+v", a)
		}
	}
}
