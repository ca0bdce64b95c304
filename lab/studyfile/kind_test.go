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

// Every value of a factor is combined with every value of the others, in the order of the study: the kind's factors, devices, neighbours. A
// workload's parameter must not have the name of a factor.
func TestFactorsOfAKind(t *testing.T) {
	k := &fakeKind{factors: []measure.Factor{
		{Of: notebook.FactorAddresses, Values: []string{"fixed", "random"}}, {Of: notebook.Factor{Name: "own"}, Values: []string{"a", "b"}}, {Of: notebook.FactorRoot},
	}}
	s := &Spec{measure: &measure.Kind{Name: "sizes"}, config: k, Neighbours: Neighbours{{}, {CPU: 1}}}
	all, err := s.crossed(Use{Devices: []string{"v.com/gpu=0", "v.com/gpu=1"}}, map[string]string{"size": "1"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, factors := range all {
		got = append(got, factors["addresses"]+factors["own"]+factors["neighbours"])
		if len(factors) != 4 || factors["devices"] != "v.com/gpu=0,v.com/gpu=1" {
			t.Errorf("%v", factors)
		}
	}
	want := "fixedanone fixedacpu:1 fixedbnone fixedbcpu:1 randomanone randomacpu:1 randombnone randombcpu:1"
	if strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
	for name, key := range map[string]string{"addresses": "sizes", "devices": "devices", "neighbours": "neighbours"} {
		wrong := fmt.Sprintf("%s: the workload has its own parameter %q: use a workload without it", key, name)
		if _, err := s.crossed(Use{Devices: []string{"v.com/gpu=0"}}, map[string]string{name: "16"}); err == nil || err.Error() != wrong {
			t.Errorf("%v, want %s", err, wrong)
		}
	}
	for _, s := range []*Spec{{}, {measure: s.measure, config: &fakeKind{}}} {
		if all, err := s.crossed(Use{}, map[string]string{"rate": "1"}); err != nil || len(all) != 1 || all[0] != nil {
			t.Errorf("%v, %v; want one combination without factors", all, err)
		}
	}
}

const sizes = "name: s\nworkloads: [{name: cpu}]\nplatforms: [{platform: bm}]\ninstances: [1/1GB]\ndesign: {trials: 1, warmups: 0}\nsizes: {}\n"

// A kind's rules refuse choices that do not suit it, and say why.
func TestKindRefusesChoices(t *testing.T) {
	k := &fakeKind{}
	registry := measure.Registry{{Name: "sizes", Rules: measure.Rules{Untraced: "a size has no time", LoadHere: "a size needs this host"}, Part: measure.Part{Read: func(n *yaml.Node, _ []string) (measure.Config, error) {
		if n.Kind != yaml.MappingNode {
			return nil, measure.Wrong("how", "must be a mapping")
		}
		return k, nil
	}}}}
	s, err := Parse("s.yaml", []byte(sizes), ".", Known{kinds, registry})
	if err != nil {
		t.Fatal(err)
	}
	for want, ch := range map[string]Choices{
		"study s: sizes: --explain: a size has no time: leave it out":       {Explain: []string{"io"}},
		"study s: sizes: --load-from: a size needs this host: leave it out": {LoadFrom: "ssh://other"},
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
	if _, err := Parse("s.yaml", []byte(strings.Replace(sizes, "{}", "[1]", 1)), ".", Known{kinds, registry}); err == nil || err.Error() != "s.yaml:6: sizes: how: must be a mapping" {
		t.Errorf("%v", err)
	}
	u, err := ParseLimit(" p95 < 1.5x ", known.Kinds)
	if err != nil || !u.Seeks() {
		t.Fatalf("%+v, %v", u, err)
	}
	k.cannot = nil
	if _, err := s.Ask(workloads.FS, Choices{Until: u}); err == nil || !strings.Contains(err.Error(), "--limit 'p95 < 1.5x' needs timed work, and the study measures sizes: instead") {
		t.Errorf("%v", err)
	}
	for _, text := range []string{"p95 < 1x", "p95 > 1.5x", "p5 < 2x", "p95 < 1.5", "mean < 2x"} {
		if u, err := ParseLimit(text, known.Kinds); err == nil || !strings.HasSuffix(err.Error(), ": must be an objective such as 'p95 < 1.5x', with p10 to p99 and more than 1x") {
			t.Errorf("%q: %+v, %v", text, u, err)
		}
	}
}
