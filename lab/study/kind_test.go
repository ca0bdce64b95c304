package study

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/lab/measure"
	"tare/lab/workload"
	"tare/notebook"
)

// fakeKind is a kind of study for tests, which set what its trials do.
type fakeKind struct {
	measure.Defaults
	trial    func(ctx context.Context, b measure.Bench) notebook.Trial
	possible error
	lacks    *notebook.Message // LeavesOut's, of containers
}

func (k *fakeKind) Record() any                      { return map[string]int{"size": 1} }
func (k *fakeKind) Identity([]*workload.Ready) []any { return []any{k.Record()} }
func (k *fakeKind) Possible() error                  { return k.possible }
func (k *fakeKind) Subject(b measure.Bench, c measure.Cell) measure.Subject {
	return &fakeSubject{measure.NewPlain(b, c), k}
}

func (k *fakeKind) LeavesOut(t notebook.Treatment, _ engine.Kind, _ *workload.Workload) *notebook.Message {
	if t.Platform == notebook.CN {
		return k.lacks
	}
	return nil
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

// plan is a plan of the kind for tests.
func (k *fakeKind) plan(rules measure.Rules, d notebook.Design, treatments ...notebook.Treatment) *Plan {
	p := fakePlan(d, treatments...)
	p.rules, p.config = rules, k
	return p
}

// A kind says why the host cannot measure it, and which treatments it leaves out.
func TestKindLeavesTreatmentsOut(t *testing.T) {
	k := &fakeKind{lacks: notebook.TextMessage("nothing of a container has a size"), possible: errors.New("no ruler here")}
	p := &planner{lab: &fakeLab{}, host: (&fakeLab{}).Host(), Plan: &Plan{engines: kinds, config: k}, noAccel: map[string]error{}}
	one := notebook.Instance{Name: "1/1GB", Cores: 1, Memory: 1 << 30}
	cn, bm := cnT, bmT
	cn.Instance, bm.Instance = one, one
	w := &workload.Workload{Name: "w"}
	for _, c := range []struct {
		t    notebook.Treatment
		want *notebook.Message
	}{{cn, k.lacks}, {bm, nil}} {
		if got := p.leavesOut(t.Context(), c.t, w); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", c.t.Platform, got, c.want)
		}
	}
	p.impossible = k.Possible()
	if got := p.leavesOut(t.Context(), bm, w); got.Text() != "no ruler here" {
		t.Errorf("%q", got)
	}
}

// Each trial of a kind has its own guest, which is removed after it. An interrupted trial is not recorded.
func TestTrialsOfAKind(t *testing.T) {
	k := &fakeKind{trial: func(context.Context, measure.Bench) notebook.Trial { return notebook.Trial{Value: 2} }}
	l, book := &fakeLab{elapsed: steady}, &fakeBook{}
	l.Made = func(w crowd.Want) (crowd.Guest, error) { return &heldGuest{fakeGuest: l.guest(w.Treatment)}, nil }
	d := notebook.Design{Floor: 2, Cap: 2, Trials: 1}
	if reason, err := (&Run{Plan: k.plan(measure.Rules{Crowd: true}, d, bmT, cnT), Lab: l, Book: book}).Do(t.Context()); err != nil || !reason.Is("cap-on-rounds") {
		t.Fatalf("%q, %v", reason, err)
	}
	if len(book.trials) != 4 || l.Live != 0 || l.Most != 1 {
		t.Errorf("%d trials, %d guests at once, %d left; want 4, 1, 0", len(book.trials), l.Most, l.Live)
	}
	for _, tr := range book.trials {
		if tr.Value != 2 || tr.Beside != nil || tr.ThrottledS != 0 {
			t.Errorf("%+v: must not record what the host did in addition to several guests", tr)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	k.trial = func(context.Context, measure.Bench) notebook.Trial {
		cancel()
		return notebook.Trial{Value: 3}
	}
	book = &fakeBook{}
	if reason, err := (&Run{Plan: k.plan(measure.Rules{}, d, bmT), Lab: l, Book: book}).Do(ctx); err != nil || !reason.Is("interrupted") || len(book.trials) != 0 || l.Live != 0 {
		t.Errorf("%q, %v, %d trials, %d guests left", reason, err, len(book.trials), l.Live)
	}
}

// Searches share the time of a run, also where it takes long to make their guests.
func TestSearchesShareTheirTime(t *testing.T) {
	for _, making := range []time.Duration{0, 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			k := &fakeKind{trial: func(_ context.Context, b measure.Bench) notebook.Trial {
				time.Sleep(time.Until(b.Until(10 * time.Minute)))
				return notebook.Trial{Value: 1}
			}}
			l := &fakeLab{elapsed: steady, making: func(notebook.Treatment) time.Duration { return making }}
			book, began := &fakeBook{}, time.Now()
			plan := k.plan(measure.Rules{Search: true, Bounded: true}, notebook.Design{Floor: 2, Cap: 2, Trials: 1}, cnT)
			r := &Run{Plan: plan, Lab: l, Book: book, Deadline: began.Add(3 * time.Minute)}
			reason, err := r.Do(t.Context())
			if took := time.Since(began); err != nil || !reason.Is("cap-on-rounds") || len(book.trials) != 2 || took < 2*time.Minute || took > 3*time.Minute {
				t.Errorf("%q, %v: %d trials in %v; want two in two to three minutes", reason, err, len(book.trials), took)
			}
		})
	}
}
