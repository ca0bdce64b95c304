package data

import (
	"slices"
	"testing"

	"tare/notebook"
	fitkind "tare/notebook/kinds/fit"
	"tare/notebook/notebooktest"
)

// What a search for how many guests fit found is told with its row, and of what is told there is no more than a reader has use for.
func TestASearchIsToldOfWithItsRow(t *testing.T) {
	for rounds, want := range map[int]int{2: 2, 40: mostFitted} {
		f := notebooktest.New(2).Add("cn crun pinned 1/1GB", 0.25)
		f.Rounds, f.Study.Design.Trials, f.Study.Kind, f.Study.Config = rounds, 1, fitkind.Name, &fitkind.Config{Metric: "p95", Factor: 1.5, To: 512}
		f.Trial = func(x *notebook.Trial) {
			x.Seen = fitkind.Seen{Fitted: &fitkind.Fitted{Guests: 4, Decided: true, RanOut: fitkind.OutOfCPU, Why: "it waited"}}
		}
		s, err := Read([]string{f.Write(t)}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		told := slices.DeleteFunc(slices.Clone(s.Rows[0].Doubts), func(d Doubt) bool { _, ok := d.(Fitted); return !ok })
		if len(told) != want || told[0] != (Fitted{4, true, fitkind.OutOfCPU, "it waited"}) {
			t.Errorf("of %d searches: %v", rounds, told)
		}
	}
}
