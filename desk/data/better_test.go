package data_test

import (
	"math"
	"testing"

	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
	"tare/stats"
)

func streamed(t *testing.T) *data.Summary {
	t.Helper()
	s, err := data.Read([]string{notebooktest.Stream().Write(t)}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func near(got, want float64) bool { return math.Abs(got-want) < 0.01 }

// The ratio is the metric's own, and its cost is one over the ratio where higher is better. Secondary metrics with a direction have rows of
// their own, with a check of bare metal against itself. The others have a column.
func TestCosts(t *testing.T) {
	s := streamed(t)
	if len(s.Rows) != 5 {
		t.Fatalf("%d rows", len(s.Rows))
	}
	for i, want := range []struct{ ratio, cost, triad, latency, latencyCost float64 }{
		{1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}, {0.84, 1 / 0.84, 0.84, 1 / 0.84, 1 / 0.84}, {1, 1, 1, 1, 1}, {0.95, 1 / 0.95, 0.80, 1 / 0.95, 1 / 0.95},
	} {
		r := s.Rows[i]
		c := r.Cost()
		if !near(r.Ratio, want.ratio) || !near(c.Value, want.cost) || !(c.Low <= c.Value && c.Value <= c.High) {
			t.Errorf("%s: %v costs %+v; want %v, %v", r.Treatment.ID, r.Ratio, c, want.ratio, want.cost)
		}
		if len(r.Figures) != 2 {
			t.Fatalf("%s: %d metrics with rows of their own, want 2", r.Treatment.ID, len(r.Figures))
		}
		triad, latency := r.Figures[0], r.Figures[1]
		if triad.Metric.Name != "triad bandwidth" || !near(triad.Ratio, want.triad) || triad.Rounds != 10 || triad.DotsOf != 20 || triad.Baseline != r.Baseline || !near(triad.Cost().Value, 1/want.triad) {
			t.Errorf("%s: %+v", r.Treatment.ID, triad)
		}
		if latency.Metric.Name != "latency" || !near(latency.Ratio, want.latency) || !near(latency.Cost().Value, want.latencyCost) || latency.Mean > 0.2 {
			t.Errorf("%s: %+v", r.Treatment.ID, latency)
		}
		if i > 1 && (triad.Quotient().HasInterval() != true || triad.RatioLow > triad.Ratio || triad.RatioHigh < triad.Ratio) {
			t.Errorf("%s: %+v", r.Treatment.ID, triad.Quotient())
		}
	}
	if a := s.Rows[2].Cost().Verdict(0.01); a != stats.Slower {
		t.Errorf("a bandwidth of 84 %% %s", a)
	}
	table := s.Tables()
	if of := data.InFigures(table[0]); len(table) != 1 || len(of) != 2 || len(of[0]) != 5 || of[1][0].Metric.Name != "latency" {
		t.Errorf("%d tables, and %d of other metrics", len(table), len(of))
	}
	if c := data.SecondaryColumns(table[0]); len(c) != 1 || c[0].Metric.Name != "passes" {
		t.Errorf("columns: %+v", c)
	}
	if len(s.AA) != 3 || s.AA[0].Figure.Name != "" || s.AA[1].Figure.Name != "triad bandwidth" || s.AA[2].Figure.Name != "latency" {
		t.Errorf("checks: %+v", s.AA)
	}
}

// Where bare metal differs from itself in one metric, only that metric is in doubt.
func TestAMetricInDoubt(t *testing.T) {
	f := notebooktest.Stream()
	of := f.Trial
	f.Trial = func(t *notebook.Trial) {
		of(t)
		if t.Treatment == "stream bm aa 2/4GB" {
			t.Figures["triad bandwidth"] *= 0.8
		}
	}
	s, err := data.Read([]string{f.Write(t)}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := s.Rows[2]
	if r.Doubtful || !r.Figures[0].Doubtful || r.Figures[1].Doubtful || s.Doubt(r) != 1 || s.Doubt(r.Figures[0]) < 1.2 {
		t.Errorf("doubtful: %v, %v, %v", r.Doubtful, r.Figures[0].Doubtful, r.Figures[1].Doubtful)
	}
}
