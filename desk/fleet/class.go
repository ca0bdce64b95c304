package fleet

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/stats"
)

// Class is a division of the hosts into classes, and the mean cost of a configuration in each.
type Class struct {
	Of      *Configuration
	Factors []Factor // several: they divide the hosts that count in the same way
	Means   []ClassMean
	Others  int     // hosts with values that fewer than three hosts have
	P       float64 // of such a difference by chance, corrected for Fleet.Compared
	// Explained is the part of the variance between hosts that is between classes.
	Explained float64
}

// ClassMean is a class: its values of the factors, and its mean cost.
type ClassMean struct {
	Values []string // by Class.Factors
	Cost   stats.Quotient
}

// leastOfClass is how many hosts a class must have.
const leastOfClass = 3

// division are the hosts of a configuration by a factor.
type division struct {
	factors []Factor
	of      []int // class of each host that counts; −1: none
	values  [][]string
	others  int
}

// compare looks for classes of hosts that differ, for each configuration and each factor with two classes or more. Bonferroni's correction covers
// all comparisons.
func (f *Fleet) compare() {
	var all []Class
	for _, c := range f.Primary() {
		for _, d := range f.divisions(c) {
			classes := make([][]stats.Effect, len(d.values))
			var used []stats.Effect
			for i, r := range c.Results {
				if k := d.of[i]; k >= 0 {
					classes[k] = append(classes[k], r.Effect)
					used = append(used, r.Effect)
				}
			}
			found := stats.ClassesOf(classes, stats.Alpha)
			class := Class{Of: c, Factors: d.factors, Others: d.others, P: found.P}
			for k, m := range found.Means {
				cost := stats.Quotient{Value: math.Exp(m.Value), Low: math.Exp(m.Low), High: math.Exp(m.High), N: m.N}
				class.Means = append(class.Means, ClassMean{d.values[k], cost})
			}
			if between := stats.BetweenOf(used); between > 0 {
				class.Explained = max(1-found.Between*found.Between/between/between, 0)
			}
			all = append(all, class)
		}
	}
	f.Compared = len(all)
	for _, c := range all {
		if c.P = min(c.P*float64(f.Compared), 1); c.P < stats.Alpha {
			f.Classes = append(f.Classes, c)
		}
	}
	slices.SortStableFunc(f.Classes, func(a, b Class) int { return cmp.Compare(a.P, b.P) })
}

// divisions are the ways in which factors divide the hosts of a configuration. Factors that divide the hosts alike make one division.
func (f *Fleet) divisions(c *Configuration) (all []*division) {
	known := map[string]*division{}
	seen := map[Factor]bool{}
	for _, h := range c.Hosts {
		for _, fact := range h.Facts {
			factor := fact.Value().Factor
			if seen[factor] || !factor.Kind.forms() {
				continue
			}
			seen[factor] = true
			d := divide(c.Hosts, factor)
			if d == nil {
				continue
			}
			var key strings.Builder
			for _, k := range d.of {
				key.WriteString(strconv.Itoa(k) + " ")
			}
			if same := known[key.String()]; same != nil {
				same.factors = append(same.factors, factor)
				for k := range same.values {
					same.values[k] = append(same.values[k], d.values[k][0])
				}
				continue
			}
			known[key.String()] = d
			all = append(all, d)
		}
	}
	return all
}

// divide divides hosts by a factor, in the order in which they have its values; nil: it has fewer than two classes.
func divide(hosts []*Host, factor Factor) *division {
	d := &division{factors: []Factor{factor}}
	many := map[string]bool{}
	for _, v := range valuesOf(hosts, factor) {
		many[v.Value] = v.Hosts >= leastOfClass
	}
	at := map[string]int{}
	for _, h := range hosts {
		v := h.Fact(factor)
		if !many[v] {
			d.of = append(d.of, -1)
			d.others++
			continue
		}
		k, known := at[v]
		if !known {
			k = len(at)
			at[v] = k
			d.values = append(d.values, []string{v})
		}
		d.of = append(d.of, k)
	}
	if len(d.values) < 2 {
		return nil
	}
	return d
}

// Outlier is a host that is unlike the others in some configurations.
type Outlier struct {
	Host *Host
	In   []Unlike // the most unlike first
	// Differs are its facts that few other hosts share, the rarest first.
	Differs []Rare
}

// Unlike is a configuration in which a host is unlike the others.
type Unlike struct {
	Of       *Configuration
	Cost     stats.Quotient // the host's own
	Expected float64        // mean cost of the others
	Distance float64        // standard deviations (stats.Outlier)
}

// Rare is a fact that few hosts share.
type Rare struct {
	Fact
	Hosts, Of int
}

// outliers finds hosts that are unlike the others, among all hosts and configurations.
func (f *Fleet) outliers() {
	among := 0
	for _, c := range f.Primary() {
		among += len(c.Results)
	}
	at := map[*Host]int{}
	for _, c := range f.Primary() {
		for _, o := range stats.Outliers(c.effects(), stats.Alpha, among) {
			h := c.Hosts[o.At]
			n, known := at[h]
			if !known {
				n = len(f.Outliers)
				at[h] = n
				f.Outliers = append(f.Outliers, Outlier{Host: h})
			}
			cost := c.Results[o.At].Cost
			f.Outliers[n].In = append(f.Outliers[n].In, Unlike{c, cost, math.Exp(o.Expected), o.Distance})
		}
	}
	if len(f.Outliers) == 0 {
		return
	}
	rare := f.rare()
	for i := range f.Outliers {
		o := &f.Outliers[i]
		slices.SortStableFunc(o.In, func(a, b Unlike) int { return cmp.Compare(math.Abs(b.Distance), math.Abs(a.Distance)) })
		for _, fact := range o.Host.Facts {
			if n, is := rare[fact]; is {
				o.Differs = append(o.Differs, Rare{fact.Value(), n, len(f.Hosts)})
			}
		}
		slices.SortStableFunc(o.Differs, func(a, b Rare) int { return a.Hosts - b.Hosts })
	}
	slices.SortStableFunc(f.Outliers, func(a, b Outlier) int {
		return cmp.Compare(math.Abs(b.In[0].Distance), math.Abs(a.In[0].Distance))
	})
}

// rare are the facts that at most a tenth of the hosts share, or one host, with the number of hosts. A factor of which many hosts
// have a rare value, such as a serial number, is left out.
func (f *Fleet) rare() map[fact]int {
	count := map[fact]int{}
	for _, h := range f.Hosts {
		for _, fact := range h.Facts {
			count[fact]++
		}
	}
	few := max(len(f.Hosts)/10, 1)
	with := map[Factor]int{} // hosts with a rare value
	for fact, n := range count {
		if n <= few {
			with[fact.Value().Factor] += n
		}
	}
	rare := map[fact]int{}
	for fact, n := range count {
		if n <= few && with[fact.Value().Factor] <= max(len(f.Hosts)/5, 1) {
			rare[fact] = n
		}
	}
	return rare
}
