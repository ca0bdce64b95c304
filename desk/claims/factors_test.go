package claims

import (
	"fmt"
	"slices"
	"testing"

	"tare/desk/data"
	"tare/notebook"
	"tare/notebook/notebooktest"
	"tare/yamlfile"
)

// A claim can select by every factor, and can compare treatments that differ only in that factor.
func TestAClaimByEveryFactor(t *testing.T) {
	var all []notebooktest.Pair
	w := newWorld(host("h", 8))
	for _, p := range notebooktest.Pairs() {
		all = append(all, p)
		for _, of := range []notebook.Treatment{p.A, p.B} {
			r := w.add(0, "cpu vm qemu kvm pinned large", 1)
			if r.Treatment = of; of.HostCores > 0 {
				r.HostCores = of.HostCores
			}
		}
	}
	rows := w.sum.Rows
	for i, p := range all {
		w.sum.Rows = rows[2*i : 2*i+2]
		key, named := p.Factor.Name, func(value string) string { return fmt.Sprintf("%q", value) }
		if key == notebook.FactorHostCores.Name {
			named = func(value string) string { return fmt.Sprintf("{at_least: %s, at_most: %[1]s}", value) }
		}
		about := "platform: vm, "
		if key == notebook.FactorPlatform.Name {
			about = ""
		}
		text := fmt.Sprintf(`{paper: p, groups: [{name: g, claims: [{id: a, place: b, finding: c, hypothesis: {ratio: {of: {workload: cpu, %s%s: %s}, to: {%s: %s}, higher: 2%%}}}]}]}`,
			about, key, named(p.Of[0]), key, named(p.Of[1]))
		claims, err := Parse("f.yaml", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		of, to := claims[0].Hypothesis.Ratio.Of, claims[0].Hypothesis.Ratio.To
		j := newJudge(w.sum)
		if got := j.rows(of); len(got) != 1 || got[0].Treatment.ID != p.A.ID {
			t.Errorf("%s: %d rows are chosen by %s", key, len(got), p.Of[0])
		}
		if ps := j.pairs(of, of.over(to)); len(ps) != 1 || ps[0].x.Treatment.ID != p.A.ID || ps[0].y.Treatment.ID != p.B.ID {
			t.Errorf("%s: %d pairs, want one", key, len(ps))
		}
	}
}

// A new factor needs a key of selectors.
func TestEveryFactorIsAKeyOfSelectors(t *testing.T) {
	keys := yamlfile.Keys(&Selector{})
	for _, f := range notebook.Factors {
		if !slices.Contains(keys, f.Name) {
			t.Errorf("a selector has no key %s", f.Name)
		}
	}
}

// A factor under params replaces the same factor as a key, and the reverse. It is kept if the other selector names another workload.
func TestAFactorAmongTheParameters(t *testing.T) {
	cold, named := map[string]Values{"cache": {"cold"}}, map[string]string{"cache": "cold"}
	for _, c := range []struct {
		of, to Selector
		want   map[string]string
	}{
		{Selector{Params: cold}, Selector{Cache: Values{"warm"}}, map[string]string{"cache": "warm"}},
		{Selector{Cache: Values{"warm"}}, Selector{Params: cold}, named},
		{Selector{Workload: Values{"a"}, Params: map[string]Values{"cache": {"cold"}, "n": {"1"}, "rate": {"8"}}}, Selector{Workload: Values{"b"}}, named},
		{Selector{Workload: Values{"a"}, Rate: Values{"8"}}, Selector{Workload: Values{"b"}}, map[string]string{"rate": "8"}},
	} {
		if got := c.of.over(c.to).Named(); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%+v over %+v: %v, want %v", c.to, c.of, got, c.want)
		}
	}
	own := &data.Row{Treatment: notebook.Treatment{Workload: "cassandra", Params: map[string]string{"rate": "1000"}}}
	for _, c := range []struct {
		s    Selector
		want bool
	}{
		{Selector{Params: map[string]Values{"rate": {"1000"}}}, true},
		{Selector{Params: map[string]Values{"rate": {"10", "1000"}}}, true},
		{Selector{Params: map[string]Values{"rate": {"10", "100"}}}, false},
		{Selector{Rate: Values{"1000"}}, false}, // here the rate is a parameter of the workload
		{Selector{Params: cold}, true},
		{Selector{Cache: Values{"cold"}}, false}, // the treatment has no cache
	} {
		if got := c.s.hasRow(own); got != c.want {
			t.Errorf("%+v: %v, want %v", c.s, got, c.want)
		}
	}
}

// The error for a value that a factor cannot have names the line.
func TestAFactorThatCannotBe(t *testing.T) {
	for of, want := range map[string]string{
		"cache: hot":                         `f.yaml:2: ratio: of: cache: "hot": must be one of cold, warm`,
		"accelerator: xen":                   `f.yaml:2: ratio: of: accelerator: "xen": must be one of kvm, kvm-emulated, tcg`,
		"neighbours: many":                   `f.yaml:2: ratio: of: neighbours: "many": must be none, cpu:N, io:N or work:N`,
		"rate: fast":                         `f.yaml:2: ratio: of: rate: "fast": must be a number (1/s), such as 8, or 8 or more`,
		"rate: x or more":                    `f.yaml:2: ratio: of: rate: "x or more" must begin with a number, as in 1 or more`,
		"cache: cold, params: {cache: warm}": `f.yaml:2: ratio: of: cache: is under params too: remove one of the two`,
		"colour: red":                        `f.yaml:2: unknown key colour: the keys here are workload, `,
		"rate: 8 or more":                    "",
	} {
		text := "{paper: p, groups: [{name: g, claims: [{id: a, place: b, finding: c, hypothesis: {ratio: {\n of: {workload: cpu, platform: vm, " + of + "}, higher: 2%}}}]}]}"
		_, err := Parse("f.yaml", []byte(text))
		if want == "" && err != nil || want != "" && (err == nil || len(err.Error()) < len(want) || err.Error()[:len(want)] != want) {
			t.Errorf("%s: %v\nwant %s", of, err, want)
		}
	}
}
