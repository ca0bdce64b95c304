package study

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tare/lab/image"
	"tare/lab/ruler"
	"tare/lab/studyfile"
	"tare/lab/workload"
	"tare/notebook"
	"tare/stats"
	"tare/workloads"
)

// fakeBook keeps lines in memory. A test can make it fail.
type fakeBook struct {
	guests []notebook.Guest
	trials []notebook.Trial
	err    error
}

func (b *fakeBook) Guest(g notebook.Guest) error { b.guests = append(b.guests, g); return b.err }
func (b *fakeBook) Trial(t notebook.Trial) error {
	if b.err == nil {
		b.trials = append(b.trials, t)
	}
	return b.err
}

func (b *fakeBook) measured() (n int) {
	for _, t := range b.trials {
		if !t.Warmup {
			n++
		}
	}
	return n
}

// rounds is how many rounds each treatment was in.
func (b *fakeBook) rounds() map[string]int {
	n := map[string]int{}
	for _, g := range b.guests {
		n[g.Treatment]++
	}
	return n
}

func fakePlan(d notebook.Design, treatments ...notebook.Treatment) *Plan {
	p := &Plan{ready: map[string]*workload.Ready{}, engines: kinds, room: 4 << 30}
	for _, t := range treatments {
		t.Workload, t.Instance = "w", notebook.Instance{Name: "1/1GB", Cores: 1, Memory: 1 << 30}
		t.ID = studyfile.Identify(t)
		p.Study.Treatments = append(p.Study.Treatments, t)
		p.ready["w"] = &workload.Ready{Workload: &workload.Workload{Name: "w", Command: []string{"true"}}, Image: &image.Image{}}
		p.ready[t.Label()] = p.ready["w"]
	}
	d.TimeoutS = 1
	p.Study.Design, p.Study.Seed = d, 7
	p.interleaved()
	return p
}

var (
	bmT   = notebook.Treatment{Platform: notebook.BM}
	aaT   = notebook.Treatment{Platform: notebook.BM, AA: true}
	cnT   = notebook.Treatment{Platform: notebook.CN, Engine: "crun", Provisioning: notebook.Vanilla}
	vmT   = notebook.Treatment{Platform: notebook.VM, Engine: "qemu", Accelerator: notebook.TCG, Provisioning: notebook.Pinned}
	plain = notebook.Design{Floor: 4, Cap: 4, Trials: 2, Warmups: 1}
)

func steady(notebook.Treatment) time.Duration { return time.Second }

// after makes a lab call f after each run.
func after(f func()) func(notebook.Treatment, ruler.Order, *ruler.Result) error {
	return func(notebook.Treatment, ruler.Order, *ruler.Result) error {
		f()
		return nil
	}
}

func TestRoundsAreInterleavedInRandomOrder(t *testing.T) {
	l := &fakeLab{elapsed: steady}
	book := &fakeBook{}
	r := &Run{Plan: fakePlan(plain, bmT, aaT, cnT, vmT), Lab: l, Book: book}
	reason, err := r.Do(t.Context())
	if err != nil || !reason.Is("cap-on-rounds") {
		t.Fatalf("%q, %v", reason, err)
	}
	if len(l.order) != 16 || book.measured() != 32 || len(book.trials) != 48 || l.Most != 3 || l.Live != 0 {
		t.Fatalf("%d guests, %d trials of %d, %d at once, %d left; want 16, 32 of 48, 3, 0", len(l.order), book.measured(), len(book.trials), l.Most, l.Live)
	}
	same := true
	for round := range 4 {
		got := slices.Clone(l.order[4*round : 4*round+4])
		same = same && slices.Equal(got, l.order[:4])
		slices.Sort(got)
		if len(slices.Compact(got)) != 4 {
			t.Errorf("round %d does not have each treatment once: %v", round, l.order[4*round:4*round+4])
		}
	}
	if same {
		t.Error("all rounds have the same order")
	}
	again := &fakeLab{elapsed: steady}
	if _, err := (&Run{Plan: r.Plan, Lab: again, Book: &fakeBook{}}).Do(t.Context()); err != nil || !slices.Equal(again.order, l.order) {
		t.Errorf("the same seed gave another order (%v)", err)
	}
}

// Emulated VMs are not ranked. If the study gives them fewer rounds than the others, one trial in each is enough.
func TestEmulatedGuestsDoOneTrial(t *testing.T) {
	for _, c := range []struct{ emulated, want int }{{1, 1}, {3, 3}, {4, 8}, {0, 8}} {
		d := plain
		d.Emulated = c.emulated
		book := &fakeBook{}
		if _, err := (&Run{Plan: fakePlan(d, bmT, vmT), Lab: &fakeLab{elapsed: steady}, Book: book}).Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := book.measured() - 8; n != c.want {
			t.Errorf("emulated: %d of %d rounds: %d trials, want %d", c.emulated, d.Floor, n, c.want)
		}
	}
}

func TestEveryOrderOfARoundOccurs(t *testing.T) {
	seen := map[string]int{}
	for round := range 6000 {
		seen[fmt.Sprint(Order(1, round, 3))]++
	}
	if len(seen) != 6 {
		t.Fatalf("orders: %v", seen)
	}
	for o, n := range seen { // 1000 expected; 5 standard deviations are 144
		if n < 856 || n > 1144 {
			t.Errorf("order %s occurred %d times in 6000 rounds", o, n)
		}
	}
}

func TestStoppedRunContinuesWithoutLossOrRepetition(t *testing.T) {
	// Stop after every possible number of runs, then continue: each planned trial is recorded once.
	for stop := 1; stop < 48; stop++ {
		book := &fakeBook{}
		ctx, cancel := context.WithCancel(t.Context())
		runs := 0
		l := &fakeLab{elapsed: steady, result: after(func() {
			if runs++; runs == stop {
				cancel()
			}
		})}
		plan := fakePlan(plain, bmT, aaT, cnT, vmT)
		if reason, err := (&Run{Plan: plan, Lab: l, Book: book}).Do(ctx); err != nil || !reason.Is("interrupted") {
			t.Fatalf("stop %d: %q, %v", stop, reason, err)
		}
		if l.Live != 0 {
			t.Fatalf("stop %d: %d guests left", stop, l.Live)
		}
		second := &Run{Plan: plan, Lab: &fakeLab{elapsed: steady}, Book: book}
		for _, tr := range slices.Clone(book.trials) {
			second.Take(tr)
		}
		if reason, err := second.Do(t.Context()); err != nil || !reason.Is("cap-on-rounds") {
			t.Fatalf("stop %d: continued: %q, %v", stop, reason, err)
		}
		seen := map[string]int{}
		for _, tr := range book.trials {
			if !tr.Warmup {
				seen[fmt.Sprint(tr.Treatment, tr.Round, tr.Index)]++
			}
		}
		if len(seen) != 32 || book.measured() != 32 {
			t.Fatalf("stop %d: %d different trials, %d in all; want 32 and 32", stop, len(seen), book.measured())
		}
	}
}

func TestFailedGuestsAreTrialsWithACause(t *testing.T) {
	plan := fakePlan(plain, bmT, cnT, vmT)
	cn, vm := plan.Study.Treatments[1].ID, plan.Study.Treatments[2].ID
	book := &fakeBook{}
	l := &fakeLab{elapsed: steady, broken: map[string]error{cn: errors.New("never said hello")}}
	l.result = func(t notebook.Treatment, _ ruler.Order, _ *ruler.Result) error {
		if t.ID == vm {
			return ruler.ErrGone
		}
		return nil
	}
	r := &Run{Plan: plan, Lab: l, Book: book}
	if _, err := r.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, tr := range book.trials {
		if tr.Warmup {
			continue
		}
		count[tr.Treatment]++
		cause := map[string]*notebook.Message{cn: notebook.Say("no-guest", "cause", "never said hello"), vm: notebook.ErrorMessage(ruler.ErrGone)}[tr.Treatment]
		if tr.Index > 0 && cause != nil { // a guest's first trial says why it failed
			cause = notebook.Say("guest-failed-before")
		}
		if !tr.Failure.Equal(cause) {
			t.Errorf("%s, trial %d: failure %q, want %q", tr.Treatment, tr.Index, tr.Failure, cause)
		}
	}
	// Each is given up after two rounds of two trials. The healthy treatment continues.
	if count[cn] != 4 || count[vm] != 4 || count[plan.Study.Treatments[0].ID] != 8 || r.Failed() != 8 || givenUp(r) != 2 {
		t.Errorf("trials %v, failed %d, notes %q", count, r.Failed(), r.Notes())
	}
	if l.Live != 0 {
		t.Errorf("%d guests left", l.Live)
	}
}

// givenUp is how many treatments the run notes as given up. It ignores other notes, which depend on the run times of the fakes.
func givenUp(r *Run) (n int) {
	for _, note := range r.Notes() {
		if note.Is("given-up") {
			n++
		}
	}
	return n
}

// The record of a trial has what its run found of earlier runs. The record of a guest says whether its engine ignores flushes.
func TestFindingsAndIgnoredFlushesAreRecorded(t *testing.T) {
	gvisorT := cnT
	gvisorT.Engine = "gvisor"
	plan := fakePlan(plain, bmT, cnT, gvisorT)
	found := &notebook.Found{Files: []string{"/tmp/stamp"}, N: 1}
	book := &fakeBook{}
	l := &fakeLab{elapsed: steady, result: func(_ notebook.Treatment, o ruler.Order, r *ruler.Result) error {
		if o.Remains {
			r.Found = found
		}
		return nil
	}}
	if _, err := (&Run{Plan: plan, Lab: l, Book: book}).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, tr := range book.trials {
		if tr.Found != found {
			t.Errorf("%s: found %+v", tr.Treatment, tr.Found)
		}
	}
	for _, g := range book.guests {
		if want := g.Treatment == plan.Study.Treatments[2].ID; g.NoFlush != want {
			t.Errorf("%s: ignores flushes: %v", g.Treatment, g.NoFlush)
		}
	}
}

// A plan records for each workload whether its results depend on synced writes. For a user's own workload that may be unknown.
func TestSyncedWritesAreRecorded(t *testing.T) {
	p := &Plan{}
	given := map[string][]map[string]string{
		"ior": {{"operation": "read"}, {"operation": "write"}}, "cpu": {nil}, "cassandra": {nil, {"sync": "batch"}},
	}
	for name := range given {
		w, err := workload.Find(workloads.FS, name, ".")
		if err != nil {
			t.Fatal(err)
		}
		for _, given := range given[name] {
			params, err := w.Resolve(given)
			if err != nil {
				t.Fatal(err)
			}
			p.recordSyncs(w, notebook.Treatment{Workload: name, Params: params})
		}
	}
	own := &studyfile.Spec{Name: "own", Platforms: []studyfile.Place{{Platform: notebook.BM}}, Instances: []string{"1/1GB"}, Workloads: []studyfile.Use{
		{Name: "mine", Command: []string{"true"}}, {Name: "served", Image: "httpd:2", Port: 80, Ask: studyfile.Values{"/"}},
	}}
	if err := own.Complete(known); err != nil {
		t.Fatal(err)
	}
	asked, err := own.Ask(workloads.FS, studyfile.Choices{})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range asked.Works {
		p.recordSyncs(w.Workload, notebook.Treatment{Workload: w.Workload.Name, Params: w.Params})
	}
	got := map[string]int{}
	for label, synced := range p.Study.Syncs {
		name, _, _ := strings.Cut(label, "{")
		got[fmt.Sprint(name, " ", synced)]++
	}
	if want := map[string]int{"ior false": 1, "ior true": 1, "cpu false": 1, "cassandra true": 1, "cassandra false": 1}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", p.Study.Syncs, want)
	}
}

func TestNotebookThatCannotBeWrittenEndsTheRun(t *testing.T) {
	full := errors.New("no space left on device")
	l := &fakeLab{elapsed: steady}
	_, err := (&Run{Plan: fakePlan(plain, bmT, cnT), Lab: l, Book: &fakeBook{err: full}}).Do(t.Context())
	if !errors.Is(err, full) || l.Live != 0 || len(l.order) != 1 {
		t.Errorf("%v; %d guests left of %d", err, l.Live, len(l.order))
	}
}

func TestStoppingRule(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	noisy := func(share float64) func(notebook.Treatment) time.Duration {
		return func(notebook.Treatment) time.Duration {
			return time.Duration((1 + share*rng.NormFloat64()) * float64(time.Second))
		}
	}
	d := notebook.Design{Floor: 4, Cap: 30, Precision: 0.02, Trials: 1}
	for _, c := range []struct {
		noise float64
		want  string
		few   bool
	}{{0.0005, "precise-enough", true}, {0.5, "cap-on-rounds", false}} {
		l := &fakeLab{elapsed: noisy(c.noise), making: atOnce}
		r := &Run{Plan: fakePlan(d, bmT, aaT, cnT, vmT), Lab: l, Book: &fakeBook{}}
		reason, err := inBubble(t, r)
		if err != nil || !reason.Is(c.want) {
			t.Errorf("noise %g: %q, %v; want %q", c.noise, reason, err, c.want)
		}
		vms := 0
		for _, id := range l.order {
			if id == studyfile.Identify(r.Plan.Study.Treatments[3]) {
				vms++
			}
		}
		if vms != 4 {
			t.Errorf("noise %g: the emulated VM ran in %d rounds, want the floor's 4", c.noise, vms)
		}
		if few := len(l.order) == 16; few != c.few {
			t.Errorf("noise %g: %d guests", c.noise, len(l.order))
		}
	}
}

// atOnce makes a guest in no time.
func atOnce(notebook.Treatment) time.Duration { return 0 }

// inBubble runs a study in simulated time: its guests take the time that the lab sets, which decides how many trials a guest does.
func inBubble(t *testing.T, r *Run) (reason *notebook.Message, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { reason, err = r.Do(t.Context()) })
	return reason, err
}

// A treatment whose ratio is known takes part in no further rounds, also after a resumption. Its baseline continues as long as another
// treatment needs it.
func TestKnownRatiosNeedNoMoreRounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	pinned := cnT
	pinned.Provisioning = notebook.Pinned
	d := notebook.Design{Floor: 4, Cap: 40, Precision: 0.02, Trials: 1}
	l := &fakeLab{making: atOnce, elapsed: func(t notebook.Treatment) time.Duration {
		noise := 0.0001
		if t.Provisioning == notebook.Vanilla && t.Platform == notebook.CN {
			noise = 0.03
		}
		return time.Duration((1 + noise*rng.NormFloat64()) * float64(time.Second))
	}}
	book := &fakeBook{}
	r := &Run{Plan: fakePlan(d, bmT, cnT, pinned), Lab: l, Book: book}
	reason, err := inBubble(t, r)
	if err != nil || !reason.Is("precise-enough") {
		t.Fatalf("%q, %v", reason, err)
	}
	n := book.rounds()
	of := r.Plan.Study.Treatments
	bm, noisy, known := n[of[0].ID], n[of[1].ID], n[of[2].ID]
	if known != 4 || noisy < 8 || bm != noisy {
		t.Errorf("the steady container in %d rounds, the noisy one in %d, bare metal in %d; want 4, more, and as many", known, noisy, bm)
	}
	again := &Run{Plan: r.Plan, Lab: l, Book: book}
	for _, tr := range slices.Clone(book.trials) {
		again.Take(tr)
	}
	before := len(book.trials)
	if reason, err := inBubble(t, again); err != nil || !reason.Is("precise-enough") || len(book.trials) != before {
		t.Errorf("resumed: %q, %v, %d more trials", reason, err, len(book.trials)-before)
	}
}

// A few steady rounds do not end a study, because a rare stall may not have occurred yet. Trials of minutes may be few nevertheless. Bare
// metal against itself needs no least number of trials.
func TestRuleEndsAfterEnoughTrials(t *testing.T) {
	for _, c := range []struct {
		trial  time.Duration
		design notebook.Design
		want   int // trials of each side
	}{
		{time.Second / 5, notebook.Design{Precision: 0.02}, 20}, {time.Second / 5, notebook.Design{Decide: 0.02}, 20},
		{30 * time.Minute, notebook.Design{Precision: 0.02}, 3}, {25 * time.Second, notebook.Design{Precision: 0.02}, 5},
	} {
		rng := rand.New(rand.NewPCG(5, 6))
		l := &fakeLab{making: atOnce, elapsed: func(notebook.Treatment) time.Duration {
			return time.Duration((1 + 0.0001*rng.NormFloat64()) * float64(c.trial))
		}}
		d := c.design
		d.Floor, d.Cap, d.Trials, d.Seen = 3, 40, 1, stats.LeastTrials
		book := &fakeBook{}
		r := &Run{Plan: fakePlan(d, bmT, aaT, cnT), Lab: l, Book: book}
		reason, err := inBubble(t, r)
		n := map[string]int{}
		for _, x := range book.trials {
			n[x.Treatment]++
		}
		of, rounds := r.Plan.Study.Treatments, book.rounds()
		few := func(treatment, least int) bool { // if a guest costs more than its trial, the run gives it a second trial before it knows anything about it
			got := n[of[treatment].ID]
			return got < least || got > least+least/2+1
		}
		if err != nil || !reason.Is("precise-enough") || few(0, c.want) || few(2, c.want) {
			t.Errorf("%v, %+v: %q, %v, %d trials of the container and %d of bare metal, want %d", c.trial, d, reason, err, n[of[2].ID], n[of[0].ID], c.want)
		}
		if check := rounds[of[1].ID]; d.Decide == 0 && check != 3 {
			t.Errorf("%v, %+v: the A/A control in %d rounds, want 3", c.trial, d, check)
		}
	}
}

func TestTimeBudget(t *testing.T) {
	l := &fakeLab{elapsed: steady}
	r := &Run{Plan: fakePlan(plain, bmT, cnT), Lab: l, Book: &fakeBook{}, Deadline: time.Now().Add(-time.Second)}
	if reason, err := r.Do(t.Context()); err != nil || !reason.Is("time-budget") || len(l.order) != 0 {
		t.Errorf("%q, %v, %d guests", reason, err, len(l.order))
	}
}

func TestResumeRefusesAnotherStudy(t *testing.T) {
	a := fakePlan(plain, bmT, cnT)
	a.Study.Name, a.Study.Hash = "a", "1"
	same := a.Study
	if err := a.Resume(same, false); err != nil {
		t.Error(err)
	}
	a.Study.Source, a.Study.Tare = "name: a\nworkloads: [{name: w}]", "v2"
	a.Study.Images = map[string]notebook.Image{"w": {Digest: "one"}}
	a.Study.LeftOut = []notebook.LeftOut{{Treatment: notebook.Treatment{ID: "gone"}, Reason: notebook.TextMessage("no docker")}}
	another := "the folder holds another run of a: "
	for _, c := range []struct {
		begun func(*notebook.Study)
		want  string
	}{
		{func(s *notebook.Study) { s.Name = "b" }, "the folder holds the study b, not a"},
		{func(s *notebook.Study) { s.Seed = 9 }, "the folder was begun with --seed 9, not 7: leave --seed out"},
		{func(s *notebook.Study) { s.Design.Floor = 2 }, another + "it was begun with 2 to 4 rounds, but this command asks for 4"},
		{func(s *notebook.Study) { s.Design.Warmups = 3 }, another + "it was begun with 3 warm-ups in a guest, but this command asks for 1"},
		{func(s *notebook.Study) { s.Explain = []string{"cpu", "io"} }, another + "it was begun with --explain=cpu,io"},
		{func(s *notebook.Study) { s.Treatments = append(s.Treatments, notebook.Treatment{ID: "other"}) },
			another + `it was begun with "other", which this command does not ask for`},
		{func(s *notebook.Study) { s.Treatments = append(s.Treatments, notebook.Treatment{ID: "gone"}) },
			`treatment-cannot-go-on cause=no docker treatment=gone`},
		{func(s *notebook.Study) { s.Hash, s.Treatments = "2", s.Treatments[:1] },
			another + `it was begun without "w cn crun vanilla 1/1GB", which this command asks for`},
		{func(s *notebook.Study) { s.Hash, s.Source = "2", "name: a\nworkloads: [{name: v}]" },
			another + `line 2 of its study file was "workloads: [{name: v}]" and is now "workloads: [{name: w}]"`},
		{func(s *notebook.Study) { s.Hash, s.Images = "2", map[string]notebook.Image{"w": {Digest: "two"}} },
			another + "the image or the input of w has changed"},
		{func(s *notebook.Study) { s.Hash, s.Tare = "2", "v1" }, another + "it was begun by tare v1, and this is tare v2"},
		{func(s *notebook.Study) { s.Hash = "2" }, another + "--only, --accel, --vm-kernel"},
	} {
		begun := a.Study
		begun.Treatments = slices.Clone(begun.Treatments)
		c.begun(&begun)
		if err := a.Resume(begun, true); err == nil || !strings.HasPrefix(err.Error(), c.want) || !strings.HasSuffix(err.Error(), "name another folder with --out") && !strings.HasPrefix(c.want, "treatment-") {
			t.Errorf("got  %v\nwant %s; …", err, c.want)
		}
	}
	b := a.Study
	b.Hash, b.Source = a.Study.Hash, a.Study.Source+"\n# a remark" // the hash is the same
	if err := a.Resume(b, true); err != nil {
		t.Error(err)
	}
}

func TestWithoutBareMetalTheMeanMustBeKnown(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	d := notebook.Design{Floor: 4, Cap: 12, Precision: 0.02, Trials: 1}
	l := &fakeLab{elapsed: func(notebook.Treatment) time.Duration {
		return time.Duration((1 + 0.3*rng.NormFloat64()) * float64(time.Second))
	}}
	reason, err := (&Run{Plan: fakePlan(d, cnT), Lab: l, Book: &fakeBook{}}).Do(t.Context())
	if err != nil || !reason.Is("cap-on-rounds") || len(l.order) != 12 {
		t.Errorf("%q, %v after %d guests; with a noise of 30 %%, the mean is not known within 2 %% after the floor", reason, err, len(l.order))
	}
}

func TestGivenUpTreatmentsStayGivenUp(t *testing.T) {
	plan := fakePlan(plain, bmT, cnT)
	cn := plan.Study.Treatments[1].ID
	book := &fakeBook{}
	broken := map[string]error{cn: errors.New("never said hello")}
	if _, err := (&Run{Plan: plan, Lab: &fakeLab{elapsed: steady, broken: broken}, Book: book}).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := &Run{Plan: plan, Lab: &fakeLab{elapsed: steady, broken: broken}, Book: book}
	for _, tr := range slices.Clone(book.trials) {
		again.Take(tr)
	}
	before := len(book.trials)
	if reason, err := again.Do(t.Context()); err != nil || !reason.Is("cap-on-rounds") || len(book.trials) != before {
		t.Errorf("%q, %v: %d more trials in a finished folder", reason, err, len(book.trials)-before)
	}
}

// planned is the plan of a study with the shipped workloads.
func planned(ctx context.Context, l Lab, s *studyfile.Spec, ch studyfile.Choices) (*Plan, error) {
	asked, err := s.Ask(workloads.FS, ch)
	if err != nil {
		return nil, err
	}
	return NewPlan(ctx, l, asked, workload.Options{})
}

// A study that compares platforms with bare metal needs more than bare metal. A plan without it is refused before anything is built.
func TestPlanWithNothingToCompareIsRefused(t *testing.T) {
	noCrun, noKVM := errors.New("crun is not there; apt-get install crun"), errors.New("no VM with kvm: the small guest never said hello")
	nothing := func(only string, bare bool, why any) string {
		return notebook.Say("nothing-to-measure", "study", "s", "only", only, "bare", bare, "why", why).String()
	}
	for _, c := range []struct {
		platforms, only string
		lab             fakeLab
		want            string
	}{
		{"bm, cn, vm", "platform=vm", fakeLab{noAccel: noKVM},
			nothing("platform=vm", true, noKVM)},
		{"bm, cn, vm", "platform=cn,provisioning=pinned", fakeLab{cannot: map[string]error{"cn": noCrun}},
			nothing("platform=cn,provisioning=pinned", true, noCrun)},
		{"bm, cn, vm", "", fakeLab{cannot: map[string]error{"cn": noCrun}, noAccel: noKVM},
			nothing("", true, notebook.Say("and", "cause", noCrun, "more", noKVM))},
		{"bm, cn", "", fakeLab{cannot: map[string]error{"bm": noKVM, "cn": noCrun}},
			nothing("", false, noCrun)},
		{"bm", "", fakeLab{cannot: map[string]error{"bm": noKVM}}, nothing("", false, noKVM)},
		{"cn, vm", "platform=cn,engine=qemu", fakeLab{}, "study s: no configuration has all of --only engine=qemu,platform=cn: name values that occur together"},
	} {
		text := "name: s\nworkloads: [{name: cpu}]\nplatforms:\n"
		for p := range strings.SplitSeq(c.platforms, ", ") {
			text += "- platform: " + p + "\n"
		}
		s, err := studyfile.Parse("s.yaml", []byte(text+"instances: [1/1GB]\n"), ".", known)
		if err != nil {
			t.Fatal(err)
		}
		only, err := studyfile.ParseOnly(c.only)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := planned(t.Context(), &c.lab, s, studyfile.Choices{Only: only, Accel: notebook.KVM}); err == nil || err.Error() != c.want {
			t.Errorf("%s, --only %q:\ngot  %v\nwant %s", c.platforms, c.only, err, c.want)
		}
	}
	for _, c := range []struct {
		treatments []notebook.Treatment
		fine       bool
	}{
		{[]notebook.Treatment{bmT, aaT, vmT}, false},
		{[]notebook.Treatment{bmT, aaT, cnT, vmT}, true}, // one platform can
		{[]notebook.Treatment{bmT, aaT}, true},           // nothing else was asked for
	} {
		plan := fakePlan(plain, c.treatments...)
		lab := &fakeLab{unready: map[string]error{}}
		for _, tr := range plan.Study.Treatments {
			if tr.Platform == notebook.VM {
				lab.unready[tr.ID] = errors.New("no kernel")
			}
		}
		if err := plan.prepare(t.Context(), lab); err != nil {
			t.Fatal(err)
		}
		if err := worthwhile(plan.Study, nil); (err == nil) != c.fine {
			t.Errorf("%d treatments, whose VMs cannot be made ready: %v", len(c.treatments), err)
		}
	}
}

// Mistakes that do not depend on the host are reported before anything is tried on it or built for it.
func TestMistakesAreReportedFirst(t *testing.T) {
	parse := func(sizes string) *studyfile.Spec {
		s, err := studyfile.Parse("s.yaml", []byte("name: s\nworkloads: [{name: cpu}]\nplatforms: [{platform: bm}, {platform: vm}]\ninstances: ["+sizes+"]\n"), ".", known)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	begun := &notebook.Study{Name: "s", Design: notebook.Design{Floor: 5, Cap: 7}}
	for _, c := range []struct {
		sizes  string
		choice studyfile.Choices
		want   string
	}{
		{"1/1GB", studyfile.Choices{Only: studyfile.Only{"platform": "cn"}}, "--only platform=cn: the study s has bm, vm"},
		{"1/1GB", studyfile.Choices{Input: "film"}, "--input film: no workload of the study s takes an input: leave it out"},
		{"16xlarge, large", studyfile.Choices{}, "nothing-to-measure bare=false only= study=s why=and cause=too-many-cores cores=64 has=2 more=too-much-memory has=4.294967296e+09 memory=8.589934592e+09"},
	} {
		lab := &fakeLab{}
		if _, err := planned(t.Context(), lab, parse(c.sizes), c.choice); err == nil || !strings.HasPrefix(err.Error(), c.want) || lab.booted {
			t.Errorf("a VM was booted: %v; got %v, want %s", lab.booted, err, c.want)
		}
	}
	want := "the folder holds another run of s: it was begun with 5 to 7 rounds, but this command asks for 1 to 20"
	if _, err := planned(t.Context(), &fakeLab{}, parse("1/1GB"), studyfile.Choices{Begun: begun}); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestPlatformThatCannotBeMadeReadyIsLeftOut(t *testing.T) {
	plan := fakePlan(plain, bmT, cnT, vmT)
	vm := plan.Study.Treatments[2].ID
	if err := plan.prepare(t.Context(), &fakeLab{unready: map[string]error{vm: errors.New("no kernel")}}); err != nil {
		t.Fatal(err)
	}
	if len(plan.Study.Treatments) != 2 || len(plan.Study.LeftOut) != 1 || !plan.Study.LeftOut[0].Reason.Equal(notebook.Say("not-made-ready", "cause", "no kernel")) {
		t.Errorf("kept %d, left out %+v", len(plan.Study.Treatments), plan.Study.LeftOut)
	}
}

// Work that waits for a device without end is killed at its timeout. The record says what that may mean for the device.
func TestDeviceThatNeverAnswers(t *testing.T) {
	for devices, want := range map[string]string{
		"nvidia.com/gpu=0": "device-stuck cause=timed-out after=1 said= devices=nvidia.com/gpu=0",
		"":                 "timed-out after=1 said=",
	} {
		of := cnT
		of.Workload, of.Factors = "w", map[string]string{}
		if devices != "" {
			of.Factors[notebook.FactorDevices.Name] = devices
		}
		p := fakePlan(notebook.Design{Floor: 1, Cap: 1, Trials: 1}, of)
		p.ready[of.Label()] = p.ready["w"]
		book := &fakeBook{}
		lab := &fakeLab{elapsed: steady, result: func(_ notebook.Treatment, _ ruler.Order, r *ruler.Result) error {
			r.TimedOut = true
			return nil
		}}
		if _, err := (&Run{Plan: p, Lab: lab, Book: book}).Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(book.trials) != 1 || book.trials[0].Failure.String() != want {
			t.Errorf("%+v, want %s", book.trials, want)
		}
	}
}

// No command sets the least number of trials before a ratio counts as known. A folder continues with its own number, or without one.
func TestFolderKeepsItsFloorOfTrials(t *testing.T) {
	asked := notebook.Design{Floor: 3, Cap: 40, Precision: 0.01, Trials: 1}
	begun := asked
	begun.Seen = stats.LeastTrials
	if what := redesigned(begun, asked); what != "" {
		t.Errorf("a folder with a floor of trials: %s", what)
	}
	if what := redesigned(asked, begun); what != "" {
		t.Errorf("a folder without a floor of trials: %s", what)
	}
	if asked.Precision = 0.02; redesigned(begun, asked) == "" {
		t.Error("another precision was accepted as the same design")
	}
}

// interruptedLab is interrupted while it inspects the host.
type interruptedLab struct {
	fakeLab
	interrupt func()
}

func (l *interruptedLab) Supports(context.Context, notebook.Treatment) error {
	l.interrupt()
	return errors.New("probe: waiting for its ruler's hello: context canceled")
}

// An interrupt does not mean that the host lacks something.
func TestInterruptedPlan(t *testing.T) {
	s, err := studyfile.Parse("s.yaml", []byte("name: s\nworkloads: [{name: cpu}]\nplatforms:\n- platform: bm\n- platform: cn\ninstances: [1/1GB]\n"), ".", known)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := planned(ctx, &interruptedLab{interrupt: cancel}, s, studyfile.Choices{}); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "measured") {
		t.Errorf("%v, want the interrupt", err)
	}
}

// A folder of format 1 can be continued: its treatments are those of the plan, and their work is ready.
func TestResumeOfFormat1(t *testing.T) {
	of := cnT
	of.Params, of.Factors = map[string]string{"n": "3"}, map[string]string{notebook.FactorNeighbours.Name: "none"}
	p := fakePlan(plain, of)
	p.Study.Name, p.Study.Hash, p.Study.Metrics, p.Study.Also = "a", "1", map[string]notebook.Metric{"w": {Name: "execution time", Unit: "s"}}, map[string][]notebook.Metric{"w": {{Name: "own share", Unit: "1"}}}
	label := p.Study.Treatments[0].Label()
	if label != "w{n=3,neighbours=none}" {
		t.Fatal(label)
	}
	p.ready[label] = p.ready["w"]
	delete(p.ready, "w")
	text, err := json.Marshal(p.Study)
	if err != nil {
		t.Fatal(err)
	}
	old := strings.Replace(strings.Replace(string(text), `"params":{"n":"3"},"factors":{"neighbours":"none"}`, `"params":{"n":"3","neighbours":"none"}`, 1), `"version":0`, `"version":1`, 1)
	if old == string(text) || strings.Contains(old, "factors") {
		t.Fatal(old)
	}
	var begun notebook.Study
	if err := json.Unmarshal([]byte(old), &begun); err != nil {
		t.Fatal(err)
	}
	want := p.Study.Treatments
	if err := p.Resume(begun, false); err != nil || !reflect.DeepEqual(p.Study.Treatments, want) {
		t.Fatalf("%v, %+v", err, p.Study.Treatments)
	}
	book := &fakeBook{}
	if _, err := (&Run{Plan: p, Lab: &fakeLab{elapsed: steady}, Book: book}).Do(t.Context()); err != nil || len(book.trials) == 0 {
		t.Errorf("%v, %d trials", err, len(book.trials))
	}
}
