package arrivals

import (
	"testing"

	"tare/desk/data"
	"tare/desk/show/showtest"
	"tare/desk/words"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// A claim may name a metric by its key, or by its name in folders of format 1. It says the same either way.
func TestClaimsNameMetricsByKeyOrEarlierName(t *testing.T) {
	r := showtest.Read(t, notebooktest.Raised(), &Kind).Rows[0]
	key, name := data.Quantity{Of: []string{"secondary.start_p95"}}, data.Quantity{Of: []string{"secondary.start time, p95"}}
	want, why := r.ValuesOf(key)
	got, _ := r.ValuesOf(name)
	if len(want) == 0 || len(got) != len(want) || got[0] != want[0] || name.Unit(r) != "s" || key.Unit(r) != "s" {
		t.Errorf("%v %s and %v %s (%v)", got, name.Unit(r), want, key.Unit(r), why)
	}
	if words.Quantity(key) != "start time, p95" || words.Quantity(name) != words.Quantity(key) {
		t.Errorf("%q and %q", words.Quantity(key), words.Quantity(name))
	}
}

// A workload whose author gave a metric the name of one of this kind has that metric, and not this kind's.
func TestAnAuthorsMetricIsNotTheKinds(t *testing.T) {
	f := notebooktest.New(2).Add("cpu bm large", 1)
	f.Study.Also = map[string][]notebook.Metric{"cpu": {{Name: "start time, p95", Unit: "ms"}}}
	f.Trial = func(x *notebook.Trial) { x.Figures = map[string]float64{"start time, p95": 7} }
	r := showtest.Read(t, f, &Kind).Rows[0]
	q := data.Quantity{Of: []string{"secondary.start time, p95"}}
	if got, why := r.ValuesOf(q); len(got) == 0 || got[0].Mean != 7 || q.Unit(r) != "ms" {
		t.Errorf("%v %s (%v)", got, q.Unit(r), why)
	}
	if got, _ := r.ValuesOf(data.Quantity{Of: []string{"secondary.start_p95"}}); got != nil {
		t.Errorf("the key finds %v", got)
	}
}
