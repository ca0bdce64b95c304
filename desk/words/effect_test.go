package words_test

import (
	"strings"
	"testing"

	"tare/desk/data"
	"tare/desk/show/kinds"
	"tare/desk/words"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// A study with two parameters says what each value changes against the first, with the other one as it is, and nothing of a parameter with one
// value. A study with one value each has no such list, nor does a study with more than mostEffects comparisons.
func TestParametersEffects(t *testing.T) {
	type place struct {
		at   string
		mean float64
	}
	labels := func(combinations ...place) (said []string) {
		f := notebooktest.New(2)
		f.Rounds = 8
		f.Study.Metrics["io"] = notebook.Metric{Name: "execution time", Unit: "s"}
		for _, c := range combinations {
			f.Add("io "+c.at+" bm vanilla large", c.mean).Add("io "+c.at+" cn crun vanilla large", 3*c.mean)
		}
		s, err := data.Read([]string{f.Write(t)}, data.Options{Kinds: kinds.All})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range words.ResultOf(s, false).Blocks {
			if strings.HasPrefix(b.Head, "What the parameters change: bare metal") {
				for _, l := range b.Lines {
					said = append(said, l.Label+" "+l.Text)
				}
			}
		}
		return said
	}
	if said := labels(place{"size=1 kind=a", 1}); said != nil {
		t.Errorf("of one combination: %q", said)
	}
	var many []place
	for _, size := range strings.Fields("1 2 3 4 5 6 7 8 9 10 11 12 13 14") {
		many = append(many, place{"size=" + size, 1})
	}
	if said := labels(many...); said != nil {
		t.Errorf("of 14 values: %q", said)
	}
	said := strings.Join(labels(place{"size=1 kind=a always=x", 1}, place{"size=1 kind=b always=x", 1.5}, place{"size=2 kind=a always=x", 4}, place{"size=2 kind=b always=x", 6}), "\n")
	for _, want := range []string{"kind=b vs a: 5", "size=2 vs 1: 4.0", "more time", "times as much time", " with size=1", " with kind=b", "All 4 intervals hold together with 95 % confidence."} {
		if !strings.Contains(said, want) {
			t.Errorf("want %q in\n%s", want, said)
		}
	}
	if strings.Contains(said, "always") {
		t.Errorf("a parameter with one value is in\n%s", said)
	}
}
