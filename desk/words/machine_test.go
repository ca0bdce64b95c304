package words_test

import (
	"slices"
	"testing"

	"tare/desk/data"
	"tare/desk/words"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// Machines compares an unusual VM with the usual one of the same size and provisioning. It claims no more than the trials show.
func TestMachines(t *testing.T) {
	f := notebooktest.New(4).Add("bm large", 1).Add("vm qemu vanilla kvm large", 3).Add("vm qemu pinned kvm large", 2)
	f.Noise = 1e-4
	with := func(id, machine string, mean float64) {
		tr := notebooktest.Treatment(id)
		tr.ID, tr.Machine = id+" "+machine, machine
		f.AddTreatment(tr, mean)
	}
	with("vm qemu pinned kvm large", "huge-pages=2M", 1)
	with("vm qemu vanilla kvm large", "threads=2", 6)
	with("vm qemu pinned tcg large", "sockets=2", 8) // the usual one was not measured
	read := func() *data.Summary {
		s, err := data.Read([]string{f.Write(t)}, data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	want := []string{
		"ffmpeg, VM, CPU set, with huge-pages=2M, large: 0.5000 times the usual machine (0.4998–0.5002)",
		"ffmpeg, VM, with threads=2, large: 2.000 times the usual machine (1.999–2.001)",
	}
	if got := words.Machines(read()); !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	f.Rounds = 1
	if got := words.Machines(read()); len(got) != 2 || got[0] != "ffmpeg, VM, CPU set, with huge-pages=2M, large: 0.50 times the usual machine, too few rounds for an interval" {
		t.Errorf("after one round: %q", got)
	}
	f.Trial = func(x *notebook.Trial) { x.Failure = notebook.TextMessage("killed") }
	if got := words.Machines(read()); len(got) != 0 {
		t.Errorf("of what failed: %q", got)
	}
}
