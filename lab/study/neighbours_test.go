package study

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tare/lab/crowd"
	"tare/lab/proc"
	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
)

// neighbourLab is a lab whose guests have neighbours that do what the test sets.
type neighbourLab struct {
	fakeLab
	idles, dies, refused int // the neighbour, counted from 1; 0: none
	stuck                error
	seats                []int
	silent               int                 // from this neighbour on, the engine does not answer; 0: it always answers
	takes                func(nth int) int64 // memory of a guest in bytes; nil: none
	work                 func()              // of the measured guest; nil: a millisecond
}

type resident struct {
	fakeGuest
	s    *neighbourLab
	nth  int // of the neighbours made; 0: the measured guest
	from time.Time
}

func (s *neighbourLab) Provision(ctx context.Context, w crowd.Want) (crowd.Guest, error) {
	t := w.Treatment
	if strings.HasPrefix(w.ID, "w-") { // not a guest of a trial
		return s.neighbour(ctx, t, w.Work, w.Seat)
	}
	s.Live++
	s.seats = nil
	return &resident{s.guest(t), s, 0, time.Now()}, nil
}
func (s *neighbourLab) neighbour(ctx context.Context, t notebook.Treatment, w *workload.Ready, seat int) (crowd.Guest, error) {
	if !w.Workload.Stays && w.Params["times"] != "1000000" {
		return nil, errors.New("a neighbour whose work ends")
	}
	s.seats = append(s.seats, seat)
	if s.silent > 0 && len(s.seats) >= s.silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if len(s.seats) == s.refused {
		return nil, errors.New("the bridge is full")
	}
	s.Live++
	s.Most = max(s.Most, s.Live)
	return &resident{s.guest(t), s, len(s.seats), time.Now()}, nil
}
func (g *resident) Ruler() crowd.Ruler { return g }
func (g *resident) Resident() (int64, error) {
	if g.s.takes == nil {
		return 0, nil
	}
	return g.s.takes(g.nth), nil
}
func (g *resident) Destroy(ctx context.Context) error {
	if g.s.silent > 0 && len(g.s.seats) >= g.s.silent && g.nth > 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	g.s.Live--
	if g.nth > 0 {
		return g.s.stuck
	}
	return nil
}
func (g *resident) Demanded() (d proc.Demand, err error) {
	if g.nth != g.s.idles || g.nth == 0 {
		d.Ran, d.Moved = time.Since(g.from), int64(time.Since(g.from)) // it always works, and moves a byte a nanosecond
	}
	return d, nil
}
func (g *resident) Run(ctx context.Context, o ruler.Order) (ruler.Result, time.Duration, error) {
	if g.nth == 0 {
		if g.s.work != nil {
			g.s.work()
		} else {
			time.Sleep(time.Millisecond) // simulated work, during which its neighbours run
		}
		return g.fakeGuest.Run(ctx, o)
	}
	if o.Bounds != nil {
		o.Bounds.Begin()
	}
	if g.nth == g.s.dies {
		return ruler.Result{Exit: 3}, 0, nil
	}
	<-ctx.Done()
	return ruler.Result{}, 0, ctx.Err()
}

func neighbourly(text string) *Plan {
	t := cnT
	t.Workload, t.Factors = "w", map[string]string{notebook.FactorNeighbours.Name: text}
	p := fakePlan(notebook.Design{Floor: 2, Cap: 2, Trials: 1, Warmups: 1}, t)
	p.ready[t.Label()] = p.ready["w"]
	busy := &workload.Ready{Workload: &workload.Workload{Stays: true}, Image: p.ready["w"].Image}
	p.work = map[string]*workload.Ready{notebook.BusyCPU: busy, notebook.BusyIO: busy}
	work := *p.ready["w"].Workload
	work.Length, work.Params = "times", map[string]workload.Param{"times": {Values: "1 to 1000000"}}
	p.ready[t.Label()] = &workload.Ready{Workload: &work, Image: p.ready["w"].Image, Params: map[string]string{"times": "3"}}
	return p
}

// Each trial runs next to busy neighbours, which are removed after it. The notebook records what they did.
func TestTrialNextToNeighbours(t *testing.T) {
	for _, c := range []struct {
		text  string
		seats []int
	}{{"cpu:2+io:1", []int{0, 0, 0}}, {"cpu:3/core", []int{1, 0, 1, 0, 1}}, {"work:3", []int{1, 0, 1}}, {"cpu:2+work:2", []int{0, 0, 1, 0}}} {
		s := &neighbourLab{fakeLab: fakeLab{elapsed: steady}}
		book := &fakeBook{}
		p := neighbourly(c.text)
		r := &Run{Plan: p, Lab: s, Book: book}
		if _, err := r.Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		n := len(c.seats)
		if s.Live != 0 || s.Most != n+1 || !slices.Equal(s.seats, c.seats) {
			t.Errorf("%s: %d guests at most, %d left, seats %v", c.text, s.Most, s.Live, s.seats)
		}
		if book.measured() != 2 {
			t.Errorf("%s: %d trials", c.text, book.measured())
		}
		for _, tr := range book.trials {
			if tr.Failure != nil || tr.Neighbours == nil || len(tr.Neighbours.Neighbours) != n || tr.Neighbours.Neighbours[0].RanS <= 0 || tr.Figures[notebook.Fairness.Name] < 0.9 {
				t.Errorf("%s: %+v, neighbours %+v", c.text, tr, tr.Neighbours)
			}
		}
	}
}

// A neighbour that idles, ends or cannot be made fails its trial, with the reason. The study continues to its end and removes all guests.
func TestNeighbourThatIsNotBusy(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*neighbourLab)
		want string
	}{
		{"idles", func(s *neighbourLab) { s.idles = 2 }, "neighbour-idle"},
		{"dies", func(s *neighbourLab) { s.dies = 2 }, "neighbour-ended"},
		{"refused", func(s *neighbourLab) { s.refused = 1 }, "of-neighbour-of"},
	} {
		s := &neighbourLab{fakeLab: fakeLab{elapsed: steady}}
		c.set(s)
		book := &fakeBook{}
		p := neighbourly("cpu:2")
		r := &Run{Plan: p, Lab: s, Book: book}
		if _, err := r.Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.Live != 0 || book.measured() == 0 || r.Failed() != book.measured() {
			t.Errorf("%s: %d guests left, %d of %d trials failed", c.name, s.Live, r.Failed(), book.measured())
		}
		for _, tr := range book.trials {
			if !tr.Failure.Is(c.want) && !tr.Failure.Is("guest-failed-before") {
				t.Errorf("%s: %q, want %q", c.name, tr.Failure, c.want)
			}
		}
	}
	s := &neighbourLab{fakeLab: fakeLab{elapsed: steady}, stuck: errors.New("it is mounted")}
	p := neighbourly("cpu:1")
	if _, err := (&Run{Plan: p, Lab: s, Book: &fakeBook{}}).Do(t.Context()); err == nil || !strings.Contains(err.Error(), "a neighbour could not be removed: it is mounted") {
		t.Errorf("a neighbour that cannot be removed: %v", err)
	}
}

// If an engine stops answering when there are many guests, the study ends within minutes. It keeps the results so far, and gives the reason.
func TestEngineThatStopsAnsweringUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &neighbourLab{fakeLab: fakeLab{elapsed: steady}, silent: 60}
		p := neighbourly("cpu:300")
		quiet := p.Study.Treatments[0]
		quiet.ID, quiet.Factors = "alone", map[string]string{notebook.FactorNeighbours.Name: "none"}
		p.Study.Treatments = append([]notebook.Treatment{quiet}, p.Study.Treatments...)
		p.ready[quiet.Label()] = p.ready["w"]
		p.Study.Design.Floor, p.Study.Design.Cap = 1, 1
		for Order(p.Study.Seed, 0, 2)[0] != 0 { // it has its results when the engine stops answering
			p.Study.Seed++
		}
		book := &fakeBook{}
		began := time.Now()
		_, err := (&Run{Plan: p, Lab: s, Book: book}).Do(t.Context())
		if took := time.Since(began); took > crowd.ProvisionTimeout+3*crowd.DestroyTimeout {
			t.Errorf("it took %v", took)
		}
		if err == nil || !strings.Contains(err.Error(), "(and 58 more guests); `tare clean` tries again") {
			t.Errorf("59 guests that cannot be removed: %v", err)
		}
		figures := 0
		for _, tr := range book.trials {
			if tr.Treatment == "alone" && tr.Failure == nil && !tr.Warmup {
				figures++
			}
		}
		if figures != 1 {
			t.Error("the results of the other treatment are lost")
		}
	})
}

// No guest is made if the host's memory has no room for it. The trial names that cause.
func TestNeighboursWithoutMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := func(nth int) int64 { // from the fourth neighbour on, a guest takes more than the host has
			if nth >= 4 {
				return 1 << 50
			}
			return 0
		}
		s := &neighbourLab{fakeLab: fakeLab{elapsed: steady}, takes: full}
		book := &fakeBook{}
		if _, err := (&Run{Plan: neighbourly("cpu:9"), Lab: s, Book: book}).Do(t.Context()); err != nil || s.Live != 0 || s.Most != 5 || book.measured() != 2 {
			t.Errorf("%v: %d guests at most, %d left, %d trials", err, s.Most, s.Live, book.measured())
		}
		if why := book.trials[0].Failure.String(); !strings.HasPrefix(why, "of-neighbour-of cause=no-room ") || !strings.Contains(why, "guests=5") || !strings.HasSuffix(why, "neighbour=5 of=9") {
			t.Errorf("%q", why)
		}
	})
}

// The page cache of a neighbour's I/O stays in a VM's memory. That of a container belongs to the host.
func TestNeighboursThatDoNotFit(t *testing.T) {
	h := notebook.Host{CPUs: make([]notebook.CPU, 2), Memory: 4 << 30}
	of := func(platform, text string) notebook.Treatment {
		return notebook.Treatment{Platform: platform, Factors: map[string]string{notebook.FactorNeighbours.Name: text}, Instance: notebook.Instance{Cores: 1, Memory: 1 << 30}}
	}
	for _, c := range []struct {
		t    notebook.Treatment
		fits bool
	}{{of(notebook.VM, "io:2"), true}, {of(notebook.VM, "io:3"), false}, {of(notebook.VM, "io:2/core"), false}, {of(notebook.VM, "cpu:6/core"), true}, {of(notebook.CN, "io:8/core"), true},
		{of(notebook.CN, "cpu:1000/core"), false}} {
		if err := neighboursFit(h, c.t); (err == nil) != c.fits {
			t.Errorf("%s %v: %v", c.t.Platform, c.t.Factors, err)
		}
	}
}
