package data_test

import (
	"math"
	"testing"

	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
	"tare/stats"
)

// The reference that a study's design names is that of its folder. The rule looked at the ratios to it, so those may be narrower, and not those
// to bare metal.
func TestTheDesignNamesTheReference(t *testing.T) {
	design := notebook.Design{Floor: 3, Cap: 40, Precision: 0.1, Trials: 1, TimeoutS: 60, Against: "cn:pinned"}
	f := notebooktest.New(2)
	f.Rounds = 8
	f.Study.Design = design
	values := map[string]float64{notebook.BM: 1, notebook.CN: 1.1, notebook.VM: 1.3}
	f.Trial = func(x *notebook.Trial) {
		x.Value = values[notebooktest.Treatment(x.Treatment).Platform] * (1 + 0.01*math.Sin(float64(x.Round*len(x.Treatment))))
		x.ElapsedS = x.Value
	}
	dir := f.Add("bm large", 4).Add("cn crun pinned large", 4).Add("vm qemu kvm pinned large", 4).Write(t)
	read := func(against notebook.Reference) map[string]*data.Row {
		s, err := data.Read([]string{dir}, data.Options{Baseline: against})
		if err != nil {
			t.Fatal(err)
		}
		rows := map[string]*data.Row{}
		for _, r := range s.Rows {
			rows[r.Treatment.Platform] = r
		}
		return rows
	}
	of := func(r *data.Row) []float64 { return data.Means(r.Values) }
	own, metal := read(nil), read(notebook.Reference{"platform": "bm"})
	if own[notebook.VM].Baseline != own[notebook.CN].Treatment.ID || metal[notebook.VM].Baseline != metal[notebook.BM].Treatment.ID {
		t.Fatalf("the VM is compared with %q, by name with %q", own[notebook.VM].Baseline, metal[notebook.VM].Baseline)
	}
	plain := stats.Sure(design.Looks())
	ruled := plain
	ruled.Precision, ruled.Floor = design.Precision, design.Floor
	if a, b := stats.Ratio(of(own[notebook.VM]), of(own[notebook.CN]), ruled), stats.Ratio(of(own[notebook.VM]), of(own[notebook.CN]), plain); a == b {
		t.Fatalf("the intervals are the same with the rule and without: %+v", a)
	}
	if q, want := own[notebook.VM].Quotient(), stats.Ratio(of(own[notebook.VM]), of(own[notebook.CN]), ruled); q != want {
		t.Errorf("the VM to the reference: %+v, want %+v", q, want)
	}
	if q, want := metal[notebook.VM].Quotient(), stats.Ratio(of(metal[notebook.VM]), of(metal[notebook.BM]), plain); q != want {
		t.Errorf("the VM to bare metal: %+v, want %+v, because no rule looked at it", q, want)
	}
}

// Where a row took part in few of its reference's rounds and the host's speed changed, the means of the table give another ratio. A note has the
// reference's mean in the rounds that count.
func TestTheReferenceIsElsewhere(t *testing.T) {
	f := notebooktest.New(2)
	f.Rounds = 8
	f.Study.Design = notebook.Design{Floor: 4, Cap: 40, Precision: 0.1, Trials: 1, TimeoutS: 60}
	f.Trial = func(x *notebook.Trial) {
		x.Value = 1 + 0.001*float64(x.Round)
		if x.Round >= 4 { // the host is slower, and the container is known already
			x.Value *= 1.5
			if notebooktest.Treatment(x.Treatment).Platform == notebook.CN {
				x.Failure = notebook.Say("killed")
			}
		}
		x.ElapsedS = x.Value
	}
	s, err := data.Read([]string{f.Add("bm large", 4).Add("cn crun pinned large", 4).Write(t)}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cn := s.Rows[1]
	d, has := data.Has[data.BaselineElsewhere](cn)
	if !has || d.Rounds != 4 || math.Abs(d.Mean-1.0015) > 1e-9 || !(d.Low < d.Mean && d.Mean < d.High) {
		t.Errorf("%+v; the ratio is %+v, the means %v and %v", d, cn.Quotient(), cn.Mean, s.Rows[0].Mean)
	}
}
