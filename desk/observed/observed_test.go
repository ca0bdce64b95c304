package observed_test

import (
	"math"
	"testing"

	"tare/desk/observed"
	"tare/notebook"
)

func part(seconds float64, wall map[string]float64) notebook.ObservedSlice {
	return notebook.ObservedSlice{Seconds: seconds, Wall: wall}
}

// Only what is steady and worth a line holds a target back, and a last part of no time changes no interval.
func TestHeld(t *testing.T) {
	o := &notebook.Observation{}
	for i := range 20 {
		luck := 0.0
		if i == 3 {
			luck = 1
		}
		o.Slices = append(o.Slices, part(1, map[string]float64{notebook.WallThrottled: 0.25 + 0.01*float64(i%2), notebook.WallCore: 0.005, notebook.WallBlock: luck * 0.4,
			notebook.WallSleep: 1 - 0.255 - 0.01*float64(i%2) - luck*0.4}))
	}
	o.Slices = append(o.Slices, part(0.001, map[string]float64{notebook.WallMemory: 0.001}))
	a := observed.From(o)
	if len(a.Held) != 1 || a.Held[0].Key != notebook.WallThrottled {
		t.Errorf("held by %+v", a.Held)
	}
	s := a.Of(notebook.WallThrottled).Share
	if math.Abs(s.Value-0.255) > 1e-4 || !(s.Low > 0.25 && s.High < 0.26) {
		t.Errorf("throttled %+v", s)
	}
	sum := 0.0
	for _, s := range a.Account {
		sum += s.Share.Value
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("the shares add up to %v", sum)
	}
	if idle := a.Idling(); math.Abs(idle-(1-0.255-0.005-0.02)) > 1e-3 {
		t.Errorf("idle for %v", idle)
	}
}

// One part has no interval, and names no cause.
func TestOnePart(t *testing.T) {
	a := observed.From(&notebook.Observation{Slices: []notebook.ObservedSlice{part(1, map[string]float64{notebook.WallThrottled: 1})}})
	if len(a.Held) != 0 || a.Of(notebook.WallThrottled).Share.HasInterval() {
		t.Errorf("%+v", a.Account)
	}
	if a := observed.From(&notebook.Observation{}); len(a.Account) != 0 {
		t.Errorf("%+v", a.Account)
	}
}
