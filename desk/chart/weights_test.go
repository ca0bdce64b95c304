package chart

import (
	"slices"
	"strings"
	"testing"

	"tare/desk/data"
	"tare/desk/words"
	"tare/internal/golden"
	"tare/notebook"
	memorykind "tare/notebook/kinds/memory"
	"tare/notebook/notebooktest"
)

func figuresOf(t *testing.T, f *notebooktest.Folder) (*data.Summary, []Figure) {
	t.Helper()
	s, err := data.Read([]string{f.Write(t)}, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s, OfPanels(Panels(s))
}

// Memory is drawn over the number of guests, and what one more adds in its two parts; the answer speaks of memory.
func TestWeights(t *testing.T) {
	s, figs := figuresOf(t, notebooktest.Weighed())
	lines, bars := figs[len(figs)-2], figs[len(figs)-1]
	if !strings.HasSuffix(lines.File, "-guests") || !strings.HasSuffix(bars.File, "-added") {
		t.Fatalf("the figures are %s and %s", lines.File, bars.File)
	}
	for _, want := range []string{"VM, qemu, pinned: 1 23", "VM, qemu, pinned + KSM: 1 18", "container, docker, vanilla: 1 1"} {
		if !strings.Contains(lines.Alt, want) {
			t.Errorf("the lines in words lack %q: %s", want, lines.Alt)
		}
	}
	if !strings.Contains(bars.Alt, "anonymous 13") || !strings.Contains(bars.Caption, "From 4 to 8 guests.") {
		t.Errorf("the bars: %s %s", bars.Alt, bars.Caption)
	}
	st := words.Summary(s).Statements[0]
	golden.Check(t, "weighed.txt", []byte(strings.Join(append([]string{st.Lead}, st.Findings...), "\n")+"\n"))
}

// What is drawn, of one container and a VM.
func TestWeightsDrawn(t *testing.T) {
	f := notebooktest.Weighed()
	f.Study.Treatments = slices.DeleteFunc(f.Study.Treatments, func(t notebook.Treatment) bool {
		return t.Platform == notebook.BM || t.Provisioning == notebook.Vanilla
	})
	_, figs := figuresOf(t, f)
	golden.Check(t, "guests.svg", figs[len(figs)-2].SVG())
	golden.Check(t, "added.svg", figs[len(figs)-1].SVG())
}

// Of one number of guests there is nothing to draw a line through, and of one VM that is emulated it is said.
func TestWeightsOfOneNumber(t *testing.T) {
	f := notebooktest.Weighed()
	f.Study.Kind, f.Study.Config = memorykind.Name, &memorykind.Config{Guests: []int{8}}
	_, figs := figuresOf(t, f)
	for _, fig := range figs {
		if strings.HasSuffix(fig.File, "-guests") || strings.HasSuffix(fig.File, "-added") {
			t.Errorf("%s is drawn", fig.File)
		}
	}
	f = notebooktest.Weighed()
	f.Study.Treatments[4].Accelerator = notebook.TCG
	_, figs = figuresOf(t, f)
	if of := figs[len(figs)-2]; !strings.Contains(of.Alt, "VM, qemu, pinned (emulated)") || !strings.Contains(of.Caption, "emulator’s own memory") {
		t.Errorf("%s: %s", of.File, of.Caption)
	}
}
