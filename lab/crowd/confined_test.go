package crowd

import (
	"errors"
	"strings"
	"testing"

	"tare/notebook"
)

func TestATrialThatHasFailedKeepsItsCause(t *testing.T) {
	tr := notebook.Trial{Failure: errors.ErrUnsupported.Error()}
	fail(&tr, "", &notebook.Confined{CPUs: "1", Escape: notebook.EscapeLeft})
	if tr.Failure != errors.ErrUnsupported.Error() {
		t.Errorf("%q", tr.Failure)
	}
	tr.Failure = ""
	fail(&tr, "its load: ", &notebook.Confined{CPUs: "1", Escape: notebook.EscapeLeft})
	if !strings.HasPrefix(tr.Failure, "its load: one of its processes left") {
		t.Errorf("%q", tr.Failure)
	}
}
