//go:build linux

package paging

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/measure"
	"tare/lab/measure/measuretest"
	"tare/lab/memory"
	"tare/lab/pagetable"
	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
	record "tare/notebook/kinds/paging"
	"tare/notebook/notebooktest"
)

// pager is a laboratory whose guests have known page tables and faults. Each guest has 100 entries. Each second of its work makes
// another entry groupable and causes one page fault. Every other fault repeats a fault of another guest.
type pager struct {
	measuretest.Lab
	length  time.Duration // duration of the work; 0: it does not end
	exit    int           // exit status of work that ends
	refuses int           // this guest, counted from 1, cannot be made; 0: all can
	blind   error         // why no faults are seen
	after   func()        // called when tables are read
	unused  error         // why no uses of entries are seen
	uncount error         // why they cannot be read
	asked   []time.Time   // when they were read
	unmade  error         // why faults of making guests are not seen
	built   []int         // the guests that were made while they were seen

	mu                   sync.Mutex // guards what the guests' work changes
	working, mostWorking int
	began, watching      time.Time
	watches              int
	orders               []ruler.Order
}

func (l *pager) Provision(ctx context.Context, w crowd.Want) (crowd.Guest, error) {
	if l.Live+1 == l.refuses {
		return nil, errors.New("the bridge is full")
	}
	l.Made = func(w crowd.Want) (crowd.Guest, error) {
		return &guest{measuretest.Guest{Lab: &l.Lab, T: w.Treatment, Does: l.work}, l}, nil
	}
	return l.Lab.Provision(ctx, w)
}

func (l *pager) tables(_ context.Context, guests []crowd.Guest, _ notebook.Treatment, _ bool, uses *memory.Uses) (notebook.PageTables, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := int64(len(guests))
	if l.working != len(guests) {
		return notebook.PageTables{}, fmt.Errorf("%d of %d guests work", l.working, n)
	}
	groupable := int64(time.Since(l.began).Seconds()) * n
	reused, reusedGroupable := int64(0), int64(0)
	if uses != nil {
		reused, reusedGroupable = 40*n, n
	}
	if l.after != nil {
		l.after()
	}
	return notebook.PageTables{Guests: int(n), Entries: 100 * n, Groupable: groupable, Active: 50 * n, ActiveGroupable: groupable / 2, Reused: reused, ReusedGroupable: reusedGroupable,
		Code: notebook.TablePart{Entries: 30 * n, Active: 10 * n}, Data: notebook.TablePart{Entries: 50 * n, Active: 30 * n}, Own: notebook.TablePart{Entries: 20 * n, Active: 10 * n},
		Engine: notebook.TablePart{Entries: 300 * n, Groupable: 75 * n}}, nil
}

func (l *pager) uses() (uses, error) {
	if l.unused != nil {
		return nil, l.unused
	}
	return (*used)(l), nil
}

// used are uses that are seen at known times.
type used pager

func (u *used) Since([]crowd.Guest, notebook.Treatment, bool) (pagetable.Used, error) {
	u.asked = append(u.asked, time.Now())
	return pagetable.Used{}, u.uncount
}

func (*used) Close() {}

func (l *pager) making(engine.Kind) (making, error) {
	if l.unmade != nil {
		return nil, l.unmade
	}
	l.watches++
	return &builds{l: l}, nil
}

// builds sees ten faults for each guest that is made.
type builds struct {
	l      *pager
	guests []int
}

func (b *builds) Making(guest int) error {
	b.guests = append(b.guests, guest)
	return nil
}

func (b *builds) Stop() (notebook.PageFaults, error) {
	b.l.watches--
	b.l.built = b.guests
	n := int64(len(b.guests))
	return notebook.PageFaults{Guests: int(n), Kinds: map[string]int64{"read": 6 * n, "write-protect": 2 * n, "unknown": 2 * n}, Repeated: map[string]int64{"read": 4 * n}}, nil
}

func (l *pager) faults(guests []crowd.Guest, _ notebook.Treatment, _ bool) (faulting, error) {
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
	return notebook.PageFaults{Guests: w.guests, Kinds: map[string]int64{"read": n / 2, "anonymous": n - n/2}, Repeated: map[string]int64{"read": n / 2}, Common: n / 2, Instructions: 1e6 * float64(n)}, nil
}

// work is the work of each guest.
func (l *pager) work(ctx context.Context, o ruler.Order) (ruler.Result, time.Duration, error) {
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

// guest uses a CPU for a quarter of the time.
type guest struct {
	measuretest.Guest
	l *pager
}

func (g *guest) Used() (time.Duration, error) {
	g.l.mu.Lock()
	defer g.l.mu.Unlock()
	return time.Since(g.l.began) / 4, nil
}

// trial makes one trial, in which a guest's work has ten minutes. took is its duration by the bubble's clock.
func (l *pager) trial(t *testing.T, p record.Config, factors map[string]string, role measure.Role) (tr notebook.Trial, took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if l.after != nil {
			l.after = cancel
		}
		b := measuretest.Bench(l)
		b.Timeout = 10 * time.Minute
		work := measuretest.Work()
		work.Workload.Stays = l.length == 0
		cell := measure.Cell{Treatment: notebook.Treatment{Platform: notebook.CN, Factors: factors}, Ready: work, ID: "x", Rehearsal: role == measure.Rehearsal}
		began := time.Now()
		var err error
		if tr, err = measuretest.TrialOf(ctx, t, config{Config: p, eyes: l}.Subject(b, cell), measure.Step{Role: role}); err != nil {
			t.Error(err)
		}
		took = time.Since(began)
		synctest.Wait()
		if l.Live != 0 || l.working != 0 || l.watches != 0 {
			t.Errorf("%d guests are left, %d work, %d watches", l.Live, l.working, l.watches)
		}
	})
	return tr, took
}

// Guests whose work does not end are read in both states, and their faults are counted for as long as the study says. All four work
// during that time.
func TestGuestsOfKnownPages(t *testing.T) {
	l := &pager{}
	p := record.Config{Guests: 4, Tables: true, InitialS: 2, SteadyS: 18, FaultsS: 10}
	tr, _ := l.trial(t, p, nil, measure.Measured)
	if tr.Failure != nil {
		t.Fatal(tr.Failure)
	}
	want := map[string]float64{
		"entries_initial": 100, "entries_groupable_initial": 2, "entries_active_initial": 50, "entries_active_groupable_initial": 1,
		"entries_groupable_steady": 20, "entries_exclusive_steady": 80, "page_faults_repeated": 50, "page_faults_read": 50, "page_faults_anonymous": 50, "page_faults_unknown": 0,
		"page_faults_per_cpu_second": 4, "page_faults_per_guest": 10, "page_faults_per_million_instructions": 1, "page_faults_common": 50,
		"entries_engine_initial": 300, "entries_engine_groupable_steady": 25,
		"entries_reused_initial": 40, "entries_reused_groupable_initial": 1, "entries_reused_steady": 40,
		"entries_code_steady": 30, "entries_data_steady": 50, "entries_active_code_steady": 20, "entries_active_data_steady": 60,
	}
	for name, v := range want {
		if got, ok := tr.Figures[name]; !ok || got != v {
			t.Errorf("%s: %v, want %v", name, got, v)
		}
	}
	if seen := notebooktest.Seen[record.Seen](&tr); tr.Value != 80 || l.Most != 4 || l.mostWorking != 4 || len(seen.PageTables) != 2 || seen.PageFaults.OfS != 10 {
		t.Errorf("value %v of at most %d guests, %d at work, %d readings, faults of %v s", tr.Value, l.Most, l.mostWorking, len(seen.PageTables), seen.PageFaults.OfS)
	}
	first, also := config{Config: p}.Metrics(&workload.Workload{Stays: true}, nil)
	if first.Name != "entries_exclusive_steady" {
		t.Errorf("the metric is %s", first.Name)
	}
	shareless := []string{"memory_accessed_initial", "memory_accessed_steady"} // shares of nothing here
	for _, m := range also {
		if _, ok := tr.Figures[m.Name]; !ok && !slices.Contains(shareless, m.Name) {
			t.Errorf("%s is one of the study's metrics, and the trial does not have it", m.Name)
		}
	}
}

// Page faults are counted once more, so much later.
func TestFaultsAreCountedOnceMore(t *testing.T) {
	l := &pager{}
	tr, took := l.trial(t, record.Config{Guests: 2, FaultsS: 10, LaterS: 30}, nil, measure.Measured)
	seen := notebooktest.Seen[record.Seen](&tr)
	if tr.Failure != nil || took != 50*time.Second || seen.Later == nil || seen.PageFaults.OfS != 10 || seen.Later.OfS != 10 {
		t.Fatalf("%q after %v: %+v", tr.Failure, took, seen)
	}
	for name, want := range map[string]float64{"page_faults_later_per_cpu_second": 4, "page_faults_later_repeated": 50, "page_faults_later_read": 50, "page_faults_per_cpu_second": 4} {
		if got, has := tr.Figures[name]; !has || got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	_, also := config{Config: record.Config{FaultsS: 10, LaterS: 30}}.Metrics(&workload.Workload{Stays: true}, nil)
	for _, m := range also {
		if _, has := tr.Figures[m.Name]; !has && m.Name != record.FaultsRepeatable.Name {
			t.Errorf("%s is one of the study's metrics, and the trial does not have it", m.Name)
		}
	}
}

// Which entries the processor used is read at the beginning, the middle and the end of the time before each state.
func TestEntriesAreUsedInEachHalf(t *testing.T) {
	l := &pager{}
	p := record.Config{Guests: 2, Tables: true, InitialS: 2, SteadyS: 18}
	tr, _ := l.trial(t, p, nil, measure.Measured)
	if tr.Failure != nil {
		t.Fatal(tr.Failure)
	}
	var at []float64
	for _, x := range l.asked {
		at = append(at, x.Sub(l.began).Seconds())
	}
	if want := []float64{0, 1, 2, 2, 11, 20}; !slices.Equal(at, want) {
		t.Errorf("read after %v s, want %v", at, want)
	}
	if tables := notebooktest.Seen[record.Seen](&tr).PageTables; tables[0].HalvesS != 1 || tables[1].HalvesS != 9 {
		t.Errorf("halves of %v and %v s", tables[0].HalvesS, tables[1].HalvesS)
	}
}

// A host that does not show them has all other figures, and a warning says why.
func TestEntriesWhoseUseIsNotSeen(t *testing.T) {
	l := &pager{unused: errors.New("no BPF")}
	tr, _ := l.trial(t, record.Config{Guests: 2, Tables: true, InitialS: 2}, nil, measure.Measured)
	if _, has := tr.Figures["entries_reused_initial"]; has || tr.Failure != nil || tr.Figures["entries_active_initial"] != 50 {
		t.Errorf("%q, %v", tr.Failure, tr.Figures)
	}
	if want := notebook.Say("uses-unseen", "cause", "no BPF"); len(tr.Warnings) != 1 || !tr.Warnings[0].Equal(want) {
		t.Errorf("%q, want %q", tr.Warnings, want)
	}
	l = &pager{unmade: errors.New("no BPF"), length: 30 * time.Second}
	tr, _ = l.trial(t, record.Config{Guests: 2, FaultsS: 10}, nil, measure.Measured)
	if _, has := tr.Figures["page_faults_whole_read"]; has || tr.Failure != nil || len(tr.Warnings) != 1 || !tr.Warnings[0].Equal(notebook.Say("making-unseen", "cause", "no BPF")) {
		t.Errorf("%q, %q, %v", tr.Failure, tr.Warnings, tr.Figures)
	}
	l = &pager{uncount: errors.New("it ended")}
	if tr, _ = l.trial(t, record.Config{Guests: 2, Tables: true, InitialS: 2}, nil, measure.Measured); !tr.Failure.Equal(notebook.Say("tables-unread", "cause", "it ended")) {
		t.Errorf("%q", tr.Failure)
	}
}

// Work that ends by itself has no steady state, and its faults are counted from its beginning to its end.
func TestFunctionsAreReadToTheirEnd(t *testing.T) {
	l := &pager{length: 30 * time.Second}
	tr, _ := l.trial(t, record.Config{Guests: 4, Tables: true, InitialS: 5, SteadyS: 120, FaultsS: 10}, nil, measure.Measured)
	if tr.Failure != nil {
		t.Fatal(tr.Failure)
	}
	tables, faults := notebooktest.Seen[record.Seen](&tr).PageTables, notebooktest.Seen[record.Seen](&tr).PageFaults
	if len(tables) != 1 || tables[0].Groupable != 20 || faults.OfS != 30 || faults.CPUS != 8 || tr.Value != 95 {
		t.Errorf("%+v, %+v, value %v", tables, faults, tr.Value)
	}
	if _, ok := tr.Figures["entries_groupable_steady"]; ok {
		t.Error("it has a steady state")
	}
	// A guest has 30 faults of its own, 15 of them repeated, and ten of its bring-up. The first guest was made before.
	if want := []int{1, 2, 3}; !slices.Equal(l.built, want) {
		t.Errorf("made while watched: %v, want %v", l.built, want)
	}
	for name, want := range map[string]float64{
		"page_faults_per_guest": 30, "page_faults_bring_up": 10, "page_faults_whole_repeated": 100 * 19.5 / 40, "page_faults_whole_read": 100 * 21 / 38.,
		"page_faults_whole_write_protect": 100 * 2 / 38., "page_faults_whole_unknown": 100 * 2 / 40., "page_faults_write_protect": 0,
	} {
		if got, ok := tr.Figures[name]; !ok || math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	_, also := config{Config: record.Config{FaultsS: 10}}.Metrics(&workload.Workload{}, nil)
	if !slices.ContainsFunc(also, func(m notebook.Metric) bool { return m.Name == "page_faults_whole_write_protect" }) {
		t.Errorf("the metrics of a function: %v", also)
	}
}

// ofAnyGuest returns a failure without the number of the guest whose work ended first, which chance decides.
func ofAnyGuest(m *notebook.Message) *notebook.Message {
	if m.Is("work-ended") {
		delete(m.Args, "guest")
	}
	return m
}

func TestGuestsThatCannotBeRead(t *testing.T) {
	tables := record.Config{Guests: 3, Tables: true, InitialS: 5}
	faults := record.Config{Guests: 3, FaultsS: 10}
	for name, c := range map[string]struct {
		l    *pager
		p    record.Config
		want *notebook.Message
	}{
		"a guest that cannot be made": {&pager{refuses: 3}, tables, notebook.Say("of-guest-of", "guest", 3, "of", 3, "cause", notebook.Say("no-guest", "cause", "the bridge is full"))},
		"a function that is too short": {&pager{length: 3 * time.Second}, tables,
			notebook.Say("work-ended", "until", "initial", "after_s", 3, "cause", notebook.Say("too-short"))},
		"work that fails":                {&pager{length: 3 * time.Second, exit: 3}, faults, notebook.Say("of-guest", "guest", 1, "cause", notebook.Say("exit", "status", 3, "said", ""))},
		"work that does not end":         {&pager{length: time.Hour}, faults, notebook.Say("work-not-ended", "guest", 1, "after", 10*time.Minute)},
		"faults that cannot be seen":     {&pager{blind: errors.New("no BPF")}, faults, notebook.Say("faults-uncounted", "cause", "no BPF")},
		"faults of work that cannot end": {&pager{blind: errors.New("no BPF"), length: time.Second}, faults, notebook.Say("faults-uncounted", "cause", "no BPF")},
	} {
		t.Run(name, func(t *testing.T) {
			if tr, _ := c.l.trial(t, c.p, nil, measure.Measured); !ofAnyGuest(tr.Failure).Equal(c.want) {
				t.Errorf("%q, want %q", tr.Failure, c.want)
			}
		})
	}
}

// An interrupt ends the wait for the steady state, and what was read before is not used.
func TestAnInterruptWhilePagesAreRead(t *testing.T) {
	l := &pager{after: func() {}}
	tr, took := l.trial(t, record.Config{Guests: 2, Tables: true, InitialS: 1, SteadyS: 100}, nil, measure.Measured)
	if took != time.Second || tr.Failure != nil || tr.Figures != nil || tr.Value != 0 {
		t.Errorf("after %v: %+v", took, tr)
	}
}

// The guests' work has the pages of the treatment. Its addresses are the host's setting.
func TestOrdersHaveTheTreatmentsPages(t *testing.T) {
	for _, c := range []struct{ addresses, pages string }{{"", ""}, {"fixed", "host"}, {"random", "never"}, {"fixed", "never"}, {"fixed", "always"}} {
		l := &pager{}
		factors := map[string]string{notebook.FactorAddresses.Name: c.addresses, notebook.FactorHugePages.Name: c.pages}
		if tr, _ := l.trial(t, record.Config{Guests: 2, Tables: true}, factors, measure.Measured); tr.Failure != nil || len(l.orders) != 2 {
			t.Fatalf("%q, %d orders", tr.Failure, len(l.orders))
		}
		for _, o := range l.orders {
			if o.SmallPages != (c.pages == "never") {
				t.Errorf("%+v: small pages %v", c, o.SmallPages)
			}
		}
	}
}

func TestPagingOfAFile(t *testing.T) {
	for _, c := range []struct {
		in   file
		want string // in the error; otherwise the value
	}{
		{file{Steady: "2m"}, "{4 true 1 120 0 0}"},
		{file{Guests: 2, Initial: "100ms", Faults: "10s"}, "{2 false 0.1 0 10 0}"},
		{file{Steady: "0s", Faults: "1s"}, "{4 true 1 0 1 0}"},
		{file{Faults: "10s", Later: "30s"}, "{4 false 1 0 10 30}"},
		{file{Steady: "10s", Faults: "10s", Later: "30s"}, `later: "30s": page faults are counted once more only`},
		{file{Steady: "10s", Later: "30s"}, `later: "30s": `},
		{file{}, "steady: and faults: are missing"},
		{file{Guests: 65, Steady: "2m"}, "guests: 65: must be from 1 to 64"},
		{file{Guests: -1, Steady: "2m"}, "guests: -1: "},
		{file{Steady: "two"}, `steady: "two": must be a time from 0s to 24h0m0s, like 10s or 2m`},
		{file{Faults: "0s"}, `faults: "0s": `},
		{file{Steady: "1s", Addresses: []string{"none"}}, `addresses: "none": must be random or fixed`},
		{file{Steady: "1s", HugePages: []string{"2M"}}, `huge_pages: "2M": must be host, never, madvise, always or large`},
	} {
		got, err := c.in.config()
		said := fmt.Sprint(err)
		if err == nil {
			said = fmt.Sprint(*got.Record().(*record.Config))
		}
		if !strings.HasPrefix(said, c.want) {
			t.Errorf("%+v: %s, want %s", c.in, said, c.want)
		}
	}
}

// Each of the study's addresses and pages makes a treatment, in the order of the file. A study that names none gets no more
// treatments.
func TestAddressesAndPagesMakeTreatments(t *testing.T) {
	for _, c := range []struct{ addresses, pages []string }{{[]string{"fixed", "random"}, []string{"host", "never"}}, {}} {
		p, err := file{Steady: "1s", Addresses: c.addresses, HugePages: c.pages}.config()
		if err != nil {
			t.Fatal(err)
		}
		want := []measure.Factor{{Of: notebook.FactorAddresses, Values: c.addresses}, {Of: notebook.FactorHugePages, Values: c.pages}}
		if got := p.Factors(); !reflect.DeepEqual(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// A rehearsal has one guest. It runs a function to its end, however short it is, and says how it fails.
func TestAFunctionIsRehearsed(t *testing.T) {
	for _, c := range []struct {
		tables bool
		exit   int
		want   *notebook.Message
	}{
		{false, 0, nil}, {false, 3, notebook.Say("of-guest", "guest", 1, "cause", notebook.Say("exit", "status", 3, "said", ""))},
		{true, 0, notebook.Say("work-ended", "until", "initial", "after_s", 0.001, "cause", notebook.Say("too-short"))},
	} {
		l := &pager{length: time.Millisecond, exit: c.exit}
		tr, _ := l.trial(t, record.Config{Guests: 4, Tables: c.tables, InitialS: 1, FaultsS: 10}, nil, measure.Rehearsal)
		if !ofAnyGuest(tr.Failure).Equal(c.want) || l.Most != 1 {
			t.Errorf("tables %v, exit %d: %q, want %q; %d guests", c.tables, c.exit, tr.Failure, c.want, l.Most)
		}
	}
}
