package study

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/image"
	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
)

// serviceLab is a lab whose guests run a service. The service is ready after a set number of requests, and its load prints what the test sets.
type serviceLab struct {
	fakeLab
	readyAfter int
	answer     string        // the load's last line
	says       string        // on the load's stderr
	dies       chan struct{} // if closed, the service ends by itself
	hangs      bool          // the service ends at the load's first request, and the load waits for an answer
	lost       error         // with dies: the guest ends
	stop       func()        // called before a load's place is made, which then fails

	at   func(argv []string) string // answer by the load's command; nil: answer
	from string                     // the machine of the load

	drift time.Duration // how much further its guests' calendar clocks are ahead each time that they are read

	beside neighbourLab // whose guests are its neighbours

	mu     sync.Mutex
	asked  int
	served []string // argv of services, and what ended them
	places int
	most   int // places at the same time
}

func (l *serviceLab) Provision(ctx context.Context, w crowd.Want) (crowd.Guest, error) {
	if w.Work.Workload.Stays {
		return l.beside.Provision(ctx, w)
	}
	return &serviceGuest{l.guest(w.Treatment), l, false, 0}, nil
}

func (l *serviceLab) Load(_ context.Context, t notebook.Treatment, _ string, _ *workload.Ready) (crowd.Guest, notebook.Load, error) {
	if l.stop != nil {
		l.stop()
		return nil, notebook.Load{}, context.Canceled
	}
	l.places++
	l.most = max(l.most, l.places)
	return &serviceGuest{l.guest(t), l, true, 0}, notebook.Load{From: l.from, CPUs: []int{1}}, nil
}

// serviceGuest is a guest of a serviceLab, for the service or for its load.
type serviceGuest struct {
	fakeGuest
	l     *serviceLab
	asks  bool
	ahead time.Duration // of its calendar clock
}

func (g *serviceGuest) Ruler() crowd.Ruler { return g }
func (g *serviceGuest) Destroy(context.Context) error {
	if g.asks {
		g.l.places--
	}
	return nil
}
func (g *serviceGuest) Clock(context.Context) (ahead, bound time.Duration, err error) {
	g.ahead += g.l.drift
	return g.ahead, time.Millisecond, nil
}
func (g *serviceGuest) Diagnose() string {
	if g.l.lost != nil && !g.asks {
		return "the kernel panicked"
	}
	return ""
}
func (g *serviceGuest) Address() engine.Address {
	return engine.Address{Listen: netip.MustParseAddr("0.0.0.0"), Connect: netip.MustParseAddr("198.18.0.2")}
}
func (g *serviceGuest) Run(ctx context.Context, o ruler.Order) (ruler.Result, time.Duration, error) {
	l := g.l
	l.mu.Lock()
	if !g.asks {
		l.served = append(l.served, strings.Join(o.Argv, " "))
		l.mu.Unlock()
		select {
		case <-ctx.Done():
			return ruler.Result{Stderr: []byte("still starting\n")}, 0, ctx.Err()
		case <-l.dies:
			if l.lost != nil {
				return ruler.Result{}, 0, l.lost
			}
			return ruler.Result{Exit: 3, Stderr: []byte("port 8080 is in use\n")}, 0, nil
		}
	}
	if l.hangs && o.Argv[0] != "ready" {
		l.mu.Unlock() // the service may not have started
		close(l.dies)
		<-ctx.Done()
		return ruler.Result{}, 0, ctx.Err()
	}
	defer l.mu.Unlock()
	if o.Argv[0] == "ready" {
		if l.asked++; l.asked <= l.readyAfter {
			return ruler.Result{Exit: 1, Stderr: []byte("connection refused\n")}, 0, nil
		}
		return ruler.Result{}, 0, nil
	}
	if o.Remains {
		panic("a load leaves nothing in the guest that it asks")
	}
	answer := l.answer
	if l.at != nil {
		answer = l.at(o.Argv)
	}
	return ruler.Result{Elapsed: time.Second, Usage: notebook.Usage{UserS: 0.5}, Stdout: []byte("noise\n" + answer + "\n"), Stderr: []byte(l.says)}, time.Second, nil
}

func servicePlan(starting string) *Plan {
	p := fakePlan(notebook.Design{Floor: 2, Cap: 2, Trials: 2, Warmups: 1}, bmT, cnT)
	p.ready["w"] = &workload.Ready{Image: &image.Image{}, Workload: &workload.Workload{
		Name:    "w",
		Service: &workload.Service{Command: []string{"serve", "{address}", "{port}", "{memory}"}, Port: 8080, Timeout: starting},
		Load:    &workload.Load{Ready: []string{"ready", "{address}"}, Command: []string{"ask", "{address}", "{port}"}},
		Metric:  workload.Metric{Metric: notebook.Metric{Name: "response time", Unit: "s"}, From: "mean"},
		Also:    []workload.Metric{{Metric: notebook.Metric{Name: "p99", Unit: "s"}}},
	}}
	return p
}

func TestServiceGetsRequestsFromOutside(t *testing.T) {
	l := &serviceLab{fakeLab: fakeLab{elapsed: steady}, readyAfter: 2, answer: `{"mean":0.25,"p99":0.5,"errors":0}`}
	book := &fakeBook{}
	r := &Run{Plan: servicePlan(""), Lab: l, Book: book}
	if reason, err := r.Do(t.Context()); err != nil || !reason.Is("cap-on-rounds") {
		t.Fatalf("%q, %v", reason, err)
	}
	if len(l.served) != 4 || l.served[0] != "serve 0.0.0.0 8080 1024" || l.places != 0 || len(book.trials) != 12 {
		t.Fatalf("services %q, %d places left, %d trials; want 4, 0 and 12", l.served, l.places, len(book.trials))
	}
	for _, tr := range book.trials {
		if tr.Failure != nil || tr.Value != 0.25 || tr.Figures["p99"] != 0.5 || tr.Load == nil || tr.Load.UserS != 0.5 || len(tr.Warnings) > 0 ||
			strings.Join(tr.Command, " ") != "ask 198.18.0.2 8080" {
			t.Errorf("trial %+v", tr)
		}
	}
	if g := book.guests[0]; g.ReadyS <= 0 {
		t.Errorf("the guest was ready after %v s", g.ReadyS)
	}
}

func TestServiceFailures(t *testing.T) {
	gone := make(chan struct{})
	close(gone)
	for _, c := range []struct {
		name string
		want *notebook.Message
		lab  *serviceLab
	}{
		{"it never answers", notebook.Say("service-not-ready", "within", time.Second, "answer", notebook.Say("exit", "status", 1, "said", "connection refused"), "said", "still starting"), &serviceLab{readyAfter: 1 << 30}},
		{"it ends", notebook.Say("service-ended-in-start", "cause", notebook.Say("exit", "status", 3, "said", "port 8080 is in use")), &serviceLab{readyAfter: 1 << 30, dies: gone}},
		{"its guest dies", notebook.Say("service-ended-in-start", "cause", notebook.Say("diagnosed", "cause", "the guest is gone", "diagnosis", "the kernel panicked")), &serviceLab{readyAfter: 1 << 30, dies: gone, lost: errors.New("the guest is gone")}},
		{"it ends while it is asked", notebook.Say("service-ended", "cause", notebook.Say("exit", "status", 3, "said", "port 8080 is in use")), &serviceLab{hangs: true}},
		{"requests fail", notebook.Say("requests-failed", "requests", 7, "said", "7 of 9: connection reset"), &serviceLab{answer: `{"mean":0.1,"p99":1,"errors":7}`, says: "7 of 9: connection reset\n"}},
		{"no figure", notebook.Say("no-figure", "key", "p99", "line", `{"mean":0.1}`), &serviceLab{answer: `{"mean":0.1}`}},
		{"no object", notebook.Say("no-json-line", "line", "mean 0.1"), &serviceLab{answer: `mean 0.1`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.lab.elapsed = steady
			if c.lab.hangs {
				c.lab.dies = make(chan struct{})
			}
			book := &fakeBook{}
			r := &Run{Plan: servicePlan("1s"), Lab: c.lab, Book: book}
			if c.lab.hangs {
				r.Plan.Study.Treatments, r.Plan.Study.Design.Cap, r.Plan.Study.Design.Floor = r.Plan.Study.Treatments[:1], 1, 1
			}
			if _, err := r.Do(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(book.trials) == 0 || c.lab.places != 0 {
				t.Fatalf("%d trials, %d places left", len(book.trials), c.lab.places)
			}
			for _, tr := range book.trials {
				if !tr.Failure.Equal(c.want) && !tr.Failure.Is("guest-failed-before") {
					t.Errorf("got  %s\nwant %s", tr.Failure, c.want)
				}
			}
		})
	}
}

// A rehearsal that the user interrupts is not a failure of the workload.
func TestInterruptedRehearsal(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := &serviceLab{fakeLab: fakeLab{elapsed: steady}, stop: cancel}
	_, err := servicePlan("").Rehearse(ctx, l, func(string) {})
	if !errors.Is(err, context.Canceled) || len(l.served) != 1 {
		t.Errorf("%v, services %q; want an interrupt, and one service", err, l.served)
	}
}

// A treatment with its own number of rounds does exactly these, whenever the others are precise.
func TestFixedNumberOfRounds(t *testing.T) {
	six := cnT
	six.Rounds = 6
	l := &fakeLab{elapsed: steady}
	book := &fakeBook{}
	r := &Run{Plan: fakePlan(notebook.Design{Floor: 2, Cap: 4, Precision: 0.5, Trials: 1}, bmT, aaT, six), Lab: l, Book: book}
	r.Plan.Study.Treatments[0].Rounds, r.Plan.Study.Treatments[1].Rounds = 0, 0
	reason, err := r.Do(t.Context())
	if err != nil || !reason.Is("precise-enough") {
		t.Fatalf("%q, %v", reason, err)
	}
	n := book.rounds()
	if bm, cn := n[r.Plan.Study.Treatments[0].ID], n[r.Plan.Study.Treatments[2].ID]; bm != 6 || cn != 6 {
		t.Errorf("bare metal in %d rounds, the container in %d; want 6, and bare metal in each of them", bm, cn)
	}
}

// A time is not valid if the load's clock drifts from this host's clock.
func TestDriftingClock(t *testing.T) {
	for drift, want := range map[time.Duration]*notebook.Message{
		5 * time.Millisecond:  nil, // allowed in a trial of one second
		50 * time.Millisecond: notebook.Say("clock-drifted", "from_s", 0.05, "to_s", 0.1, "in_s", 1),
		-time.Hour:            notebook.Say("clock-drifted", "from_s", -3600, "to_s", -7200, "in_s", 1),
	} {
		l := &serviceLab{fakeLab: fakeLab{elapsed: steady}, drift: drift, answer: `{"mean":0.25,"p99":0.5,"errors":0}`, from: "ssh://other"}
		book := &fakeBook{}
		r := &Run{Plan: servicePlan(""), Lab: l, Book: book}
		r.Plan.Study.Design.Warmups = 0
		if _, err := r.Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		if first := book.trials[0]; !first.Failure.Equal(want) {
			t.Errorf("with a drift of %v: %q, want %q", drift, first.Failure, want)
		} else if first.Load.From != "ssh://other" || first.Load.AheadS != drift.Seconds() || first.Load.AheadBoundS != 0.001 {
			t.Errorf("load %+v", first.Load)
		}
		if notes := book.guests[0].Notes; len(notes) != 1 || !notes[0].Equal(notebook.Say("load-elsewhere", "machine", "ssh://other")) {
			t.Errorf("notes %q", notes)
		}
	}
}

// A service has busy neighbours, one of each kind, which are removed with it. A trial records its answers and what the neighbours did.
func TestServiceNextToNeighbours(t *testing.T) {
	l := &serviceLab{at: func([]string) string {
		time.Sleep(time.Millisecond) // its neighbours are busy in that time
		return `{"mean": 0.02, "p99": 0.05}`
	}}
	p := servicePlan("")
	t2 := cnT
	t2.Workload, t2.Factors = "w", map[string]string{notebook.FactorNeighbours.Name: "cpu:1+io:1"}
	p.Study.Treatments = []notebook.Treatment{t2}
	p.ready[t2.Label()] = p.ready["w"]
	p.work = neighbourly("cpu:1+io:1").work
	book := &fakeBook{}
	if _, err := (&Run{Plan: p, Lab: l, Book: book}).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l.beside.Live != 0 || l.beside.Most != 2 || l.places != 0 || book.measured() != 4 {
		t.Errorf("%d neighbours at most, %d left, %d places of loads, %d trials", l.beside.Most, l.beside.Live, l.places, book.measured())
	}
	for _, tr := range book.trials {
		if c := tr.Neighbours; tr.Failure != nil || tr.Value != 0.02 || tr.Figures["p99"] != 0.05 || c == nil || len(c.Neighbours) != 2 || c.Neighbours[1].Busy != notebook.BusyIO || c.Neighbours[1].Moved == 0 {
			t.Errorf("%+v, beside %+v", tr, c)
		}
	}
}

// With little time, a run begins with the baseline. If it can compare nothing, it says how much time would be enough.
func TestTimeBudgetBeginsWithTheBaseline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(8) {
			l, book := levels(seed, time.Second, 10*time.Second, 0, 0, same), &fakeBook{}
			p := fakePlan(notebook.Design{Floor: 3, Cap: 3, Trials: 1, Order: notebook.OrderSequential}, cnT, aaT, bmT)
			p.Study.Seed = seed
			r := &Run{Plan: p, Lab: l, Book: book, Deadline: time.Now().Add(30 * time.Second)}
			reason, err := r.Do(t.Context())
			if err != nil || !reason.Is("time-budget") || len(book.guests) != 2 || book.guests[0].Treatment != p.Study.Treatments[2].ID {
				t.Fatalf("seed %d: %q, %v, guests %+v; want bare metal and another", seed, reason, err, book.guests)
			}
			if len(r.Notes()) == 0 || !r.Notes()[len(r.Notes())-1].Equal(notebook.Say("nothing-compared", "rounds", 2, "minutes", 1)) {
				t.Errorf("notes %q", r.Notes())
			}
		}
	})
}

// A treatment that was not measured yet is started although another treatment takes long.
func TestUnknownGuestIsNotTheLongest(t *testing.T) {
	c := costs{newProgress(&notebook.Study{}), map[string]cost{"quick": {1, 1, time.Second, time.Second}, "slow": {2, 2, 2 * time.Minute, 4 * time.Minute}}}
	if got := c.lasts("unknown", 0); got != 2*time.Second {
		t.Errorf("an unknown guest lasts %v, want 2s", got)
	}
}
