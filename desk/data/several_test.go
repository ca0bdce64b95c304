package data_test

import (
	"math"
	"testing"

	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// A figure of several metrics has of each treatment its mean and its ratio to bare metal, on each axis that it was measured on.
func TestSeveral(t *testing.T) {
	f := notebooktest.Benchmarks()
	f.Add("other cn docker vanilla large", 3) // only on the second axis, and without bare metal
	f.Study.Figures = []notebook.Figure{{Name: "F", Title: "T", Axes: []notebook.Axis{
		{Name: "copy", Workload: "hpcc", Metric: "StarSTREAM copy"}, {Name: "other", Workload: "other"}, {Name: "none such", Workload: "hpcc", Metric: "none such"},
	}}}
	s, err := data.Read([]string{f.Write(t)}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := s.Several()
	if len(all) != 1 || len(all[0].Rows) != 4 || len(all[0].On) != 3 {
		t.Fatalf("%d figures: want one, of four treatments on three axes: %+v", len(all), all)
	}
	v := all[0]
	at := func(axis int, platform, accelerator string) *data.Row {
		for i, r := range v.Rows {
			if r.Treatment.Platform == platform && r.Treatment.Accelerator == accelerator {
				return v.On[axis].Rows[i]
			}
		}
		t.Fatalf("no %s %s in %+v", platform, accelerator, v.Rows)
		return nil
	}
	if q := at(0, notebook.VM, notebook.KVM).Quotient(); q.N != 8 || !q.Contains(0.8406) || q.High > 0.86 || q.Low < 0.82 {
		t.Errorf("copy in a VM: %+v, want about 0.8406 of bare metal in 8 rounds", q)
	}
	if q := at(0, notebook.CN, "").Quotient(); !q.Contains(1) || q.High > 1.02 {
		t.Errorf("copy in a container: %+v, want about 1", q)
	}
	if bm := at(0, notebook.BM, ""); !bm.IsBaseline() || math.Abs(bm.Mean-6.4) > 0.1 {
		t.Errorf("copy on bare metal: %+v, want 6.4, and that it is the baseline", bm)
	}
	if o := at(1, notebook.CN, ""); o == nil || math.Abs(o.Mean-3) > 0.1 || !math.IsNaN(o.Ratio) {
		t.Errorf("what has no bare metal: %+v, want its mean and no ratio", o)
	}
	if o := at(1, notebook.VM, notebook.KVM); o != nil {
		t.Errorf("what was not measured: %+v", o)
	}
	if o := at(2, notebook.CN, ""); o != nil {
		t.Errorf("a metric that nobody has: %+v", o)
	}
	if m := v.On[0].Of; m.Unit != "GB/s" || !m.MoreIsBetter() {
		t.Errorf("the metric of the axis is %+v", m)
	}
}
