package notebook

import (
	"math"
	"strings"
	"testing"
)

func TestNeighboursAsText(t *testing.T) {
	for text, want := range map[string]Neighbours{
		"none": {}, "cpu:3": {CPU: 3}, "io:2": {IO: 2}, "cpu:1+io:1": {CPU: 1, IO: 1}, "work:7": {Work: 7}, "work:2/core": {PerCore: 2, Busy: BusyWork}, "cpu:4/core": {PerCore: 4, Busy: BusyCPU}, "io:1/core": {PerCore: 1, Busy: BusyIO},
	} {
		n, err := ParseNeighbours(text)
		if err != nil || n != want || n.Text() != text {
			t.Errorf("%s: %+v, %v, written %s", text, n, err, n.Text())
		}
	}
	for _, text := range []string{"", "cpu", "cpu:-1", "cpu:1+cpu:2", "cpu:1/core+io:1", "cpu:0/core", "cpu:1001", "gpu:1", "cpu:1 ", "cpu:1/CORE"} {
		if n, err := ParseNeighbours(text); err == nil {
			t.Errorf("%q: %+v", text, n)
		}
	}
}

func FuzzParseNeighbours(f *testing.F) {
	f.Add("cpu:1+io:1")
	f.Add("cpu:4/core")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseNeighbours(text)
		if err != nil {
			return
		}
		if again, err := ParseNeighbours(n.Text()); err != nil || again != n {
			t.Errorf("%q: %+v, written %q: %+v, %v", text, n, n.Text(), again, err)
		}
		if len(n.Kinds(3)) > 3*MostNeighbours {
			t.Errorf("%q: %d neighbours", text, len(n.Kinds(3)))
		}
	})
}

// As the paper counts on its four cores: one a core, two, four, six are 4, 8, 16 and 24 guests in all, the measured one among them.
func TestDensityCountsTheMeasuredGuest(t *testing.T) {
	for perCore, all := range map[int]int{1: 4, 2: 8, 4: 16, 6: 24} {
		kinds := Neighbours{PerCore: perCore, Busy: BusyCPU}.Kinds(4)
		if len(kinds) != all-1 || strings.Join(kinds, "") != strings.Repeat(BusyCPU, all-1) {
			t.Errorf("%d a core: %q", perCore, kinds)
		}
	}
}

func TestFiguresOfNeighbours(t *testing.T) {
	c := &NeighbourActivity{OwnS: 1, Neighbours: []Neighbour{{Busy: BusyCPU, RanS: 1}, {Busy: BusyCPU, RanS: 3}, {Busy: BusyIO, Moved: 7}}}
	f := c.Figures()
	if f[OwnShare.Name] != 0.5 || math.Abs(f[Fairness.Name]-0.8) > 1e-12 {
		t.Errorf("%v", f)
	}
	io := &NeighbourActivity{Neighbours: []Neighbour{{Busy: BusyIO, Moved: 5}, {Busy: BusyIO, Moved: 5}}}
	if f := io.Figures(); len(f) != 1 || f[Fairness.Name] != 1 {
		t.Errorf("%v", f)
	}
	if f := (*NeighbourActivity)(nil).Figures(); len(f) != 0 {
		t.Errorf("of none: %v", f)
	}
}
