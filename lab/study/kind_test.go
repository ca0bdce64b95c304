package study

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.yaml.in/yaml/v4"

	"tare/lab/engine"
	"tare/lab/measure"
	"tare/lab/workload"
	"tare/notebook"
	"tare/workloads"
)

// fakeKind is a kind of study for tests: what its trials do is what a test says.
type fakeKind struct {
	measure.Defaults
	factors  []measure.Factor
	trial    func(ctx context.Context, b measure.Bench) notebook.Trial
	possible error
	lacks    string // LeavesOut's, of containers
	cannot   error  // Accepts'
}

func (k *fakeKind) Factors() []measure.Factor        { return k.factors }
func (k *fakeKind) Record() any                      { return map[string]int{"size": 1} }
func (k *fakeKind) Identity([]*workload.Ready) []any { return []any{k.Record()} }
func (k *fakeKind) Accepts(*workload.Workload) error { return k.cannot }
func (k *fakeKind) Possible() error                  { return k.possible }
func (k *fakeKind) Subject(b measure.Bench, c measure.Cell) measure.Subject {
	return &fakeSubject{measure.NewPlain(b, c), k}
}

func (k *fakeKind) LeavesOut(t notebook.Treatment, _ engine.Kind, _ *workload.Workload) string {
	if t.Platform == notebook.CN {
		return k.lacks
	}
	return ""
}

func (k *fakeKind) Metrics(*workload.Workload, []string) (notebook.Metric, []notebook.Metric) {
	return notebook.Metric{Name: "size", Unit: "1"}, []notebook.Metric{{Name: "width", Unit: "1"}}
}

type fakeSubject struct {
	*measure.Plain
	*fakeKind
}

func (s *fakeSubject) Trial(ctx context.Context, _ measure.Step) (notebook.Trial, bool, error) {
	return s.fakeKind.trial(ctx, s.Bench), true, nil
}

// of is a registry with the kind under the name "sizes".
func (k *fakeKind) of(rules measure.Rules) measure.Registry {
	return measure.Registry{{Name: "sizes", Rules: rules, Part: measure.Part{Read: func(n *yaml.Node, _ []string) (measure.Config, error) {
		if n.Kind != yaml.MappingNode {
			return nil, measure.Wrong("how", "a mapping was expected")
		}
		return k, nil
	}}}}
}

// planned is a plan of the kind for tests.
func (k *fakeKind) planned(rules measure.Rules, d notebook.Design, treatments ...notebook.Treatment) *Plan {
	p := fakePlan(d, treatments...)
	p.measure, p.config = &k.of(rules)[0], k
	return p
}

// The values of a kind's factors stand among a workload's parameters, each with each; a parameter of that name is the workload's.
func TestAKindsFactorsMakeTreatments(t *testing.T) {
	k := &fakeKind{factors: []measure.Factor{{Name: "addresses", Values: []string{"fixed", "random"}}, {Name: "huge_pages", Values: []string{"host", "never"}}, {Name: "none"}}}
	s := &Spec{measure: &measure.Kind{Name: "sizes"}, config: k}
	all, err := s.each(map[string]string{"size": "1"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, params := range all {
		got = append(got, notebook.Assignments(params, ","))
	}
	want := "addresses=fixed,huge_pages=host,size=1 addresses=fixed,huge_pages=never,size=1 addresses=random,huge_pages=host,size=1 addresses=random,huge_pages=never,size=1"
	if strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
	if _, err := s.each(map[string]string{"addresses": "16"}); err == nil || err.Error() != `sizes: the workload has a parameter "addresses" of its own: one without it was expected` {
		t.Errorf("%v", err)
	}
	for _, s := range []*Spec{{}, {measure: s.measure, config: &fakeKind{}}} {
		if all, err := s.each(map[string]string{"size": "1"}); err != nil || len(all) != 1 || len(all[0]) != 1 {
			t.Errorf("%v, %v; want the one", all, err)
		}
	}
}

// A kind says why the host cannot measure so, and which treatments it leaves out.
func TestWhatAKindLeavesOut(t *testing.T) {
	k := &fakeKind{lacks: "nothing of a container has a size", possible: errors.New("no ruler here")}
	p := &planner{Spec: &Spec{known: known}, lab: &fakeLab{}, host: (&fakeLab{}).Host(), Plan: &Plan{config: k}, noAccel: map[string]error{}}
	one := notebook.Instance{Name: "1/1GB", Cores: 1, Memory: 1 << 30}
	cn, bm := cnT, bmT
	cn.Instance, bm.Instance = one, one
	w := &workload.Workload{Name: "w"}
	for _, c := range []struct {
		t    notebook.Treatment
		want string
	}{{cn, k.lacks}, {bm, ""}} {
		if got := p.leavesOut(t.Context(), c.t, w); got != c.want {
			t.Errorf("%s: %q, want %q", c.t.Platform, got, c.want)
		}
	}
	p.impossible = k.Possible()
	if got := p.leavesOut(t.Context(), bm, w); got != "no ruler here" {
		t.Errorf("%q", got)
	}
}

const sizes = "name: s\nworkloads: [{name: cpu}]\nplatforms: [{platform: bm}]\ninstances: [1/1GB]\ndesign: {trials: 1, warmups: 0}\nsizes: {}\n"

// A kind's rules refuse what does not go with it, and say why.
func TestWhatAKindDoesNotGoWith(t *testing.T) {
	k := &fakeKind{}
	registry := k.of(measure.Rules{Untraced: "a size takes no time", LoadHere: "a size is of this host"})
	s, err := Parse("s.yaml", []byte(sizes), ".", Known{kinds, registry})
	if err != nil {
		t.Fatal(err)
	}
	for want, ch := range map[string]Choices{
		"study s: sizes: --explain: a size takes no time: leave it out":     {Explain: []string{"io"}},
		"study s: sizes: --load-from: a size is of this host: leave it out": {LoadFrom: "ssh://other"},
		"": {},
	} {
		if err := s.Check(workloads.FS, ch); fmt.Sprint(err) != want && (err != nil || want != "") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	k.cannot = errors.New("has no size")
	if err := s.Check(workloads.FS, Choices{}); err == nil || err.Error() != "study s: sizes: workload cpu has no size" {
		t.Errorf("%v", err)
	}
	if _, err := Parse("s.yaml", []byte(strings.Replace(sizes, "{}", "[1]", 1)), ".", Known{kinds, registry}); err == nil || err.Error() != "s.yaml:6: sizes: how: a mapping was expected" {
		t.Errorf("%v", err)
	}
	u, err := ParseUntil(" p95 < 1.5x ", known.Kinds)
	if err != nil || !u.Seeks() {
		t.Fatalf("%+v, %v", u, err)
	}
	k.cannot = nil
	if err := s.Check(workloads.FS, Choices{Until: u}); err == nil || !strings.Contains(err.Error(), "--until 'p95 < 1.5x' seeks by timing work, and the study measures sizes: in place of it") {
		t.Errorf("%v", err)
	}
	for _, text := range []string{"p95 < 1x", "p95 > 1.5x", "p5 < 2x", "p95 < 1.5", "mean < 2x"} {
		if u, err := ParseUntil(text, known.Kinds); err == nil || !strings.Contains(err.Error(), "was expected") {
			t.Errorf("%q: %+v, %v", text, u, err)
		}
	}
}

// Each round has one trial of a kind in a guest of its own, which is gone after it; nothing is recorded of one that was interrupted.
func TestTheTrialsOfAKind(t *testing.T) {
	k := &fakeKind{trial: func(context.Context, measure.Bench) notebook.Trial { return notebook.Trial{Value: 2} }}
	l, book := &fakeLab{elapsed: steady, throttled: time.Second}, &fakeBook{}
	d := notebook.Design{Floor: 2, Cap: 2, Trials: 1}
	if reason, err := (&Run{Plan: k.planned(measure.Rules{Crowd: true}, d, bmT, cnT), Lab: l, Book: book}).Do(t.Context()); err != nil || reason != Capped {
		t.Fatalf("%q, %v", reason, err)
	}
	if len(book.trials) != 4 || l.live != 0 || l.most != 1 {
		t.Errorf("%d trials, %d guests at once, %d left; want 4, 1, 0", len(book.trials), l.most, l.live)
	}
	for _, tr := range book.trials {
		if tr.Value != 2 || tr.Beside != nil || tr.ThrottledS != 0 {
			t.Errorf("%+v: what the host did beside several guests says nothing", tr)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	k.trial = func(context.Context, measure.Bench) notebook.Trial {
		cancel()
		return notebook.Trial{Value: 3}
	}
	book = &fakeBook{}
	if reason, err := (&Run{Plan: k.planned(measure.Rules{}, d, bmT), Lab: l, Book: book}).Do(ctx); err != nil || reason != Interrupted || len(book.trials) != 0 || l.live != 0 {
		t.Errorf("%q, %v, %d trials, %d guests left", reason, err, len(book.trials), l.live)
	}
}

// Searches share the time that a run has.
func TestSearchesShareTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &fakeKind{trial: func(_ context.Context, b measure.Bench) notebook.Trial {
			time.Sleep(time.Until(b.Until(10 * time.Minute)))
			return notebook.Trial{Value: 1}
		}}
		l, book, began := &fakeLab{elapsed: steady}, &fakeBook{}, time.Now()
		r := &Run{Plan: k.planned(measure.Rules{Search: true}, notebook.Design{Floor: 2, Cap: 2, Trials: 1}, cnT), Lab: l, Book: book, Deadline: began.Add(3 * time.Minute)}
		reason, err := r.Do(t.Context())
		if took := time.Since(began); err != nil || reason != Capped || len(book.trials) != 2 || took < 2*time.Minute || took > 3*time.Minute {
			t.Errorf("%q, %v: %d trials in %v; want two in two to three minutes", reason, err, len(book.trials), took)
		}
	})
}

// A service of a user's own is one workload: over HTTP the shipped one that asks at a rate, else a command of its image.
func TestAServiceOfOnesOwn(t *testing.T) {
	spec := func(load ...string) *Spec {
		s := &Spec{Name: "bench", Workloads: []Use{{Name: "service", Image: "./x", Port: 80, Ask: load}}, Platforms: []Place{{Platform: notebook.BM}}, Instances: []string{"1/1GB"}}
		if err := s.Measure("capacity", map[string]string{"objective": "p99=50ms"}); err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range []struct {
		load       []string
		ready, err string
	}{
		{[]string{"/page?x=1"}, "{work}/k6", ""},
		{[]string{"ab", "-r", "{rate}", "{address}"}, "ab -r 1 {address}", ""},
		{[]string{"ab"}, "", "load: the path of a page, or a command with {rate} in it, was expected"},
		{nil, "", "service: and load: one without the other"},
		{[]string{"/a b"}, "", "path"},
	} {
		s := spec(c.load...)
		err := s.Complete(known)
		var us []use
		if err == nil {
			us, err = s.uses(workloads.FS)
		}
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: %v, want %q", c.load, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		w := us[0].Workload
		if w.Service.Port != 80 || w.Name != "service" || !strings.HasPrefix(strings.Join(w.Load.Ready, " "), c.ready) || len(w.Load.Open) == 0 {
			t.Errorf("%q: %+v", c.load, w.Load)
		}
		if _, err := w.Resolve(nil); err != nil {
			t.Error(err)
		}
		// The file that is recorded says the same.
		if again, err := Parse("again.yaml", []byte(s.Source), ".", known); err != nil || again.measure.Name != "capacity" {
			t.Errorf("%v", err)
		}
	}
}
