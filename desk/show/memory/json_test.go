package memory

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"tare/desk/data"
	"tare/desk/export"
	"tare/notebook/notebooktest"
)

// The JSON of a study that weighs guests has its points and tables; that of another study has none.
func TestWeightsInJSON(t *testing.T) {
	rows := func(f *notebooktest.Folder) (all []struct {
		Treatment string
		Weights   *Weights
	}) {
		t.Helper()
		s, err := data.Read([]string{f.Write(t)}, data.Options{Kinds: []data.Kind{&Kind}})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := export.Summary(&b, s); err != nil {
			t.Fatal(err)
		}
		answer := struct{ Rows any }{&all}
		if err := json.Unmarshal(b.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		return all
	}
	for _, r := range rows(notebooktest.Weighed()) {
		w := r.Weights
		if w == nil || len(w.Points) != 4 || len(w.Merged) != 4 || w.Added == nil || w.Last == nil || len(w.Last.Processes) == 0 || len(w.Last.Kinds) != 2 || w.Last.Duplicates == nil {
			t.Fatalf("%s: %+v", r.Treatment, w)
		}
		if r.Treatment != "idle vm qemu kvm pinned large" {
			continue
		}
		at := w.Points[3]
		if at.Guests != 8 || at.PSS.N != 5 || math.Abs(at.PSS.Value-(140+95./8)) > 3 || at.CPUS.N != 0 || w.Merged[3].CPUS.N == 0 || w.Last.Duplicates.Host.Sum.Value != 32 {
			t.Errorf("among 8: %+v", at)
		}
	}
	for _, r := range rows(notebooktest.WeighedInside()) {
		a := r.Weights.Alone
		if a == nil || !a.Merged || a.Own.N == 0 || r.Treatment != "idle vm qemu kvm pinned large" && a.RAM != nil {
			t.Errorf("%s: the last guest alone: %+v", r.Treatment, a)
		} else if a.RAM != nil && (len(a.RAM.Kinds) != 6 || a.Emulator.Own.Value != 23 || len(a.Files) != 2) {
			t.Errorf("its memory: %+v", a)
		}
	}
	for _, r := range rows(notebooktest.New(2).Add("bm large", 4).Add("cn crun pinned large", 5)) {
		if r.Weights != nil {
			t.Errorf("%s has %+v", r.Treatment, r.Weights)
		}
	}
}
