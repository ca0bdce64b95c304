package study

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tare/lab/measure"
	"tare/notebook"
)

// partedKind is a kind whose trials have as many parts as a test sets.
type partedKind struct {
	fakeKind
	parts int
	takes time.Duration // a part
	order []string      // the treatments of the parts so far
}

func (k *partedKind) Subject(b measure.Bench, c measure.Cell) measure.Subject {
	return &partedSubject{Plain: measure.NewPlain(b, c), k: k}
}

type partedSubject struct {
	*measure.Plain
	k    *partedKind
	done int
}

func (s *partedSubject) Part(context.Context, measure.Step) (tr notebook.Trial, more, over bool, err error) {
	time.Sleep(s.k.takes)
	s.k.order = append(s.k.order, s.Treatment.ID)
	s.done++
	tr.ElapsedS = float64(s.done)
	if s.done < s.k.parts {
		return tr, true, false, nil
	}
	tr.Value, s.done = 2, 0
	return tr, false, false, nil
}

func (s *partedSubject) Trial(ctx context.Context, step measure.Step) (tr notebook.Trial, over bool, err error) {
	for more := true; more; {
		tr, more, over, err = s.Part(ctx, step)
	}
	return tr, over, err
}

// plan is a study of the kind.
func (k *partedKind) plan(d notebook.Design, turns bool, treatments ...notebook.Treatment) *Plan {
	p := fakePlan(d, treatments...)
	p.rules, p.config = measure.Rules{Turns: turns, Search: true}, k
	p.interleaved()
	return p
}

// Guests that are alive at the same time take turns with the parts of their trials. Each trial is recorded once.
func TestPartsOfTrialsTakeTurns(t *testing.T) {
	for _, turns := range []bool{true, false} {
		k, book, l := &partedKind{parts: 4}, &fakeBook{}, &fakeLab{elapsed: steady}
		p := k.plan(notebook.Design{Floor: 3, Cap: 3, Trials: 1}, turns, bmT, aaT, cnT)
		if _, err := (&Run{Plan: p, Lab: l, Book: book}).Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{true: 3, false: 1}[turns]; l.Most != want || len(book.trials) != 9 || l.Live != 0 {
			t.Fatalf("%d guests at once, %d trials, %d left; want %d, 9 and 0", l.Most, len(book.trials), l.Live, want)
		}
		for _, tr := range book.trials {
			if tr.Failure != nil || tr.Value != 2 || tr.ElapsedS != 4 {
				t.Errorf("trial %+v", tr)
			}
		}
		for pass := range slices.Chunk(k.order, 3) {
			if slices.Sort(pass); turns && len(slices.Compact(slices.Clone(pass))) != 3 {
				t.Errorf("a pass gives parts to %v", pass)
			}
		}
		if orders := strings.Join(k.order, " "); !turns && len(k.order) != 36 {
			t.Errorf("parts %s", orders)
		}
	}
}

// A deadline ends a trial between two parts. The trial is not recorded, and the continued run repeats it.
func TestDeadlineWithinATrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, book := &partedKind{parts: 10, takes: time.Second}, &fakeBook{}
		p := k.plan(notebook.Design{Floor: 1, Cap: 1, Trials: 1}, true, bmT, cnT)
		lab := func() *fakeLab { return levels(3, 0, 0, 0, 0, same) }
		r := &Run{Plan: p, Lab: lab(), Book: book, Deadline: time.Now().Add(5 * time.Second)}
		if reason, err := r.Do(t.Context()); err != nil || !reason.Is("time-budget") || len(book.trials) != 0 || len(k.order) != 6 {
			t.Fatalf("%q, %v, %d trials, parts of %v; want none, and six parts", reason, err, len(book.trials), k.order)
		}
		again := &Run{Plan: p, Lab: lab(), Book: book}
		if reason, err := again.Do(t.Context()); err != nil || !reason.Is("cap-on-rounds") || book.measured() != 2 {
			t.Errorf("continued: %q, %v, %d trials, want 2", reason, err, book.measured())
		}
	})
}

// The observations of all parts are added up. A value that is unknown for one part is unknown for the trial.
func TestPartsAddUp(t *testing.T) {
	used := func(s float64) *notebook.Confined { return &notebook.Confined{UsedS: s, ForeignS: new(float64)} }
	var u underway
	u.add(&notebook.Beside{OthersS: 1, OfS: 4}, 0.5)
	u.stayed(notebook.Trial{Confined: used(1)})
	u.add(&notebook.Beside{OthersS: 2, OfS: 4}, 0.25)
	u.stayed(notebook.Trial{Confined: used(2)})
	var tr notebook.Trial
	u.into(&tr)
	if tr.Beside.OthersS != 3 || tr.Beside.OfS != 8 || tr.ThrottledS != 0.75 || tr.Confined.UsedS != 3 || tr.Confined.ForeignS == nil || tr.Failure != nil {
		t.Errorf("%+v, %+v, %+v", tr, tr.Beside, tr.Confined)
	}
	u.add(nil, 0)
	u.stayed(notebook.Trial{Failure: notebook.Say("left-cgroup", "cpus", "1"), Confined: used(7)})
	u.stayed(notebook.Trial{Confined: used(1)})
	u.into(&tr)
	if tr.Beside != nil || !tr.Failure.Is("left-cgroup") || tr.Confined.UsedS != 7 {
		t.Errorf("%s", fmt.Sprint(tr.Beside, tr.Failure, tr.Confined))
	}
}
