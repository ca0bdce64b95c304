package data

import (
	"math"
	"slices"

	"tare/notebook"
)

// Several is a figure of several metrics, of treatments of one size on one host.
type Several struct {
	notebook.Figure
	Rows []*Row // one for each treatment, of any of the axes, to name it and the place
	On   []OnAxis
}

// OnAxis is one of the metrics, with what each treatment has of it.
type OnAxis struct {
	notebook.Axis
	Of   notebook.Metric
	Rows []*Row // in that metric, one for each of Several.Rows; nil: the treatment was not measured with the axis's workload
}

// Published is what was published of a treatment in one of the metrics: how much more it is than on bare metal, in per cent; NaN where nothing was.
func (v *Several) Published(a *OnAxis, t notebook.Treatment) float64 {
	p, is := a.Axis.Published[t.Platform]
	if !is || v.PublishedOf != "" && v.PublishedOf != t.Provisioning {
		return math.NaN()
	}
	return p
}

// Several are the figures of several metrics that the studies declare, one for each size and host that there is.
func (s *Summary) Several() (all []*Several) {
	var seen []notebook.Figure
	for _, f := range s.Folders {
		for _, fig := range f.Study.Figures {
			if len(fig.Axes) == 0 || slices.ContainsFunc(seen, func(o notebook.Figure) bool { return o.Name == fig.Name && o.Title == fig.Title }) {
				continue
			}
			seen = append(seen, fig)
			all = append(all, s.several(fig)...)
		}
	}
	return all
}

func (s *Summary) several(f notebook.Figure) (all []*Several) {
	var rows []*Row // that are on an axis
	for _, r := range s.Rows {
		if r.Trials > 0 && !r.Treatment.AA && slices.ContainsFunc(f.Axes, func(a notebook.Axis) bool { return onAxis(a, r) != nil }) {
			rows = append(rows, r)
		}
	}
	samePlace := func(a, b *Row) bool {
		return a.HostID == b.HostID && a.HostCores == b.HostCores && a.Treatment.Instance.SameSize(b.Treatment.Instance)
	}
	for _, of := range Together(rows, samePlace) {
		v := &Several{Figure: f}
		for _, same := range Together(of, sameGuest) {
			v.Rows = append(v.Rows, same[0])
		}
		for _, a := range f.Axes {
			on := OnAxis{Axis: a, Rows: make([]*Row, len(v.Rows))}
			for i, named := range v.Rows {
				for _, r := range of {
					if own := onAxis(a, r); own != nil && sameGuest(r, named) {
						on.Rows[i], on.Of = own, own.Metric
					}
				}
			}
			v.On = append(v.On, on)
		}
		all = append(all, v)
	}
	return all
}

// onAxis is a row in an axis's metric; nil: it is not of the axis's workload, or has no such metric.
func onAxis(a notebook.Axis, r *Row) *Row {
	if r.Treatment.Workload != a.Workload {
		return nil
	}
	for k, v := range a.Params {
		if r.Treatment.Assigned()[k] != v {
			return nil
		}
	}
	if a.Metric == "" {
		return r
	}
	if i := slices.IndexFunc(r.Figures, func(f *Row) bool { return f.Metric.Name == a.Metric }); i >= 0 {
		return r.Figures[i]
	}
	return nil
}

// sameGuest says whether the rows' treatments differ in their workload at most.
func sameGuest(a, b *Row) bool {
	x, y := a.Treatment, b.Treatment
	return x.Variant() == y.Variant() && x.Provisioning == y.Provisioning && x.Instance.Name == y.Instance.Name && x.HostCores == y.HostCores
}
