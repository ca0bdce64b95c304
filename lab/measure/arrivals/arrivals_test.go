//go:build linux

package arrivals

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/measure"
	"tare/lab/measure/measuretest"
	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
	record "tare/notebook/kinds/arrivals"
	"tare/notebook/notebooktest"
)

func TestArrivalsAreRead(t *testing.T) {
	c, err := file{Rates: []int{1, 8}, For: "4s", Least: 6, Most: 20}.config()
	if err != nil {
		t.Fatal(err)
	}
	if a := c.(config); a.Starts(1) != 6 || a.Starts(4) != 16 || a.Starts(100) != 20 {
		t.Errorf("%+v: want at least 6 requests, at most 20, and in between those of four seconds", a)
	}
	if got := fmt.Sprint(c.Factors()); got != fmt.Sprint([]measure.Factor{{Of: notebook.FactorRate, Values: []string{"1", "8"}}, {Of: notebook.FactorSpacing}, {Of: notebook.FactorFrom}}) {
		t.Errorf("%s: want each rate among the parameters", got)
	}
	c, err = file{Rates: []int{8}, Spacing: []string{notebook.SpacingEven, notebook.SpacingBurst}}.config()
	if err != nil {
		t.Fatal(err)
	}
	if f := c.(config).Factors()[1]; f.Of.Name != notebook.FactorSpacing.Name || !slices.Equal(f.Values, []string{notebook.SpacingEven, notebook.SpacingBurst}) {
		t.Errorf("%+v: want each spacing among the parameters", f)
	}
	for want, wrong := range map[string]file{
		"spacing: \"rush\": must be even, poisson or burst": {Rates: []int{1}, Spacing: []string{"rush"}},
		"from: \"image\": must be created or snapshot":      {Rates: []int{1}, From: []string{"image"}},
		"rates: is missing": {}, "rates: [2 1]": {Rates: []int{2, 1}}, "rates: [0]": {Rates: []int{0}}, "least: 30 to 20": {Rates: []int{1}, Least: 30, Most: 20},
		"for:": {Rates: []int{1}, For: "soon"}, "timeout:": {Rates: []int{1}, Timeout: "1ms"}, "published:": {Rates: []int{1}, Published: []record.Published{{Rate: 1}}},
	} {
		if _, err := wrong.config(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error with %q", wrong, err, want)
		}
	}
}

// Tare stops adding containers before the host runs out of room.
func TestRoomIsForeseen(t *testing.T) {
	memory, threads, err := unused()
	if err != nil {
		t.Fatal(err)
	}
	if err := (&hostRoom{memory: memory, threads: threads}).admit(); err != nil {
		t.Errorf("the first: %v", err)
	}
	if err := (&hostRoom{memory: memory, threads: threads, keep: memory}).admit(); err == nil || !strings.Contains(err.Error(), "no-memory") {
		t.Errorf("where all memory is kept: %v, want an error that names it", err)
	}
	if err := (&hostRoom{memory: memory, threads: threads + 1e9, n: 1}).admit(); err == nil || !strings.Contains(err.Error(), "no-threads") {
		t.Errorf("of containers with a thousand million threads: %v, want an error that names them", err)
	}
}

// starter is a laboratory and a world whose engine does nothing and never fails, unless a test says so. The trial makes container 0
// for itself; the containers that it starts under load count from 1.
type starter struct {
	measuretest.Lab
	unmade   int           // this container cannot be made; 0: all can
	fails    int           // this container does not start
	silent   int           // from this container on the engine does not answer
	unbound  int           // this container is not held to its limits
	exit     int           // exit status of the work in each container
	meeting  error         // why no ruler says hello
	blind    error         // why no samples are taken
	profile  error         // why samples cannot be read back
	asked    atomic.Int64  // requests to start
	made     atomic.Int64  // includes container 0
	standing atomic.Int64  // made and not removed
	began    chan struct{} // closed at the third request to start; nil: not needed
}

func (l *starter) Create(_ context.Context, w crowd.Want) (measure.Ahead, error) {
	n := int(l.made.Add(1)) - 1
	if n > 0 && n == l.unmade {
		return nil, errors.New("the disk is full")
	}
	l.standing.Add(1)
	does := func(context.Context, ruler.Order) (ruler.Result, time.Duration, error) {
		return ruler.Result{Exit: l.exit}, 0, nil
	}
	return &upcoming{measuretest.Guest{Lab: &l.Lab, T: w.Treatment, Does: does}, l, n}, nil
}

func (*starter) ask(context.Context, crowd.Guest, netip.AddrPort, workload.Question) error {
	return errors.New("no service is asked in these tests")
}

func (l *starter) sample(engine.Kind) (profiling, error) { return l, l.blind }

func (l *starter) Stop() (*record.Profile, error) {
	if l.profile != nil {
		return nil, l.profile
	}
	return &record.Profile{Names: []string{"crun", "do_exit"}, Stacks: []record.ProfileStack{{Role: record.ProfileEngine, User: []int{0}, Kernel: []int{1}, N: 3}}}, nil
}

// upcoming is a container of starter, and the guest that it becomes.
type upcoming struct {
	measuretest.Guest
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

func (u *upcoming) Meet(ctx context.Context) (crowd.Guest, error) {
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

// The requests of a burst are due together, and a trial records when each was due.
func TestBurstsAreRequestedTogether(t *testing.T) {
	l := &starter{}
	c := config{world: l, Config: record.Config{ForS: 0.1, Least: 20, Most: 20, TimeoutS: 60}}
	of := measure.Cell{Ready: measuretest.Work(), Treatment: notebook.Treatment{
		Platform: notebook.CN, Factors: map[string]string{notebook.FactorRate.Name: "10", notebook.FactorSpacing.Name: notebook.SpacingBurst},
	}}
	tr, err := measuretest.Trial(t.Context(), t, c, l, of, measure.Step{})
	if err != nil || tr.Failure != nil {
		t.Fatalf("%v, %s", err, tr.Failure)
	}
	for i, r := range notebooktest.Seen[record.Seen](&tr).Bringup.Starts {
		if want := float64(i / 10); r.AtS != want {
			t.Errorf("request %d was due after %g s, want %g", i, r.AtS, want)
		}
	}
}

// shelf is a laboratory whose containers can be saved, unless a test says why not.
type shelf struct {
	measuretest.Lab
	unsaved                         error
	made, saved, restored, standing atomic.Int64
	early                           atomic.Bool // a container was restored before all were saved
}

func (l *shelf) Create(context.Context, crowd.Want) (measure.Ahead, error) {
	l.standing.Add(1)
	return &first{saving{Guest: measuretest.Guest{Lab: &l.Lab}, l: l}}, nil
}

func (l *shelf) Provision(_ context.Context, w crowd.Want) (crowd.Guest, error) {
	l.made.Add(1)
	l.standing.Add(1)
	return &saving{Guest: measuretest.Guest{Lab: &l.Lab, T: w.Treatment}, l: l}, nil
}

func (*shelf) ask(context.Context, crowd.Guest, netip.AddrPort, workload.Question) error { return nil }

func (*shelf) sample(engine.Kind) (profiling, error) { return nil, errors.New("no samples here") }

// saving is a container of shelf.
type saving struct {
	measuretest.Guest
	l *shelf
}

func (g *saving) Save(context.Context) (engine.Saved, error) {
	if g.l.unsaved == nil {
		g.l.saved.Add(1)
	}
	return engine.Saved{}, g.l.unsaved
}

func (g *saving) Restore(context.Context, *engine.Moments) error {
	if g.l.restored.Add(1); g.l.saved.Load() < g.l.made.Load() {
		g.l.early.Store(true)
	}
	return nil
}

func (g *saving) Destroy(context.Context) error { g.l.standing.Add(-1); return nil }

// first is the container that the trial makes for itself.
type first struct{ saving }

func (*first) Start(context.Context) error                 { return nil }
func (f *first) Meet(context.Context) (crowd.Guest, error) { return &f.saving, nil }
func (*first) InForce() error                              { return nil }

// Requests of snapshots restore containers, all of which were saved before the first request. Why one cannot be saved is the trial's failure.
func TestSnapshotsAreRestored(t *testing.T) {
	for name, unsaved := range map[string]error{"saved": nil, "not saved": errors.New("it has an Internet socket")} {
		l := &shelf{unsaved: unsaved}
		c := config{world: l, Config: record.Config{ForS: 0.1, Least: 12, Most: 12, TimeoutS: 60}}
		of := measure.Cell{Ready: measuretest.Work(), Treatment: notebook.Treatment{
			Platform: notebook.CN, Factors: map[string]string{notebook.FactorRate.Name: "200", notebook.FactorFrom.Name: notebook.FromSnapshot},
		}}
		tr, err := measuretest.Trial(t.Context(), t, c, l, of, measure.Step{})
		if err != nil || l.standing.Load() != 0 {
			t.Fatalf("%s: %v, %d containers remain", name, err, l.standing.Load())
		}
		if unsaved != nil {
			if !strings.Contains(tr.Failure.String(), "container-not-made") || !strings.Contains(tr.Failure.String(), unsaved.Error()) || l.restored.Load() > 0 {
				t.Errorf("%s: failure %q, %d restored", name, tr.Failure, l.restored.Load())
			}
			continue
		}
		if n := len(notebooktest.Seen[record.Seen](&tr).Bringup.Starts); tr.Failure != nil || n != 12 || l.saved.Load() != 12 || l.restored.Load() != 12 || l.early.Load() {
			t.Errorf("%s: %q, %d starts, %d saved, %d restored", name, tr.Failure, n, l.saved.Load(), l.restored.Load())
		}
	}
}

// raise makes one trial: twenty containers at a rate. The engine has a minute to answer, so that a busy host fails no trial; a
// silent engine has one second.
func raise(ctx context.Context, t *testing.T, rate string, l *starter) notebook.Trial {
	t.Helper()
	c := config{world: l, Config: record.Config{ForS: 0.1, Least: 20, Most: 20, TimeoutS: 60, Profile: true}}
	if l.silent > 0 {
		c.TimeoutS = 1
	}
	of := measure.Cell{Treatment: notebook.Treatment{Platform: notebook.CN, Factors: map[string]string{notebook.FactorRate.Name: rate}}, Ready: measuretest.Work()}
	began := time.Now()
	tr, err := measuretest.Trial(ctx, t, c, l, of, measure.Step{})
	if err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	if n := l.standing.Load(); n != 0 {
		t.Errorf("%d containers remain", n)
	}
	return tr
}

// The trial records for each request when it was due, how late the client made it, and when the engine and the application
// answered.
func TestAnEngineThatDoesNothing(t *testing.T) {
	l := &starter{}
	tr := raise(t.Context(), t, "200", l)
	seen := notebooktest.Seen[record.Seen](&tr)
	b := seen.Bringup
	if tr.Failure != nil || b == nil {
		t.Fatalf("%+v", tr)
	}
	if len(b.Starts) != 20 || b.Planned != 20 || b.Offered != 200 || b.Stopped != nil || l.asked.Load() != 20 {
		t.Fatalf("%d requests were made of %d, %d came: %+v", len(b.Starts), b.Planned, l.asked.Load(), b)
	}
	for i, s := range b.Starts {
		if want := float64(i) / 200; s.AtS < want-1e-9 || s.AtS > want+1e-9 || !(s.LateS >= 0 && s.CallS >= s.LateS && s.HelloS >= s.LateS && s.AnswerS >= s.HelloS) || s.Failure != nil {
			t.Errorf("request %d, due at %g s: %+v", i, want, s)
		}
	}
	first, also := config{Config: record.Config{Profile: true}}.Metrics(nil, nil)
	if first != record.StartMean {
		t.Errorf("its metric is %q", first.Name)
	}
	for _, m := range append(also, first) {
		if v, ok := tr.Figures[m.Name]; !ok && m != record.ProfileGC && m != record.ProfileMemory || v < 0 {
			t.Errorf("%s: %v", m.Name, v)
		}
	}
	if seen.Profile == nil || tr.Figures[record.ProfileInKernel.Name] != 100 {
		t.Errorf("profile %+v: want what was sampled", seen.Profile)
	}
}

// anyContainer matches a container's number, which depends on chance: several containers are made at the same time.
var anyContainer = regexp.MustCompile(`container=[0-9]+`)

// Whatever an engine does, the trial ends soon, with the requests that were made, their figures and the reason, and no container
// remains.
func TestEnginesThatFailUnderLoad(t *testing.T) {
	for name, c := range map[string]struct {
		l       *starter
		rate    string // "": 200
		failure string
		stopped string // why not all requests were made
		made    int
		figures bool
	}{
		"one is not started":               {&starter{fails: 4}, "", "starts-failed failed=1 first=of-container cause=starting cause=no more cgroups container=N of=20 rate=200", "", 20, true},
		"it stops answering":               {&starter{silent: 5}, "", "starts-failed failed=16 first=of-container cause=no-answer cause=starting cause=context deadline exceeded within=1 container=N of=20 rate=200", "", 20, true},
		"it never answers":                 {&starter{silent: 1}, "", "starts-failed failed=20 ", "", 20, false},
		"it stops answering at a low rate": {&starter{silent: 5}, "5", "first=of-container cause=no-answer cause=", "engine-silent cause=no-answer", 0, true},
		"no ruler comes":                   {&starter{meeting: errors.New("its ruler did not say hello")}, "", "starts-failed failed=20 first=of-container cause=its ruler did not say hello container=N of=20 rate=200", "", 20, false},
		"work fails":                       {&starter{exit: 3}, "", "first=of-container cause=exit said= status=3", "", 20, false},
		"one cannot be made":               {&starter{unmade: 3}, "", "container-not-made cause=the disk is full container=N of=20", "", 0, false},
		"one is not held to a limit":       {&starter{unbound: 6}, "", "of-container cause=memory: 4 GiB where 1 GiB was asked for", "", 20, true},
		"samples cannot be taken":          {&starter{blind: errors.New("no perf events")}, "", "", "", 20, true},
		"samples cannot be read back":      {&starter{profile: errors.New("the ring is torn")}, "", "", "", 20, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := raise(t.Context(), t, cmp.Or(c.rate, "200"), c.l)
			failure := anyContainer.ReplaceAllString(tr.Failure.String(), "container=N")
			if (c.failure == "") != (tr.Failure == nil) || !strings.Contains(failure, c.failure) {
				t.Errorf("failure %q, want %q", tr.Failure, c.failure)
			}
			b := notebooktest.Seen[record.Seen](&tr).Bringup
			if n := len(b.Starts); c.stopped == "" && n != c.made || c.stopped != "" && (n < 5 || n > 15) || (c.stopped == "") != (b.Stopped == nil) || !strings.Contains(b.Stopped.String(), c.stopped) {
				t.Errorf("%d requests were made and then none, for %q; want %d, %q", n, b.Stopped, c.made, c.stopped)
			}
			if _, known := tr.Figures[record.StartMean.Name]; known != c.figures {
				t.Errorf("figures %v", tr.Figures)
			}
			if lost := c.l.blind != nil || c.l.profile != nil; lost != slices.ContainsFunc(tr.Warnings, func(w *notebook.Message) bool { return w.Is("no-profile") }) {
				t.Errorf("warnings %q", tr.Warnings)
			}
		})
	}
}

// An interrupt ends a trial at once and is not reported as a failure.
func TestAnInterruptUnderLoad(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := &starter{silent: 1, began: make(chan struct{})}
	go func() { <-l.began; cancel() }()
	tr := raise(ctx, t, "200", l)
	if ctx.Err() == nil || tr.Failure != nil || len(tr.Figures) > 0 || notebooktest.Seen[record.Seen](&tr).Bringup.Stopped != nil {
		t.Errorf("%v: %+v", ctx.Err(), tr)
	}
}
