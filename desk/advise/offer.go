package advise

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/desk/data"
	"tare/notebook"
	"tare/stats"
)

var objectiveForm = regexp.MustCompile(`^\s*([a-z][a-z0-9_]*)\s*(?:<=|<|=)\s*([0-9.]+)\s*([a-zµ]+)\s*$`)

// ParseObjective reads an objective such as p99<50ms.
func ParseObjective(text string) (data.Objective, error) {
	m := objectiveForm.FindStringSubmatch(text)
	if m == nil {
		return data.Objective{}, fmt.Errorf("%q: must be a metric and a time, such as p99<50ms", text)
	}
	bound, err := time.ParseDuration(m[2] + m[3])
	if err != nil || bound <= 0 {
		return data.Objective{}, fmt.Errorf("%q: %q must be a time such as 50ms or 1.5s", text, m[2]+m[3])
	}
	return data.Objective{Metric: m[1], Bound: bound.Seconds()}, nil
}

const mostDemand = 1e12

// ParseDemand reads a number of requests a second, such as 2000/s.
func ParseDemand(text string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "/s")), 64)
	if err != nil || !(v > 0) || v > mostDemand {
		return 0, fmt.Errorf("%q: must be requests a second, such as 2000/s", text)
	}
	return v, nil
}

// Offers are what the choices of a ranking cost that keep an objective, the cheapest first.
type Offers struct {
	Objective data.Objective
	Demand    float64 // requests a second in all; 0: each instance is used as far as it keeps the objective
	Currency  string
	List      []Offer
	Doubts    []data.Doubt
}

// Offer is a choice with its price.
type Offer struct {
	Choice     int     // index in Ranking.Choices
	Rate       float64 // requests a second at which an instance keeps the objective, with the probability Sure
	Instances  int     // that the demand needs; 0: there is no demand
	Hourly     float64 // price of an instance for an hour
	Total      float64 // of all instances; of one where there is no demand
	PerMillion float64 // price of a million requests
	Keeps      float64 // probability that the objective is kept
}

// Sure is the probability with which an offer keeps the objective, at least.
const Sure = 0.95

// offered says what the options for prices lack; nil: nothing, or there are none.
func (o *Options) offered() error {
	switch {
	case o.Objective == nil && o.Prices == nil && o.Demand == 0:
		return nil
	case o.Objective == nil:
		return errors.New("--prices and --demand: need an --objective such as 'p99<50ms'")
	case o.Prices == nil:
		return errors.New("--objective: needs --prices FILE, such as examples/prices.csv of Tare's sources")
	case o.Metric != "" || o.Prefer == Cost:
		return errors.New("--objective: ranks by price: leave out --metric and --prefer")
	}
	return nil
}

// sought are the groups whose studies sought a capacity at the objective.
func (a *adviser) sought() ([]*group, error) {
	var fit []*group
	var others []string
	for _, g := range a.groups {
		c := g.keeps()
		if c == nil {
			continue
		}
		if c.Metric == a.o.Objective.Metric && c.Bound <= a.o.Objective.Bound*(1+1e-9) {
			fit = append(fit, g)
			continue
		}
		others = append(others, c.String())
	}
	switch {
	case len(fit) > 0:
		return fit, nil
	case len(others) > 0:
		return nil, fmt.Errorf("--objective %v: the capacity was sought for %s, which says nothing of it; measure it with tare bench --objective %s=%v",
			a.o.Objective, strings.Join(slices.Compact(others), ", "), a.o.Objective.Metric, a.o.Objective.Time())
	}
	return nil, fmt.Errorf("--objective %v: nothing here sought a capacity; measure one with tare bench --service PORT --load PATH --objective %s=%v, or tare run capacity",
		a.o.Objective, a.o.Objective.Metric, a.o.Objective.Time())
}

// keeps is the objective at whose limit the group's study measured rates; nil: it did not.
func (g *group) keeps() *data.Objective {
	for _, r := range g.rows {
		if o := r.Traits().Keeps; o != nil {
			return o
		}
	}
	return nil
}

// offers prices the choices of a ranking.
func (a *adviser) offers(g *group, r *Ranking) *Offers {
	out := &Offers{Objective: *a.o.Objective, Demand: a.o.Demand, Currency: a.o.Prices.Currency}
	if c := g.keeps(); c != nil && c.Bound < out.Objective.Bound*(1-1e-9) {
		out.Doubts = append(out.Doubts, StricterObjective{*c})
	}
	apart := func(c Choice, why data.Doubt) { r.Apart = append(r.Apart, Apart{c.Treatment, why}) }
	var choices []Choice
	for _, c := range r.Choices {
		onHost := 1.0
		if g.cores > 0 {
			onHost = max(1, float64(g.cores)/c.Treatment.Instance.Cores)
		}
		hourly, err := a.o.Prices.Hourly(c.Treatment, onHost)
		if err != nil {
			apart(c, NoPrice{err.Error()})
			continue
		}
		if r.ByRatio {
			apart(c, RatioOnly{})
			continue
		}
		longest := c.at(2 * (1 - Sure)).High // seconds a request, as one-sided bound
		if !(longest > 0) || !stats.Finite(longest) {
			apart(c, UnknownRate{})
			continue
		}
		o := Offer{Choice: len(choices), Rate: 1 / longest, Hourly: hourly, Total: hourly, Keeps: Sure}
		served := o.Rate
		if a.o.Demand > 0 {
			n := math.Ceil(a.o.Demand * longest * (1 - 1e-12))
			if n > mostInstances {
				apart(c, TooManyInstances{n})
				continue
			}
			o.Instances = int(n)
			o.Total, o.Keeps, served = n*hourly, c.within(n/a.o.Demand), a.o.Demand
		}
		const hour, million = 3600, 1e6
		o.PerMillion = o.Total / (served * hour) * million
		out.List, choices = append(out.List, o), append(choices, c)
	}
	r.Choices = choices
	slices.SortStableFunc(out.List, func(x, y Offer) int {
		return cmp.Or(cmp.Compare(x.PerMillion, y.PerMillion), cmp.Compare(y.Keeps, x.Keeps), r.simpler(r.Choices[x.Choice], r.Choices[y.Choice]))
	})
	for _, line := range a.o.Prices.Unknown(treatments(g.rows)) {
		out.Doubts = append(out.Doubts, UnknownPrice{line})
	}
	r.byPrice(out)
	return out
}

// byPrice orders the choices as the offers. How they compare by the metric does not matter any more.
func (r *Ranking) byPrice(o *Offers) {
	was := r.Choices
	r.Choices, r.Beside = nil, nil
	for i := range o.List {
		c := was[o.List[i].Choice]
		c.Rank, c.Tied, c.Near, c.Leads, c.Against = i+1, false, false, i == 0, stats.NoRatio
		o.List[i].Choice = i
		r.Choices = append(r.Choices, c)
	}
}

// mostInstances is how many instances an offer has at most.
const mostInstances = 1e6

func treatments(rows []*data.Row) (all []notebook.Treatment) {
	for _, r := range rows {
		all = append(all, r.Treatment)
	}
	return all
}

// within is the probability that the choice's value is at most x, as its intervals at all levels say.
func (c *Choice) within(x float64) float64 {
	upper := x >= c.Value
	holds := func(alpha float64) bool { // the interval that misses with this probability does not reach to x
		s := c.at(alpha)
		return upper && s.High <= x || !upper && s.Low >= x
	}
	const least, most = 1e-6, 0.999
	low, high := math.Log(least), math.Log(most) // of alpha: at low it reaches, at high it does not
	if holds(least) {
		high = low
	}
	for range 40 {
		if mid := (low + high) / 2; holds(math.Exp(mid)) {
			high = mid
		} else {
			low = mid
		}
	}
	if p := math.Exp(high) / 2; !upper {
		return p
	} else {
		return 1 - p
	}
}

// Doubts about offers.
type (
	// NoPrice: why the price list has none.
	NoPrice struct{ Why string }
	// TooManyInstances: the demand would need so many.
	TooManyInstances struct{ Instances float64 }
	// RatioOnly: only the ratio to bare metal is known.
	RatioOnly struct{}
	// UnknownRate: the interval of the rate has no lower end.
	UnknownRate struct{}
	// StricterObjective: the capacity was sought for this objective, and a choice may keep the other one at higher rates.
	StricterObjective struct{ Sought data.Objective }
	// UnknownPrice: a line of the price list is of no size, platform or engine that is known here.
	UnknownPrice struct{ Line string }
)

func (NoPrice) Doubt()           {}
func (TooManyInstances) Doubt()  {}
func (RatioOnly) Doubt()         {}
func (UnknownRate) Doubt()       {}
func (StricterObjective) Doubt() {}
func (UnknownPrice) Doubt()      {}
