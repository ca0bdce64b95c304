package fit

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tare/lab/crowd"
	"tare/lab/measure"
	"tare/lab/measure/measuretest"
	"tare/lab/proc"
	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
	record "tare/notebook/kinds/fit"
	"tare/notebook/notebooktest"
)

// simulate runs a search until nothing is left to try or to settle; run returns the time of one run with a number of guests. It
// returns what was found, and the number of runs.
func simulate(t *testing.T, q float64, factor float64, to int, run func(guests int) float64) (*record.Fitted, int) {
	t.Helper()
	c := search{Config: record.Config{Metric: "p50", Factor: factor, To: to}, q: q}
	runs := 0
	for a, n, settles := c.next(); a != nil; a, n, settles = c.next() {
		for range n {
			a.Values = append(a.Values, run(a.Guests))
			runs++
			if runs%3 > 0 { // judging takes time, and every third run is often enough
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

// The search finds the greatest number of guests that keeps the objective, in few runs. It tries no number twice, and is sure of
// its result.
func TestHowManyFitOfAKnownHost(t *testing.T) {
	for fits := 1; fits <= 300; fits += 1 + fits/8 {
		f, runs := simulate(t, 0.5, 1.5, 256, func(guests int) float64 {
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

// On a noisy host the search adds runs where the first ones were too few. At most one in twenty of the searches that say they are
// sure is wrong. A search is not sure where a number of guests meets the objective exactly.
func TestHowManyFitOfANoisyHost(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		name        string
		q, factor   float64
		noise       float64
		sure        float64 // share of the searches that must be sure
		correlation float64 // correlation of a run with the previous one
	}{{"median", 0.5, 2.5, 0.2, 0.95, 0}, {"tail", 0.95, 2.5, 0.05, 0.95, 0}, {"at the bound", 0.5, 3, 0.2, 0, 0}, {"runs that resemble each other", 0.5, 2.5, 0.1, 0.95, 0.7}} {
		const searches = 40
		sure, wrong := 0, 0
		for range searches {
			level := r.NormFloat64()
			f, _ := simulate(t, c.q, c.factor, 64, func(guests int) float64 {
				level = c.correlation*level + math.Sqrt(1-c.correlation*c.correlation)*r.NormFloat64()
				return math.Ceil(float64(guests)/2) * math.Exp(c.noise*level)
			})
			if f.Decided {
				sure++
				if f.Guests != 4 { // five or six guests are three on a core
					wrong++
				}
			}
		}
		if float64(wrong) > 0.05*searches && c.sure > 0 || float64(sure) < c.sure*searches || c.sure == 0 && sure > searches/10 {
			t.Errorf("%s: of %d searches %d are sure, %d of them wrongly", c.name, searches, sure, wrong)
		}
	}
}

// The search revises what the first runs said of a number of guests where more runs say otherwise.
func TestASearchThatWasMisled(t *testing.T) {
	runs := map[int]int{}
	f, _ := simulate(t, 0.95, 1.5, 64, func(guests int) float64 {
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

// Where each run resembles the previous one, the search says that its runs are worth few.
func TestASearchReportsRunsThatResembleEachOther(t *testing.T) {
	s := record.Step{Guests: 2, Runs: 60, Ratio: 1.2, Decided: true}
	for i := range s.Runs {
		s.Values = append(s.Values, math.Sin(float64(i)/10))
	}
	if got := said(s).String(); !regexp.MustCompile(`runs=60 worth=[1-4](\.[0-9]+)?$`).MatchString(got) {
		t.Error(got)
	}
}

func TestAnObjective(t *testing.T) {
	got, ok := Kind.Seek("p95 < 1.5x")
	if !ok {
		t.Fatal("it is not read")
	}
	if c := got.(config); c.Metric != "p95" || c.Factor != 1.5 || c.To != mostFit {
		t.Errorf("%+v", c)
	}
	if d := got.Design(notebook.Design{Floor: 4, Cap: 9, Precision: 0.01, Trials: 5, Warmups: 1}); d.Floor != 2 || d.Cap != 2 || d.Trials != 1 || d.Warmups != 0 || d.Precision != 0 {
		t.Errorf("%+v: want two rounds of one search each", d)
	}
	for _, text := range []string{"p95 < 1x", "p95 > 1.5x", "p5 < 2x", "p95 < 1.5", "mean < 2x"} {
		if c, ok := Kind.Seek(text); ok {
			t.Errorf("%q: %+v", text, c)
		}
	}
}

// The search needs a metric for which lower is better.
func TestAWorkloadsMetric(t *testing.T) {
	of := func(better notebook.Better) *workload.Workload {
		return &workload.Workload{Metric: workload.Metric{Metric: notebook.Metric{Name: "copy", Unit: "GB/s", Better: better}}, Also: []workload.Metric{{Metric: notebook.Metric{Name: "time", Unit: "s", Better: notebook.Lower}}}}
	}
	for _, c := range []struct {
		better       notebook.Better
		metric, want string
	}{
		{notebook.Lower, "p95", ""},
		{notebook.Higher, "p95", "has a copy where higher is better, but the search for how many guests fit needs a metric where lower is better"},
		{notebook.Neither, "p95", "has a copy without a direction"},
		{notebook.Higher, "time", ""},
	} {
		if err := (config{Config: record.Config{Metric: c.metric}}).Accepts(of(c.better)); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestWhatRanOut(t *testing.T) {
	for _, c := range []struct {
		s    record.Step
		full bool
		want string
	}{
		{record.Step{Pressure: map[string]float64{"cpu": 0.9, "io": 0.2, "memory": 0.01}}, false, record.OutOfCPU},
		{record.Step{Pressure: map[string]float64{"cpu": 0.2, "io": 0.8}}, false, record.OutOfIO},
		{record.Step{Failure: notebook.TextMessage("neighbour 3: the host has 200 MiB of memory left, of which 100 are kept")}, true, record.OutOfMemory},
		{record.Step{Failure: notebook.TextMessage("neighbour 3: no guest: docker said that there is not a byte of memory left")}, false, record.OutOfEngine},
		{record.Step{Failure: notebook.TextMessage("fork failed"), Processes: 95, Most: 100}, false, record.OutOfProcesses},
	} {
		if got, _ := ranOut(c.s, c.full); got != c.want {
			t.Errorf("%+v: %s, want %s", c.s, got, c.want)
		}
	}
}

// street is a laboratory in which a search finds neighbours. A neighbour is busy once its work has begun.
type street struct {
	measuretest.Lab
	full  int           // number of guests at which the engine refuses another; 0: it never does
	heavy int           // from this guest on, each takes more memory than the host has; 0: none does
	work  time.Duration // how long a run of the measured guest takes, in the bubble
	notes []*notebook.Message
}

type resident struct {
	measuretest.Guest
	bytes int64
	began time.Time // when its work began; zero: not yet
}

func (g *resident) Resident() (int64, error) { return g.bytes, nil }
func (g *resident) Demanded() (d proc.Demand, err error) {
	if !g.began.IsZero() {
		d.Ran = time.Since(g.began)
	}
	return d, nil
}

// provision makes the measured guest first.
func (s *street) provision(w crowd.Want) (crowd.Guest, error) {
	g := &resident{Guest: measuretest.Guest{Lab: &s.Lab, T: w.Treatment}}
	if s.heavy > 0 && s.Live+1 >= s.heavy {
		g.bytes = 1 << 50
	}
	switch {
	case s.Live == 0:
		g.Does = func(context.Context, ruler.Order) (ruler.Result, time.Duration, error) {
			time.Sleep(s.work)
			return ruler.Result{Elapsed: time.Second}, time.Second, nil
		}
		return g, nil
	case !w.Work.Workload.Stays:
		return nil, errors.New("a neighbour whose work ends")
	case s.Live == s.full:
		return nil, errors.New("the bridge is full")
	}
	g.Does = func(ctx context.Context, o ruler.Order) (ruler.Result, time.Duration, error) {
		g.began = time.Now()
		o.Bounds.Begin()
		<-ctx.Done()
		return ruler.Result{}, 0, ctx.Err()
	}
	return g, nil
}

// search makes one trial within a time; 0: the time of a run without a time budget.
func (s *street) search(t *testing.T, c record.Config, within time.Duration) notebook.Trial {
	t.Helper()
	s.Made = s.provision
	b := measuretest.Bench(s)
	b.Neighbour = func(_ notebook.Treatment, busy string) *workload.Ready {
		if busy != notebook.BusyCPU {
			t.Errorf("a neighbour that is busy with %q", busy)
		}
		ready := measuretest.Work()
		ready.Workload.Stays = true
		return ready
	}
	b.Note = func(m *notebook.Message) { s.notes = append(s.notes, m) }
	b.Until = func(usual time.Duration) time.Time {
		if usual != fitSettling {
			t.Errorf("its usual time is %v", usual)
		}
		return time.Now().Add(cmp.Or(within, usual))
	}
	of := measure.Cell{Treatment: notebook.Treatment{ID: "w cn", Platform: notebook.CN, Instance: notebook.Instance{Cores: 1}}, Ready: measuretest.Work()}
	tr, err := measuretest.TrialOf(t.Context(), t, config{Config: c}.Subject(b, of), measure.Step{})
	if err != nil {
		t.Fatal(err)
	}
	if tr.Failure != nil || s.Live != 0 {
		t.Errorf("%q, %d guests are left", tr.Failure, s.Live)
	}
	return tr
}

// A search makes neighbours and removes them again. It says how many guests fit and what ran out.
func TestATrialFindsHowManyFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &street{work: time.Millisecond, full: 6}
		tr := s.search(t, record.Config{Metric: "p95", Factor: 1.5, To: 64}, 0)
		f := notebooktest.Seen[record.Seen](&tr).Fitted
		if f == nil || f.Guests != 6 || !f.Decided || f.RanOut != record.OutOfEngine || tr.Figures[record.Guests.Name] != 6 || tr.Value != 1./6 {
			t.Errorf("%+v, %+v", tr, f)
		}
		if len(s.notes) != 1 || !strings.HasPrefix(s.notes[0].String(), "fitting factor=1.5 guests=6 metric=p95 ") {
			t.Errorf("notes %q", s.notes)
		}
	})
}

// A search makes no guest for which the host lacks memory, and names memory as what ran out.
func TestMemoryThatWouldRunOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &street{work: time.Millisecond, heavy: 5}
		tr := s.search(t, record.Config{Metric: "p50", Factor: 1.5, To: 64}, 0)
		if f := notebooktest.Seen[record.Seen](&tr).Fitted; f == nil || f.Guests != 5 || f.RanOut != record.OutOfMemory || !f.Why.Is("of-neighbour-of") || s.Most != 5 {
			t.Errorf("%d guests at most, %+v", s.Most, f)
		}
	})
}

// A search ends within its time even if nothing is decided. Its trial counts, and says that nothing is decided.
func TestASearchKeepsToItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &street{work: time.Second}
		began := time.Now()
		tr := s.search(t, record.Config{Metric: "p95", Factor: 1.5, To: 2}, 80*time.Second)
		if took := time.Since(began); took > 81*time.Second || took < time.Minute {
			t.Errorf("it took %v", took)
		}
		if f := notebooktest.Seen[record.Seen](&tr).Fitted; f == nil || f.Guests != 2 || f.Decided || f.Steps[0].Runs <= fitRuns {
			t.Errorf("%+v", f)
		}
	})
}

// A search says how sure it is of its result.
func TestASearchSaysHowSureItIs(t *testing.T) {
	f := record.Config{Metric: "p95", Factor: 1.5}
	four := record.Step{Guests: 4, Runs: 150, Ratio: 1.2, Low: 1.1, High: 1.3, Met: true, Decided: true}
	five := record.Step{Guests: 5, Runs: 1, Ratio: 1.6, Pressure: map[string]float64{"cpu": 0.8}}
	for _, c := range []struct {
		steps []record.Step
		want  string
	}{
		{[]record.Step{{Guests: 1, Met: true}, four, five}, "factor=1.5 guests=4 metric=p95 ran_out=CPU step=step decided=true guests=4 high=1.3 low=1.1 ratio=1.2 runs=150 worth=<nil> treatment=w cn " +
			"why=waited for=CPU share=0.8 step=step decided=false guests=5 high=0 low=0 ratio=1.6 runs=1 worth=<nil>"},
		{[]record.Step{{Guests: 1, Met: true}, {Guests: 2, Failure: notebook.TextMessage("no guest")}}, "factor=1.5 guests=1 metric=p95 ran_out=the engine step=<nil> treatment=w cn why=with-guests cause=no guest guests=2"},
		{[]record.Step{{Guests: 1, Met: true}, four}, "factor=1.5 guests=4 metric=p95 ran_out= step=step decided=true guests=4 high=1.3 low=1.1 ratio=1.2 runs=150 worth=<nil> treatment=w cn why=<nil>"},
	} {
		search := search{Config: f}
		for _, s := range c.steps {
			search.tried = append(search.tried, &attempt{Step: s})
		}
		if got := fitting(notebook.Treatment{ID: "w cn"}, f, *search.found()).String(); got != "fitting "+c.want {
			t.Errorf("%s", got)
		}
	}
}
