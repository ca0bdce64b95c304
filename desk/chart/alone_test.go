package chart

import (
	"slices"
	"strings"
	"testing"

	"tare/internal/golden"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// What the last guest alone has is drawn as a waterfall, with what could be saved of it, and the paper's numbers stand beside a VM's.
func TestAlone(t *testing.T) {
	f := notebooktest.WeighedInside()
	f.Study.Treatments = slices.DeleteFunc(f.Study.Treatments, func(t notebook.Treatment) bool {
		return t.Platform == notebook.BM || t.Provisioning == notebook.Vanilla
	})
	_, figs := figuresOf(t, f)
	of := figs[len(figs)-1]
	if !strings.HasSuffix(of.File, "-alone") {
		t.Fatalf("the last figure is %s", of.File)
	}
	for _, want := range []string{"the emulator 23.0 (23)", "RAM: the guest’s files 55.0 (55)", "RAM: reserved at boot 2.0", "RAM: nobody’s there 2.0", "all of it 91.0 (91)",
		"duplicates −26.0 (26)", "not used of late −2.0", "at best 63.0 (58)", "container, docker, pinned: anonymous "} {
		if !strings.Contains(of.Alt, want) {
			t.Errorf("in words it lacks %q: %s", want, of.Alt)
		}
	}
	golden.Check(t, "alone.svg", of.SVG())
}
