package data

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tare/notebook"
)

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
		return nil, fmt.Errorf("--against %s: %d environments fit for %s at %s; name one of: %s", notebook.ReferenceText(r.opt.Baseline), len(found), at.Workload, at.Instance.Name, r.names(found))
	}
	if !found[0].row.Representative {
		return nil, fmt.Errorf("--against %s: it was emulated here, and its figures do not represent its cost; name one of: %s", notebook.ReferenceText(r.opt.Baseline), r.names(r.order))
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
		ok, err := notebook.Refers(r.opt.Baseline, o.row.Treatment, o.row.HostCores, t.row.Treatment)
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, o)
		}
	}
	// Of several that differ in what was not said, the row's own come first.
	found = notebook.OwnFirst(r.opt.Baseline, notebook.FactorNetwork, found, func(o *tally) bool { return o.row.Treatment.Network == t.row.Treatment.Network })
	found = notebook.OwnFirst(r.opt.Baseline, notebook.FactorHostCores, found, func(o *tally) bool { return o.row.HostCores == t.row.HostCores })
	return found, nil
}

// known is the error that no row has the reference; nil where one has, or none was named.
func (r *reader) known() error {
	if len(r.opt.Baseline) == 0 || len(r.order) == 0 || slices.ContainsFunc(r.order, func(t *tally) bool { return t.row.Baseline != "" }) {
		return nil
	}
	return fmt.Errorf("--against %s: no such environment was measured; name one of: %s", notebook.ReferenceText(r.opt.Baseline), r.names(r.order))
}

// CheckReference returns an error if the reference fits no treatment of a study on a host, or several for one treatment. It finds before the
// first run what Read would report after the last.
func CheckReference(s notebook.Study, h notebook.Host, reference notebook.Reference) error {
	if len(reference) == 0 {
		return nil
	}
	own := slices.DeleteFunc(slices.Clone(s.Treatments), func(t notebook.Treatment) bool { return t.AA || !t.Representative() })
	some := false
	for _, t := range own {
		found, err := s.References(reference, t, h.Cores)
		if err != nil {
			return err
		}
		if len(found) > 1 {
			return fmt.Errorf("--against %s: %d environments fit for %s at %s; name one of: %s", notebook.ReferenceText(reference), len(found), t.Workload, t.Instance.Name, names(found, reference))
		}
		some = some || len(found) == 1
	}
	if some {
		return nil
	}
	return fmt.Errorf("--against %s: the study %s measures no such environment; name one of: %s", notebook.ReferenceText(reference), s.Name, names(own, reference))
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
		return len(Distinct(all, func(t notebook.Treatment) string { return notebook.ReferenceKeysOf(t)[key] })) > 1
	}
	texts := Distinct(all, func(t notebook.Treatment) string {
		m := notebook.ReferenceKeysOf(t)
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
			return value == "" || !slices.Contains(notebook.ReferenceKeys, key) || !differ(key)
		})
		return notebook.ReferenceText(m)
	})
	const most = 20
	if len(texts) > most {
		texts = append(texts[:most], fmt.Sprintf("and %d more", len(texts)-most))
	}
	return strings.Join(texts, "; ")
}
