package data_test

import (
	"slices"
	"testing"

	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// A row lists each machine that its VM's guests were, missing records included. A row that is not a VM's lists none.
func TestMachinesOfGuests(t *testing.T) {
	f := notebooktest.New(4).Add("bm large", 1).Add("vm qemu vanilla kvm large", 2).Add("vmcn qemu vanilla kvm large", 2)
	f.Guest = func(g *notebook.Guest) {
		if g.Treatment != "bm large" && g.Round > 1 {
			g.Machine = notebook.UsualMachine
		}
	}
	s, err := data.Read([]string{f.Write(t)}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Rows) != 3 {
		t.Fatalf("%d rows, want 3", len(s.Rows))
	}
	for _, r := range s.Rows {
		want := []notebook.Machine{{}, notebook.UsualMachine}
		if r.Treatment.Platform == notebook.BM {
			want = nil
		}
		if !slices.Equal(r.Machines, want) {
			t.Errorf("%s: machines %+v, want %+v", r.Treatment.ID, r.Machines, want)
		}
	}
}
