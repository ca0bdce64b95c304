package claims

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"tare/desk/data"
	"tare/notebook"
	"tare/yamlfile"
)

// Hypothesis is a finding as a statement about measured means. It has exactly one of these forms.
type Hypothesis struct {
	All        []Hypothesis `yaml:"all,omitempty"`        // each of them
	Any        []Hypothesis `yaml:"any,omitempty"`        // at least one of them
	Most       []Hypothesis `yaml:"most,omitempty"`       // more than half of them
	Value      *Value       `yaml:"value,omitempty"`      // a value of one treatment
	Ratio      *Pair        `yaml:"ratio,omitempty"`      // one treatment over another
	Difference *Pair        `yaml:"difference,omitempty"` // one treatment minus another
	Removed    *Pair        `yaml:"removed,omitempty"`    // the share of the overhead of "of" that "to" does not have
	Part       *Part        `yaml:"part,omitempty"`       // the share of a difference that another metric's difference explains
	Gain       *Gain        `yaml:"gain,omitempty"`       // a ratio over the same ratio of other treatments
	Trend      *Trend       `yaml:"trend,omitempty"`      // how a value, a ratio or a difference changes along an axis
	Unrecorded string       `yaml:"unrecorded,omitempty"` // why nothing that Tare records can test it
}

// kids are the hypotheses that this one is put together from.
func (h *Hypothesis) kids() []*Hypothesis {
	var all []*Hypothesis
	for _, of := range [][]Hypothesis{h.All, h.Any, h.Most} {
		for i := range of {
			all = append(all, &of[i])
		}
	}
	return all
}

// form is what the forms of a hypothesis have in common.
type form struct {
	name     string    // "ratio"
	of, to   *Selector // to is nil where there is none
	than     *Selector // of a gain
	measured *Measured
	sizes    Sizes
	bounds   *Bounds // nil: a trend has none
}

// form is the hypothesis'; zero where it is put together from others, or where nothing tests it.
func (h *Hypothesis) form() form {
	pair := func(name string, p *Pair) form {
		return form{name, &p.Of, &p.To, nil, &p.Measured, p.Sizes, &p.Bounds}
	}
	switch {
	case h.Value != nil:
		v := h.Value
		return form{"value", &v.Of, nil, nil, &v.Measured, v.Sizes, &v.Bounds}
	case h.Ratio != nil:
		return pair("ratio", h.Ratio)
	case h.Difference != nil:
		return pair("difference", h.Difference)
	case h.Removed != nil:
		return pair("removed", h.Removed)
	case h.Part != nil:
		p := h.Part
		return form{"part", &p.Of, &p.To, nil, &p.Measured, p.Sizes, &p.Bounds}
	case h.Gain != nil:
		g := h.Gain
		return form{"gain", &g.Of, &g.To, &g.Than, &g.Measured, g.Sizes, &g.Bounds}
	case h.Trend != nil:
		t := h.Trend
		f := form{"trend", &t.Of, &t.To, nil, &t.Measured, t.Sizes, nil}
		if t.By == ByValue {
			f.to = nil
		}
		return f
	}
	return form{}
}

// Measured is what is compared: metrics added up, over others where Per has some; none: the workload's own metric.
// data.Quantity has their names.
type Measured struct {
	Metric Values `yaml:"metric,omitempty"`
	Per    Values `yaml:"per,omitempty"`
}

// Allowed implements yamlfile.Limited, for the forms of a hypothesis: they have Measured inlined.
func (Measured) Allowed() map[string][]string {
	return map[string][]string{
		"sizes": {string(Each), string(Some), string(Smallest), string(Largest)},
		"by":    {string(ByRatio), string(ByValue), string(ByDifference)},
	}
}

func (m Measured) quantity() data.Quantity { return data.Quantity{Of: m.Metric, Per: m.Per} }

// Value says where what is measured of a treatment lies.
type Value struct {
	Of       Selector `yaml:"of"`
	Measured `yaml:",inline"`
	Sizes    Sizes `yaml:"sizes,omitempty"` // empty: each
	Bounds   `yaml:",inline"`
}

// Pair says where one treatment lies relative to another.
type Pair struct {
	Of       Selector `yaml:"of"`
	To       Selector `yaml:"to,omitempty"` // empty: bare metal
	Measured `yaml:",inline"`
	Sizes    Sizes `yaml:"sizes,omitempty"` // empty: each
	Bounds   `yaml:",inline"`
}

// Part says how much of what one treatment takes longer than another is what a part of it takes longer: a difference over a difference of another metric.
type Part struct {
	Of       Selector `yaml:"of"`
	To       Selector `yaml:"to,omitempty"` // empty: bare metal
	Measured `yaml:",inline"`
	Whole    Values `yaml:"whole,omitempty"` // metrics to add up; none: the workload's metric
	Sizes    Sizes  `yaml:"sizes,omitempty"` // empty: each
	Bounds   `yaml:",inline"`
}

// Gain compares a ratio with the same ratio of other treatments: (of/to) / (than/to).
type Gain struct {
	Of       Selector `yaml:"of"`
	To       Selector `yaml:"to,omitempty"`
	Than     Selector `yaml:"than" jsonschema:"required"` // must differ from "of"
	Measured `yaml:",inline"`
	Sizes    Sizes `yaml:"sizes,omitempty"`
	Bounds   `yaml:",inline"`
}

// By says how the treatments of a trend are taken together.
type By string

const (
	ByRatio      By = "ratio" // also the default
	ByValue      By = "value"
	ByDifference By = "difference"
)

// Trend says how a ratio, a value or a difference goes along an axis: "instance" (from few cores to many), "host_cores" (from a small host to a
// large one), or a parameter that is a number. With Falls and Rises the last value is so much below or above the first,
// and no step from one value to the next goes the other way by as much; with Constant no two values differ by more.
type Trend struct {
	Of       Selector `yaml:"of"`
	To       Selector `yaml:"to,omitempty"`
	By       By       `yaml:"by,omitempty"`
	Measured `yaml:",inline"`
	Over     string `yaml:"over" jsonschema:"required"`
	Sizes    Sizes  `yaml:"sizes,omitempty"` // not if over is instance
	Falls    Share  `yaml:"falls,omitempty"`
	Rises    Share  `yaml:"rises,omitempty"`
	Constant Share  `yaml:"constant,omitempty"`
}

// Axes of a trend that are not parameters.
const (
	OverInstance  = "instance"
	OverHostCores = "host_cores"
)

// Sizes says at which of the measured instance types a hypothesis is meant.
type Sizes string

const (
	Each     Sizes = "each" // also the default
	Some     Sizes = "any"
	Smallest Sizes = "smallest"
	Largest  Sizes = "largest"
)

// Bounds are those of a comparison. Exactly one of them is set. The first three are a ratio's.
type Bounds struct {
	Higher  Share     `yaml:"higher,omitempty"` // by this share at least: 2% is a ratio of 1.02 or more
	Lower   Share     `yaml:"lower,omitempty"`  // 2% is a ratio of 1/1.02 or less
	Equal   Share     `yaml:"equal,omitempty"`  // 5% is a ratio from 1/1.05 to 1.05
	AtLeast float64   `yaml:"at_least,omitempty"`
	AtMost  float64   `yaml:"at_most,omitempty"`
	Between []float64 `yaml:"between,omitempty"` // two
}

// Share is a percentage, 0.02 for "2%".
type Share float64

// UnmarshalYAML takes "2%".
func (s *Share) UnmarshalYAML(n *yaml.Node) error {
	digits, ok := strings.CutSuffix(n.Value, "%")
	v, err := strconv.ParseFloat(digits, 64)
	if n.Kind != yaml.ScalarNode || !ok || err != nil || !(v > 0) || v > 1000 {
		return fmt.Errorf("%q: must be a percentage above 0, as in 2%%", n.Value)
	}
	*s = Share(v / 100)
	return nil
}

// Region is the interval that a hypothesis allows: Low is −Inf without a lower bound, High is +Inf without an upper bound.
type Region struct{ Low, High float64 }

func atLeast(f float64) Region { return Region{f, math.Inf(1)} }
func atMost(f float64) Region  { return Region{math.Inf(-1), f} }

func higher(s Share) Region { return atLeast(1 + float64(s)) }
func lower(s Share) Region  { return atMost(1 / (1 + float64(s))) }
func equal(s Share) Region  { return Region{1 / (1 + float64(s)), 1 + float64(s)} }

// Regions of one step of a trend: what goes the other way by less than the share agrees with it.
func noRise(s Share) Region { return atMost(1 + float64(s)) }
func noFall(s Share) Region { return atLeast(1 / (1 + float64(s))) }

func (b Bounds) region() Region {
	switch {
	case b.Higher > 0:
		return higher(b.Higher)
	case b.Lower > 0:
		return lower(b.Lower)
	case b.Equal > 0:
		return equal(b.Equal)
	case b.AtLeast != 0:
		return atLeast(b.AtLeast)
	case b.AtMost != 0:
		return atMost(b.AtMost)
	}
	return Region{b.Between[0], b.Between[1]}
}

// Values is one value or a list. A list means each of them.
type Values []string

// UnmarshalYAML takes a value or a list of values.
func (v *Values) UnmarshalYAML(n *yaml.Node) error {
	all, err := yamlfile.Scalars(n)
	if err == nil && slices.Contains(all, "") {
		err = yamlfile.ErrScalars
	}
	*v = append(*v, all...)
	return err
}

// Range bounds a number; 0 where it does not.
type Range struct {
	AtLeast float64 `yaml:"at_least,omitempty"`
	AtMost  float64 `yaml:"at_most,omitempty"`
}

func (r *Range) has(f float64) bool {
	return r == nil || f >= r.AtLeast && (r.AtMost == 0 || f <= r.AtMost)
}

// Selector chooses treatments by their workload, its parameters, and every factor. A key that is left out allows any value. In To and Than,
// it takes the value of the treatment that is compared, if both have the key. Params may name the factors that only some studies have,
// because older files have no keys for these factors.
type Selector struct {
	Workload     Values `yaml:"workload,omitempty"`
	Platform     Values `yaml:"platform,omitempty"`
	Engine       Values `yaml:"engine,omitempty"`
	Provisioning Values `yaml:"provisioning,omitempty"`
	Instance     Values `yaml:"instance,omitempty"`
	Network      Values `yaml:"network,omitempty"`
	Isolation    Values `yaml:"isolation,omitempty"` // rungs of the isolation ladder; empty: no rung
	Machine      Values `yaml:"machine,omitempty"`   // how VMs are made (notebook.ParseMachine); empty: the usual VM

	Accelerator Values `yaml:"accelerator,omitempty"`
	Kernel      Values `yaml:"kernel,omitempty"` // of guests whose kernel the study names: release and digest, as in the report
	Addresses   Values `yaml:"addresses,omitempty"`
	HugePages   Values `yaml:"huge_pages,omitempty"`
	Neighbours  Values `yaml:"neighbours,omitempty"` // cpu:1+io:2, cpu:4/core or none
	Cache       Values `yaml:"cache,omitempty"`
	Root        Values `yaml:"root,omitempty"`
	Devices     Values `yaml:"devices,omitempty"`
	Rate        Values `yaml:"rate,omitempty"`
	Spacing     Values `yaml:"spacing,omitempty"`
	From        Values `yaml:"from,omitempty"` // created, snapshot
	Pull        Values `yaml:"pull,omitempty"` // no, gzip:8
	Merging     Values `yaml:"merging,omitempty"`

	Params map[string]Values `yaml:"params,omitempty"` // they select only among treatments that have these parameters, those with one of the values

	Cores     *Range `yaml:"cores,omitempty"`      // CPUs of the instance
	HostCores *Range `yaml:"host_cores,omitempty"` // CPUs that the host has online
	CHR       *Range `yaml:"chr,omitempty"`
}

func (s Selector) empty() bool {
	named := len(s.Params)
	for _, l := range s.lists() {
		named += len(*l)
	}
	return named == 0 && s.Cores == nil && s.HostCores == nil && s.CHR == nil
}

// lists are the selector's lists, to be gone through together.
func (s *Selector) lists() []*Values {
	all := []*Values{&s.Workload}
	for _, c := range s.choices() {
		all = append(all, c.Values)
	}
	return all
}

// choice holds the values of a factor that a selector allows.
type choice struct {
	of notebook.Factor
	*Values
}

// choices are the values that the selector allows for each factor, except the host's cores.
func (s *Selector) choices() []choice {
	return []choice{
		{notebook.FactorPlatform, &s.Platform}, {notebook.FactorEngine, &s.Engine}, {notebook.FactorProvisioning, &s.Provisioning}, {notebook.FactorInstance, &s.Instance},
		{notebook.FactorNetwork, &s.Network}, {notebook.FactorIsolation, &s.Isolation}, {notebook.FactorMachine, &s.Machine}, {notebook.FactorAccelerator, &s.Accelerator},
		{notebook.FactorKernel, &s.Kernel}, {notebook.FactorAddresses, &s.Addresses}, {notebook.FactorHugePages, &s.HugePages}, {notebook.FactorNeighbours, &s.Neighbours},
		{notebook.FactorCache, &s.Cache}, {notebook.FactorRoot, &s.Root}, {notebook.FactorDevices, &s.Devices}, {notebook.FactorRate, &s.Rate}, {notebook.FactorSpacing, &s.Spacing},
		{notebook.FactorFrom, &s.From}, {notebook.FactorPull, &s.Pull}, {notebook.FactorMerging, &s.Merging},
	}
}

// Named are the values that the selector allows, by name, for parameters and for the factors that only some studies have.
func (s Selector) Named() map[string]string {
	all := map[string]string{}
	for k, values := range s.Params {
		all[k] = strings.Join(values, " or ")
	}
	for _, c := range s.choices() {
		if !c.of.IsField() && len(*c.Values) > 0 {
			all[c.of.Name] = strings.Join(*c.Values, " or ")
		}
	}
	return all
}

// each gives a selector for every choice of one value from each list.
func (s Selector) each() []Selector {
	all := []Selector{s}
	for i := range s.lists() {
		var more []Selector
		for _, one := range all {
			one = one.withoutMachine()
			values := *one.lists()[i]
			if len(values) < 2 {
				more = append(more, one)
				continue
			}
			for _, v := range values {
				*one.lists()[i] = Values{v}
				more = append(more, one)
			}
		}
		all = more
	}
	return all
}

// withoutMachine is the selector without a machine where its only platform has no VMs: the machine is then another platform's.
func (s Selector) withoutMachine() Selector {
	if len(s.Platform) == 1 && !notebook.HasMachine(s.Platform[0]) {
		s.Machine, s.Accelerator, s.Kernel = nil, nil, nil
	}
	return s
}

// over is the selector with what the other names instead of its own: the treatments that a To or a Than is about.
func (s Selector) over(other Selector) Selector {
	if len(other.Platform) > 0 && !slices.Equal(other.Platform, s.Platform) {
		s.Engine, s.Machine, s.Accelerator, s.Kernel = nil, nil, nil, nil // they are another platform's
	}
	if slices.Equal(other.Platform, Values{"bm"}) {
		s.Provisioning, s.Network, s.Isolation, s.Machine = nil, nil, nil, nil
	}
	if len(s.Workload) > 0 && len(other.Workload) > 0 && !slices.Equal(other.Workload, s.Workload) {
		s.Params = ofAnyWorkload(s.Params)
	}
	params := maps.Clone(s.Params)
	for i, c := range other.choices() {
		if len(*c.Values) > 0 {
			*s.choices()[i].Values = *c.Values
			delete(params, c.of.Name)
		} else if _, named := other.Params[c.of.Name]; named {
			*s.choices()[i].Values = nil
		}
	}
	if len(other.Workload) > 0 {
		s.Workload = other.Workload
	}
	if len(other.Params) > 0 && params == nil {
		params = map[string]Values{}
	}
	maps.Copy(params, other.Params)
	s.Params = params
	s.Cores, s.HostCores, s.CHR = cmp.Or(other.Cores, s.Cores), cmp.Or(other.HostCores, s.HostCores), cmp.Or(other.CHR, s.CHR)
	return s.withoutMachine()
}

// ofAnyWorkload returns the parameters that are factors, and so belong to no single workload; nil if there are none. A rate may be either, and
// is left out.
func ofAnyWorkload(params map[string]Values) (some map[string]Values) {
	for k, v := range params {
		if f, is := notebook.FactorNamed(k); !is || f.IsField() || f.Number {
			continue
		}
		if some == nil {
			some = map[string]Values{}
		}
		some[k] = v
	}
	return some
}
