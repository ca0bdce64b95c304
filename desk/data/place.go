package data

import (
	"slices"

	"tare/notebook"
	"tare/stats"
)

// Networks says whether the treatments of a workload differ in how they are connected, measured or left out: then each
// is named with it. Bare metal has no choice and does not count.
func (s *Summary) Networks(workload string) bool {
	first, any := "", false
	differs := func(t notebook.Treatment) bool {
		if t.Workload != workload || t.Platform == notebook.BM {
			return false
		}
		if !any {
			first, any = t.Network, true
		}
		return t.Network != first
	}
	return slices.ContainsFunc(s.Rows, func(r *Row) bool { return differs(r.Treatment) }) ||
		slices.ContainsFunc(s.LeftOut, func(l LeftOut) bool { return differs(l.Treatment) })
}

// Online says how many of a host's CPUs were online, of how many, where that must be said (say): not all of them were,
// or in another row of the workload not all.
func (s *Summary) Online(hostID, workload string, cores int) (of int, say bool) {
	of = len(s.HostOf(hostID).CPUs)
	if cores == 0 || of == 0 {
		return of, false
	}
	return of, cores != of || slices.ContainsFunc(s.Rows, func(r *Row) bool {
		return r.HostID == hostID && r.Treatment.Workload == workload && r.HostCores != of
	})
}

// HostOf is the host with an ID; zero where there is none.
func (s *Summary) HostOf(id string) Host { return s.host(func(h Host) bool { return h.ID == id }) }

// HostNamed is the host that is shown under a name; zero where there is none.
func (s *Summary) HostNamed(name string) Host {
	return s.host(func(h Host) bool { return h.Name == name })
}

func (s *Summary) host(is func(Host) bool) (h Host) {
	if i := slices.IndexFunc(s.Hosts, is); i >= 0 {
		h = s.Hosts[i]
	}
	return h
}

// amounts are units of what cannot be less than nothing, though an interval may reach below it: of times, rates and memory.
var amounts = []string{"ns", "us", "µs", "ms", "s", "min", "h", "1/s", "MiB"}

// Floor is the lower end that is to be said of an interval of a metric, or of a ratio of it: a time, a rate or what a guest takes of the
// host's memory, or a ratio of such, is not below 0.
func Floor(m notebook.Metric, low float64) float64 {
	if slices.Contains(amounts, m.Unit) {
		return max(low, 0)
	}
	return low
}

// Tables are the rows that are compared with each other, in order: of one host with so many CPUs online, one workload
// with its parameters, one metric and one image.
func (s *Summary) Tables() [][]*Row {
	return Together(s.Rows, func(a, b *Row) bool { return a.HostCores == b.HostCores && SameWork(a, b) })
}

// InFigures are the rows of a table in each of their secondary metrics that have rows of their own, in the order in which the rows have these.
func InFigures(table []*Row) (tables [][]*Row) {
	var all []*Row
	for _, r := range table {
		all = append(all, r.Figures...)
	}
	return Together(all, func(a, b *Row) bool { return a.Metric == b.Metric })
}

// Places are the rows of the tables that are of one size of instance.
func (s *Summary) Places() [][]*Row {
	return Together(s.Rows, func(a, b *Row) bool {
		return a.HostCores == b.HostCores && a.Treatment.Instance.SameSize(b.Treatment.Instance) && SameWork(a, b)
	})
}

// OtherImages says whether the row's work was also done with another image on its host: it needs to be named.
func (s *Summary) OtherImages(r *Row) bool {
	return slices.ContainsFunc(s.Rows, func(o *Row) bool {
		return o.HostID == r.HostID && o.Treatment.SameWork(r.Treatment) && o.Image != r.Image
	})
}

// SameWork says whether two rows are of the same work on the same host, asked from the same machine: workload, parameters, metric,
// image, and what their kind of study tells apart.
func SameWork(a, b *Row) bool {
	return a.HostID == b.HostID && a.LoadFrom == b.LoadFrom && a.Treatment.SameWork(b.Treatment) &&
		a.Metric == b.Metric && a.Image == b.Image && SameMeasure(a, b)
}

// SameMeasure says whether two rows are of one kind of study, which measured both in the same way.
func SameMeasure(a, b *Row) bool { return a.Kind == b.Kind && a.identity == b.identity }

// SecondaryColumn is a secondary metric of rows that are compared with each other.
type SecondaryColumn struct {
	Metric   notebook.Metric
	Of       []*Secondary // by row; nil where it has none
	Constant bool         // several rows have the same value, and none an interval: First is all there is to say
	First    *Secondary
}

// SecondaryColumns are the secondary metrics of rows that have no rows of their own, in the order in which the rows have them.
func SecondaryColumns(rows []*Row) (all []SecondaryColumn) {
	for at, r := range rows {
		for i := range r.Secondary {
			m := &r.Secondary[i]
			if m.Metric.Better != "" {
				continue
			}
			c := slices.IndexFunc(all, func(c SecondaryColumn) bool { return c.Metric == m.Metric })
			if c < 0 {
				c = len(all)
				all = append(all, SecondaryColumn{Metric: m.Metric, Of: make([]*Secondary, len(rows)), Constant: len(rows) > 1 && stats.Finite(m.Mean), First: m})
			}
			all[c].Of[at] = m
			// Of one round there is no interval, but there may be nothing to know of it either.
			all[c].Constant = all[c].Constant && m.Mean == all[c].First.Mean && !(m.Low < m.High)
		}
	}
	return slices.DeleteFunc(all, func(c SecondaryColumn) bool { // which this work has not
		return !slices.ContainsFunc(c.Of, func(m *Secondary) bool { return m != nil && stats.Finite(m.Mean) })
	})
}
