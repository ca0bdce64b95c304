package data

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tare/notebook"
)

// baselineKeys are the keys that every treatment has, in the order in which a baseline is written. The other factors and the parameters follow
// in alphabetical order.
var baselineKeys = notebook.FactorNames(notebook.Factor.IsField)

// keysOf returns a treatment's factors and parameters by the keys of a baseline.
func keysOf(t notebook.Treatment) map[string]string {
	m := map[string]string{}
	maps.Copy(m, t.Assigned())
	for _, f := range notebook.Factors {
		if f.IsField() {
			m[f.Name] = f.Of(t)
		}
	}
	return m
}

func checkBaseline(want map[string]string) error {
	for k, v := range want {
		if k == "" {
			return fmt.Errorf("the baseline has %q without a key: expected KEY=VALUE, with a key of %s or a parameter's name", v, strings.Join(baselineKeys, ", "))
		}
	}
	return nil
}

// baseline is the row that a row's ratio is relative to; nil where there is none (bare metal was not measured).
func (r *reader) baseline(t *tally) (*tally, error) {
	if len(r.opt.Baseline) == 0 {
		return r.bareMetal(t), nil
	}
	var found, could []*tally
	for _, o := range r.order {
		// The group has the parameters in it, which a baseline may choose.
		if o.row.HostID != t.row.HostID || o.row.Treatment.AA || o.row.Treatment.Workload != t.row.Treatment.Workload || o.row.Metric != t.row.Metric || o.row.Image != t.row.Image {
			continue
		}
		could = append(could, o)
		ok, err := matches(&o.row, t.row.Treatment, r.opt.Baseline)
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, o)
		}
	}
	// Of several that differ in what was not said, the row's own come first.
	own := func(key string, is func(*tally) bool) {
		if _, said := r.opt.Baseline[key]; !said && slices.ContainsFunc(found, is) {
			found = slices.DeleteFunc(found, func(o *tally) bool { return !is(o) })
		}
	}
	own(notebook.FactorNetwork.Name, func(o *tally) bool { return o.row.Treatment.Network == t.row.Treatment.Network })
	own(notebook.FactorHostCores.Name, func(o *tally) bool { return o.row.HostCores == t.row.HostCores })
	if len(found) == 1 {
		return found[0], nil
	}
	what, list := "matches no treatment", could
	if len(found) > 1 {
		what, list = fmt.Sprintf("matches %d treatments", len(found)), found
	}
	names := Distinct(list, func(o *tally) string { return describe(o.row.Treatment) })
	const most = 20
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("and %d more", len(names)-most))
	}
	return nil, fmt.Errorf("the baseline %s %s for %s; expected one of: %s", Assignments(r.opt.Baseline), what, describe(t.row.Treatment), strings.Join(names, "; "))
}

// matches says whether the row is the baseline that want describes, for a row of the treatment t: what want does not say of
// the instance type, the factors that not all studies have and the parameters is as in t.
func matches(row *Row, t notebook.Treatment, want map[string]string) (bool, error) {
	o := row.Treatment
	assigned := map[string]string{}
	maps.Copy(assigned, t.Assigned())
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if _, known := assigned[k]; !known && !slices.Contains(baselineKeys, k) {
			return false, fmt.Errorf("the baseline has the key %q, which is neither one of %s nor a parameter of %s", k, strings.Join(baselineKeys, ", "), t.Workload)
		}
	}
	has := keysOf(o)
	for k, v := range want {
		switch {
		case !slices.Contains(baselineKeys, k):
			assigned[k] = v
		case k == notebook.FactorHostCores.Name && v != "": // all that the host has, too, can be said as a number
			if v != strconv.Itoa(row.HostCores) {
				return false, nil
			}
		case v != has[k]:
			return false, nil
		}
	}
	_, instance := want[notebook.FactorInstance.Name]
	return (instance || o.Instance.SameSize(t.Instance)) && maps.Equal(o.Assigned(), assigned), nil
}

// describe writes a treatment the way that --baseline is written.
func describe(t notebook.Treatment) string {
	m := keysOf(t)
	maps.DeleteFunc(m, func(k, v string) bool { return v == "" && slices.Contains(baselineKeys, k) })
	return Assignments(m)
}

// Assignments writes keys and values as --baseline has them: the known keys in their order, then the others in the alphabet's.
func Assignments(m map[string]string) string {
	keys := slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(Place(baselineKeys, a), Place(baselineKeys, b)), cmp.Compare(a, b))
	})
	var parts []string
	for _, k := range keys {
		parts = append(parts, k+"="+m[k])
	}
	return strings.Join(parts, ",")
}
