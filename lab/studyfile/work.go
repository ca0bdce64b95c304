package studyfile

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"tare/lab/workload"
	"tare/notebook"
)

// each gives a workload's parameters with each of the treatments' neighbours among them, as Spec.each does with a kind's factors.
func (n Neighbours) each(full map[string]string) (all []map[string]string, err error) {
	if len(n) == 0 {
		return []map[string]string{full}, nil
	}
	if _, taken := full[notebook.ParamNeighbours]; taken {
		return nil, fmt.Errorf("neighbours: the workload has a parameter %q of its own: one without it was expected", notebook.ParamNeighbours)
	}
	for _, each := range n {
		params := maps.Clone(full)
		params[notebook.ParamNeighbours] = each.Text()
		all = append(all, params)
	}
	return all, nil
}

// Work is one workload with one combination of its parameters.
type Work struct {
	Workload *workload.Workload
	Params   map[string]string
	Open     bool // its length may be chosen

	use Use
}

// Label names the work in a study.
func (w Work) Label() string { return notebook.Label(w.Workload.Name, w.Params) }

// orMore follows the least value of the parameter that is a workload's length.
const orMore = " or more"

// works returns each workload with each combination of its parameters.
func (s *Spec) works(shipped fs.FS) (all []Work, err error) {
	from := map[string]string{}
	for i, u := range s.Workloads {
		var w *workload.Workload
		switch {
		case u.Port != 0:
			w, err = u.service(shipped)
		case u.isOwn():
			w = u.own()
		}
		if err != nil {
			return nil, s.located(err, "workloads", i)
		}
		if w != nil {
			w.Image.WrittenIn(s.Base)
		} else if w, err = workload.Find(shipped, u.Name, s.Base); err != nil {
			return nil, s.located(err, "workloads", i)
		}
		// The workload's name distinguishes treatments.
		if other, ok := from[w.Name]; ok && other != u.Name {
			return nil, fmt.Errorf("study %s: the workloads %s and %s are both named %s: rename one in its %s", s.Name, other, u.Name, w.Name, workload.File)
		}
		from[w.Name] = u.Name
		combos := []map[string]string{{}}
		for _, name := range slices.Sorted(maps.Keys(u.Params)) {
			if n := len(combos) * len(u.Params[name]); n > notebook.MaxTreatments {
				return nil, s.located(fmt.Errorf("params: %d combinations; a study may have at most %d configurations", n, notebook.MaxTreatments), "workloads", i, "params")
			}
			var more []map[string]string
			for _, c := range combos {
				for _, v := range u.Params[name] {
					n := maps.Clone(c)
					n[name] = v
					more = append(more, n)
				}
			}
			combos = more
		}
		for _, c := range combos {
			open := false
			if least, ok := strings.CutSuffix(c[w.Length], orMore); ok {
				c[w.Length], open = least, true
			}
			full, err := w.Resolve(c)
			if err != nil {
				return nil, s.located(err, "workloads", i, "params")
			}
			if open {
				full[w.Length] = cmp.Or(s.Lengths[notebook.Label(w.Name, full)], full[w.Length])
			}
			if len(u.Command) > 0 {
				full["command"] = brief(u.Command) // another command is another treatment
			}
			if len(u.Ask) > 0 {
				full["load"] = brief(u.Ask)
			}
			each, err := s.each(full)
			if err == nil {
				each, err = u.having(each)
			}
			if err != nil {
				return nil, s.located(err, "workloads", i)
			}
			for _, full := range each {
				company, err := s.neighbours(u).each(full)
				if err != nil {
					return nil, s.located(err, "workloads", i)
				}
				for _, full := range company {
					all = append(all, Work{w, full, open, u})
				}
			}
		}
	}
	return all, nil
}

// each combines a workload's parameters with every value of the kind's factors. The factors become parameters, so that everything
// that distinguishes treatments by their parameters distinguishes these, and a guest is compared with bare metal that has the same
// values.
func (s *Spec) each(full map[string]string) (all []map[string]string, err error) {
	all = []map[string]string{full}
	if s.config == nil {
		return all, nil
	}
	for _, of := range s.config.Factors() {
		if len(of.Values) == 0 {
			continue
		}
		if _, taken := full[of.Name]; taken {
			return nil, fmt.Errorf("%s: the workload has a parameter %q of its own: one without it was expected", s.measure.Name, of.Name)
		}
		var more []map[string]string
		for _, params := range all {
			for _, v := range of.Values {
				n := maps.Clone(params)
				n[of.Name] = v
				more = append(more, n)
			}
		}
		all = more
	}
	return all, nil
}

// having adds the devices to parameters, as each does with a kind's factors.
func (u Use) having(all []map[string]string) (out []map[string]string, err error) {
	if len(u.Devices) == 0 {
		return all, nil
	}
	for _, params := range all {
		if _, taken := params[notebook.ParamDevices]; taken {
			return nil, fmt.Errorf("devices: the workload has a parameter %q of its own: one without it was expected", notebook.ParamDevices)
		}
		params = maps.Clone(params)
		params[notebook.ParamDevices] = strings.Join(u.Devices, ",")
		out = append(out, params)
	}
	return out, nil
}
