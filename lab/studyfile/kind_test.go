package studyfile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"tare/lab/measure"
	"tare/lab/workload"
	"tare/notebook"
	"tare/workloads"
)

// fakeKind is a kind of study for tests.
type fakeKind struct {
	measure.Defaults
	factors []measure.Factor
	cannot  error // Accepts'
}

func (k *fakeKind) Record() any                                         { return nil }
func (k *fakeKind) Identity([]*workload.Ready) []any                    { return nil }
func (k *fakeKind) Subject(measure.Bench, measure.Cell) measure.Subject { return nil }
func (k *fakeKind) Metrics(*workload.Workload, []string) (first notebook.Metric, also []notebook.Metric) {
	return first, nil
}
func (k *fakeKind) Factors() []measure.Factor        { return k.factors }
func (k *fakeKind) Accepts(*workload.Workload) error { return k.cannot }

// The values of a kind's factors stand among a workload's parameters, each with each; a parameter of that name is the workload's.
func TestAKindsFactorsMakeTreatments(t *testing.T) {
	k := &fakeKind{factors: []measure.Factor{{Name: "addresses", Values: []string{"fixed", "random"}}, {Name: "huge_pages", Values: []string{"host", "never"}}, {Name: "none"}}}
	s := &Spec{measure: &measure.Kind{Name: "sizes"}, config: k}
	all, err := s.each(map[string]string{"size": "1"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, params := range all {
		got = append(got, notebook.Assignments(params, ","))
	}
	want := "addresses=fixed,huge_pages=host,size=1 addresses=fixed,huge_pages=never,size=1 addresses=random,huge_pages=host,size=1 addresses=random,huge_pages=never,size=1"
	if strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
	if _, err := s.each(map[string]string{"addresses": "16"}); err == nil || err.Error() != `sizes: the workload has a parameter "addresses" of its own: one without it was expected` {
		t.Errorf("%v", err)
	}
	for _, s := range []*Spec{{}, {measure: s.measure, config: &fakeKind{}}} {
		if all, err := s.each(map[string]string{"size": "1"}); err != nil || len(all) != 1 || len(all[0]) != 1 {
			t.Errorf("%v, %v; want the one", all, err)
		}
	}
}

const sizes = "name: s\nworkloads: [{name: cpu}]\nplatforms: [{platform: bm}]\ninstances: [1/1GB]\ndesign: {trials: 1, warmups: 0}\nsizes: {}\n"

// A kind's rules refuse what does not go with it, and say why.
func TestWhatAKindDoesNotGoWith(t *testing.T) {
	k := &fakeKind{}
	registry := measure.Registry{{Name: "sizes", Rules: measure.Rules{Untraced: "a size takes no time", LoadHere: "a size is of this host"}, Part: measure.Part{Read: func(n *yaml.Node, _ []string) (measure.Config, error) {
		if n.Kind != yaml.MappingNode {
			return nil, measure.Wrong("how", "a mapping was expected")
		}
		return k, nil
	}}}}
	s, err := Parse("s.yaml", []byte(sizes), ".", Known{kinds, registry})
	if err != nil {
		t.Fatal(err)
	}
	for want, ch := range map[string]Choices{
		"study s: sizes: --explain: a size takes no time: leave it out":     {Explain: []string{"io"}},
		"study s: sizes: --load-from: a size is of this host: leave it out": {LoadFrom: "ssh://other"},
		"": {},
	} {
		if _, err := s.Ask(workloads.FS, ch); fmt.Sprint(err) != want && (err != nil || want != "") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	k.cannot = errors.New("has no size")
	if _, err := s.Ask(workloads.FS, Choices{}); err == nil || err.Error() != "study s: sizes: workload cpu has no size" {
		t.Errorf("%v", err)
	}
	if _, err := Parse("s.yaml", []byte(strings.Replace(sizes, "{}", "[1]", 1)), ".", Known{kinds, registry}); err == nil || err.Error() != "s.yaml:6: sizes: how: a mapping was expected" {
		t.Errorf("%v", err)
	}
	u, err := ParseUntil(" p95 < 1.5x ", known.Kinds)
	if err != nil || !u.Seeks() {
		t.Fatalf("%+v, %v", u, err)
	}
	k.cannot = nil
	if _, err := s.Ask(workloads.FS, Choices{Until: u}); err == nil || !strings.Contains(err.Error(), "--until 'p95 < 1.5x' seeks by timing work, and the study measures sizes: in place of it") {
		t.Errorf("%v", err)
	}
	for _, text := range []string{"p95 < 1x", "p95 > 1.5x", "p5 < 2x", "p95 < 1.5", "mean < 2x"} {
		if u, err := ParseUntil(text, known.Kinds); err == nil || !strings.Contains(err.Error(), "was expected") {
			t.Errorf("%q: %+v, %v", text, u, err)
		}
	}
}
