package fit

import (
	"reflect"
	"slices"
	"testing"

	"tare/desk/data"
	"tare/desk/words"
	"tare/notebook"
	kind "tare/notebook/kinds/fit"
	"tare/notebook/notebooktest"
)

// The results of searches are reported with their row, and no more of them than a reader can use.
func TestASearchIsToldOfWithItsRow(t *testing.T) {
	for rounds, want := range map[int]int{2: 2, 40: mostFound} {
		f := notebooktest.New(2).Add("cn crun pinned 1/1GB", 0.25)
		f.Rounds, f.Study.Design.Trials, f.Study.Kind, f.Study.Config = rounds, 1, kind.Name, &kind.Config{Metric: "p95", Factor: 1.5, To: 512}
		f.Trial = func(x *notebook.Trial) {
			x.Seen = kind.Seen{Fitted: &kind.Fitted{Guests: 4, Decided: true, RanOut: kind.OutOfCPU, Why: notebook.TextMessage("it waited")}}
		}
		s, err := data.Read([]string{f.Write(t)}, data.Options{Kinds: []data.Kind{&Kind}})
		if err != nil {
			t.Fatal(err)
		}
		told := slices.DeleteFunc(slices.Clone(s.Rows[0].Doubts), func(d data.Doubt) bool { _, ok := d.(Found); return !ok })
		if len(told) != want || !reflect.DeepEqual(told[0], Found{4, true, kind.OutOfCPU, notebook.TextMessage("it waited")}) {
			t.Errorf("of %d searches: %v", rounds, told)
		}
	}
}

// The result of a search is one clause.
func TestWhatWasFoundIsSaid(t *testing.T) {
	for found, want := range map[Found]string{
		{Guests: 1}: "1 guest fits, which the runs do not decide; more were not tried",
		{4, true, kind.OutOfCPU, notebook.TextMessage("it waited")}: "4 guests fit, sure at 95 %; what runs out first is CPU: it waited",
	} {
		if said := words.Doubt(found); said != want {
			t.Errorf("%q, want %q", said, want)
		}
	}
}
