package study

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"testing"

	"tare/notebook"
	"tare/stats"
)

// The rule decides only from the record. A treatment whose ratio is known takes part in no more rounds, and bare metal stays as long as
// another treatment is compared with it.
func TestRuleReadsTheRecord(t *testing.T) {
	s := fakePlan(notebook.Design{Floor: 3, Cap: 50, Decide: 0.02, Trials: 1}, bmT, aaT, cnT, vmT).Study
	s.Treatments[3].Accelerator = notebook.KVM // an emulated one would have a fixed number of rounds
	p := newProgress(&s)
	times := map[string][]float64{
		s.Treatments[0].ID: {1, 1.01, 0.99, 1, 1.01, 0.99},
		s.Treatments[1].ID: {1.01, 0.99, 1, 1, 0.99, 1.01},
		s.Treatments[2].ID: {1.5, 1.51, 1.49, 1.5, 1.52, 1.48}, // already decided: slower
		s.Treatments[3].ID: {0.7, 1.4, 1, 0.8, 1.2, 1.1},
	}
	for round := range 6 {
		for id, all := range times {
			p.take(notebook.Trial{Treatment: id, Round: round, Value: all[round]})
		}
	}
	r := rule{p, baselinesOf(&s)}
	if open, known := r.open(2); known || len(open) != 4 || !open[0].fixed {
		t.Errorf("before the floor: %+v, known: %v; want all", open, known)
	}
	open, known := r.open(6)
	if known || len(open) != 1 || open[0].of[0] != s.Treatments[3].ID || len(open[0].of) != 3 || open[0].rounds != 44 || !open[0].atMost {
		t.Errorf("%+v, known: %v; want the VM with bare metal and the A/A control, for 44 rounds at most", open, known)
	}
	p.gaveUp[s.Treatments[3].ID] = true
	if open, known := r.open(6); !known || len(open) != 0 {
		t.Errorf("%+v, known: %v; want nothing", open, known)
	}
}

// Bare metal and its A/A control are the baseline together, with the trials of both. The control itself is compared with bare metal only.
func TestRuleCountsBothArms(t *testing.T) {
	s := fakePlan(notebook.Design{Floor: 3, Cap: 50, Precision: 0.02, Seen: 20, Trials: 1}, bmT, aaT, cnT).Study
	p := newProgress(&s)
	for i, all := range [][]float64{{1, 1.02, 0, 1.01}, {1.04, 0, 1.02, 1.03}, {1.2, 1.21, 1.22, 1.23}} {
		for round, v := range all {
			if v > 0 {
				p.take(notebook.Trial{Treatment: s.Treatments[i].ID, Round: round, Value: v, ElapsedS: 1})
			}
		}
	}
	r := rule{p, baselinesOf(&s)}
	for i, want := range map[int]stats.Quotient{
		1: stats.Ratio([]float64{1.04, 1.03}, []float64{1, 1.01}, r.confidence(s.Treatments[1], 4)),
		2: stats.Ratio([]float64{1.2, 1.21, 1.22, 1.23}, []float64{1.02, 1.02, 1.02, 1.02}, r.confidence(s.Treatments[2], 4)),
	} {
		if q, ok := r.ratio(s.Treatments[i], 4); !ok || q != want {
			t.Errorf("%s: %+v, want %+v", s.Treatments[i].ID, q, want)
		}
	}
	if seen := r.seen(0, r.arms(s.Treatments[2])...); seen != (stats.Seen{Trials: 2, Seconds: 2}) {
		t.Errorf("both arms did %+v in the first round", seen)
	}
}

// Without a baseline there is no ratio, and not one of 0.
func TestNoRatioWithoutABaseline(t *testing.T) {
	s := fakePlan(notebook.Design{Floor: 3, Cap: 50, Trials: 1}, cnT).Study
	r := rule{newProgress(&s), baselinesOf(&s)}
	if q, ok := r.ratio(s.Treatments[0], 4); ok || q.HasInterval() {
		t.Errorf("%+v, %t", q, ok)
	}
}

// With a reference, the rule is about the ratios to it. The reference takes part in each round of the others, and bare metal counts with both arms.
func TestRuleIsAboutTheReference(t *testing.T) {
	setT := cnT
	setT.Provisioning = notebook.Pinned
	s := fakePlan(notebook.Design{Floor: 3, Cap: 50, Precision: 0.02, Trials: 1, Against: "cn:quota"}, bmT, aaT, cnT, setT).Study
	bm, aa, quota, set := s.Treatments[0].ID, s.Treatments[1].ID, s.Treatments[2].ID, s.Treatments[3].ID
	p := newProgress(&s)
	// The host's speed changes between rounds. The set is as steady as the quota; both are unsteady as compared with bare metal.
	for id, all := range map[string][]float64{
		bm:    {1, 1.3, 1, 1.3, 1, 1.3},
		aa:    {1.1, 1.2, 1.1, 1.2, 1.1, 1.2},
		quota: {1.2, 1.21, 1.2, 1.21, 1.2, 1.21},
		set:   {1.1, 1.11, 1.1, 1.11, 1.1, 1.11},
	} {
		for round, v := range all {
			p.take(notebook.Trial{Treatment: id, Round: round, Value: v, ElapsedS: 1})
		}
	}
	r := rule{p, baselinesOf(&s)}
	for i, id := range []string{bm, aa, quota, set} {
		if g := r.group(id); g != quota {
			t.Errorf("%s is in the group of %s", id, g)
		}
		if want := []string{quota, bm, quota, quota}[i]; r.against[id].ID != want {
			t.Errorf("%s is compared with %s, want %s", id, r.against[id].ID, want)
		}
	}
	both := []float64{1.05, 1.25, 1.05, 1.25, 1.05, 1.25}
	if q, _ := r.ratio(s.Treatments[0], 6); q != stats.Ratio(both, []float64{1.2, 1.21, 1.2, 1.21, 1.2, 1.21}, r.confidence(s.Treatments[0], 6)) {
		t.Errorf("bare metal: %+v", q)
	}
	open, known := r.open(6)
	var of [][]string
	for _, q := range open {
		of = append(of, q.of)
	}
	if want := [][]string{{bm, quota}, {aa, bm}}; known || !reflect.DeepEqual(of, want) {
		t.Errorf("open: %v, want bare metal with the reference, and the control with bare metal", of)
	}
	s.Design.Precision, s.Design.Decide = 0, 0.02
	open, _ = r.open(6)
	if len(open) != 1 || !slices.Equal(open[0].of, []string{bm, aa, quota}) {
		t.Errorf("deciding: %+v, want bare metal, with its control and the reference", open)
	}
}

// The files that decide about rounds and trials use the record and the cost of guests. They use neither the run nor the lab.
func TestDecisionsUseOnlyTheRecord(t *testing.T) {
	for _, name := range []string{"progress.go", "order.go", "choose.go", "rule.go", "goal.go", "allocation.go", "preparation.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if id, is := n.(*ast.Ident); is && slices.Contains([]string{"Run", "Plan", "Lab", "Book", "Watcher", "attempt"}, id.Name) {
				t.Errorf("%s uses %s", name, id.Name)
			}
			return true
		})
	}
}
