package memory

import (
	"slices"
	"strings"
	"testing"

	"tare/desk/chart"
	"tare/desk/show"
	"tare/desk/show/showtest"
	"tare/desk/words"
	"tare/internal/golden"
	"tare/notebook"
	kind "tare/notebook/kinds/memory"
	"tare/notebook/notebooktest"
)

// Memory is drawn over the number of guests, and what one more guest adds in two parts; the answer is about memory.
func TestFigures(t *testing.T) {
	s := showtest.Read(t, notebooktest.Weighed(), &Kind)
	figs := chart.OfPanels(chart.Panels(s), show.Figures(s)...)
	lines, bars := figs[len(figs)-2], figs[len(figs)-1]
	if !strings.HasSuffix(lines.File, "-guests") || !strings.HasSuffix(bars.File, "-added") {
		t.Fatalf("the figures are %s and %s", lines.File, bars.File)
	}
	for _, want := range []string{"VM, CPU set: 1 23", "VM, CPU set + KSM: 1 18", "Docker, CPU quota (--cpus): 1 1"} {
		if !strings.Contains(lines.Alt, want) {
			t.Errorf("the lines in words lack %q: %s", want, lines.Alt)
		}
	}
	if !strings.Contains(bars.Alt, "anonymous 13") || !strings.Contains(bars.Caption, "From 4 to 8 guests.") {
		t.Errorf("the bars: %s %s", bars.Alt, bars.Caption)
	}
	golden.Check(t, "weighed.txt", []byte(strings.Join(words.Headline(s), "\n")+"\n"))
}

// The figures of one container and a VM.
func TestFiguresDrawn(t *testing.T) {
	f := notebooktest.Weighed()
	f.Study.Treatments = slices.DeleteFunc(f.Study.Treatments, func(t notebook.Treatment) bool {
		return t.Platform == notebook.BM || t.Provisioning == notebook.Vanilla
	})
	figs := showtest.Figures(t, f, &Kind)
	golden.Check(t, "guests.svg", figs[len(figs)-2].SVG())
	golden.Check(t, "added.svg", figs[len(figs)-1].SVG())
}

// A single number of guests gives no line to draw. The bars say that a VM is emulated.
func TestWeightsOfOneNumber(t *testing.T) {
	f := notebooktest.Weighed()
	f.Study.Kind, f.Study.Config = kind.Name, &kind.Config{Guests: []int{8}}
	figs := showtest.Figures(t, f, &Kind)
	for _, fig := range figs {
		if strings.HasSuffix(fig.File, "-guests") || strings.HasSuffix(fig.File, "-added") {
			t.Errorf("%s is drawn", fig.File)
		}
	}
	f = notebooktest.Weighed()
	f.Study.Treatments[4].Accelerator = notebook.TCG
	figs = showtest.Figures(t, f, &Kind)
	if of := figs[len(figs)-2]; !strings.Contains(of.Alt, "VM, CPU set, emulated") || !strings.Contains(of.Caption, "emulator’s own memory") {
		t.Errorf("%s: %s", of.File, of.Caption)
	}
}
