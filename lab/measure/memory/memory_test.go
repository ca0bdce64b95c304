//go:build linux

package memory

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tare/lab/crowd"
	"tare/lab/journal"
	"tare/lab/measure"
	"tare/lab/measure/measuretest"
	"tare/lab/ruler"
	"tare/notebook"
	record "tare/notebook/kinds/memory"
	"tare/notebook/notebooktest"
)

// balance is a laboratory and its scales. Its n guests take a known amount of memory.
type balance struct {
	measuretest.Lab
	sum      func(n int) int64 // PSS of n guests, in bytes
	merged   func(n int) int64 // the same with KSM
	noKSM    error             // why the kernel does not merge pages
	growing  bool              // guests never settle
	refuses  int               // this guest, counted from 1, cannot be made; 0: all can
	ends     bool              // the work ends by itself once it has begun
	early    bool              // the work ends before it has begun
	after    func()            // called after each weighing
	merging  bool              // KSM is on
	undone   int               // how often KSM's settings were restored
	stuck    error             // why they cannot be restored
	working  int               // guests whose work runs
	resident int64             // growth of a guest so far
	asked    []depth           // what guests were asked, at each weighing
	cached   []bool            // whether they were compared with the host's page cache
	sizes    []bool            // whether only their sizes were wanted
	noKSMOf  int               // the kernel does not merge the pages of so many guests; 0: it does
}

func (l *balance) provision(w crowd.Want) (crowd.Guest, error) {
	if l.Live+1 == l.refuses {
		return nil, errors.New("the bridge is full")
	}
	return &load{measuretest.Guest{Lab: &l.Lab, T: w.Treatment, Does: l.work}, l}, nil
}

func (l *balance) weigh(_ context.Context, guests []crowd.Guest, _ notebook.Treatment, as manner) (w record.Weight, err error) {
	if !l.ends && l.working != len(guests) {
		return w, fmt.Errorf("%d of %d guests work", l.working, len(guests))
	}
	of := l.sum
	if l.merging {
		of = l.merged
	}
	w.PSS = of(len(guests))
	w.RSS, w.USS, w.Tables = 2*w.PSS, w.PSS/2, int64(len(guests))<<20
	kernel := 2 * w.Tables
	w.KernelCopy = w.Tables / 2
	w.Kernel = &kernel
	w.Charged = &record.Charged{All: 5 * kernel, Files: 3 * kernel}
	w.Last = &notebook.MemoryGuest{Duplicates: &notebook.MemoryDuplicates{Within: notebook.MemoryAlike{AnonAnon: 3 << 20}}}
	l.asked, l.cached = append(l.asked, as.asked), append(l.cached, as.cache)
	l.sizes = append(l.sizes, as.sizes)
	if as.asked != outside { // Figure 6.4
		part := func(name string, own, alike, idle int64) notebook.MemoryFrames {
			return notebook.MemoryFrames{Name: name, RSS: own << 20, Own: own << 20, Alike: alike << 20, Idle: idle << 20, IdleElsewhere: alike << 20 / 2}
		}
		mapped := int64(66 << 20)
		w.Last.Own = 91 << 20
		w.Last.RAM = &notebook.MemoryRAM{Mapped: &mapped, Emulator: part("", 23, 4, 0), Kinds: []notebook.MemoryFrames{
			part(notebook.FramesFile, 50, 20, 2), part(notebook.FramesShared, 5, 0, 0), part(notebook.FramesAnonymous, 6, 2, 1),
			part(notebook.FramesSlab, 3, 0, 0), part(notebook.FramesReserved, 2, 0, 0), part(notebook.FramesFree, 2, 0, 0)}}
	}
	if l.after != nil {
		l.after()
	}
	return w, nil
}

func (l *balance) merge(*journal.Journal, string) (merging, error) {
	if l.noKSM != nil {
		return nil, l.noKSM
	}
	if l.noKSMOf > 0 && l.working == l.noKSMOf {
		return nil, errors.New("too many")
	}
	l.merging = true
	return l, nil
}

func (*balance) Settle(context.Context) (*notebook.KSM, error) { return &notebook.KSM{Scans: 2}, nil }

func (l *balance) End(context.Context) error {
	l.merging = false
	l.undone++
	return l.stuck
}

// work is the work of each guest.
func (l *balance) work(ctx context.Context, o ruler.Order) (ruler.Result, time.Duration, error) {
	if l.early {
		return ruler.Result{Exit: 3, Stderr: []byte("no such file\n")}, 0, nil
	}
	l.working++
	defer func() { l.working-- }()
	o.Bounds.Begin()
	if !l.ends {
		<-ctx.Done()
		return ruler.Result{}, 0, ctx.Err()
	}
	return ruler.Result{Exit: 4, Stderr: []byte("out of patience\n")}, 0, nil
}

// load is a guest on the scales.
type load struct {
	measuretest.Guest
	l *balance
}

func (g *load) Resident() (int64, error) {
	if g.l.growing {
		g.l.resident += 1 << 20
	}
	return 10<<20 + g.l.resident, nil
}

// Destroy takes one second.
func (g *load) Destroy(ctx context.Context) error {
	time.Sleep(time.Second)
	return g.Guest.Destroy(ctx)
}

// weighed makes one trial on the scales, and checks that no guest, work or merging is left afterwards.
func weighed(t *testing.T, l *balance, m record.Config, role measure.Role) (tr notebook.Trial, err error) {
	t.Helper()
	l.Made = l.provision
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if l.after != nil {
			l.after = cancel
		}
		of := measure.Cell{Treatment: notebook.Treatment{Platform: notebook.CN, Engine: "crun"}, Ready: measuretest.Work()}
		tr, err = measuretest.Trial(ctx, t, config{Config: m, scales: l}, l, of, measure.Step{Role: role})
		synctest.Wait()
		if l.Live != 0 || l.working != 0 || l.merging {
			t.Errorf("%d guests are left, %d work, merging: %v", l.Live, l.working, l.merging)
		}
	})
	return tr, err
}

const mib = notebook.MiB

// known is a balance on which the first guest takes 9 MiB and every further one 5 MiB; with KSM half of that.
func known() *balance {
	return &balance{
		sum:    func(n int) int64 { return int64(4+5*n) * mib },
		merged: func(n int) int64 { return int64(4+5*n) * mib / 2 },
	}
}

func TestGuestsOfKnownMemory(t *testing.T) {
	l := known()
	m := record.Config{Guests: []int{1, 2, 4}, KSM: notebook.KSMPaper}
	tr, err := weighed(t, l, m, measure.Measured)
	if err != nil || tr.Failure != nil {
		t.Fatal(err, tr.Failure)
	}
	want := map[notebook.Metric]float64{
		record.PSS: 6, record.RSS: 12, record.USS: 3, record.Tables: 1, record.Kernel: 2, record.ChargedAll: 10, record.ChargedFiles: 6, record.Copy: 0.5,
		record.Alone: 9, record.AloneRSS: 18, record.Added: 5, record.Asymptote: 5,
		record.Merged: 3, record.AloneKSM: 4.5, record.AddedKSM: 2.5, record.LimitKSM: 2.5,
		record.Anonymous: 0, record.File: 0, record.Within: 3, record.WithHost: 0, record.WithGuests: 0,
	}
	for m, v := range want {
		if got, ok := tr.Figures[m.Name]; !ok || math.Abs(got-v) > 1e-9 {
			t.Errorf("%s: %v, want %v", m.Name, got, v)
		}
	}
	if len(tr.Figures) != len(want) || tr.Value != 6 || l.Most != 4 || l.undone != 3 {
		t.Errorf("%d figures, value %v, at most %d guests, KSM undone %d times; want %d, 6, 4, 3", len(tr.Figures), tr.Value, l.Most, l.undone, len(want))
	}
	if tr.HostS != 6 {
		t.Errorf("the trial took %v s, want 6: three times guests settle in one, and three are removed", tr.HostS)
	}
	var points []string
	for _, w := range notebooktest.Seen[record.Seen](&tr).Weights {
		points = append(points, fmt.Sprint(w.Guests, " ", w.KSM != nil))
	}
	if want := []string{"1 false", "1 true", "2 false", "2 true", "4 false", "4 true"}; !slices.Equal(points, want) {
		t.Errorf("weighed at %v, want %v", points, want)
	}
	// The trial has each metric that the study lists.
	first, also := config{Config: m}.Metrics(nil, nil)
	for _, f := range append(also, first) {
		if _, ok := want[f]; !ok {
			t.Errorf("%s is among the study's metrics, but the trial lacks it", f.Name)
		}
	}
}

// Further guests are weighed as far as they can be, and no metric has them: from the fifth on each takes less here. Only their sizes are wanted.
func TestFurtherGuests(t *testing.T) {
	for name, c := range map[string]struct {
		l        func(*balance)
		weighed  string
		warnings string
	}{
		"all": {func(*balance) {}, "1 2 4 8 16", "[]"},
		"no room for nine": {func(l *balance) { l.refuses = 9 }, "1 2 4 8",
			"[no-further-guests cause=of-guest-of cause=no-guest cause=the bridge is full guest=9 of=16 guests=16]"},
		"no room for six": {func(l *balance) { l.refuses = 6 }, "1 2 4",
			"[no-further-guests cause=of-guest-of cause=no-guest cause=the bridge is full guest=6 of=8 guests=8]"},
		"eight are weighed and not merged": {func(l *balance) { l.noKSMOf = 8 }, "1 2 4", "[no-further-guests cause=ksm cause=too many guests=8]"},
	} {
		t.Run(name, func(t *testing.T) {
			sum := func(n int) int64 { return int64(4+9*min(n, 4)+3*max(n-4, 0)) * mib }
			l := &balance{sum: sum, merged: sum}
			c.l(l)
			m := record.Config{Guests: []int{1, 2, 4}, Further: []int{8, 16}, KSM: notebook.KSMPaper, Frames: true}
			tr, err := weighed(t, l, m, measure.Measured)
			if err != nil || tr.Failure != nil {
				t.Fatal(err, tr.Failure)
			}
			var numbers []string
			for _, w := range notebooktest.Seen[record.Seen](&tr).Weights {
				if w.KSM == nil {
					numbers = append(numbers, fmt.Sprint(w.Guests))
				}
			}
			if got := strings.Join(numbers, " "); got != c.weighed || fmt.Sprint(tr.Warnings) != c.warnings {
				t.Errorf("weighed at %s with %v; want %s with %s", got, tr.Warnings, c.weighed, c.warnings)
			}
			figures := map[notebook.Metric]float64{record.PSS: 10, record.Added: 9, record.Asymptote: 9, record.LimitKSM: 9, record.Own: 91}
			for m, want := range figures {
				if got := tr.Figures[m.Name]; math.Abs(got-want) > 1e-9 {
					t.Errorf("%s: %v, want %v", m.Name, got, want)
				}
			}
			for i, asked := range l.asked {
				if further := i > 5; further != l.sizes[i] || further && (asked != outside || l.cached[i]) {
					t.Errorf("the weighing %d asks %v, sizes alone %v, page cache %v", i, asked, l.sizes[i], l.cached[i])
				}
			}
		})
	}
}

// If the study asks for it, the figures say how the last guest uses the memory that no other process shares. Only the last weighing
// asks for the files.
func TestFiguresSayHowAGuestUsesItsMemory(t *testing.T) {
	l := known()
	m := record.Config{Guests: []int{1, 2}, KSM: notebook.KSMPaper, Frames: true}
	tr, err := weighed(t, l, m, measure.Measured)
	if err != nil || tr.Failure != nil {
		t.Fatal(err, tr.Failure)
	}
	if want := []depth{eachFrame, eachFrame, eachFrame, framesAndFiles}; !slices.Equal(l.asked, want) {
		t.Errorf("asked %v, want %v", l.asked, want)
	}
	if want := []bool{false, false, true, true}; !slices.Equal(l.cached, want) {
		t.Errorf("compared with the host's page cache: %v, want %v", l.cached, want)
	}
	for m, v := range map[notebook.Metric]float64{
		record.Own: 91, record.Emulator: 23, record.RAM: 68, record.GuestFile: 55, record.GuestAnon: 6,
		record.GuestCore: 5, record.GuestFree: 2, record.Left: 26, record.Idle: 3, record.IdleAlone: 14, record.Unmapped: 2, record.Best: 62,
		record.AnonAnon: 3, record.FileFile: 0, record.AnonFile: 0,
	} {
		if got, ok := tr.Figures[m.Name]; !ok || got != v {
			t.Errorf("%s: %v, want %v", m.Name, got, v)
		}
	}
	if got, want := len(tr.Figures), len(m.Figures())+1; got != want {
		t.Errorf("%d figures, and the study has %d", got, want)
	}
	unmerged := record.Config{Guests: []int{1, 2}, Frames: true}
	tr, err = weighed(t, known(), unmerged, measure.Measured)
	if err != nil || tr.Failure != nil {
		t.Fatal(err, tr.Failure)
	}
	if got, want := len(tr.Figures), len(unmerged.Figures())+1; got != want || tr.Figures[record.Idle.Name] != 3 {
		t.Errorf("without KSM: %d figures with %v idle, and the study has %d with 3", got, tr.Figures[record.Idle.Name], want)
	}
	for _, m := range []notebook.Metric{record.Own, record.RAM, record.Left, record.Best} {
		if v, is := tr.Figures[m.Name]; is {
			t.Errorf("without KSM %s is %v: the paper's increment is of merged pages", m.Name, v)
		}
	}
	l = known()
	if tr, err := weighed(t, l, record.Config{Guests: []int{1}}, measure.Measured); err != nil || !slices.Equal(l.asked, []depth{outside}) || tr.Figures[record.Own.Name] != 0 {
		t.Errorf("a study that does not ask: %v, %v, %v", l.asked, tr.Figures, err)
	}
}

func TestGuestsThatCannotBeWeighed(t *testing.T) {
	two := record.Config{Guests: []int{1, 3}}
	for name, c := range map[string]struct {
		l      func(*balance)
		m      record.Config
		want   string // in the trial's failure or its warnings
		points int
	}{
		"a guest that cannot be made": {func(l *balance) { l.refuses = 3 }, two, "of-guest-of cause=no-guest cause=the bridge is full guest=3 of=3", 1},
		"work that ends at once":      {func(l *balance) { l.early = true }, two, "of-guest-of cause=work-ended-at-once cause=exit said=no such file status=3 guest=1 of=3", 0},
		"work that ends meanwhile":    {func(l *balance) { l.ends = true }, two, "work-ended-when-weighed cause=exit said=out of patience status=4 guest=1", 1},
		"guests that never settle":    {func(l *balance) { l.growing = true }, two, "memory-grows", 2},
		"a host without KSM": {func(l *balance) { l.noKSM = errors.New("this kernel has none") },
			record.Config{Guests: []int{1}, KSM: notebook.KSMKernel}, "ksm cause=this kernel has none", 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := known()
			c.l(l)
			tr, err := weighed(t, l, c.m, measure.Measured)
			if said := fmt.Sprint(tr.Failure, tr.Warnings); err != nil || !strings.Contains(said, c.want) || len(notebooktest.Seen[record.Seen](&tr).Weights) != c.points {
				t.Errorf("%q, %d points, %v; want %q, %d", said, len(notebooktest.Seen[record.Seen](&tr).Weights), err, c.want, c.points)
			}
		})
	}
}

// The run ends if the host's settings cannot be restored, because they would distort the next measurement.
func TestKSMThatStays(t *testing.T) {
	l := known()
	l.stuck = errors.New("read-only file system")
	tr, err := weighed(t, l, record.Config{Guests: []int{1}, KSM: notebook.KSMPaper}, measure.Measured)
	if err == nil || !strings.Contains(err.Error(), "KSM's settings: read-only file system; `tare clean` tries again") || tr.Failure == nil {
		t.Errorf("%v, the trial's failure %v", err, tr.Failure)
	}
}

// An interrupted trial weighs nothing more and removes its guests.
func TestAnInterruptWhileGuestsAreWeighed(t *testing.T) {
	l := known()
	l.after = func() {}
	if tr, err := weighed(t, l, record.Config{Guests: []int{1, 2}}, measure.Measured); err != nil || tr.Failure != nil || len(tr.Figures) > 0 || len(l.asked) != 1 || l.Most != 1 {
		t.Errorf("%v, trial %+v, weighed %d times, at most %d guests; want one guest weighed once", err, tr, len(l.asked), l.Most)
	}
}

// A rehearsal weighs one guest, without KSM.
func TestARehearsalMeasuresOneGuest(t *testing.T) {
	l := known()
	tr, err := weighed(t, l, record.Config{Guests: []int{1, 2, 4}, KSM: notebook.KSMPaper, Frames: true}, measure.Rehearsal)
	if err != nil || tr.Failure != nil || tr.Value != 9 || !slices.Equal(l.asked, []depth{outside}) || l.Most != 1 || l.undone != 0 {
		t.Errorf("%v, %+v, asked %v, at most %d guests, KSM %d times", err, tr, l.asked, l.Most, l.undone)
	}
}

func TestMemoryOfAFile(t *testing.T) {
	for _, c := range []struct {
		in   file
		want string // in the error; otherwise the value
	}{
		{file{}, "{[1 2]  false [] true  map[] }"},
		{file{Guests: []int{1, 2, 8}, KSM: "paper"}, "{[1 2 8] paper false [] true  map[] }"},
		{file{Guests: []int{1, 2}, Further: []int{4, 1000}}, "{[1 2]  false [4 1000] true  map[] }"},
		{file{Further: []int{2}}, "further: [2]: must be numbers up to 1000, each greater than the one before, and the first greater than those of guests"},
		{file{Further: []int{3, 3}}, "further: "},
		{file{Further: []int{1001}}, "further: "},
		{file{Guests: []int{0}}, "guests: [0]: must be numbers from 1 to 1000, each greater than the one before"},
		{file{Guests: []int{2, 2}}, "guests: "},
		{file{Guests: []int{1001}}, "guests: "},
		{file{Guests: []int{1, 2}, Frames: true, HugePages: "off"}, "{[1 2]  true [] true off map[] }"},
		{file{Published: map[string][]float64{"PSS alone": {235}, "duplicates within": {28, 0.5, 0.5, 29}}}, "{[1 2]  false [] true  map[duplicates_within:[28 0.5 0.5 29] guest_pss_alone:[235]] }"},
		{file{Published: map[string][]float64{"guest_pss_alone": {235}}}, "{[1 2]  false [] true  map[guest_pss_alone:[235]] }"},
		{file{Published: map[string][]float64{"duplicates within": {29}}}, "published: duplicates within: [29]: must be a metric of this study"},
		{file{Published: map[string][]float64{"own pages": {91}}}, "published: own pages: [91]: must be a metric of this study"},
		{file{HugePages: "never"}, `huge_pages: "never": must be off`},
		{file{Roots: []string{"copied"}}, "{[1 2]  false [] true  map[] }"},
		{file{Roots: []string{"shared", "own"}}, `roots: "own": must be shared or copied`},
		{file{KSM: "on"}, `ksm: "on": must be paper or kernel`},
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
