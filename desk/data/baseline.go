package data

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tare/notebook"
)

// baselineKeys are the keys that every treatment has, in the order in which a reference is written. The other factors and the parameters follow
// in alphabetical order.
var baselineKeys = notebook.FactorNames(notebook.Factor.IsField)

// keysOf returns a treatment's factors and parameters by the keys of a reference.
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

// baseline is the row that a row's ratio is relative to; nil where there is none: bare metal, or the environment that was named, was not
// measured with the row's work.
func (r *reader) baseline(t *tally) (*tally, error) {
	if len(r.opt.Baseline) == 0 {
		return r.bareMetal(t), nil
	}
	found, err := r.candidates(t)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	if len(found) > 1 {
		at := t.row.Treatment
		return nil, fmt.Errorf("--against %s: %d environments fit for %s at %s; name one of: %s", ReferenceText(r.opt.Baseline), len(found), at.Workload, at.Instance.Name, r.names(found))
	}
	if !found[0].row.Representative {
		return nil, fmt.Errorf("--against %s: it was emulated here, and its figures do not represent its cost; name one of: %s", ReferenceText(r.opt.Baseline), r.names(r.order))
	}
	return found[0], nil
}

// candidates are the rows that the reference of a row may be.
func (r *reader) candidates(t *tally) (found []*tally, err error) {
	for _, o := range r.order {
		// The group has the parameters in it, which a reference may choose.
		if o.row.HostID != t.row.HostID || o.row.Treatment.AA || o.row.Treatment.Workload != t.row.Treatment.Workload || o.row.Metric != t.row.Metric || o.row.Image != t.row.Image {
			continue
		}
		ok, err := matches(o.row.Treatment, o.row.HostCores, t.row.Treatment, r.opt.Baseline)
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
	return found, nil
}

// known is the error that no row has the reference; nil where one has, or none was named.
func (r *reader) known() error {
	if len(r.opt.Baseline) == 0 || len(r.order) == 0 || slices.ContainsFunc(r.order, func(t *tally) bool { return t.row.Baseline != "" }) {
		return nil
	}
	return fmt.Errorf("--against %s: no such environment was measured; name one of: %s", ReferenceText(r.opt.Baseline), r.names(r.order))
}

// CheckReference returns an error if no treatment of a study on a host is the reference, an Options.Baseline. It knows before the first run
// what Read would say after the last.
func CheckReference(s notebook.Study, h notebook.Host, reference map[string]string) error {
	if len(reference) == 0 {
		return nil
	}
	own := slices.DeleteFunc(slices.Clone(s.Treatments), func(t notebook.Treatment) bool { return t.AA || !t.Representative() })
	for _, t := range own {
		if is, err := matches(t, h.Cores(t), t, reference); is || err != nil {
			return err
		}
	}
	return fmt.Errorf("--against %s: the study %s measures no such environment; name one of: %s", ReferenceText(reference), s.Name, names(own, reference))
}

// names are the environments of rows that can be a reference, as it is named, each once.
func (r *reader) names(rows []*tally) string {
	var all []notebook.Treatment
	for _, t := range rows {
		if !t.row.Treatment.AA && t.row.Representative {
			all = append(all, t.row.Treatment)
		}
	}
	return names(all, r.opt.Baseline)
}

// names are the environments of treatments, as a reference names them, each once. said is the reference that the user gave.
func names(all []notebook.Treatment, said map[string]string) string {
	differ := func(key string) bool {
		return len(Distinct(all, func(t notebook.Treatment) string { return keysOf(t)[key] })) > 1
	}
	texts := Distinct(all, func(t notebook.Treatment) string {
		m := keysOf(t)
		maps.DeleteFunc(m, func(key, value string) bool {
			if _, is := said[key]; is {
				return value == ""
			}
			switch key {
			case notebook.FactorPlatform.Name, notebook.FactorEngine.Name, notebook.FactorProvisioning.Name:
				return value == ""
			case notebook.FactorInstance.Name:
				return true
			}
			return value == "" || !slices.Contains(baselineKeys, key) || !differ(key)
		})
		return ReferenceText(m)
	})
	const most = 20
	if len(texts) > most {
		texts = append(texts[:most], fmt.Sprintf("and %d more", len(texts)-most))
	}
	return strings.Join(texts, "; ")
}

// matches says whether the treatment o, on a host with so many CPUs online, is the reference that want describes, for a row of the
// treatment t: what want does not say of the instance type, the factors that not all studies have and the parameters is as in t.
func matches(o notebook.Treatment, hostCores int, t notebook.Treatment, want map[string]string) (bool, error) {
	assigned := map[string]string{}
	maps.Copy(assigned, t.Assigned())
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if _, known := assigned[k]; !known && !slices.Contains(baselineKeys, k) {
			return false, fmt.Errorf("--against: unknown key %q; allowed: %s, or a parameter of %s", k, strings.Join(baselineKeys, ", "), t.Workload)
		}
	}
	has := keysOf(o)
	for k, v := range want {
		switch {
		case !slices.Contains(baselineKeys, k):
			assigned[k] = v
		case k == notebook.FactorHostCores.Name && v != "": // all that the host has, too, can be said as a number
			if v != strconv.Itoa(hostCores) {
				return false, nil
			}
		case v != has[k]:
			return false, nil
		}
	}
	_, instance := want[notebook.FactorInstance.Name]
	return (instance || o.Instance.SameSize(t.Instance)) && maps.Equal(o.Assigned(), assigned), nil
}
