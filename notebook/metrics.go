package notebook

import (
	"slices"
	"strings"
)

// MetricNames give each of several names of metrics another name. A name may have %s for its arguments; the other name then has as many, in
// the same order. No name matches two of them.
type MetricNames map[string]string

// earlierNames are the names of each kind's metrics in folders of format 1, with their keys. Those of the empty kind are of any study whose
// guests have neighbours.
var earlierNames = map[string]MetricNames{"": {"own share": OwnShare.Name}}

// Renames adds the earlier names of the metrics of a kind of study. It is called while the program starts, by a variable of the package that
// has the kind's record.
func Renames(kind string, names MetricNames) bool {
	earlierNames[kind] = names
	return true
}

// MetricKey is the key of a metric in studies of a kind, given the key or the earlier name; a name that is neither is returned as it is.
func MetricKey(kind, name string) string {
	if key, is := earlierNames[kind].Of(name); is {
		return key
	}
	key, _ := earlierNames[""].Of(name)
	return key
}

// Of is the other name for a name, or the name itself if it has no other.
func (n MetricNames) Of(name string) (other string, is bool) {
	if other, is := n[name]; is {
		return other, true
	}
	for pattern, other := range n {
		if args := arguments(pattern, name); args != nil {
			for _, arg := range args {
				other = strings.Replace(other, "%s", arg, 1)
			}
			return other, true
		}
	}
	return name, false
}

// arguments are what a text has for each %s of a pattern; nil if it does not match, or if the pattern has none.
func arguments(pattern, text string) (args []string) {
	before, _, has := strings.Cut(pattern, "%s")
	rest, matches := strings.CutPrefix(text, before)
	if !has || !matches {
		return nil
	}
	parts := strings.Split(pattern, "%s")
	for i, part := range parts[1:] {
		at := strings.LastIndex(rest, part)
		if last := i == len(parts)-2; at < 0 || last && at+len(part) != len(rest) {
			return nil
		}
		args, rest = append(args, rest[:at]), rest[at+len(part):]
	}
	return args
}

// rename gives the metrics of a study of format 1 their keys. Names that authors of workloads gave to metrics stay: a study of a kind has
// only the kind's metrics and those of neighbours, and the names of the latter are last.
func (s *Study) rename() {
	kind := earlierNames[s.Kind]
	if s.Kind == "" {
		kind = nil
	}
	for w, m := range s.Metrics {
		m.Name, _ = kind.Of(m.Name)
		s.Metrics[w] = m
	}
	for w, also := range s.Also {
		neighbours := slices.ContainsFunc(s.Treatments, func(t Treatment) bool { return t.Workload == w && FactorNeighbours.Of(t) != "" })
		for i := range also {
			var is bool
			if also[i].Name, is = kind.Of(also[i].Name); !is && neighbours && i == len(also)-2 {
				also[i].Name, _ = earlierNames[""].Of(also[i].Name)
			}
		}
	}
	for i := range s.Figures {
		f := &s.Figures[i]
		f.Metric, _ = kind.Of(f.Metric)
		for j := range f.Axes {
			f.Axes[j].Metric, _ = kind.Of(f.Axes[j].Metric)
		}
	}
}

// metricsOf are the names of the metrics of a treatment's trials.
type metricsOf struct {
	own     map[string]bool // as the study has them
	earlier []MetricNames   // others that trials may have: an earlier Tare may have begun the folder
}

// metrics are the names of metrics by treatment, without treatments whose metrics never had other names.
func (s *Study) metrics() map[string]metricsOf {
	all := map[string]metricsOf{}
	for _, t := range s.Treatments {
		m := metricsOf{own: map[string]bool{s.Metrics[t.Workload].Name: true}}
		if names := earlierNames[s.Kind]; s.Kind != "" && names != nil {
			m.earlier = append(m.earlier, names)
		}
		if FactorNeighbours.Of(t) != "" {
			m.earlier = append(m.earlier, earlierNames[""])
		}
		if m.earlier == nil {
			continue
		}
		for _, also := range s.Also[t.Workload] {
			m.own[also.Name] = true
		}
		all[t.ID] = m
	}
	return all
}

// rename gives the trial's metrics their keys.
func (t *Trial) rename(m metricsOf) {
	for name, v := range t.Figures {
		if m.own[name] {
			continue
		}
		for _, names := range m.earlier {
			if key, is := names.Of(name); is {
				delete(t.Figures, name)
				t.Figures[key] = v
				break
			}
		}
	}
}
