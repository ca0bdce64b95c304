package data_test

import (
	"math"
	"testing"

	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
	"tare/stats"
)

// pooledFolder has bare metal, its control and a container. values has the value of each trial by treatment and round; 0: it failed.
func pooledFolder(t *testing.T, values map[string][]float64) string {
	f := notebooktest.New(2)
	f.Rounds = 4
	f.Study.Design = notebook.Design{Floor: 4, Cap: 4, Trials: 1, TimeoutS: 60}
	f.Trial = func(x *notebook.Trial) {
		v := values[notebooktest.Treatment(x.Treatment).Variant().Platform]
		if notebooktest.Treatment(x.Treatment).AA {
			v = values["aa"]
		}
		if x.Value = v[x.Round]; x.Value == 0 {
			x.Failure = notebook.Say("killed")
		}
		x.ElapsedS = x.Value
	}
	return f.Add("bm large", 4).Add("bm aa large", 4).Add("cn crun pinned large", 4).Write(t)
}

// Bare metal and its A/A control are the baseline together, by the means of both, or of the only one that was measured. The check is
// relative to bare metal only.
func TestTheControlIsPartOfTheBaseline(t *testing.T) {
	dir := pooledFolder(t, map[string][]float64{"bm": {4, 4.2, 0, 4.1}, "aa": {4.4, 0, 4.2, 4.3}, "cn": {5, 5.1, 5.2, 5.3}})
	s, err := data.Read([]string{dir}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	bm, aa, cn := s.Rows[0], s.Rows[1], s.Rows[2]
	both := []float64{(4 + 4.4) / 2, 4.2, 4.2, (4.1 + 4.3) / 2}
	want := stats.Ratio([]float64{5, 5.1, 5.2, 5.3}, both, stats.Sure(0))
	if q := cn.Quotient(); math.Abs(q.Value-want.Value) > 1e-9 || math.Abs(q.Low-want.Low) > 1e-9 || math.Abs(q.AtMost-want.AtMost) > 1e-9 || q.N != 4 {
		t.Errorf("%+v, want %+v", q, want)
	}
	if math.Abs(bm.Mean-4.1) > 1e-9 || math.Abs(aa.Ratio-(4.4+4.3)/(4+4.1)) > 1e-9 || aa.RatioRounds != 2 {
		t.Errorf("bare metal has the mean %v, its control the ratio %v of %d rounds", bm.Mean, aa.Ratio, aa.RatioRounds)
	}
	if q := s.Ratio(bm, cn, stats.Alpha); math.Abs(q.Value-1/want.Value) > 1e-9 || q.N != 4 {
		t.Errorf("bare metal over the container: %+v", q)
	}
	if s.Base(cn) != bm || s.Verdict(bm) != "" || s.Verdict(cn) != stats.Slower {
		t.Errorf("verdicts %q of bare metal, %q of the container", s.Verdict(bm), s.Verdict(cn))
	}
	same, err := data.Read([]string{dir}, data.Options{Baseline: map[string]string{"platform": "bm"}})
	if err != nil {
		t.Fatal(err)
	}
	if same.Rows[2].Quotient() != cn.Quotient() || len(same.Baseline) > 0 {
		t.Errorf("bare metal by name is another reference than without: %+v", same.Rows[2].Quotient())
	}
}

// Where a container is the reference, it has its own rounds only. Bare metal keeps its control, and the check is of bare metal.
func TestAnotherReferenceHasNoControl(t *testing.T) {
	dir := pooledFolder(t, map[string][]float64{"bm": {4, 4.2, 4.1, 4.1}, "aa": {4.4, 0, 4.2, 4.3}, "cn": {5, 5.1, 5.2, 5.3}})
	usual, err := data.Read([]string{dir}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := data.Read([]string{dir}, data.Options{Baseline: map[string]string{"platform": "cn", "engine": "crun"}})
	if err != nil {
		t.Fatal(err)
	}
	cn, bm, aa := s.Rows[0], s.Rows[1], s.Rows[2]
	if cn.Treatment.Platform != "cn" || bm.Treatment.AA || !aa.Treatment.AA || !cn.IsBaseline() || cn.Ratio != 1 {
		t.Fatalf("the reference comes first, then bare metal and its control: %s, %s, %s", cn.Treatment.ID, bm.Treatment.ID, aa.Treatment.ID)
	}
	want := stats.Ratio([]float64{(4 + 4.4) / 2, 4.2, (4.1 + 4.2) / 2, (4.1 + 4.3) / 2}, []float64{5, 5.1, 5.2, 5.3}, stats.Sure(0))
	if q := bm.Quotient(); math.Abs(q.Value-want.Value) > 1e-9 || math.Abs(q.AtLeast-want.AtLeast) > 1e-9 || q.N != 4 || s.Verdict(bm) != stats.Faster || s.Verdict(cn) != "" {
		t.Errorf("%+v, want %+v; verdicts %q and %q", q, want, s.Verdict(bm), s.Verdict(cn))
	}
	if q := aa.Quotient(); q.N != 3 {
		t.Errorf("the control alone: %+v", q)
	}
	if a, b := s.AA[0], usual.AA[0]; a.Ratio != b.Ratio || a.Low != b.Low || a.Verdict != b.Verdict {
		t.Errorf("the A/A check is %+v, and was %+v", a, b)
	}
}

// The one-sided bounds of a row are within its interval, and decide the smallest margin at which it is equivalent.
func TestDecidedByBounds(t *testing.T) {
	s, err := data.Read([]string{pooledFolder(t, map[string][]float64{"bm": {4, 4.01, 3.98, 4.02}, "aa": {4, 4.02, 4, 3.99}, "cn": {4.04, 4.02, 4.05, 4.01}})}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cn := s.Rows[2]
	low, high := cn.RatioAtLeast, cn.RatioAtMost
	if !(low > cn.RatioLow) || !(high < cn.RatioHigh) {
		t.Errorf("%v to %v, the row's %+v", low, high, cn.Quotient())
	}
	if m := cn.Decided(); math.Abs(m-(high-1)) > 1e-9 || cn.Cost().Verdict(m+1e-9) != stats.Equivalent || cn.Cost().Verdict(m-1e-9) == stats.Equivalent {
		t.Errorf("decided at a margin of %v", m)
	}
}
