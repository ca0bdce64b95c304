package memory

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tare/desk/show/showtest"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// The memory that only the last guest has is drawn as a waterfall, with what could be saved of it. The paper's numbers stand next
// to a VM's.
func TestWaterfall(t *testing.T) {
	f := notebooktest.WeighedInside()
	f.Study.Treatments = slices.DeleteFunc(f.Study.Treatments, func(t notebook.Treatment) bool {
		return t.Platform == notebook.BM || t.Provisioning == notebook.Vanilla
	})
	figs := showtest.Figures(t, f, &Kind)
	of := figs[len(figs)-1]
	if !strings.HasSuffix(of.File, "-alone") {
		t.Fatalf("the last figure is %s", of.File)
	}
	for _, want := range []string{"the emulator 23.0 (23)", "RAM: the guest’s files 55.0 (55)", "RAM: reserved at boot 2.0", "RAM: nobody’s there 2.0", "all of it 91.0 (91)",
		"duplicates −26.0 (26)", "not used of late −2.0", "at best 63.0 (58)", "Docker, CPU set (--cpuset-cpus): anonymous "} {
		if !strings.Contains(of.Alt, want) {
			t.Errorf("in words it lacks %q: %s", want, of.Alt)
		}
	}
	// The figure itself shows the same numbers, and all its parts lie inside it.
	svg := string(of.SVG())
	for _, want := range []string{">RAM: reserved at boot<", ">55.0 (55)<", ">−26.0 (26)<", ">at best<", ">63.0 (58)<"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the figure lacks %q", want)
		}
	}
	for _, m := range regexp.MustCompile(`M(-?[0-9.]+)`).FindAllStringSubmatch(svg, -1) {
		if x, err := strconv.ParseFloat(m[1], 64); err != nil || x < 0 || x > 440 {
			t.Errorf("a line begins at %s", m[1])
		}
	}
}
