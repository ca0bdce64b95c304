package data

import (
	"math"
	"slices"
	"strings"
	"testing"

	"tare/notebook"
)

func TestWhoBeganIt(t *testing.T) {
	args := []string{"run", "quick"}
	for _, c := range []struct {
		sessions []notebook.Session
		want     []string
	}{
		{nil, nil},
		{[]notebook.Session{{Event: "end", Args: []string{"no"}}, {Event: "start"}, {Event: "start", Args: args}, {Event: "start", Args: []string{"later"}}}, args},
	} {
		if got := began(c.sessions); !slices.Equal(got, c.want) {
			t.Errorf("%q", got)
		}
	}
}

func TestSampleIsBoundedAndKeepsTheEnds(t *testing.T) {
	var s sample
	for i := range 100_000 {
		v := 1 + float64(i%97)/100
		switch i {
		case 77_777:
			v = 50
		case 33_333:
			v = -3
		}
		s.add(Dot{Round: i, Value: v}, 100)
		if len(s.kept) > 200 {
			t.Fatal("more than twice the limit is kept")
		}
	}
	dots := s.pick(100)
	if len(dots) > 100 || len(dots) < 90 || s.of != 100_000 || dots[0].Value != -3 || dots[len(dots)-1].Value != 50 {
		t.Errorf("%d dots of %d, from %v to %v", len(dots), s.of, dots[0], dots[len(dots)-1])
	}
	late := 0
	for _, d := range dots {
		if d.Round >= 50_000 {
			late++
		}
	}
	if late < 40 || late > 60 {
		t.Errorf("%d of %d are of the later half", late, len(dots))
	}
	var few sample
	few.add(Dot{Value: 1}, 100)
	if got := few.pick(100); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

func TestTextsOfAKind(t *testing.T) {
	var x texts
	for _, s := range []string{"off by 1.5 %", "off by 22 %", "killed", "off by 1,000.25 %"} {
		x.add(ofTrial, notebook.TextMessage(s), "")
	}
	if len(x.all) != 2 || x.all[0].count != 3 || x.all[0].First.Text() != "off by 1.5 %" || !x.all[0].Differs || x.commonest() != (Cause{x.all[0].Text, 3, false}) {
		t.Errorf("%+v", x)
	}
	for i := range 2 * maxTexts {
		x.add(ofTrial, notebook.TextMessage(strings.Repeat("a", i+1)), "")
	}
	if len(x.all) != maxTexts || x.dropped == 0 {
		t.Errorf("%d kinds are kept", len(x.all))
	}
}

// A round is whole once its traced trials are done too.
func TestARoundIsWholeWithItsTracedTrials(t *testing.T) {
	study := notebook.Study{Explain: notebook.DefaultTracers, Treatments: []notebook.Treatment{{ID: "bm"}, {ID: "cn"}}}
	for _, c := range []struct {
		trials int
		begun  bool
	}{{1, false}, {2, true}} {
		study.Design.Trials = c.trials
		done := map[cellKey]cellDone{}
		for _, tr := range study.Treatments {
			done[cellKey{tr.ID, 0}] = cellDone{trials: 2, good: 2, traced: 1}
		}
		if got := begun(study, map[int]bool{0: true}, done); got != c.begun {
			t.Errorf("%d traced trials of 1: begun %v", c.trials, got)
		}
	}
}

// What is known of a trial's time without following the scheduler fits into the time that passed.
func TestCoarse(t *testing.T) {
	for _, c := range []struct {
		user, system, throttled, elapsed float64
		want                             [3]float64
	}{
		{1, 0.5, 0.5, 3, [3]float64{1, 0.5, 0.5}},       // one thread, which waited too
		{2, 0, 2, 2, [3]float64{1, 0, 1}},               // two threads under a quota of one core: half of the time each
		{4, 0, 0, 2, [3]float64{2, 0, 0}},               // two cores
		{0, 0, 0, 2, [3]float64{}},                      // nothing is known
		{0.001, 0, 0.999, 1, [3]float64{.001, 0, .999}}, // throttled from the start
	} {
		got := coarse(&notebook.Trial{ElapsedS: c.elapsed, Usage: notebook.Usage{UserS: c.user, SystemS: c.system}, Trace: &notebook.Trace{Figures: map[string]float64{"throttled_s": c.throttled}}})
		for i, k := range []string{notebook.WallUser, notebook.WallSystem, notebook.WallThrottled} {
			if math.Abs(got[k]-c.want[i]) > 1e-12 {
				t.Errorf("%+v: %s is %v, want %v", c, k, got[k], c.want[i])
			}
		}
	}
	service := coarse(&notebook.Trial{ElapsedS: 5, Trace: &notebook.Trace{Figures: map[string]float64{"user_s": 1, "system_s": 2}}})
	if service[notebook.WallUser] != 1 || service[notebook.WallSystem] != 2 {
		t.Errorf("%v", service)
	}
}

// Messages are of one kind if they differ in numbers only, and what a folder holds of them is bounded.
func TestMessagesOfAKind(t *testing.T) {
	var x texts
	for _, m := range []*notebook.Message{
		notebook.Say("exit", "status", 3, "said", "line 12"), notebook.Say("exit", "status", 4, "said", "line 9"), notebook.Say("exit", "status", 3, "said", "other"),
		notebook.Say("of-guest", "guest", 1, "cause", notebook.Say("exit", "status", 3, "said", "")),
	} {
		x.add(ofTrial, m, "")
	}
	if len(x.all) != 3 || x.all[0].count != 2 || !x.all[0].Differs {
		t.Errorf("%+v", x.all)
	}
	deep := notebook.Say("a", "text", strings.Repeat("x", 9999))
	for range 100 {
		deep = notebook.Say("a", "cause", deep)
	}
	args := map[string]any{}
	for i := range 1000 {
		args[strings.Repeat("k", i)] = strings.Repeat("v", 9999)
	}
	for _, m := range []*notebook.Message{deep, {Code: "a", Args: args}, {Code: strings.Repeat("c", 99999)}} {
		if n := len(Bounded(m).String()); n > 20*(maxText+maxText) {
			t.Errorf("%d bytes are kept", n)
		}
	}
}
