package study

import (
	"testing"

	"tare/notebook"
)

// The search finds the greatest number of guests that keeps the objective, whatever it is, in few steps, and no number twice.
func TestHowManyFitOfAKnownHost(t *testing.T) {
	for fits := 1; fits <= 300; fits++ {
		c := crowd{Fit: notebook.Fit{To: 256}}
		seen := map[int]bool{}
		for n, ok := c.next(); ok; n, ok = c.next() {
			if seen[n] || n > 256 || len(seen) > 20 {
				t.Fatalf("%d fit: %d again, or too many, after %v", fits, n, seen)
			}
			seen[n] = true
			c.take(notebook.FitStep{Guests: n, Met: n == 1 || n <= fits})
		}
		if want := min(fits, 256); c.met != want {
			t.Errorf("%d fit, %d were found", want, c.met)
		}
	}
}

func TestAnObjective(t *testing.T) {
	u, err := ParseUntil("p95 < 1.5x")
	if err != nil || u.Fit.Metric != "p95" || u.Fit.Factor != 1.5 {
		t.Errorf("%+v, %v", u, err)
	}
	for _, text := range []string{"p95 < 1x", "p95 > 1.5x", "p5 < 2x", "p95 < 1.5", "mean < 2x"} {
		if u, err := ParseUntil(text); err == nil {
			t.Errorf("%q: %+v", text, u)
		}
	}
}

// Runs that are all over the bound are few, those in between are all that there are.
func TestWhetherRunsKeepABound(t *testing.T) {
	for _, c := range []struct {
		over, runs   int
		q            float64
		met, decided bool
	}{{4, 4, 0.95, false, true}, {0, 20, 0.95, true, false}, {1, 20, 0.95, true, false}, {2, 20, 0.95, false, false}, {0, 12, 0.5, true, true}, {12, 12, 0.5, false, true}} {
		if met, decided := keeps(c.over, c.runs, c.q); met != c.met || decided != c.decided {
			t.Errorf("%d of %d over at %g: met %v, decided %v", c.over, c.runs, c.q, met, decided)
		}
	}
}

func TestWhatRanOut(t *testing.T) {
	for _, c := range []struct {
		s    notebook.FitStep
		want string
	}{
		{notebook.FitStep{Pressure: map[string]float64{"cpu": 0.9, "io": 0.2, "memory": 0.01}}, notebook.OutOfCPU},
		{notebook.FitStep{Pressure: map[string]float64{"cpu": 0.2, "io": 0.8}}, notebook.OutOfIO},
		{notebook.FitStep{Failure: "neighbour 3: the host has 200 MiB of memory left, of which 100 are kept"}, notebook.OutOfMemory},
		{notebook.FitStep{Failure: "neighbour 3: no guest: docker said no"}, notebook.OutOfEngine},
		{notebook.FitStep{Failure: "fork failed", Processes: 95, Most: 100}, notebook.OutOfProcesses},
	} {
		if got, _ := ranOut(c.s); got != c.want {
			t.Errorf("%+v: %s, want %s", c.s, got, c.want)
		}
	}
}

// A search makes neighbours, takes them away again, and says how many fit and what ran out.
func TestATrialSeeksHowManyFit(t *testing.T) {
	s := &street{fakeLab: fakeLab{elapsed: steady}, refused: 6}
	p := neighbourly("none")
	p.Study.Fit = &notebook.Fit{Metric: "p95", Factor: 1.5, To: 64}
	p.Study.Design.Warmups = 0
	book := &fakeBook{}
	if _, err := (&Run{Plan: p, Lab: s, Book: book}).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.live != 0 || book.measured() != 2 {
		t.Errorf("%d guests are left, %d trials", s.live, book.measured())
	}
	f := book.trials[0].Fitted
	if f == nil || f.Guests < 4 || f.RanOut != notebook.OutOfEngine || book.trials[0].Figures[notebook.FitFigure.Name] != float64(f.Guests) {
		t.Errorf("%+v", book.trials[0])
	}
}
