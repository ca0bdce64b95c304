package claims

import (
	"slices"
	"testing"
)

// A paper's container is not a rung of the isolation ladder. A claim about rungs names them.
func TestIsolation(t *testing.T) {
	w := newWorld(host("h", 2))
	w.add(0, "cpu bm 1/1GB", 1)
	w.add(0, "cpu cn docker vanilla 1/1GB", 1)
	w.add(0, "cpu cn docker vanilla full 1/1GB", 1)
	w.add(0, "cpu cn layers cgroup 1/1GB", 1)
	w.add(0, "cpu cn layers quota 1/1GB", 1)
	j := &judge{sum: w.sum}
	for _, c := range []struct {
		s    Selector
		want []string
	}{
		{Selector{Platform: Values{"cn"}}, []string{"cn docker vanilla"}},
		{Selector{Isolation: Values{"full"}}, []string{"cn docker vanilla full"}},
		{Selector{Engine: Values{"layers"}, Isolation: Values{"cgroup", "quota"}}, []string{"cn layers up to cgroup", "cn layers up to quota"}},
		{Selector{Platform: Values{"bm"}}, []string{"bm"}},
	} {
		var got []string
		for _, r := range j.rows(c.s) {
			got = append(got, Named(r.Treatment))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v chooses %q, want %q", c.s, got, c.want)
		}
	}
	of := Selector{Engine: Values{"layers"}, Isolation: Values{"quota"}}
	for _, c := range []struct {
		to   Selector
		want string
	}{{Selector{Isolation: Values{"cgroup"}}, "cn layers up to cgroup"}, {Selector{Platform: Values{"bm"}}, "bm"}} {
		if ps := j.pairs(of, of.over(c.to)); len(ps) != 1 || Named(ps[0].y.Treatment) != c.want {
			t.Errorf("%+v to %+v: %d pairs", of, c.to, len(ps))
		}
	}
}
