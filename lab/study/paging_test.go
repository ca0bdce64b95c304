package study

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
	pagingkind "tare/notebook/kinds/paging"
)

// pager is a laboratory whose guests' page tables and faults are known: of the 100 entries of each guest as many are groupable as seconds have passed since
// their work began, and a fault comes each second of each guest, of which every other repeats another's.
type pager struct {
	fakeLab
	length  time.Duration // of the work; 0: it stays
	exit    int           // of work that ends
	refuses int           // the guest, counted from 1, that cannot be made; 0: none
	blind   error         // faults cannot be seen
	after   func()        // called when tables are read

	mu                   sync.Mutex // of what the guests' work changes
	working, mostWorking int
	began, watching      time.Time
	watches              int
	orders               []ruler.Order
}

func (l *pager) Provision(_ context.Context, t notebook.Treatment, _ string, _ *workload.Ready) (Guest, error) {
	if l.live+1 == l.refuses {
		return nil, errors.New("the bridge is full")
	}
	l.live++
	l.most = max(l.most, l.live)
	return &paged{fakeGuest{&l.fakeLab, t}, l}, nil
}

func (l *pager) Tables(_ context.Context, guests []Guest) (notebook.PageTables, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := int64(len(guests))
	if l.working != len(guests) {
		return notebook.PageTables{}, fmt.Errorf("%d of %d guests work", l.working, n)
	}
	groupable := int64(time.Since(l.began).Seconds()) * n
	if l.after != nil {
		l.after()
	}
	return notebook.PageTables{Guests: int(n), Entries: 100 * n, Groupable: groupable, Active: 50 * n, ActiveGroupable: groupable / 2}, nil
}

func (l *pager) Faults(guests []Guest) (Faulting, error) {
	if l.blind != nil {
		return nil, l.blind
	}
	l.watches++
	l.watching = time.Now()
	return watching{l, len(guests)}, nil
}

type watching struct {
	l      *pager
	guests int
}

func (w watching) Stop() (notebook.PageFaults, error) {
	w.l.watches--
	n := int64(time.Since(w.l.watching).Seconds()) * int64(w.guests)
	return notebook.PageFaults{Guests: w.guests, Kinds: map[string]int64{"read": n / 2, "anonymous": n - n/2}, Repeated: map[string]int64{"read": n / 2}}, nil
}

type paged struct {
	fakeGuest
	l *pager
}

func (g *paged) Ruler() Ruler { return g }

func (g *paged) Used() (time.Duration, error) {
	g.l.mu.Lock()
	defer g.l.mu.Unlock()
	return time.Since(g.l.began) / 4, nil
}

func (g *paged) Run(ctx context.Context, o ruler.Order) (ruler.Result, time.Duration, error) {
	l := g.l
	l.mu.Lock()
	l.orders = append(l.orders, o)
	l.working++
	l.mostWorking = max(l.mostWorking, l.working)
	l.began = time.Now()
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.working--
		l.mu.Unlock()
	}()
	o.Bounds.Begin()
	var over <-chan time.Time
	if l.length > 0 {
		over = time.After(l.length)
	}
	select {
	case <-ctx.Done():
		return ruler.Result{}, 0, ctx.Err()
	case <-over:
	}
	return ruler.Result{Exit: l.exit, Elapsed: l.length, Usage: notebook.Usage{UserS: 2}}, l.length, nil
}

// read runs a study of one treatment, one round.
func read(t *testing.T, l *pager, p pagingkind.Config, params map[string]string) (tr notebook.Trial, reason string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		book := &fakeBook{}
		plan := fakePlan(notebook.Design{Floor: 1, Cap: 1, Trials: 1}, cnT)
		plan.Study.Kind, plan.Study.Config, plan.Study.Design.TimeoutS = pagingkind.Name, &p, 600
		for _, r := range plan.ready {
			r.Workload.Stays = l.length == 0
		}
		plan.Study.Treatments[0].Params = params
		if params != nil {
			plan.ready[notebook.Label(plan.Study.Treatments[0].Workload, params)] = plan.ready[notebook.Label(plan.Study.Treatments[0].Workload, nil)]
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if l.after != nil {
			l.after = cancel
		}
		var err error
		if reason, err = (&Run{Plan: plan, Lab: l, Book: book}).Do(ctx); err != nil {
			t.Error(err)
		}
		if len(book.trials) > 0 {
			tr = book.trials[0]
		}
		synctest.Wait()
		if l.live != 0 || l.working != 0 || l.watches != 0 {
			t.Errorf("%d guests are left, %d work, %d watches", l.live, l.working, l.watches)
		}
	})
	return tr, reason
}

// Guests that stay are read in both states, and their faults counted for as long as the study says; all four are at work meanwhile.
func TestGuestsOfKnownPages(t *testing.T) {
	l := &pager{}
	p := pagingkind.Config{Guests: 4, Tables: true, InitialS: 2, SteadyS: 18, FaultsS: 10}
	tr, _ := read(t, l, p, nil)
	if tr.Failure != "" {
		t.Fatal(tr.Failure)
	}
	want := map[string]float64{
		"page-table entries, initial": 100, "groupable entries, initial": 2, "active entries, initial": 50, "active and groupable entries, initial": 1,
		"groupable entries, steady": 20, "exclusive entries, steady": 80, "repeated page faults": 50, "read faults": 50, "anonymous faults": 50, "unknown faults": 0,
		"page faults per CPU second": 4, "page faults of a guest": 10,
	}
	for name, v := range want {
		if got, ok := tr.Figures[name]; !ok || got != v {
			t.Errorf("%s: %v, want %v", name, got, v)
		}
	}
	if tr.Value != 80 || l.most != 4 || l.mostWorking != 4 || len(pagingkind.SeenBy(&tr).PageTables) != 2 || pagingkind.SeenBy(&tr).PageFaults.OfS != 10 {
		t.Errorf("value %v of at most %d guests, %d at work, %d readings, faults of %v s", tr.Value, l.most, l.mostWorking, len(pagingkind.SeenBy(&tr).PageTables), pagingkind.SeenBy(&tr).PageFaults.OfS)
	}
	first, also := p.Metrics(false)
	if first.Name != "exclusive entries, steady" {
		t.Errorf("the metric is %s", first.Name)
	}
	for _, m := range also { // the others are shares of nothing here
		if _, ok := tr.Figures[m.Name]; !ok && !slices.Contains([]string{"accessed memory, initial", "accessed memory, steady"}, m.Name) {
			t.Errorf("%s is among the study's metrics, and no trial has it", m.Name)
		}
	}
}

// What ends by itself has no steady state, and its faults are those from its beginning to its end.
func TestFunctionsAreReadToTheirEnd(t *testing.T) {
	l := &pager{length: 30 * time.Second}
	tr, _ := read(t, l, pagingkind.Config{Guests: 4, Tables: true, InitialS: 5, SteadyS: 120, FaultsS: 10}, nil)
	if tr.Failure != "" {
		t.Fatal(tr.Failure)
	}
	if len(pagingkind.SeenBy(&tr).PageTables) != 1 || pagingkind.SeenBy(&tr).PageTables[0].Groupable != 20 || pagingkind.SeenBy(&tr).PageFaults.OfS != 30 || pagingkind.SeenBy(&tr).PageFaults.CPUS != 8 || tr.Value != 95 {
		t.Errorf("%+v, %+v, value %v", pagingkind.SeenBy(&tr).PageTables, pagingkind.SeenBy(&tr).PageFaults, tr.Value)
	}
	if _, ok := tr.Figures["groupable entries, steady"]; ok {
		t.Error("it has a steady state")
	}
}

func TestGuestsThatCannotBeRead(t *testing.T) {
	tables := pagingkind.Config{Guests: 3, Tables: true, InitialS: 5}
	faults := pagingkind.Config{Guests: 3, FaultsS: 10}
	for name, c := range map[string]struct {
		l    *pager
		p    pagingkind.Config
		want string
	}{
		"a guest that cannot be made": {&pager{refuses: 3}, tables, "guest 3 of 3: no guest: the bridge is full"},
		"a function that is too short": {&pager{length: 3 * time.Second}, tables,
			"ended before the initial state was read, 3 s after all had begun: more data, or a shorter paging: initial:, was expected"},
		"work that fails":                {&pager{length: 3 * time.Second, exit: 3}, faults, "guest 1: exit status 3"},
		"work that does not end":         {&pager{length: time.Hour}, faults, "the work in guest 1 had not ended after 10m0s"},
		"faults that cannot be seen":     {&pager{blind: errors.New("no BPF")}, faults, "page faults: no BPF"},
		"faults of work that cannot end": {&pager{blind: errors.New("no BPF"), length: time.Second}, faults, "page faults: no BPF"},
	} {
		t.Run(name, func(t *testing.T) {
			if tr, _ := read(t, c.l, c.p, nil); !strings.Contains(tr.Failure, c.want) {
				t.Errorf("%q, want %q", tr.Failure, c.want)
			}
		})
	}
}

func TestAnInterruptWhilePagesAreRead(t *testing.T) {
	l := &pager{after: func() {}}
	if tr, reason := read(t, l, pagingkind.Config{Guests: 2, Tables: true, InitialS: 1, SteadyS: 100}, nil); reason != Interrupted || tr.Treatment != "" {
		t.Errorf("%q, trial %+v", reason, tr)
	}
}

// A treatment's addresses and pages are those of its guests' work.
func TestOrdersHaveTheTreatmentsAddressesAndPages(t *testing.T) {
	for _, c := range []struct{ addresses, pages string }{{"", ""}, {"fixed", "host"}, {"random", "never"}, {"fixed", "never"}, {"fixed", "always"}} {
		l := &pager{}
		params := map[string]string{notebook.ParamAddresses: c.addresses, notebook.ParamHugePages: c.pages}
		if tr, _ := read(t, l, pagingkind.Config{Guests: 2, Tables: true}, params); tr.Failure != "" {
			t.Fatal(tr.Failure)
		}
		for _, o := range l.orders {
			if o.FixedAddresses != (c.addresses == "fixed") || o.SmallPages != (c.pages == "never") {
				t.Errorf("%+v: fixed addresses %v, small pages %v", c, o.FixedAddresses, o.SmallPages)
			}
		}
	}
}

func TestPagingOfAFile(t *testing.T) {
	for _, c := range []struct {
		in   Paging
		want string // in the error; else the value
	}{
		{Paging{Steady: "2m"}, "{4 true 1 120 0}"},
		{Paging{Guests: 2, Initial: "100ms", Faults: "10s"}, "{2 false 0.1 0 10}"},
		{Paging{Steady: "0s", Faults: "1s"}, "{4 true 1 0 1}"},
		{Paging{}, "steady: and faults: are missing"},
		{Paging{Guests: 65, Steady: "2m"}, "guests: 65: a number from 1 to 64 was expected"},
		{Paging{Guests: -1, Steady: "2m"}, "guests: -1: "},
		{Paging{Steady: "two"}, `steady: "two": a time from 0s to 24h0m0s, like 10s or 2m, was expected`},
		{Paging{Faults: "0s"}, `faults: "0s": `},
		{Paging{Steady: "1s", Addresses: []string{"none"}}, `addresses: "none": random or fixed was expected`},
		{Paging{Steady: "1s", HugePages: []string{"2M"}}, `huge_pages: "2M": host, never, always or large was expected`},
	} {
		got, err := c.in.parse()
		said := fmt.Sprint(err)
		if err == nil {
			said = fmt.Sprint(*got)
		}
		if !strings.HasPrefix(said, c.want) {
			t.Errorf("%+v: %s, want %s", c.in, said, c.want)
		}
	}
}

// Each of the addresses with each of the pages is a treatment, in the file's order; a parameter of the workload's own is not overwritten.
func TestAddressesAndPagesMakeTreatments(t *testing.T) {
	p := &Paging{Addresses: []string{"fixed", "random"}, HugePages: []string{"host", "never"}}
	all, err := (&Spec{Paging: p}).each(map[string]string{"size": "1"})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, params := range all {
		said = append(said, notebook.Assignments(params, ","))
	}
	want := []string{
		"addresses=fixed,huge_pages=host,size=1", "addresses=fixed,huge_pages=never,size=1", "addresses=random,huge_pages=host,size=1", "addresses=random,huge_pages=never,size=1",
	}
	if !slices.Equal(said, want) {
		t.Errorf("%v, want %v", said, want)
	}
	if _, err := (&Spec{Paging: p}).each(map[string]string{"addresses": "16"}); err == nil || !strings.Contains(err.Error(), `a parameter "addresses" of its own`) {
		t.Errorf("%v", err)
	}
	none, err := (&Spec{}).each(map[string]string{"size": "1"})
	if err != nil || len(none) != 1 || !maps.Equal(none[0], map[string]string{"size": "1"}) {
		t.Errorf("%v, %v", none, err)
	}
}

// A rehearsal of a study of faults runs a function to its end, however short it is, and says how it fails.
func TestAFunctionIsRehearsed(t *testing.T) {
	for _, c := range []struct {
		tables bool
		exit   int
		want   string
	}{{false, 0, ""}, {false, 3, "guest 1: exit status 3"}, {true, 0, "ended before the initial state was read"}} {
		synctest.Test(t, func(t *testing.T) {
			l := &pager{length: time.Millisecond, exit: c.exit}
			plan := fakePlan(notebook.Design{Floor: 1, Cap: 1, Trials: 1}, cnT)
			plan.Study.Kind, plan.Study.Config = pagingkind.Name, &pagingkind.Config{Guests: 4, Tables: c.tables, InitialS: 1, FaultsS: 10}
			r := &Run{Plan: plan, Lab: l}
			g, err := l.Provision(t.Context(), plan.Study.Treatments[0], "rehearsal", nil)
			if err != nil {
				t.Fatal(err)
			}
			tr, err := r.page(t.Context(), g, plan.ready["w"], plan.Study.Treatments[0], true)
			if err != nil || (c.want == "") != (tr.Failure == "") || !strings.Contains(tr.Failure, c.want) || l.watches != 0 || l.live != 1 {
				t.Errorf("tables %v, exit %d: %q, %v, want %q; %d guests", c.tables, c.exit, tr.Failure, err, c.want, l.live)
			}
		})
	}
}
