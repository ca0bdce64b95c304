package study

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/lab/crowd"
	"tare/lab/measure"
	"tare/lab/ruler"
	"tare/notebook"
)

// fakeTracers report preset observations. They panic if the bounds of a trial are missing or wrong.
type fakeTracers struct {
	blind    error // why no tracer can be attached
	sticks   error // why it cannot be detached
	attached int   // now
	looks    int   // in all
	clocks   int   // those with another guest's clock
	seen     func(notebook.Treatment) *notebook.Trace
}

func (f *fakeTracers) attach(t notebook.Treatment, clock crowd.Guest) (crowd.Tracing, error) {
	if f.blind != nil {
		return nil, f.blind
	}
	if clock != nil {
		f.clocks++
	}
	f.attached++
	f.looks++
	return &fakeTracing{f: f, t: t}, nil
}

// told marks the bounds of a run. An order has bounds exactly if a tracer is attached.
func (f *fakeTracers) told(o ruler.Order) (end func()) {
	if attached := f.attached > 0; attached != (o.Bounds != nil) {
		panic(fmt.Sprintf("tracers attached: %v, bounds %v", attached, o.Bounds))
	}
	if o.Bounds == nil {
		return func() {}
	}
	o.Bounds.Begin()
	return o.Bounds.End
}

type fakeTracing struct {
	f     *fakeTracers
	t     notebook.Treatment
	spans []string
}

func (w *fakeTracing) Begin() { w.spans = append(w.spans, "begin") }
func (w *fakeTracing) End()   { w.spans = append(w.spans, "end") }
func (w *fakeTracing) Stop() (*notebook.Trace, error) {
	w.f.attached--
	switch {
	case w.f.sticks != nil:
		return nil, w.f.sticks
	case w.f.seen != nil:
		return w.f.seen(w.t), nil
	}
	return &notebook.Trace{Looked: w.spans, Wall: map[string]float64{notebook.WallUser: 1}}, nil
}

// inside makes the ruler of a VM return the observations of its tracers.
func inside(seen func() *notebook.Trace) func(notebook.Treatment, ruler.Order, *ruler.Result) error {
	return func(_ notebook.Treatment, o ruler.Order, r *ruler.Result) error {
		if len(o.Tracers) > 0 {
			r.Trace = seen()
		}
		return nil
	}
}

func explained(d notebook.Design, treatments ...notebook.Treatment) *Plan {
	p := fakePlan(d, treatments...)
	p.Study.Explain = []string{notebook.TracerScheduler, notebook.TracerIO}
	return p
}

func TestTracedTrialsAreInRandomOrder(t *testing.T) {
	seen := map[string]int{}
	for round := range 6000 {
		o := Interleave(1, round, "t", 2)
		if next := Interleave(1, round^1, "t", 2); slices.ContainsFunc([]int{0, 1, 2, 3}, func(i int) bool { return o[i] == next[i] }) {
			t.Errorf("rounds %d and %d: %v and %v; the second must be the first with traced and untraced exchanged", round, round^1, o, next)
		}
		if !slices.Equal(o, Interleave(1, round, "t", 2)) {
			t.Fatal("the same seed gives another order")
		}
		seen[fmt.Sprint(o)]++
	}
	if len(seen) != 6 {
		t.Fatalf("orders: %v", seen)
	}
	for o, n := range seen { // 1000 expected; 5 standard deviations are 144
		if n < 856 || n > 1144 {
			t.Errorf("order %s occurred %d times in 6000 rounds", o, n)
		}
	}
	same := 0
	for round := range 100 {
		if slices.Equal(Interleave(1, round, "t", 8), Interleave(1, round, "u", 8)) || slices.Equal(Interleave(1, round, "t", 8), Interleave(2, round, "t", 8)) {
			same++
		}
	}
	if same > 5 { // 12870 orders
		t.Errorf("another treatment or another seed has the same order in %d of 100 cases", same)
	}
}

func TestTracedTrialsFeedNoRatio(t *testing.T) {
	l := &fakeLab{}
	l.elapsed = func(notebook.Treatment) time.Duration {
		if l.tracers.attached > 0 {
			return time.Duration(l.tracers.looks) * time.Minute // so the traced trials would never become precise
		}
		return time.Second
	}
	book := &fakeBook{}
	d := notebook.Design{Floor: 4, Cap: 30, Precision: 0.02, Trials: 2, Warmups: 1}
	r := &Run{Plan: explained(d, bmT, aaT, cnT), Lab: l, Book: book}
	if reason, err := r.Do(t.Context()); err != nil || !reason.Is("precise-enough") {
		t.Fatalf("%q, %v", reason, err)
	}
	count := map[string]int{}
	orders := map[string]string{}
	for _, tr := range book.trials {
		kind := fmt.Sprint(tr.Warmup, tr.Traced)
		count[kind]++
		if !tr.Warmup {
			orders[tr.Treatment+fmt.Sprint(tr.Round)] += fmt.Sprint(tr.Traced, tr.Index, " ")
		}
		if tr.Traced != (tr.Trace != nil) || tr.Failure != nil {
			t.Errorf("traced %v, tracers %+v, failure %q", tr.Traced, tr.Trace, tr.Failure)
		}
		if tr.Traced && !slices.Equal(tr.Trace.Looked, []string{"begin", "end"}) {
			t.Errorf("the watcher got %q", tr.Trace.Looked)
		}
		if tr.Traced && (tr.Trace.Wall[notebook.WallUser] != 0.75 || tr.Trace.Wall[notebook.WallSystem] != 0.25) {
			t.Errorf("wall %v", tr.Trace.Wall)
		}
	}
	want := map[string]int{"true false": 12, "false false": 24, "false true": 24}
	if !maps.Equal(count, want) || l.tracers.attached != 0 || l.tracers.looks != 24 {
		t.Errorf("warm-up and traced: %v, want %v; %d of %d tracers still attached", count, want, l.tracers.attached, l.tracers.looks)
	}
	kinds := map[string]bool{}
	for _, o := range orders {
		kinds[o] = true
	}
	if len(kinds) < 3 {
		t.Errorf("all guests have the same order: %v", kinds)
	}
	again := &fakeBook{}
	if _, err := (&Run{Plan: explained(d, bmT, aaT, cnT), Lab: &fakeLab{elapsed: steady}, Book: again}).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, tr := range again.trials {
		if o := book.trials[i]; o.Treatment != tr.Treatment || o.Traced != tr.Traced || o.Index != tr.Index {
			t.Fatalf("trial %d of another run with the same seed is %+v, not %+v", i, tr, o)
		}
	}
}

func TestStoppedRunContinuesItsTracedTrials(t *testing.T) {
	for stop := 1; stop <= 80; stop++ { // all runs of the study
		book := &fakeBook{}
		ctx, cancel := context.WithCancel(t.Context())
		runs := 0
		l := &fakeLab{elapsed: steady, result: after(func() {
			if runs++; runs == stop {
				cancel()
			}
		})}
		plan := explained(plain, bmT, aaT, cnT, vmT)
		if _, err := (&Run{Plan: plan, Lab: l, Book: book}).Do(ctx); err != nil || l.tracers.attached != 0 {
			t.Fatalf("stop %d: %v, %d tracers still attached", stop, err, l.tracers.attached)
		}
		second := &Run{Plan: plan, Lab: &fakeLab{elapsed: steady}, Book: book}
		for _, tr := range slices.Clone(book.trials) {
			second.Take(tr)
		}
		if reason, err := second.Do(t.Context()); err != nil || !reason.Is("cap-on-rounds") {
			t.Fatalf("stop %d: continued: %q, %v", stop, reason, err)
		}
		seen, all := map[string]bool{}, 0
		for _, tr := range book.trials {
			if !tr.Warmup {
				seen[fmt.Sprint(tr.Treatment, tr.Round, tr.Traced, tr.Index)] = true
				all++
			}
		}
		if len(seen) != 64 || all != 64 {
			t.Fatalf("stop %d: %d different trials, %d in all; want 64 and 64", stop, len(seen), all)
		}
	}
}

func TestTracersThatCannotAttachAreMissing(t *testing.T) {
	book := &fakeBook{}
	l := &fakeLab{elapsed: steady, tracers: fakeTracers{blind: errors.New("bpf(2): operation not permitted")}}
	if _, err := (&Run{Plan: explained(plain, bmT), Lab: l, Book: book}).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, tr := range book.trials {
		switch {
		case tr.Failure != nil:
			t.Errorf("failed: %s", tr.Failure)
		case tr.Traced && (len(tr.Trace.Missing) != 2 || tr.Trace.Missing[notebook.TracerIO].Text() != l.tracers.blind.Error() || len(tr.Trace.Looked) != 0):
			t.Errorf("tracers %+v", tr.Trace)
		}
	}
}

// A tracer that cannot be detached would slow all later trials, so the run ends.
func TestTracersThatStayEndTheRun(t *testing.T) {
	book := &fakeBook{}
	l := &fakeLab{elapsed: steady, tracers: fakeTracers{sticks: errors.New("device busy")}}
	_, err := (&Run{Plan: explained(plain, bmT, cnT), Lab: l, Book: book}).Do(t.Context())
	if !errors.Is(err, l.tracers.sticks) || l.Live != 0 || l.tracers.looks != 1 {
		t.Fatalf("%v; %d guests left, %d looks", err, l.Live, l.tracers.looks)
	}
	if last := book.trials[len(book.trials)-1]; !last.Traced || last.Failure == nil || !strings.HasSuffix(err.Error(), last.Failure.Text()) {
		t.Errorf("the last trial is %+v", last)
	}
}

func TestFailedTracedTrialsGiveNothingUp(t *testing.T) {
	book := &fakeBook{}
	l := &fakeLab{elapsed: steady}
	fails := func(explained bool) func(notebook.Treatment, ruler.Order, *ruler.Result) error {
		return func(_ notebook.Treatment, _ ruler.Order, r *ruler.Result) error {
			if (l.tracers.attached > 0) == explained {
				r.Exit = 1
			}
			return nil
		}
	}
	l.result = fails(true)
	r := &Run{Plan: explained(plain, bmT), Lab: l, Book: book}
	if reason, err := r.Do(t.Context()); err != nil || !reason.Is("cap-on-rounds") || givenUp(r) != 0 || r.Failed() != 8 {
		t.Fatalf("%q, %v, notes %q, %d failed", reason, err, r.Notes(), r.Failed())
	}
	for _, tr := range book.trials {
		if (tr.Failure != nil) != tr.Traced || tr.Traced && tr.Trace == nil {
			t.Errorf("%+v", tr)
		}
	}
	// Traced trials that succeed do not prevent giving up.
	l.result = fails(false)
	r = &Run{Plan: explained(plain, bmT), Lab: l, Book: &fakeBook{}}
	if _, err := r.Do(t.Context()); err != nil || givenUp(r) != 1 || l.tracers.looks != 8+4 {
		t.Errorf("%v, notes %q, %d looks; want the treatment given up after two rounds", err, r.Notes(), l.tracers.looks-8)
	}
}

// A continued round whose measured trials all failed must not count twice.
func TestRoundIsJudgedOnce(t *testing.T) {
	plan := explained(plain, bmT)
	id := plan.Study.Treatments[0].ID
	l := &fakeLab{elapsed: steady}
	r := &Run{Plan: plan, Lab: l, Book: &fakeBook{}}
	for i := range 2 {
		r.Take(notebook.Trial{Treatment: id, Index: i, Failure: notebook.TextMessage("exit status 1")})
	}
	if _, err := r.Do(t.Context()); err != nil || givenUp(r) != 0 || l.tracers.looks != 8 {
		t.Errorf("%v, notes %q, %d looks; want no treatment given up, and 8", err, r.Notes(), l.tracers.looks)
	}
}

func TestTimeBreakdownOfAVMHasBothSides(t *testing.T) {
	vmcnT := vmT
	vmcnT.Platform = notebook.VMCN
	book := &fakeBook{}
	l := &fakeLab{elapsed: steady, result: inside(func() *notebook.Trace {
		return &notebook.Trace{Wall: map[string]float64{notebook.WallUser: 0.8, notebook.WallBlock: 0.2}}
	})}
	l.tracers.seen = func(notebook.Treatment) *notebook.Trace {
		return &notebook.Trace{Wall: map[string]float64{notebook.WallUser: 0.6, notebook.WallCore: 0.1, notebook.WallThrottled: 0.1, notebook.WallOther: 0.2}}
	}
	if _, err := (&Run{Plan: explained(plain, vmT, vmcnT), Lab: l, Book: book}).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, tr := range book.trials {
		if !tr.Traced {
			continue
		}
		p := tr.Trace
		want := map[string]float64{notebook.WallUser: 0.45, notebook.WallSystem: 0.15, notebook.WallBlock: 0.2, notebook.WallHypervisor: 0.2}
		missing := ""
		if strings.Contains(tr.Treatment, "vmcn") {
			want = map[string]float64{notebook.WallUser: 0.45, notebook.WallSystem: 0.15, notebook.WallCore: 0.1, notebook.WallThrottled: 0.1, notebook.WallOther: 0.2}
			missing = "the ruler is in the container in the VM, which may not load tracers"
		}
		if !near(p.Wall, want) || p.Missing[measure.MissingInside].String() != missing || (missing == "") != (p.Inside != nil) {
			t.Errorf("%s: %+v, inside %+v; want the wall %v", tr.Treatment, p, p.Inside, want)
		}
	}
}

func TestVMThatCannotTraceItselfSaysWhy(t *testing.T) {
	for _, c := range []struct {
		inside *notebook.Trace
		want   string
	}{
		{nil, "vm-ruler-silent"},
		{&notebook.Trace{Missing: map[string]*notebook.Message{notebook.TracerScheduler: notebook.TextMessage("no BTF")}}, "no BTF"},
		{&notebook.Trace{Wall: map[string]float64{notebook.WallUser: 1}}, ""},
	} {
		book := &fakeBook{}
		l := &fakeLab{elapsed: steady, result: inside(func() *notebook.Trace { return c.inside })}
		if _, err := (&Run{Plan: explained(notebook.Design{Floor: 1, Cap: 1, Trials: 1}, vmT), Lab: l, Book: book}).Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, tr := range book.trials {
			if tr.Traced && (tr.Trace.Missing[measure.MissingInside].String() != c.want || !near(tr.Trace.Wall, map[string]float64{notebook.WallUser: 0.75, notebook.WallSystem: 0.25}) && c.want != "") {
				t.Errorf("missing %q, want %q; wall %v", tr.Trace.Missing, c.want, tr.Trace.Wall)
			}
		}
	}
}

func near(a, b map[string]float64) bool {
	for k := range maps.Keys(b) {
		if math.Abs(a[k]-b[k]) > 1e-9 {
			return false
		}
	}
	return len(a) == len(b)
}

func TestTracedService(t *testing.T) {
	l := &serviceLab{fakeLab: fakeLab{elapsed: steady}, answer: `{"mean":0.25,"p99":0.5}`}
	l.tracers.seen = func(notebook.Treatment) *notebook.Trace {
		return &notebook.Trace{Wall: map[string]float64{notebook.WallUser: 1}, Figures: map[string]float64{"user_s": 0.1, "system_s": 0.3}}
	}
	plan := servicePlan("")
	plan.Study.Explain = []string{notebook.TracerScheduler}
	vm := vmT
	vm.Workload, vm.Instance, vm.ID = "w", notebook.Instance{Name: "1/1GB"}, "vm"
	plan.Study.Treatments = append(plan.Study.Treatments, vm)
	book := &fakeBook{}
	if _, err := (&Run{Plan: plan, Lab: l, Book: book}).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, tr := range book.trials {
		if !tr.Traced {
			continue
		}
		n++
		if tr.Failure != nil || !near(tr.Trace.Wall, map[string]float64{notebook.WallUser: 0.25, notebook.WallSystem: 0.75}) {
			t.Errorf("%q, wall %v", tr.Failure, tr.Trace.Wall)
		}
		if inside := tr.Trace.Missing[measure.MissingInside]; (inside != nil) != (tr.Treatment == "vm") {
			t.Errorf("%s: inside is missing: %q", tr.Treatment, inside)
		}
	}
	if n != 12 || l.tracers.clocks != 12 || l.tracers.attached != 0 {
		t.Errorf("%d traced trials, %d with the load's clock, %d tracers still attached", n, l.tracers.clocks, l.tracers.attached)
	}
}

func TestResumeRefusesOtherTracers(t *testing.T) {
	now, begun := fakePlan(plain, bmT), fakePlan(plain, bmT)
	now.Study.Hash, begun.Study.Hash = "1", "2"
	begun.Study.Explain = []string{"io"}
	for want, err := range map[string]error{
		"it was begun with --explain=io": now.Resume(begun.Study, false),
		"it was begun without --explain": begun.Resume(fakePlan(plain, bmT).Study, false),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}
