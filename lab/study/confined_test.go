package study

import (
	"testing"
	"time"

	"tare/lab/crowd"
	"tare/lab/engine"
	"tare/notebook"
)

// confinedGuest reports this about the CPUs of a trial.
type confinedGuest struct {
	fakeGuest
	says notebook.Confined
}

func (g *confinedGuest) Watch() engine.Watch {
	return func(notebook.Usage, time.Duration) *notebook.Confined { return &g.says }
}

// A trial that left its guest's CPUs has failed, with that cause. A trial that cannot be shown to have stayed has failed, too. The record of any
// other trial says that it stayed.
func TestTrialThatLeavesItsCPUs(t *testing.T) {
	foreign := 0.25
	for escape, cause := range map[notebook.Escape]*notebook.Message{
		"":                     nil,
		notebook.EscapeSet:     notebook.Say("cpu-set-changed", "cpus", "1"),
		notebook.EscapeLeft:    notebook.Say("left-cgroup", "cpus", "1"),
		notebook.EscapeForeign: notebook.Say("other-cpus-used", "cpus", "1", "used_s", 0.25),
		notebook.EscapeTime:    notebook.Say("too-much-cpu-time", "cpus", "1"),
		notebook.EscapeUnseen:  notebook.Say("cpus-unproven", "cpus", "1", "why", "no count"),
	} {
		plan := fakePlan(plain, bmT, cnT)
		bm := plan.Study.Treatments[0].ID
		book := &fakeBook{}
		l := &fakeLab{elapsed: steady}
		l.Made = func(w crowd.Want) (crowd.Guest, error) {
			g := l.guest(w.Treatment)
			if w.Treatment.ID != bm {
				return &g, nil
			}
			return &confinedGuest{g, notebook.Confined{CPUs: "1", ForeignS: &foreign, Why: notebook.TextMessage("no count"), Escape: escape}}, nil
		}
		if _, err := (&Run{Plan: plan, Lab: l, Book: book}).Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, tr := range book.trials {
			if (tr.Confined != nil) != (tr.Treatment == bm) {
				t.Errorf("%q: the record of %s has %v", escape, tr.Treatment, tr.Confined)
			}
			if tr.Treatment != bm || tr.Failure.Is("guest-failed-before") {
				continue
			}
			n++
			if !tr.Failure.Equal(cause) || tr.Confined.Escape != escape {
				t.Errorf("%q: %q, %+v; want %q", escape, tr.Failure, tr.Confined, cause)
			}
		}
		if n == 0 {
			t.Errorf("%q: no trials of bare metal", escape)
		}
	}
}
