package words

import (
	"maps"
	"slices"
	"strings"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// mostEffects is the greatest number of comparisons between values of parameters that a first answer has. A study with more has figures.
const mostEffects = 12

// effect compares two values of a parameter, all else being equal.
type effect struct {
	param, value, first string
	with                string // the values of the other parameters that vary
	of, to              *data.Row
}

// effects say what the values of each parameter change in the reference environment, against its first value. Intervals are corrected for
// their number.
func effects(s *data.Summary) ResultBlock {
	rows := slices.DeleteFunc(slices.Clone(s.Rows), func(r *data.Row) bool {
		return !r.IsBaseline() || !r.Representative || r.Kind != "" || r.Rounds == 0 || r.Treatment.AA || r.Metric.Name != "execution time"
	})
	all := effectsOf(rows)
	if len(all) == 0 || len(all) > mostEffects {
		return ResultBlock{}
	}
	b := ResultBlock{Head: "What the parameters change: " + Environment(all[0].of.Treatment, false)}
	for _, of := range data.Together(all, func(x, y effect) bool {
		return x.of.Treatment.Workload == y.of.Treatment.Workload && x.param == y.param && x.value == y.value
	}) {
		var each []string
		for _, e := range of {
			q := s.Ratio(e.of, e.to, stats.Alpha/float64(len(all)))
			if !stats.Finite(q.Value) {
				continue
			}
			text := beyond(q, e.of)
			if e.with != "" {
				text += " with " + e.with
			}
			each = append(each, text)
		}
		if len(each) > 0 {
			e := of[0]
			b.Lines = append(b.Lines, ResultItem{Label: Plain(e.param + "=" + e.value), Text: "vs " + Plain(e.first) + ": " + strings.Join(each, "; ")})
		}
	}
	if len(b.Lines) > 0 && len(all) > 1 {
		b.Lines = append(b.Lines, ResultItem{Text: "All " + Count(len(all), "interval") + " hold together with " + Percent(1-stats.Alpha, 0) + " confidence."})
	}
	return b
}

// effectsOf are the pairs of rows of the same work that differ in one parameter.
func effectsOf(rows []*data.Row) (all []effect) {
	for _, of := range data.Together(rows, func(a, b *data.Row) bool {
		at, bt := a.Treatment, b.Treatment
		at.Params, bt.Params = nil, nil
		return a.HostID == b.HostID && a.HostCores == b.HostCores && a.LoadFrom == b.LoadFrom && a.Metric == b.Metric &&
			at.SameWork(bt) && at.Instance.SameSize(bt.Instance)
	}) {
		vary := slices.DeleteFunc(slices.Sorted(maps.Keys(of[0].Treatment.Params)), func(name string) bool {
			return !slices.ContainsFunc(of, func(r *data.Row) bool { return r.Treatment.Params[name] != of[0].Treatment.Params[name] })
		})
		for _, param := range vary {
			for i, r := range of {
				differs := func(o *data.Row) bool { return differIn(param, o.Treatment, r.Treatment) }
				first := slices.IndexFunc(of[:i], func(o *data.Row) bool { return differs(o) && o.Image == r.Image })
				if first < 0 { // the parameter may be one of the image
					first = slices.IndexFunc(of[:i], differs)
				}
				if first >= 0 {
					all = append(all, effect{param, r.Treatment.Params[param], of[first].Treatment.Params[param], except(param, vary, r), r, of[first]})
				}
			}
		}
	}
	return all
}

// differIn says whether two treatments have the same parameters except for this one.
func differIn(param string, a, b notebook.Treatment) bool {
	x, y := maps.Clone(a.Params), maps.Clone(b.Params)
	if x[param] == y[param] {
		return false
	}
	delete(x, param)
	delete(y, param)
	return maps.Equal(x, y)
}

// except writes the values of the parameters without one of them.
func except(param string, vary []string, r *data.Row) string {
	with := map[string]string{}
	for _, name := range vary {
		with[name] = r.Treatment.Params[name]
	}
	delete(with, param)
	return Plain(notebook.Assignments(with, ", "))
}
