package capacity

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/image"
	"tare/lab/measure"
	"tare/lab/measure/measuretest"
	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
	record "tare/notebook/kinds/capacity"
	"tare/notebook/notebooktest"
)

// The search starts far below the rate at which a service with a known curve just meets the objective, and finds that rate in few
// steps.
func TestTheCapacityOfAKnownService(t *testing.T) {
	for _, limit := range []float64{12, 97, 1003, 45000} { // requests a second at which its queue grows without end
		a := ascent{Config: record.Config{Metric: "p99", Bound: 0.05, From: 10, To: mostRate, Raise: 0.5, HoldS: 10}}
		tail := func(rate float64) float64 { return 0.002 / max(1e-6, 1-rate/limit) }
		want := limit * (1 - 0.002/0.05)
		steps, last := 0, 0
		for rate, _, ok := a.next(); ok; rate, _, ok = a.next() {
			if rate == last && a.missed.Rate == 0 && len(a.tries) == 0 {
				t.Fatalf("%d requests a second twice on the way up", rate)
			}
			steps, last = steps+1, rate
			a.take(record.Step{Rate: rate, Tail: tail(float64(rate)), Met: tail(float64(rate)) <= a.Bound})
		}
		got, cause := a.capacity()
		if cause != nil || math.Abs(got/want-1) > max(0.03, 0.6/want) || steps > 36 {
			t.Errorf("of %g requests a second %g at the objective were found in %d steps, want %g (%s)", limit, got, steps, want, cause)
		}
	}
}

func TestACapacityThatIsOutOfReach(t *testing.T) {
	for _, c := range []struct {
		met  bool
		tail float64
		want string
	}{{false, 0.2, "missed-at-least-rate bound_s=0.05 metric=p99 rate=10 seen=slow metric=p99 was_s=0.2"},
		{false, 0.02, "missed-at-least-rate bound_s=0.05 metric=p99 rate=10 seen=few-answered rate=8.5"},
		{true, 0.02, "met-at-greatest-rate bound_s=0.05 metric=p99 rate=100"}} {
		a := ascent{Config: record.Config{Metric: "p99", Bound: 0.05, From: 10, To: 100, Raise: 0.5}}
		for rate, _, ok := a.next(); ok; rate, _, ok = a.next() {
			a.take(record.Step{Rate: rate, Throughput: 0.85 * float64(rate), Tail: c.tail, Met: c.met})
		}
		if _, cause := a.capacity(); cause.String() != c.want {
			t.Errorf("%q, want %q", cause, c.want)
		}
	}
}

// A load that sends at random times sends fewer requests than its rate in half of all steps. Neither a Poisson process nor a service that
// answers all may miss the objective for that; a service that answers three quarters of many requests does.
func TestAStepThatSentFewRequests(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	step := func(rate int, seconds, answered float64) bool {
		return stepOf(ruler.Result{Stdout: fmt.Appendf(nil, `{"mean":0.01,"p99":0.02,"requests_per_second":%f,"errors":0}`, answered/seconds)}, rate, seconds,
			record.Config{Metric: "p99", Bound: 0.05}).Met
	}
	for _, c := range []struct {
		rate    int
		seconds float64
	}{{10, 1}, {50, 1}, {10, 10}, {500, 10}} {
		missed := 0
		const steps = 2000
		for range steps {
			sent, due := 0, random.ExpFloat64()
			for ; due < float64(c.rate)*c.seconds; due += random.ExpFloat64() {
				sent++
			}
			if !step(c.rate, c.seconds, float64(sent)) {
				missed++
			}
		}
		if missed > steps/100 {
			t.Errorf("%d a second for %g s: %d of %d steps missed by chance", c.rate, c.seconds, missed, steps)
		}
	}
	if step(50, 1, 25) || step(500, 10, 3750) {
		t.Error("a service that did not answer met the objective")
	}
}

func TestCapacityOfAFile(t *testing.T) {
	for _, c := range []struct {
		in   file
		want string // in the error; otherwise the value
	}{
		{file{Objective: "p99=50ms"}, "{p99 0.05 10 1000000 0.5 10}"},
		{file{Objective: "p95=2s", From: 5, To: 50, Raise: "20%", Hold: "3s"}, "{p95 2 5 50 0.2 3}"},
		{file{Objective: "50ms"}, `objective: "50ms": must be METRIC=TIME, like p99=50ms`},
		{file{Objective: "p99=fast"}, "objective: "},
		{file{Objective: "p99=-1s"}, "objective: "},
		{file{Objective: "p99=1s", From: 50, To: 20}, "from: 50 to 20 requests a second"},
		{file{Objective: "p99=1s", Raise: "200%"}, "raise: "},
		{file{Objective: "p99=1s", Hold: "1.5s"}, "hold: "},
	} {
		got, err := c.in.config()
		said := fmt.Sprint(err)
		if err == nil {
			said = fmt.Sprint(got.(config).Config)
		}
		if !strings.HasPrefix(said, c.want) {
			t.Errorf("%+v: %s, want %s", c.in, said, c.want)
		}
	}
}

// shop is a laboratory whose guests run a service that answers at once. Its load prints what the test says.
type shop struct {
	measuretest.Lab
	at     func(rate string) string // the load's last line
	places int                      // places of loads that were made and not removed
}

func (l *shop) guest(t notebook.Treatment, does func(context.Context, ruler.Order) (ruler.Result, time.Duration, error)) measuretest.Guest {
	return measuretest.Guest{Lab: &l.Lab, T: t, Does: does}
}

func (l *shop) Load(_ context.Context, t notebook.Treatment, _ string, _ *workload.Ready) (crowd.Guest, notebook.Load, error) {
	l.places++
	return &place{l.guest(t, l.asks), l}, notebook.Load{CPUs: []int{1}}, nil
}

// serves is the service, which runs until it is ended.
func (*shop) serves(ctx context.Context, _ ruler.Order) (ruler.Result, time.Duration, error) {
	<-ctx.Done()
	return ruler.Result{}, 0, ctx.Err()
}

// asks is the load.
func (l *shop) asks(_ context.Context, o ruler.Order) (ruler.Result, time.Duration, error) {
	if o.Argv[0] == "ready" {
		return ruler.Result{}, 0, nil
	}
	if o.Remains {
		panic("a load leaves nothing in the guest that it asks")
	}
	return ruler.Result{Elapsed: time.Second, Usage: notebook.Usage{UserS: 0.5}, Stdout: []byte("noise\n" + l.at(o.Argv[1]) + "\n")}, time.Second, nil
}

// counter is the guest that runs the service.
type counter struct{ measuretest.Guest }

func (*counter) Address() engine.Address {
	return engine.Address{Listen: netip.MustParseAddr("0.0.0.0"), Connect: netip.MustParseAddr("198.18.0.2")}
}

// place is where a load runs.
type place struct {
	measuretest.Guest
	l *shop
}

func (p *place) Destroy(context.Context) error { p.l.places--; return nil }

// A trial records every step of its search, and its value is one over the capacity. A warm-up makes one step.
func TestATrialFindsACapacity(t *testing.T) {
	l := &shop{at: func(rate string) string {
		if rate == "640" {
			return `{"mean":0.02,"p99":0.05,"requests_per_second":500,"errors":3}`
		}
		return `{"mean":0.02,"p99":0.04,"requests_per_second":1000000,"errors":0}`
	}}
	l.Made = func(w crowd.Want) (crowd.Guest, error) { return &counter{l.guest(w.Treatment, l.serves)}, nil }
	w := &workload.Workload{
		Name:    "w",
		Service: &workload.Service{Command: []string{"serve", "{address}", "{port}"}, Port: 8080},
		Load: &workload.Load{Ready: []string{"ready", "{address}"}, Command: []string{"ask", "{address}", "{port}"},
			Open: []string{"open", "{rate}", "{seconds}", "{requests}"}},
	}
	c := config{Config: record.Config{Metric: "p99", Bound: 0.05, From: 10, To: 1000, Raise: 1, HoldS: 3}}
	trial := func(platform string, role measure.Role) notebook.Trial {
		of := measure.Cell{
			Treatment: notebook.Treatment{Platform: platform, Instance: notebook.Instance{Cores: 1, Memory: 1 << 30}},
			Ready:     &workload.Ready{Workload: w, Image: &image.Image{}, Params: map[string]string{"rate": "7"}},
		}
		tr, err := measuretest.Trial(t.Context(), t, c, l, of, measure.Step{Role: role})
		if err != nil || l.Live != 0 || l.places != 0 {
			t.Fatalf("%v, %d guests and %d places of loads are left", err, l.Live, l.places)
		}
		return tr
	}
	for _, platform := range []string{notebook.BM, notebook.CN} {
		if tr := trial(platform, measure.Warmup); len(notebooktest.Seen[record.Seen](&tr).Steps) != 1 || tr.Failure != nil {
			t.Errorf("a warm-up of %d steps, want 1 (%s)", len(notebooktest.Seen[record.Seen](&tr).Steps), tr.Failure)
		}
		tr := trial(platform, measure.Measured)
		steps, found := notebooktest.Seen[record.Seen](&tr).Steps, tr.Figures[record.PerSecond.Name]
		if tr.Failure != nil || tr.Value != 1/found || found < 580 || found >= 640 || len(steps) < 8 || steps[0].Rate != 10 || tr.Load == nil {
			t.Errorf("trial %+v", tr)
		}
		for _, s := range steps {
			if s.Met != (s.Rate < 640) || (s.Failure != nil) != (s.Rate == 640) {
				t.Errorf("step %+v", s)
			}
		}
		if tr.Command[0] != "open" || tr.Command[2] != "3" {
			t.Errorf("command %q", tr.Command)
		}
	}
}

// A rehearsal finds about where the capacity is. The first search in any environment begins there, and the next one where the last one
// in the same environment ended. What an emulated machine carries moves no other's beginning.
func TestWhereASearchBegins(t *testing.T) {
	capacity := 600.0
	l := &shop{at: func(rate string) string {
		n, err := strconv.ParseFloat(rate, 64)
		if err != nil {
			panic(err)
		}
		return fmt.Sprintf(`{"mean":0.02,"p99":%g,"requests_per_second":%g,"errors":0}`, 0.05*math.Pow(n/capacity, 8), n)
	}}
	l.Made = func(w crowd.Want) (crowd.Guest, error) { return &counter{l.guest(w.Treatment, l.serves)}, nil }
	w := &workload.Workload{
		Name: "w", Service: &workload.Service{Command: []string{"serve"}, Port: 8080},
		Load: &workload.Load{Ready: []string{"ready"}, Command: []string{"ask"}, Open: []string{"open", "{rate}"}},
	}
	c := config{found: map[string]int{}, Config: record.Config{Metric: "p99", Bound: 0.05, From: 10, To: 10000, Raise: 0.5, HoldS: 2}}
	trial := func(id, accelerator string, role measure.Role) []record.Step {
		t.Helper()
		of := measure.Cell{
			Treatment: notebook.Treatment{ID: id, Platform: notebook.VM, Accelerator: accelerator, Instance: notebook.Instance{Name: "1/1GB", Cores: 1, Memory: 1 << 30}},
			Ready:     &workload.Ready{Workload: w, Image: &image.Image{}, Params: map[string]string{}},
		}
		tr, err := measuretest.Trial(t.Context(), t, c, l, of, measure.Step{Role: role})
		if err != nil || tr.Failure != nil {
			t.Fatal(err, tr.Failure)
		}
		if role == measure.Measured && math.Abs(tr.Figures[record.PerSecond.Name]/capacity-1) > 0.02 {
			t.Errorf("%s: a capacity of %g, want %g", id, tr.Figures[record.PerSecond.Name], capacity)
		}
		return notebooktest.Seen[record.Seen](&tr).Steps
	}
	if steps := trial("bm", notebook.KVM, measure.Rehearsal); len(steps) > 9 || steps[0].Rate != 10 {
		t.Errorf("the rehearsal made %d steps, from %d", len(steps), steps[0].Rate)
	}
	if first := trial("cn", notebook.KVM, measure.Measured)[0].Rate; first < 430 || first > 600 {
		t.Errorf("the first search begins at %d, want just below 600", first)
	}
	if steps := trial("cn", notebook.KVM, measure.Measured); len(steps) != 4 || steps[0].Rate < 560 || steps[0].Rate > 590 {
		t.Errorf("the next search: %+v, want four steps from 572", steps)
	}
	capacity = 30
	trial("slow", notebook.TCG, measure.Measured)
	capacity = 600
	if steps := trial("other", notebook.KVM, measure.Warmup); len(steps) != 1 || steps[0].Rate < 560 {
		t.Errorf("after an emulated machine a warm-up is %+v", steps)
	}
	if steps := trial("slow", notebook.TCG, measure.Warmup); steps[0].Rate > 40 {
		t.Errorf("an emulated machine begins at %d, want where its last search ended", steps[0].Rate)
	}
}
