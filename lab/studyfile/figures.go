package studyfile

import (
	"fmt"
	"maps"
	"slices"

	"tare/lab/workload"
	"tare/notebook"
)

// drawable returns an error for a figure that the report could not draw: the study lacks its workload, or the workload lacks its axis.
// The user should learn that before days of measuring, not after them.
func (s *Spec) drawable(works []Work) error {
	for _, f := range s.Figures {
		for _, a := range f.Axes {
			if err := measurable(a, works); err != nil {
				return fmt.Errorf("study %s: figure %q: axis %q: %w", s.Name, f.Name, a.Name, err)
			}
		}
		if len(f.Axes) > 0 {
			continue
		}
		if f.OfWorkloads() {
			if err := s.together(f, works); err != nil {
				return fmt.Errorf("study %s: figure %q: %w", s.Name, f.Name, err)
			}
			continue
		}
		var names, axes, metrics []string
		for _, u := range works {
			names = append(names, u.Workload.Name)
			if u.Workload.Name != f.Workload {
				continue
			}
			if axes == nil {
				axes = append(notebook.FactorNames(notebook.Factor.IsField), slices.Sorted(maps.Keys(u.Treatment().Assigned()))...)
			}
			metrics = nil
			for _, m := range s.shown(u.Workload) {
				metrics = append(metrics, m.Name)
			}
			for k := range f.Params {
				if _, ok := u.Treatment().Assigned()[k]; !ok {
					return fmt.Errorf("study %s: figure %q: params: workload %s has no parameter %q", s.Name, f.Name, f.Workload, k)
				}
			}
		}
		switch {
		case axes == nil:
			slices.Sort(names)
			return fmt.Errorf("study %s: figure %q: workload: %q: must be a workload of this study: %s", s.Name, f.Name, f.Workload, oneOf(slices.Compact(names)))
		case f.Metric != "" && !slices.Contains(metrics, f.Metric):
			return fmt.Errorf("study %s: figure %q: metric: %q: must be %s", s.Name, f.Name, f.Metric, oneOf(metrics))
		case f.Metric != "" && f.By == notebook.FactorIsolation.Name:
			return fmt.Errorf("study %s: figure %q: metric: %q: an isolation ladder always shows the workload's first metric: leave it out", s.Name, f.Name, f.Metric)
		case !slices.Contains(axes, f.By):
			return fmt.Errorf("study %s: figure %q: by: %q: must be %s", s.Name, f.Name, f.By, oneOf(axes))
		}
	}
	return nil
}

// together returns an error for a figure of all workloads that cannot be drawn: one of them lacks its metric, or all lack a parameter that it
// names.
func (s *Spec) together(f notebook.Figure, works []Work) error {
	for _, u := range works {
		if f.Metric != "" && !slices.ContainsFunc(s.shown(u.Workload), func(m notebook.Metric) bool { return m.Name == f.Metric }) {
			return fmt.Errorf("metric: %q: workload %s does not have it", f.Metric, u.Workload.Name)
		}
	}
	for k := range f.Params {
		if !slices.ContainsFunc(works, func(u Work) bool { _, has := u.Treatment().Assigned()[k]; return has }) {
			return fmt.Errorf("params: no workload of this study has a parameter %q", k)
		}
	}
	return nil
}

// shown are the metrics that a figure of a workload can show: the first, and the others whose better direction is known.
func (s *Spec) shown(w *workload.Workload) []notebook.Metric {
	first, also := w.Metric.Metric, w.Secondary()
	if s.config != nil {
		first, also = s.drawn(w)
	}
	return append([]notebook.Metric{first}, slices.DeleteFunc(slices.Clone(also), func(m notebook.Metric) bool { return m.Better == "" })...)
}

// drawn are the metrics that the study would measure if its figures named all of them.
func (s *Spec) drawn(w *workload.Workload) (first notebook.Metric, also []notebook.Metric) {
	_, all := s.config.Metrics(w, nil)
	var names []string
	for _, m := range all {
		names = append(names, m.Name)
	}
	return s.config.Metrics(w, names)
}

// measurable returns an error if the study measures nothing for a figure's axis.
func measurable(a notebook.Axis, works []Work) error {
	why := fmt.Errorf("workload: %q: must be a workload of this study", a.Workload)
	for _, u := range works {
		if u.Workload.Name != a.Workload {
			continue
		}
		has := func(m notebook.Metric) bool { return m.Name == a.Metric && m.Better != "" }
		switch {
		case a.Metric != "" && !slices.ContainsFunc(u.Workload.Secondary(), has):
			return fmt.Errorf("metric: %q: must be a secondary metric of workload %s, with better: lower or better: higher", a.Metric, a.Workload)
		case a.Metric == "" && !u.Workload.Metric.Directed():
			return fmt.Errorf("metric: the metric of workload %s has no direction (better: none), so it cannot be on an axis", a.Workload)
		case !hasAll(u.Treatment().Assigned(), a.Params):
			why = fmt.Errorf("params: %s: the study does not run workload %s with these parameters", notebook.Label("", a.Params), a.Workload)
		default:
			return nil
		}
	}
	return why
}

// hasAll reports whether all contains every parameter of some, with the same value.
func hasAll(all, some map[string]string) bool {
	for k, v := range some {
		if all[k] != v {
			return false
		}
	}
	return true
}
