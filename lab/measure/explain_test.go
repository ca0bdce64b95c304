package measure

import (
	"maps"
	"math"
	"testing"

	"tare/notebook"
)

func near(a, b map[string]float64) bool {
	for k := range maps.Keys(b) {
		if math.Abs(a[k]-b[k]) > 1e-9 {
			return false
		}
	}
	return len(a) == len(b)
}

func TestSplitAndNested(t *testing.T) {
	u, s, c, th, h := notebook.WallUser, notebook.WallSystem, notebook.WallCore, notebook.WallThrottled, notebook.WallHypervisor
	type wall = map[string]float64
	for _, c := range []struct{ got, want wall }{
		{Split(wall{u: 4, c: 1}, 3, 1), wall{u: 3, s: 1, c: 1}},
		{Split(wall{u: 4}, 0, 0), wall{u: 4}},
		{Split(wall{u: 4}, 0, 2), wall{u: 0, s: 4}},
		{Split(wall{u: 2, s: 1}, 1, 1), wall{u: 1, s: 2}},
		{Split(nil, 1, 1), nil},
		{Nested(wall{u: 3, s: 1, th: 1}, wall{u: 1, c: 2}), wall{u: 1.5, s: 0.5, th: 1, h: 2}},
		{Nested(wall{u: 3, s: 1}, wall{c: 3, th: 3}), wall{u: 0, s: 0, h: 4}}, // no more than all running time
		{Nested(wall{u: 3, s: 1}, wall{u: 4}), wall{u: 3, s: 1, h: 0}},
		{Nested(wall{u: 3}, nil), wall{u: 3}}, // the host saw nothing, so nothing is known of it
		{Nested(wall{c: 3}, wall{c: 3}), wall{c: 3}},
	} {
		if !near(c.got, c.want) {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
	in := wall{u: 1, s: 2}
	if Nested(Split(in, 1, 1), wall{c: 1}); !near(in, wall{u: 1, s: 2}) {
		t.Errorf("what was given was changed: %v", in)
	}
}

// An account from counters sums to the elapsed time, and is exact for simple loads.
func TestCounted(t *testing.T) {
	for _, c := range []struct {
		name                                           string
		elapsed, cores, run, delay, throttled, blocked float64
		want                                           map[string]float64
	}{
		{"one thread runs", 1, 1, 1, 0, 0, 0, map[string]float64{notebook.WallUser: 1}},
		{"one thread of half a core", 2, 0.5, 1, 1, 0.98, 0, map[string]float64{notebook.WallUser: 1, notebook.WallThrottled: 0.98, notebook.WallCore: 0.02}},
		{"one thread and a busy host", 2, 1, 1, 1, 0, 0, map[string]float64{notebook.WallUser: 1, notebook.WallCore: 1}},
		{"one thread sleeps", 2, 1, 0.5, 0.1, 0, 0, map[string]float64{notebook.WallUser: 0.5, notebook.WallCore: 0.1, notebook.WallOther: 1.4}},
		{"one thread reads a disk", 2, 1, 0.5, 0, 0, 1, map[string]float64{notebook.WallUser: 0.5, notebook.WallBlock: 1, notebook.WallOther: 0.5}},
		{"sixteen threads on two cores", 1, 2, 2, 14, 0, 0, map[string]float64{notebook.WallUser: 1}},
		{"four threads on four cores, a quarter of the quota", 1, 4, 1, 3, 3, 0, map[string]float64{notebook.WallUser: 0.25, notebook.WallThrottled: 0.75}},
		{"eight threads on two cores, half of the quota", 1, 2, 1, 7, 1, 0, map[string]float64{notebook.WallUser: 0.5, notebook.WallThrottled: 0.5}},
		{"clocks that differ", 1, 1, 1.001, 0.001, 0, 0.1, map[string]float64{notebook.WallUser: 1}},
	} {
		got, sum := Counted(c.elapsed, c.cores, c.run, c.delay, c.throttled, c.blocked), 0.0
		for key, v := range got {
			sum += v
			if math.Abs(v-c.want[key]) > 1e-9 {
				t.Errorf("%s: %s is %v, want %v", c.name, key, v, c.want[key])
			}
		}
		if math.Abs(sum-c.elapsed) > 1e-9 {
			t.Errorf("%s: the sum is %v, want %v", c.name, sum, c.elapsed)
		}
	}
}
