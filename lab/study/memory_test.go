package study

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

	"tare/lab/ruler"
	"tare/lab/workload"
	"tare/notebook"
	memorykind "tare/notebook/kinds/memory"
)

// scales is a laboratory in which n guests weigh a known sum.
type scales struct {
	fakeLab
	sum      func(n int) int64 // PSS of so many, bytes
	merged   func(n int) int64 // the same with KSM
	noKSM    error
	growing  bool // guests that never settle
	refuses  int  // the guest, counted from 1, that cannot be made; 0: none
	ends     bool // work that ends by itself
	early    bool // before it is weighed
	after    func()
	merging  bool
	undone   int
	stuck    error
	working  int
	resident int64
	asked    []Inside
}

func (l *scales) Provision(_ context.Context, t notebook.Treatment, _ string, _ *workload.Ready) (Guest, error) {
	if l.live+1 == l.refuses {
		return nil, errors.New("the bridge is full")
	}
	l.live++
	l.most = max(l.most, l.live)
	return &load{fakeGuest{&l.fakeLab, t}, l}, nil
}

func (l *scales) Weigh(_ context.Context, guests []Guest, asked Inside) (w memorykind.Weight, err error) {
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
	w.Last = &notebook.MemoryGuest{Duplicates: &notebook.MemoryDuplicates{Within: notebook.MemoryAlike{AnonAnon: 3 << 20}}}
	l.asked = append(l.asked, asked)
	if asked != Outside { // Figure 6.4
		part := func(name string, own, alike, idle int64) notebook.MemoryFrames {
			return notebook.MemoryFrames{Name: name, Own: own << 20, Alike: alike << 20, Idle: idle << 20}
		}
		w.Last.Own = 91 << 20
		w.Last.RAM = &notebook.MemoryRAM{Emulator: part("", 23, 4, 0), Kinds: []notebook.MemoryFrames{
			part(notebook.FramesFile, 50, 20, 2), part(notebook.FramesShared, 5, 0, 0), part(notebook.FramesAnonymous, 6, 2, 1),
			part(notebook.FramesSlab, 3, 0, 0), part(notebook.FramesReserved, 2, 0, 0), part(notebook.FramesFree, 2, 0, 0)}}
	}
	if l.after != nil {
		l.after()
	}
	return w, nil
}

func (l *scales) Merge(_ context.Context, setting string) (Merging, error) {
	if l.noKSM != nil {
		return nil, l.noKSM
	}
	l.merging = true
	return l, nil
}

func (l *scales) Settle(context.Context) (*notebook.KSM, error) { return &notebook.KSM{Scans: 2}, nil }

func (l *scales) End(context.Context) error {
	l.merging = false
	l.undone++
	return l.stuck
}

type load struct {
	fakeGuest
	l *scales
}

func (g *load) Ruler() Ruler { return g }

func (g *load) Resident() (int64, error) {
	if g.l.growing {
		g.l.resident += 1 << 20
	}
	return 10<<20 + g.l.resident, nil
}

func (g *load) Run(ctx context.Context, o ruler.Order) (ruler.Result, time.Duration, error) {
	if g.l.early {
		return ruler.Result{Exit: 3, Stderr: []byte("no such file\n")}, 0, nil
	}
	g.l.working++
	defer func() { g.l.working-- }()
	o.Bounds.Begin()
	if !g.l.ends {
		<-ctx.Done()
		return ruler.Result{}, 0, ctx.Err()
	}
	return ruler.Result{Exit: 4, Stderr: []byte("out of patience\n")}, 0, nil
}

// weighed runs a study of one treatment on the scales, one round.
func weighed(t *testing.T, l *scales, m memorykind.Config) (tr notebook.Trial, reason string, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		book := &fakeBook{}
		p := fakePlan(notebook.Design{Floor: 1, Cap: 1, Trials: 1}, cnT)
		p.Study.Kind, p.Study.Config = memorykind.Name, &m
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if l.after != nil {
			l.after = cancel
		}
		reason, err = (&Run{Plan: p, Lab: l, Book: book}).Do(ctx)
		if len(book.trials) > 0 {
			tr = book.trials[0]
		}
		synctest.Wait()
		if l.live != 0 || l.working != 0 || l.merging {
			t.Errorf("%d guests are left, %d work, merging: %v", l.live, l.working, l.merging)
		}
	})
	return tr, reason, err
}

const mib = notebook.MiB

// known weighs 9 MiB alone, and every further guest adds 5; merged half of that.
func known() *scales {
	return &scales{
		sum:    func(n int) int64 { return int64(4+5*n) * mib },
		merged: func(n int) int64 { return int64(4+5*n) * mib / 2 },
	}
}

func TestGuestsOfAKnownWeight(t *testing.T) {
	l := known()
	tr, _, err := weighed(t, l, memorykind.Config{Guests: []int{1, 2, 4}, KSM: memorykind.KSMPaper})
	if err != nil || tr.Failure != "" {
		t.Fatal(err, tr.Failure)
	}
	want := map[notebook.Metric]float64{
		memorykind.PSS: 6, memorykind.RSS: 12, memorykind.USS: 3, memorykind.Tables: 1, memorykind.Kernel: 2, memorykind.Copy: 0.5,
		memorykind.Alone: 9, memorykind.AloneRSS: 18, memorykind.Added: 5, memorykind.Asymptote: 5,
		memorykind.Merged: 3, memorykind.AloneKSM: 4.5, memorykind.AddedKSM: 2.5, memorykind.LimitKSM: 2.5,
		memorykind.Anonymous: 0, memorykind.File: 0, memorykind.Within: 3, memorykind.WithHost: 0, memorykind.WithGuests: 0,
	}
	for m, v := range want {
		if got, ok := tr.Figures[m.Name]; !ok || math.Abs(got-v) > 1e-9 {
			t.Errorf("%s: %v, want %v", m.Name, got, v)
		}
	}
	if len(tr.Figures) != len(want) || tr.Value != 6 || l.most != 4 || l.undone != 3 {
		t.Errorf("%d figures, value %v, at most %d guests, KSM undone %d times; want %d, 6, 4, 3", len(tr.Figures), tr.Value, l.most, l.undone, len(want))
	}
	var points []string
	for _, w := range memorykind.SeenBy(&tr).Weights {
		points = append(points, fmt.Sprint(w.Guests, " ", w.KSM != nil))
	}
	if want := []string{"1 false", "1 true", "2 false", "2 true", "4 false", "4 true"}; !slices.Equal(points, want) {
		t.Errorf("weighed at %v, want %v", points, want)
	}
	// What the study says that it has is what the trial has.
	for _, f := range (memorykind.Config{Guests: []int{1, 2, 4}, KSM: memorykind.KSMPaper}).Figures() {
		if _, ok := want[f]; !ok {
			t.Errorf("%s is among the study's metrics, and no trial has it", f.Name)
		}
	}
}

// What the last guest alone has, by what it is to it, is in the figures where the study asks for it; and of which files is asked once, at the end.
func TestWhatAGuestsMemoryIsToItIsInTheFigures(t *testing.T) {
	l := known()
	m := memorykind.Config{Guests: []int{1, 2}, KSM: memorykind.KSMPaper, Frames: true}
	tr, _, err := weighed(t, l, m)
	if err != nil || tr.Failure != "" {
		t.Fatal(err, tr.Failure)
	}
	if want := []Inside{Frames, Frames, Frames, FramesAndFiles}; !slices.Equal(l.asked, want) {
		t.Errorf("asked %v, want %v", l.asked, want)
	}
	for m, v := range map[notebook.Metric]float64{
		memorykind.Own: 91, memorykind.Emulator: 23, memorykind.RAM: 68, memorykind.GuestFile: 55, memorykind.GuestAnon: 6,
		memorykind.GuestCore: 5, memorykind.GuestFree: 2, memorykind.Left: 26, memorykind.Idle: 3, memorykind.IdleAlone: 3, memorykind.Best: 62,
		memorykind.AnonAnon: 3, memorykind.FileFile: 0, memorykind.AnonFile: 0,
	} {
		if got, ok := tr.Figures[m.Name]; !ok || got != v {
			t.Errorf("%s: %v, want %v", m.Name, got, v)
		}
	}
	if got, want := len(tr.Figures), len(m.Figures())+1; got != want {
		t.Errorf("%d figures, and the study has %d", got, want)
	}
	l = known()
	if tr, _, err := weighed(t, l, memorykind.Config{Guests: []int{1}}); err != nil || !slices.Equal(l.asked, []Inside{Outside}) || tr.Figures[memorykind.Own.Name] != 0 {
		t.Errorf("a study that does not ask: %v, %v, %v", l.asked, tr.Figures, err)
	}
}

func TestGuestsThatCannotBeWeighed(t *testing.T) {
	two := memorykind.Config{Guests: []int{1, 3}}
	for name, c := range map[string]struct {
		l      func(*scales)
		m      memorykind.Config
		want   string // in the trial's failure, or in its warnings
		points int
	}{
		"a guest that cannot be made": {func(l *scales) { l.refuses = 3 }, two, "guest 3 of 3: no guest: the bridge is full", 1},
		"work that ends at once":      {func(l *scales) { l.early = true }, two, "guest 1 of 3: its work ended at once: exit status 3", 0},
		"work that ends meanwhile":    {func(l *scales) { l.ends = true }, two, "the work in guest 1 ended while it was weighed: exit status 4", 1},
		"guests that never settle":    {func(l *scales) { l.growing = true }, two, "1 guests still took", 2},
		"a host without KSM": {func(l *scales) { l.noKSM = errors.New("this kernel has none") },
			memorykind.Config{Guests: []int{1}, KSM: memorykind.KSMKernel}, "KSM: this kernel has none", 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := known()
			c.l(l)
			tr, _, err := weighed(t, l, c.m)
			if said := tr.Failure + strings.Join(tr.Warnings, " "); err != nil || !strings.Contains(said, c.want) || len(memorykind.SeenBy(&tr).Weights) != c.points {
				t.Errorf("%q, %d points, %v; want %q, %d", said, len(memorykind.SeenBy(&tr).Weights), err, c.want, c.points)
			}
		})
	}
}

// Settings of the host that cannot be put back end the run: what is measured next would be of another host.
func TestKSMThatStays(t *testing.T) {
	l := known()
	l.stuck = errors.New("read-only file system")
	if _, _, err := weighed(t, l, memorykind.Config{Guests: []int{1}, KSM: memorykind.KSMPaper}); err == nil || !strings.Contains(err.Error(), "KSM's settings: read-only file system; `tare clean` tries again") {
		t.Errorf("%v", err)
	}
}

func TestAnInterruptWhileGuestsAreWeighed(t *testing.T) {
	l := known()
	l.after = func() {}
	if tr, reason, err := weighed(t, l, memorykind.Config{Guests: []int{1, 2}}); err != nil || reason != Interrupted || tr.Treatment != "" {
		t.Errorf("%q, %v, trial %+v", reason, err, tr)
	}
}

func TestMemoryOfAFile(t *testing.T) {
	for _, c := range []struct {
		in   Memory
		want string // in the error; else the value
	}{
		{Memory{}, "{[1 2]  false  map[] }"},
		{Memory{Guests: []int{1, 2, 8}, KSM: "paper"}, "{[1 2 8] paper false  map[] }"},
		{Memory{Guests: []int{0}}, "guests: [0]: numbers from 1 to 1000, each greater than the one before, were expected"},
		{Memory{Guests: []int{2, 2}}, "guests: "},
		{Memory{Guests: []int{1001}}, "guests: "},
		{Memory{Guests: []int{1, 2}, Frames: true, HugePages: "off"}, "{[1 2]  true off map[] }"},
		{Memory{Published: map[string][]float64{"PSS alone": {235}, "duplicates within": {28, 0.5, 0.5, 29}}}, "{[1 2]  false  map[PSS alone:[235] duplicates within:[28 0.5 0.5 29]] }"},
		{Memory{Published: map[string][]float64{"duplicates within": {29}}}, "published: duplicates within: [29]: a metric of this study"},
		{Memory{Published: map[string][]float64{"own pages": {91}}}, "published: own pages: [91]: a metric of this study"},
		{Memory{HugePages: "never"}, `huge_pages: "never": off was expected`},
		{Memory{Roots: []string{"copied"}}, "{[1 2]  false  map[] }"},
		{Memory{Roots: []string{"shared", "own"}}, `roots: "own": shared or copied was expected`},
		{Memory{KSM: "on"}, `ksm: "on": paper or kernel was expected`},
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
