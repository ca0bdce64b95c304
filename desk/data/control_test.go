package data_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// places is a folder of bare metal, its check, and a container that costs two per cent more, at so many places. Each side of a check has an
// offset of its own in all rounds, with this standard deviation.
func places(n int, seed uint64, offset float64) *notebooktest.Folder {
	f := notebooktest.New(2)
	f.Seed, f.Rounds, f.Noise = seed, 10, 0.01
	f.Study.Design = notebook.Design{Floor: 10, Cap: 10, Trials: 1, TimeoutS: 60}
	g := rand.New(rand.NewPCG(seed, 2))
	for i := range n {
		for _, x := range []struct {
			words string
			mean  float64
		}{{"bm", 1}, {"bm aa", 1}, {"cn crun pinned", 1.02}} {
			f.Add(fmt.Sprintf("cpu n=%d %s 1/1GB", i, x.words), x.mean*(1+offset*g.NormFloat64()))
		}
	}
	return f
}

// A host is calibrated once, over all of its places. Of forty places on a steady host about two miss by themselves, and their small differences used to
// decide nothing, in nearly every study. Where the host is too unsteady everywhere, small differences decide nothing anywhere.
func TestAHostIsCalibratedOnce(t *testing.T) {
	const studies, of = 40, 40
	read := func(seed uint64, offset float64) (doubtful, alone int, s *data.Summary) {
		s, err := data.Read([]string{places(of, seed, offset).Write(t)}, data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.AA {
			if a := &s.AA[i]; a.Low > 1 || a.High < 1 {
				alone++
			}
		}
		for _, r := range s.Rows {
			if r.Doubtful {
				doubtful++
			}
		}
		return doubtful, alone, s
	}
	steady, missed := 0, 0
	for seed := range uint64(studies) {
		doubtful, alone, s := read(seed, 0)
		missed += alone
		if doubtful > 0 {
			steady++
		}
		if len(s.Calibrations) != 1 || s.Calibrations[0].Places != of || s.AA[0].Places != of {
			t.Fatalf("%+v", s.Calibrations)
		}
	}
	t.Logf("%d of %d studies on a steady host have doubtful rows; %d of %d places miss by themselves", steady, studies, missed, studies*of)
	if steady > 5 { // on average it is 2
		t.Errorf("%d of %d studies on a steady host have doubtful rows", steady, studies)
	}
	if missed < studies {
		t.Errorf("%d single places miss, want about 80", missed)
	}

	// Sides that differ by 1 % in all rounds: intervals of 10 rounds at 1 % noise are more than three times too narrow.
	doubtful, _, s := read(99, 0.01)
	c := s.Calibrations[0]
	if !c.Narrow() || c.Factor < 1.5 || doubtful < 3*of/4 {
		t.Errorf("on an unsteady host %d of %d rows are doubtful, by a factor of %v", doubtful, of, c.Factor)
	}
	said := false
	for _, d := range s.Doubts {
		n, is := d.(data.NarrowHost)
		said = said || is && n.Places == of && n.Host == "bench" && n.Low > 1
	}
	if !said {
		t.Error("it is not said of the host")
	}
	for _, a := range s.AA {
		r := &data.Row{Host: a.Host, HostCores: a.HostCores, Treatment: notebook.Treatment{Workload: a.Workload, Params: a.Params, Instance: a.Instance}}
		if a.Verdict == data.Narrow && math.Abs(s.Doubt(r)-math.Exp(a.Factor*math.Log(a.High/a.Low)/2)) > 1e-9 {
			t.Errorf("%+v: the doubt is %v", a, s.Doubt(r))
		}
		if a.Verdict != data.Narrow && a.Verdict != data.Misses || !(s.Doubt(r) > 1) {
			t.Errorf("%+v, %v", a, s.Doubt(r))
		}
	}
}

// Hosts are calibrated each for itself, and so are metrics.
func TestCalibrationsAreOfAHostAndMetric(t *testing.T) {
	a, b := places(3, 1, 0), places(4, 2, 0.02)
	b.Host.ID, b.Host.Hostname = "bbbbbbbbcccc", "other"
	b.Start = b.Start.Add(time.Hour)
	s, err := data.Read([]string{a.Write(t), b.Write(t)}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c := s.Calibrations; len(c) != 2 || c[0].Host != "bench" || c[0].Places != 3 || c[0].Narrow() || c[1].Host != "other" || c[1].Places != 4 {
		t.Errorf("%+v", c)
	}
	for _, r := range s.Rows {
		if r.Host == "bench" && r.Doubtful {
			t.Errorf("%s: %v", r.Treatment.ID, r.Doubts)
		}
	}
	s, err = data.Read([]string{notebooktest.Stream().Write(t)}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var figures []string
	for _, c := range s.Calibrations {
		figures = append(figures, c.Figure.Name)
	}
	if got := strings.Join(figures, ","); got != ",triad bandwidth,latency" {
		t.Errorf("%s", got)
	}
}

// The mean of bare metal and its control is what ratios divide by: where all rounds are complete, the two means give the ratio.
func TestMeansGiveTheRatio(t *testing.T) {
	s, err := data.Read([]string{places(3, 5, 0.03).Write(t)}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, r := range s.Rows {
		b := s.Base(r)
		if b == nil || b == r || r.Treatment.AA {
			continue
		}
		seen++
		both := s.MeanOfBoth(b)
		if got := r.Mean / both.Value; math.Abs(got-r.Ratio) > 1e-9 || !(both.Low < both.Value) || !(both.Value < both.High) {
			t.Errorf("%s: %g of %+v is %g, and the ratio %g", r.Treatment.ID, r.Mean, both, got, r.Ratio)
		}
		if own := s.MeanOfBoth(r); own.Value != r.Mean || own.Low != r.MeanLow || own.High != r.MeanHigh {
			t.Errorf("%s has no control: %+v, want its own mean", r.Treatment.ID, own)
		}
	}
	if seen != 3 {
		t.Errorf("%d rows", seen)
	}
}
