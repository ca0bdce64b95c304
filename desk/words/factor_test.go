package words

import (
	"testing"

	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
)

// Every factor has an English name, and different values of a factor differ in words.
func TestEveryFactorHasAName(t *testing.T) {
	for _, p := range notebooktest.Pairs() {
		if factors[p.Factor.Name] == "" {
			t.Errorf("%s has no name", p.Factor.Name)
		}
		on := func(of notebook.Treatment) string {
			return On(p.Factor.Name, &data.Row{Treatment: of, HostCores: of.HostCores, CHR: 1})
		}
		if a, b := on(p.A), on(p.B); a == b || a == "" || b == "" {
			t.Errorf("%s: %q and %q", p.Factor.Name, a, b)
		}
	}
	for name := range factors {
		if _, known := notebook.FactorNamed(name); !known {
			t.Errorf("%s is not a factor", name)
		}
	}
	bm, vm := notebook.Treatment{Platform: notebook.BM}, notebook.Treatment{Platform: notebook.VM}
	for _, c := range []struct {
		axis string
		of   notebook.Treatment
		want string
	}{
		{"kernel", bm, "bare metal"}, {"kernel", vm, "usual kernel"}, {"network", bm, "host’s own"}, {"network", vm, "engine’s own"}, {"neighbours", vm, "alone"},
		{"huge_pages", notebooktest.Treatment("huge_pages=never vm large"), "huge pages never"}, {"segments", notebooktest.Treatment("segments=3 vm large"), "segments 3"},
	} {
		if got := On(c.axis, &data.Row{Treatment: c.of}); got != c.want {
			t.Errorf("%s: %q, want %q", c.axis, got, c.want)
		}
	}
}
