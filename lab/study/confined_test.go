package study

import (
	"strings"
	"testing"

	"tare/notebook"
)

// A trial that did not stay on its guest's CPUs, or cannot be shown to have, has failed with that cause; one that did has that in its record.
func TestATrialThatLeavesItsCPUs(t *testing.T) {
	foreign := 0.25
	for escape, cause := range map[notebook.Escape]string{
		"":                     "",
		notebook.EscapeSet:     "its CPU set was changed",
		notebook.EscapeLeft:    "left the cgroup",
		notebook.EscapeForeign: "0.25 s of CPU time on other CPUs than 1",
		notebook.EscapeTime:    "more CPU time than CPUs 1 have",
		notebook.EscapeUnseen:  "cannot be shown that it stayed on CPUs 1: no count",
	} {
		plan := fakePlan(plain, bmT, cnT)
		bm := plan.Study.Treatments[0].ID
		book := &fakeBook{}
		l := &fakeLab{elapsed: steady, confined: map[string]*notebook.Confined{
			bm: {CPUs: "1", ForeignS: &foreign, Why: "no count", Escape: escape},
		}}
		if _, err := (&Run{Plan: plan, Lab: l, Book: book}).Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, tr := range book.trials {
			if (tr.Confined != nil) != (tr.Treatment == bm) {
				t.Errorf("%q: the record of %s has %v", escape, tr.Treatment, tr.Confined)
			}
			if tr.Treatment != bm || strings.HasPrefix(tr.Failure, "not run") {
				continue
			}
			n++
			if (tr.Failure == "") != (cause == "") || !strings.Contains(tr.Failure, cause) || tr.Confined.Escape != escape {
				t.Errorf("%q: %q, %+v; want %q", escape, tr.Failure, tr.Confined, cause)
			}
		}
		if n == 0 {
			t.Errorf("%q: no trials of bare metal", escape)
		}
	}
}
