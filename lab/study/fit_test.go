package study

import (
	"math"
	"math/rand/v2"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	fitkind "tare/notebook/kinds/fit"
)

// seek has a search on a host on which a run beside so many guests takes some time, until nothing is left to be tried or settled.
func seek(t *testing.T, q float64, factor float64, to int, run func(guests int) float64) (*fitkind.Fitted, int) {
	t.Helper()
	c := crowd{Config: fitkind.Config{Metric: "p50", Factor: factor, To: to}, q: q}
	runs := 0
	for a, n, settles := c.next(); a != nil; a, n, settles = c.next() {
		for range n {
			a.Values = append(a.Values, run(a.Guests))
			runs++
			if runs%3 > 0 { // as often is often enough, and judging takes time
				continue
			}
			if c.judge(); a.Guests > 1 && (a.Decided || !settles && a.clear) {
				break
			}
		}
		if c.judge(); len(a.Values) > fitMost+fitBlock || len(c.tried) > 40 {
			t.Fatalf("%d guests had %d runs, %d numbers were tried", a.Guests, len(a.Values), len(c.tried))
		}
	}
	seen := map[int]bool{}
	for _, a := range c.tried {
		if seen[a.Guests] || a.Guests > to {
			t.Fatalf("%d guests again, or too many", a.Guests)
		}
		seen[a.Guests] = true
	}
	return c.found(), runs
}

// The search finds the greatest number of guests that keeps the objective, whatever it is, in few steps, no number twice, and is sure of it.
func TestHowManyFitOfAKnownHost(t *testing.T) {
	for fits := 1; fits <= 300; fits += 1 + fits/8 {
		f, runs := seek(t, 0.5, 1.5, 256, func(guests int) float64 {
			if guests > fits {
				return 2
			}
			return 1
		})
		if want := min(fits, 256); f.Guests != want || !f.Decided || (f.RanOut == "") != (fits >= 256) || runs > 500 {
			t.Errorf("%d fit, found after %d runs: %+v", want, runs, f)
		}
	}
}

// On a noisy host the search takes more runs where its first ones were too few, is wrong in one of twenty searches at most where it says that it is sure, and says that it is not
// where the objective is what a number of guests comes to.
func TestHowManyFitOfANoisyHost(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		name        string
		q, factor   float64
		noise       float64
		sure        float64 // share of the searches that must be
		correlation float64 // of a run with the one before it
	}{{"median", 0.5, 2.5, 0.2, 0.95, 0}, {"tail", 0.95, 2.5, 0.05, 0.95, 0}, {"at the bound", 0.5, 3, 0.2, 0, 0}, {"runs that resemble each other", 0.5, 2.5, 0.1, 0.95, 0.7}} {
		const searches = 40
		sure, wrong := 0, 0
		for range searches {
			level := r.NormFloat64()
			f, _ := seek(t, c.q, c.factor, 64, func(guests int) float64 {
				level = c.correlation*level + math.Sqrt(1-c.correlation*c.correlation)*r.NormFloat64()
				return math.Ceil(float64(guests)/2) * math.Exp(c.noise*level)
			})
			if f.Decided {
				sure++
				if f.Guests != 4 { // five or six are three on a core
					wrong++
				}
			}
		}
		if float64(wrong) > 0.05*searches && c.sure > 0 || float64(sure) < c.sure*searches || c.sure == 0 && sure > searches/10 {
			t.Errorf("%s: of %d searches %d are sure, %d of them wrongly", c.name, searches, sure, wrong)
		}
	}
}

// What the first runs said of a number of guests is taken back where more runs say otherwise.
func TestASearchThatWasMisled(t *testing.T) {
	runs := map[int]int{}
	f, _ := seek(t, 0.95, 1.5, 64, func(guests int) float64 {
		runs[guests]++
		if guests > 4 && (guests != 6 || runs[6] > fitRuns || runs[6]%11 == 0) {
			return 2
		}
		return 1
	})
	if f.Guests != 4 || !f.Decided || runs[6] <= fitRuns {
		t.Errorf("%d fit, decided %v, six had %d runs", f.Guests, f.Decided, runs[6])
	}
}

// Runs that follow each other slowly are said to be worth few.
func TestWhatASearchSaysOfRunsThatResembleEachOther(t *testing.T) {
	s := fitkind.Step{Guests: 2, Runs: 60, Ratio: 1.2, Decided: true}
	for i := range s.Runs {
		s.Values = append(s.Values, math.Sin(float64(i)/10))
	}
	if got := said(s); !regexp.MustCompile(`60 runs that resemble each other, worth [1-4]\)$`).MatchString(got) {
		t.Error(got)
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

func TestWhatRanOut(t *testing.T) {
	for _, c := range []struct {
		s    fitkind.Step
		want string
	}{
		{fitkind.Step{Pressure: map[string]float64{"cpu": 0.9, "io": 0.2, "memory": 0.01}}, fitkind.OutOfCPU},
		{fitkind.Step{Pressure: map[string]float64{"cpu": 0.2, "io": 0.8}}, fitkind.OutOfIO},
		{fitkind.Step{Failure: "neighbour 3: the host has 200 MiB of memory left, of which 100 are kept"}, fitkind.OutOfMemory},
		{fitkind.Step{Failure: "neighbour 3: no guest: docker said no"}, fitkind.OutOfEngine},
		{fitkind.Step{Failure: "fork failed", Processes: 95, Most: 100}, fitkind.OutOfProcesses},
	} {
		if got, _ := ranOut(c.s); got != c.want {
			t.Errorf("%+v: %s, want %s", c.s, got, c.want)
		}
	}
}

// A search makes neighbours, takes them away again, and says how many fit and what ran out.
func TestATrialSeeksHowManyFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &street{fakeLab: fakeLab{elapsed: steady}, refused: 6}
		p := neighbourly("none")
		p.Study.Kind, p.Study.Config = fitkind.Name, &fitkind.Config{Metric: "p95", Factor: 1.5, To: 64}
		p.Study.Design.Warmups = 0
		book := &fakeBook{}
		if _, err := (&Run{Plan: p, Lab: s, Book: book}).Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.live != 0 || book.measured() != 2 {
			t.Errorf("%d guests are left, %d trials", s.live, book.measured())
		}
		f := fitkind.SeenBy(&book.trials[0]).Fitted
		if f == nil || f.Guests < 4 || !f.Decided || f.RanOut != fitkind.OutOfEngine || book.trials[0].Figures[fitkind.Guests.Name] != float64(f.Guests) {
			t.Errorf("%+v", book.trials[0])
		}
	})
}

// Searches share the time that there is, and end in it though nothing is decided: what they found is a trial, and says so.
func TestSearchesShareTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &street{fakeLab: fakeLab{elapsed: steady}, work: func() { time.Sleep(time.Second) }}
		p := neighbourly("none")
		p.Study.Kind, p.Study.Config = fitkind.Name, &fitkind.Config{Metric: "p95", Factor: 1.5, To: 2}
		p.Study.Design.Warmups = 0
		book := &fakeBook{}
		began := time.Now()
		reason, err := (&Run{Plan: p, Lab: s, Book: book, Deadline: began.Add(3 * time.Minute)}).Do(t.Context())
		if took := time.Since(began); err != nil || reason != Capped || took > 3*time.Minute || took < 2*time.Minute {
			t.Errorf("it took %v: %s, %v", took, reason, err)
		}
		for _, tr := range book.trials {
			if f := fitkind.SeenBy(&tr).Fitted; f == nil || f.Guests != 2 || f.Decided || f.Steps[0].Runs <= fitRuns {
				t.Errorf("%+v", f)
			}
		}
		if s.live != 0 || book.measured() != 2 {
			t.Errorf("%d guests are left, %d trials", s.live, book.measured())
		}
	})
}

// A search says how sure it is of what it found.
func TestASearchSaysHowSureItIs(t *testing.T) {
	f := fitkind.Config{Metric: "p95", Factor: 1.5}
	four := fitkind.Step{Guests: 4, Runs: 150, Ratio: 1.2, Low: 1.1, High: 1.3, Met: true, Decided: true}
	five := fitkind.Step{Guests: 5, Runs: 1, Ratio: 1.6, Pressure: map[string]float64{"cpu": 0.8}}
	for _, c := range []struct {
		steps []fitkind.Step
		want  string
	}{
		{[]fitkind.Step{{Guests: 1, Met: true}, four, five}, "4 guests fit (p95 below 1.5 times its value alone); with 4 guests it is 1.2 times its value alone (1.1 to 1.3, 150 runs); " +
			"what runs out first is CPU: with 5 guests it is 1.6 times its value alone (1 run), which does not decide it; for 80 % of the time something waited for CPU"},
		{[]fitkind.Step{{Guests: 1, Met: true}, {Guests: 2, Failure: "no guest"}}, "1 guest fits (p95 below 1.5 times its value alone); what runs out first is the engine: with 2 guests: no guest"},
		{[]fitkind.Step{{Guests: 1, Met: true}, four}, "4 guests fit (p95 below 1.5 times its value alone); with 4 guests it is 1.2 times its value alone (1.1 to 1.3, 150 runs); more are not tried"},
	} {
		search := crowd{Config: f}
		for _, s := range c.steps {
			search.tried = append(search.tried, &attempt{Step: s})
		}
		if got := fitting(cnT, f, *search.found()); got != cnT.ID+": "+c.want+"; all of it is from one measured guest, and another may be slower or faster" {
			t.Errorf("%s", got)
		}
	}
}
