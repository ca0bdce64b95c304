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

// The advice is the change that cuts the 99th percentile most, or one that is as good and asks less of the host; and none whose interval reaches
// what was measured.
func TestAdvice(t *testing.T) {
	change := func(limit, period float64, cpus int, p99, high float64) notebook.ObservedChange {
		return notebook.ObservedChange{Limit: limit, PeriodS: period, CPUs: cpus, Times: notebook.ObservedTimes{P99: notebook.ObservedTime{Seconds: p99, High: high}}}
	}
	none, twice, short, set := change(0, 0, 2, 0.060, 0.07), change(2, 0.1, 2, 0.062, 0.07), change(1, 0.01, 2, 0.065, 0.07), change(0, 0, 1, 0.12, 0.13)
	for name, c := range map[string]struct {
		changes []notebook.ObservedChange
		want    int // of the changes; -1: none
	}{
		"the one that asks least":  {[]notebook.ObservedChange{none, twice, short, set}, 2},
		"more than as good":        {[]notebook.ObservedChange{none, twice, change(1, 0.01, 2, 0.08, 0.085), set}, 1},
		"an interval that reaches": {[]notebook.ObservedChange{change(2, 0.1, 2, 0.06, 0.11)}, -1},
		"too little":               {[]notebook.ObservedChange{change(2, 0.1, 2, 0.095, 0.099)}, -1},
		"worse":                    {[]notebook.ObservedChange{set}, -1},
		"CPUs of its own, as many": {[]notebook.ObservedChange{none, change(0, 0, 1, 0.061, 0.07)}, 1},
	} {
		o := &notebook.Observation{Quota: &notebook.ObservedQuota{Cores: 1, PeriodS: 0.1}, Replay: &notebook.ObservedReplay{Seen: notebook.ObservedTimes{P99: notebook.ObservedTime{Seconds: 0.1}}, Changes: c.changes}}
		a := observed.From(o).Advice
		switch {
		case a == nil:
			t.Errorf("%s: no advice", name)
		case c.want < 0 && a.Change != nil:
			t.Errorf("%s: %+v", name, a.Change)
		case c.want >= 0 && (a.Change == nil || *a.Change != c.changes[c.want]):
			t.Errorf("%s: %+v", name, a.Change)
		}
	}
	if a := observed.From(&notebook.Observation{}).Advice; a != nil {
		t.Errorf("nothing was replayed: %+v", a)
	}
}
