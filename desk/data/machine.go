package data

import "tare/stats"

// OfUsual returns the ratio of a row of an unusual VM to the row of the same VM with the usual machine, as Ratio computes it. ok is false
// if the row's machine is the usual one, or if there is no row to compare it with.
func (s *Summary) OfUsual(r *Row) (q stats.Quotient, ok bool) {
	want := r.Treatment.Variant()
	if want.Machine == "" || r.Rounds == 0 {
		return stats.NoRatio, false
	}
	want.Machine = ""
	for _, o := range s.Rows {
		if t := o.Treatment; o.Rounds > 0 && t.Variant() == want && t.Provisioning == r.Treatment.Provisioning && t.Instance.SameSize(r.Treatment.Instance) &&
			o.HostCores == r.HostCores && SameWork(o, r) {
			return s.Ratio(r, o, stats.Alpha), true
		}
	}
	return stats.NoRatio, false
}

// Within says whether bare metal differed from itself, at a row's place, by as much as a quotient of rows there differs from 1.
func (s *Summary) Within(r *Row, q stats.Quotient) bool {
	m := s.Doubt(r)
	return m > 1 && q.HasInterval() && q.Low <= m && q.High >= 1/m
}
