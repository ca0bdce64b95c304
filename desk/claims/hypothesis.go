package claims

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Hypothesis is a finding as a statement about ratios of measured means. It has exactly one of these forms.
type Hypothesis struct {
	All   []Hypothesis `yaml:"all,omitempty"`   // each of them
	Any   []Hypothesis `yaml:"any,omitempty"`   // one of them at least
	Ratio *Ratio       `yaml:"ratio,omitempty"` // one treatment over another
	Gain  *Gain        `yaml:"gain,omitempty"`  // such a ratio over the same ratio of other treatments
	Trend *Trend       `yaml:"trend,omitempty"` // such a ratio at one end of an axis over that at the other
}

// sides are the two treatments of a hypothesis that is a ratio, a gain or a trend, and which of them it is; nil where it
// is put together from others.
func (h *Hypothesis) sides() (form string, of, to *Selector) {
	switch {
	case h.Ratio != nil:
		return "ratio", &h.Ratio.Of, &h.Ratio.To
	case h.Gain != nil:
		return "gain", &h.Gain.Of, &h.Gain.To
	case h.Trend != nil:
		return "trend", &h.Trend.Of, &h.Trend.To
	}
	return "", nil, nil
}

// Ratio says where the mean of one treatment over that of another lies.
type Ratio struct {
	Of     Selector `yaml:"of"`
	To     Selector `yaml:"to,omitempty"`    // empty: bare metal
	Sizes  Sizes    `yaml:"sizes,omitempty"` // empty: each
	Bounds `yaml:",inline"`
}

// Gain compares a ratio with the same ratio of other treatments: (of/to) / (than/to).
type Gain struct {
	Of     Selector `yaml:"of"`
	To     Selector `yaml:"to,omitempty"`
	Than   Selector `yaml:"than"` // what differs from Of
	Sizes  Sizes    `yaml:"sizes,omitempty"`
	Bounds `yaml:",inline"`
}

// Trend says how a ratio goes along an axis: "instance" (from few cores to many), "host_cores" (from a small host to a
// large one), or a parameter that is a number. Falls and Rises compare the last value with the first; Constant
// compares every value with the first.
type Trend struct {
	Of       Selector `yaml:"of"`
	To       Selector `yaml:"to,omitempty"`
	Over     string   `yaml:"over"`
	Sizes    Sizes    `yaml:"sizes,omitempty"` // not over instance
	Falls    Share    `yaml:"falls,omitempty"`
	Rises    Share    `yaml:"rises,omitempty"`
	Constant Share    `yaml:"constant,omitempty"`
}

// Axes of a trend that are not parameters.
const (
	OverInstance  = "instance"
	OverHostCores = "host_cores"
)

// Sizes says at which of the measured instance types a hypothesis is meant.
type Sizes string

const (
	Each     Sizes = "each" // as is empty
	Some     Sizes = "any"
	Smallest Sizes = "smallest"
	Largest  Sizes = "largest"
)

// Bounds are those of a ratio. Exactly one of them is there.
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
		return fmt.Errorf("%q: a percentage above 0 was expected, as in 2%%", n.Value)
	}
	*s = Share(v / 100)
	return nil
}

// Region is the interval of ratios that a hypothesis allows: Low 0 is no lower bound, High +Inf no upper one.
type Region struct{ Low, High float64 }

func higher(s Share) Region { return Region{1 + float64(s), math.Inf(1)} }
func lower(s Share) Region  { return Region{0, 1 / (1 + float64(s))} }
func equal(s Share) Region  { return Region{1 / (1 + float64(s)), 1 + float64(s)} }

func (b Bounds) region() Region {
	switch {
	case b.Higher > 0:
		return higher(b.Higher)
	case b.Lower > 0:
		return lower(b.Lower)
	case b.Equal > 0:
		return equal(b.Equal)
	case b.AtLeast > 0:
		return Region{b.AtLeast, math.Inf(1)}
	case b.AtMost > 0:
		return Region{0, b.AtMost}
	}
	return Region{b.Between[0], b.Between[1]}
}

// Values is one value or a list. A list means each of them.
type Values []string

// UnmarshalYAML takes a value or a list of values.
func (v *Values) UnmarshalYAML(n *yaml.Node) error {
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		nodes = n.Content
	}
	for _, n := range nodes {
		if n.Kind != yaml.ScalarNode || n.Value == "" {
			return errors.New("a value or a list of values was expected")
		}
		*v = append(*v, n.Value)
	}
	return nil
}

// Range bounds a number; 0 where it does not.
type Range struct {
	AtLeast float64 `yaml:"at_least,omitempty"`
	AtMost  float64 `yaml:"at_most,omitempty"`
}

func (r *Range) has(f float64) bool {
	return r == nil || f >= r.AtLeast && (r.AtMost == 0 || f <= r.AtMost)
}

// Selector chooses treatments. What it does not name may be anything; in To and Than, it is as in the treatment that
// is compared with, where both have it.
type Selector struct {
	Workload     Values `yaml:"workload,omitempty"`
	Platform     Values `yaml:"platform,omitempty"`
	Engine       Values `yaml:"engine,omitempty"`
	Provisioning Values `yaml:"provisioning,omitempty"`
	Instance     Values `yaml:"instance,omitempty"`
	Network      Values `yaml:"network,omitempty"`
	Isolation    Values `yaml:"isolation,omitempty"` // rungs of the isolation ladder; none named: no rung is chosen

	Params map[string]string `yaml:"params,omitempty"` // they choose among the treatments of workloads that have them

	Cores     *Range `yaml:"cores,omitempty"`      // of the instance
	HostCores *Range `yaml:"host_cores,omitempty"` // that the host has online
	CHR       *Range `yaml:"chr,omitempty"`
}

func (s Selector) empty() bool {
	return len(s.Workload)+len(s.Platform)+len(s.Engine)+len(s.Provisioning)+len(s.Instance)+len(s.Network)+len(s.Isolation)+len(s.Params) == 0 &&
		s.Cores == nil && s.HostCores == nil && s.CHR == nil
}

// lists are the selector's lists, to be gone through together.
func (s *Selector) lists() []*Values {
	return []*Values{&s.Workload, &s.Platform, &s.Engine, &s.Provisioning, &s.Instance, &s.Network, &s.Isolation}
}

// each gives a selector for every choice of one value from each list.
func (s Selector) each() []Selector {
	all := []Selector{s}
	for i := range s.lists() {
		var more []Selector
		for _, one := range all {
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

// over is the selector with what the other names in place of its own: the treatments that a To or a Than is about.
func (s Selector) over(other Selector) Selector {
	if len(other.Platform) > 0 && !slices.Equal(other.Platform, s.Platform) {
		s.Engine = nil // it is another platform's
	}
	if slices.Equal(other.Platform, Values{"bm"}) {
		s.Provisioning, s.Network, s.Isolation = nil, nil, nil
	}
	if len(other.Workload) > 0 && !slices.Equal(other.Workload, s.Workload) {
		s.Params = nil
	}
	for i, v := range other.lists() {
		if len(*v) > 0 {
			*s.lists()[i] = *v
		}
	}
	if len(other.Params) > 0 {
		params := map[string]string{}
		maps.Copy(params, s.Params)
		maps.Copy(params, other.Params)
		s.Params = params
	}
	s.Cores, s.HostCores, s.CHR = cmp.Or(other.Cores, s.Cores), cmp.Or(other.HostCores, s.HostCores), cmp.Or(other.CHR, s.CHR)
	return s
}
