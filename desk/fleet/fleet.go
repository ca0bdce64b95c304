// Package fleet combines the results of many hosts. It estimates what a configuration costs over hosts, how much the cost differs from host to host,
// and what to expect on the next host. It compares classes of hosts, and finds hosts that are unlike the others.
//
// The package reads each folder once. It keeps only the host's facts and, for each configuration, the logarithm of its cost with a variance. The
// variance is that of the host's own rounds (stats.Pairs.Effect). [Fleet] is a pure function of these.
package fleet

import (
	"cmp"
	"math"
	"slices"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

// Fleet is the combined result of many hosts.
type Fleet struct {
	Study   string
	Margin  float64
	Folders int     // that were named
	Hosts   []*Host // that count, each once, in the order of the folders
	Unread  []Unread

	// Sum has the configurations as rows without a host and without numbers. It names them.
	Sum            *data.Summary
	Configurations []*Configuration // in the order of the study; first the workloads' own metrics, then the secondary ones

	Classes  []Class   // that differ, the most certain first
	Compared int       // so many comparisons of classes were made
	Outliers []Outlier // the most unlike first
	Omitted  []LeftOut // configurations that hosts left out
}

// Configuration is one configuration over the hosts.
type Configuration struct {
	Row     *data.Row // in Fleet.Sum
	Across  stats.Across
	Ratio   stats.Quotient // geometric mean of the hosts' costs; of one host, its own cost
	Next    stats.Quotient // interval of the next host's true cost; NaN: fewer than three hosts
	Verdict stats.Verdict  // on Ratio, by the margin; empty: there is no interval

	Hosts      []*Host  // that have a cost with a variance; these count
	Results    []Result // theirs
	Verdicts   map[stats.Verdict]int
	Doubtful   int // of these: bare metal differed from itself by as much
	Unreliable int // hosts that do not count: too many trials failed
	Without    int // other hosts that measured it and have no cost with an interval
}

// Emulated says whether it is an emulated environment, which no verdict is about.
func (c *Configuration) Emulated() bool { return !c.Row.Representative }

// Primary are the configurations in the workloads' own metrics, without emulated ones.
func (f *Fleet) Primary() (all []*Configuration) {
	for _, c := range f.Configurations {
		if !c.Row.IsFigure && !c.Emulated() {
			all = append(all, c)
		}
	}
	return all
}

// LeftOut is a configuration that hosts left out for one reason.
type LeftOut struct {
	*Omission
	Hosts int
	First *Host // the first of these
}

// Shared are the hosts with folders of several nodes, or several folders of one.
func (f *Fleet) Shared() (all []*Host) {
	for _, h := range f.Hosts {
		if len(h.Folders) > 1 {
			all = append(all, h)
		}
	}
	return all
}

// Values are the values of a factor on the hosts, the most frequent first.
func (f *Fleet) Values(of Factor) []Value { return valuesOf(f.Hosts, of) }

// Factors are the factors of a kind that any host has, in the order in which hosts have them.
func (f *Fleet) Factors(of FactorKind) (all []Factor) {
	seen := map[Factor]bool{}
	for _, h := range f.Hosts {
		for _, fact := range h.Facts {
			if v := fact.Value(); v.Kind == of && !seen[v.Factor] {
				seen[v.Factor] = true
				all = append(all, v.Factor)
			}
		}
	}
	return all
}

// Value is a value of a factor, and how many hosts have it.
type Value struct {
	Value string
	Hosts int
}

func valuesOf(hosts []*Host, of Factor) (all []Value) {
	count := map[string]int{}
	for _, h := range hosts {
		if v := h.Fact(of); v != "" {
			count[v]++
		}
	}
	for v, n := range count {
		all = append(all, Value{v, n})
	}
	slices.SortFunc(all, func(a, b Value) int { return cmp.Or(b.Hosts-a.Hosts, cmp.Compare(a.Value, b.Value)) })
	return all
}

// from combines hosts. margin 0: the margin of most hosts.
func from(hosts []*Host, margin float64) *Fleet {
	f := &Fleet{Study: hosts[0].study.name, Hosts: hosts, Margin: margin}
	if margin == 0 {
		f.Margin = commonest(hosts, func(h *Host) float64 { return h.margin })
	}
	f.name()
	f.configurations()
	f.compare()
	f.outliers()
	f.omissions()
	return f
}

// name gives each host a name of its own.
func (f *Fleet) name() {
	times := map[string]int{}
	for _, h := range f.Hosts {
		times[h.Name]++
	}
	for _, h := range f.Hosts {
		if times[h.Name] > 1 {
			h.Name += " " + h.ID[:min(len(h.ID), 18)]
		}
	}
}

// configurations collects the hosts' results of each configuration, and summarises them.
func (f *Fleet) configurations() {
	of := map[*Subject]*Configuration{}
	var rows []*data.Row
	var secondary []*Configuration
	for _, h := range f.Hosts {
		for _, r := range h.Results {
			c := of[r.Of]
			if c == nil {
				c = &Configuration{Row: r.Of.Row, Verdicts: map[stats.Verdict]int{}}
				of[r.Of] = c
				if !c.Row.IsFigure {
					rows = append(rows, c.Row)
				}
				switch {
				case c.Row.IsBaseline():
				case c.Row.IsFigure:
					secondary = append(secondary, c)
				default:
					f.Configurations = append(f.Configurations, c)
				}
			}
			switch {
			case r.Unreliable:
				c.Unreliable++
			case !r.Effect.Counts():
				if r.Trials > 0 {
					c.Without++
				}
			default:
				c.Hosts, c.Results = append(c.Hosts, h), append(c.Results, r)
			}
		}
	}
	f.Configurations = append(f.Configurations, secondary...)
	f.Sum = &data.Summary{Rows: rows, Baseline: f.Hosts[0].reference}
	for _, c := range f.Configurations {
		c.summarise(f.Margin)
	}
}

// effects are the effects of the hosts that count.
func (c *Configuration) effects() []stats.Effect {
	all := make([]stats.Effect, len(c.Results))
	for i, r := range c.Results {
		all[i] = r.Effect
	}
	return all
}

// summarise combines the hosts' results.
func (c *Configuration) summarise(margin float64) {
	c.Across = stats.AcrossOf(c.effects(), stats.Alpha)
	c.Ratio = c.Across.Ratio()
	if len(c.Results) == 1 {
		c.Ratio = c.Results[0].Cost
	}
	c.Next = stats.Quotient{Value: c.Ratio.Value, Low: math.Exp(c.Across.NextLow), High: math.Exp(c.Across.NextHigh), N: c.Across.N}
	if c.Ratio.HasInterval() && !c.Emulated() {
		c.Verdict = c.Ratio.Verdict(margin)
		if len(c.Results) == 1 {
			c.Verdict = c.Results[0].Finding(margin)
		}
	}
	for _, r := range c.Results {
		if v := r.Finding(margin); v != "" {
			c.Verdicts[v]++
		}
		if r.Doubtful {
			c.Doubtful++
		}
	}
}

// omissions counts what hosts left out. A configuration that a host measured in another folder counts as measured.
func (f *Fleet) omissions() {
	at := map[*Omission]int{}
	for _, h := range f.Hosts {
		seen := map[*Omission]bool{}
		for _, o := range h.LeftOut {
			if seen[o] {
				continue
			}
			seen[o] = true
			n, known := at[o]
			if !known {
				n = len(f.Omitted)
				at[o] = n
				f.Omitted = append(f.Omitted, LeftOut{Omission: o, First: h})
			}
			f.Omitted[n].Hosts++
		}
	}
	for _, l := range f.Omitted { // networks that only these have are named as well
		f.Sum.LeftOut = append(f.Sum.LeftOut, data.LeftOut{Treatment: l.Treatment, Reason: l.Reason})
	}
}

// Reference names what costs are relative to, as --against does: bm is bare metal.
func (f *Fleet) Reference() string {
	return cmp.Or(notebook.ReferenceText(f.Sum.Baseline), notebook.BM)
}
