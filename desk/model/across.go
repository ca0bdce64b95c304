package model

import (
	"cmp"
	"slices"

	"tare/desk/data"
	"tare/stats"
)

// Across is what the same size of a platform costs more on a host of more cores: the comparison by which the paper separates CHR (section IV-A, Figure
// 7). It needs no form. On a host of the container's own size there is no platform-size overhead, and what a larger host adds is that overhead.
type Across struct {
	Few, Many Point          // the size on the host with the fewest cores, and on the one with the most
	Times     stats.Quotient // the ratio to bare metal at Many over the ratio at Few

	FewHost, ManyHost string           // IDs of the hosts; one host can be made smaller
	Unlike            []data.HostTrait // in what two hosts differ in addition to their cores
}

// Whole says whether the host with the fewest cores is as large as the container, so that all of the platform-size overhead is in Times.
func (a *Across) Whole() bool { return a.Few.CHR == 1 }

// mostAcross is how many comparisons of a size are made. Many hosts are for a summary over hosts.
const mostAcross = 4

// AcrossHosts compares the sizes of each group of rows across hosts. It returns the groups with such a comparison, without a fit.
func AcrossHosts(s *data.Summary, rows []*data.Row) (all []*Overhead) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r *data.Row) bool { return !belongs(r) })
	for _, of := range data.Together(rows, func(a, b *data.Row) bool { return groupOf(a).equal(groupOf(b)) }) {
		v := &Overhead{Group: groupOf(of[0]), alpha: stats.Alpha}
		v.gather(s, of)
		if v.Across = v.across(s); len(v.Across) > 0 {
			all = append(all, v)
		}
	}
	return all
}

// across compares each size on the hosts with the fewest cores with the same size on those with the most. Where these are many, it compares only
// a host with itself.
func (v *Overhead) across(s *data.Summary) (all []Across) {
	points := slices.Clone(v.Points)
	slices.SortStableFunc(points, func(a, b Point) int { return cmp.Compare(a.HostCores, b.HostCores) })
	for _, of := range data.Together(points, func(a, b Point) bool { return a.row.Treatment.Instance.SameSize(b.row.Treatment.Instance) }) {
		on := func(cores int) []Point {
			return slices.DeleteFunc(slices.Clone(of), func(p Point) bool { return p.HostCores != cores })
		}
		few, many := on(of[0].HostCores), on(of[len(of)-1].HostCores)
		if few[0].HostCores == many[0].HostCores {
			continue
		}
		var one, two []Across // hosts
		for _, a := range few {
			for _, b := range many {
				if a.row.HostID == b.row.HostID {
					one = append(one, acrossOf(s, a, b, v.alpha))
				} else if len(few)*len(many) <= mostAcross {
					two = append(two, acrossOf(s, a, b, v.alpha))
				}
			}
		}
		found := append(one, two...)
		all = append(all, found[:min(len(found), mostAcross)]...)
	}
	return all
}

func acrossOf(s *data.Summary, few, many Point, alpha float64) Across {
	a, b := few.row.HostID, many.row.HostID
	return Across{
		Few: few, Many: many, Times: s.Relative(many.row, many.baseline, few.row, few.baseline, alpha),
		FewHost: a, ManyHost: b, Unlike: s.Unlike([]string{a, b}),
	}
}
