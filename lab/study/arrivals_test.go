package study

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
	arrivalskind "tare/notebook/kinds/arrivals"
)

func TestArrivalsAreRead(t *testing.T) {
	a, err := (&Arrivals{Rates: []int{1, 8}, For: "4s", Least: 6, Most: 20}).parse()
	if err != nil || a.Starts(1) != 6 || a.Starts(4) != 16 || a.Starts(100) != 20 {
		t.Errorf("%+v, %v: want 6 requests at least, 20 at most, and as many as four seconds bring between", a, err)
	}
	for want, wrong := range map[string]Arrivals{
		"rates: is missing": {}, "rates: [2 1]": {Rates: []int{2, 1}}, "rates: [0]": {Rates: []int{0}}, "least: 30 to 20": {Rates: []int{1}, Least: 30, Most: 20},
		"for:": {Rates: []int{1}, For: "soon"}, "timeout:": {Rates: []int{1}, Timeout: "1ms"}, "published:": {Rates: []int{1}, Published: []arrivalskind.Published{{Rate: 1}}},
	} {
		if _, err := wrong.parse(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error with %q", wrong, err, want)
		}
	}
	more, err := (&Arrivals{Rates: []int{1, 8}}).each([]map[string]string{{"x": "y"}})
	if err != nil || len(more) != 2 || more[1][notebook.ParamRate] != "8" || more[1]["x"] != "y" {
		t.Errorf("%v, %v: want each rate among the parameters", more, err)
	}
	if _, err := (&Arrivals{Rates: []int{1}}).each([]map[string]string{{notebook.ParamRate: "3"}}); err == nil {
		t.Error("a workload's own rate was taken for the requests'")
	}
}

// A host that runs short gets no more, before it has none left.
func TestRoomIsForeseen(t *testing.T) {
	memory, threads, err := unused()
	if err != nil {
		t.Fatal(err)
	}
	if err := (&hostRoom{memory: memory, threads: threads}).admit(); err != nil {
		t.Errorf("the first: %v", err)
	}
	if err := (&hostRoom{memory: memory, threads: threads, keep: memory}).admit(); err == nil || !strings.Contains(err.Error(), "MiB of memory left") {
		t.Errorf("where all memory is kept: %v, want a word of it", err)
	}
	if err := (&hostRoom{memory: memory, threads: threads + 1e9, n: 1}).admit(); err == nil || !strings.Contains(err.Error(), "processes and threads") {
		t.Errorf("of containers with a thousand million threads: %v, want a word of it", err)
	}
}

// starter is a laboratory whose engine does nothing, until it does not any more. The first guest is the one that a trial is made in; containers are counted
// from 1.
type starter struct {
	fakeLab
	unmade   int           // the container that cannot be made; 0: none
	fails    int           // the container that is not started
	silent   int           // the container from which on the engine does not answer
	unbound  int           // the container that is not held to its limits
	exit     int           // of the work in each
	meeting  error         // there is no ruler
	blind    error         // no samples are taken
	profile  error         // what they end with
	asked    atomic.Int64  // to start
	made     atomic.Int64  // the first guest among them
	standing atomic.Int64  // made and not removed
	began    chan struct{} // closed with the third that is asked to start; nil: nobody waits for it
}

func (l *starter) Create(context.Context, notebook.Treatment, string, *workload.Ready) (Ahead, error) {
	n := int(l.made.Add(1)) - 1
	if n > 0 && n == l.unmade {
		return nil, errors.New("the disk is full")
	}
	l.standing.Add(1)
	return &upcoming{fakeGuest{&l.fakeLab, cnT}, l, n}, nil
}

func (l *starter) Profile(notebook.Treatment) (Profiling, error) { return l, l.blind }

func (l *starter) Stop() (*arrivalskind.Profile, error) {
	if l.profile != nil {
		return nil, l.profile
	}
	return &arrivalskind.Profile{Names: []string{"crun", "do_exit"}, Stacks: []arrivalskind.ProfileStack{{Role: arrivalskind.ProfileEngine, User: []int{0}, Kernel: []int{1}, N: 3}}}, nil
}

// upcoming is one of its containers, and the guest that it becomes.
type upcoming struct {
	fakeGuest
	l *starter
	n int
}

func (u *upcoming) Start(ctx context.Context) error {
	if u.n > 0 && u.l.asked.Add(1) == 3 && u.l.began != nil {
		close(u.l.began)
	}
	switch {
	case u.n > 0 && u.n == u.l.fails:
		return errors.New("no more cgroups")
	case u.l.silent > 0 && u.n >= u.l.silent:
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (u *upcoming) Meet(ctx context.Context) (Guest, error) {
	if u.n > 0 && u.l.meeting != nil {
		return nil, u.l.meeting
	}
	if u.l.silent > 0 && u.n >= u.l.silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return u, nil
}

func (u *upcoming) InForce() error {
	if u.n > 0 && u.n == u.l.unbound {
		return errors.New("memory: 4 GiB where 1 GiB was asked for")
	}
	return nil
}

func (u *upcoming) Destroy(context.Context) error { u.l.standing.Add(-1); return nil }
func (u *upcoming) Ruler() Ruler                  { return u }
func (u *upcoming) Run(context.Context, ruler.Order) (ruler.Result, time.Duration, error) {
	return ruler.Result{Exit: u.l.exit}, 0, nil
}

// raise runs a study of one trial: twenty containers at a rate, of an engine that has a second to answer. Only one that is silent uses it: on a busy
// host another may well take a second.
func raise(t *testing.T, ctx context.Context, rate string, l *starter) (trials []notebook.Trial, reason string) {
	t.Helper()
	plan := fakePlan(notebook.Design{Floor: 1, Cap: 1, Trials: 1}, cnT)
	plan.Study.Kind, plan.Study.Config = arrivalskind.Name, &arrivalskind.Config{ForS: 0.1, Least: 20, Most: 20, TimeoutS: 60, Profile: true}
	if l.silent > 0 {
		arrivalskind.Of(plan.Study).TimeoutS = 1
	}
	of := &plan.Study.Treatments[0]
	of.Params = map[string]string{notebook.ParamRate: rate}
	plan.ready[notebook.Label(of.Workload, of.Params)] = plan.ready[notebook.Label(of.Workload, nil)]
	book := &fakeBook{}
	began := time.Now()
	reason, err := (&Run{Plan: plan, Lab: l, Book: book}).Do(ctx)
	if err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	if n := l.standing.Load(); n != 0 {
		t.Errorf("%d containers remain", n)
	}
	return book.trials, reason
}

// Each request stands with its times and with the moment for which it was meant, beside what the client itself was late by, and used.
func TestAnEngineThatDoesNothing(t *testing.T) {
	l := &starter{}
	trials, reason := raise(t, t.Context(), "200", l)
	if len(trials) != 1 || trials[0].Failure != "" || reason != Capped {
		t.Fatalf("%q, %+v", reason, trials)
	}
	tr, b := trials[0], arrivalskind.SeenBy(&trials[0]).Bringup
	if len(b.Starts) != 20 || b.Planned != 20 || b.Offered != 200 || b.Stopped != "" || l.asked.Load() != 20 {
		t.Fatalf("%d requests were made of %d, %d came: %+v", len(b.Starts), b.Planned, l.asked.Load(), b)
	}
	for i, s := range b.Starts {
		if want := float64(i) / 200; s.AtS < want-1e-9 || s.AtS > want+1e-9 || !(s.LateS >= 0 && s.CallS >= s.LateS && s.HelloS >= s.LateS && s.AnswerS >= s.HelloS) || s.Failure != "" {
			t.Errorf("request %d, meant for %g s: %+v", i, want, s)
		}
	}
	for _, m := range append(l.arrivals().Also(), arrivalskind.StartMean) {
		if v, ok := tr.Figures[m.Name]; !ok && m != arrivalskind.ProfileGC && m != arrivalskind.ProfileMemory || v < 0 {
			t.Errorf("%s: %v", m.Name, v)
		}
	}
	if arrivalskind.SeenBy(&tr).Profile == nil || tr.Figures[arrivalskind.ProfileInKernel.Name] != 100 {
		t.Errorf("profile %+v: want what was sampled", arrivalskind.SeenBy(&tr).Profile)
	}
}

func (l *starter) arrivals() arrivalskind.Config { return arrivalskind.Config{Profile: true} }

// anyContainer is a container by its number: which of those that are made at once is made first is nobody's choice.
var anyContainer = regexp.MustCompile(`container [0-9]+`)

// Whatever an engine does, the trial ends soon, with the requests that were made, their figures and the reason, and no container remains.
func TestEnginesThatFailUnderLoad(t *testing.T) {
	for name, c := range map[string]struct {
		l       *starter
		rate    string // "": 200
		failure string
		stopped string // why not all requests were made
		made    int
		figures bool
	}{
		"one is not started":           {&starter{fails: 4}, "", "1 of 20 starts failed at 200 a second: container N: starting it: no more cgroups", "", 20, true},
		"it stops answering":           {&starter{silent: 5}, "", "16 of 20 starts failed at 200 a second: container N: no answer in 1s: starting it: context deadline exceeded", "", 20, true},
		"it never answers":             {&starter{silent: 1}, "", "20 of 20 starts failed", "", 20, false},
		"it stops answering meanwhile": {&starter{silent: 5}, "5", "starts failed at 5 a second: container N: no answer in 1s: ", "the engine, or an application, no longer answered: no answer in 1s", 0, true},
		"no ruler comes":               {&starter{meeting: errors.New("its ruler did not say hello")}, "", "20 of 20 starts failed at 200 a second: container N: its ruler did not say hello", "", 20, false},
		"work fails":                   {&starter{exit: 3}, "", "container N: exit status 3", "", 20, false},
		"one cannot be made":           {&starter{unmade: 3}, "", "container N of 20 cannot be made: the disk is full", "", 0, false},
		"one is not held to a limit":   {&starter{unbound: 6}, "", "container N: memory: 4 GiB where 1 GiB was asked for", "", 20, true},
		"samples cannot be taken":      {&starter{blind: errors.New("no perf events")}, "", "", "", 20, true},
		"samples cannot be read back":  {&starter{profile: errors.New("the ring is torn")}, "", "", "", 20, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trials, _ := raise(t, t.Context(), cmp.Or(c.rate, "200"), c.l)
			if len(trials) != 1 {
				t.Fatalf("%d trials", len(trials))
			}
			tr := trials[0]
			tr.Failure = anyContainer.ReplaceAllString(tr.Failure, "container N")
			if (c.failure == "") != (tr.Failure == "") || !strings.Contains(tr.Failure, c.failure) {
				t.Errorf("failure %q, want %q", tr.Failure, c.failure)
			}
			n := len(arrivalskind.SeenBy(&tr).Bringup.Starts)
			if c.stopped == "" && n != c.made || c.stopped != "" && (n < 5 || n > 15) || (c.stopped == "") != (arrivalskind.SeenBy(&tr).Bringup.Stopped == "") || !strings.Contains(arrivalskind.SeenBy(&tr).Bringup.Stopped, c.stopped) {
				t.Errorf("%d requests were made and then none, for %q; want %d, %q", n, arrivalskind.SeenBy(&tr).Bringup.Stopped, c.made, c.stopped)
			}
			if _, known := tr.Figures[arrivalskind.StartMean.Name]; known != c.figures {
				t.Errorf("figures %v", tr.Figures)
			}
			if lost := c.l.blind != nil || c.l.profile != nil; lost != strings.Contains(strings.Join(tr.Warnings, " "), "no profile: ") {
				t.Errorf("warnings %q", tr.Warnings)
			}
		})
	}
}

func TestAnInterruptUnderLoad(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := &starter{silent: 1, began: make(chan struct{})}
	go func() { <-l.began; cancel() }()
	if trials, reason := raise(t, ctx, "200", l); reason != Interrupted || len(trials) != 0 {
		t.Errorf("%q, %+v", reason, trials)
	}
}
