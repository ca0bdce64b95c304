package advise_test

import (
	"strings"
	"testing"

	"tare/desk/advise"
	"tare/desk/data"
	"tare/desk/model"
	"tare/desk/words"
	"tare/notebook/notebooktest"
)

// Where higher is better, the ranking is by the lower end of the interval, highest first, and the sentence gives what the others lose.
func TestMoreIsBetter(t *testing.T) {
	f := notebooktest.Stream().Add("stream cn docker pinned 1/4GB", 14).Add("stream bm 1/4GB", 15)
	s, err := data.Read([]string{f.Write(t)}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const bm, vm, vanilla = "stream bm 2/4GB", "stream vm qemu kvm pinned 2/4GB", "stream cn docker vanilla 2/4GB"
	at := advise.Options{Instance: "2/4GB"}
	of := func(metric string) advise.Options { return advise.Options{Instance: at.Instance, Metric: metric} }
	for _, c := range []struct {
		o           advise.Options
		first, last string // treatments
		says        string
	}{
		{at, bm, vanilla, "times as much as VM with a CPU set"},
		{of("triad bandwidth"), bm, vm, "times as much as Docker with --cpus"},
		{of("latency"), bm, vanilla, "times faster than VM with a CPU set"},
		{advise.Options{}, bm, "stream cn docker pinned 1/4GB", "copy bandwidth 20"},
		// 15 of one core are more for each than 20 of two.
		{advise.Options{Prefer: advise.Cost}, "stream bm 1/4GB", vanilla, "copy bandwidth per core 14.97"},
	} {
		a, err := advise.Of(s, c.o)
		if err != nil {
			t.Fatal(err)
		}
		r := a.Rankings[0]
		first, last := r.Choices[0], r.Choices[len(r.Choices)-1]
		if first.Treatment.ID != c.first || last.Treatment.ID != c.last || !first.Tied || last.Tied || last.Near || last.Leads {
			t.Errorf("%+v: %s first and %s last; want %s and %s", c.o, first.Treatment.ID, last.Treatment.ID, c.first, c.last)
		}
		if why := words.Ranking(&r); !strings.Contains(why, c.says) {
			t.Errorf("%+v: %s; want … %s …", c.o, why, c.says)
		}
	}
	if _, err := advise.Of(s, advise.Options{Metric: "passes"}); err == nil || !strings.Contains(err.Error(), "must be one of copy bandwidth, triad bandwidth, latency") {
		t.Error(err)
	}
	// What the model has is times.
	if m := model.Fit(s, model.Options{}); len(m.Overheads) != 0 {
		t.Errorf("the model has %d overheads of a bandwidth", len(m.Overheads))
	}
}
