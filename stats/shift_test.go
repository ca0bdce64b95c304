package stats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tare/stats"
)

// runs is a history of n runs that vary by 1 %. From the run at on, they take more by a share.
func runs(r *rand.Rand, n, at int, more float64) (values []float64) {
	for i := range n {
		v := 0.01 * r.NormFloat64()
		if i >= at {
			v += math.Log1p(more)
		}
		values = append(values, v)
	}
	return values
}

// looks says whether any look at the growing history finds a shift.
func looks(values []float64, among int) bool {
	for n := range len(values) + 1 {
		if found, _ := stats.Shifts(values[:n], among); len(found) > 0 {
			return true
		}
	}
	return false
}

// In histories of 40 runs with a standard deviation of 1 %, 3 % more is found within three runs in at least 90 of 100. Where nothing changes, none of
// the looks after each run finds something in 95 of 100.
func TestShifts(t *testing.T) {
	r := rand.New(rand.NewPCG(40, 5))
	const histories = 4000
	found, wrong := 0, 0
	for range histories {
		at := 20 + r.IntN(18) // with at least three runs after it
		values := runs(r, 40, at, 0.03)
		for n := at + 1; n <= at+3; n++ {
			if all, _ := stats.Shifts(values[:n], 1); slices.ContainsFunc(all, func(s stats.Shift) bool { return s.At >= at-2 && s.After > s.Before }) {
				found++
				break
			}
		}
		if looks(runs(r, 40, 40, 0), 1) {
			wrong++
		}
	}
	t.Logf("of %d histories a change was found within three runs in %d, and one where there is none in %d", histories, found, wrong)
	if found < histories*90/100 || wrong > histories*5/100 {
		t.Error("too few are found, or too many are wrong")
	}
}

// Levels are told with their means, in the order of time, and what is around them is the spread.
func TestShiftsOfSeveralLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(40, 6))
	values := slices.Concat(runs(r, 20, 20, 0), runs(r, 20, 0, 0.05), runs(r, 15, 0, 0.02))
	all, spread := stats.Shifts(values, 1)
	if len(all) != 2 || all[0].At != 20 || all[1].At != 40 {
		t.Fatalf("%+v", all)
	}
	if math.Abs(all[0].After-0.05) > 0.01 || math.Abs(all[1].After-0.02) > 0.01 || math.Abs(spread-0.01) > 0.003 {
		t.Errorf("%+v, spread %g", all, spread)
	}
}

// A single odd value, a short history, equal values and those that are no numbers have no shift.
func TestNoShifts(t *testing.T) {
	odd := runs(rand.New(rand.NewPCG(1, 1)), 30, 30, 0)
	odd[29], odd[12] = 0.2, -0.2
	for name, values := range map[string][]float64{
		"none": nil, "one": {1}, "short": {0, 0, 0, 9, 9, 9}, "odd": odd, "equal": make([]float64, 40), "equal logarithms": slices.Repeat([]float64{math.Log(12)}, 40), "equal and small": slices.Repeat([]float64{math.Log(1.02)}, 41),
		"not a number": append(make([]float64, 20), math.NaN()),
	} {
		if all, _ := stats.Shifts(values, 1); len(all) > 0 {
			t.Errorf("%s: %+v", name, all)
		}
	}
	for _, few := range [][]float64{nil, {1}} {
		if _, spread := stats.Shifts(few, 1); !math.IsNaN(spread) {
			t.Error(spread)
		}
	}
}

// A step of values that do not vary is one shift.
func TestAShiftWithoutNoise(t *testing.T) {
	all, spread := stats.Shifts(append(slices.Repeat([]float64{math.Log(3)}, 17), slices.Repeat([]float64{math.Log(7)}, 13)...), 1)
	if len(all) != 1 || all[0].At != 17 || spread > 1e-9 {
		t.Errorf("%+v, %g", all, spread)
	}
}

// Long histories without a change stay without one.
func TestShiftsOfLongHistories(t *testing.T) {
	r := rand.New(rand.NewPCG(40, 9))
	wrong := 0
	const histories = 600
	for range histories {
		if looks(runs(r, 200, 200, 0), 1) {
			wrong++
		}
	}
	t.Logf("%d of %d", wrong, histories)
	if wrong > histories*9/100 {
		t.Error(wrong)
	}
}

// Among many histories that are looked at together a change must be larger.
func TestShiftsAmongMany(t *testing.T) {
	r := rand.New(rand.NewPCG(40, 7))
	wrong := 0
	for range 200 {
		for range 50 {
			if looks(runs(r, 40, 40, 0), 50) {
				wrong++
				break
			}
		}
	}
	if wrong > 200*5/100 {
		t.Error(wrong)
	}
}
