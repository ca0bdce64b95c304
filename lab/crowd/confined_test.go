package crowd

import (
	"testing"

	"tare/notebook"
)

func TestATrialThatHasFailedKeepsItsCause(t *testing.T) {
	tr := notebook.Trial{Failure: notebook.TextMessage("the disk is full")}
	left := escaped(&notebook.Confined{CPUs: "1", Escape: notebook.EscapeLeft})
	fail(&tr, left)
	if tr.Failure.Text() != "the disk is full" {
		t.Errorf("%q", tr.Failure)
	}
	tr.Failure = nil
	fail(&tr, left)
	if !tr.Failure.Equal(notebook.Say("left-cgroup", "cpus", "1")) {
		t.Errorf("%q", tr.Failure)
	}
}
